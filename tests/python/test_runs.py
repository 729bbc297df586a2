"""plan, merge, append, verify and inspect as functions."""

import json
import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from conftest import columns
from interpreter import python
from raddle import errors


def test_a_plan_reports_what_a_merge_would_do(runs, tmp_path):
    plan = raddle.plan(runs, progress=False)
    assert [item.path for item in plan.inputs] == [str(path) for path in runs] and not plan.skipped
    energy = next(dataset for dataset in plan.output.datasets if dataset.path == "/rec/energy")
    assert energy.dims == [157] and energy.logical_len_bytes == 157 * 4
    assert plan.predicted.stored_len_bytes > 0
    assert "<table>" in plan._repr_html_() and "157" not in str(sorted(tmp_path.iterdir()))
    assert json.dumps(plan.to_dict()) and "Plan" in repr(plan)
    with pytest.raises(AttributeError):
        plan.none


@pytest.mark.parametrize(
    "kind", [list, tuple, iter, lambda paths: (str(path) for path in paths), lambda paths: [os.fsencode(path) for path in paths]]
)
def test_merge_takes_paths_of_every_kind(runs, tmp_path, kind):
    report = raddle.merge(kind(runs), tmp_path / "all.h5", progress=False)
    assert report.inputs == 3 and report.output_len_bytes == (tmp_path / "all.h5").stat().st_size
    assert "all.h5" in report._repr_html_() and report.output == str(tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5") as merged:
        for name in columns(0, 1):
            expected = np.concatenate([columns(number, rows)[name] for number, rows in enumerate([100, 0, 57])])
            assert np.array_equal(merged["rec"][name], expected)


def test_paths_are_bytes_everywhere(runs, tmp_path):
    """As `os.listdir` returns them for a folder in bytes; they need not be UTF-8."""
    folder = os.fsencode(tmp_path)
    output, copy, parts, series = (os.path.join(folder, name) for name in [b"all-\xff.h5", b"copy.h5", b"parts", b"series"])
    inputs = [os.fsencode(path) for path in runs]
    assert len(raddle.plan(inputs, progress=False).inputs) == len(raddle.plan(os.fsencode(runs[0].parent), progress=False).inputs)
    raddle.merge(inputs, output, extendible=True, progress=False)
    assert raddle.verify(output, against=inputs, progress=False).ok and raddle.inspect(output).file_len_bytes
    raddle.append(output, inputs[0], again=True, progress=False)
    raddle.index(output, progress=False)
    assert raddle.scan(output)["rec"].to_numpy()["energy"].shape == (257,)
    assert raddle.scan(inputs)["rec"].to_numpy()["energy"].shape == (157,)
    raddle.rechunk(output, copy, progress=False)
    raddle.rechunk(inputs, dir=parts, progress=False)
    raddle.split(inputs, dir=series, by="variable", convention="none", progress=False)
    assert os.listdir(parts) and os.listdir(series)
    assert raddle.references(copy)["refs"]
    raddle.idx.write(os.path.join(folder, b"a.idx"), np.arange(64.0).reshape(8, 8))
    assert raddle.idx.info(os.path.join(folder, b"a.idx")).shape == [8, 8]
    assert raddle.idx.read(os.path.join(folder, b"a.idx")).shape == (8, 8)
    names = [os.path.join(folder, name) for name in [b"events.h5", b"more.h5", b"both.h5"]]
    raddle.events.write(names[0], {"x": np.arange(5)})
    raddle.events.convert(names[0], names[1], progress=False)
    raddle.events.merge(names[:2], names[2], progress=False)
    assert raddle.events.inspect(names[2])
    with raddle.events.open(names[2]) as events:
        assert "10 events" in repr(events)


def test_folders_globs_and_options(runs, tmp_path):
    folder = raddle.plan(runs[0].parent, progress=False)
    globbed = raddle.plan(str(runs[0].parent / "run*.h5"), progress=False)
    assert len(folder.inputs) == len(globbed.inputs) == 3
    report = raddle.merge(
        runs, tmp_path / "one.h5", compress="gzip:1", layout="scan", include=["/rec/evt", "/rec/map"],
        keys=None, sort_by=None, jobs=1, memory="64MiB", extendible=True, progress=False,
    )  # fmt: skip
    assert report.datasets == 2
    with h5py.File(tmp_path / "one.h5") as merged:
        assert set(merged["rec"]) == {"evt", "map"} and merged["rec/evt"].maxshape == (None,)
    raddle.merge(runs, tmp_path / "run.h5", contiguous=True, empty="null", progress=False)
    with h5py.File(tmp_path / "run.h5") as merged:
        assert merged["rec/energy"].chunks is None and merged["rec/energy"].maxshape == (157,)
    with pytest.raises(ValueError) as wrong:
        raddle.merge(runs, tmp_path / "two.h5", contiguous=True, compress="fast", progress=False)
    assert 'contiguous="SIZE"' in str(wrong.value) and "--" not in str(wrong.value)
    with pytest.raises(ValueError) as wrong:
        raddle.merge(runs, tmp_path / "two.h5", compress="zip", progress=False)
    assert wrong.value.kind == "usage" and wrong.value.exit_code == 2 and "zip" in str(wrong.value)
    assert not (tmp_path / "two.h5").exists()


def test_a_name_that_looks_like_an_option_is_a_name(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.rename(runs[0], "--force.h5")
    assert raddle.merge(["--force.h5", runs[2]], "all.h5", progress=False).inputs == 2


def test_a_merge_with_a_preview(tmp_path):
    paths = []
    for seed in (1, 2):
        paths.append(tmp_path / f"in{seed}.h5")
        with h5py.File(paths[-1], "w") as file:
            cube = np.random.default_rng(seed).random((80, 100, 120))
            file.create_dataset("cube", data=cube, chunks=(16, 100, 120))
    report = raddle.merge(paths, tmp_path / "all.h5", preview=True, preview_samples=4096, progress=False)
    (array,) = report.preview.datasets
    assert (array.path, array.shape, array.spacing) == ("/cube", [160, 100, 120], [16, 8, 4])
    with h5py.File(tmp_path / "all.h5") as merged:
        assert np.array_equal(raddle.idx.read(array.file), merged["cube"][::16, ::8, ::4])
    with pytest.raises(errors.UsageError):
        raddle.merge(paths, tmp_path / "part.h5", preview=True, part="1/2", progress=False)
    with pytest.warns(UserWarning, match="a quarter of memory"):
        raddle.merge(paths, tmp_path / "look.h5", preview=tmp_path / "look", memory="48MiB", progress=False)
    assert (tmp_path / "look/cube.idx").exists()


def test_verify(runs, tmp_path):
    output = tmp_path / "all.h5"
    raddle.merge(runs, output, progress=False)
    equal = raddle.verify(output, runs, progress=False)
    assert equal and equal.ok and equal.datasets == 3 and not equal.mismatches
    assert raddle.verify(output, progress=False)
    with h5py.File(output, "r+") as file:
        file["rec/energy"][5] = 1e9
    damaged = raddle.verify(output, runs, progress=False)
    assert not damaged and damaged.mismatches[0].path == "/rec/energy" and damaged.mismatches[0].row == 5
    assert "/rec/energy" in damaged._repr_html_()


def test_append(runs, tmp_path):
    output = tmp_path / "all.h5"
    raddle.merge(runs[:2], output, extendible=True, progress=False)
    report = raddle.append(output, runs[2], progress=False)
    assert report.inputs == 1 and report.most_rows == 57 and report.grown_datasets == 3
    assert raddle.verify(output, runs, progress=False)
    with pytest.raises(errors.InputError) as repeated:
        raddle.append(output, [runs[2]], progress=False)
    assert repeated.value.exit_code == 3
    assert raddle.append(output, [runs[2]], again=True, progress=False).most_rows == 57


def test_inspect(runs):
    inspection = raddle.inspect(runs[0])
    assert inspection.file_len_bytes == runs[0].stat().st_size and inspection.objects.datasets == 3
    assert not inspection.faults and "metadata" in inspection._repr_html_()
    with pytest.raises(FileNotFoundError):
        raddle.inspect(runs[0].parent / "none.h5")


def test_inspect_counts_the_mapping_of_a_virtual_dataset(tmp_path):
    sources = 20_000
    layout = h5py.VirtualLayout((sources, 4), "f4")
    for number in range(sources):
        layout[number] = h5py.VirtualSource(f"a_file_with_a_long_name_{number:060}.h5", "/x", (4,))
    with h5py.File(tmp_path / "virtual.h5", "w", libver="v110") as file:
        file.create_virtual_dataset("all", layout)
    inspection = raddle.inspect(tmp_path / "virtual.h5")
    assert inspection.space.heap_len_bytes > 60 * sources and inspection.space.unused_len_bytes < 10_000
    assert not inspection.advice


def test_inputs_that_do_not_fit_are_reported_in_a_table(runs, tmp_path):
    with h5py.File(runs[1], "a") as file:
        del file["rec/energy"]
    with pytest.raises(errors.InputError) as refused:
        raddle.merge(runs, tmp_path / "all.h5", progress=False)
    assert isinstance(refused.value, OSError) and "/rec/energy" in refused.value.details
    assert "\x1b" not in str(refused.value) and refused.value.hint and not (tmp_path / "all.h5").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert raddle.merge(runs, tmp_path / "all.h5", join="inner", progress=False).datasets == 2


def write_differing(runs):
    """Writes files that differ in an attribute."""
    for number, path in enumerate(runs):
        with h5py.File(path, "a") as file:
            file["rec"].attrs["run"] = number


DIFFERENCES = [
    {"path": "/rec", "kind": "attributes", "expected": "run = 0", "found": f"run = {number}"} for number in (1, 2)
]


def test_differences_are_warned_of_and_reported(runs, tmp_path):
    write_differing(runs)
    expected = [{**difference, "inputs": [str(path)]} for difference, path in zip(DIFFERENCES, runs[1:], strict=True)]
    with pytest.warns(errors.DifferencesWarning) as warned:
        report = raddle.merge(runs, tmp_path / "all.h5", progress=False)
    (warning,) = warned
    assert warning.filename == __file__, "the warning must point to the caller's line"
    assert "2 differences between the inputs" in str(warning.message)
    assert "/rec: attributes: run = 1 instead of run = 0 in " in str(warning.message)
    for differences in (report.differences, warning.message.differences, raddle.plan(runs, progress=False).differences):
        assert [difference.to_dict() for difference in differences] == expected
    copied = pickle.loads(pickle.dumps(warning.message))
    assert str(copied) == str(warning.message) and copied.differences == warning.message.differences
    raddle.merge(runs[0], tmp_path / "grows.h5", extendible=True, progress=False)
    with pytest.warns(errors.DifferencesWarning):
        appended = raddle.append(tmp_path / "grows.h5", runs[1:], progress=False)
    assert [difference.kind for difference in appended.differences] == ["attributes", "attributes"]


def test_nothing_is_written_where_a_warning_is_an_error(runs, tmp_path):
    write_differing(runs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.RaddleWarning)
        with pytest.raises(errors.DifferencesWarning):
            raddle.merge(runs, tmp_path / "all.h5", progress=False)
    assert not (tmp_path / "all.h5").exists()


def test_a_refusal_has_the_differences(runs, tmp_path):
    write_differing(runs)
    with pytest.raises(errors.InputError) as refused:
        raddle.merge(runs, tmp_path / "all.h5", attributes="error", progress=False)
    found = [difference.to_dict() for difference in refused.value.differences]
    assert found == [{**difference, "inputs": [str(path)]} for difference, path in zip(DIFFERENCES, runs[1:], strict=True)]


def test_tables_of_differences_name_keywords(runs, tmp_path):
    for number, path in enumerate(runs):
        with h5py.File(path, "a") as file:
            file["rec/energy"].attrs["units"] = "--scalars first" if number else "GeV"
    with pytest.raises(errors.InputError) as refused:
        raddle.merge(runs, tmp_path / "all.h5", progress=False)
    (difference,) = refused.value.differences
    for text in (difference.found, str(refused.value)):
        assert 'units = "--scalars first"; attributes="stack" keeps each' in text, text


def test_errors_name_keywords(runs, tmp_path):
    write_differing(runs)
    with h5py.File(runs[2], "a") as file:
        file["scalar"] = 1
    with pytest.raises(errors.InputError) as refused:
        raddle.merge(runs, tmp_path / "all.h5", attributes="error", progress=False)
    hint = refused.value.hint
    assert 'join="inner"' in hint and 'attributes="first"' in hint and "--" not in hint
    output = tmp_path / "out.h5"
    raddle.merge(runs[0], output, progress=False)
    with pytest.raises(errors.OutputError) as exists:
        raddle.merge(runs[0], output, progress=False)
    assert "force=True" in str(exists.value) and "--" not in str(exists.value)
    for options, words in [
        ({"scalars": "all"}, 'scalars="all": expected one of "equal", "first", "stack"'),
        ({"layout": "none"}, 'layout="none": expected one of "events"'),
        ({"compress": "zip"}, 'compress="zip": invalid compression'),
        ({"memory": "2XB"}, 'memory="2XB": unknown unit "XB"'),
        ({"jobs": 0}, "jobs=0: expected a whole number, at least 1"),
        ({"jobs": 1.5}, "jobs=1.5: expected a whole number, at least 1"),
        ({"force": "yes"}, 'force="yes": expected True or False'),
        ({"union": True, "keys": ["evt"]}, "union=True copies datasets as they are: leave out keys"),
    ]:
        with pytest.raises(errors.UsageError) as wrong:
            raddle.merge(runs, tmp_path / "new.h5", progress=False, **options)
        assert words in str(wrong.value) and "--" not in str(wrong.value) and "Usage" not in str(wrong.value)


def test_an_output_that_exists_is_kept(runs, tmp_path):
    output = tmp_path / "all.h5"
    output.write_text("precious")
    with pytest.raises(errors.OutputError) as refused:
        raddle.merge(runs, output, progress=False)
    assert isinstance(refused.value, OSError) and refused.value.exit_code == 5
    assert output.read_text() == "precious"
    raddle.merge(runs, output, force=True, progress=False)


def test_progress_is_passed_on(runs, tmp_path, capsys, monkeypatch):
    printed = []
    raddle.merge(runs, tmp_path / "all.h5", progress=lambda *arguments: printed.append(arguments))
    assert printed and all(isinstance(stage, str) and done >= 0 for stage, done, _ in printed)
    raddle.merge(runs, tmp_path / "auto.h5")
    assert capsys.readouterr().err == "", "no progress without a terminal"
    raddle.verify(tmp_path / "all.h5", progress=True)
    assert capsys.readouterr().err == "", "no bar for a run of a moment"
    monkeypatch.setattr("raddle._progress._DELAY_S", 0)
    raddle.verify(tmp_path / "all.h5", progress=True)
    assert capsys.readouterr().err

    def fail(*_):
        raise RuntimeError("a defect of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        raddle.merge(runs, tmp_path / "failed.h5", progress=fail)
    with pytest.raises(ValueError):
        raddle.merge(runs, tmp_path / "failed.h5", progress="loud")


INTERRUPTED = """
import os, signal, sys, threading
import raddle
def interrupt(stage, done, total):
    os.kill(os.getpid(), signal.SIGINT)
try:
    raddle.{call}, progress=interrupt)
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""


def test_ctrl_c_stops_a_merge(tmp_path, environment):
    random = np.random.default_rng(0)
    for number in range(4):
        with h5py.File(tmp_path / f"in{number}.h5", "w") as file:
            for name in "ab":
                values = random.normal(size=500_000)
                file.create_dataset(name, data=values, chunks=(8192,), compression="gzip", compression_opts=1)
    # On one core, so that it takes several times as long as the interval between checks for signals, however fast the
    # machine.
    call = f"merge({str(tmp_path / 'in*.h5')!r}, {str(tmp_path / 'out.h5')!r}, compress='small', jobs=1"
    code = INTERRUPTED.format(call=call)
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 7 and finished.stdout == "interrupted\n", finished.stderr
    assert not (tmp_path / "out.h5").exists()
    # The same call resumes where that one stopped, and completes.
    raddle.merge(str(tmp_path / "in*.h5"), tmp_path / "out.h5", compress="small", progress=False)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["a"].shape == (2_000_000,)


def test_ctrl_c_stops_a_read(tmp_path, environment):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(0).integers(0, 9, 4_000_000)
        file.create_dataset("d", data=values, chunks=(1000,), compression="gzip", compression_opts=1)
    code = f"""
import os, signal, threading, raddle
file = raddle.open({str(path)!r}, threads=1)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        file["d"][:]
except KeyboardInterrupt:
    print("interrupted", file["d"][-1] >= 0)
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.stdout == "interrupted True\n", finished.stderr


def test_a_file_that_is_not_there_is_not_found(runs, tmp_path):
    missing = str(tmp_path / "none.h5")
    for call in (
        lambda: raddle.merge([missing], tmp_path / "out.h5"),
        lambda: raddle.plan([*runs, missing]),
        lambda: raddle.append(missing, runs),
        lambda: raddle.verify(missing),
        lambda: raddle.verify(missing, runs),
    ):
        with pytest.raises(FileNotFoundError, match="none.h5") as missed:
            call()
        assert missed.value.errno == 2 and missed.value.exit_code == 3
        assert (missed.value.hint or "check the names").startswith("check the names"), "no advice to copy the files again"


def test_every_kind_of_error_has_a_class():
    for kind, made in errors._CLASSES.items():
        error = errors._make(kind, 9, "what happened", "a table\n", "do this", None)
        assert isinstance(error, made) and error.kind == kind and error.exit_code == 9
        assert str(error) == "what happened\na table\nwhat to do: do this"
    assert isinstance(errors._make("io", 3, "gone", None, None, 2), FileNotFoundError)
    assert errors._make("io", 3, "no", None, None, 13).errno == 13
    assert issubclass(errors.ObjectNotFoundError, KeyError) and issubclass(errors.UsageError, ValueError)


def test_a_signal_number_is_known():
    # A run must not replace Python's own handler in the process of the tests.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert Path(raddle.__file__).name == "__init__.py"


def test_attributes_become_datasets(runs, tmp_path):
    for number, path in enumerate(runs):
        with h5py.File(path, "a") as file:
            file.attrs["run"] = number + 7
    with pytest.warns(errors.DifferencesWarning):
        report = raddle.merge(
            runs, tmp_path / "all.h5", attributes="stack", add_column=["/rec/run_of_row=@run"], progress=False
        )
    assert [item.found for item in report.differences] == ["others: stacked in /run"]
    with h5py.File(tmp_path / "all.h5") as file:
        assert file["run"][:].tolist() == [7, 8, 9]
        assert file["rec/run_of_row"][:].tolist() == [7] * 100 + [9] * 57
    assert raddle.verify(tmp_path / "all.h5", runs, progress=False)
    with pytest.raises(errors.InputError, match="no none"):
        raddle.merge(runs, tmp_path / "no.h5", add_column=["run=@none"], progress=False)


@pytest.mark.parametrize("axis", [1, -1, np.int64(1), "1"])
def test_an_axis_is_a_number(tmp_path, axis):
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["a"] = np.full((2, 3), number)
    raddle.merge(inputs, tmp_path / "all.h5", axis=axis, progress=False)
    assert raddle.verify(tmp_path / "all.h5", inputs, progress=False)
    with h5py.File(tmp_path / "all.h5") as merged:
        assert merged["a"][:].tolist() == [[0, 0, 0, 1, 1, 1]] * 2
    with pytest.raises(errors.UsageError, match="axis"):
        raddle.merge(inputs, tmp_path / "more.h5", axis="first", progress=False)


@pytest.mark.parametrize("tiles", [True, "tile_{y}_{x}.h5"])
def test_tiles_of_a_grid(tmp_path, tiles):
    """The tile in the middle of a row is missing: its elements are counted in the report."""
    grid, inputs = np.arange(24.0).reshape(4, 6), []
    for number in (0, 1, 3):
        row, column = divmod(number, 2)
        inputs.append(tmp_path / f"tile_{row}_{column}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["y"], file["x"] = np.arange(2.0) + 2 * row, np.arange(3.0) + 3 * column
            file["a"] = grid[2 * row : 2 * row + 2, 3 * column : 3 * column + 3]
            for axis, name in enumerate(["y", "x"]):
                file[name].make_scale(name)
                file["a"].dims[axis].attach_scale(file[name])
    with pytest.warns(errors.DifferencesWarning, match="6 of 24"):
        report = raddle.merge(inputs, tmp_path / "grid.h5", tiles=tiles, progress=False)
    assert [(one.path, one.kind) for one in report.differences] == [("/a", "hole")]
    assert raddle.verify(tmp_path / "grid.h5", inputs, progress=False)
    with h5py.File(tmp_path / "grid.h5") as merged:
        grid[2:, :3] = np.nan
        np.testing.assert_array_equal(merged["a"], grid)


@pytest.mark.parametrize("progress", ["auto", True])
def test_a_program_without_standard_error_is_served(environment, runs, tmp_path, progress):
    """Daemons and pythonw have none: Python then sets `sys.stderr` to None."""
    output = tmp_path / "all.h5"
    code = f"import sys, raddle; sys.stderr = None; raddle.merge({str(runs[0].parent)!r}, {str(output)!r}, progress={progress!r})"
    assert python(environment, "-c", code).returncode == 0
    assert raddle.verify(output, against=runs, progress=False).ok
