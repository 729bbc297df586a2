"""Null values, links, and names as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from raddle.errors import UnsupportedError


class Empty:
    """The value of a dataset or attribute with a null dataspace: a type without a shape."""

    __slots__ = ("dtype",)

    dtype: np.dtype[Any]
    shape: None = None
    size: None = None

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        # Also equal to h5py's class of the same name.
        alike = getattr(other, "shape", 0) is None and getattr(other, "size", 0) is None
        return alike and getattr(other, "dtype", None) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"


class HardLink:
    """A link to an object of the file, as returned by `Group.get` with ``getlink``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<HardLink>"


class SoftLink:
    """A link to a path, as returned by `Group.get` with ``getlink``."""

    __slots__ = ("path",)

    path: str

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<SoftLink to {self.path!r}>"


class ExternalLink:
    """A link to a path in another file, as returned by `Group.get` with ``getlink``."""

    __slots__ = ("filename", "path")

    filename: str
    path: str

    def __init__(self, filename: str, path: str) -> None:
        self.filename = filename
        self.path = path

    def __repr__(self) -> str:
        return f"<ExternalLink to {self.path!r} in file {self.filename!r}>"


Link = HardLink | SoftLink | ExternalLink

_LINKS: dict[str, type[Link]] = {"hard": HardLink, "soft": SoftLink, "external": ExternalLink}


def link(described: tuple[Any, ...]) -> Link:
    """The link described by the compiled part.

    Raises UnsupportedError for user-defined links.
    """
    link_class = _LINKS.get(described[0])
    if link_class is None:
        raise UnsupportedError("user-defined links are not supported")
    # A hard link is described by its object's identifier, which callers do not need.
    return link_class() if link_class is HardLink else link_class(*described[1:])


def encoded(name: str | bytes) -> bytes:
    """A name as stored in the file. Raises TypeError for values that are not names."""
    if isinstance(name, bytes):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a name must be str or bytes, not {type(name).__name__}")
    return name.encode("utf-8", "surrogateescape")


def decoded(name: bytes) -> str:
    """A name of the file, decoded like Python's file names."""
    return name.decode("utf-8", "surrogateescape")
