"""Outputs of merges, read by h5py: values, types, attributes, objects of every kind."""

import ctypes
import json
import struct

import h5py
import numpy as np
import pytest
from conftest import assert_concatenated, libhdf5, visit


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


@pytest.mark.parametrize("count", [3000, 5000])
def test_the_last_chunk_of_a_deep_index_is_found(raddle, tmp_path, count):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.arange(1, count + 1, dtype="i2")
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=values, chunks=(1,), compression=1)
    raddle("merge", path, "-o", output, "--for", "keep", "-c", "keep")
    assert visit(output)["d"].tolist() == values.tolist()
    raddle("verify", output, "--against", path)


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
