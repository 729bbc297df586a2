"""Tables as Polars lazy frames.

Polars passes on its condition and columns. The comparisons in the condition become a condition of a scan, which excludes no
row that Polars would keep. Polars then evaluates the whole condition on what was read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle._conditions import Condition
from raddle._file_scan import scan
from raddle._keywords import Inputs, Path, Values
from raddle._scan import Scan
from raddle._scan_files import row_shape
from raddle._supersets import MIRRORED, Columns, both, either
from raddle._tables import flat
from raddle.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

_COMPARISONS = {"Gt": ">", "GtEq": ">=", "Lt": "<", "LtEq": "<=", "Eq": "=="}


def scan_polars(
    path: Inputs, table: str, *, index: bool | Path = True, threads: int | None = None, values: Values | None = None
) -> pl.LazyFrame:
    """A table as a Polars lazy frame, which passes the conditions and columns of a query on to raddle.

    Parameters
    ----------
    path, index, threads
        As for `scan`.
    table
        Path of the group.
    values
        Values of netCDF variables, as for `scan`: ``"stored"`` or ``"decoded"``, in which missing values are null. Default: a query that
        uses a column for which this makes a difference is refused, with an exception of Polars that has raddle's message.

    Returns
    -------
    polars.LazyFrame
        Datasets of several dimensions are arrays, strings are ``pl.String``.

    Raises
    ------
    raddle.errors.ObjectNotFoundError
        If no group has this path.
    raddle.errors.UsageError
        If Polars has no type for a dataset, which the message names. A later ``select`` does not help: the group must not
        contain the dataset.

    Examples
    --------
    >>> frame = raddle.scan_polars("all.h5", "rec.slc")  # doctest: +SKIP
    >>> frame.filter(pl.col("calE") > 2).select("evt", "calE").collect()  # doctest: +SKIP
    """
    from polars.io.plugins import register_io_source

    rows = scan(path, index=index, threads=threads, values=values)[table]
    schema, comparable = _frame(_empty(rows)).schema, Columns(rows)

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _batch: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(schema) if columns is None else columns
        # Polars evaluates the whole condition, which needs its columns.
        needed = [] if predicate is None else [name for name in predicate.meta.root_names() if name not in wanted]
        found = rows.select(*wanted, *needed)
        if n_rows is not None:
            # A condition that Polars passes with a number of rows applies to these rows.
            found = found._head(n_rows)
        if predicate is not None and (condition := _condition(predicate, comparable)) is not None:
            found = found.filter(condition)
        nullable = found._nullable()
        # Polars does not accept a stream without frames.
        for arrays in itertools.chain([_empty(found)], found.batches()):
            frame = _frame(arrays, nullable)
            yield (frame if predicate is None else frame.filter(predicate)).select(wanted)

    return register_io_source(read, schema=schema, validate_schema=True)


def _empty(rows: Scan) -> dict[str, Any]:
    """Returns the columns of a table without rows."""
    columns = rows._columns_of(0, is_used=False).items()
    return {name: np.empty((0, *row_shape(column)), column.dtype) for name, column in columns}


def _frame(arrays: dict[str, Any], nullable: Set[str] = frozenset()) -> pl.DataFrame:
    """Returns columns as a data frame, with nulls for NaN in ``nullable`` columns."""
    import polars as pl

    return pl.DataFrame({name: _series(pl, name, values, name in nullable) for name, values in arrays.items()})


def _series(pl: Any, name: str, values: np.ndarray[Any, Any], is_nullable: bool) -> Any:
    values = flat(values)
    if values.dtype.kind in "SO":
        try:
            strings = [text.decode() if isinstance(text, bytes) else text for text in values.reshape(-1).tolist()]
        except UnicodeDecodeError as error:
            raise UsageError(f"{name}: some strings are not UTF-8; select other columns, or use raddle.scan") from error
        if values.ndim > 1 or not all(isinstance(text, str) for text in strings):
            raise UsageError(f"{name}: Polars has no type for these values; use raddle.scan")
        return pl.Series(name, strings, dtype=pl.String)
    if values.dtype.kind not in "biuf":
        raise UsageError(f"{name}: Polars has no type for {values.dtype}; use raddle.scan")
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    if native.ndim == 1:
        return pl.Series(name, native, nan_to_null=is_nullable)
    inner = pl.Series(native[:0].reshape(-1)).dtype
    arrays = pl.Series(name, native.reshape(len(native), *native.shape[1:]), dtype=pl.Array(inner, native.shape[1:]))
    if not is_nullable:
        return arrays
    # Polars makes no nulls of NaN in arrays of numpy.
    return pl.Series(name, native.reshape(-1), nan_to_null=True).reshape(native.shape)


def _condition(predicate: pl.Expr, columns: Columns) -> Condition | None:
    """Returns a condition that holds wherever a Polars condition does; None if nothing is known about the latter."""
    import warnings

    with warnings.catch_warnings():
        # Polars calls the form unstable, so anything unexpected gives no condition.
        warnings.simplefilter("ignore")
        try:
            return _understood(json.loads(predicate.meta.serialize(format="json")), columns)
        except RecursionError:
            # Each of hundreds of comparisons is inside the next one.
            return None


def _understood(expression: Any, columns: Columns) -> Condition | None:
    try:
        [(kind, content)] = expression.items()
        if kind != "BinaryExpr":
            return None
        left, right, name = content["left"], content["right"], content["op"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if name in ("And", "LogicalAnd"):
        return both(_understood(left, columns), _understood(right, columns))
    if name in ("Or", "LogicalOr"):
        return either(_understood(left, columns), _understood(right, columns))
    if name not in _COMPARISONS:
        return None
    comparison = _COMPARISONS[name]
    if _column(left) is None:
        left, right, comparison = right, left, MIRRORED[comparison]
    column, value = _column(left), _value(right)
    if column is None or value is None:
        return None
    return columns.compare_ordered(column, comparison, value)


def _column(expression: Any) -> str | None:
    name = expression.get("Column") if isinstance(expression, dict) else None
    return name if isinstance(name, str) else None


def _value(expression: Any) -> int | float | str | None:
    """Returns the number or text that a Polars literal has; None for anything else."""
    try:
        [literal] = expression["Literal"].values()
        [(kind, value)] = literal.items()
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and kind.startswith(("Int", "UInt", "Float"))
    if not is_number and not (kind == "String" and isinstance(value, str)):
        return None
    found: int | float | str = value
    return found
