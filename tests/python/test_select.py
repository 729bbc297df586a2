"""Selected events: the rows that numpy selects from the whole file, in all tables, with keys recreated."""

import json
import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from conftest import PACKAGES
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import python
from raddle import col, errors

TABLES = {"rec.slc": 4, "rec.trk": 9, "unsorted": 3}


def write(path, seed=4, events=300, options=None):
    """Writes an event file with tables of numbers, strings, arrays and compounds, with keys; returns the arrays."""
    random = np.random.default_rng(seed)
    options = options or {"chunks": True, "compression": "gzip"}
    run = np.sort(random.integers(10, 14, events))
    found = {"spill": {"run": run, "evt": np.arange(events) * 3 + 1}}
    with h5py.File(path, "w") as file:
        for name, most in TABLES.items():
            event = np.repeat(np.arange(events), random.integers(0, most, events))
            if name == "unsorted":
                random.shuffle(event)
            rows = len(event)
            pairs = np.zeros(rows, [("a", "i2"), ("b", ">f4")])
            pairs["a"], pairs["b"] = random.integers(0, 99, rows), random.random(rows)
            found[name] = {
                "run": run[event], "evt": event * 3 + 1, "e": random.exponential(1, rows).astype("f4"),
                "n": random.integers(0, 9, rows).astype(">i2"), "xyz": random.random((rows, 3)), "pair": pairs,
            }  # fmt: skip
            texts = np.array([f"{name} {row}" * (row % 3) for row in range(rows)], dtype=object)
            file.create_dataset(f"{name}/text", data=texts, dtype=h5py.string_dtype())
            found[name]["text"] = texts
        for table, columns in found.items():
            for name, values in columns.items():
                if name != "text":
                    file.create_dataset(f"{table}/{name}", data=values, **options if len(values) else {})
            file[table].attrs["of"] = table
        # Not along the rows of the table, and of no table.
        file["rec.slc/bins"] = np.arange(9999.0)
        file["exposure/pot"] = random.random(7)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    added = python(environment, "-m", "raddle", "keys", "add", path, "--keys", "/spill/run,/spill/evt", "-q")
    assert added.returncode == 0, added.stderr
    return found


def holds(tables, table, condition):
    """Returns the events that have a row for which a function of the columns holds."""
    index = {pair: event for event, pair in enumerate(zip(tables["spill"]["run"], tables["spill"]["evt"], strict=True))}
    rows = condition(tables[table])
    pairs = zip(tables[table]["run"][rows], tables[table]["evt"][rows], strict=True)
    return {index[pair] for pair in pairs}


def expected(tables, selected):
    """Returns what the selected events have in each table, and the new event number of each row."""
    number = {event: at for at, event in enumerate(sorted(selected))}
    for table, columns in tables.items():
        events = (columns["evt"] - 1) // 3
        wanted = np.isin(events, sorted(selected))
        seq = np.array([number[event] for event in events[wanted]], dtype="i8")
        yield table, {name: values[wanted] for name, values in columns.items()}, seq


CONDITIONS = [
    ("rec.trk: text > 'rec.trk 4'", "rec.trk", lambda rows: rows["text"] > "rec.trk 4"),
    ("rec.slc: e > 1.5", "rec.slc", lambda rows: rows["e"] > np.float32(1.5)),
    ("rec.slc: e > 2 & n <= 4", "rec.slc", lambda rows: (rows["e"] > np.float32(2)) & (rows["n"] <= 4)),
    ("/rec.trk: ~(n < 8)", "rec.trk", lambda rows: rows["n"] >= 8),
    ("spill: run == 12", "spill", lambda rows: rows["run"] == 12),
    ("unsorted: n == 3 | e > 4", "unsorted", lambda rows: (rows["n"] == 3) | (rows["e"] > 4)),
    ("rec.trk: true", "rec.trk", lambda rows: np.ones(len(rows["e"]), bool)),
    ("rec.trk: e < 0", "rec.trk", lambda rows: rows["e"] < 0),
]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:/exposure has no key")
def test_events_are_those_of_numpy(data):
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "all.h5", Path(folder) / "skim.h5"
        options = {"chunks": True, "maxshape": None}
        if data.draw(st.booleans()):
            options = {"chunks": True, "compression": "gzip", "shuffle": data.draw(st.booleans())}
        if options.pop("maxshape", 1) is None and data.draw(st.booleans()):
            options = {}
        events = data.draw(st.sampled_from([1, 5, 300]))
        tables = write(path, data.draw(st.integers(0, 99)), events, options)
        if data.draw(st.booleans()):
            raddle.index(path, progress=False)
        chosen = data.draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique_by=lambda one: one[0]))
        selected = set.intersection(*(holds(tables, table, rows) for _, table, rows in chosen))
        layout = data.draw(st.sampled_from([{}, {"chunk": "64rows"}, {"compress": "none", "contiguous": True}, {"compress": "keep"}]))
        report = raddle.select(path, output, where=[text for text, _, _ in chosen], progress=False, **layout)
        assert (report.selected_events, report.input_events) == (len(selected), events)
        with h5py.File(output) as file, h5py.File(path) as before:
            for table, columns, seq in expected(tables, selected):
                for name, values in columns.items():
                    read = file[table][name].asstr()[()] if name == "text" else file[table][name][()]
                    assert read.dtype == values.dtype and np.array_equal(read, values), (table, name)
                assert np.array_equal(file[table]["evt.seq"][()].ravel(), seq)
                assert file[table].attrs["of"] == table
                if "evt.offsets" in file[table]:
                    offsets = np.searchsorted(seq, np.arange(len(selected) + 1))
                    assert np.array_equal(file[table]["evt.offsets"][()], offsets)
            assert np.array_equal(file["rec.slc/bins"], before["rec.slc/bins"])
            assert np.array_equal(file["exposure/pot"], before["exposure/pot"])
        assert not raddle.verify(output, progress=False).mismatches
        assert not raddle.verify(output, against=path, progress=False).mismatches


@pytest.fixture(scope="module")
def all_events(tmp_path_factory):
    """Returns an event file and its arrays."""
    path = tmp_path_factory.mktemp("events") / "all.h5"
    return path, write(path)


@pytest.mark.filterwarnings("ignore:/exposure has no key")
def test_conditions_may_be_those_of_scans(all_events, tmp_path):
    path, _ = all_events
    where = {"rec.slc": (col("e") > 1.5) & (col("n") != 3), "rec.trk": "0 < n <= 7"}
    raddle.select(path, tmp_path / "a.h5", where=where, progress=False)
    texts = ["rec.slc: e > 1.5 & n != 3", "rec.trk: 0 < n & n <= 7"]
    raddle.select(path, tmp_path / "b.h5", where=texts, progress=False)
    with h5py.File(tmp_path / "a.h5") as one, h5py.File(tmp_path / "b.h5") as other:
        assert 0 < len(one["spill/evt"]) < 300
        assert np.array_equal(one["spill/evt"], other["spill/evt"])


def test_groups_without_keys_are_named(all_events, tmp_path):
    path, _ = all_events
    with pytest.warns(UserWarning, match="/exposure has no key and is copied whole"):
        raddle.select(path, tmp_path / "a.h5", where="spill: run == 11", progress=False)
    report = raddle.select(path, tmp_path / "b.h5", where="spill: run == 11", exclude=["exposure", "bins"], progress=False)
    assert report.datasets > 0
    with h5py.File(tmp_path / "b.h5") as file:
        assert "exposure" not in file and "bins" not in file["rec.slc"]


@pytest.mark.filterwarnings("ignore:/exposure has no key")
def test_a_selection_is_selected_again_but_not_appended_to(all_events, tmp_path):
    path, tables = all_events
    raddle.select(path, tmp_path / "one.h5", where="rec.slc: e > 1", progress=False)
    raddle.select(tmp_path / "one.h5", tmp_path / "two.h5", where="rec.slc: e > 2", progress=False)
    assert not raddle.verify(tmp_path / "two.h5", against=tmp_path / "one.h5", progress=False).mismatches
    with h5py.File(tmp_path / "two.h5") as file:
        assert len(file["spill/evt"]) == len(holds(tables, "rec.slc", lambda rows: rows["e"] > 2))
    # Rewritten, the file has no conditions of its own.
    raddle.rechunk(tmp_path / "two.h5", tmp_path / "three.h5", progress=False)
    assert not raddle.verify(tmp_path / "three.h5", against=tmp_path / "two.h5", progress=False).mismatches
    write(tmp_path / "more.h5", 7)
    with pytest.raises(errors.RaddleError, match=r"holds selected rows .* select again"):
        raddle.append(tmp_path / "one.h5", tmp_path / "more.h5", progress=False)


def test_a_changed_value_is_found_against_the_input(all_events, tmp_path):
    path, _ = all_events
    with pytest.warns(UserWarning, match="copied whole"):
        raddle.select(path, tmp_path / "skim.h5", where="rec.slc: e > 1", compress="none", progress=False)
    with h5py.File(tmp_path / "skim.h5", "a") as file:
        file["rec.trk/e"][3] += 1
    mismatches = raddle.verify(tmp_path / "skim.h5", against=path, progress=False).mismatches
    assert [one.path for one in mismatches] == ["/rec.trk/e"]


@pytest.mark.parametrize(
    "where, said",
    [
        ("rec.slc: energy > 1", r'/rec.slc: no column "energy"'),
        ("rec.slcs: e > 1", r'no group "rec.slcs"'),
        ("rec.slc e > 1", "name the table first"),
        ("rec.slc: e >", "ends where a column or value is expected"),
        ("rec.slc: text == 3", "holds strings"),
        ("rec.slc: pair > 1", "holds compounds"),
        ("exposure: pot > 0", r"has no partition keys \(NAME.seq\)"),
        ([], "no condition"),
        (None, "no condition"),
        (col("calE") > 2, "does not name the tables of its conditions"),
        ([col("calE") > 2], "does not name the tables of its conditions"),
    ],
)
def test_conditions_that_cannot_be_evaluated_are_refused(all_events, tmp_path, where, said):
    with pytest.raises(errors.UsageError, match=said):
        raddle.select(all_events[0], tmp_path / "skim.h5", where=where, progress=False)
    assert not (tmp_path / "skim.h5").exists()


def plain(path):
    """Writes a file whose keys no program has recorded."""
    with h5py.File(path, "w") as file:
        file["spill/evt"] = np.arange(4)
        file["a/evt"], file["a/x"] = np.array([0, 0, 1, 3]), np.arange(4.0)
        file["spill/evt.seq"], file["a/evt.seq"] = np.arange(4), np.array([0, 0, 1, 3])


def test_keys_of_other_programs_need_their_ids(tmp_path):
    plain(tmp_path / "all.h5")
    with pytest.raises(errors.UsageError, match="does not record how evt.seq was made"):
        raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", progress=False)
    raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", keys=["/spill/evt"], progress=False)
    with h5py.File(tmp_path / "skim.h5") as file:
        assert file["a/x"][()].tolist() == [2, 3] and file["a/evt.seq"][()].ravel().tolist() == [0, 1]
        assert file["spill/evt"][()].tolist() == [1, 3]
    with pytest.raises(errors.UsageError, match="makes run.seq, and the events are those of evt.seq"):
        raddle.select(tmp_path / "all.h5", tmp_path / "x.h5", where="a: x > 1", keys=["/spill/run"], progress=False)


def test_ids_of_single_inputs_are_refused(tmp_path):
    for name in "ab":
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["spill/evt"] = np.arange(4)
            file["a/evt"], file["a/x"] = np.array([0, 0, 1, 3]), np.arange(4.0)
    raddle.merge([tmp_path / "a.h5", tmp_path / "b.h5"], tmp_path / "all.h5", keys=["/spill/evt"], key_scope="input", progress=False)
    with pytest.raises(errors.UsageError, match="unique only within the inputs"):
        raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", progress=False)


def test_shared_dimension_scales_are_refused(tmp_path):
    plain(tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5", "a") as file:
        file["row"] = np.arange(4)
        file["row"].make_scale("row")
        file["a/x"].dims[0].attach_scale(file["row"])
    with pytest.raises(errors.RaddleError, match="/a/x: has the dimension /row, of which only a part would be selected"):
        raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", keys=["/spill/evt"], progress=False)


def test_any_number_of_threads_writes_the_same_bytes(all_events, tmp_path, environment):
    path, _ = all_events
    outputs = []
    for jobs in (1, 2, 5):
        outputs.append(tmp_path / f"{jobs}.h5")
        command = ["-m", "raddle", "select", path, "--where", "rec.slc: e > 1", "-o", outputs[-1], "-q", "-j", jobs]
        assert python(environment, *command).returncode == 0
    assert len({output.read_bytes() for output in outputs}) == 1


def test_the_command_reports_events_and_plans(all_events, tmp_path, environment):
    path, tables = all_events
    count = len(holds(tables, "rec.slc", lambda rows: rows["e"] > 1))
    command = ["-m", "raddle", "select", path, "--where", "rec.slc: e > 1", "-o", tmp_path / "skim.h5"]
    planned = python(environment, *command, "--dry-run")
    assert planned.returncode == 0 and not (tmp_path / "skim.h5").exists(), planned.stderr
    assert "/rec.slc/e" in planned.stdout or "rec.slc" in planned.stdout
    done = python(environment, *command)
    assert done.returncode == 0 and f"{count} of 300 events selected" in done.stdout, done.stdout
    reported = python(environment, *command, "--force", "--json")
    assert json.loads(reported.stdout)["selected_events"] == count


def test_other_keys_are_made_again_or_refused(tmp_path):
    plain(tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5", "a") as file:
        del file["spill/evt.seq"], file["a/evt.seq"]
        file["runs/run"], file["a/run"] = np.arange(2), np.array([0, 0, 0, 1])
    for ids in ("/runs/run", "/spill/evt"):
        command = ["-m", "raddle", "keys", "add", tmp_path / "all.h5", "--keys", ids, "-q"]
        added = python({**os.environ, "PYTHONPATH": str(PACKAGES)}, *command)
        assert added.returncode == 0, added.stderr
    raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", key="evt", progress=False)
    assert not raddle.verify(tmp_path / "skim.h5", against=tmp_path / "all.h5", progress=False).mismatches
    with h5py.File(tmp_path / "skim.h5") as file:
        assert file["a/run.seq"][()].ravel().tolist() == [0, 1] and file["a/evt.seq"][()].ravel().tolist() == [0, 1]
        assert file["a/run.offsets"][()].tolist() == [0, 1, 2]
    # A key of another program, with offsets of the whole file.
    with h5py.File(tmp_path / "all.h5", "a") as file:
        file["a/sub.seq"], file["a/sub.offsets"] = np.arange(4), np.arange(5)
    with pytest.raises(errors.RaddleError, match=r"/a/sub.(seq|offsets): is a partition key that the file does not record"):
        raddle.select(tmp_path / "all.h5", tmp_path / "x.h5", where="a: x > 1", key="evt", progress=False)
    raddle.select(tmp_path / "all.h5", tmp_path / "x.h5", where="a: x > 1", key="evt", exclude=["sub.*"], progress=False)


def test_numbers_of_rows_are_refused(tmp_path):
    for name in "bc":
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            first = 10 * "bc".index(name)
            file["spill/evt"] = np.arange(first, first + 3)
            file["a/evt"], file["a/x"] = np.arange(first, first + 3), np.arange(3.0)
            file["b/evt"], file["b/row_of_a"] = np.array([first, first + 2]), np.array([0, 2])
    rule = "/b/row_of_a: rows of /a/x"
    raddle.merge([tmp_path / "b.h5", tmp_path / "c.h5"], tmp_path / "all.h5", keys=["/spill/evt"], rule=[rule], progress=False)
    with pytest.raises(errors.RaddleError, match="/b/row_of_a: refers to positions along /a/x"):
        raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", where="a: x > 1", progress=False)


def test_row_numbers_without_a_rule_are_refused(tmp_path):
    """The file is of another program, so that no rule is recorded."""
    plain(tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5", "a") as file:
        file["a/ph_index_beg"] = np.array([1, 5, 6, 9])
    chosen = {"where": "a: x > 1", "keys": ["/spill/evt"], "progress": False}
    with pytest.raises(errors.RaddleError, match="/a/ph_index_beg") as refused:
        raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", **chosen)
    assert "row numbers" in str(refused.value)
    raddle.select(tmp_path / "all.h5", tmp_path / "skim.h5", exclude=["/a/ph_index_beg"], **chosen)
    with h5py.File(tmp_path / "skim.h5") as file:
        assert file["a/x"][()].tolist() == [2, 3] and "ph_index_beg" not in file["a"]


COLON_TABLES = {"a:b": 4, "a": 2, "x/`y`: z\\ ": 3}


def test_the_path_of_a_table_may_have_a_colon(tmp_path, environment):
    path, output = tmp_path / "all.h5", tmp_path / "skim.h5"
    random = np.random.default_rng(0)
    columns = {}
    with h5py.File(path, "w") as file:
        file["spill/evt"] = np.arange(50)
        for table, most in COLON_TABLES.items():
            evt = np.repeat(np.arange(50), random.integers(0, most, 50))
            columns[table] = file[f"{table}/evt"], file[f"{table}/len"] = evt, random.random(len(evt))
    added = python(environment, "-m", "raddle", "keys", "add", path, "--keys", "/spill/evt", "-q")
    assert added.returncode == 0, added.stderr
    for table, (evt, length) in columns.items():
        quoted = "`" + table.replace("\\", "\\\\").replace("`", "\\`") + "`"
        for where in ({table: col("len") > 0.5}, {table: "len > 0.5"}, f"{quoted}: len > 0.5", [f" {quoted} :len > 0.5"]):
            raddle.select(path, output, where=where, force=True, progress=False)
            with h5py.File(output) as file:
                assert file["spill/evt"][()].tolist() == np.unique(evt[length > 0.5]).tolist()
            assert not raddle.verify(output, against=path, progress=False).mismatches
    with pytest.raises(errors.UsageError, match="if the path of the table has a colon, put the path in backticks"):
        raddle.select(path, output, where="a:b: len > 0.5", force=True, progress=False)


def test_runs_of_rows_take_memory(tmp_path, environment):
    """Every second event is a run of its own in each table, and the runs are held in memory."""
    count = 80_000
    event = np.arange(count, dtype="u4")
    with h5py.File(tmp_path / "all.h5", "w") as file:
        for table in ("spill", "slc"):
            for name, values in {"run": event // 9999, "evt": event, "flag": event % 2}.items():
                file.create_dataset(f"{table}/{name}", data=values, chunks=(1024,))
    keys = ["keys", "add", tmp_path / "all.h5", "--keys", "/spill/run,/spill/evt", "-q"]
    assert python(environment, "-m", "raddle", *keys).returncode == 0
    chosen = {"where": "slc: flag == 1", "jobs": 1, "progress": False}
    with pytest.raises(errors.LimitError, match="80,000 runs, which need 2.44 MiB of the 4.00 MiB of memory"):
        raddle.select(tmp_path / "all.h5", tmp_path / "some.h5", memory="4MiB", **chosen)
    assert not (tmp_path / "some.h5").exists()
    raddle.select(tmp_path / "all.h5", tmp_path / "some.h5", memory="8MiB", **chosen)
    with h5py.File(tmp_path / "some.h5") as file:
        np.testing.assert_array_equal(file["slc/evt"], event[1::2])
    raddle.verify(tmp_path / "some.h5", against=[tmp_path / "all.h5"], memory="8MiB", progress=False)
    with pytest.raises(errors.LimitError, match="80,000 runs"):
        raddle.verify(tmp_path / "some.h5", against=[tmp_path / "all.h5"], memory="4MiB", progress=False)
