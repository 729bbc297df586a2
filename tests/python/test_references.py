"""References for Zarr readers: zarr reads through them the values that h5py reads."""

import json
import subprocess
import sys
import warnings

import h5py
import numpy as np
import pytest
import raddle
from raddle import errors

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
zarr = pytest.importorskip("zarr", reason="zarr is not installed")


def opened(references, **options):
    """Returns the group that zarr opens through references."""
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

    files = fsspec.filesystem("reference", fo=references, **options)
    with warnings.catch_warnings():
        # Ignores the warning that the wrapped file system is not designed for this.
        warnings.simplefilter("ignore")
        store = zarr.storage.FsspecStore(AsyncFileSystemWrapper(files), read_only=True, path="")
    return zarr.open_group(store, mode="r", zarr_format=2)


RECORD = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3")])
TYPES = [
    *(f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)),
    *(f"{order}f{size}" for order in "<>" for size in (2, 4, 8)), "<c8", ">c16", "S7", "V5", "?", RECORD,
]  # fmt: skip
STORED = [
    {},
    {"chunks": (7, 2)},
    {"chunks": (7, 2), "compression": "gzip", "shuffle": True},
    {"chunks": (20, 5), "compression": "gzip", "fletcher32": True},
    {"chunks": (3, 5), "shuffle": True, "fletcher32": True, "maxshape": (None, None)},
]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("storage", STORED, ids=["contiguous", "chunked", "deflated", "single", "checked"])
def test_zarr_reads_what_h5py_reads(tmp_path, libver, storage):
    random = np.random.default_rng(5)
    path = tmp_path / "all.h5"
    names = []
    with h5py.File(path, "w", libver=libver) as file:
        for number, dtype in enumerate(TYPES):
            dtype = np.dtype(dtype)
            values = np.frombuffer(random.integers(1, 60, 100 * dtype.itemsize, "u1").tobytes(), dtype).reshape(20, 5)
            values = values > 30 if dtype.kind == "b" else values
            names.append(f"group/d{number}")
            file.create_dataset(names[-1], data=values.astype(dtype), **storage)
    with h5py.File(path) as file:
        root = opened(raddle.references(path))
        for name in names:
            ours, theirs = root[name][...], file[name][...]
            shown = theirs.dtype
            if shown.kind == "c":
                # Compounds in the file, which only h5py interprets as complex numbers.
                part = np.dtype(f"{shown.byteorder}f{shown.itemsize // 2}")
                shown = np.dtype([("r", part), ("i", part)])
            assert ours.shape == theirs.shape and ours.dtype == shown, name
            assert ours.tobytes() == theirs.tobytes(), name
            assert root[name].chunks == (file[name].chunks or file[name].shape)


def test_fill_values_and_what_was_never_written(tmp_path):
    path = tmp_path / "fill.h5"
    fills = {"i": 7, "f": np.nan, "inf": -np.inf, "h": np.float16(1.5), "s": b"xy", "b": True}
    with h5py.File(path, "w") as file:
        for name, fill in fills.items():
            dtype = np.asarray(fill).dtype
            dataset = file.create_dataset(name, (10, 4), dtype, chunks=(3, 4), fillvalue=fill)
            dataset[3:6] = np.zeros((3, 4), dtype)
        file.create_dataset("never", (4,), "f4")
        file.create_dataset("empty", (0, 3), "f4", maxshape=(None, 3))
        file["scalar"] = 2.5
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3,))
        made = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, space, compact)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, -2, 3], ">i2"))
    root = opened(raddle.references(path))
    with h5py.File(path) as file:
        for name in [*fills, "never", "empty", "scalar", "compact"]:
            ours, theirs = np.asarray(root[name][...]), np.asarray(file[name][()])
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, name
            assert np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind == "f"), name
    # A fill value means "missing" to readers: it is written only if the file sets it, or if it is needed.
    fill_of = {name: root[name].metadata.fill_value for name in ["i", "never", "empty", "scalar", "compact"]}
    assert fill_of == {"i": 7, "never": 0, "empty": None, "scalar": None, "compact": None}


def test_attributes(tmp_path):
    path = tmp_path / "attributes.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "Ströme"
        file.attrs["fixed"] = np.bytes_(b"abc")
        file.attrs["names"] = ["a", "b"]
        dataset = file.create_dataset("g/d", data=np.zeros(3))
        dataset.attrs["range"] = np.array([-1.5, np.inf])
        dataset.attrs["big"] = np.uint64(2**64 - 1)
        dataset.attrs["matrix"] = np.arange(6, dtype=">i2").reshape(2, 3)
        dataset.attrs["good"] = True
        dataset.attrs["link"] = dataset.ref
    root = opened(raddle.references(path))
    assert dict(root.attrs) == {"title": "Ströme", "fixed": "abc", "names": ["a", "b"]}
    attributes = dict(root["g/d"].attrs)
    assert attributes.pop("_ARRAY_DIMENSIONS") == ["phony_dim_0"]
    assert attributes == {
        "range": [-1.5, "Infinity"], "big": 2**64 - 1, "matrix": [[0, 1, 2], [3, 4, 5]], "good": True,
    }  # fmt: skip


def test_what_zarr_has_no_equal_for_is_left_out_and_reported(tmp_path):
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["good"] = np.arange(5)
        file.create_dataset("text", data=["a"], dtype=h5py.string_dtype())
        file.create_dataset("lzf", data=np.arange(100), chunks=(10,), compression="lzf")
        file.create_dataset("gaps", (2,), np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 8}))
        file["alias"] = file["good"]
        file["soft"] = h5py.SoftLink("/good")
        masked = file.create_dataset("masked", (10,), "i4", chunks=(10,), compression="gzip")
        masked.id.write_direct_chunk((0,), np.arange(10, dtype="i4").tobytes(), filter_mask=1)
    with pytest.warns(UserWarning) as caught:
        found = raddle.references(path)
    texts = sorted(str(warning.message) for warning in caught)
    assert [text.split(" ")[0] for text in texts] == ["/gaps", "/good", "/lzf", "/masked", "/soft", "/text"]
    root = opened(found)
    assert list(root.array_keys()) == ["alias"] and np.array_equal(root["alias"][:], np.arange(5))


def test_the_command(tmp_path, environment, runs):
    output = tmp_path / "refs.json"
    command = [sys.executable, "-m", "raddle", "inspect", str(runs[0]), "--refs", str(output)]
    options = {"env": environment, "capture_output": True, "text": True, "check": False, "timeout": 120}
    first = subprocess.run(command, **options)
    assert first.returncode == 0 and first.stdout == "" and first.stderr == "", first.stderr
    assert json.loads(output.read_text()) == raddle.references(runs[0])
    again = subprocess.run(command, **options)
    assert again.returncode == 5 and "refs.json" in again.stderr, "an existing output is kept"
    output.unlink()
    elsewhere = subprocess.run([*command, "--refs-url", "s3://bucket/run1.h5"], **options)
    ranges = [entry for entry in json.loads(output.read_text())["refs"].values() if isinstance(entry, list)]
    assert elsewhere.returncode == 0 and ranges and {entry[0] for entry in ranges} == {"s3://bucket/run1.h5"}
    output.unlink()
    assert subprocess.run([*command, str(runs[1])], **options).returncode == 2
    parquet = subprocess.run([*command[:-1], str(tmp_path / "refs.parquet")], **options)
    assert parquet.returncode == 2 and "raddle.references" in parquet.stderr
    broken = tmp_path / "broken.h5"
    broken.write_bytes(runs[0].read_bytes()[:1000])
    refused = subprocess.run([*command[:4], str(broken), "--refs", str(output)], **options)
    assert refused.returncode == 3 and not output.exists()


def test_as_parquet(tmp_path, monkeypatch):
    pytest.importorskip("fastparquet", reason="fastparquet is not installed")
    from raddle import _parquet

    # Several files of rows per array, one of them empty.
    monkeypatch.setattr(_parquet, "_MAX_ROWS", 4)
    path, output = tmp_path / "all.h5", tmp_path / "all.parquet"
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        values = random.integers(0, 9, (20, 6), "i4")
        file.create_dataset("g/full", data=values, chunks=(7, 2), compression="gzip", shuffle=True)
        gaps = file.create_dataset("g/h/gaps", (40,), ">f8", chunks=(3,))
        gaps[:3], gaps[30:36] = 1.5, -2.5
        file.create_dataset("never", (9,), "u2", chunks=(4,))
        file["whole"], file["scalar"] = np.arange(5), 2.5
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        made = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, h5py.h5s.create_simple((3,)), compact)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, -2, 3], ">i2"))
    raddle.references(path, output)
    assert len(list((output / "g/full").iterdir())) == 3 and len(list((output / "g/h/gaps").iterdir())) == 2
    # If fsspec knows the protocol, it does not search all references for it, where groups would cause errors.
    root = opened(str(output), remote_protocol="file")
    with h5py.File(path) as file:
        for name in ["g/full", "g/h/gaps", "never", "whole", "scalar", "compact"]:
            ours, theirs = np.asarray(root[name][...]), np.asarray(file[name][()])
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name
    with pytest.raises(FileExistsError):
        raddle.references(path, output)


def test_a_merged_file_through_xarray(tmp_path, runs):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    raddle.merge(runs, tmp_path / "all.h5", progress=False)
    output = tmp_path / "refs.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raddle.references(tmp_path / "all.h5", output, group="/rec")
        files = fsspec.filesystem("reference", fo=str(output))
        through = xarray.open_zarr(files.get_mapper(), consolidated=False, zarr_format=2)
    with h5py.File(tmp_path / "all.h5") as file:
        for name, dataset in file["rec"].items():
            # Zeros are values if no fill value says otherwise.
            assert through[name].dtype == dataset.dtype and np.array_equal(through[name].values, dataset[:])
    for group in ("/", ""):
        assert raddle.references(runs[0], group=group) == raddle.references(runs[0])
    with pytest.raises(KeyError, match="none"):
        raddle.references(runs[0], group="none")
    with pytest.raises(FileNotFoundError) as missing:
        raddle.references(tmp_path / "none.h5")
    assert isinstance(missing.value, errors.InputNotFoundError)
