"""Inputs and objects that a merge takes, and their order."""

import json

import h5py
import numpy as np
from conftest import assert_concatenated, visit, write_events


def test_all_damaged_inputs_are_reported(raddle, events, tmp_path):
    (tmp_path / "short.h5").write_bytes(events[0].read_bytes()[:-1000])
    (tmp_path / "text.h5").write_text("no HDF5 here")
    message = raddle("merge", *events, tmp_path / "short.h5", tmp_path / "text.h5", "-o", tmp_path / "out.h5", expect=3)
    # A long path is wrapped in the table, in the middle of a name.
    reported = "".join(message.stderr.split())
    assert "short.h5" in reported and "text.h5" in reported
    assert not (tmp_path / "out.h5").exists()


def test_natural_order_and_lists(raddle, tmp_path):
    inputs = [write_events(tmp_path / f"run{number}.h5", number, events=30) for number in [2, 10]]
    output = tmp_path / "out.h5"
    raddle("merge", *reversed(inputs), "-o", output)
    assert_concatenated(output, inputs)
    listed = tmp_path / "list.txt"
    listed.write_text(f"# newest first\n{inputs[1]}\n\n{inputs[0]}\n")
    raddle("merge", f"@{listed}", "-o", output, "--force")
    assert_concatenated(output, list(reversed(inputs)))


def test_inputs_are_not_sorted_by_strings_of_variable_length(raddle, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["when"] = ["2024", "2025"]
    refused = raddle("plan", path, "--sort-by", "/when", expect=3).stderr
    # The table wraps lines.
    assert "a string of variable length" in refused and "sort by numbers or by" in refused, refused


def test_objects_are_selected_by_pattern(raddle, events, tmp_path):
    for path in events:
        with h5py.File(path, "a") as file:
            file["spill/evt_again"] = file["spill/evt"]
            file["refs"] = np.array([file["spill/run"].ref], h5py.ref_dtype)
            file["spill"].attrs["about"] = file["table1/evt"].ref
            # Objects that cannot be merged can be left out.
            file.create_dataset("odd", data=np.zeros(5), chunks=(5,))
    with h5py.File(events[1], "a") as file:
        del file["odd"]
        file["odd"] = "text"
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, expect=3)
    cases = [
        (["--exclude", "odd"], lambda name: name != "odd"),
        (["--exclude", "odd", "--exclude", "/table*"], lambda name: name != "odd" and not name.startswith("table")),
        (["--include", "spill", "--include", "maps/**"], lambda name: name.startswith(("spill", "maps"))),
        (["--include", "/*/evt", "--exclude", "/spill"], lambda name: name.endswith("/evt") and "spill" not in name),
    ]
    for options, is_selected in cases:
        message = raddle("merge", *events, "-o", output, "--force", *options).stderr
        selected = sorted(name for name in visit(events[0]) if is_selected(name))
        merged = visit(output)
        assert sorted(merged) == selected and selected
        for name in set(selected) - {"refs"}:
            assert len(merged[name]) == sum(len(visit(path)[name]) for path in events), name
        # The output has only the groups that lead to a selected object.
        with h5py.File(output) as file:
            groups = {name.split("/")[0] for name in selected if "/" in name}
            assert {name for name, item in file.items() if isinstance(item, h5py.Group)} - {"_raddle"} == groups
            if "spill" in groups:
                # A reference to an excluded object is null, with a warning.
                assert bool(file["spill"].attrs["about"]) == ("table1" in groups)
                assert ("dangling references" in message) == ("table1" not in groups), message
        raddle("verify", output, "--against", *events, *options)
    # The output contains more than requested: verify reports it.
    raddle("merge", *events, "-o", output, "--force", "--exclude", "odd")
    more = raddle("verify", output, "--against", *events, "--include", "spill", expect=8).stdout
    assert "is not in any input" in more
    # Values that refer to excluded objects are refused.
    refused = raddle("merge", *events, "-o", output, "--force", "--include", "refs", expect=3).stderr
    assert "/refs" in refused, refused
    assert "not a valid pattern" in raddle("plan", *events, "--include", "a[", expect=2).stderr
    plan = json.loads(raddle("plan", *events, "--include", "spill", "--json").stdout)
    assert {dataset["path"].split("/")[1] for dataset in plan["output"]["datasets"]} == {"spill"}


def test_scales_drop_excluded_datasets_from_their_lists(raddle, tmp_path):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(4.0)
        file["x"].make_scale("x")
        for name in ("a", "b"):
            file[name] = np.arange(4)
            file[name].dims[0].attach_scale(file["x"])
    message = raddle("merge", path, "-o", output, "--exclude", "b").stderr
    assert "dangling" not in message, message
    with h5py.File(output) as file:
        [(reference, axis)] = file["x"].attrs["REFERENCE_LIST"]
        assert (file[reference].name, axis) == ("/a", 0)
    raddle("verify", output, "--against", path, "--exclude", "b")


def test_what_is_kept_once_must_be_equal(raddle, tmp_path):
    inputs = [tmp_path / f"{name}.h5" for name in "abc"]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["counts"] = np.full((2, 4), number)
            file["axes/edges"] = np.linspace(0, 1, 5)
            file["names"] = ["a", "b"]
    output, keep = tmp_path / "out.h5", ["--keep", "/axes/*", "--keep", "names"]
    raddle("merge", *inputs, "-o", output, *keep)
    merged = visit(output)
    assert merged["counts"].shape == (6, 4) and merged["axes/edges"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert merged["names"].tolist() == [b"a", b"b"]
    raddle("verify", output, "--against", *inputs, *keep)
    with h5py.File(inputs[2], "a") as file:
        file["axes/edges"][1] = 0.3
    refused = raddle("merge", *inputs, "-o", output, "--force", *keep, expect=3).stderr
    assert "/axes/edges" in refused and "shared dataset" in refused and "c.h5" in refused, refused


def test_inputs_are_sorted_by_first_values(raddle, tmp_path):
    keys = {"z": (7, 1, "<i4"), "b": (-2, 9, ">i8"), "a10": (7, 0, "u2"), "a9": (7, 0, "<i4"), "m": (3, 0, "<f8")}
    for name, (run, subrun, kind) in keys.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("spill/run", data=np.full((200, 1), run, kind), chunks=(128, 1), compression="gzip")
            file["spill/subrun"] = np.array([subrun, 99])
            file["spill/run"][1:] = 0
            file["row"] = [name]
    inputs, by = sorted(tmp_path.glob("*.h5")), ["--sort-by", "/spill/run,spill/subrun", "--exclude", "/spill/run"]
    output = tmp_path / "out" / "sorted.h5"
    output.parent.mkdir()
    raddle("merge", *inputs, "-o", output, *by)
    assert visit(output)["row"].tolist() == [b"b", b"m", b"a9", b"a10", b"z"]
    raddle("verify", output, "--against", *inputs, *by)
    raddle("verify", output, "--against", *inputs, *by[2:], expect=8)
    plan = json.loads(raddle("plan", *inputs, *by, "--json").stdout)
    assert [entry["path"].split("/")[-1] for entry in plan["inputs"]] == ["b.h5", "m.h5", "a9.h5", "a10.h5", "z.h5"]
    with h5py.File(tmp_path / "b.h5", "a") as file:
        del file["spill/subrun"]
    refused = raddle("merge", *inputs, "-o", output, "--force", *by, expect=3).stderr
    assert "b.h5" in refused and "spill/subrun" in refused and "does not exist" in refused, refused
    with h5py.File(tmp_path / "b.h5", "a") as file:
        file["spill/subrun"] = np.zeros(0)
    assert "is empty" in raddle("merge", *inputs, "-o", output, "--force", *by, expect=3).stderr
    with h5py.File(tmp_path / "b.h5", "a") as file:
        del file["spill/subrun"]
        file["spill/subrun"] = [9, 9]
    (tmp_path / "bad.h5").write_bytes(b"no HDF5")
    inputs = sorted([*inputs, tmp_path / "bad.h5"])
    assert "bad.h5" in raddle("merge", *inputs, "-o", output, "--force", *by, expect=3).stderr
    raddle("merge", *inputs, "-o", output, "--force", "--skip-bad", *by, expect=4)
    assert visit(output)["row"].tolist() == [b"b", b"m", b"a9", b"a10", b"z"]


def test_duplicates_and_bad_inputs(raddle, events, tmp_path):
    output, report = tmp_path / "out.h5", tmp_path / "report.json"
    refused = raddle("merge", *events, events[1], "-o", output, "--duplicates", "error", expect=3).stderr
    assert "given twice" in refused
    raddle("merge", *events, events[1], "-o", output, "--duplicates", "drop")
    assert_concatenated(output, events)
    raddle("verify", output, "--against", *events, events[1], "--duplicates", "drop")
    raddle("merge", *events, events[1], "-o", output, "--force", "--duplicates", "keep", "--order", "given")
    assert_concatenated(output, [*events, events[1]])
    bad = tmp_path / "bad.h5"
    bad.write_bytes(events[0].read_bytes()[:-100])
    raddle("merge", *events, bad, "-o", output, "--force", "--skip-bad", "--report", report, expect=4)
    skipped = json.loads(report.read_text())["skipped"]
    assert [entry["path"] for entry in skipped] == [str(bad)] and "truncated" in skipped[0]["reason"]
    assert_concatenated(output, events)
