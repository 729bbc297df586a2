"""The command ``raddle sql``: runs a query, and prints or writes its result."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NoReturn

from raddle.errors import LimitError, OutputError, RaddleError, UsageError

if TYPE_CHECKING:
    import datafusion
    from raddle._sql_tables import Tables

HELP = """\
Run an SQL query on tables of HDF5 files

Usage: raddle sql [OPTIONS] <QUERY>

Arguments:
  <QUERY>
          Query in the dialect of DataFusion; - reads it from standard input
          
          A table is written as its file and its group, both in quotes. The file may be a pattern,
          whose files are searched as one. Names keep their case.

Options:
  -h, --help
          Print help

Output:
  -o, --output <FILE>
          File to write, which gets its name when it is complete

  -f, --force
          Replace an existing output

      --format <FORMAT>
          Format of the output

          Possible values:
          - table:   Columns of equal width, of the first rows
          - csv:     Comma-separated values with a header; lists are JSON
          - json:    An object per line
          - arrow:   Arrow IPC: a file with --output, and a stream otherwise
          - parquet: Parquet
          
          [default: by the ending of --output (.csv, .json, .jsonl, .arrow, .parquet); otherwise
          table on a terminal, and csv elsewhere]

      --rows <N>
          Maximum number of rows of a table [default: 40]

Values:
      --values <WHICH>
          Values of columns of netCDF variables whose attributes define other values than those
          stored; without this option, such columns are refused

          Possible values:
          - stored:  The numbers in the file
          - decoded: The values that xarray shows: scaled (`scale_factor`, `add_offset`), unsigned
            (`_Unsigned`), and without those that `_FillValue` and `missing_value` mark as missing

Running:
  -j, --jobs <N>
          Number of worker threads [default: the cores available to this process]
          
          [env: RADDLE_JOBS]

  -q, --quiet
          Print only errors, and the result

Examples:
  raddle sql "SELECT evt, calE FROM 'all.h5'.'rec.slc' WHERE run = 1234"
  raddle sql "SELECT run, avg(calE) FROM 'runs/*.h5'.'rec.slc' GROUP BY run ORDER BY run"
  raddle sql "SELECT * FROM 'all.h5'.'rec.slc' WHERE calE > 2" -o bright.parquet

Only the columns and blocks of rows that the query needs are read; raddle index makes more blocks
unnecessary. Queries cannot write. NaN is the largest number and equals itself.
""".replace(" " * 10 + "\n", "\n")

_ENDINGS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".arrow": "arrow", ".feather": "arrow", ".parquet": "parquet"}

_KEYWORD = re.compile(r'values="(stored|decoded)"')
"""The keyword of `raddle.sql` that is the option of the command."""

_partial: list[str] = []
"""Path of the output that is being written, under its temporary name."""


class _Parser(argparse.ArgumentParser):
    """Parser of the arguments, whose errors have the form of the other commands."""

    def error(self, message: str) -> NoReturn:
        found = UsageError(message)
        found.hint = "see raddle sql --help"
        raise found


def main(arguments: list[str]) -> int:
    """Runs the command and returns the exit code."""
    _end_on_signals()
    try:
        options = _parsed(arguments)
        if options is None:
            return 0
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: None if options.quiet else _say(f"warning: {message}")
            warnings.simplefilter("always", UserWarning)
            _run(options)
    except RaddleError as error:
        _say("error: " + _KEYWORD.sub(r"--values \1", str(error)))
        return error.exit_code
    return 0


def _end_on_signals() -> None:
    """Ends the command on Ctrl-C or SIGTERM without a partial output, and on a closed pipe.

    A thread waits for the signals: DataFusion does not return to Python in the middle of a computation.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signals = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait() -> None:
        number = signal.sigwait(signals)
        _remove_partial()
        _say("error: interrupted")
        os._exit(128 + number)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """Opens a file that gets its name when it is complete.

    Raises OutputError if it cannot be written.
    """
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.raddle-{os.getpid()}")
    try:
        file = open(partial, "xb")  # noqa: SIM115
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error
    _partial.append(partial)
    try:
        with file:
            yield file
        os.replace(partial, path)
    except BaseException:
        _remove_partial()
        raise
    finally:
        _partial.clear()


def _remove_partial() -> None:
    """Removes the output that is being written, if there is one."""
    for path in _partial:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _parsed(arguments: list[str]) -> argparse.Namespace | None:
    """Returns the options; None after the help was printed."""
    parser = _Parser(prog="raddle sql", add_help=False, allow_abbrev=False)
    parser.add_argument("query", nargs="?")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-o", "--output")
    parser.add_argument("-f", "--force", action="store_true")
    parser.add_argument("--format", choices=("table", "csv", "json", "arrow", "parquet"))
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--values", choices=("stored", "decoded"))
    parser.add_argument("-j", "--jobs", type=int)
    parser.add_argument("-q", "--quiet", action="store_true")
    options = parser.parse_args(arguments)
    if options.help:
        sys.stdout.write(HELP)
        return None
    if options.query is None:
        parser.error("no query")
    if options.query == "-":
        options.query = sys.stdin.read()
    if options.jobs is None and (jobs := os.environ.get("RADDLE_JOBS")):
        if not jobs.isdecimal():
            parser.error(f"RADDLE_JOBS={jobs} is not a number")
        options.jobs = int(jobs)
    if options.rows < 0:
        parser.error(f"--rows {options.rows} is negative")
    if options.format is None:
        ending = os.path.splitext(options.output or "")[1].lower()
        options.format = _ENDINGS.get(ending, "table" if options.output is None and sys.stdout.isatty() else "csv")
    return options


def _run(options: argparse.Namespace) -> None:
    from raddle._sql import planned

    if options.output is not None:
        _check_output(options.output, options.force)
    result, tables = planned(options.query, index=True, threads=options.jobs, values=options.values)
    from raddle._sql_output import BINARY

    if options.output is None:
        if options.format in BINARY and sys.stdout.isatty():
            raise UsageError(f"{options.format} is not text: name a file with --output, or redirect the output")
        _write(result, tables, sys.stdout.buffer, options)
        return
    for path in tables.paths:
        if os.path.realpath(options.output) == os.path.realpath(path):
            raise OutputError(f"{options.output}: is also an input ({path}); name another output")
    with _replacing(options.output) as output:
        _write(result, tables, output, options)


def _check_output(path: str, is_forced: bool) -> None:
    """Checks the path of the output before anything is read."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise OutputError(f"{path}: folder {folder} does not exist; create it first")
    if os.path.isdir(path):
        raise OutputError(f"{path}: a folder; name a file")
    if os.path.lexists(path) and not is_forced:
        raise OutputError(f"{path}: exists; use --force to replace it, or name another output")


def _write(result: datafusion.DataFrame, tables: Tables, output: IO[bytes], options: argparse.Namespace) -> None:
    """Writes the result, and prints the number of rows."""
    from raddle._sql_output import write, write_plan, write_table

    computed, kind = _batches(result, tables)
    # An error in the first batch comes before any output.
    first = next(computed, None)
    batches = computed if first is None else itertools.chain([first], computed)
    is_plan = options.format == "table" and kind.names == ["plan_type", "plan"]
    rows, has_more = 0, False
    try:
        if is_plan:
            write_plan(batches, output)
            output.write("".join(f"{line}\n" for line in ["tables:", *(f"  {line}" for line in tables.described())]).encode())
        elif options.format == "table":
            rows, has_more = write_table(batches, kind, output, options.rows)
        else:
            rows = write(batches, kind, output, options.format, is_file=options.output is not None)
        output.flush()
    except RaddleError:
        raise
    except OSError as error:
        raise OutputError(f"{options.output or 'standard output'}: {error.strerror or error}") from error
    if options.quiet or is_plan or options.output is None and options.format != "table":
        return
    count = f"{rows:,} row{'' if rows == 1 else 's'}"
    if has_more:
        _say(f"the first {count}; there are more: --rows N prints N, and --format or --output writes all")
    else:
        _say(count if options.output is None else f"{options.output}: {count}")


def _batches(result: datafusion.DataFrame, tables: Tables) -> tuple[Iterator[Any], Any]:
    """Returns the batches of a result, and their schema."""

    def raised(error: Exception) -> RaddleError:
        if tables.error is not None:
            return tables.error
        text = str(error).removeprefix("DataFusion error: ")
        return LimitError(text) if text.startswith("Resources exhausted") else UsageError(f"the query failed: {text}")

    def batches() -> Iterator[Any]:
        try:
            for batch in result.execute_stream():
                yield batch.to_pyarrow()
        except Exception as error:
            raise raised(error) from error

    return batches(), result.schema()
