"""Later commands on a merged file follow the options of its merge, without repeating them."""

import cf_judge
import h5py
import numpy as np
import pytest
import rule_files
from cf_files import File, Variable, write_all
from command import run_command
from rule_files import MERGING, ONCE, RULES, write


def merged(folder, form, *options):
    """Returns a merge of two files by rules, and a third file."""
    inputs = rule_files.write_all(folder, [[1, 2], [3], [0, 2, 1]], form)
    output = MERGING.equal(inputs[:2], "--rule", RULES[form], *ONCE, *options, output=folder / "merged.h5", form=form)
    return output, inputs


@pytest.mark.parametrize("form", RULES)
def test_a_rechunked_file_grows_by_its_rules(tmp_path, raddle, form):
    output, inputs = merged(tmp_path, form, "--extendible")
    again = tmp_path / "again.h5"
    raddle("rechunk", output, "-o", again, "--for", "random")
    raddle("verify", again, "--against", *inputs[:2])
    raddle("append", again, inputs[2])
    rule_files.judge(again, inputs, form)
    raddle("verify", again, "--against", *inputs)


def test_a_rechunked_file_keeps_every_decision(tmp_path, raddle):
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["run"], file["weights"] = number, np.full(number + 1, number)
            rule_files.column(file, "energy", np.arange(3.0) + number)
    output, again = tmp_path / "merged.h5", tmp_path / "again.h5"
    raddle("merge", *inputs[:2], "-o", output, "--scalars", "stack", "--exclude", "weights", "--extendible")
    raddle("rechunk", output, "-o", again, "--for", "random")
    raddle("verify", again, "--against", *inputs[:2])
    raddle("append", again, inputs[2])
    raddle("verify", again, "--against", *inputs)
    with h5py.File(again) as file:
        assert file["run"][()].tolist() == [0, 1, 2] and "weights" not in file


@pytest.mark.parametrize("form", RULES)
def test_merged_files_are_merged_by_their_rules(tmp_path, raddle, form):
    output, inputs = merged(tmp_path, form)
    other = MERGING.equal(inputs[2:], "--rule", RULES[form], *ONCE, form=form)
    both = MERGING.equal([output, other], "--order", "given", judge=lambda both, _: rule_files.judge(both, inputs, form))
    raddle("verify", both, "--against", output, other)
    raddle("append", both, inputs[2])
    rule_files.judge(both, [*inputs, inputs[2]], form)


@pytest.mark.parametrize("form", ["bounds", "rows"])
def test_a_merged_file_and_another_need_the_rule(tmp_path, form):
    """The rules of one file's merge are not known to apply to the other."""
    output, inputs = merged(tmp_path, form)
    rule = RULES[form].replace("positions", "rows")
    names = ["/run/index", f"--rule '{rule}'", "/run/edges", "--rule '/run/edges: once'"]
    for pair in ([output, inputs[2]], [inputs[2], output]):
        message = MERGING.refused(pair, "--order", "given", names=names)
        assert "missing" not in message and message.count("\n /run/index ") == 1, message

    def judge(both, _):
        rule_files.judge(both, inputs, form)

    MERGING.equal([output, inputs[2]], "--order", "given", "--rule", RULES[form], *ONCE, judge=judge)
    # Structure alone, at the user's request.
    finished = run_command("merge", output, inputs[2], "-o", tmp_path / "plain.h5", "--convention", "none")
    assert finished.returncode == 0, finished.stderr


def test_a_given_rule_goes_before_that_of_a_merged_file(tmp_path):
    output, inputs = merged(tmp_path, "bounds")

    def judge(both, _):
        with h5py.File(both) as file, h5py.File(output) as part:
            assert np.array_equal(file["run/edges"], [*part["run/edges"], *part["run/edges"]])

    MERGING.equal([output, output], "--duplicates", "keep", "--rule", "edges: concatenate", judge=judge)


def test_rules_of_all_inputs_are_remembered(tmp_path, raddle):
    """Rules of each merged file for datasets that only it has, and a rule given for the merge of both."""
    merged = []
    for letter in "ab":
        parts = [tmp_path / f"{letter}{number}.h5" for number in range(2)]
        for number, path in enumerate(parts):
            with h5py.File(path, "w") as file:
                rule_files.column(file, "rows", np.arange(3) + number)
                rule_files.column(file, "rows_of_hits", np.array([0, 2]))
                file[f"edges_{letter}"] = [0.0, 1.0]
        merged.append(tmp_path / f"{letter}.h5")
        rules = ["--rule", f"edges_{letter}: once", "--rule", "rows_of_hits: concatenate"]
        raddle("merge", *parts, "-o", merged[-1], *rules)
    both, more = tmp_path / "both.h5", tmp_path / "more.h5"
    raddle("merge", *merged, "-o", both, "--join", "outer", "--rule", "rows_of_hits: rows of rows", "--extendible")
    with h5py.File(both) as file:
        assert file["edges_a"].shape == file["edges_b"].shape == (2,)
        assert file["rows_of_hits"][()].tolist() == [0, 2, 0, 2, 6, 8, 6, 8]
    # All of them apply to later inputs.
    raddle("merge", both, both, "-o", more, "--duplicates", "keep")
    with h5py.File(more) as file:
        assert file["edges_a"].shape == file["edges_b"].shape == (2,)
        assert file["rows_of_hits"][-2:].tolist() == [18, 20]


def test_what_was_kept_is_kept_again(tmp_path):
    inputs = [write(tmp_path / f"{number}.h5", [2, 1], "rows") for number in range(2)]
    options = ["--keep", "/run/edges", "--rule", RULES["rows"]]
    output = MERGING.equal(inputs, *options, form="rows")
    other = MERGING.equal(inputs[1:], *options, form="rows")
    MERGING.equal([output, other], judge=lambda both, _: rule_files.judge(both, [*inputs, inputs[1]], "rows"))
    MERGING.refused([output, inputs[0]], names=["/run/edges", "once"])


def test_another_dimension_grows_again(tmp_path):
    files = [File({"x": 2, "y": 3}, {"v": Variable(("x", "y"), np.full((2, 3), number))}) for number in range(3)]
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs[:2], "--dim", "y", judge=cf_judge.judge, dim="y", output=tmp_path / "first.nc")
    again = MERGING.equal([output, output], "--duplicates", "keep", judge=cf_judge.judge, dim="y")
    with h5py.File(again) as file:
        assert file["v"].shape == (2, 12)


def test_partition_keys_are_made_again_or_refused(tmp_path, raddle):
    """Partition keys of one file count only its own events."""
    inputs = [tmp_path / f"{number}.h5" for number in range(4)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            for table, rows in [("spill", 3), ("hits", 6)]:
                rule_files.column(file, f"{table}/run", np.full(rows, number))
                rule_files.column(file, f"{table}/evt", np.sort(np.arange(rows) % 3))
    keys = ["--keys", "/spill/run,/spill/evt"]
    halves = [tmp_path / name for name in ("a.h5", "b.h5")]
    for half, pair in zip(halves, (inputs[:2], inputs[2:])):
        raddle("merge", *pair, "-o", half, *keys)
    names = ["/hits/evt.", "partition keys", "--keys /spill/run,/spill/evt"]
    MERGING.refused(halves, names=names)
    MERGING.refused([halves[0], inputs[2]], "--join", "outer", names=names)

    def judge(output, _):
        with h5py.File(output) as file:
            assert file["hits/evt.seq"][()].ravel().tolist() == sorted([*range(12), *range(12)])

    MERGING.equal(halves, *keys, judge=judge)
    without = MERGING.equal(halves, "--exclude", "evt.seq*", "--exclude", "evt.offsets", judge=None)
    with h5py.File(without) as file:
        assert sorted(file["hits"]) == ["evt", "run"]
    raddle("merge", *halves, "-o", tmp_path / "plain.h5", "--convention", "none")
    # Files without keys, and with other datasets of keys.
    MERGING.equal([halves[0], *inputs[2:]], "--order", "given", *keys, judge=judge)
    raddle("merge", *inputs[2:], "-o", halves[1], *keys, "--key-datasets", "seq", "--force")
    MERGING.equal(halves, *keys, judge=judge)
    # Other layouts have the same keys.
    again = [tmp_path / "a_again.h5", tmp_path / "b_again.h5"]
    for half, rechunked in zip(halves, again):
        raddle("rechunk", half, "-o", rechunked, "--for", "random")
    MERGING.refused(again, names=names)
    MERGING.equal(again, *keys, judge=judge)


def test_a_selection_does_not_hide_the_record(tmp_path, raddle):
    output, inputs = merged(tmp_path, "bounds")
    # The digests also ignore the selection.
    assert "intact" in raddle("verify", output, "--include", "/run/hits").stdout
    for selection in (["--include", "/run"], ["--include", "index", "--include", "hits"], ["--exclude", "_raddle"]):
        MERGING.refused([output, inputs[2]], *selection, names=["/run/index", f"--rule '{RULES['bounds']}'"])


def test_a_record_that_cannot_be_read_is_refused(tmp_path, raddle):
    output, inputs = merged(tmp_path, "bounds")
    with h5py.File(output, "r+") as file:
        file["_raddle"].attrs["join"] = '{"rules": '
    MERGING.refused([output, inputs[2]], names=["/_raddle", "join", "--convention none"])
    raddle("merge", output, inputs[2], "-o", tmp_path / "plain.h5", "--convention", "none")
    # Alone, or united with others, the file would lose the record, and the next append would follow no rules.
    rechunked = tmp_path / "rechunked.h5"
    refused = raddle("rechunk", output, "-o", rechunked, expect=3)
    assert "/_raddle (attribute join)" in refused.stderr and not rechunked.exists()
    MERGING.refused([output, inputs[2]], "--join", "union", names=["/_raddle", "join"])
    raddle("verify", output, expect=8)


def test_kept_datasets_stay_kept(tmp_path, raddle):
    inputs = []
    for number in range(4):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["edges"] = np.arange(4.0)
            rule_files.column(file, "energy", np.arange(3.0) + number)
    output, both = tmp_path / "merged.h5", tmp_path / "both.h5"
    raddle("merge", *inputs[:2], "-o", output, "--keep", "edges", "--extendible")
    raddle("append", output, inputs[2])
    raddle("verify", output, "--against", *inputs[:3])
    raddle("merge", output, inputs[3], "-o", both, "--keep", "edges", "--order", "given")
    for path, count in {output: 3, both: 4}.items():
        with h5py.File(path) as file:
            assert file["edges"][()].tolist() == [0, 1, 2, 3]
            assert file["energy"][()].tolist() == [row + number for number in range(count) for row in range(3)]


PARTS = {
    "--add-column": ["--scalars", "first", "--add-column", "n=@n"],
    "--new-dim": ["--new-dim", "run"],
    "--select": ["--scalars", "first", "--select", "r=1:3"],
    "--tiles": ["--tiles"],
}


@pytest.mark.parametrize("what", PARTS)
def test_a_rechunked_file_keeps_how_its_inputs_were_taken(tmp_path, raddle, what):
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            rule_files.column(file, "x", np.arange(3.0) + 3 * number)
            if what == "--tiles":
                file["x"].make_scale("x")
                file["y"] = np.arange(3) + number
                file["y"].dims[0].attach_scale(file["x"])
            else:
                file["x"].dims[0].label = "r"
                file["s"] = number
                file.attrs["n"] = number
    output, again, more = tmp_path / "merged.h5", tmp_path / "again.h5", tmp_path / "more.h5"
    raddle("merge", *inputs, "-o", output, *PARTS[what])
    raddle("rechunk", output, "-o", again, "--for", "random", "--extendible")
    raddle("rechunk", again, "-o", more, "--for", "scan")
    for path in (output, again, more):
        raddle("verify", path, "--against", *inputs)
        raddle("verify", path)
    for copy, original in [(again, output), (more, again), (more, output)]:
        raddle("verify", copy, "--against", original)
    if what == "--select":
        raddle("append", again, inputs[0], "--again", expect=3)
