"""The process that runs h5py on untrusted files, for data that the compiled part does not decode.

`serve` is run by an interpreter that `raddle._h5py_file` starts. It imports h5py once and forks a process per file,
which answers requests about that file. A file may crash, hang or compromise that process, but cannot affect other files
or the requesting program. Invariant: no answer takes longer than its request allows, and no process uses more memory
than `MEMORY_LIMIT_BYTES`. The system's timers and limits enforce this, because libhdf5 runs while holding Python's
lock.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

from raddle._h5py_values import Encoder, reference_of, type_document

if TYPE_CHECKING:
    import h5py

# Limit on the address space, in addition to what h5py uses before it opens a file.
MEMORY_LIMIT_BYTES = 4 << 30

HEADER = struct.Struct("<4sIQ")
"""Header of every message: a signature, and the lengths of its document and of the bytes after it."""

SIGNATURE = b"RdPy"


def send(channel: socket.socket, document: bytes, parts: list[Any]) -> None:
    """Sends a message."""
    views = [memoryview(part).cast("B") for part in parts]
    channel.sendall(HEADER.pack(SIGNATURE, len(document), sum(view.nbytes for view in views)) + document)
    for view in views:
        channel.sendall(view)


def serve() -> None:
    """Forks a process per file until the requesting program has ended."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    import h5py  # noqa: F401

    try:
        # Importing it registers its filters.
        import hdf5plugin  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        pass
    # Child processes are reaped automatically.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Neither core files nor other files may be written.
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    listener.sendall(b"r")
    while True:
        data, descriptors, _, _ = socket.recv_fds(listener, 1, 1)
        if not data:
            return
        for descriptor in descriptors:
            if os.fork() == 0:
                try:
                    listener.close()
                    _converse(socket.socket(fileno=descriptor))
                finally:
                    # Never return to the loop, whatever happened.
                    os._exit(0)
            os.close(descriptor)


def _converse(channel: socket.socket) -> None:
    """Answers requests about one file, which the first request names."""
    _limit_memory()
    file = None
    shared: memoryview | None = None
    while (question := _received(channel)) is not None:
        # The signals of these timers end a process in any state.
        signal.setitimer(signal.ITIMER_PROF, question["cpu_limit_s"])
        signal.setitimer(signal.ITIMER_REAL, question["wall_limit_s"])
        encoder = Encoder()
        try:
            if file is None:
                file = _opened(question)
            document = {"value": _answer(file, encoder, *question["asked"])}
        except Exception as error:
            document = {"error": type(error).__name__, "message": str(error.args[0] if error.args else error)}
            encoder = Encoder()
        parts = encoder.parts
        if question["shared"] is not None:
            shared = shared or _mapped(*question["shared"])
            parts = _placed(parts, shared, document)
        message = json.dumps(document, separators=(",", ":")).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(channel, message, parts)


def _mapped(path: str, length: int) -> memoryview:
    """Memory shared with the requesting program."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        return memoryview(mmap.mmap(descriptor, length))
    finally:
        os.close(descriptor)


def _placed(parts: list[Any], shared: memoryview, document: dict[str, Any]) -> list[Any]:
    """Parts that must still be sent: none if they fit into shared memory, in which case the document says so."""
    views = [memoryview(part).cast("B") for part in parts]
    length = sum(view.nbytes for view in views)
    if length > len(shared):
        return parts
    at = 0
    for view in views:
        shared[at : at + view.nbytes] = view
        at += view.nbytes
    document["shared"] = length
    return []


def _limit_memory() -> None:
    """Limit the address space to its present size plus `MEMORY_LIMIT_BYTES`."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        # Not Linux; systems without this file do not enforce the limit anyway.
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = used + MEMORY_LIMIT_BYTES
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _received(channel: socket.socket) -> Any:
    """Receives a request, which comes from the requesting program and is trusted; None at the end."""
    header = channel.recv(HEADER.size, socket.MSG_WAITALL)
    if len(header) < HEADER.size:
        return None
    _, length, _ = HEADER.unpack(header)
    question = channel.recv(length, socket.MSG_WAITALL)
    return pickle.loads(question) if len(question) == length else None


def _opened(question: dict[str, Any]) -> h5py.File:
    """Opens the file of the first request as the requesting program would."""
    import h5py

    for name in [name for name in os.environ if name.startswith("HDF5_")]:
        del os.environ[name]
    os.environ.update(question["environment"])
    if question["directory"] is not None:
        os.chdir(question["directory"])
    # libhdf5 cannot open a file without a name.
    source = question["path"] if question["is_path"] else open(question["path"], "rb")
    return h5py.File(source, "r", locking="best-effort")


def _answer(file: h5py.File, encoder: Encoder, what: str, path: str, argument: Any) -> Any:
    """The document of an answer to a request about the object at a path."""
    import h5py

    if what == "name":
        # About the object that a reference points to; the path is ignored.
        name = h5py.h5r.get_name(reference_of(*argument), file.id)
        return None if name is None else name.decode("utf-8", "surrogateescape")
    found = file[path]
    if what == "type":
        return type_document(found.dtype)
    if what == "attribute":
        return encoder.value(found.attrs[argument])
    if what == "values":
        return encoder.value(found[argument])
    if what == "region":
        return encoder.value(found[reference_of(*argument)])
    if what == "fill":
        return encoder.value(found.fillvalue)
    if what == "reference":
        return encoder.value(found.ref)
    if what == "external":
        return found.external
    if what == "sources":
        return [
            [_space_document(source.vspace), source.file_name, source.dset_name, _space_document(source.src_space)]
            for source in found.virtual_sources()
        ]
    raise ValueError(f"unknown request {what!r}")


def _space_document(space: Any) -> list[Any]:
    """Extent and selection of a dataspace."""
    import h5py

    kind = space.get_select_type()
    extent = [list(space.get_simple_extent_dims()), list(space.get_simple_extent_dims(True))]
    if kind == h5py.h5s.SEL_HYPERSLABS:
        if space.is_regular_hyperslab():
            return [*extent, "slab", [list(numbers) for numbers in space.get_regular_hyperslab()]]
        return [*extent, "blocks", space.get_select_hyper_blocklist().tolist()]
    if kind == h5py.h5s.SEL_POINTS:
        return [*extent, "points", space.get_select_elem_pointlist().tolist()]
    return [*extent, "none" if kind == h5py.h5s.SEL_NONE else "all", None]
