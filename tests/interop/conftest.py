"""Fixtures for the interoperability tests: the command under test, and small files made with h5py."""

import ctypes

import h5py
import hdf5plugin  # noqa: F401  (before netCDF4, whose plugins h5py would load instead and fail with)
import numpy as np
import pytest
from command import RADDLE, raddle  # noqa: F401


def write_frames(path, first):
    """Writes a file with a dataset `frames` of four numbers from `first`; returns its path."""
    path.parent.mkdir(exist_ok=True)
    with h5py.File(path, "w") as file:
        file["frames"] = np.arange(4).reshape(2, 2) + first
    return path


def write_events(path, seed, events=500, groups=6):
    """Writes a file like NOvA's: tables of rank-2 columns in chunks of 128 rows, most of them empty, and wide maps."""
    random = np.random.default_rng(seed)
    chunked = {"maxshape": (None, None), "compression": "gzip", "compression_opts": 6}
    with h5py.File(path, "w") as file:
        file.attrs["experiment"] = "loom"
        event = np.arange(events, dtype=np.int32)[:, None]
        spill = file.create_group("spill")
        for name, values in [("run", np.full_like(event, seed)), ("subrun", event * 0), ("evt", event)]:
            spill.create_dataset(name, data=values, chunks=(128, 1), **chunked)
        for number in range(groups):
            group = file.create_group(f"table{number}")
            rows = int(random.integers(0, 3 * events)) if number % 3 else 0
            ids = np.sort(random.integers(0, events, rows)).astype(np.int32)[:, None]
            group.create_dataset("evt", data=ids, chunks=(128, 1), **chunked)
            group.create_dataset("energy", data=random.random((rows, 1), np.float32), chunks=(128, 1), **chunked)
            group.create_dataset("hits", data=random.integers(0, 9, (rows, 1), np.int64), chunks=(128, 1), **chunked)
            group["energy"].attrs["unit"] = "GeV"
        maps = np.zeros((events // 5, 1600), np.uint8)
        maps[random.random(maps.shape) > 0.995] = 200
        file.create_dataset("maps/pixels", data=maps, chunks=(128, 1600), **chunked)
    return path


@pytest.fixture
def events(tmp_path):
    """Four event files with different numbers of rows, none a multiple of the chunk."""
    return [write_events(tmp_path / f"run{number}.h5", number, events=300 + 77 * number) for number in range(1, 5)]


def write_every_type(path, seed):
    random = np.random.default_rng(seed)
    rows = 40 + seed
    compound = np.dtype([("a", "<i2"), ("b", ">f8"), ("name", "S7"), ("vector", "<f4", (3,))])
    with h5py.File(path, "w", track_order=True) as file:
        for kind in ["i1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c16", "S5", "V9"]:
            raw = random.integers(0, 256, rows * np.dtype(kind).itemsize, np.uint8)
            file.create_dataset(f"fixed/{kind.strip('<>')}", data=raw.view(kind).reshape(rows))
        file.create_dataset("compound", data=random.integers(0, 99, rows * compound.itemsize, np.uint8).view(compound))
        file.create_dataset("flags", data=random.random(rows) > 0.5)
        file.create_dataset("enum", (rows,), h5py.enum_dtype({"red": 3, "blue": -1}, "i2"))
        file.create_dataset("cube", data=random.random((rows, 3, 5)), chunks=(7, 2, 4), compression="lzf")
        file.create_dataset("shuffled", data=random.integers(0, 5, (rows, 2)), shuffle=True, fletcher32=True,
                            compression="gzip", maxshape=(None, 2))
        file.create_dataset("scaled", data=random.integers(0, 5, rows), scaleoffset=0, chunks=(16,))
        file.create_dataset("words", data=[f"wört {n}" * (n % 3) for n in range(rows)], dtype=h5py.string_dtype())
        ragged = file.create_dataset("ragged", (rows,), h5py.vlen_dtype("i4"))
        for row in range(rows):
            ragged[row] = np.arange(row % 4)
        file["scalar"] = 42
        file["text"] = "one and the same"
        file["nothing"] = h5py.Empty("f4")
        file.create_dataset("no_rows", (0, 3), "f4", maxshape=(None, 3))
        file.create_dataset("filled", (rows,), "i4", chunks=(8,), fillvalue=7)[:3] = 1
        file["alias"] = file["cube"]
        file["soft"] = h5py.SoftLink("/fixed/i1")
        file["outside"] = h5py.ExternalLink("elsewhere.h5", "/data")
        file["committed"] = np.dtype("<i4")
        file.create_dataset("of_committed", (rows,), file["committed"])
        file.create_dataset("objects", data=[file["cube"].ref, file["fixed"].ref], dtype=h5py.ref_dtype)
        regions = file.create_dataset("regions", (1,), h5py.regionref_dtype)
        regions[0] = file["fixed/i1"].regionref[2:5]
        file["cube"].attrs["of"] = file["fixed"].ref
        file["cube"].attrs["many"] = np.arange(5_000)
    return path


@pytest.fixture
def every_type(tmp_path):
    return [write_every_type(tmp_path / f"types{seed}.h5", seed) for seed in [1, 2, 3]]


def visit(path):
    """Returns all datasets of a file by path, except those of raddle's own group."""
    found = {}
    with h5py.File(path) as file:

        def add(name, item):
            if isinstance(item, h5py.Dataset) and not name.startswith("_raddle"):
                found[name] = item[()] if item.shape is not None else None

        file.visititems(add)
    return found


def assert_concatenated(output, inputs):
    """Asserts that every dataset of ``output`` is the concatenation of the inputs' along axis 0, bit by bit."""
    merged, parts = visit(output), [visit(path) for path in inputs]
    assert sorted(merged) == sorted(parts[0])
    for name, values in merged.items():
        expected = np.concatenate([part[name] for part in parts])
        assert values.dtype == expected.dtype, name
        assert values.shape == expected.shape, name
        assert values.tobytes() == expected.tobytes(), name


def libhdf5():
    """Returns the libhdf5 that h5py loads, for calls that h5py does not wrap."""
    return ctypes.CDLL(h5py.h5f.__file__)
