"""A file read by h5py in a separate process, for data that the compiled part does not decode.

Invariant: h5py never opens an input in this process. Every request is answered or refused within the limits of
`_h5py_server`, whatever the file does to libhdf5.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import json
import mmap
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle import _h5py_server as server
from raddle._h5py_values import Decoder, MessageError, taken_apart
from raddle.errors import DamagedError, InputError, ObjectNotFoundError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from raddle._sources import OpenSource

# Length of shared memory for long answers: that of a block (`raddle._dataset`) plus some spare.
SHARED_LEN_BYTES = 68 << 20

# Shorter answers pass through the socket, because a new mapping costs more.
_MIN_SHARED_BYTES = 1 << 20

# Maximum length of an answer: a row may be longer than a block.
_ANSWER_LIMIT_BYTES = 1 << 30

# CPU time of an answer without values: objects are read in milliseconds. Equal to `ChildOptions` of the compiled part.
_CPU_LIMIT_S = 5.0

# Minimum rate at which h5py decodes values, in bytes per second: slower than bzip2, the slowest of the usual filters.
_SLOWEST_BYTES_PER_S = 8 << 20

# Maximum CPU time of an answer, whatever lengths the file claims.
_MAX_CPU_S = 60.0

# Minimum wait for an answer; otherwise twice its CPU time: file systems may be slow, and cores busy.
_WALL_LIMIT_S = 60.0

# Maximum time per open file that may be lost on answers that never come. Beyond it the file is not asked again, because
# it may have many objects that use their full time.
_PATIENCE_S = 10.0

# Time between the limits of the process and its end.
_SLACK_S = 5.0

# h5py exceptions that are raised as the same class. Others are reported as errors of the file.
_SAME = {kind.__name__: kind for kind in (IndexError, TypeError, ValueError, MemoryError, NotImplementedError)}


def is_installed() -> bool:
    """Returns whether h5py is installed."""
    return importlib.util.find_spec("h5py") is not None


class H5pyFile:
    """Client that asks h5py about one file. Requests may come from any thread, and from forked processes.

    ``check_not_replaced`` raises if the path of the source leads to a file other than the one that is read here.
    """

    def __init__(self, source: OpenSource, check_not_replaced: Callable[[], None]) -> None:
        self._source = source
        self._check_not_replaced = check_not_replaced
        self._name = source.name
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._owner = 0
        self._lost_s = 0.0
        self._shared: mmap.mmap | None = None
        self._descriptor: int | None = None
        self._types: dict[str, np.dtype[Any]] = {}

    def close(self) -> None:
        """Ends the process of this file."""
        with self._lock:
            self._end()

    def type(self, path: str) -> np.dtype[Any]:
        """Type of a dataset or a committed datatype."""
        dtype = self._types.get(path)
        if dtype is None:
            document, data = self._ask("type", path)
            try:
                dtype = self._types[path] = Decoder(data).dtype(document)
            except MessageError as error:
                raise self._senseless(error) from error
        return dtype

    def attribute(self, path: str, name: str | bytes) -> Any:
        """Value of an attribute."""
        return self._value("attribute", path, name)

    def values(
        self, path: str, selection: tuple[Any, ...], rows: int, row_len_bytes: int
    ) -> npt.NDArray[Any]:
        """Values of a dataset: h5py's result for a selection of all axes.

        They are requested in blocks of ``rows`` rows of the first axis, each of which takes ``row_len_bytes`` bytes to
        decode.
        """
        if not selection:
            # An Ellipsis, because an empty index would return a scalar.
            return np.asarray(self._value("values", path, ...))
        first, *others = selection
        count = len(range(first.start, first.stop, first.step)) if isinstance(first, slice) else len(first)
        values: npt.NDArray[Any] | None = None
        for start in range(0, max(count, 1), rows):
            end = min(start + rows, count)
            asked = (_part(first, start, end), *others)
            block = np.asarray(self._value("values", path, asked, row_len_bytes * (end - start)))
            if values is None:
                values = np.empty((count, *block.shape[1:]), block.dtype)
            # Copied, because the next answer may overwrite the memory of the block.
            values[start:end] = block
        assert values is not None
        return values

    def region(self, path: str, reference: Any) -> Any:
        """Values of a region of a dataset."""
        return self._value("region", path, taken_apart(reference), _ANSWER_LIMIT_BYTES)

    def fill(self, path: str) -> Any:
        """Fill value of a dataset."""
        return self._value("fill", path)

    def reference(self, path: str) -> Any:
        """A reference to an object."""
        return self._value("reference", path)

    def name_of(self, reference: Any) -> str | None:
        """Path of the object that a reference points to; None if it has none."""
        name: str | None = self._value("name", "/", taken_apart(reference))
        return name

    def external(self, path: str) -> list[tuple[str, int, int]]:
        """Names, offsets and lengths of the external file segments that hold a dataset's values."""
        document, _ = self._ask("external", path)
        return [(str(name), int(offset), int(length)) for name, offset, length in document]

    def sources(self, path: str) -> list[Any]:
        """Sources of a virtual dataset, as h5py's tuples."""
        from h5py._hl.vds import VDSmap

        document, _ = self._ask("sources", path)
        return [
            VDSmap(_space(target), str(file), str(dataset), _space(source)) for target, file, dataset, source in document
        ]

    def _value(self, what: str, path: str, argument: Any = None, len_bytes: int = 0) -> Any:
        document, data = self._ask(what, path, argument, len_bytes)
        try:
            return Decoder(data).value(document)
        except MessageError as error:
            raise self._senseless(error) from error

    def _ask(self, what: str, path: str, argument: Any = None, len_bytes: int = 0) -> tuple[Any, memoryview]:
        """The document of an answer and the bytes after it; ``len_bytes`` of values must be decoded to find it."""
        with self._lock:
            if self._lost_s >= _PATIENCE_S:
                raise self._damaged(f"no answer in {self._lost_s:.0f} s; it is not asked again")
            if self._owner != os.getpid():
                # The connection and the shared memory belong to another process, which uses them.
                self._end()
            cpu_limit_s = min(_CPU_LIMIT_S + len_bytes / _SLOWEST_BYTES_PER_S, _MAX_CPU_S)
            wall_limit_s = max(_WALL_LIMIT_S, 2 * cpu_limit_s)
            question = {
                "asked": (what, path, argument),
                "cpu_limit_s": cpu_limit_s,
                "wall_limit_s": wall_limit_s,
                "shared": self._shared_memory() if len_bytes >= _MIN_SHARED_BYTES and what == "values" else None,
            }
            if self._channel is None:
                self._channel, self._owner = _connected(), os.getpid()
                question.update(self._opening())
            started = time.monotonic()
            try:
                self._channel.settimeout(wall_limit_s + _SLACK_S)
                document, data = self._exchanged(self._channel, pickle.dumps(question))
            except (OSError, ValueError, RecursionError) as error:
                self._end()
                elapsed = time.monotonic() - started
                self._lost_s += elapsed
                raise self._damaged(f"{error or 'no answer'} after {elapsed:.1f} s") from error
            except BaseException:
                # An interrupt in the middle of an answer.
                self._end()
                raise
            if "error" in document and "path" in question:
                # The process may not have opened the file. The next one is asked to do so again.
                self._end()
        # Also before an error is raised, which may be that of another file.
        self._check_not_replaced()
        if "error" in document:
            self._raise(str(document["error"]), str(document["message"]))
        if "shared" in document:
            if self._shared is None or not 0 <= int(document["shared"]) <= len(self._shared):
                raise self._damaged("an answer outside the shared memory")
            data = memoryview(self._shared)[: int(document["shared"])]
        return document["value"], data

    def _shared_memory(self) -> tuple[str, int] | None:
        """Shared memory for long answers, and the path under which the other process opens it; None if the system has
        none."""
        if self._shared is None and hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("raddle", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(descriptor, SHARED_LEN_BYTES)
            # If the other process truncated the memory, accessing it would kill this one.
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
            self._shared, self._descriptor = mmap.mmap(descriptor, SHARED_LEN_BYTES), descriptor
        return None if self._shared is None else (f"/proc/{os.getpid()}/fd/{self._descriptor}", SHARED_LEN_BYTES)

    def _opening(self) -> dict[str, Any]:
        try:
            directory = os.getcwd()
        except OSError:
            directory = None
        return {
            "path": self._source.path,
            "is_path": self._source.is_path,
            "directory": directory,
            "environment": {name: value for name, value in os.environ.items() if name.startswith("HDF5_")},
        }

    def _exchanged(self, channel: socket.socket, question: bytes) -> tuple[dict[str, Any], memoryview]:
        server.send(channel, question, [])
        signature, length, data_length = server.HEADER.unpack(_received(channel, server.HEADER.size))
        if signature != server.SIGNATURE or length + data_length > _ANSWER_LIMIT_BYTES:
            raise ValueError(f"an answer of {length + data_length} bytes, beyond the limit of {_ANSWER_LIMIT_BYTES},")
        document = json.loads(bytes(_received(channel, length)))
        if not isinstance(document, dict) or not {"value", "error"} & set(document):
            raise ValueError("an invalid answer")
        return document, _received(channel, data_length)

    def _end(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        # A compromised process may still write to its memory, so the next one gets new memory.
        self._shared = None
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self._end()

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(f"{self._name}: h5py cannot read it: {what}; the file is corrupt or malicious")

    def _senseless(self, error: MessageError) -> DamagedError:
        return self._damaged(f"invalid answer: {error}")

    def _raise(self, kind: str, message: str) -> None:
        if kind == "KeyError":
            raise ObjectNotFoundError(f"{self._name}: {message}")
        if kind in _SAME:
            raise _SAME[kind](message)
        raise InputError(f"{self._name}: h5py: {message}")


def _received(channel: socket.socket, length: int) -> memoryview:
    """Receives ``length`` bytes. Raises OSError if the process has ended."""
    # Untouched memory is not allocated, so a length claimed by the other process costs nothing.
    view = np.empty(length, np.uint8).data
    have = 0
    while have < length:
        count = channel.recv_into(view[have:])
        if not count:
            raise OSError("its process ended without an answer")
        have += count
    return view


class _Server:
    """The process that forks a process per file."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.channel, other = socket.socketpair()
        boot = "import sys; sys.path[:] = sys.argv[2:]; from raddle._h5py_server import serve; serve()"
        arguments = [sys.executable, "-I", "-S", "-c", boot, str(other.fileno()), *filter(None, sys.path)]
        # numpy threads would not survive forking.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        silent = subprocess.DEVNULL
        with other:
            self.process = subprocess.Popen(
                arguments, stdin=silent, stdout=silent, stderr=silent, env=environment, close_fds=True,
                pass_fds=[other.fileno()], start_new_session=True,
            )  # fmt: skip
        self.channel.settimeout(_WALL_LIMIT_S)
        if self.channel.recv(1) != b"r":
            raise OSError(f"{sys.executable} ended before it was ready")

    def close(self) -> None:
        """Ends the process, which holds no other resources."""
        self.channel.close()
        if self.owner == os.getpid():
            self.process.wait(_SLACK_S)


_server: _Server | None = None
_server_lock = threading.Lock()
# Servers of the process that this one was forked from; they are not waited for here.
_inherited: list[_Server] = []


def _after_fork() -> None:
    global _server, _server_lock
    _server_lock = threading.Lock()
    if _server is not None:
        _server.channel.close()
        _inherited.append(_server)
    _server = None


def _at_exit() -> None:
    if _server is not None:
        _server.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


def _connected() -> socket.socket:
    """A connection to a new process for one file."""
    global _server
    with _server_lock:
        for attempt in range(2):
            try:
                if _server is None:
                    _server = _Server()
                ours, theirs = socket.socketpair()
                with theirs:
                    socket.send_fds(_server.channel, [b"f"], [theirs.fileno()])
                return ours
            except OSError as error:
                # The server may have been killed since its last use.
                if _server is not None:
                    _server.close()
                _server = None
                if attempt:
                    raise UnsupportedError(f"h5py cannot be started in a separate process: {error}") from error
    raise AssertionError("the second attempt returns or raises")


def _part(axis: Any, start: int, end: int) -> Any:
    """The selected elements number ``start`` to ``end`` of an axis, which is a slice with start, stop and step, or a
    list."""
    if not isinstance(axis, slice):
        return axis[start:end]
    return slice(axis.start + start * axis.step, axis.start + end * axis.step, axis.step)


def _space(document: Any) -> Any:
    """Creates an h5py dataspace from its extent and selection."""
    from h5py import h5s

    dims, largest, kind, selection = document
    space = h5s.create_simple(tuple(dims), tuple(largest))
    if kind == "none":
        space.select_none()
    elif kind == "points":
        space.select_elements(selection)
    elif kind == "slab":
        start, stride, count, block = (tuple(numbers) for numbers in selection)
        space.select_hyperslab(start, count, stride, block)
    elif kind == "blocks":
        space.select_none()
        for first, last in selection:
            counts = tuple(end - begin + 1 for begin, end in zip(first, last))
            space.select_hyperslab(tuple(first), counts, op=h5s.SELECT_OR)
    return space
