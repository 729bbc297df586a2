"""Other ways to a merged file than a single ``merge``: each keeps the meaning of values, or refuses.

Appending, links to the inputs, parts of job arrays, other layouts, one thread or several: for a pair of files of each
convention with values that change in a merge.
"""

import anndata_files
import anndata_judge
import cf_files
import cf_judge
import h5py
import netCDF4
import nexus_files
import nwb_files
import nwb_judge
import pandas_files
import pandas_judge
import pytest
from anndata_files import GENES, Schema
from command import run_command
from merging import COUNTS, NoConcatenation, Refusal, merge_or_refusal

pytestmark = pytest.mark.filterwarnings("ignore")


def cf(folder):
    hours = [[72, 96, 120], [144, 168, 192]]
    files = [cf_files.simple(kind="i4")]
    files += [
        cf_files.simple(3 + 3 * number, times=times, since="hours since 2000-01-01", kind="i4")
        for number, times in enumerate(hours)
    ]
    return cf_files.write_all(folder, *files), cf_judge.judge


def anndata(folder):
    schema = Schema(("csr", "f4"), {"counts": ("csr", "i4")}, ["group", "count"], ["length"], {"obsm", "varm", "raw"}, 3)
    orders = [GENES[:4], GENES[:4][::-1], GENES[:4]]
    objects = [anndata_files.make(schema, number, genes, 4) for number, genes in enumerate(orders)]
    return anndata_files.write_all(folder, *objects), anndata_judge.judge


def nexus(folder):
    runs = [nexus_files.Run([2, 0, 3], 3, f"2024-05-01T1{number}:00:00Z") for number in range(3)]
    return nexus_files.write_all(folder, *runs), nexus_files.judge


def nwb(folder):
    sessions = [
        nwb_files.Session([2, 3], nwb_files.WORDS[:2], first_id=10 * number, first_s=100.0 * number) for number in range(3)
    ]
    return nwb_files.write_all(folder, *sessions), nwb_judge.judge


def pandas(folder):
    frames = [pandas_files.frame(number, 3 + number, ["whole", "text", "grade"]) for number in range(3)]
    return pandas_files.write_all(folder, *frames), pandas_judge.judge


CONVENTIONS = [cf, anndata, nexus, nwb, pandas]
each_convention = pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda convention: convention.__name__)


@pytest.fixture
def files(tmp_path, convention):
    """Returns three files of a convention, and its judge."""
    (tmp_path / "in").mkdir()
    return convention(tmp_path / "in")


def judged(convention, outcome, inputs, judge):
    """Counts and judges an outcome, which must not be wrong."""
    counts = COUNTS[convention.__name__]
    counts["drawn"] += 1
    if isinstance(outcome, Refusal):
        counts["refused"] += 1
        return
    try:
        judge(outcome, inputs)
    except BaseException:
        counts["wrong"] += 1
        raise
    counts["equal"] += 1


@each_convention
def test_append(tmp_path, convention, files):
    """Rows appended to a merged file equal those of a merge of all inputs; otherwise the file stays unchanged."""
    inputs, judge = files
    output = merge_or_refusal(inputs[:2], output=tmp_path / f"out{inputs[0].suffix}")
    assert not isinstance(output, Refusal), output
    before = output.read_bytes()
    finished = run_command("append", output, inputs[2])
    text = finished.stdout + finished.stderr
    assert finished.returncode in [0, 3], text
    if finished.returncode == 3:
        assert output.read_bytes() == before, "changed by a refusal"
        judged(convention, Refusal(text), inputs, judge)
        judge(output, inputs[:2])
    else:
        judged(convention, output, inputs, judge)


def test_a_file_keeps_a_dimension_that_later_inputs_lack(tmp_path, raddle):
    """The length of a string is a dimension, which xarray names after it, and which no variable may use."""
    files = [cf_files.simple(), cf_files.simple(3)]
    for file, name in zip(files, ["string4", "string5"]):
        file.dims[name] = int(name[-1])
    inputs = cf_files.write_all(tmp_path, *files)
    output = tmp_path / "out.nc"
    raddle("merge", inputs[0], "-o", output)
    raddle("append", output, inputs[1])
    cf_judge.judge(output, inputs)
    raddle("verify", output)
    with netCDF4.Dataset(output) as file:
        assert len(file.dimensions["string4"]) == 4 and "string5" not in file.dimensions


def test_a_file_of_one_input_grows(tmp_path, raddle):
    """A merge of several files adds a line to the history of the first."""
    files = [cf_files.simple(3 * number) for number in range(3)]
    for file in files:
        file.attributes["history"] = "made"
    inputs = cf_files.write_all(tmp_path, *files)
    one, both = tmp_path / "one.nc", tmp_path / "both.nc"
    raddle("merge", inputs[0], "-o", one)
    raddle("append", one, *inputs[1:])
    raddle("verify", one, "--against", *inputs)
    raddle("merge", *inputs[:2], "-o", both)
    raddle("append", both, inputs[2])
    raddle("verify", both, "--against", *inputs)
    for output in (one, both):
        cf_judge.judge(output, inputs)


@each_convention
@pytest.mark.parametrize("kind", ["virtual", "external"])
def test_links(tmp_path, convention, files, kind):
    """A link changes no values: if a merge must change them, the link is refused."""
    inputs, judge = files
    outcome = merge_or_refusal(inputs, "--link", kind, output=tmp_path / f"out{inputs[0].suffix}")
    if kind == "external" and not isinstance(outcome, Refusal):
        # Every input stays separate, under its own group.
        with h5py.File(outcome) as file:
            assert len([name for name in file if name != "_raddle"]) == len(inputs)
        return
    judged(convention, outcome, inputs, judge)


@each_convention
@pytest.mark.parametrize("options", [["--for", "scan"], ["--for", "random"], ["-c", "none"], ["-c", "keep"], ["-j", "1"]])
def test_layouts(tmp_path, convention, files, options):
    inputs, judge = files
    outcome = merge_or_refusal(inputs, *options, output=tmp_path / f"out{inputs[0].suffix}")
    assert not isinstance(outcome, Refusal), outcome
    judged(convention, outcome, inputs, judge)


@each_convention
def test_parts(tmp_path, convention, files):
    """Two processes of a job array produce the bytes of one."""
    inputs, judge = files
    alone = merge_or_refusal(inputs, output=tmp_path / f"alone{inputs[0].suffix}")
    output = tmp_path / f"out{inputs[0].suffix}"
    for part in ["1/2", "2/2"]:
        finished = run_command("merge", *inputs, "-o", output, "--part", part)
        assert finished.returncode in [0, 3], finished.stdout + finished.stderr
    if finished.returncode == 0:
        judged(convention, output, inputs, judge)
        assert output.read_bytes() == alone.read_bytes()
    else:
        assert not output.exists()


@each_convention
def test_rechunk(tmp_path, raddle, convention, files):
    """A merged file in another layout reads the same."""
    inputs, judge = files
    output = merge_or_refusal(inputs, output=tmp_path / f"out{inputs[0].suffix}")
    assert not isinstance(output, Refusal), output
    again = tmp_path / f"again{inputs[0].suffix}"
    raddle("rechunk", output, "-o", again, "--for", "random")
    judged(convention, again, inputs, judge)


@each_convention
def test_append_to_a_rechunked_file(tmp_path, raddle, convention, files):
    """A rechunked file grows like the merge from which it was made."""
    inputs, judge = files
    output = merge_or_refusal(inputs[:2], output=tmp_path / f"out{inputs[0].suffix}")
    assert not isinstance(output, Refusal), output
    again = tmp_path / f"again{inputs[0].suffix}"
    raddle("rechunk", output, "-o", again, "--for", "random")
    finished = run_command("append", again, inputs[2])
    text = finished.stdout + finished.stderr
    assert finished.returncode in [0, 3], text
    judged(convention, Refusal(text) if finished.returncode else again, inputs, judge)


@each_convention
def test_a_merge_of_merges(tmp_path, convention, files):
    inputs, judge = files
    first = merge_or_refusal(inputs[:2], output=tmp_path / f"first{inputs[0].suffix}")
    assert not isinstance(first, Refusal), first
    outcome = merge_or_refusal([first, inputs[2]], "--order", "given", output=tmp_path / f"out{inputs[0].suffix}")
    judged(convention, outcome, inputs, judge)


@each_convention
def test_verify_finds_what_is_wrong(tmp_path, convention, files):
    """The rules are applied to the inputs: another input is detected, and so are literally concatenated bytes."""
    inputs, _ = files
    output = merge_or_refusal(inputs, output=tmp_path / f"out{inputs[0].suffix}")
    assert not isinstance(output, Refusal), output
    finished = run_command("verify", output, "--against", *inputs)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    finished = run_command("verify", output, "--against", inputs[0], inputs[2], inputs[1], "--order", "given")
    # Times order the inputs, in whatever order they are given.
    assert convention is cf or finished.returncode == 8, finished.stdout + finished.stderr
    finished = run_command("verify", output, "--against", *inputs[:2])
    assert finished.returncode != 0, finished.stdout + finished.stderr
    bytewise = tmp_path / f"bytes{inputs[0].suffix}"
    merged = run_command("merge", *inputs, "-o", bytewise, "--convention", "none", "--scalars", "first")
    if merged.returncode == 0:
        finished = run_command("verify", bytewise, "--against", *inputs, "--convention", "none", "--scalars", "first")
        assert finished.returncode == 0, finished.stdout + finished.stderr


@each_convention
def test_judges_see_what_is_wrong(tmp_path, raddle, convention, files):
    """Rows concatenated as stored have a different meaning."""
    inputs, judge = files
    output = tmp_path / f"out{inputs[0].suffix}"
    options = ["--convention", "none", "--scalars", "first"]
    raddle("merge", *inputs, "-o", output, *options)
    with pytest.raises((AssertionError, NoConcatenation, ValueError)):
        judge(output, inputs)
