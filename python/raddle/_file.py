"""Files: opening them, and what their objects share."""

from __future__ import annotations

import builtins
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex

from raddle import _core
from raddle._dataset import Dataset
from raddle._group import Group
from raddle._h5py_file import H5pyFile, is_installed
from raddle._object import Datatype, Unreadable
from raddle._partition import Share, share
from raddle._ranks import Ranks
from raddle._sources import SIGNATURE, OpenSource, Source
from raddle._types import ElementType, element_type
from raddle.errors import ObjectNotFoundError, RaddleError, UsageError

if TYPE_CHECKING:
    from raddle._core import _Outline as Outline


def open(path: Source, mode: str = "r", *, threads: int | None = None) -> File:
    """Opens an HDF5 file for reading.

    Parameters
    ----------
    path
        Any HDF5 file, including netCDF-4; or a binary file object, as returned by ``open(path, "rb")``, ``io.BytesIO``
        and ``fsspec``. An object without a file descriptor is first copied into memory as a whole. To read parts of
        remote files, use the references of ``raddle inspect --refs`` instead.
    mode
        Only ``"r"``: files are opened for reading.
    threads
        Number of threads that decode chunks. Default: the cores available to this process.

    Returns
    -------
    File
        The file, which is also its root group and a context manager.

    Raises
    ------
    raddle.errors.InputNotFoundError
        If the file does not exist (also a ``FileNotFoundError``).
    raddle.errors.DamagedError
        If it is not an HDF5 file, or is truncated or damaged (also an ``OSError``).
    raddle.errors.LockedError
        If a program has it open for writing (also a ``BlockingIOError``, as from h5py). ``HDF5_USE_FILE_LOCKING=FALSE`` opens it.
    raddle.errors.UsageError
        If ``mode`` is not ``"r"`` (also a ``ValueError``).

    Notes
    -----
    The metadata is read at once, values on demand. Chunks are decoded without holding the lock of libhdf5 or of Python.
    The file may grow while it is open: its earlier contents can still be read. Values that may have moved because the file
    changed in another way raise an ``InputError``, and the file must be opened again.

    Examples
    --------
    >>> with raddle.open("run.h5") as f:  # doctest: +SKIP
    ...     energy = f["rec/energy"][1000:2000]
    """
    return File(path, mode, threads=threads)


class File(Group):
    """An HDF5 file opened for reading by `raddle.open`. It is also its root group and a context manager."""

    __slots__ = ("_core_file", "_elements", "_h5py_file", "_linked", "_source", "_threads", "filename")

    filename: str
    """Path as passed by the user, or the name of a file object."""

    def __init__(self, path: Source, mode: str = "r", *, threads: int | None = None, name: str | None = None) -> None:
        if mode != "r":
            raise UsageError(f"mode {mode!r}: files are opened for reading only, with mode 'r'; h5py writes")
        if threads is not None and threads < 1:
            raise UsageError(f"threads={threads} is too small")
        self._source = OpenSource(path, name)
        self._threads = threads
        self.filename = self._source.name
        self._core_file: _core.File | None = self._opened(threads)
        self._elements: dict[int, ElementType] = {}
        self._h5py_file: H5pyFile | None = None
        self._linked: dict[str, File] = {}
        super().__init__(self, 0, "/")

    def _opened(self, threads: int | None) -> _core.File:
        """Opens the file; errors name it as the user does."""
        try:
            return _core.File(self._source.path, threads)
        except RaddleError as error:
            for part in ("_message", "details", "hint"):
                if text := getattr(error, part):
                    setattr(error, part, text.replace(self._source.path, self.filename))
            if "://" in self.filename and error.hint is None:
                error.hint = "pass a file object, such as fsspec.open(URL).open(), because paths are those of this machine"
            raise

    @property
    def mode(self) -> str:
        """Always ``"r"``."""
        return "r"

    @property
    def userblock_size(self) -> int:
        """Length of the user block, which precedes HDF5's data, in bytes."""
        # Possible offsets of the signature are 0, 512 and its doubles (format specification, section II.A).
        place = 0
        with builtins.open(self._source.path, "rb") as raw:
            while (found := os.pread(raw.fileno(), len(SIGNATURE), place)) != SIGNATURE:
                if not found:
                    raise UsageError(f"{self.filename} is no longer an HDF5 file")
                place = max(512, 2 * place)
        return place

    def partition(
        self, reader: Ranks | SupportsIndex, size: SupportsIndex | None = None, *, key: str = "evt"
    ) -> Share:
        """Returns the events and the rows of every table that one of several readers takes.

        Parameters
        ----------
        reader
            A communicator of mpi4py, or the index of the reader, from 0.
        size
            Number of readers, if ``reader`` is an index.
        key
            Name of the partition key, or its path in the group with one row per event (``"/spill/evt"``). A path is
            only needed if that group is neither ``/spill`` nor the only group with the key.

        Returns
        -------
        Share
            Events, and rows by group. No reader reads the whole key of a divided group, and none waits for another.

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If the file has no such key; create it with ``raddle keys add``.
        """
        return share(self, reader, size, key)

    def close(self) -> None:
        """Closes the file and the files opened through its external links."""
        self._core_file = None
        if self._h5py_file is not None:
            self._h5py_file.close()
        for file in self._linked.values():
            file.close()
        self._h5py_file, self._linked = None, {}
        self._source.close()

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open_core(self) -> _core.File:
        if self._core_file is None:
            raise UsageError(f"{self.filename}: the file is closed")
        return self._core_file

    def _element_type(self, number: int) -> ElementType:
        found = self._elements.get(number)
        if found is None:
            found = self._elements[number] = element_type(*self._open_core().datatype(number))
        return found

    def _make(self, kind: str, number: int, name: str, outline: Outline | None = None) -> Any:
        if kind == "dataset":
            return Dataset(self, number, name, outline)
        if kind == "group":
            return Group(self, number, name)
        if kind == "datatype":
            return Datatype(self, number, name)
        return Unreadable(self, number, name)

    def _foreign_object(self, filename: bytes, path: bytes, max_links: int) -> Any:
        """The object at the end of an external link; its file stays open as long as this one."""
        other = os.path.join(self._source.folder, os.fsdecode(filename))
        if other not in self._linked:
            try:
                self._linked[other] = File(other, threads=self._threads)
            except OSError as error:
                raise ObjectNotFoundError(f"{other}: {error}") from error
        return self._linked[other]._find(path, max_links)

    def _h5py(self) -> H5pyFile | None:
        """The same file in h5py, running in a separate process; None if h5py is not installed."""
        if self._h5py_file is None and is_installed():
            self._h5py_file = H5pyFile(self._source, self._open_core().check_not_replaced)
        return self._h5py_file

    def __repr__(self) -> str:
        state = "mode r" if self else "closed"
        return f'<HDF5 file "{os.path.basename(self.filename)}" ({state})>'

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._source.is_path:
            raise UsageError(f"{self.filename}: a file opened from a file object cannot be sent to another process")
        return (opened_as, (self._source.path, self._source.name, self._threads))


def opened_as(path: str, name: str, threads: int | None) -> File:
    """Opens a file under the name by which the user knows it, in a process that may have another working directory."""
    return File(path, threads=threads, name=name)


# A forked process has no threads, but would inherit the locks that they held.
os.register_at_fork(
    before=_core.before_fork,
    after_in_parent=_core.after_fork_in_parent,
    after_in_child=_core.after_fork_in_child,
)
