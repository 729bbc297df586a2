"""References and regions of merged files lead to the same objects and elements as in the inputs."""

import ctypes
import struct

import h5py
import numpy as np
import pytest
from conftest import libhdf5


def test_dangling_references_in_attributes_become_null_and_are_reported(raddle, tmp_path):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file["kept"] = np.arange(4)
            file["gone"] = np.arange(2)
            file["kept"].attrs["about"] = np.array([file["kept"].ref, file["gone"].ref, h5py.Reference()], h5py.ref_dtype)
            file["kept"].attrs["part"] = file["gone"].regionref[:1]
            del file["gone"]
    output = tmp_path / "out.h5"
    message = raddle("merge", *inputs, "-o", output).stderr
    assert "dangling references" in message and "1 in attribute about, written as null" in message, message
    with h5py.File(output) as file:
        about = file["kept"].attrs["about"]
        assert [file[reference].name if reference else None for reference in about] == ["/kept", None, None]
        assert not file["kept"].attrs["part"]
    raddle("verify", output, "--against", *inputs)
    # Values are different: the targets of references would be lost, and no option allows that.
    for path in inputs:
        with h5py.File(path, "a") as file:
            file["gone"] = np.arange(2)
            file["cells"] = np.array([file["gone"].ref], h5py.ref_dtype)
            del file["gone"]
    refused = raddle("merge", *inputs, "-o", output, "--force", expect=3)
    assert "/cells" in refused.stderr and "where the file has no object" in refused.stderr, refused.stderr
    assert "--exclude" in refused.stderr and "damaged" not in refused.stderr, refused.stderr
    raddle("merge", *inputs, "-o", output, "--force", "--exclude", "/cells")


@pytest.mark.parametrize("option", [("--keep", "/maps/*"), ("--rule", "/maps/*: once")])
def test_regions_of_a_dataset_that_is_stored_once_stay(raddle, tmp_path, option):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["maps/field"] = np.arange(30.0).reshape(10, 3)
            file["rows"] = np.arange(4.0)
            regions = [file["maps/field"].regionref[number + 2 : number + 4], file["rows"].regionref[1:3]]
            file.create_dataset("regions", data=np.array([regions], h5py.regionref_dtype), maxshape=(None, 2))
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output, *option)
    with h5py.File(output) as file:
        assert file["maps/field"].shape == (10, 3) and file["rows"].shape == (8,)
        for number, (of_map, of_rows) in enumerate(file["regions"]):
            assert file["maps/field"].regionref.selection(of_map) == (2, 3)
            assert file["maps/field"][of_map].tolist() == file["maps/field"][number + 2 : number + 4].tolist()
            assert file["rows"][of_rows].tolist() == [1, 2] and file["rows"].regionref.selection(of_rows) == (2,)
    raddle("verify", output, "--against", *inputs)


def test_references_to_what_is_left_out_are_reported_as_that(raddle, tmp_path):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file["kept"] = file["other"] = np.arange(4)
            file["cells"] = np.array([file["kept"].ref], h5py.ref_dtype)
    refused = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--exclude", "kept", expect=3)
    assert "/cells" in refused.stderr and "which is left out" in refused.stderr, refused.stderr
    assert "damaged" not in refused.stderr and "--exclude" in refused.stderr, refused.stderr
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--exclude", "kept", "--exclude", "cells")


def test_a_fill_value_that_becomes_null_agrees_with_its_digest(raddle, tmp_path):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    dtype = np.dtype([("target", h5py.ref_dtype), ("text", h5py.string_dtype())])
    text = ctypes.create_string_buffer(b"filled")
    with h5py.File(path, "w") as file:
        kind = h5py.h5t.py_create(dtype, logical=True)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2,))
        fill = struct.pack("@8xP", ctypes.addressof(text))
        assert libhdf5().H5Pset_fill_value(ctypes.c_int64(plist.id), ctypes.c_int64(kind.id), fill) == 0
        h5py.h5d.create(file.id, b"d", kind, h5py.h5s.create_simple((3,)), plist)
        file["d"][0] = (file.ref, "written")
    message = raddle("merge", path, "-o", output).stderr
    assert "different fill value" in message, message
    raddle("verify", output)
    raddle("verify", output, "--against", path)
    with h5py.File(output) as file:
        assert [row["text"] for row in file["d"][:]] == [b"written", b"filled", b"filled"]
