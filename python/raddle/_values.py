"""Values and names that stand for themselves: null values, links, names as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


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


def encoded(name: str) -> bytes:
    """A name as the file has it."""
    return name.encode("utf-8", "surrogateescape")
