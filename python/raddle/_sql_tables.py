"""Tables of files in DataFusion: its catalog, and datasets that read with scans.

Conditions that DataFusion passes to a pyarrow dataset are evaluated by pyarrow, which has other rules for NaN. A table is
therefore a view of a dataset with a limit that no table reaches: DataFusion passes columns through a limit, but not conditions.
The conditions come from its plan, and DataFusion evaluates all of them on what was read.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import datafusion as df
import numpy as np
import pyarrow as pa
import pyarrow.dataset
from datafusion.catalog import CatalogProvider, SchemaProvider, Table
from raddle._arrow import arrow_type, record_batches, schema
from raddle._call import _level_of_caller
from raddle._conditions import Condition
from raddle._file_scan import FileScan, scan
from raddle._group import Group
from raddle._keywords import Values
from raddle._scan_files import row_shape
from raddle._sql import NO_FILE
from raddle._sql_plans import conditions_of_scans, limit_of, order_dependent_columns
from raddle._supersets import Columns, either
from raddle.errors import ObjectNotFoundError, RaddleError, UsageError

if TYPE_CHECKING:
    from raddle._scan import Scan

MAX_BATCH_ROWS = 1 << 16
"""Maximum number of rows of a batch that DataFusion gets: its operators distribute batches to threads."""


@dataclass
class _Query:
    """State that the scans of a query share."""

    without_nan: set[str] = field(default_factory=set)
    """Columns whose NaN would make the result depend on the order of the rows."""
    error: RaddleError | None = None
    """Error of a scan, of which DataFusion keeps only the text."""


class Tables(CatalogProvider):
    """Tables that a query names, by file and group. Files are opened once, when they are first named."""

    def __init__(self, index: bool, threads: int | None, values: Values | None) -> None:
        self._index, self._threads, self._values = index, threads, values
        self._files: dict[str, FileScan] = {}
        self._datasets: list[_Dataset] = []
        self._query = _Query()

    def schema_names(self) -> set[str]:
        return set(self._files)

    def schema(self, name: str) -> SchemaProvider:
        return _FileTables(self, name)

    @property
    def error(self) -> RaddleError | None:
        """Error of a scan, if there was one."""
        return self._query.error

    @property
    def paths(self) -> list[str]:
        """Paths of the files."""
        return [path for file in self._files.values() for path in file.paths]

    def view(self, name: str, group: str) -> Table:
        """Returns a table in the form that DataFusion accepts."""
        if name not in self._files:
            self._files[name] = scan(name, index=self._index, threads=self._threads, values=self._values)
        file = self._files[name]
        try:
            rows = file[group]
        except ObjectNotFoundError as error:
            error.hint = _near(file, group)
            raise
        rows = _with_types_of_arrow(rows, f"{name}: {group}")
        if not rows._names():
            empty = UsageError(f"{name}: {group} has no datasets that can be columns of a table")
            empty.hint = _near(file, group)
            raise empty
        dataset = _Dataset(self._query, f"{name}: {group}", rows)
        self._datasets.append(dataset)
        return Table(df.SessionContext().read_table(Table(dataset)).limit(limit_of(len(self._datasets) - 1)))

    def narrow(self, result: df.DataFrame) -> None:
        """Restricts each table to the rows that the query can need."""
        plan = result.optimized_logical_plan()
        for dataset in self._datasets:
            dataset.planned_scans = 0
        result.execution_plan()
        known = {name for dataset in self._datasets for name in dataset.schema.names}
        self._query.without_nan = order_dependent_columns(plan, known)
        found = conditions_of_scans(plan, [Columns(dataset.scan) for dataset in self._datasets])
        for dataset, conditions in zip(self._datasets, found, strict=True):
            # Subqueries in expressions have scans that are not found.
            if conditions and dataset.planned_scans == len(conditions):
                dataset.condition = reduce(either, conditions)

    def described(self) -> list[str]:
        """Returns a line about each table: the rows that are read, and how many blocks the index excludes."""
        lines = []
        for dataset in self._datasets:
            if dataset.condition is None:
                lines.append(f"{dataset.name}: all rows")
            else:
                explained = dataset.narrowed().explain()
                blocks = f"{explained['pruned_blocks']:,} of {explained['blocks']:,} blocks excluded"
                lines.append(f"{dataset.name}: rows where {dataset.condition}; {blocks}")
        return lines


class _FileTables(SchemaProvider):
    """Tables of a file, or of several that are searched as one."""

    def __init__(self, tables: Tables, name: str) -> None:
        self._tables, self._name = tables, name

    def table_names(self) -> set[str]:
        return set()

    def table_exist(self, name: str) -> bool:
        return self._name != NO_FILE

    def table(self, name: str) -> Table | None:
        # DataFusion reports a table that does not exist.
        return None if self._name in (NO_FILE, "information_schema") else self._tables.view(self._name, name)


class _Dataset(pyarrow.dataset.Dataset):
    """A scan as a dataset of a single fragment, which DataFusion reads."""

    def __init__(self, query: _Query, name: str, rows: Scan) -> None:
        self.query, self.name, self.scan, self._schema = query, name, rows, schema(rows)
        self.condition: Condition | None = None
        self.planned_scans = 0

    @property
    def schema(self) -> Any:
        """Schema of the columns."""
        return self._schema

    def narrowed(self) -> Scan:
        """Returns the scan of the rows that the query can need."""
        return self.scan if self.condition is None else self.scan.filter(self.condition)

    def get_fragments(self, filter: Any = None) -> list[_Dataset]:
        """Returns the fragments: one, because each scan occupies all threads."""
        self.planned_scans += 1
        return [self]

    def scanner(self, _schema: Any = None, *, columns: list[str] | None = None, filter: Any = None, **_: Any) -> _Scanner:
        """Returns a scanner of some columns."""
        if filter is not None:
            # Its rules for NaN would be those of pyarrow.
            raise UsageError(f"a condition reached the scan of a table: {filter}; please report this")
        names = self._schema.names if columns is None else columns
        return _Scanner(self, names)


class _Scanner:
    """Reader of some columns of a dataset."""

    def __init__(self, dataset: _Dataset, names: list[str]) -> None:
        self._dataset, self._names = dataset, names
        self.projected_schema = pa.schema([dataset.schema.field(name) for name in names])

    def to_batches(self) -> Iterator[Any]:
        """Yields the rows as record batches."""
        try:
            rows = self._dataset.narrowed()
            yield from self._batches(rows) if self._names else [_without_columns(rows)]
        except RaddleError as error:
            self._dataset.query.error = error
            raise

    def _batches(self, rows: Scan) -> Iterator[Any]:
        for batch in record_batches(rows.select(*self._names), self.projected_schema):
            for start in range(0, batch.num_rows, MAX_BATCH_ROWS):
                columns = [column.slice(start, MAX_BATCH_ROWS) for column in batch.columns]
                yield pa.RecordBatch.from_arrays(list(map(self._canonical, self._names, columns)), schema=self.projected_schema)

    def _canonical(self, name: str, values: Any) -> Any:
        """Returns values of a column with one NaN and one zero, after checking that they may have NaN."""
        canonical, has_nan = _canonical(values)
        if has_nan and name in self._dataset.query.without_nan:
            raise _order_dependent(self._dataset.name, name)
        return canonical


def _order_dependent(table: str, column: str) -> UsageError:
    error = UsageError(f"{table}: {column} has NaN, and max and min of groups would depend on the order of the rows")
    error.hint = f'leave NaN out: max("{column}") FILTER (WHERE NOT isnan("{column}")), or WHERE NOT isnan("{column}")'
    return error


def _without_columns(rows: Scan) -> Any:
    """Returns a batch that has only a number of rows.

    Raises UsageError if columns differ in their number.
    """
    lengths = {name: sum(rows._source._row_counts(rows._group, name)) for name in rows._names()}
    first, *_ = lengths
    for name, length in lengths.items():
        if length != lengths[first]:
            raise UsageError(f"{rows._group}: {first} has {lengths[first]:,} rows and {name} has {length:,}; count the values of a column")
    return pa.record_batch([pa.nulls(rows.count())], names=["none"]).select([])


def _canonical(values: Any) -> tuple[Any, bool]:
    """Returns an array with one NaN and one zero, and whether it has NaN. Nulls stay.

    DataFusion orders NaN with a sign before all numbers, and distinguishes -0 from 0 in ``IN``, ``CASE`` and ``DISTINCT``.
    """
    kind = values.type
    if pa.types.is_list(kind):
        inner, has_nan = _canonical(values.flatten())
        offsets = values.offsets.to_numpy()
        return pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), inner, type=kind), has_nan
    if pa.types.is_fixed_size_list(kind):
        inner, has_nan = _canonical(values.flatten())
        return pa.FixedSizeListArray.from_arrays(inner, type=kind), has_nan
    if not pa.types.is_floating(kind):
        return values, False
    is_null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    numbers = values.to_numpy(zero_copy_only=is_null is None)
    # Nulls are NaN in numpy.
    is_nan = np.isnan(numbers) if is_null is None else np.isnan(numbers) & ~is_null
    with np.errstate(invalid="ignore"):
        # The sum of -0 and 0 is 0.
        numbers = np.add(numbers, 0, dtype=numbers.dtype)
    if has_nan := bool(is_nan.any()):
        numbers[is_nan] = np.nan
    return pa.array(numbers, kind, mask=is_null), has_nan


def _with_types_of_arrow(rows: Scan, table: str) -> Scan:
    """Returns a table without the columns for which Arrow has no type; a warning names them."""
    columns = rows._columns_of(0, is_used=False)
    unknown = []
    for name, column in columns.items():
        try:
            arrow_type(name, column.dtype, row_shape(column))
        except (UsageError, TypeError):
            # A TypeError: numpy has no type for it, either.
            unknown.append(name)
    if not unknown:
        return rows
    warnings.warn(f"{table}: left out, because Arrow has no type for them: {', '.join(unknown)}", stacklevel=_level_of_caller())
    return rows.select(*(name for name in columns if name not in unknown))


def _near(file: FileScan, group: str) -> str | None:
    """Returns a suggestion of a table with a similar name, or of existing ones."""
    asked = group.strip("/")
    found = file.file.get(asked)
    inside = [f"{asked}/{name}" for name, member in found.items() if isinstance(member, Group)] if isinstance(found, Group) else []
    names = [name for name in file if name != asked]
    near = inside[:10] or difflib.get_close_matches(asked, names, n=3) or names[:10]
    return f"name one of its groups: {', '.join(near)}" if near else None
