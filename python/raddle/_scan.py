"""Scans: the rows of a table that satisfy a condition, found by all cores, in one file or several."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from raddle import _core
from raddle._arrow import reader
from raddle._call import run
from raddle._conditions import Condition, columns_of, parsed
from raddle._dataset import Dataset
from raddle._file import File
from raddle._group import Group
from raddle._keywords import Inputs, Path, given
from raddle._progress import Shown
from raddle._reports import IndexReport
from raddle._scan_batches import batches
from raddle._scan_files import OpenFiles, Piece, check_columns, group_of, paths_of, row_shape
from raddle._tables import table as as_table
from raddle.errors import UsageError

__all__ = ["FileScan", "Scan", "index", "scan"]

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
        """Return a copy with other attributes."""
        copy = Scan(self._source, self._group)
        for name in ("_condition", "_columns", "_events", "_windows"):
            setattr(copy, name, changed.get(name, getattr(self, name)))
        return copy

    def filter(self, *conditions: Condition | str) -> Scan:
        """Keep the rows that satisfy all conditions, and those of earlier calls.

        A condition may be text: ``"calE > 2 & (run == 1234 | 1 < nhit <= 5)"``. Names that are not plain words are written
        in backticks.
        """
        known = () if self._condition is None else (self._condition,)
        every = [one._data for one in (*known, *map(parsed, conditions))]
        combined = None if not every else Condition(every[0] if len(every) == 1 else {"and": every})
        return self._but(_condition=combined)

    def where_event(self, *others: Scan, key: str | None = None) -> Scan:
        """Keep the rows of events that have a row in each of the other scans.

        Parameters
        ----------
        *others
            Scans of other tables of the same files, or of the same table. An event is an event of one file.
        key
            Name of the partition key: ``"evt"`` for the datasets ``evt.seq`` and ``evt.offsets`` that ``raddle keys add``
            makes. Default: the only key of the table.
        """
        events = list(self._events)
        for other in others:
            if other._source._files is not self._source._files:
                raise UsageError("where_event takes scans of the same open file")
            if other._windows is not None:
                raise UsageError("where_event takes whole tables, not a range of rows")
            condition = None if other._condition is None else other._condition._data
            found = {"table": other._group, "condition": condition, "key": key, "events": list(other._events)}
            events.append(found)
        return self._but(_events=tuple(events))

    def select(self, *columns: str) -> Scan:
        """Return these columns only."""
        return self._but(_columns=columns)

    def _is_whole(self) -> bool:
        return self._condition is None and not self._events and self._windows is None

    def count(self) -> int:
        """The number of rows that satisfy the condition."""
        if self._is_whole():
            return sum(self._row_counts())
        return sum(self._run("count", (), piece=piece)[0] for piece in self._pieces())

    def rows(self) -> np.ndarray[Any, Any]:
        """The numbers of these rows, ascending, to index datasets of the table.

        In several files, numbers continue: the first row of a file follows the last one of the file before.
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
        """Iterate over the columns in successive rows of the table, so that memory does not depend on its length.

        Parameters
        ----------
        rows
            Number of rows of the table that are read for a batch, of which it has those that match. A multiple of the
            rows per chunk decodes each chunk once. Default: the rows whose selected and tested columns have 64 MiB, at least
            four chunks per thread.

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
        `where_event` finds the events once per file, and keeps one byte per event in memory.
        """
        if rows is not None and rows < 1:
            raise UsageError(f"rows={rows} is too small: a batch has at least one row")
        if not self._names():
            raise UsageError("no columns: select some")
        return batches(self, rows)

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
        """The columns as a pyarrow table. Texts are strings, and rows of several elements are lists of fixed size."""
        return reader(self).read_all()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream, read in `batches`, which Polars, DuckDB and other libraries of Arrow take."""
        return reader(self).__arrow_c_stream__(requested_schema)

    def explain(self) -> dict[str, Any]:
        """What the scan reads: rows, blocks, and how many of them the index excludes, summed over the files."""
        explained: dict[str, Any] = {}
        for piece in self._pieces():
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

    def _columns_of(self, number: int, *, is_tested: bool = False) -> dict[str, Dataset]:
        """Return the columns in one of the files, which have the types of those in the first.

        ``is_tested`` adds the columns of the condition, except misspelt ones, which the compiled part reports.
        """
        names, table = self._names(), self._table()
        needed = (*names, *(name for name in self._tested() if name in table))
        columns = table._columns(needed)
        if number:
            with self._source._files.use(number) as opened:
                there = group_of(opened.file, self._group)
                expected, columns = columns, there._columns([name for name in needed if name in there])
                check_columns(self._source.file, opened.file, expected, columns)
        return columns if is_tested else {name: columns[name] for name in names}

    def _tested(self) -> list[str]:
        """Return the names of the columns of the condition."""
        return [] if self._condition is None else sorted(columns_of(self._condition._data))

    def _stored(self, columns: Mapping[str, Dataset]) -> tuple[str, ...]:
        """Return the names of columns whose values are fixed bytes."""
        return tuple(name for name, column in columns.items() if column._element_type().route == "bytes" and column._storage()[3])

    def _row_counts(self) -> list[int]:
        """Return the number of rows in each file."""
        names = [*self._names(), *self._tested()]
        return self._source._row_counts(self._group, names[0]) if names else [0] * len(self._source._files)

    def _pieces(self) -> list[Piece]:
        files = range(len(self._source._files))
        return [Piece(number, None if self._windows is None else self._windows[number]) for number in files]

    def _run(self, what: str, columns: tuple[str, ...], *, piece: Piece, numbered: bool = False) -> Any:
        rows = piece.rows
        search = {
            "table": self._group,
            "condition": None if self._condition is None else self._condition._data,
            "columns": list(columns),
            "is_numbered": numbered,
            "rows": None if rows is None else {"start": rows.start, "end": max(rows.start, rows.stop)},
            "events": list(self._events),
            "threads": self._source._files.threads,
        }
        with self._source._files.use(piece.file) as opened:
            return _core.scan(opened.file._core(), what, json.dumps(search), opened.index)

    def _read(self) -> Arrays:
        parts = [self._read_piece(piece) for piece in self._pieces()]
        # Each part is released as soon as its column has been copied.
        return {name: _joined([part.pop(name) for part in parts]) for name in list(parts[0])}

    def _read_piece(self, piece: Piece, is_kept: np.ndarray[Any, Any] | None = None) -> Arrays:
        """Return the columns in matching rows of a file, of which ``is_kept`` keeps some, counted from the first of the piece."""
        with self._source._files.use(piece.file):
            columns = self._columns_of(piece.file)
            if not columns:
                raise UsageError("no columns: select some")
            stored = self._stored(columns)
            is_whole = self._condition is None and not self._events and piece.rows is None
            values: list[Any] = []
            needs_rows = not is_whole and (len(stored) < len(columns) or is_kept is not None)
            if stored or not is_whole:
                rows, values, _ = self._run("read", stored, piece=piece, numbered=needs_rows)
            if is_kept is not None and piece.rows is not None:
                is_kept = is_kept[rows - np.uint64(piece.rows.start)]
                rows = rows[is_kept]
            arrays: dict[str, Any] = dict.fromkeys(columns)
            for name, read in zip(stored, values):
                column = columns[name]
                base, inner = column.dtype.subdtype or (column.dtype, ())
                values_of_rows = read.view(base).reshape(-1, *row_shape(column), *inner)
                arrays[name] = values_of_rows if is_kept is None else values_of_rows[is_kept]
            for name, column in columns.items():
                if arrays[name] is None:
                    arrays[name] = column[()] if is_whole else column[rows]
        return arrays


def _joined(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, dtype=arrays[0].dtype)


class FileScan(Mapping[str, Scan]):
    """Tables of one or several files, by the paths of their groups."""

    _files: OpenFiles
    _checked: dict[str, tuple[str, ...]]
    _counts: dict[tuple[str, str], list[int]]

    def __init__(self, files: OpenFiles) -> None:
        self._files, self._checked, self._counts = files, {}, {}

    @property
    def file(self) -> File:
        """The open file; of several, the first."""
        return self._files.first

    @property
    def paths(self) -> list[str]:
        """Paths of the files, in the order of their rows."""
        return list(self._files.paths)

    def __getitem__(self, group: str) -> Scan:
        self._names(group)
        return Scan(self, group)

    def _names(self, group: str) -> tuple[str, ...]:
        """Return the columns of a table, after checking that they are the same in all files."""
        if group in self._checked:
            return self._checked[group]
        columns = _rows_columns(group_of(self.file, group))
        counts: dict[str, list[int]] = {name: [] for name in columns}
        for number in range(len(self._files)):
            with self._files.use(number) as opened:
                found = columns if not number else _rows_columns(group_of(opened.file, group))
                check_columns(self.file, opened.file, columns, found)
                for name, column in found.items():
                    counts[name].append(len(column))
        self._counts.update(((group, name), of_column) for name, of_column in counts.items())
        return self._checked.setdefault(group, tuple(columns))

    def _row_counts(self, group: str, column: str) -> list[int]:
        """Return the number of rows of a column in each file."""
        if (group, column) not in self._counts:
            counts = []
            for number in range(len(self._files)):
                with self._files.use(number) as opened:
                    counts.append(len(group_of(opened.file, group)._columns([column])[column]))
            self._counts[group, column] = counts
        return self._counts[group, column]

    def __iter__(self) -> Iterator[str]:
        return (name for name, found in self.file.items() if isinstance(found, Group))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def __enter__(self) -> FileScan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        paths = self._files.paths
        more = "" if len(paths) == 1 else f" and {len(paths) - 1:,} more"
        return f"<raddle.scan({paths[0]!r}{more})>"


def _rows_columns(table: Group) -> dict[str, Dataset]:
    """Return the columns with one value, or array of values, per row."""
    columns = table._columns(None)
    # Partition keys consist of the event of each row and of datasets with other rows.
    keys = [name.removesuffix(".seq") for name in columns if name.endswith(".seq")]
    others = {f"{key}{ending}" for key in keys for ending in (".seq_cnt", ".offsets")}
    return {name: column for name, column in columns.items() if name not in others}


def scan(path: Inputs, *, index: bool | Path = True, threads: int | None = None) -> FileScan:
    """Open one or several files to search their tables.

    Parameters
    ----------
    path
        An HDF5 file, a pattern such as ``"runs/*.h5"``, or a list of files and patterns. The rows of several files follow
        each other in the order of the list; the files of a pattern are in the order of their names. A table has the
        same columns in all files.
    index
        Whether to use the index beside each file, ``PATH.stats``, if there is one, or the path of an index of one file.
        `raddle.index` writes it. An index of another state of the file is not used, with a warning.
    threads
        Number of threads. Default: the cores available to this process.

    Returns
    -------
    FileScan
        Tables by the path of their group: ``raddle.scan("all.h5")["rec.slc"].filter(raddle.col("calE") > 2)``.

    Raises
    ------
    raddle.errors.InputError
        If a file or an index cannot be read. ``FileScan[...]`` also raises it if the columns of a table are not the same in
        all files.
    raddle.errors.InputNotFoundError
        If a file does not exist, or no file matches a pattern.

    Warns
    -----
    raddle.errors.StaleIndexWarning
        If the index belongs to another state of its file.

    Examples
    --------
    >>> table = raddle.scan("all.h5")["rec.slc"]  # doctest: +SKIP
    >>> found = table.filter((raddle.col("calE") > 2) & (raddle.col("run") == 1234))  # doctest: +SKIP
    >>> found.select("evt", "calE").to_numpy()  # doctest: +SKIP
    """
    return FileScan(OpenFiles(paths_of(path), index, threads))


def index(
    file: Path, *, output: Path | None = None, jobs: int | None = None, progress: Shown = "auto"
) -> IndexReport:
    """Write the index of a file: the limits of each block of rows, with which searches skip blocks.

    Parameters
    ----------
    file
        An HDF5 file. It is not changed.
    output
        The index to write. An existing index is replaced. Default: ``FILE.stats``, which `scan` finds.
    jobs
        Number of threads. Default: the cores available to this process.

    Returns
    -------
    IndexReport

    Raises
    ------
    raddle.errors.InputError
        If the file cannot be read.
    raddle.errors.OutputError
        If the index cannot be written, or would replace something else (also an ``OSError``).

    Examples
    --------
    >>> raddle.index("all.h5")  # doctest: +SKIP
    """
    options, to = given(locals()), None if output is None else os.fspath(output)
    return IndexReport(run(lambda watch: _core.write_index(os.fspath(file), to, options, watch), progress))
