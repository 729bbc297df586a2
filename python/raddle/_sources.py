"""Sources that can be opened: paths, and file objects as paths of this process's descriptors."""

from __future__ import annotations

import io
import os
import shutil
import stat
from typing import IO, Any, Union

from raddle.errors import UsageError

Source = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", IO[bytes]]
"""A path, or an object whose ``read`` returns bytes."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First bytes of HDF5's data."""

_COPY_LEN_BYTES = 1 << 20


class OpenSource:
    """A source, and the path by which this process and its children can open it."""

    __slots__ = ("_descriptor", "folder", "name", "path")

    name: str
    """Name for messages and `repr`: the path as passed by the user."""

    path: str
    """Absolute path for opening it, because the process may change its directory."""

    folder: str
    """Absolute folder of the file, to which relative names of other files refer."""

    def __init__(self, source: Source, name: str | None = None) -> None:
        self._descriptor: int | None = None
        if isinstance(source, bytes) and source.startswith(SIGNATURE):
            raise UsageError("the bytes are the content of a file, not its path; pass io.BytesIO(content)")
        if isinstance(source, (str, bytes, os.PathLike)):
            path = os.fsdecode(source)
            self.name = path if name is None else name
            self.path = _absolute(path)
            self.folder = os.path.dirname(self.path)
            return
        if not callable(getattr(source, "read", None)):
            raise UsageError(f"{source!r} is neither a path nor a file object")
        name = getattr(source, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(source).__name__}>"
        self.folder = os.path.dirname(_absolute(self.name))
        self._descriptor = _descriptor_of(source, self.name)
        # Includes the process number: a separate reader process opens it by the same path.
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def is_path(self) -> bool:
        """Whether other processes can open it by its name."""
        return self._descriptor is None

    def close(self) -> None:
        """Closes the descriptor; files opened by the path stay open."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def _absolute(path: str) -> str:
    # Not `abspath`, which removes "..": a path through a symbolic link would then lead elsewhere.
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _descriptor_of(source: Any, name: str) -> int:
    """A separate descriptor of the file of an object, or of a copy in memory if it has none."""
    # `fileno` alone is not enough: for gzip objects it is the compressed file.
    raw = source if isinstance(source, io.FileIO) else getattr(source, "raw", None)
    if not isinstance(raw, io.FileIO) or not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return _copied(source, name)
    # Data written through the object may still be in its buffer.
    source.flush()
    return os.dup(raw.fileno())


def _copied(source: Any, name: str) -> int:
    if getattr(source, "seekable", lambda: False)():
        source.seek(0)
    if not isinstance(source.read(0), bytes):
        raise UsageError(f"{name}: opened as text; open it with mode 'rb'")
    descriptor = os.memfd_create("raddle")
    try:
        with open(descriptor, "wb", closefd=False) as copy:
            shutil.copyfileobj(source, copy, _COPY_LEN_BYTES)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
