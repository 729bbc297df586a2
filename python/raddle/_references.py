"""References of HDF5 to objects and regions, as h5py holds them, and the objects that they lead to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from raddle.errors import ObjectNotFoundError, UsageError

if TYPE_CHECKING:
    from raddle._file import File


def is_reference(value: Any) -> bool:
    """Whether a value is a reference of h5py, to an object or to a region of one."""
    # Where h5py was never imported there is none.
    h5py = sys.modules.get("h5py")
    return h5py is not None and isinstance(value, h5py.Reference)


def referenced(file: File, reference: Any) -> Any:
    """The object that a reference leads to; of a region, its dataset.

    Raises UsageError for a null reference and ObjectNotFoundError for an object without a name.
    """
    if not reference:
        raise UsageError("a null reference leads to no object")
    other = file._h5py()
    name = None if other is None else other.name_of(reference)
    if name is None:
        raise ObjectNotFoundError(f"{file.filename}: the reference leads to no object that has a name")
    return file[name]
