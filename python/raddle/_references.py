"""HDF5 references to objects and regions, in the form of h5py, and the objects they point to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from raddle.errors import ObjectNotFoundError, UsageError

if TYPE_CHECKING:
    from raddle._file import File


def is_reference(value: Any) -> bool:
    """Returns whether a value is an h5py reference to an object or a region."""
    # If h5py was never imported, there are no references.
    h5py = sys.modules.get("h5py")
    return h5py is not None and isinstance(value, h5py.Reference)


def referenced(file: File, reference: Any) -> Any:
    """The object that a reference points to; for a region, its dataset.

    Raises UsageError for a null reference and ObjectNotFoundError for an object without a name.
    """
    if not reference:
        raise UsageError("a null reference does not point to an object")
    other = file._h5py()
    name = None if other is None else other.name_of(reference)
    if name is None:
        raise ObjectNotFoundError(f"{file.filename}: the reference does not point to an object with a name")
    return file[name]
