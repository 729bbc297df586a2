"""Values and names that stand for themselves: null values, links, names as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from raddle.errors import UnsupportedError


class Empty:
    """The value of a dataset or attribute without elements (a null dataspace): a type and no shape."""

    __slots__ = ("dtype",)

    shape = None
    size = None

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        # h5py's class of the same name counts as well.
        alike = getattr(other, "shape", 0) is None and getattr(other, "size", 0) is None
        return alike and getattr(other, "dtype", None) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"


class HardLink:
    """A link to an object of the file, as `Group.get` gives it with ``getlink``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<HardLink>"


class SoftLink:
    """A link to a path, as `Group.get` gives it with ``getlink``."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<SoftLink to {self.path!r}>"


class ExternalLink:
    """A link to a path in another file, as `Group.get` gives it with ``getlink``."""

    __slots__ = ("filename", "path")

    def __init__(self, filename: str, path: str) -> None:
        self.filename = filename
        self.path = path

    def __repr__(self) -> str:
        return f"<ExternalLink to {self.path!r} in file {self.filename!r}>"


Link = HardLink | SoftLink | ExternalLink

_LINKS: dict[str, type[Link]] = {"hard": HardLink, "soft": SoftLink, "external": ExternalLink}


def link(described: tuple[Any, ...]) -> Link:
    """The link that the compiled part describes.

    Raises UnsupportedError for one of a kind that a program defined for itself.
    """
    made = _LINKS.get(described[0])
    if made is None:
        raise UnsupportedError("a link of a kind that a program defined for itself")
    # A hard link is described by its object's number, which is no affair of the caller.
    return made() if made is HardLink else made(*described[1:])


def encoded(name: str | bytes) -> bytes:
    """A name as the file has it. Raises TypeError for what is no name."""
    if isinstance(name, bytes):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a name is str or bytes, not {type(name).__name__}")
    return name.encode("utf-8", "surrogateescape")


def shown(name: bytes) -> str:
    """A name of the file as Python's own functions show names."""
    return name.decode("utf-8", "surrogateescape")
