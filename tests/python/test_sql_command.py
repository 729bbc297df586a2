"""The command `raddle sql`."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from interpreter import python
from sql_tables import ROWS, file, small_batches  # noqa: F401

pa = pytest.importorskip("pyarrow")
pytest.importorskip("datafusion")
_sql_command = pytest.importorskip("raddle._sql_command")


@pytest.fixture
def command(file, monkeypatch, capsysbinary):
    """Returns a function that runs the command in this process, and returns exit code, output and errors."""
    monkeypatch.setattr(_sql_command, "_end_on_signals", lambda: None)
    monkeypatch.delenv("RADDLE_JOBS", raising=False)

    def run(*arguments):
        code = _sql_command.main([str(argument).replace("{0}", f"'{file[0]}'.'rec.slc'") for argument in arguments])
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


def test_the_command_prints_a_table(command):
    code, out, err = command("SELECT evt, energy AS \"the energy\", name, flag, wide, null AS n FROM {0} WHERE evt IN (5, 17) ORDER BY evt", "--format", "table")
    lines = out.decode().splitlines()
    assert code == 0 and err == "2 rows\n" and len(lines) == 4
    assert lines[0].split() == ["evt", "the", "energy", "name", "flag", "wide", "n"] and set(lines[1]) == {"-", " "}
    assert lines[2].startswith("  5  ") and lines[2].endswith("NULL") and "[0." in lines[2]


def test_the_command_states_that_rows_are_left_out(command, monkeypatch):
    assert command("SELECT evt FROM {0} ORDER BY evt", "--format=table")[2].startswith("the first 40 rows; there are more: ")
    small_batches(monkeypatch)
    code, out, err = command("SELECT evt FROM {0} ORDER BY evt", "--format=table", "--rows=1")
    assert (code, out) == (0, b"evt\n---\n  0\n") and err.startswith("the first 1 row; there are more: --rows N prints N")
    assert command("SELECT evt FROM {0}", "--format=table", f"--rows={ROWS}")[2] == f"{ROWS:,} rows\n"
    assert command("SELECT evt FROM {0} WHERE evt < 0", "--format=table") == (0, b"evt\n---\n", "0 rows\n")
    assert command("SELECT evt FROM {0} WHERE evt < 0", "--format=table", "-q") == (0, b"evt\n---\n", "")


def test_a_terminal_gets_no_control_characters(command, tmp_path):
    path = tmp_path / "controls.h5"
    with h5py.File(path, "w") as file:
        file["t/text"] = np.array([b"\x1b[31mred\n", b"x" * 90, "é".encode()])
        file["t/text\x1b"] = np.arange(3)
    code, out, _ = command(f"SELECT * FROM '{path}'.t", "--format=table")
    assert code == 0 and b"\x1b" not in out and b"\\x1b[31mred\\n" in out and ("x" * 59 + "…").encode() in out and "é".encode() in out


def test_the_command_explains_what_is_excluded(command):
    code, out, err = command("EXPLAIN SELECT max(energy) FROM {0} WHERE evt = 7", "--format=table")
    text = out.decode()
    assert code == 0 and err == "" and text.startswith("logical_plan:\n") and "projection=[energy, evt]" in text
    assert text.endswith("rec.slc: rows where (evt == 7); 2 of 3 blocks excluded\n")
    assert command("EXPLAIN SELECT max(energy) FROM {0}", "--format=table")[1].endswith(b"rec.slc: all rows\n")
    assert b'"plan_type"' in command("EXPLAIN SELECT max(energy) FROM {0}", "--format=csv")[1]


QUERY = """
SELECT evt, energy, y, far, flag, name, wide, arrow_cast(evt, 'Float16') half, upper(name) u, CAST(big AS DECIMAL(5, 2)) d, null n
FROM {0} WHERE evt < 2000 ORDER BY evt
"""


def test_every_format_has_every_row(file, command, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    columns = {name: values[:2000] for name, values in file[1]["rec.slc"].items()}
    for form, read in {
        "csv": lambda data: pyarrow.csv.read_csv(
            io.BytesIO(data), convert_options=pyarrow.csv.ConvertOptions(column_types={"far": pa.uint64(), "name": pa.string()})
        ),
        "json": None,
        "arrow": lambda data: pa.ipc.open_stream(data).read_all(),
        "parquet": lambda data: pyarrow.parquet.read_table(io.BytesIO(data)),
    }.items():
        code, out, err = command(QUERY, f"--format={form}")
        assert (code, err) == (0, "")
        if form == "json":
            rows = [json.loads(line) for line in out.splitlines()]
            assert list(rows[0]) == ["evt", "energy", "y", "far", "flag", "name", "wide", "half", "u", "d", "n"]
            found = {name: [row[name] for row in rows] for name in rows[0]}
            for name in ("energy", "y"):
                values = np.array([float(value) for value in found[name]], columns[name].dtype)
                assert np.array_equal(values, columns[name], equal_nan=True)
            assert found["d"][0] == f"{columns['big'][0]}.00" and found["n"][0] is None
        else:
            table = read(out)
            found = {name: table[name].to_pylist() for name in table.column_names}
            for name in ("energy", "y"):
                assert np.array_equal(np.array(found[name], columns[name].dtype), columns[name], equal_nan=True), (form, name)
        if form == "csv":
            found["wide"] = [json.loads(value) for value in found["wide"]]
        for name in ("evt", "far", "flag", "wide"):
            assert found[name] == columns[name].tolist(), (form, name)
        assert found["name"] == [name.decode() for name in columns["name"]]
        assert [float(value) for value in found["half"][:3]] == [0, 1, 2]
    assert b'"NaN"' in command("SELECT y FROM {0}", "--format=json")[1] and b'"-Infinity"' in command("SELECT y FROM {0}", "--format=json")[1]
    assert command("SELECT struct(1, 'a') s, arrow_cast('ab', 'Binary') b, DATE '2026-01-02' d", "--format=json")[1] == (
        b'{"s": {"c0": 1, "c1": "a"}, "b": {"bytes": "6162"}, "d": "2026-01-02"}\n'
    )
    for name, read in {
        "o.csv": pyarrow.csv.read_csv, "o.parquet": pyarrow.parquet.read_table, "o.arrow": lambda path: pa.ipc.open_file(path).read_all(),
        "o.unknown": pyarrow.csv.read_csv,
    }.items():  # fmt: skip
        path = tmp_path / name
        assert command("SELECT evt FROM {0} WHERE evt < 1000", "-o", path) == (0, b"", f"{path}: 1,000 rows\n")
        assert read(path)["evt"].to_pylist() == list(range(1000))
    assert command("SELECT evt FROM {0}", "-o", tmp_path / "o.jsonl", "-q") == (0, b"", "")
    assert (tmp_path / "o.jsonl").read_text().splitlines()[1] == '{"evt": 1}'


def test_columns_of_equal_names_are_kept_or_refused(command, tmp_path):
    path, expected = tmp_path / "two.h5", {"a": [0.0, 1.0, 2.0], "b": [100.0, 101.0, 102.0]}
    with h5py.File(path, "w") as two:
        for table, values in expected.items():
            two[f"{table}/id"], two[f"{table}/e"] = np.arange(3), np.array(values)
    query = f"SELECT a.id, a.e, b.e FROM '{path}'.a a JOIN '{path}'.b b ON a.id = b.id ORDER BY a.id"
    for form in ("csv", "table"):
        rows = [line.replace(",", " ").split() for line in command(query, f"--format={form}")[1].decode().splitlines()]
        assert [float(row[1]) for row in rows[-3:]] == expected["a"] and [float(row[2]) for row in rows[-3:]] == expected["b"]
    table = pa.ipc.open_stream(command(query, "--format=arrow")[1]).read_all()
    assert table.column_names == ["id", "e", "e"] and [table.column(at).to_pylist() for at in (1, 2)] == list(expected.values())
    output = tmp_path / "out.json"
    for more in ((), ("-o", output)):
        code, out, err = command(query, "--format=json", *more)
        assert (code, out) == (2, b"") and err.startswith("error: e: several columns") and "AS" in err and not output.exists()
    renamed = command(query.replace("b.e", "b.e AS f"), "--format=json")[1].splitlines()
    assert [json.loads(line) for line in renamed] == [{"id": at, "e": float(at), "f": at + 100.0} for at in range(3)]


NESTED = [
    ("[1, 2]", [1, 2]),
    ("make_array(count(*), 1)", [ROWS, 1]),
    ("make_array(make_array(min(evt)))", [[0]]),
    ("array_agg(DISTINCT evt - evt)", [0]),
    ("named_struct('one', 1, 'l', make_array(count(*)))", {"one": 1, "l": [ROWS]}),
    ("map(['k', 'l'], [count(*), 2])", [{"key": "k", "value": ROWS}, {"key": "l", "value": 2}]),
    ("map([1], [[NULL, 1]])", [{"key": 1, "value": [None, 1]}]),
    ("interval '1 month -3 days 1.5 seconds'", "P1M-3DT1.5S"),
    ("[interval '-250 milliseconds', interval '0 days', NULL]", ["PT-0.25S", "PT0S", None]),
    ("arrow_cast([1], 'LargeList(Int64)')", [1]),
    ("arrow_cast([1, 2], 'FixedSizeList(2, Int64)')", [1, 2]),
    ("[named_struct('z', arrow_cast('a', 'Utf8View'))]", [{"z": "a"}]),
    ("arrow_cast('a', 'Dictionary(Int32, Utf8)')", "a"),
]


@pytest.mark.parametrize(("expression", "expected"), NESTED)
def test_nested_values_are_written_in_every_format(command, expression, expected):
    import pyarrow.parquet

    query = f"SELECT {expression} AS a" + (" FROM {0}" if "evt" in expression or "count" in expression else "")
    outputs = {form: command(query, f"--format={form}") for form in ("table", "csv", "json", "arrow", "parquet")}
    text = expected if isinstance(expected, str) else json.dumps(expected)
    cell = text if len(text) <= 60 else text[:59] + "…"
    assert outputs["table"][1].decode().splitlines() == ["a", "-" * len(cell), cell]
    assert list(csv.reader(io.StringIO(outputs["csv"][1].decode()))) == [["a"], [text]]
    assert json.loads(outputs["json"][1]) == {"a": expected}
    tables = [pa.ipc.open_stream(outputs["arrow"][1]).read_all()]
    code, out, err = outputs["parquet"]
    if "interval" in expression:
        assert (code, out) == (2, b"") and err.startswith("error: a: Parquet has no type for ") and "CAST" in err
        assert command(f"SELECT CAST({expression} AS VARCHAR) AS a", "--format=parquet")[0] == 0
        return
    tables.append(pyarrow.parquet.read_table(io.BytesIO(out)))
    for table in tables:
        [value] = table["a"].to_pylist()
        assert ([{"key": key, "value": item} for key, item in value] if "map" in expression else value) == expected


def test_fields_of_equal_names_are_kept_or_refused(command):
    query = "SELECT 1 AS x, [named_struct('b', 1, 'b', 2)] AS a"
    for form in ("table", "csv", "json"):
        code, out, err = command(query, f"--format={form}")
        assert (code, out) == (2, b"") and err.startswith("error: a: several fields of a struct are called b")
    [structs] = pa.ipc.open_stream(command(query, "--format=arrow")[1]).read_all()["a"].chunks
    assert [structs.flatten().field(at).to_pylist() for at in range(2)] == [[1], [2]]


def test_an_output_is_complete_or_absent(file, command, tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    code, _, err = command("SELECT evt FROM {0}", "-o", path)
    assert code == 5 and err == f"error: {path}: exists; use --force to replace it, or name another output\n" and path.read_text() == "old"
    code, _, err = command("SELECT arrow_cast(name, 'Int32') FROM {0}", "-o", path, "--force")
    assert code == 2 and "the query failed" in err and path.read_text() == "old"
    assert command("SELECT evt FROM {0} LIMIT 1", "-o", path, "--force")[0] == 0 and path.read_text() == '"evt"\n0\n'
    for wrong, message in (
        (tmp_path / "none" / "out.csv", "does not exist; create it first"),
        (tmp_path, "a folder; name a file"),
        ("/proc/out.csv", "/proc/out.csv: "),
    ):
        code, _, err = command("SELECT 1", "-o", wrong, "--force")
        assert code == 5 and message in err
    before = file[0].read_bytes()
    link = tmp_path / "link.h5"
    link.symlink_to(file[0])
    for same in (file[0], link):
        code, _, err = command("SELECT evt FROM {0}", "-o", same, "--force")
        assert code == 5 and "is also an input" in err and file[0].read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["link.h5", "out.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "no query"),
        (["SELECT 1", "--none"], 2, "unrecognized arguments: --none\nwhat to do: see raddle sql --help"),
        (["SELECT 1", "--format", "xml"], 2, "invalid choice"),
        (["SELECT 1", "--rows", "-3"], 2, "negative"),
        (["SELECT 1", "-j", "0"], 2, "too small"),
        (["SELECT x FROM 'none.h5'.'t'"], 3, "none.h5: "),
        (["SELECT x FROM {0}"], 3, "No field named x"),
        (["DROP TABLE x"], 2, "DROP is not supported"),
        (["SELECT sqrt(low) FROM {0}"], 2, "the query failed: "),
    ],
)
def test_exit_codes_are_those_of_other_commands(command, arguments, code, message):
    found, out, err = command(*arguments)
    assert found == code and err.startswith("error: ") and message in err and out in (b"", b'"sqrt(x)"\n') or b"sqrt" in out


def test_an_error_of_a_scan_is_that_of_raddle(command, tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("t/x", data=np.arange(10_000), chunks=(1000,), compression="gzip")
        chunk = file["t/x"].id.get_chunk_info(3)
    with open(path, "r+b") as damaged:
        damaged.seek(chunk.byte_offset)
        damaged.write(bytes(chunk.size))
    code, out, err = command(f"SELECT sum(x) FROM '{path}'.t", "--format=table")
    assert code == 3 and out == b"" and err.startswith("error: ") and "DataFusion" not in err and "damaged" in err


def test_warnings_are_printed(command, tmp_path):
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file["t/x"], file["t/z"] = np.arange(4), np.zeros(4, "c8")
    assert command(f"SELECT x FROM '{path}'.t", "--format=csv")[2] == f"warning: {path}: t: left out, because Arrow has no type for them: z\n"
    assert command(f"SELECT x FROM '{path}'.t", "--format=csv", "-q")[2] == ""


def test_threads_come_from_the_environment(command, monkeypatch):
    monkeypatch.setenv("RADDLE_JOBS", "1")
    assert command("SELECT 1 AS a", "--format=csv")[1] == b'"a"\n1\n'
    monkeypatch.setenv("RADDLE_JOBS", "many")
    assert command("SELECT 1")[0] == 2


def test_the_command_runs_in_a_process(file, environment):
    query = f"SELECT evt FROM '{file[0]}'.'rec.slc' WHERE evt < 2"
    helped = python(environment, "-m", "raddle", "sql", "--help")
    assert helped.returncode == 0 and helped.stdout.startswith("Run an SQL query") and "Usage: raddle sql [OPTIONS] <QUERY>" in helped.stdout
    assert max(map(len, helped.stdout.splitlines())) <= 100
    piped = python(environment, "-m", "raddle", "sql", "-", input=query)
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, '"evt"\n0\n1\n', "")
    missing = "import sys; sys.modules['datafusion'] = None; sys.argv = ['raddle', 'sql', 'SELECT 1']; import raddle.__main__ as m; sys.exit(m.main())"
    without = python(environment, "-c", missing)
    assert without.returncode == 2 and without.stderr == "error: SQL needs the package datafusion\nwhat to do: pip install 'raddle[sql]'\n"
    closed = subprocess.run(
        ["bash", "-c", f'{sys.executable} -m raddle sql "$0" | head -1', f"SELECT a.evt FROM '{file[0]}'.'rec.slc' a, '{file[0]}'.'rec/trk' b"],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (closed.stdout, closed.stderr) == ('"evt"\n', "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_query_leaves_no_output(file, environment, tmp_path, number):
    # One computation, which DataFusion does not interrupt.
    query = f"SELECT sum(a.evt * b.evt) s FROM '{file[0]}'.'rec.slc' a, '{file[0]}'.'rec.slc' b, '{file[0]}'.'rec.slc' c"
    command = [sys.executable, "-m", "raddle", "sql", query, "-o", str(tmp_path / "out.csv")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as running:
        for _ in range(600):
            if os.listdir(tmp_path):
                break
            time.sleep(0.05)
        assert [name[:13] for name in os.listdir(tmp_path)] == [".out.csv.radd"]
        time.sleep(0.5)
        running.send_signal(number)
        assert running.wait(30) == 128 + number and running.stderr.read() == b"error: interrupted\n"
    assert os.listdir(tmp_path) == []


def test_a_terminal_gets_a_table(file, environment):
    query = f"SELECT evt FROM '{file[0]}'.'rec.slc' WHERE evt < 1"
    for more, expected in (([], b"evt\r\n---\r\n  0\r\n"), (["--format", "arrow"], b"")):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "raddle", "sql", query, *more]
        finished = subprocess.run(command, env=environment, stdout=theirs, stderr=subprocess.PIPE, timeout=300, check=False)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1000):
                shown += part
        except OSError:
            # A terminal without processes ends by an error.
            pass
        os.close(ours)
        assert shown == expected
        assert finished.returncode == (2 if more else 0) and (b"is not text" in finished.stderr) == bool(more)
