"""Scans: the rows of a table that satisfy a condition, found by all cores, in one file or several."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from raddle import _core
from raddle._aggregate import Aggregate
from raddle._arrow import reader as arrow_reader
from raddle._arrow_dataset import dataset
from raddle._conditions import Condition, columns_of, joined, parsed
from raddle._dataset import Dataset
from raddle._group import Group
from raddle._hist import filled
from raddle._partition import rank_and_size, rows_of_rank
from raddle._ranks import Ranks
from raddle._scan_batches import batches
from raddle._scan_files import Piece, check_columns, group_of, row_shape
from raddle._scan_values import nullable, with_values
from raddle._tables import table as as_table
from raddle.errors import UsageError

if TYPE_CHECKING:
    import boost_histogram
    from raddle._file_scan import FileScan

Arrays = dict[str, np.ndarray[Any, Any]]


class Scan:
    """Rows of a table. Methods return new scans; nothing is read before the result is requested.

    The rows of several files follow each other in the order of the files.
    """

    __slots__ = ("_columns", "_condition", "_events", "_group", "_source", "_windows")

    def __init__(self, source: FileScan, group: str) -> None:
        self._source, self._group = source, group
        self._condition: Condition | None = None
        self._columns: tuple[str, ...] | None = None
        self._events: tuple[dict[str, Any], ...] = ()
        # Rows of each file; None for all.
        self._windows: tuple[range, ...] | None = None

    def _but(self, **changed: Any) -> Scan:
        """Returns a copy with other attributes."""
        copy = Scan(self._source, self._group)
        for name in ("_condition", "_columns", "_events", "_windows"):
            setattr(copy, name, changed.get(name, getattr(self, name)))
        return copy

    def __repr__(self) -> str:
        calls = f"[{self._group!r}]"
        if self._condition is not None:
            calls += f".filter({repr(self._condition)!r})"
        if self._events:
            calls += ".where_event(...)"
        if self._windows is not None:
            calls += ".partition(...)"
        if self._columns is not None:
            calls += f".select({', '.join(map(repr, self._columns))})"
        return f"<{repr(self._source).strip('<>')}{calls}>"

    def filter(self, *conditions: Condition | str) -> Scan:
        """Keeps the rows that satisfy all of these conditions and all those of earlier calls.

        A condition may be text: ``"calE > 2 & (run == 1234 | 1 < nhit <= 5)"``. Names that are not plain words are written
        in backticks.

        Parameters
        ----------
        *conditions
            Conditions of columns (`raddle.col`), or strings.
        """
        known = () if self._condition is None else (self._condition,)
        every = [one._data for one in (*known, *map(parsed, conditions))]
        combined = None if not every else Condition(every[0]) if len(every) == 1 else joined("and", every)
        return self._but(_condition=combined)

    def where_event(self, *others: Scan, key: str | None = None) -> Scan:
        """Keeps the rows of events that have a row in each of the other scans.

        Parameters
        ----------
        *others
            Scans of other tables of the same files, or of the same table. Events of different files are never the same event.
        key
            Name of the partition key: ``"evt"`` for the datasets ``evt.seq`` and ``evt.offsets`` that ``raddle keys add``
            makes. Default: the only key of the table.
        """
        events = list(self._events)
        for other in others:
            if not isinstance(other, Scan):
                raise UsageError(f"where_event takes scans of tables, not {other!r}")
            if other._source._files is not self._source._files:
                raise UsageError("where_event takes scans of the same open file")
            if other._windows is not None:
                raise UsageError("where_event takes whole tables, not a range of rows")
            condition = None if other._condition is None else other._condition._data
            found = {"table": other._group, "condition": condition, "key": key, "events": list(other._events)}
            events.append(found)
        return self._but(_events=tuple(events))

    def select(self, *columns: str) -> Scan:
        """Returns these columns only.

        Parameters
        ----------
        *columns
            Names of columns, or paths relative to the table. A result has them in this order.
        """
        return self._but(_columns=columns)

    def partition(self, reader: Ranks | SupportsIndex, size: SupportsIndex | None = None, *, key: str | None = None) -> Scan:
        """Keeps the rows of one of several readers, such as the ranks of mpi4py.

        Parameters
        ----------
        reader
            A communicator of mpi4py, or the index of the reader, from 0.
        size
            Number of readers, if ``reader`` is an index.
        key
            Name of the partition key, as for `File.partition`. Default: the only key of the table whose events ascend. All rows
            of an event, also those in other tables, then belong to the same reader. Tables without such a key are divided into
            equal parts.

        Returns
        -------
        Scan
            The share of the reader. It has a part of each file. Each row is in exactly one share.

        Raises
        ------
        raddle.errors.UsageError
            If the scan is already a share, the table has several keys and none is named, or the arguments are not valid.
        raddle.errors.ObjectNotFoundError
            If the table does not have the key.
        """
        if self._windows is not None:
            raise UsageError("the scan is already the share of a reader: call partition once")
        rank, count = rank_and_size(reader, size)
        windows = []
        for number in range(len(self._source._files)):
            with self._source._files.use(number) as opened:
                table = group_of(opened.file, self._group)
                windows.append(rows_of_rank(table, self._source._names(self._group), rank, count, key))
        return self._but(_windows=tuple(windows))

    def _is_whole(self) -> bool:
        return self._condition is None and not self._events and self._windows is None

    def count(self) -> int:
        """The number of rows that satisfy the condition."""
        if self._is_whole():
            return sum(self._row_counts())
        return sum(self._run("count", (), piece=piece)[0] for piece in self._pieces())

    def sum(self, column: str) -> int | float:
        """The exact sum of a column of numbers, whatever the order of rows and the number of threads.

        Parameters
        ----------
        column
            Name of a column with one number per row, or its path relative to the table.

        Returns
        -------
        int or float
            Of integers, the sum without overflow; of floats, the exact sum rounded once. NaN if a value is NaN, 0 without rows.
        """
        return self._aggregate("sum", column).sum()

    def mean(self, column: str) -> float | None:
        """The mean of a column of numbers: the exact sum divided by the number of rows, rounded once.

        Parameters
        ----------
        column
            Name of a column with one number per row, or its path relative to the table.

        Returns
        -------
        float or None
            NaN if a value is NaN, None without rows.
        """
        return self._aggregate("sum", column).mean()

    def min(self, column: str) -> int | float | None:
        """The smallest value of a column of numbers.

        Parameters
        ----------
        column
            Name of a column with one number per row, or its path relative to the table.

        Returns
        -------
        int, float or None
            NaN if a value is NaN, as in numpy; None without rows.
        """
        return self._aggregate("limits", column).min()

    def max(self, column: str) -> int | float | None:
        """The largest value of a column of numbers.

        Parameters
        ----------
        column
            Name of a column with one number per row, or its path relative to the table.

        Returns
        -------
        int, float or None
            NaN if a value is NaN, as in numpy; None without rows.
        """
        return self._aggregate("limits", column).max()

    def _aggregate(self, what: str, column: str) -> Aggregate:
        scan = self._but(_columns=(column,))
        return Aggregate([scan._run(what, (column,), piece=piece) for piece in scan._pieces()])

    def rows(self) -> np.ndarray[Any, Any]:
        """The numbers of these rows, ascending, to index datasets of the table.

        Numbers continue from file to file: the first row of a file follows the last row of the file before.
        """
        counts = self._row_counts()
        if self._is_whole():
            return np.arange(sum(counts), dtype=np.uint64)
        found, before = [], 0
        for piece in self._pieces():
            numbers: np.ndarray[Any, Any] = self._run("read", (), piece=piece, numbered=True)[0]
            numbers += np.uint64(before)
            found.append(numbers)
            before += counts[piece.file]
        return _joined(found)

    def batches(self, rows: int | None = None) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        """Iterates over the columns in successive rows of the table, so that memory does not depend on its length.

        Parameters
        ----------
        rows
            Number of rows of the table that are read for a batch; the batch contains those that match. If it is a multiple of the
            rows per chunk, each chunk is decoded once. Default: the rows whose selected and tested columns take 64 MiB, but at
            least four chunks per thread.

        Yields
        ------
        dict of numpy.ndarray
            The columns as arrays by name, in the order of the table. Batches without a matching row are left out.

        Raises
        ------
        raddle.errors.UsageError
            If ``rows`` is not positive, or no columns are selected.

        Notes
        -----
        `where_event` finds the events once per file, and keeps them as a compressed bitmap.
        """
        if rows is not None and rows < 1:
            raise UsageError(f"rows={rows} is too small: a batch has at least one row")
        if not self._names():
            raise UsageError("no columns: select some")
        return batches(self, rows)

    def hist(self, axes: Mapping[str, Any], *, weight: str | None = None, storage: Any = None) -> boost_histogram.Histogram[Any]:
        """Fills a histogram of columns in `batches`, with all threads; boost-histogram must be installed.

        Parameters
        ----------
        axes
            The axis of each column, in the order of the histogram: ``{"calE": boost_histogram.axis.Regular(50, 0, 5)}``.
            Columns have one value per row; strings need an axis of the type ``StrCategory``.
        weight
            Name of the column with the weight of each row. Default: each row counts once.
        storage
            Storage of the histogram. Default: ``Int64()``, or ``Weight()``, which also has variances, if there are weights.

        Returns
        -------
        boost_histogram.Histogram
            Counts are exact; sums of weights depend on the order of additions in the last digits.

        Raises
        ------
        raddle.errors.UsageError
            If boost-histogram is not installed, or a column does not have one number or text per row.
        raddle.errors.ObjectNotFoundError
            If a column does not exist.

        Examples
        --------
        >>> import boost_histogram as bh  # doctest: +SKIP
        >>> raddle.scan("all.h5")["rec.slc"].filter("run == 1234").hist({"calE": bh.axis.Regular(50, 0, 5)})  # doctest: +SKIP
        """
        return filled(self, axes, weight, storage)

    def to_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """The columns as arrays by name."""
        return self._read()

    def to_pandas(self) -> Any:
        """The columns as a data frame."""
        return as_table(self._read(), "pandas")

    def to_awkward(self) -> Any:
        """The columns as an awkward record array."""
        return as_table(self._read(), "awkward")

    def to_arrow(self) -> Any:
        """The columns as a pyarrow table.

        HDF5 strings become Arrow strings, rows of one element plain values, and rows of several elements lists of fixed size.
        """
        return arrow_reader(self).read_all()

    def to_dataset(self) -> Any:
        """The columns as a pyarrow dataset, to which DuckDB passes the columns and conditions of a query.

        Returns
        -------
        pyarrow.dataset.Dataset
            Each query reads the columns that it needs, in batches. Comparisons with numbers, and equality with strings of fixed
            length, exclude blocks. Results are those of the library.

        Raises
        ------
        raddle.errors.UsageError
            If Arrow has no type for a column, which the message names; ``select`` the others.

        Examples
        --------
        >>> slices = raddle.scan("all.h5")["rec.slc"].to_dataset()  # doctest: +SKIP
        >>> duckdb.sql("SELECT evt FROM slices WHERE run = 1234")  # doctest: +SKIP
        """
        return dataset(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream, read in `batches`, which Polars, DuckDB and other Arrow libraries accept."""
        return arrow_reader(self).__arrow_c_stream__(requested_schema)

    def explain(self) -> dict[str, Any]:
        """What the scan reads: rows, blocks, and how many of them the index excludes, summed over the files."""
        explained: dict[str, Any] = {}
        for piece in self._pieces():
            with self._source._files.use(piece.file):
                one = json.loads(self._run("explain", self._stored(self._columns_of(piece.file)), piece=piece)[-1])
            if not explained:
                explained = one
                continue
            for name, value in one.items():
                if isinstance(value, int):
                    explained[name] += value
            explained["indexed_columns"] = [name for name in explained["indexed_columns"] if name in one["indexed_columns"]]
        return explained

    def _table(self) -> Group:
        return group_of(self._source.file, self._group)

    def _names(self) -> tuple[str, ...]:
        return self._columns if self._columns is not None else self._source._names(self._group)

    def _columns_of(self, number: int, *, is_tested: bool = False, is_used: bool = True) -> dict[str, Dataset]:
        """Returns the columns in one of the files, which have the types of those in the first.

        ``is_tested`` adds the columns of the condition, except misspelt ones, which the compiled part reports. Raises InputError for a
        column whose values must be chosen, unless it is not used.
        """
        names, table, values = self._names(), self._table(), self._source._values
        needed = (*names, *(name for name in self._tested() if name in table))
        with self._source._files.use(0) as opened:
            columns = with_values(opened, self._group, table._columns(needed), values, is_used=is_used)
        if number:
            with self._source._files.use(number) as opened:
                there = group_of(opened.file, self._group)
                found = there._columns([name for name in needed if name in there])
                expected, columns = columns, with_values(opened, self._group, found, values, is_used=is_used)
                check_columns(self._source.file, opened.file, expected, columns)
        return columns if is_tested else {name: columns[name] for name in names}

    def _nullable(self) -> set[str]:
        """Returns the names of the columns in which NaN stands for a missing value, in any of the files."""
        if self._source._values != "decoded":
            return set()
        return set().union(*(nullable(self._columns_of(number)) for number in range(len(self._source._files))))

    def _tested(self) -> list[str]:
        """Returns the names of the columns of the condition."""
        return [] if self._condition is None else sorted(columns_of(self._condition._data))

    def _stored(self, columns: Mapping[str, Dataset]) -> tuple[str, ...]:
        """Returns the names of columns with values of a fixed number of bytes, of which each row has at least one."""
        has_bytes = {name: column._element_type().route == "bytes" and 0 not in row_shape(column) for name, column in columns.items()}
        return tuple(name for name, column in columns.items() if has_bytes[name] and column._storage()[3])

    def _row_counts(self) -> list[int]:
        """Returns the number of rows in each file."""
        counted = self._counted()
        return [0] * len(self._source._files) if counted is None else self._source._row_counts(self._group, counted)

    def _counted(self) -> str | None:
        """Returns the name of the column whose length is the number of rows of the table; None without columns.

        It is one that is used, or the first.
        """
        return (*self._names(), *self._tested(), *self._source._names(self._group), None)[0]

    def _pieces(self) -> list[Piece]:
        files = range(len(self._source._files))
        return [Piece(number, None if self._windows is None else self._windows[number]) for number in files]

    def _head(self, count: int) -> Scan:
        """Returns a scan of the first rows of the table."""
        windows = []
        for rows in self._row_counts():
            windows.append(range(min(rows, count)))
            count -= len(windows[-1])
        return self._but(_windows=tuple(windows))

    def _search(self, columns: tuple[str, ...], rows: range | None, *, numbered: bool = False) -> str:
        """Returns a search in the form of the compiled part."""
        search = {
            "table": self._group,
            "condition": None if self._condition is None else self._condition._data,
            "columns": list(columns),
            "rows_of": self._counted(),
            "is_numbered": numbered,
            "rows": None if rows is None else {"start": rows.start, "end": max(rows.start, rows.stop)},
            "events": list(self._events),
            "values": self._source._values,
            "threads": self._source._files.threads,
        }
        return json.dumps(search)

    def _run(
        self,
        what: str,
        columns: tuple[str, ...],
        *,
        piece: Piece,
        numbered: bool = False,
        events: _core.QueryEvents | None = None,
    ) -> Any:
        search = self._search(columns, piece.rows, numbered=numbered)
        with self._source._files.use(piece.file) as opened:
            return _core.scan(opened.file._core(), what, search, opened.index, events)

    def _find_events(self, number: int) -> _core.QueryEvents:
        """Returns the events of `where_event` in a file, for several searches."""
        with self._source._files.use(number) as opened:
            return _core.find_events(opened.file._core(), self._search((), None), opened.index)

    def _read(self) -> Arrays:
        parts = [self._read_piece(piece) for piece in self._pieces()]
        # Each part is released as soon as its column has been copied.
        return {name: _joined([part.pop(name) for part in parts]) for name in list(parts[0])}

    def _read_piece(self, piece: Piece, events: _core.QueryEvents | None = None) -> Arrays:
        """Returns the columns in matching rows of a file; ``events`` are those of `where_event`, if they are known."""
        with self._source._files.use(piece.file):
            columns = self._columns_of(piece.file)
            if not columns:
                raise UsageError("no columns: select some")
            stored = self._stored(columns)
            is_whole = self._condition is None and not self._events and piece.rows is None
            values: list[Any] = []
            needs_rows = not is_whole and len(stored) < len(columns)
            if stored or not is_whole:
                rows, values, _ = self._run("read", stored, piece=piece, numbered=needs_rows, events=events)
            arrays: dict[str, Any] = dict.fromkeys(columns)
            for name, read in zip(stored, values):
                column = columns[name]
                base, inner = column.dtype.subdtype or (column.dtype, ())
                arrays[name] = read.view(base).reshape(-1, *row_shape(column), *inner)
            for name, column in columns.items():
                if arrays[name] is None:
                    arrays[name] = column[()] if is_whole else column[rows]
        return arrays


def _joined(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, dtype=arrays[0].dtype)
