"""Inputs that differ: refusals, joins, and scalars that are stacked."""

import h5py
import numpy as np
import pytest
from conftest import visit


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
