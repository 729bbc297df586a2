"""SQL queries, which DataFusion runs on tables of files.

DataFusion evaluates the whole query. The conditions that its optimised plan applies to a table become a condition of the scan.
That condition excludes no row that the query would keep.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from raddle import _core
from raddle._keywords import Values
from raddle._scan_values import check_choice
from raddle.errors import ObjectNotFoundError, RaddleError, UsageError

if TYPE_CHECKING:
    import datafusion
    from raddle._sql_tables import Tables

_READING = {"describe", "desc", "explain", "from", "select", "show", "table", "values", "with"}
"""First words of queries that read."""
NO_FILE = "(no file)"
"""Name that DataFusion gives to the file of a table if the query names none."""
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*|/\*.*?\*/)*(\w*)", re.DOTALL)
_PREFIXES = re.compile(r"\A(?:DataFusion error: |Schema error: |Error during planning: |SQL error: )+")
_EMPTY = ("", "caused by", "DataFusion error: type_coercion")
_UNKNOWN_TABLE = re.compile(r"^table '.*' not found|^Unsupported compound identifier")


def sql(query: str, *, index: bool = True, threads: int | None = None, values: Values | None = None) -> datafusion.DataFrame:
    """Runs an SQL query on tables of HDF5 files; the package datafusion must be installed.

    Parameters
    ----------
    query
        A query in the dialect of DataFusion. A table is named by its file and its group, both in quotes:
        ``"SELECT evt FROM 'all.h5'.'rec.slc' WHERE calE > 2"``. The file may be a pattern such as ``'runs/*.h5'``, whose files are
        searched as one. Names keep their case, and need double quotes if they are not plain words.
    index
        Whether to use the index of each file, ``PATH.stats``, if there is one.
    threads
        Number of threads that read, and of partitions in which DataFusion computes. Default: the cores available to this process.
    values
        Values of netCDF variables, as for `scan`: ``"stored"`` or ``"decoded"``, in which missing values are null. Default: a query that
        uses a column for which this makes a difference is refused.

    Returns
    -------
    datafusion.DataFrame
        The result, which is computed when it is requested: by ``to_pandas``, ``to_polars``, ``to_arrow_table`` or ``to_pydict``, or
        in batches by any library that takes Arrow streams. Rows of several elements are lists.

    Raises
    ------
    raddle.errors.UsageError
        If DataFusion is not installed or refuses the query, or the query writes, or ``values`` is anything else.
    raddle.errors.ObjectNotFoundError
        If a table or a column does not exist.
    raddle.errors.InputError
        If a file cannot be read.

    Warns
    -----
    UserWarning
        If a table has columns for which Arrow has no type. They are left out.
    raddle.errors.StaleIndexWarning
        If an index was written for a different state of its file.

    Notes
    -----
    Each table reads the columns that the query needs. Comparisons with numbers, equality with fixed-length strings and ``isnan`` exclude
    rows and blocks. Results are those of DataFusion, where NaN is the largest number and equals itself. All NaN are passed on as the
    same one, and -0 as 0. If a column has NaN, its ``max`` and ``min`` by groups are refused.

    If a file cannot be read, or values must be chosen, while the result is computed, DataFusion raises an exception of its own with raddle's message.

    Examples
    --------
    >>> raddle.sql("SELECT run, avg(calE) FROM 'all.h5'.'rec.slc' GROUP BY run").to_pandas()  # doctest: +SKIP
    """
    return planned(query, index=index, threads=threads, values=values)[0]


def planned(query: str, *, index: bool, threads: int | None, values: Values | None = None) -> tuple[datafusion.DataFrame, Tables]:
    """Returns the result of a query, and the tables that it reads."""
    try:
        import datafusion as df
    except ImportError as error:
        missing = UsageError("SQL needs the package datafusion")
        missing.hint = "pip install 'raddle[sql]'"
        raise missing from error
    from raddle._sql_tables import Tables

    if threads is not None and threads < 1:
        raise UsageError(f"threads={threads} is too small: give at least 1")
    check_choice(values)
    tables = Tables(index, threads, values)
    config = df.SessionConfig({"datafusion.sql_parser.enable_ident_normalization": "false"})
    config = config.with_target_partitions(threads or _core.default_threads())
    context = df.SessionContext(config.with_default_catalog_and_schema("files", NO_FILE))
    context.register_catalog_provider("files", tables)
    reading = df.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        result = context.sql_with_options(query, reading)
        tables.narrow(result)
    except Exception as error:
        described = _described(query, error)
        if described is error:
            raise
        raise described from error
    return result, tables


def _described(query: str, error: Exception) -> RaddleError:
    """Returns the error of a query that DataFusion refused."""
    if isinstance(error, RaddleError):
        return error
    # The advice of the second line of some messages is about a DataFusion setting.
    lines = [line for line in str(error).split("\n") if line not in _EMPTY and not line.startswith("Column names are case sensitive")]
    text = _PREFIXES.sub("", "\n".join(lines)).replace(f"files.{NO_FILE}.", "")
    match = _FIRST_WORD.match(query)
    word = match[1] if match else ""
    _, _, refused = text.partition(" not supported: ")
    if word and word.lower() not in _READING:
        refused = word.upper()
    if refused:
        return UsageError(f"{refused} is not supported: SQL reads tables, and changes nothing")
    is_unknown = text.startswith("No field named")
    found: RaddleError = (ObjectNotFoundError if is_unknown else UsageError)(text)
    if is_unknown:
        found.hint = "write names in their case, names that are not plain words in double quotes, and strings in single quotes"
    elif _UNKNOWN_TABLE.search(text):
        found.hint = "write a table as its file and its group, both in quotes: FROM 'all.h5'.'rec.slc'"
    return found
