"""Outputs of merges, read by h5py: values, types, attributes, objects of every kind."""

import ctypes
import json
import struct

import h5py
import hdf5plugin  # noqa: F401  (zstd and lz4)
import numpy as np
import pytest
from conftest import assert_concatenated, visit


@pytest.mark.parametrize("shuffle", ["keep", "yes", "no"])
@pytest.mark.parametrize("compress", ["fast", "balanced", "small", "gzip:1", "zstd", "zstd:11", "lz4", "none", "keep"])
def test_values_whatever_the_compression(raddle, events, tmp_path, compress, shuffle):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--compress", compress, "--shuffle", shuffle)
    assert_concatenated(output, events)
    raddle("verify", output, "--against", *events)
    filters = {"zstd": (32015, (3,)), "zstd:11": (32015, (11,)), "lz4": (32004, ()), "gzip:1": (1, (1,))}
    named = pipeline(output, "table1/energy")
    if compress in filters:
        assert named[-1] == filters[compress]
    assert [2] * (shuffle == "yes" and compress != "none") == [number for number, _ in named if number == 2]


def pipeline(path, name):
    """Returns number and parameters of each filter of a dataset."""
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        filters = [plist.get_filter(number) for number in range(plist.get_nfilters())]
    return [(number, parameters) for number, _, parameters, _ in filters]


@pytest.mark.parametrize("compression", [hdf5plugin.Zstd(clevel=7), hdf5plugin.LZ4(), {"compression": "gzip", "shuffle": True}],
                         ids=["zstd", "lz4", "shuffle"])
def test_filters_are_kept_where_chunks_cannot_be(raddle, tmp_path, compression):
    """The rows of the first input end within a chunk, so chunks of the second begin at other positions in the
    output."""
    paths, values = [tmp_path / "a.h5", tmp_path / "b.h5"], [np.arange(1234) % 71, np.arange(4321) % 53]
    for path, numbers in zip(paths, values, strict=True):
        with h5py.File(path, "w") as file:
            file.create_dataset("d", data=numbers, chunks=(100,), maxshape=(None,), **compression)
    output = tmp_path / "out.h5"
    message = raddle("merge", *paths, "-o", output, "-c", "keep").stderr
    assert "cannot keep" not in message and "hdf5plugin" not in message, message
    kept, of_input = pipeline(output, "d"), pipeline(paths[0], "d")
    assert [number for number, _ in kept] == [number for number, _ in of_input]
    assert 32015 not in dict(kept) or dict(kept)[32015] == (7,)
    more = tmp_path / "more.h5"
    with h5py.File(more, "w") as file:
        file.create_dataset("d", data=np.arange(99), chunks=(100,), maxshape=(None,))
    raddle("append", output, more)
    with h5py.File(output) as file:
        assert np.array_equal(file["d"], np.concatenate([*values, np.arange(99)]))
        chunks = [file["d"].id.get_chunk_info(number) for number in range(file["d"].id.get_num_chunks())]
    assert all(chunk.filter_mask == 0 for chunk in chunks)
    raddle("verify", output)
    # Uncompressed data is not shuffled.
    raddle("rechunk", output, "-o", tmp_path / "plain.h5", "-c", "none")
    assert pipeline(tmp_path / "plain.h5", "d") == []


def test_what_readers_need_is_reported(raddle, events, tmp_path):
    message = raddle("merge", *events, "-o", tmp_path / "out.h5", "-c", "zstd").stderr
    assert "hdf5plugin" in message and "32015" in message
    message = raddle("merge", *events, "-o", tmp_path / "out2.h5", "-c", "lz4", "-q").stderr
    assert message == ""
    message = raddle("merge", *events, "-o", tmp_path / "out3.h5", "--shuffle", "yes").stderr
    assert "hdf5plugin" not in message


@pytest.mark.parametrize("layout", ["events", "scan", "random", "cloud", "keep"])
@pytest.mark.parametrize("compat", ["1.8", "1.10", "latest"])
def test_values_whatever_the_layout(raddle, events, tmp_path, layout, compat):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--for", layout, "--compat", compat)
    assert_concatenated(output, events)
    raddle("verify", output, "--against", *events)


def test_the_same_bytes_for_any_number_of_threads(raddle, events, tmp_path):
    written = []
    for jobs in [1, 2, 5]:
        output = tmp_path / f"out{jobs}.h5"
        raddle("merge", *events, "-o", output, "-j", jobs)
        written.append(output.read_bytes())
    assert written[0] == written[1] == written[2]


def test_little_memory_gives_the_same_values(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--memory", "64MiB")
    assert_concatenated(output, events)


def test_tables_have_the_same_rows_per_chunk(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    with h5py.File(output) as file:
        for name, group in file.items():
            if name.startswith("table"):
                assert len({dataset.chunks[0] for dataset in group.values()}) == 1, name
        assert file["maps/pixels"].chunks == (128, 1600)
        assert file["spill/evt"].maxshape[0] is None


def test_attributes_come_along(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    with h5py.File(output) as file:
        assert file.attrs["experiment"] == "loom"
        assert file["table1/energy"].attrs["unit"] == "GeV"


def test_every_kind_of_object(raddle, every_type, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *every_type, "-o", output)
    merged, parts = visit(output), [visit(path) for path in every_type]
    constants = {"scalar", "text", "nothing", "objects", "regions"}
    for name, values in merged.items():
        if name not in constants:
            expected = [part[name] for part in parts]
            assert values.dtype == expected[0].dtype, name
            if values.dtype == object:
                expected = [row for part in expected for row in part]
                assert all(np.array_equal(row, other) for row, other in zip(values, expected, strict=True)), name
            else:
                # Not np.concatenate, which converts compounds to native byte order.
                assert values.tobytes() == b"".join(part.tobytes() for part in expected), name
    with h5py.File(output) as file, h5py.File(every_type[0]) as first:
        assert [name for name in file if name != "_raddle"] == list(first), "creation order"
        assert file["scalar"][()] == 42 and file["text"].asstr()[()] == "one and the same"
        assert file["nothing"].shape is None
        assert file["alias"] == file["cube"]
        assert file.get("soft", getlink=True).path == "/fixed/i1"
        assert file.get("outside", getlink=True).filename == "elsewhere.h5"
        assert file["of_committed"].id.get_type().committed()
        assert file["filled"].fillvalue == 7
        assert file["no_rows"].maxshape == (None, 3)
        assert h5py.check_enum_dtype(file["enum"].dtype) == {"red": 3, "blue": -1}
        assert [file[reference].name for reference in file["objects"]] == ["/cube", "/fixed"] * 3
        first_rows = 0
        for part, region in zip(parts, file["regions"], strict=True):
            assert file["fixed/i1"].regionref.selection(region) == (3,)
            assert np.array_equal(file["fixed/i1"][region], part["fixed/i1"][2:5])
            first_rows += len(part["fixed/i1"])
        assert file[file["cube"].attrs["of"]].name == "/fixed"
        assert np.array_equal(file["cube"].attrs["many"], np.arange(5_000))
    raddle("verify", output, "--against", *every_type)


def test_rechunk_keeps_the_values(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("rechunk", events[0], "-o", output, "--chunk", "1000rows", "--compress", "small")
    assert_concatenated(output, events[:1])
    with h5py.File(output) as file:
        assert file["spill/evt"].chunks[0] <= 1000


def test_a_changed_value_is_found(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    with h5py.File(output, "r+") as file:
        row = file["table1/energy"].shape[0] - 1
        file["table1/energy"][row, 0] += 1
    message = raddle("verify", output, "--against", *events, expect=8)
    assert "/table1/energy" in message.stdout + message.stderr and str(row) in message.stdout + message.stderr


def test_all_differences_are_reported_and_nothing_is_written(raddle, events, tmp_path):
    with h5py.File(events[1], "r+") as file:
        del file["table1/hits"]
        del file["table2/energy"]
        file["table2/energy"] = np.zeros((4, 1), "f8")
    output = tmp_path / "out.h5"
    message = raddle("merge", *events, "-o", output, expect=3)
    assert "/table1/hits" in message.stderr and "/table2/energy" in message.stderr
    assert not output.exists() and not list(tmp_path.glob(".out*"))


def test_joins(raddle, events, tmp_path):
    with h5py.File(events[1], "r+") as file:
        rows = file["table1/evt"].shape[0]
        del file["table1/hits"]
    inner, outer = tmp_path / "inner.h5", tmp_path / "outer.h5"
    raddle("merge", *events, "-o", inner, "--join", "inner")
    assert "table1/hits" not in visit(inner)
    raddle("merge", *events, "-o", outer, "--join", "outer")
    hits, parts = visit(outer)["table1/hits"], [visit(path) for path in events]
    before = len(parts[0]["table1/hits"])
    assert len(hits) == len(visit(outer)["table1/evt"])
    assert not hits[before:before + rows].any()
    assert np.array_equal(hits[:before], parts[0]["table1/hits"])


def test_the_report_is_json(raddle, events, tmp_path):
    report = tmp_path / "report.json"
    raddle("merge", *events, "-o", tmp_path / "out.h5", "--report", report)
    assert json.loads(report.read_text())["inputs"] == 4


def test_provenance_says_which_rows_came_from_where(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    with h5py.File(output) as file:
        own = file["_raddle"]
        paths = list(own["datasets/path"].asstr())
        starts = own["row_starts"][own["datasets/row_starts"][paths.index("/spill/evt")]]
        assert [path.split("/")[-1] for path in own["inputs/path"].asstr()] == [path.name for path in events]
        assert list(np.diff(starts)) == [len(visit(path)["spill/evt"]) for path in events]
    raddle("merge", *events, "-o", output, "--force", "--no-provenance")
    with h5py.File(output) as file:
        assert "_raddle" not in file


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


def padded_text(padding):
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(8)
    kind.set_strpad(padding)
    return kind


def compound(second_offset):
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
    kind.insert(b"a", 0, h5py.h5t.STD_I32LE)
    kind.insert(b"b", second_offset, h5py.h5t.STD_I32LE)
    return kind


ALIKE_TYPES = {
    "padding": (padded_text(h5py.h5t.STR_NULLPAD), padded_text(h5py.h5t.STR_SPACEPAD), ["zeros)", "spaces)"]),
    "offset": (compound(4), compound(8), ["4}", "8}"]),
    "names": (
        h5py.h5t.py_create(h5py.enum_dtype({"on": 1, "off": 0}), logical=True),
        h5py.h5t.py_create(h5py.enum_dtype({"on": 2, "off": 0}), logical=True),
        ["on: 1", "on: 2"],
    ),
}


@pytest.mark.parametrize("case", ALIKE_TYPES)
def test_types_of_equal_short_descriptions_are_told_apart(raddle, tmp_path, case):
    *kinds, shown = ALIKE_TYPES[case]
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path, kind in zip(inputs, kinds, strict=True):
        with h5py.File(path, "w") as file:
            space = h5py.h5s.create_simple((3,), (h5py.h5s.UNLIMITED,))
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((3,))
            h5py.h5d.create(file.id, b"x", kind, space, creation)
    printed = raddle("merge", *inputs, "-o", tmp_path / "out.h5", expect=3).stderr
    assert all(printed.count(one) == 1 for one in shown), printed


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


def test_filters_that_cannot_be_kept_are_reported(raddle, tmp_path):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(10), chunks=(4,), maxshape=(None,), compression="lzf")
    message = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "-c", "keep").stderr
    assert "1 dataset cannot keep lzf" in message and "deflated" in message, message
    message = raddle("merge", inputs[0], "-o", tmp_path / "one.h5", "-c", "keep", "--for", "keep").stderr
    assert "lzf" not in message, message


@pytest.mark.parametrize("settings", [{"fletcher32": True}, {"shuffle": True}, {"shuffle": True, "fletcher32": True}])
def test_datasets_without_compression_stay_so(raddle, tmp_path, settings):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(10), chunks=(4,), maxshape=(None,), **settings)
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "-c", "keep", "--for", "keep")
    with h5py.File(tmp_path / "out.h5") as file:
        found = file["x"]
        assert (found.compression, found.chunks) == (None, (4,))
        assert {"shuffle": found.shuffle, "fletcher32": found.fletcher32} == {
            "shuffle": settings.get("shuffle", False),
            "fletcher32": settings.get("fletcher32", False),
        }
        assert found[:].tolist() == [*range(10), *range(10)]


@pytest.mark.parametrize("rows", [0, 20])
def test_filters_that_strings_cannot_keep_are_reported(raddle, tmp_path, rows):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        settings = {"dtype": h5py.string_dtype(), "chunks": (10,), "maxshape": (None,), "shuffle": True}
        file.create_dataset("packed", data=["a"] * rows, compression="lzf", **settings)
        file.create_dataset("deflated", data=["a"] * rows, compression="gzip", **settings)
    for options in [("--for", "keep"), ()]:
        message = raddle("merge", path, "-o", tmp_path / "out.h5", "--force", "-c", "keep", *options).stderr
        assert "1 dataset of strings, sequences or references cannot keep lzf" in message, message
    with h5py.File(tmp_path / "out.h5") as file:
        assert [file[name].compression for name in ("packed", "deflated")] == [None, "gzip"]


@pytest.mark.parametrize("count", [3000, 5000])
def test_the_last_chunk_of_a_deep_index_is_found(raddle, tmp_path, count):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.arange(1, count + 1, dtype="i2")
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=values, chunks=(1,), compression=1)
    raddle("merge", path, "-o", output, "--for", "keep", "-c", "keep")
    assert visit(output)["d"].tolist() == values.tolist()
    raddle("verify", output, "--against", path)


def libhdf5():
    """Returns the libhdf5 that h5py loads, for calls that h5py does not wrap."""
    return ctypes.CDLL(h5py.h5f.__file__)


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


def test_strings_in_a_cache_image_are_not_called_damaged(raddle, tmp_path):
    path = tmp_path / "in.h5"
    library = libhdf5()
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_LATEST)
    config = struct.pack("@iBBi", 1, 1, 0, -1)
    assert library.H5Pset_mdc_image_config(ctypes.c_int64(access.id), config) == 0
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, None, access)) as file:
        file["texts"] = ["one", "two"]
        file["numbers"] = np.arange(5)
    message = raddle("merge", path, "-o", tmp_path / "out.h5", expect=3).stderr
    assert "metadata cache image" in message and "damaged" not in message, message
    # Raw data of fixed length is not part of the image.
    raddle("merge", path, "-o", tmp_path / "out.h5", "--exclude", "texts")
    assert visit(tmp_path / "out.h5")["numbers"].tolist() == list(range(5))
    with h5py.File(path) as file:
        assert list(file["texts"]) == [b"one", b"two"]


def test_differing_attributes_are_shown_with_their_values(raddle, tmp_path):
    inputs = [tmp_path / f"run{number}.h5" for number in range(6)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(3)
            file["x"].attrs["run"] = number
            file["x"].attrs["energy"] = np.float32(20.0 + 0.01 * (number == 4))
            file["x"].attrs["note"] = "x" * 60 + str(number // 3)
            if number == 5:
                file["x"].attrs["late"] = True
    refused = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--attributes", "error", expect=3).stderr
    rows = [line.split("  ") for line in refused.splitlines() if line.startswith(" /x ")]
    found = {(row[2], row[3].strip()): row[-1].strip() for row in ([cell for cell in row if cell] for row in rows)}
    assert found == {
        ("run = 0", "run = 1"): "run1.h5",
        ("run = 0", "run = 2"): "run2.h5",
        ("run = 0", "run = 3"): "run3.h5",
        ("run = 0", "yet other values"): "run4.h5, run5.h5",
        ("energy = 20.0", "energy = 20.01"): "run4.h5",
        ('note from byte 60 = "0"', 'note from byte 60 = "1"'): "run3.h5, run4.h5, run5.h5",
        ("no late", "late = TRUE"): "run5.h5",
    }, refused


def write_scalars(path, number):
    with h5py.File(path, "w") as file:
        file["rows"] = np.arange(3) + number
        file["run"] = np.int16(100 + number)
        file["same"] = 2.5
        file["title"] = f"run {number} " * number
        file["pair"] = np.array((number, -0.5), [("a", ">i4"), ("b", "<f8")])
        file["where"] = np.array(file["rows"].ref, h5py.ref_dtype) if number else np.array(h5py.Reference(), h5py.ref_dtype)
        file["run"].attrs["unit"] = "1"
        file["nothing"] = h5py.Empty("f4")
        if number == 1:
            file["only"] = 7


def test_scalars_are_stacked(raddle, tmp_path):
    inputs = [tmp_path / f"run{number}.h5" for number in range(3)]
    for number, path in enumerate(inputs):
        write_scalars(path, number)
    output = tmp_path / "out.h5"
    options = ["--join", "outer", "--scalars", "stack"]
    refused = raddle("merge", *inputs, "-o", output, "--join", "outer", expect=3)
    shown = [line.split() for line in refused.stderr.splitlines()]
    assert ["/run", "different", "value", "100", "101", "run1.h5"] in shown, refused.stderr
    assert ["/run", "different", "value", "100", "102", "run2.h5"] in shown, refused.stderr
    assert '"run 1 "' in refused.stderr and "{a: 1, b: -0.5}" in refused.stderr, refused.stderr
    message = raddle("merge", *inputs, "-o", output, *options).stderr
    assert "stacked, one per input" in message, message
    with h5py.File(output) as file:
        assert file["run"][:].tolist() == [100, 101, 102] and file["run"].dtype == "i2"
        assert file["run"].attrs["unit"] == "1"
        assert file["same"].shape == () and file["same"][()] == 2.5
        assert file["only"].shape == () and file["only"][()] == 7
        assert file["title"].asstr()[:].tolist() == ["", "run 1 ", "run 2 run 2 "]
        assert file["pair"].dtype == h5py.File(inputs[0])["pair"].dtype
        assert file["pair"][:].tolist() == [(0, -0.5), (1, -0.5), (2, -0.5)]
        assert [file[reference].name if reference else None for reference in file["where"]] == [None, "/rows", "/rows"]
        assert file["nothing"].shape is None
    raddle("verify", output, "--against", *inputs, *options)
    raddle("verify", output)
    with h5py.File(output, "a") as file:
        file["run"][1] = 5
    assert "/run" in raddle("verify", output, expect=8).stdout
    different = raddle("verify", output, "--against", *inputs, *options, expect=8).stdout
    assert "/run" in different and "run1.h5" in different, different
    # A scalar that an input lacks has the fill value there.
    with h5py.File(inputs[2], "a") as file:
        file["only"] = 8
    raddle("merge", *inputs, "-o", output, "--force", *options)
    with h5py.File(output) as file:
        assert file["only"][:].tolist() == [0, 7, 8]
    raddle("verify", output, "--against", *inputs, *options)


def test_a_file_with_stacked_scalars_gets_keys(raddle, tmp_path):
    inputs = [tmp_path / f"run{number}.h5" for number in range(3)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["run"], file["title"] = number, "x" * number
            file["spill/evt"], file["t/cycle"] = np.arange(4), np.full(2, 5)
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output, "--scalars", "stack")
    raddle("keys", "spill-index", "/t/cycle", output)
    with h5py.File(output) as file:
        assert file["run"][:].tolist() == [0, 1, 2] and len(file["spill/cycle"]) == 12
        assert file["title"].asstr()[:].tolist() == ["", "x", "xx"]
    raddle("verify", output)


def test_what_was_added_is_not_a_match(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.h5" for number in range(2)]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(4)
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output)
    with h5py.File(output, "a") as file:
        file["x"].attrs["unit"], file.attrs["run"] = "cm", 7
    different = raddle("verify", output, "--against", *inputs, expect=8).stdout
    assert "attribute unit is not in any input" in different and "attribute run is not in any input" in different
    with h5py.File(output, "w") as file:
        file.create_dataset("x", data=np.tile(np.arange(4), 2), chunks=(4,), fillvalue=5)
    assert "fill value differs" in raddle("verify", output, "--against", *inputs, expect=8).stdout


def test_user_blocks_are_not_lost_silently(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w", userblock_size=1024 if number else 0) as file:
            file["spill/evt"], file["t/evt"] = np.arange(4), np.arange(4)
    with open(inputs[1], "r+b") as file:
        file.write(b"#!/bin/sh")
    output = tmp_path / "out.h5"
    for command in (["merge", *inputs], ["rechunk", inputs[1]], ["plan", *inputs]):
        where = [] if command[0] == "plan" else ["-o", output, "-f"]
        message = raddle(*command, *where)
        assert "user block" in message.stdout + message.stderr, command
    message = raddle("keys", "add", inputs[1], "--keys", "/spill/evt", expect=3).stderr
    assert "user block of 1024 bytes" in message, message
    assert inputs[1].read_bytes().startswith(b"#!/bin/sh")


def test_absent_columns_stay_aligned_next_to_other_lengths(raddle, tmp_path):
    """Bins in the group of a table do not affect the number of rows of the table."""
    inputs = []
    for number, (rows, has_y) in enumerate([(3, True), (2, False), (4, True)]):
        inputs.append(tmp_path / f"run{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["t/x"] = np.arange(rows) + 10 * number
            file["t/bins"] = np.arange(7)
            if has_y:
                file["t/y"] = np.arange(rows) + 100 * number
    for kept in ([], ["--keep", "bins"]):
        output = tmp_path / "out.h5"
        raddle("merge", *inputs, "-o", output, "-f", "--join", "outer", *kept)
        with h5py.File(output) as file:
            assert file["t/y"][:].tolist() == [0, 1, 2, 0, 0, 200, 201, 202, 203]
            assert len(file["t/x"]) == 9 and len(file["t/bins"]) == (7 if kept else 21)
        raddle("verify", output, "--against", *inputs, "--join", "outer", *kept)
    # With a single input, the table to which a column belongs is ambiguous.
    with h5py.File(inputs[0], "a") as file:
        file["t/z"], file["t/w"] = np.arange(7), np.arange(3)
    with h5py.File(inputs[1], "a") as file:
        file["t/w"] = np.arange(5)
    message = raddle("merge", *inputs, "-o", output, "-f", "--join", "outer", expect=3).stderr
    assert "/t/y" in message and "tables of 2 and 5 rows" in message, message


# HDF5 cannot set the parameters of these filters for values of variable length. It skips them and marks the chunks.
WITHOUT_PARAMETERS = {
    "shuffle": {"shuffle": True},
    "shuffle and gzip": {"shuffle": True, "compression": "gzip"},
    "shuffle and lzf": {"shuffle": True, "compression": "lzf"},
    "szip": {"compression": "szip"},
}


@pytest.mark.parametrize("name", WITHOUT_PARAMETERS)
@pytest.mark.parametrize("kind", ["text", "sequence"])
def test_filters_that_hdf5_skipped(raddle, tmp_path, name, kind):
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            dtype = h5py.string_dtype() if kind == "text" else h5py.vlen_dtype("i4")
            made = file.create_dataset("d", (5,), dtype, chunks=(2,), maxshape=(None,), **WITHOUT_PARAMETERS[name])
            for row in range(5):
                made[row] = "wört" * (row + number) if kind == "text" else np.arange(row) + number
            assert made.id.get_chunk_info(0).filter_mask == 1
    expected = [[list(row) for row in visit(path)["d"]] for path in inputs]
    for number, options in enumerate([(), ("--for", "keep", "-c", "keep")]):
        merged, rechunked = tmp_path / f"merged{number}.h5", tmp_path / f"rechunked{number}.h5"
        raddle("merge", *inputs, "-o", merged, *options)
        assert [list(row) for row in visit(merged)["d"]] == expected[0] + expected[1]
        raddle("verify", merged)
        raddle("verify", merged, "--against", *inputs)
        raddle("rechunk", inputs[1], "-o", rechunked, *options)
        assert [list(row) for row in visit(rechunked)["d"]] == expected[1]
        raddle("verify", rechunked, "--against", inputs[1])


def test_a_list_of_inputs_is_not_replaced(raddle, events, tmp_path):
    names = tmp_path / "list.h5"
    text = "".join(f"{path}\n" for path in events)
    names.write_text(text)
    (tmp_path / "alias.h5").symlink_to(names)
    rules = tmp_path / "rules.toml"
    rules.write_text("[rules]\n")
    for inputs in ([f"@{names}"], ["-i", names]):
        for output in (names, tmp_path / "alias.h5"):
            refused = raddle("merge", *inputs, "-o", output, "--force", expect=5)
            assert "list.h5" in refused.stderr and "name another output" in refused.stderr, refused.stderr
    refused = raddle("merge", *events, "-o", rules, "--force", "--rules", rules, expect=5)
    assert "name another output" in refused.stderr, refused.stderr
    names.write_text(f"{events[0]}\n")
    raddle("rechunk", f"@{names}", "-o", names, "--force", expect=5)
    assert names.read_text() == f"{events[0]}\n" and rules.read_text() == "[rules]\n"
    for command in ("convert", "merge"):
        refused = raddle("events", command, f"@{names}", "-o", names, "--force", expect=5)
        assert "name another output" in refused.stderr, refused.stderr
