"""Keywords of the functions that run a command: the options of the command, their values and their types."""

import inspect
import json
import re
import subprocess
import sys
import typing

import h5py
import numpy as np
import pytest
import raddle
from raddle import errors
from raddle._keywords import options_json

# Options of every command that are not for calls, with the reasons.
NOT_FOR_CALLS = {
    "help": "help() shows the docstring",
    "json": "the function returns the report",
    "report": "the function returns the report",
    "list": "inputs can be any iterable, or '@list.txt'",
    "null": "a call has no standard input",
    "quiet": "warnings are filtered with the module warnings",
    "verbose": "the report has the details",
    "log_json": "progress can be a function",
}
ONE_PROCESS = "a call runs in one process, without ranks"
RANKS = dict.fromkeys(["io", "io_hints", "hdf5", "strategy"], ONE_PROCESS)
PLANNED = {"dry_run": "raddle.plan shows what a merge would do"}

COMMANDS = {
    "plan": NOT_FOR_CALLS
    | {
        "datasets": "plan.output.datasets lists every dataset",
        "simulate": "the command prints what each rank would do",
        "stat": "only for a simulation",
    },
    "merge": NOT_FOR_CALLS | RANKS | PLANNED,
    "append": NOT_FOR_CALLS | {"dry_run": "a call appends or does nothing"},
    "rechunk": NOT_FOR_CALLS | RANKS | PLANNED,
    "split": NOT_FOR_CALLS | PLANNED,
    "select": NOT_FOR_CALLS | RANKS | {"dry_run": "scan(...).count() shows what a condition selects"},
    "index": NOT_FOR_CALLS,
    "verify": NOT_FOR_CALLS,
    "inspect": NOT_FOR_CALLS
    | {
        "total": "sums are those of the reports",
        "top": "groups and datasets of the report are complete",
        "refs": "the output of raddle.references",
        "refs_url": "the url of raddle.references",
        "reader": "metadata is read by the compiled part",
        "reader_timeout": "metadata is read by the compiled part",
    },
}

# Parameters that the command takes as arguments.
ARGUMENTS = {"inputs", "input", "file"}


def options(command, environment):
    """Returns the options of a command by keyword, with the possible values of each that lists them."""
    shown = subprocess.run(
        [sys.executable, "-m", "raddle", command, "--help"],
        env={**environment, "COLUMNS": "100"}, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    blocks = re.split(r"^ +(?:-\w, +)?--([a-z0-9-]+)", shown.split("\nExamples:")[0], flags=re.MULTILINE)
    found = {}
    for name, text in zip(blocks[1::2], blocks[2::2], strict=True):
        values = set(re.findall(r"^ +- ([\w.-]+):", text, flags=re.MULTILINE)) if "Possible values:" in text else set()
        found[{"for": "layout", "layout": "layout_rules"}.get(name, name.replace("-", "_"))] = values
    return found


def literals(annotation):
    """Returns the strings that a type allows."""
    if typing.get_origin(annotation) is typing.Literal:
        return {value for value in typing.get_args(annotation) if isinstance(value, str)}
    return set().union(*(literals(part) for part in typing.get_args(annotation)), set())


@pytest.mark.parametrize("command", COMMANDS)
def test_keywords_are_the_options_of_the_command(command, environment):
    function = getattr(raddle, command)
    parameters = inspect.signature(function).parameters
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values())
    offered = options(command, environment)
    left_out = COMMANDS[command].keys() & offered.keys()
    assert not left_out & parameters.keys()
    assert parameters.keys() - ARGUMENTS == offered.keys() - left_out
    hints = typing.get_type_hints(function)
    for name, values in offered.items():
        if name in parameters and name != "progress":
            assert literals(hints[name]) == values, f"{command}: {name}"


def test_every_reason_is_for_an_option(environment):
    offered = set().union(*(options(command, environment) for command in COMMANDS))
    assert set().union(*COMMANDS.values()) <= offered


def test_the_merge_documents_every_keyword():
    documented = set(re.findall(r"^(\w+)$", inspect.getdoc(raddle.merge), re.MULTILINE))
    assert inspect.signature(raddle.merge).parameters.keys() <= documented
    for name in ("plan", "append", "rechunk", "split", "verify", "inspect", "references"):
        text = inspect.getdoc(getattr(raddle, name))
        assert "Returns" in text and "Raises" in text and "Examples" in text, name


def test_given_keywords_are_values_of_json(tmp_path):
    def options(**keywords):
        return json.loads(options_json(keywords))

    assert options(inputs=["a"], progress=False, join=None, force=False, skip_bad=True) == {"skip_bad": True}
    assert options(extendible=False, shuffle=True, contiguous=True, preview=tmp_path) == {
        "extendible": "never", "shuffle": "yes", "contiguous": True, "preview": str(tmp_path),
    }  # fmt: skip
    assert options(extendible=True, shuffle=False, contiguous=False) == {"extendible": "all", "shuffle": "no"}
    assert options(keys="/run,/evt", include="/rec/a,b", exclude=("x", "y")) == {
        "keys": ["/run", "/evt"], "include": ["/rec/a,b"], "exclude": ["x", "y"],
    }  # fmt: skip
    given_numbers = options(chunk=(128, 1024), memory=np.int64(1 << 26), tolerance=1e-6, max_output="1TB")
    assert given_numbers == {"chunk": "128x1024", "memory": 1 << 26, "tolerance": 1e-6, "max_output": "1TB"}
    assert type(given_numbers["memory"]) is int
    rules = options(chunk={"time": 365, "lat": 90}, layout_rules={"/tas": "filter=zstd:3", "x": "contiguous"})
    assert rules == {"chunk": "time=365,lat=90", "layout_rules": ["/tas: filter=zstd:3", "x: contiguous"]}
    ranges = options(select={"time": slice(None, -12), "lat": "-30..30", "lev": 3})
    assert ranges == {"select": ["time=:-12", "lat=-30..30", "lev=3"]}
    assert options(select="time=0:9, lat=..3") == {"select": ["time=0:9, lat=..3"]}
    with pytest.raises(errors.UsageError, match="has a step"):
        options(select={"time": slice(0, 10, 2)})
    assert options(include=tmp_path, exclude=[tmp_path, "x"], rule={"/hits": "once"}) == {
        "include": [str(tmp_path)], "exclude": [str(tmp_path), "x"], "rule": ["/hits: once"],
    }  # fmt: skip
    assert options(layout_rules="a,b:CONTI") == {"layout_rules": ["a,b:CONTI"]}
    assert options(chunk=65536, align=np.int32(4096)) == {"chunk": 65536, "align": "4096"}


def test_numbers_that_are_not_finite_are_refused(runs, tmp_path):
    for tolerance in (float("nan"), float("inf"), np.float64("nan")):
        with pytest.raises(errors.UsageError, match="not a finite number"):
            raddle.merge(runs, tmp_path / "all.h5", tolerance=tolerance, progress=False)
    with pytest.raises(errors.UsageError, match="tolerance"):
        raddle.merge(runs, tmp_path / "all.h5", tolerance=-1.0, progress=False)
    assert not (tmp_path / "all.h5").exists()


def test_an_alignment_is_a_number(runs, tmp_path):
    raddle.merge(runs, tmp_path / "number.h5", align=4096, progress=False)
    raddle.merge(runs, tmp_path / "text.h5", align="4096", progress=False)
    assert (tmp_path / "number.h5").read_bytes() == (tmp_path / "text.h5").read_bytes()


def test_an_unknown_keyword_is_a_type_error(runs, tmp_path):
    for call in (
        lambda **options: raddle.merge(runs, tmp_path / "all.h5", **options),
        lambda **options: raddle.plan(runs, **options),
        lambda **options: raddle.append(runs[0], runs[1:], **options),
        lambda **options: raddle.rechunk(runs[0], tmp_path / "all.h5", **options),
        lambda **options: raddle.verify(runs[0], **options),
    ):
        with pytest.raises(TypeError, match="typo"):
            call(typo=3)
        with pytest.raises(TypeError, match="dry_run"):
            call(dry_run=True)
    assert not (tmp_path / "all.h5").exists()


def test_a_shape_of_chunks_is_a_tuple(runs, tmp_path):
    with h5py.File(tmp_path / "image.h5", "w") as file:
        file["image"] = np.zeros((100, 64))
    raddle.merge(tmp_path / "image.h5", tmp_path / "tiled.h5", chunk=(25, 16), shuffle=False, progress=False)
    with h5py.File(tmp_path / "tiled.h5") as file:
        assert file["image"].chunks == (25, 16) and not file["image"].shuffle
    raddle.merge(runs, tmp_path / "all.h5", extendible=False, progress=False)
    with pytest.raises(errors.UsageError, match="25rows"):
        raddle.merge(runs, tmp_path / "two.h5", chunk=(25,), progress=False)


def test_layouts_by_dataset_are_mappings(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["time"] = np.arange(100.0)
        file["time"].make_scale()
        file["image"] = np.zeros((100, 64))
        file["image"].dims[0].attach_scale(file["time"])
        file["other"] = np.zeros((100, 64))
    made = {"chunk": {"time": 25}, "layout_rules": {"other": "chunk=10x10, fletcher32"}, "progress": False}
    raddle.rechunk(tmp_path / "in.h5", tmp_path / "out.h5", **made)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["image"].chunks == (25, 64) and file["other"].chunks == (10, 10) and file["other"].fletcher32
    planned = raddle.plan(tmp_path / "in.h5", **made).output.datasets
    assert {one.path: one.decided_by for one in planned}["/other"] == "other: chunk=10x10, fletcher32"
    with pytest.raises(errors.InputError, match='layout_rules="typo: contiguous"'):
        raddle.plan(tmp_path / "in.h5", layout_rules=["typo: contiguous"], progress=False)
    with pytest.raises(errors.UsageError, match="not a setting"):
        raddle.plan(tmp_path / "in.h5", layout_rules={"other": "shuffle, size=3"}, progress=False)


def test_a_union_is_a_join(runs, tmp_path):
    for number, path in enumerate(runs):
        with h5py.File(path, "a") as file:
            file.move("rec", f"rec{number}")
    raddle.merge(runs, tmp_path / "all.h5", join="union", progress=False)
    with h5py.File(tmp_path / "all.h5") as file:
        assert {"rec0", "rec1", "rec2"} <= set(file)


def test_a_part_reports_what_is_missing(runs, tmp_path):
    first = raddle.merge(runs, tmp_path / "all.h5", part="1/2", progress=False)
    assert first.missing == [2] and first.merged is None and "1 of 2" in repr(first) and "1" in first._repr_html_()
    last = raddle.merge(runs, tmp_path / "all.h5", part="2/2", progress=False)
    assert last.missing == [] and last.merged.datasets == 3 and (tmp_path / "all.h5").exists()


def test_rechunk(runs, tmp_path, environment):
    with h5py.File(runs[0], "a") as file:
        file["rec/column"] = np.arange(100).reshape(100, 1)
    report = raddle.rechunk(runs[0], tmp_path / "new.h5", layout="scan", compress="small", progress=False)
    assert report.inputs == 1 and report.output == str(tmp_path / "new.h5")
    command = [sys.executable, "-m", "raddle", "rechunk", runs[0], "-o", tmp_path / "same.h5", "--for", "scan", "-c", "small"]
    subprocess.run(list(map(str, command)), env=environment, capture_output=True, timeout=60, check=True)
    assert (tmp_path / "new.h5").read_bytes() == (tmp_path / "same.h5").read_bytes()
    with pytest.raises(errors.OutputError, match="force=True"):
        raddle.rechunk(runs[0], tmp_path / "new.h5", progress=False)


def test_split(runs, tmp_path):
    report = raddle.split(runs, tmp_path / "new", by="variable", include=["/rec"], progress=False)
    assert isinstance(report, raddle.SplitReport) and report.done_before == 0
    assert {file.variable for file in report.files} == {path.name[:-3] for path in (tmp_path / "new").iterdir()}
    with h5py.File(report.files[0].output) as file, h5py.File(runs[0]) as first:
        name = report.files[0].variable.replace(".", "/")
        assert len(file[name]) == sum(len(h5py.File(run)[name]) for run in runs)
        np.testing.assert_array_equal(file[name][: len(first[name])], first[name])
    assert f"{len(report.files)} (" in repr(report)
    with pytest.raises(errors.OutputError, match="exist"):
        raddle.split(runs, tmp_path / "new", by="variable", include=["/rec"], progress=False)
    with pytest.raises(errors.UsageError, match="no division"):
        raddle.split(runs, tmp_path / "none", progress=False)


def test_rechunk_of_many_files(runs, tmp_path):
    raddle.rechunk(runs[1], tmp_path / "alone.h5", layout="scan", progress=False)
    report = raddle.rechunk(runs, dir=tmp_path / "new", layout="scan", jobs=2, progress=False)
    assert isinstance(report, raddle.RechunkReport) and len(report.files) == len(runs) and report.done_before == 0
    assert report.dir == str(tmp_path / "new") and report.files[1].input == str(runs[1])
    assert (tmp_path / "new" / runs[1].name).read_bytes() == (tmp_path / "alone.h5").read_bytes()
    assert f"{len(runs)} (" in repr(report) and "written" in report._repr_html_()
    with pytest.raises(errors.OutputError, match="of the outputs exist"):
        raddle.rechunk(runs, dir=tmp_path / "new", progress=False)
    with pytest.raises(errors.UsageError, match="one file"):
        raddle.rechunk(runs, tmp_path / "one.h5", progress=False)
    with pytest.raises(errors.UsageError, match="no output"):
        raddle.rechunk(runs, progress=False)
    with pytest.raises(errors.UsageError, match="exclude each other"):
        raddle.rechunk(runs, dir=tmp_path / "new", in_place=True, progress=False)

    (tmp_path / "bad.h5").write_text("no HDF5")
    before = [run.read_bytes() for run in runs]
    with pytest.raises(errors.InputError, match="bad.h5"):
        raddle.rechunk([*runs, tmp_path / "bad.h5"], in_place=True, progress=False)
    assert [run.read_bytes() for run in runs] == before
    with pytest.warns(UserWarning, match="left out: .*bad.h5"):
        report = raddle.rechunk([*runs, tmp_path / "bad.h5"], in_place=True, skip_bad=True, layout="scan", progress=False)
    assert report.dir is None and [file.path for file in report.skipped] == [str(tmp_path / "bad.h5")]
    assert [file.digest for file in report.files] == [
        raddle.rechunk(tmp_path / "new" / run.name, tmp_path / f"again-{run.name}", progress=False).digest for run in runs
    ]


def test_rechunk_with_one_dimension(tmp_path):
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file["column"] = np.arange(100).reshape(100, 1)
    raddle.rechunk(tmp_path / "old.h5", tmp_path / "new.h5", rank_1=True, progress=False)
    with h5py.File(tmp_path / "new.h5") as file:
        assert file["column"].shape == (100,)


def test_threads_and_memory_can_come_from_the_environment(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("RADDLE_JOBS", "1")
    assert raddle.merge(runs, tmp_path / "one.h5", progress=False).engine.jobs == 1
    assert raddle.merge(runs, tmp_path / "two.h5", jobs=2, progress=False).engine.jobs <= 2
    monkeypatch.setenv("RADDLE_MEMORY", "much")
    with pytest.raises(errors.UsageError, match='memory="much"'):
        raddle.merge(runs, tmp_path / "three.h5", progress=False)
    raddle.merge(runs, tmp_path / "three.h5", memory="64MiB", progress=False)


@pytest.mark.parametrize(
    ("link", "keywords", "refused"),
    [
        ("virtual", {"compress": "fast"}, "stores no values: leave out compress"),
        ("virtual", {"layout": "scan"}, "stores no values: leave out layout"),
        ("external", {"exclude": ["x"]}, "links to whole files: leave out exclude"),
        ("external-objects", {"join": "outer"}, "joins nothing: leave out join"),
    ],
)
def test_keywords_without_effect_on_links_are_refused(tmp_path, link, keywords, refused):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = [1, 2]
    with pytest.raises(errors.UsageError, match=f'link="{link}" {refused}'):
        raddle.merge([tmp_path / "in.h5"], tmp_path / "out.h5", link=link, progress=False, **keywords)
    assert not (tmp_path / "out.h5").exists()
