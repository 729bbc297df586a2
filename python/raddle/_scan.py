"""Scans: the rows of a table that satisfy a condition, found by all cores.

Conditions are built from columns with operators, as in Polars, and evaluated by the compiled part.
"""

from __future__ import annotations

import json
import operator
import os
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from raddle import _core
from raddle._call import run
from raddle._file import File
from raddle._file import open as open_file
from raddle._group import Group
from raddle._keywords import Path, given
from raddle._progress import Shown
from raddle._reports import IndexReport
from raddle._tables import table as as_table
from raddle.errors import StaleIndexWarning, UsageError

__all__ = ["Column", "Condition", "FileScan", "Scan", "col", "scan"]


class Condition:
    """A condition on rows. ``&``, ``|`` and ``~`` combine conditions; Python's ``and``, ``or`` and ``not`` cannot."""

    __slots__ = ("_data",)

    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __and__(self, other: Condition) -> Condition:
        return Condition({"and": [self._data, _condition(other)]})

    def __or__(self, other: Condition) -> Condition:
        return Condition({"or": [self._data, _condition(other)]})

    def __invert__(self) -> Condition:
        return Condition({"not": self._data})

    def __bool__(self) -> bool:
        raise UsageError("a condition has no truth value: combine conditions with &, | and ~, each in parentheses")

    def __repr__(self) -> str:
        return _core.condition_text(json.dumps(self._data))


class Column:
    """A column of a table, for conditions: ``raddle.col("energy") > 2``."""

    __slots__ = ("_name",)

    _name: str

    def __init__(self, name: str) -> None:
        self._name = name

    def _compare(self, operator: str, value: Any) -> Condition:
        return Condition({"compare": {"column": self._name, "operator": operator, "value": _literal(value)}})

    def __lt__(self, value: Any) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Condition:
        return self._compare(">=", value)

    def __eq__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def is_between(self, low: Any, high: Any) -> Condition:
        """Whether the value lies between two values, both included."""
        return self.__ge__(low) & self.__le__(high)

    def is_in(self, values: Sequence[Any]) -> Condition:
        """Whether the value is one of some values."""
        return Condition({"or": [(self == value)._data for value in values]})

    def is_nan(self) -> Condition:
        """Whether the value is NaN: only that differs from every number."""
        return Condition({"not": {"or": [(self <= np.inf)._data, (self > np.inf)._data]}})

    def __repr__(self) -> str:
        return f"col({self._name!r})"


def col(name: str) -> Column:
    """A column of a table, for conditions.

    Parameters
    ----------
    name
        Name of the dataset, or its path relative to the table.

    Returns
    -------
    Column
        Compare it with a number, a text or another column: ``(raddle.col("energy") > 2) & (raddle.col("detector") == "near")``.
    """
    return Column(name)


def _condition(other: Any) -> dict[str, Any]:
    if not isinstance(other, Condition):
        raise UsageError(f"{other!r} is not a condition: put each comparison in parentheses")
    return other._data


def _parsed(condition: Condition | str) -> Condition:
    if isinstance(condition, str):
        return Condition(json.loads(_core.condition_of(condition)))
    _condition(condition)
    return condition


def _literal(value: Any) -> dict[str, Any]:
    """Return a value as the compiled part takes it: integers as text, floats by their bits."""
    if isinstance(value, Column):
        return {"column": value._name}
    if isinstance(value, (bytes, np.bytes_)):
        value = value.decode()
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, (bool, np.bool_)):
        return {"integer": str(int(value))}
    if isinstance(value, SupportsIndex):
        return {"integer": str(operator.index(value))}
    if isinstance(value, (float, np.floating)):
        [bits] = struct.unpack("<Q", struct.pack("<d", float(value)))
        return {"float": bits}
    raise UsageError(f"{value!r} cannot be compared with a column: give a number, a text or a column")


class Scan:
    """Rows of a table. Methods return new scans; nothing is read before the result is requested."""

    __slots__ = ("_columns", "_condition", "_events", "_file", "_group", "_window")

    def __init__(self, file: FileScan, group: str) -> None:
        self._file, self._group = file, group
        self._condition: Condition | None = None
        self._columns: tuple[str, ...] | None = None
        self._events: tuple[dict[str, Any], ...] = ()
        self._window: range | None = None

    def _but(self, **changed: Any) -> Scan:
        """Return a copy with other attributes."""
        copy = Scan(self._file, self._group)
        for name in ("_condition", "_columns", "_events", "_window"):
            setattr(copy, name, changed.get(name, getattr(self, name)))
        return copy

    def filter(self, *conditions: Condition | str) -> Scan:
        """Keep the rows that satisfy all conditions, and those of earlier calls.

        A condition may be text: ``"calE > 2 & (run == 1234 | 1 < nhit <= 5)"``. Names that are not plain words are written
        in backticks.
        """
        known = () if self._condition is None else (self._condition,)
        every = [one._data for one in (*known, *map(_parsed, conditions))]
        combined = None if not every else Condition(every[0] if len(every) == 1 else {"and": every})
        return self._but(_condition=combined)

    def where_event(self, *others: Scan, key: str | None = None) -> Scan:
        """Keep the rows of events that have a row in each of the other scans.

        Parameters
        ----------
        *others
            Scans of other tables of this file, or of the same table.
        key
            Name of the partition key: ``"evt"`` for the datasets ``evt.seq`` and ``evt.offsets`` that ``raddle keys add``
            makes. Default: the only key of the table.
        """
        events = list(self._events)
        for other in others:
            if other._file.file is not self._file.file:
                raise UsageError("where_event takes scans of the same open file")
            if other._window is not None:
                raise UsageError("where_event takes whole tables, not a range of rows")
            condition = None if other._condition is None else other._condition._data
            found = {"table": other._group, "condition": condition, "key": key, "events": list(other._events)}
            events.append(found)
        return self._but(_events=tuple(events))

    def select(self, *columns: str) -> Scan:
        """Return these columns only."""
        return self._but(_columns=columns)

    def _is_whole(self) -> bool:
        return self._condition is None and not self._events and self._window is None

    def count(self) -> int:
        """The number of rows that satisfy the condition."""
        if self._is_whole():
            names = self._names()
            return len(self._table()[names[0]]) if names else 0
        count: int = self._run("count", ())[0]
        return count

    def rows(self) -> np.ndarray[Any, Any]:
        """The numbers of these rows, ascending, to index datasets of the table."""
        if self._is_whole():
            return np.arange(self.count(), dtype=np.uint64)
        numbers: np.ndarray[Any, Any] = self._run("read", (), numbered=True)[0]
        return numbers

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
        """The columns as a pyarrow table; datasets of several dimensions become lists of fixed size."""
        import pyarrow  # type: ignore[import-untyped, unused-ignore]

        return pyarrow.table({name: _arrow(pyarrow, array) for name, array in self._read().items()})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as an Arrow stream, which Polars, DuckDB and other libraries of Arrow take."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def explain(self) -> dict[str, Any]:
        """What the scan reads: rows, blocks, and how many of them the index excludes."""
        explanation: dict[str, Any] = json.loads(self._run("explain", self._stored()[0])[-1])
        return explanation

    def _table(self) -> Group:
        found = self._file.file[self._group]
        if not isinstance(found, Group):
            raise UsageError(f"{self._group} is not a group of datasets")
        return found

    def _names(self) -> tuple[str, ...]:
        if self._columns is not None:
            return self._columns
        names = tuple(self._table()._columns(None))
        # What partition keys have beside the event of each row has other rows.
        keys = [name.removesuffix(".seq") for name in names if name.endswith(".seq")]
        beside = {f"{key}{ending}" for key in keys for ending in (".seq_cnt", ".offsets")}
        return tuple(name for name in names if name not in beside)

    def _stored(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Names of the columns whose values are fixed bytes, and all columns by name."""
        columns = self._table()._columns(self._names())
        stored = [name for name, column in columns.items() if column._element_type().route == "bytes" and column._storage()[3]]
        return tuple(stored), columns

    def _run(self, what: str, columns: tuple[str, ...], *, numbered: bool = False) -> Any:
        search = {
            "table": self._group,
            "condition": None if self._condition is None else self._condition._data,
            "columns": list(columns),
            "is_numbered": numbered,
            "rows": None if self._window is None else {"start": self._window.start, "end": self._window.stop},
            "events": list(self._events),
            "threads": self._file._threads,
        }
        return _core.scan(self._file.file._core(), what, json.dumps(search), self._file._index)

    def _read(self) -> dict[str, np.ndarray[Any, Any]]:
        stored, columns = self._stored()
        if not columns:
            raise UsageError("no columns: select some")
        is_whole = self._is_whole()
        if is_whole and not stored:
            rows, values = self.rows(), []
        else:
            has_others = len(stored) < len(columns) and not is_whole
            rows, values, _ = self._run("read", stored, numbered=has_others)
        arrays: dict[str, Any] = dict.fromkeys(columns)
        for name, read in zip(stored, values):
            column = columns[name]
            base, inner = column.dtype.subdtype or (column.dtype, ())
            arrays[name] = read.view(base).reshape(-1, *column.shape[1:], *inner)
        for name, column in columns.items():
            if arrays[name] is None:
                arrays[name] = column[()] if is_whole else column[rows]
        return arrays


def _arrow(pyarrow: Any, array: np.ndarray[Any, Any]) -> Any:
    """Return an array as pyarrow has it."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if array.ndim == 1:
        return pyarrow.array(array)
    flat = _arrow(pyarrow, array.reshape(-1, *array.shape[2:]))
    return pyarrow.FixedSizeListArray.from_arrays(flat, array.shape[1])


class FileScan(Mapping[str, Scan]):
    """Tables of a file, by the paths of their groups."""

    file: File
    """The open file."""
    _index: _core.QueryIndex | None
    _threads: int | None

    def __init__(self, file: File, index: _core.QueryIndex | None, threads: int | None) -> None:
        self.file, self._index, self._threads = file, index, threads

    def __getitem__(self, group: str) -> Scan:
        found = Scan(self, group)
        found._table()
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, found in self.file.items() if isinstance(found, Group))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> FileScan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<raddle.scan({self.file.filename!r})>"


def scan(path: Path, *, index: bool | Path = True, threads: int | None = None) -> FileScan:
    """Open a file to search its tables.

    Parameters
    ----------
    path
        An HDF5 file.
    index
        Whether to use the index beside the file, ``PATH.stats``, if there is one, or the path of an index.
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
        If the file or the index cannot be read.

    Warns
    -----
    raddle.errors.StaleIndexWarning
        If the index belongs to another state of the file.

    Examples
    --------
    >>> table = raddle.scan("all.h5")["rec.slc"]  # doctest: +SKIP
    >>> found = table.filter((raddle.col("calE") > 2) & (raddle.col("run") == 1234))  # doctest: +SKIP
    >>> found.select("evt", "calE").to_numpy()  # doctest: +SKIP
    """
    file = open_file(path, threads=threads)
    named = None if isinstance(index, bool) else os.fspath(index)
    state, found = _core.index_of(file._core(), named) if index else ("missing", None)
    if state == "stale":
        text = f"{named or os.fspath(path) + '.stats'} belongs to another state of the file, and is not used: make it again (raddle.index)"
        warnings.warn(text, StaleIndexWarning, stacklevel=2)
    return FileScan(file, found, threads)


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
