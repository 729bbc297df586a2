"""Merges of files whose addresses and lengths have fewer than 8 bytes: their variable-length data has shorter descriptors."""

import h5py
import numpy as np
import pytest


@pytest.mark.parametrize("sizes", [(4, 4), (4, 8)])
def test_files_with_short_addresses(raddle, tmp_path, sizes):
    """Their descriptors of variable-length data are shorter than those of the output."""
    inputs = [tmp_path / "0.h5", tmp_path / "1.h5"]
    record = np.dtype([("flag", "i1"), ("name", h5py.string_dtype()), ("x", "f8")])
    for number, path in enumerate(inputs):
        plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        plist.set_sizes(*sizes)
        with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, plist)) as file:
            file.attrs["title"] = "a title"
            growing = {"maxshape": (None,), "chunks": (2,)}
            names = file.create_dataset("names", data=["a", "", f"{number}"], dtype=h5py.string_dtype(), **growing)
            names.attrs["words"] = np.array(["x", "yy"], object)
            names.attrs["tracks"] = np.array([np.arange(3), np.arange(1)], h5py.vlen_dtype("i4"))
            records = np.array([(number, "r", 0.5), (2, "ss", 1.5)], record)
            file.create_dataset("records", data=records, **growing).attrs["first"] = records[0]
            file["scalar"], file["type"] = "text", record
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    with h5py.File(output, "r+") as file:
        assert file["names"].asstr()[()].tolist() == ["a", "", "0", "a", "", "1"]
        assert file["records"]["x"].tolist() == [0.5, 1.5, 0.5, 1.5]
        assert file["names"].attrs["words"].tolist() == ["x", "yy"]
        file["names"].attrs["words"] = np.array(["x", "yz"], object)
    assert "words" in raddle("verify", output, "--against", *inputs, expect=8).stdout


def write_with_addresses(path, size, number):
    """Writes variable-length data of all kinds to a file whose addresses and lengths have ``size`` bytes."""
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(size, size)
    inner = np.dtype([("key", h5py.string_dtype()), ("at", "i4")])
    record = np.dtype([("flag", "i1"), ("name", h5py.string_dtype()), ("hits", h5py.vlen_dtype("i2")), ("x", "f8")])
    rows = 3 + number
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, plist)) as file:
        growing = {"maxshape": (None,), "chunks": (2,)}
        file.create_dataset("names", data=[f"{number}-{'x' * row}" for row in range(rows)], dtype=h5py.string_dtype(), **growing)
        hits = file.create_dataset("hits", (rows,), h5py.vlen_dtype("i4"), **growing)
        records = file.create_dataset("records", (rows,), record, compression="gzip", **growing)
        pairs = file.create_dataset("pairs", (rows, 2), h5py.string_dtype(), maxshape=(None, 2), chunks=(2, 1))
        for row in range(rows):
            hits[row] = np.arange(row) + number
            records[row] = (row, f"r{number}{row}", np.arange(row % 3), row / 2)
            pairs[row] = [f"p{row}", f"q{number}"]
        file["plain"] = np.arange(rows)
        file["shared"] = "the same"
        file["kind"] = inner
        file["names"].attrs["words"] = np.array(["x", "yy"], object)
        file["names"].attrs.create("pair", np.array(("k", 1), inner), dtype=inner)
    return path


def values_of(file):
    found = {name: file[name][()] for name in ["names", "plain", "pairs"]}
    found |= {"hits": [hits.tolist() for hits in file["hits"][()]], "shared": file["shared"][()]}
    found["records"] = [(row["flag"], row["name"], row["hits"].tolist(), row["x"]) for row in file["records"][()]]
    return found


@pytest.mark.parametrize("sizes", [(4, 8), (8, 4), (4, 8, 4), (8, 4, 8, 4)])
@pytest.mark.parametrize("options", [[], ["-c", "keep"], ["--link", "virtual"], ["--attributes", "first"], ["--join", "outer"]])
def test_files_with_addresses_of_different_sizes(raddle, tmp_path, sizes, options):
    """Each file is read with its own descriptors of variable-length data."""
    inputs = [write_with_addresses(tmp_path / f"{number}.h5", size, number) for number, size in enumerate(sizes)]
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output, *options)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    wanted = {}
    for path in inputs:
        with h5py.File(path) as file:
            for name, values in values_of(file).items():
                wanted.setdefault(name, []).extend([values] if name == "shared" else [*values])
            attributes = dict(file["names"].attrs)
    with h5py.File(output) as file:
        found = values_of(file)
        assert found.pop("shared") == wanted.pop("shared")[0] == b"the same"
        for name, values in wanted.items():
            assert [np.asarray(row, object).tolist() for row in found[name]] == [np.asarray(row, object).tolist() for row in values], name
        assert file["names"].attrs["words"].tolist() == ["x", "yy"] and file["names"].attrs["pair"] == attributes["pair"]
        assert h5py.h5t.open(file.id, b"kind").get_nmembers() == 2
    if not options:
        raddle("merge", inputs[0], "-o", tmp_path / "grown.h5", "--extendible")
        raddle("append", tmp_path / "grown.h5", *inputs[1:])
        raddle("verify", tmp_path / "grown.h5", "--against", *inputs)
