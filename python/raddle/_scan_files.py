"""Files of a scan, which are read one after the other, with few of them open at a time."""

from __future__ import annotations

import glob
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from raddle import _core
from raddle._call import _level_of_caller, as_paths
from raddle._dataset import Dataset
from raddle._file import File, opened_as
from raddle._group import Group
from raddle._keywords import Inputs, Path
from raddle._tables import flat_shape
from raddle.errors import InputError, InputNotFoundError, ObjectNotFoundError, StaleIndexWarning, UsageError

MAX_OPEN_FILES = 16
"""Maximum number of idle files that stay open."""


def paths_of(files: Inputs) -> list[str]:
    """Returns the paths of files: a path, a pattern such as ``"runs/*.h5"``, or several of them."""
    paths = []
    for name in as_paths(files):
        if glob.has_magic(name) and not os.path.exists(name):
            found = sorted(glob.glob(name, recursive=True))
            if not found:
                raise InputNotFoundError(f"no file matches {name}")
            paths += found
        else:
            paths.append(name)
    if not paths:
        raise UsageError("no files to scan")
    return paths


class Piece(NamedTuple):
    """Rows of one of the files of a scan."""

    file: int
    """Number of the file."""
    rows: range | None
    """Rows of the table in this file; None for all."""


FileState = tuple[int, int, int] | None
"""Inode, length and modification time of a file; None if it does not exist."""


@dataclass
class OpenFile:
    """An open file with its index."""

    file: File
    index: _core.QueryIndex | None
    path: str
    """Absolute path."""
    state: FileState
    """State when the file was opened, to which the index belongs."""
    users: int = 0
    value_types: dict[tuple[str, str, bool], tuple[str | None, bool]] = field(default_factory=dict)
    """Types of the values of columns in scans, and whether NaN stands for a missing value, by table, name, and whether they are used."""


class OpenFiles:
    """Files by number. The first one stays open; of the others, at most `MAX_OPEN_FILES` stay open while nobody uses them."""

    paths: Sequence[str]
    """Paths of the files."""
    threads: int | None
    """Number of threads that read a file; None for the cores available to this process."""

    def __init__(self, paths: Sequence[str], index: bool | Path, threads: int | None, folder: str | None = None) -> None:
        if len(paths) > 1 and not isinstance(index, bool):
            raise UsageError(f"{os.fsdecode(index)} is the index of one file: with several files, index is True or False")
        self.paths, self.threads = paths, threads
        self._index = index
        # Relative paths keep their meaning when the process changes its folder.
        names = paths if isinstance(index, bool) else [*paths, os.fsdecode(index)]
        self._folder = (os.sep if all(map(os.path.isabs, names)) else os.getcwd()) if folder is None else folder
        self._lock = threading.Lock()
        # The most recently used file is the last one.
        self._open_files = {0: self._open(0)}
        self._is_closed = False

    @property
    def first(self) -> File:
        """The first file."""
        return self._open_files[0].file

    def __len__(self) -> int:
        return len(self.paths)

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenFiles, (self.paths, self._index, self.threads, self._folder)

    def use(self, number: int) -> AbstractContextManager[OpenFile]:
        """Opens a file, unless it is open, and keeps it open while the context is active.

        If it has changed since it was opened, its index is no longer used, with a warning.
        """
        with self._lock:
            if self._is_closed:
                raise UsageError(f"{self.paths[number]}: the file is closed")
            used = self._open_files.pop(number, None) or self._open(number)
            self._open_files[number] = used
            if used.index is not None and _state_of(used.path) != used.state:
                used.index = None
                self._warn_of_stale_index(number)
            used.users += 1
        return self._using(used)

    @contextmanager
    def _using(self, used: OpenFile) -> Iterator[OpenFile]:
        """Provides a file, and then closes those that are not needed."""
        try:
            yield used
        finally:
            with self._lock:
                used.users -= 1
                idle = [other for other, opened in self._open_files.items() if other and not opened.users]
                for other in idle if self._is_closed else idle[:-MAX_OPEN_FILES]:
                    self._open_files.pop(other).file.close()

    def close(self) -> None:
        """Closes all files."""
        with self._lock:
            self._is_closed = True
            for opened in self._open_files.values():
                opened.file.close()

    def _open(self, number: int) -> OpenFile:
        path = os.path.join(self._folder, self.paths[number])
        # Before the file is opened: a change in between then counts as a later one.
        state = _state_of(path)
        file = opened_as(path, self.paths[number], self.threads)
        freshness, found = _core.index_of(file._core(), self._index_path()) if self._index else ("missing", None)
        if freshness == "stale":
            self._warn_of_stale_index(number)
        return OpenFile(file, found, path, state)

    def _index_path(self) -> str | None:
        """Returns the path of the index, if it was named."""
        return None if isinstance(self._index, bool) else os.path.join(self._folder, os.fsdecode(self._index))

    def _warn_of_stale_index(self, number: int) -> None:
        path = self._index_path() or self.paths[number] + ".stats"
        text = f"{path} was written for a different state of the file, and is not used: write it again (raddle.index)"
        warnings.warn(text, StaleIndexWarning, stacklevel=_level_of_caller())


def _state_of(path: str) -> FileState:
    """Returns the state of a file, which changes when it is written to or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def group_of(file: File, path: str) -> Group:
    """Returns the group of a table.

    Raises ObjectNotFoundError or UsageError, with the name of the file.
    """
    try:
        found = file[path]
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(f"{file.filename}: {error}") from error
    if not isinstance(found, Group):
        raise UsageError(f"{file.filename}: {path} is not a group of datasets")
    if found.file is not file:
        raise UsageError(f"{file.filename}: {path} is {found.name} of {found.file.filename}, by an external link: scan that file")
    return found


def check_columns(first: File, other: File, expected: Mapping[str, Dataset], found: Mapping[str, Dataset]) -> None:
    """Checks that the columns of a table are the same in two files.

    Raises InputError, with the files, the column and both types.
    """
    for name in dict.fromkeys([*expected, *found]):
        if name in expected and name in found and _are_alike(expected[name], found[name]):
            continue
        here, there = (_type_of(columns[name]) if name in columns else "missing" for columns in (expected, found))
        if here != there:
            column = expected.get(name) or found[name]
            error = InputError(f"{column.name} is {here} in {first.filename}, and {there} in {other.filename}")
            error.hint = "scan files of one kind, or merge them with raddle.merge, which converts what it can"
            raise error


def row_shape(column: Dataset) -> tuple[int, ...]:
    """Returns the shape of a row of a column."""
    return (column.shape or ())[1:]


def table_row_shape(column: Dataset) -> tuple[int, ...]:
    """Returns the shape of a row of a column in a table of another library."""
    return flat_shape(row_shape(column))


def _are_alike(column: Dataset, other: Dataset) -> bool:
    """Returns whether the rows of two columns have one type and shape, which takes less time than their text."""
    here, there = column.dtype, other.dtype
    return here == there and here.metadata == there.metadata and row_shape(column) == row_shape(other)


def _type_of(column: Dataset) -> str:
    """Returns type and shape of a row of a column, as text."""
    metadata: Mapping[str, Any] = column.dtype.metadata or {}
    shape = f" of shape {row_shape(column)}" if row_shape(column) else ""
    return f"{column.dtype}{shape}" + (f" with {dict(metadata)}" if metadata else "")
