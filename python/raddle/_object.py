"""Common base of groups, datasets and committed datatypes, and their attributes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle._completion import Names
from raddle._values import Empty, encoded
from raddle.errors import InputError, ObjectNotFoundError, UnsupportedError

if TYPE_CHECKING:
    from raddle import _core
    from raddle._file import File
    from raddle._group import Group
    from raddle._h5py_file import H5pyFile


class HdfObject:
    """An object of a file: its identifier and the name by which it was found."""

    __slots__ = ("_file", "_number", "name")

    _file: File
    _number: int
    name: str
    """Absolute path by which the object was found."""

    def __init__(self, file: File, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def file(self) -> File:
        """The file."""
        return self._file

    @property
    def parent(self) -> Group:
        """The parent group in the object's name."""
        parent: Group = self._file[posixpath.dirname(self.name)]
        return parent

    @property
    def attrs(self) -> AttributeManager:
        """The attributes."""
        return AttributeManager(self)

    @property
    def ref(self) -> Any:
        """A reference to the object, made by h5py."""
        return through_h5py(self, f"a reference to {self.name}").reference(self.name)

    def _core(self) -> _core.File:
        return self._file._open_core()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HdfObject):
            return NotImplemented
        return self._file._source.path == other._file._source.path and self._number == other._number

    def __hash__(self) -> int:
        return hash((self._file._source.path, self._number))

    def __bool__(self) -> bool:
        return self._file._core_file is not None


class AttributeManager(Mapping[str, Any]):
    """The attributes of an object, read on demand; values are those of h5py."""

    __slots__ = ("_owner",)

    def __init__(self, owner: HdfObject) -> None:
        self._owner = owner

    def __getitem__(self, name: str | bytes) -> Any:
        owner = self._owner
        found = owner._core().attribute(owner._number, encoded(name))
        if found is None:
            raise ObjectNotFoundError(f"{owner.name} has no attribute {name!r}")
        number, shape, values = found
        kind = owner._file._element_type(number)
        if kind.route == "other" or values is None:
            return through_h5py(owner, f"attribute {name!r} of {owner.name}").attribute(owner.name, name)
        if shape is None:
            return Empty(kind.dtype)
        if kind.route == "strings":
            strings = [value.decode("utf-8", "surrogateescape") for value in values]  # type: ignore[union-attr]
            array = np.empty(shape, kind.dtype)
            array.reshape(-1)[:] = strings
        else:
            array = kind.array(shape, values)
        return array[()] if array.ndim == 0 else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner._core().attribute_names(self._owner._number))

    def __len__(self) -> int:
        return len(self._owner._core().attribute_names(self._owner._number))

    def __contains__(self, name: object) -> bool:
        owner = self._owner
        # Raises TypeError for values that are not names, as in h5py.
        return owner._core().attribute(owner._number, encoded(name)) is not None  # type: ignore[arg-type]

    def keys(self) -> KeysView[str]:
        """Names of the attributes."""
        return Names(self)

    def __repr__(self) -> str:
        return f"<Attributes of {self._owner.name!r}: {', '.join(self)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return sorted(self) if self._owner else []


class Datatype(HdfObject):
    """A committed (named) datatype."""

    __slots__ = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in numpy's terms."""
        kind = self._file._element_type(self._core().committed(self._number))
        if kind.route == "other":
            return through_h5py(self, f"type {self.name}").type(self.name)
        return kind.dtype

    def __repr__(self) -> str:
        return f'<HDF5 named type "{posixpath.basename(self.name)}">'


class Unreadable(HdfObject):
    """An object that cannot be read, as returned by iteration; access by name raises an exception instead."""

    __slots__ = ()

    @property
    def reason(self) -> str:
        """Reason why it cannot be read."""
        return self._core().reason(self._number)

    def _error(self) -> InputError:
        error = InputError(f"{self._file.filename}: {self.name} cannot be read: {self.reason}")
        error.kind = "damaged"
        return error

    def __repr__(self) -> str:
        return f'<HDF5 object "{posixpath.basename(self.name)}" that cannot be read>'


def through_h5py(owner: HdfObject, what: str) -> H5pyFile:
    """Returns the object's file in h5py."""
    other = owner._file._h5py()
    if other is None:
        raise UnsupportedError(f"{what}: can only be read by h5py; install h5py")
    return other
