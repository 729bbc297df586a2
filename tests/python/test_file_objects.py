"""raddle.open on file objects, compared with h5py on the same bytes."""

import bz2
import gzip
import io
import os
import pickle
import tempfile
import zipfile

import fsspec
import h5py
import numpy as np
import pytest
import raddle
from comparing import same_datasets
from raddle import errors


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["g/packed"] = np.arange(5000).reshape(100, 50)
        file.create_dataset("g/chunked", data=np.arange(9000, dtype="<f4"), chunks=(700,), compression="gzip")
        file["texts"] = ["a", "bc", ""]
        # Only h5py reads these.
        file["places"] = np.array([file["g"].ref], h5py.ref_dtype)
        layout = h5py.VirtualLayout((4,), "<i8")
        layout[:] = h5py.VirtualSource(".", "g/packed", (100, 50))[3, :4]
        file.create_virtual_dataset("virtual", layout)
    return path


def from_buffer(path):
    return io.BytesIO(path.read_bytes())


def from_zip(path):
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, "file.h5")
    return zipfile.ZipFile(path.with_suffix(".zip")).open("file.h5")


def from_memory_system(path):
    system = fsspec.filesystem("memory")
    system.pipe("/objects/file.h5", path.read_bytes())
    return system.open("/objects/file.h5")


def from_temporary(path):
    made = tempfile.TemporaryFile()
    # Still in the object's buffer when it is opened.
    made.write(path.read_bytes())
    return made


def compressed_by(library, path):
    packed = path.with_suffix(".packed")
    packed.write_bytes(library.compress(path.read_bytes()))
    return library.open(packed, "rb")


SOURCES = {
    "file": lambda path: open(path, "rb"),
    "unbuffered": lambda path: open(path, "rb", buffering=0),
    "temporary": from_temporary,
    "buffer": from_buffer,
    "zip": from_zip,
    "gzip": lambda path: compressed_by(gzip, path),
    "bz2": lambda path: compressed_by(bz2, path),
    "fsspec local": lambda path: fsspec.filesystem("file").open(str(path)),
    "fsspec memory": from_memory_system,
}


@pytest.mark.parametrize("source", SOURCES)
def test_values_are_those_of_the_file(source, path):
    with SOURCES[source](path) as object_, h5py.File(path) as theirs:
        object_.seek(17)
        with raddle.open(object_) as ours:
            for name in ("g/packed", "g/chunked", "texts", "virtual"):
                same_datasets(ours[name], theirs[name])
            assert h5py.check_ref_dtype(ours["places"].dtype) is h5py.Reference and ours["places"][0]


def test_the_object_may_be_closed_afterwards(path):
    with open(path, "rb") as object_:
        file = raddle.open(object_)
    assert file.filename == str(path)
    assert file["g/chunked"][8999] == 8999
    file.close()


def test_no_descriptor_is_left(path):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(3):
        file = raddle.open(from_buffer(path))
        file.close()
        with pytest.raises(errors.DamagedError):
            raddle.open(io.BytesIO(b"no file at all"))
    assert descriptors() == before


def test_two_objects_are_two_files(path):
    with raddle.open(from_buffer(path)) as one, raddle.open(from_buffer(path)) as other:
        assert one["g"] == one["g"]
        assert one["g"] != other["g"]


def test_misuse_is_reported(path):
    with pytest.raises(errors.UsageError, match="'rb'"):
        raddle.open(io.StringIO("text"))
    with pytest.raises(errors.UsageError, match="neither a path nor a file object"):
        raddle.open(7)
    with pytest.raises(errors.UsageError, match=r"^the bytes are the content of a file.*io\.BytesIO"):
        raddle.open(path.read_bytes())
    with raddle.open(from_buffer(path)) as file, pytest.raises(errors.UsageError, match="another process"):
        pickle.dumps(file)


def test_errors_name_the_object(path):
    broken = path.with_name("broken.h5")
    broken.write_bytes(b"no file at all")
    with broken.open("rb") as object_, pytest.raises(errors.DamagedError) as raised:
        raddle.open(object_)
    assert str(broken) in str(raised.value) and "/proc/" not in str(raised.value) and "/dev/" not in str(raised.value)
    with pytest.raises(errors.DamagedError, match="BytesIO"):
        raddle.open(io.BytesIO(b"no file at all"))


def test_addresses_of_other_machines_lead_to_file_objects():
    for address in ("https://example.org/run.h5", "s3://bucket/run.h5"):
        with pytest.raises(errors.InputNotFoundError, match=r"what to do: pass a file object, such as fsspec"):
            raddle.open(address)
    with pytest.raises(errors.InputNotFoundError) as raised:
        raddle.open("missing.h5")
    assert raised.value.hint is None


def test_xarray_and_dask_take_them(path):
    xarray = pytest.importorskip("xarray")
    from raddle._xarray import RaddleBackend

    with raddle.open(from_buffer(path)) as file:
        assert int(file["g/packed"].to_dask(4000).sum()) == 5000 * 4999 // 2
    made = io.BytesIO()
    xarray.Dataset({"t": ("x", np.arange(7.0))}).to_netcdf(path.with_suffix(".nc"), engine="h5netcdf")
    made.write(path.with_suffix(".nc").read_bytes())
    with xarray.open_dataset(made, engine=RaddleBackend) as dataset:
        assert dataset["t"].values.tolist() == list(range(7))
