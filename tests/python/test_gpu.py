"""Columns decoded on a device equal h5py's, for every storage and type: with a stand-in for the device, and on a GPU if
available."""

import ctypes
import zlib

import h5py
import numpy as np
import pytest
import raddle
from gpu_devices import NUMBERS, device, library, merged, no_cpu, same, values_of  # noqa: F401
from raddle import errors, gpu
from stand_in import StandIn

STORED = {
    "contiguous": {},
    "chunked": {"chunks": (7, 2, 3)},
    "deflated": {"chunks": (7, 5, 3), "compression": "gzip"},
    "shuffled": {"chunks": (7, 5, 3), "shuffle": True},
    "both": {"chunks": (7, 5, 3), "compression": "gzip", "shuffle": True},
    "both, edges everywhere": {"chunks": (7, 2, 2), "compression": "gzip", "shuffle": True},
    "larger than the extent": {"chunks": (64, 8, 4), "maxshape": (None, None, None), "compression": "gzip", "shuffle": True},
}
ELSEWHERE = {
    "checked": {"chunks": (7, 5, 3), "compression": "gzip", "fletcher32": True},
    "lzf": {"chunks": (7, 5, 3), "compression": "lzf", "shuffle": True},
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_every_storage_and_type(tmp_path, device, libver, monkeypatch):
    read_columns = raddle.Group.read_columns
    random = np.random.default_rng(7)
    path = tmp_path / "all.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for storage, options in {**STORED, **ELSEWHERE}.items():
            for dtype in NUMBERS:
                file.create_dataset(f"{storage}/{dtype}", data=values_of(random, dtype, (40, 5, 3)), **options)
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for storage in (*STORED, *ELSEWHERE):
            by = gpu.decoded_by(ours[storage])
            assert all((way == "device") == (storage in STORED) for way in by.values()), (storage, by)
            # A device that refuses everything would go unnoticed.
            monkeypatch.setattr(raddle.Group, "read_columns", None if storage in STORED else read_columns)
            for rows in (None, slice(9, 31), slice(14, 21), slice(3, 39, 4), slice(50, 60), slice(-1, None)):
                columns = gpu.read_columns(ours[storage], rows=rows, device=device)
                assert sorted(columns) == sorted(NUMBERS)
                for name, found in columns.items():
                    same(device, found, theirs[storage][name][rows or slice(None)])


def test_only_stored_bytes_go_to_the_device(tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(100_000) // 50, chunks=(10_000,), compression="gzip", shuffle=True)
        stored = [file["a"].id.get_chunk_info(number).size for number in range(10)]
    device = StandIn()
    with raddle.open(path) as file:
        gpu.read_columns(file, device=device)
        assert (device.loaded_bytes, device.inflated, device.uploaded_bytes) == (sum(stored), 10, 0)
        gpu.read_columns(file, rows=slice(25_000, 40_000), device=device)
        assert (device.loaded_bytes, device.inflated) == (sum(stored) + sum(stored[2:4]), 12)


def test_what_was_never_written_is_the_fill_value(tmp_path, device, no_cpu):
    path = tmp_path / "fill.h5"
    fills = {"i": np.int32(7), "big": np.array(-3, ">i8"), "nan": np.float32(np.nan), "c": np.array(1 - 2j, ">c16"), "none": None}
    with h5py.File(path, "w") as file:
        for name, fill in fills.items():
            dtype = np.dtype("u2") if fill is None else fill.dtype
            for storage, options in (("chunked", {"chunks": (4, 3), "compression": "gzip"}), ("contiguous", {})):
                dataset = file.create_dataset(f"{storage}/{name}", (30, 6), dtype, fillvalue=fill, **options)
                if storage == "chunked":
                    dataset[8:11, :3] = np.ones((3, 3), dtype)
                    dataset[28:] = np.ones((2, 6), dtype)
                    rows = file.create_dataset(f"rows/{name}", (30, 6), dtype, fillvalue=fill, chunks=(4, 6), shuffle=True)
                    rows[:4] = rows[12:20] = np.ones((1, 6), dtype)
            file.create_dataset(f"contiguous/written {name}", data=np.ones((30, 6), dtype))
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for group in ("chunked", "contiguous", "rows"):
            assert set(gpu.decoded_by(ours[group]).values()) == {"device"}
            for rows in (slice(None), slice(9, 29, 3), slice(12, 16)):
                for name, found in gpu.read_columns(ours[group], rows=rows, device=device).items():
                    same(device, found, theirs[group][name][rows])


def test_filters_that_were_skipped(tmp_path, device, no_cpu):
    path = tmp_path / "masks.h5"
    values = np.arange(32, dtype=">u4").reshape(8, 4)
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", values.shape, values.dtype, chunks=(2, 4), compression="gzip", shuffle=True)
        for mask in range(4):
            part = values[2 * mask : 2 * mask + 2]
            octets = part.tobytes() if mask & 1 else part.reshape(-1).view("u1").reshape(-1, 4).T.tobytes()
            dataset.id.write_direct_chunk((2 * mask, 0), octets if mask & 2 else zlib.compress(octets), mask)
    with raddle.open(path) as file:
        assert gpu.decoded_by(file) == {"d": "device"}
        same(device, gpu.read_columns(file, device=device)["d"], values)


def libhdf5():
    """Returns the library that h5py has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libhdf5-" in line or "/libhdf5.so" in line}
    return next(library for library in map(ctypes.CDLL, sorted(paths)) if hasattr(library, "H5Pset_chunk_opts"))


def test_edge_chunks_without_filters(tmp_path, device):
    path = tmp_path / "edges.h5"
    values = np.arange(50, dtype="i4").reshape(10, 5)
    with h5py.File(path, "w", libver="latest") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((4, 2))
        creation.set_shuffle()
        creation.set_deflate(6)
        # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, for which h5py has no name.
        assert libhdf5().H5Pset_chunk_opts(ctypes.c_int64(creation.id), 2) >= 0
        h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((10, 5)), creation)
        file["d"][...] = values
    with raddle.open(path) as file:
        # No filters at the edge: 1 of 3 x 3 chunks along the rows, 1 along the columns.
        assert gpu.decoded_by(file) == {"d": "device"}
        same(device, gpu.read_columns(file, device=device)["d"], values)
        assert not isinstance(device, StandIn) or device.inflated == 4


def test_elements_that_are_arrays_and_enumerations(tmp_path, device):
    path = tmp_path / "elements.h5"
    inner = np.dtype((">i2", (2, 3)))
    with h5py.File(path, "w") as file:
        matrices = file.create_dataset("m", (9,), inner, chunks=(4,), compression="gzip", shuffle=True)
        matrices[...] = np.arange(54).reshape(9, 2, 3)
        kinds = h5py.enum_dtype({"a": 1, "b": 300}, ">i2")
        file.create_dataset("e", data=np.array([1, 300, 1], kinds), chunks=(2,))
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for name, found in gpu.read_columns(ours, device=device).items():
            same(device, found, theirs[name][...])
        same(device, gpu.read_columns(ours, ["m"], slice(3, 9, 2), device=device)["m"], theirs["m"][3:9:2])


def test_columns_that_no_device_holds_are_named_together(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["number"] = np.arange(3)
        file["text"] = np.array([b"a", b"bc", b"d"])
        file["record"] = np.zeros(3, [("a", "i4")])
        file["one"] = 1
    with raddle.open(tmp_path / "other.h5") as file:
        with pytest.raises(errors.UsageError, match=r"record \(.*text \(\|S2\)"):
            gpu.read_columns(file, device=StandIn())
        with pytest.raises(errors.UsageError, match="one .no rows"):
            gpu.read_columns(file, ["one"], device=StandIn())
        with pytest.raises(KeyError):
            gpu.read_columns(file, ["absent"], device=StandIn())
        with pytest.raises(errors.UsageError, match="memory=0 is too small"):
            gpu.read_columns(file, ["number"], memory=0, device=StandIn())
        assert list(gpu.read_columns(file, ["number"], device=StandIn())) == ["number"]


def test_columns_of_a_merged_file(merged, device, no_cpu):
    with raddle.open(merged) as ours, h5py.File(merged) as theirs:
        names = ["map", "evt", "energy"]
        assert set(gpu.decoded_by(ours["rec"], names).values()) == {"device"}
        columns = gpu.read_columns(ours["rec"], names, slice(20, 140), device=device)
        assert list(columns) == names
        for name, found in columns.items():
            same(device, found, theirs["rec"][name][20:140])
