"""HDF5 types as numpy types, equal to those of h5py, and values created from bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

# Form in which the compiled part passes values: the array's bytes, or a list with the bytes of each element; "other":
# not supported, or not the same as in h5py.
Route = Literal["bytes", "strings", "sequences", "other"]

_UTF8 = 1


@dataclass(frozen=True)
class ElementType:
    """A type of the file in Python."""

    dtype: np.dtype[Any]
    route: Route

    def array(self, shape: tuple[int, ...], values: bytes | Sequence[bytes]) -> npt.NDArray[Any]:
        """An array of values passed by the compiled part."""
        array = np.empty(shape, self.dtype)
        if self.route == "bytes":
            if array.nbytes:
                assert isinstance(values, bytes)
                raw_bytes(array)[:] = np.frombuffer(values, np.uint8)
            return array
        flat = array.reshape(-1)
        if self.route == "strings":
            flat[:] = list(values)
        else:
            base = sequence_base(self.dtype)
            for position, value in enumerate(values):
                assert isinstance(value, bytes)
                flat[position] = np.frombuffer(value, base).copy()
        return array


def raw_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)


def sequence_base(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type of the items of a variable-length sequence."""
    assert dtype.metadata is not None
    base: np.dtype[Any] = dtype.metadata["vlen"]
    return base


def element_type(description: tuple[Any, ...], points_elsewhere: bool) -> ElementType:
    """The numpy type for a description from the compiled part."""
    kind = description[0]
    if kind == "variable_string":
        text_class = str if description[1] == _UTF8 else bytes
        return ElementType(np.dtype("O", metadata={"vlen": text_class}), "strings")
    if kind == "sequence":
        base = _plain(description[1])
        if base is not None:
            return ElementType(np.dtype("O", metadata={"vlen": base}), "sequences")
    elif not points_elsewhere:
        plain = _plain(description)
        if plain is not None:
            return ElementType(plain, "bytes")
    return ElementType(np.dtype("O"), "other")


def _plain(description: tuple[Any, ...]) -> np.dtype[Any] | None:
    """The numpy type whose values are the bytes in the file; None if there is none."""
    match description:
        case ("int", length, order, signed):
            return np.dtype(f"{order}{'i' if signed else 'u'}{length}")
        case ("float", length, order):
            return np.dtype(f"{order}f{length}")
        case ("complex", ("float", length, order)) if length in (4, 8):
            return np.dtype(f"{order}c{2 * length}")
        case ("string", length, charset):
            encoding = "utf-8" if charset == _UTF8 else "ascii"
            return np.dtype(f"S{length}", metadata={"h5py_encoding": encoding}) if length else None
        case ("opaque", length, tag):
            return _opaque(length, tag)
        case ("enum", base, symbols):
            return _enumeration(base, symbols)
        case ("array", base, dims):
            item = _plain(base)
            return None if item is None else np.dtype((item, tuple(dims)))
        case ("compound", length, fields):
            return _compound(length, fields)
    return None


def _opaque(length: int, tag: bytes) -> np.dtype[Any] | None:
    if not tag.startswith(b"NUMPY:"):
        return np.dtype(f"V{length}") if length else None
    # h5py stores numpy types that HDF5 lacks, such as times, under a tag.
    try:
        dtype = np.dtype(tag[len(b"NUMPY:") :].decode(), metadata={"h5py_opaque": True})
    except (TypeError, ValueError):
        return None
    if dtype.hasobject:
        # Bytes of a file are not Python objects.
        return np.dtype(f"V{length}")
    return dtype if dtype.itemsize == length else None


def _enumeration(base: tuple[Any, ...], symbols: list[tuple[bytes, bytes]]) -> np.dtype[Any] | None:
    number = _plain(base)
    if number is None or number.kind not in "iu":
        return None
    members = {name.decode(): int(np.frombuffer(value, number)[0]) for name, value in symbols}
    if members == {"FALSE": 0, "TRUE": 1}:
        # libhdf5 converts them unless they have one signed byte.
        return np.dtype(bool) if number == np.dtype("i1") else None
    return np.dtype(number, metadata={"enum": members})


def _compound(length: int, fields: list[tuple[bytes, int, tuple[Any, ...]]]) -> np.dtype[Any] | None:
    names = [name.decode("utf-8", "surrogateescape") for name, _, _ in fields]
    formats = [_plain(description) for _, _, description in fields]
    offsets = [offset for _, offset, _ in fields]
    if any(format is None for format in formats) or not fields:
        return None
    if names == ["r", "i"] and formats[0] == formats[1]:
        part = formats[0]
        assert part is not None
        if part.kind == "f":
            packed = part.itemsize in (4, 8) and offsets == [0, part.itemsize] and length == 2 * part.itemsize
            return np.dtype(f"{part.byteorder}c{length}") if packed else None
    try:
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": length})
    except ValueError:
        # Two members with the same name.
        return None
