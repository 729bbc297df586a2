"""Serialisation of h5py values and types as plain bytes, for the process that runs h5py.

A message is a JSON document followed by bytes that the document splits in order. The sending process may have been
compromised by the file it reads, so nothing is unpickled: a message becomes numpy arrays, strings, numbers and h5py
references, or raises `MessageError`. References are sent as the bytes stored in files; h5py recreates them through a
file in memory. Invariant: the memory that `decode` allocates is bounded by the length of the message.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from raddle._values import Empty

# A type in the form of numpy's `dtype.str`.
_PLAIN_TYPE = re.compile(r"[<>|=][a-zA-Z?][0-9]*(\[[0-9a-zA-Z]+\])?")

# Maximum length of an element: HDF5 stores the size of a type in 32 bits.
_MAX_ELEMENT_BYTES = 1 << 32

# Maximum number of dimensions in numpy since version 2; HDF5's is 32.
_MAX_DIMENSIONS = 64

# Maximum length of an array with objects, whose padding is not in the message.
_MAX_ARRAY_BYTES = 1 << 30


class MessageError(Exception):
    """A message that cannot be decoded."""


class Encoder:
    """Encoder of messages: documents of values, and their bytes."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def value(self, value: Any) -> Any:
        """The document of a value returned by h5py: an array, a scalar, a string, a reference, an `h5py.Empty`."""
        import h5py

        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, bytes):
            return ["bytes", self._cut(value)]
        if isinstance(value, h5py.Empty):
            return ["empty", type_document(value.dtype)]
        if isinstance(value, h5py.Reference):
            boxed = np.empty(1, h5py.regionref_dtype if isinstance(value, h5py.RegionReference) else h5py.ref_dtype)
            boxed[0] = value
            return ["item", self._array(boxed)]
        if isinstance(value, np.ndarray):
            return ["array", self._array(value)]
        if isinstance(value, np.generic):
            return ["scalar", self._array(np.asarray(value))]
        raise TypeError(f"a value of type {type(value).__name__} cannot be sent")

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        dtype, shape = array.dtype, list(array.shape)
        if not dtype.hasobject:
            return ["raw", type_document(dtype), shape, self._cut(np.ascontiguousarray(array).reshape(-1).view(np.uint8))]
        if dtype.names is not None:
            return ["fields", type_document(dtype), shape, [self._array(array[name]) for name in dtype.names]]
        document = type_document(dtype)
        items = array.reshape(-1).tolist()
        kinds = set(map(type, items))
        if len(kinds) == 1 and document[1].get("ref") in (kind.__name__ for kind in kinds):
            return ["references", document, shape, self._cut(_stored_references(array.reshape(-1)))]
        if kinds == {bytes}:
            return ["strings", document, shape, [self._lengths(items), self._cut(b"".join(items))]]
        if kinds == {np.ndarray}:
            base = items[0].dtype
            if all(item.ndim == 1 and item.dtype == base and not item.dtype.hasobject for item in items):
                content = [type_document(base), self._lengths(items), self._cut(np.concatenate(items).view(np.uint8))]
                return ["sequences", document, shape, content]
        return ["items", document, shape, [self.value(item) for item in items]]

    def _lengths(self, items: list[Any]) -> int:
        return self._cut(np.fromiter(map(len, items), np.uint64, len(items)))

    def _cut(self, part: Any) -> int:
        length = memoryview(part).nbytes
        if length:
            self.parts.append(part)
        return length


class Decoder:
    """Decoder of documents, which must be decoded in the order in which they were encoded."""

    def __init__(self, data: Any) -> None:
        self._data = memoryview(data)
        self._at = 0

    def value(self, document: Any) -> Any:
        """Decodes the value of a document. Raises MessageError if it is not valid."""
        try:
            return self._value(document)
        except (TypeError, ValueError, KeyError, IndexError, OverflowError, RecursionError, MemoryError) as error:
            raise MessageError(str(error)) from error

    def dtype(self, document: Any) -> np.dtype[Any]:
        """Decodes the type of a document. Raises MessageError if it is not valid."""
        try:
            return dtype_of(document)
        except (TypeError, ValueError, KeyError, IndexError, OverflowError, RecursionError, MemoryError) as error:
            raise MessageError(str(error)) from error

    def _value(self, document: Any) -> Any:
        if document is None or isinstance(document, (bool, int, str)):
            return document
        kind, content = document
        if kind == "bytes":
            return bytes(self._cut(content))
        if kind == "empty":
            return Empty(dtype_of(content))
        array = self._array(content)
        if kind == "item":
            (item,) = array
            return item
        if kind == "scalar" and array.ndim == 0:
            return array[()]
        if kind != "array":
            raise ValueError(f"invalid value of kind {kind!r}")
        return array

    def _array(self, document: Any) -> np.ndarray[Any, Any]:
        kind, described, dimensions, content = document
        dtype, shape = dtype_of(described), _shape(dimensions)
        count = math.prod(shape)
        if kind == "raw":
            if dtype.hasobject or count * dtype.itemsize != content:
                raise ValueError(f"{content} bytes for {count} elements of {dtype}")
            array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, self._cut(content)) if content else np.empty(shape, dtype)
            return array
        if kind == "fields":
            return self._fields(dtype, shape, content)
        if dtype != np.dtype(object):
            raise ValueError(f"objects as {dtype}")
        array = np.empty(count, dtype)
        if kind == "references":
            array[:] = _references_of(self._cut(content), count, dtype)
        elif kind == "strings":
            lengths, length = content
            ends = self._ends(lengths, count, length)
            data = bytes(self._cut(length))
            array[:] = [data[start:end] for start, end in zip([0, *ends], ends)]
        elif kind == "sequences":
            base, lengths, length = content
            item = dtype_of(base)
            ends = self._ends(lengths, count, length, item.itemsize)
            values = np.frombuffer(self._cut(length), item) if ends and ends[-1] else np.empty(0, item)
            for place, (start, end) in enumerate(zip([0, *ends], ends)):
                array[place] = values[start:end].copy()
        elif kind == "items" and isinstance(content, list) and len(content) == count:
            for place, item in enumerate(content):
                array[place] = self._value(item)
        else:
            raise ValueError(f"invalid array of kind {kind!r}")
        return array.reshape(shape)

    def _fields(self, dtype: np.dtype[Any], shape: tuple[int, ...], content: Any) -> np.ndarray[Any, Any]:
        names = dtype.names or ()
        parts = [self._array(part) for part in content]
        # The number of elements is bounded, because each object takes space in the message.
        if not dtype.hasobject or len(parts) != len(names) or any(part.shape[: len(shape)] != shape for part in parts):
            raise ValueError("fields that do not fit their array")
        if math.prod(shape) * dtype.itemsize > _MAX_ARRAY_BYTES:
            raise ValueError(f"an array of {shape} elements of {dtype.itemsize} bytes")
        array = np.zeros(shape, dtype)
        for name, part in zip(names, parts):
            if array[name].shape != part.shape or array[name].dtype != part.dtype:
                raise ValueError(f"field {name!r} does not fit its type")
            array[name] = part
        return array

    def _ends(self, lengths: Any, count: int, length_bytes: Any, item_len_bytes: int = 1) -> list[int]:
        """End of each item, for items with these lengths and this total length."""
        counts = np.frombuffer(self._cut(lengths), np.uint64) if lengths else np.empty(0, np.uint64)
        if len(counts) != count or (counts > len(self._data)).any():
            raise ValueError(f"lengths of {len(counts)} items instead of {count}")
        ends: list[int] = np.cumsum(counts, dtype=np.uint64).tolist()
        if (ends[-1] if ends else 0) * item_len_bytes != length_bytes or not item_len_bytes:
            raise ValueError(f"{length_bytes!r} bytes for items of other lengths")
        return ends

    def _cut(self, length: Any) -> memoryview:
        end = self._at + length
        if not isinstance(length, int) or length < 0 or end > len(self._data):
            raise ValueError(f"{length!r} bytes of a message of {len(self._data)}")
        part, self._at = self._data[self._at : end], end
        return part


def type_document(dtype: np.dtype[Any]) -> list[Any]:
    """The document of a numpy type, including h5py's metadata."""
    if dtype.subdtype is not None:
        base, dimensions = dtype.subdtype
        return ["array", type_document(base), list(dimensions)]
    if dtype.names is not None:
        fields = [[name, type_document(dtype[name]), dtype.fields[name][1]] for name in dtype.names]  # type: ignore[index]
        return ["struct", fields, dtype.itemsize]
    notes: dict[str, Any] = {}
    for key, value in (dtype.metadata or {}).items():
        if key == "vlen":
            notes[key] = value.__name__ if value in (str, bytes) else type_document(np.dtype(value))
        elif key == "ref":
            notes[key] = value.__name__
        elif key == "enum":
            notes[key] = {name: int(number) for name, number in value.items()}
        elif key in ("h5py_encoding", "h5py_opaque"):
            notes[key] = value
    return [dtype.str, notes]


def dtype_of(document: Any) -> np.dtype[Any]:
    """The type of a document. Raises a built-in exception if it is not valid."""
    if document[0] == "array":
        _, base, dimensions = document
        dtype = np.dtype((dtype_of(base), _shape(dimensions)))
    elif document[0] == "struct":
        _, fields, length = document
        names = [name for name, _, _ in fields]
        formats = [dtype_of(described) for _, described, _ in fields]
        # numpy refuses fields that overlap objects.
        dtype = np.dtype({"names": names, "formats": formats, "offsets": [at for _, _, at in fields], "itemsize": length})
    else:
        plain, notes = document
        if not _PLAIN_TYPE.fullmatch(plain):
            raise ValueError(f"invalid type {plain!r}")
        metadata = {key: _note_of(key, note) for key, note in notes.items()}
        dtype = np.dtype(plain, metadata=metadata) if metadata else np.dtype(plain)
    if dtype.itemsize > _MAX_ELEMENT_BYTES:
        raise ValueError(f"elements of {dtype.itemsize} bytes")
    return dtype


def _note_of(key: str, note: Any) -> Any:
    if key == "vlen":
        strings: dict[Any, type] = {"str": str, "bytes": bytes}
        return strings[note] if isinstance(note, str) else dtype_of(note)
    if key == "ref":
        import h5py

        return {"Reference": h5py.Reference, "RegionReference": h5py.RegionReference}[note]
    if key == "enum":
        return {str(name): int(number) for name, number in note.items()}
    if key == "h5py_encoding" and note in ("ascii", "utf-8"):
        return note
    if key == "h5py_opaque" and note is True:
        return True
    raise ValueError(f"invalid metadata {key!r}: {note!r}")


def _shape(dimensions: Any) -> tuple[int, ...]:
    shape = tuple(dimensions)
    if len(shape) > _MAX_DIMENSIONS or any(not isinstance(dim, int) or not 0 <= dim < 1 << 63 for dim in shape):
        raise ValueError(f"dimensions {dimensions!r}")
    return shape


def taken_apart(reference: Any) -> tuple[bytes, bool]:
    """The bytes that a file stores for an h5py reference, and whether it is a region reference; see
    `reference_of`."""
    import h5py

    is_region = isinstance(reference, h5py.RegionReference)
    boxed = np.empty(1, h5py.regionref_dtype if is_region else h5py.ref_dtype)
    boxed[0] = reference
    return _stored_references(boxed), is_region


def reference_of(stored: bytes, is_region: bool) -> Any:
    """The h5py reference that a file stores as these bytes."""
    import h5py

    return _references_of(memoryview(stored), 1, h5py.regionref_dtype if is_region else h5py.ref_dtype)[0]


def _stored_references(references: np.ndarray[Any, Any]) -> bytes:
    """The bytes that a file stores for references, concatenated."""
    stage = _stage(references.dtype, len(references))
    stage[...] = references
    return bytes(stage.id.read_direct_chunk((0,))[1])


def _references_of(stored: memoryview, count: int, dtype: np.dtype[Any]) -> Any:
    """The references that a file stores as these bytes."""
    import h5py

    length = 12 if h5py.check_ref_dtype(dtype) is h5py.RegionReference else 8
    if h5py.check_ref_dtype(dtype) is None or not count or len(stored) != count * length:
        raise ValueError(f"{len(stored)} bytes for {count} references")
    stage = _stage(dtype, count)
    stage.id.write_direct_chunk((0,), bytes(stored))
    return stage[()]


def _stage(dtype: np.dtype[Any], count: int) -> Any:
    """A one-chunk dataset in a file in memory, whose content does not matter: libhdf5 copies references unchanged."""
    import h5py

    global _memory
    if _memory is None:
        _memory = h5py.File("references", "w", driver="core", backing_store=False)
    kind = h5py.check_ref_dtype(dtype).__name__
    if count > 1:
        # Without a name, so that it is deleted with its last user.
        return _memory.create_dataset(None, (count,), dtype, chunks=(count,))
    if kind not in _stages:
        _stages[kind] = _memory.create_dataset(kind, (1,), dtype, chunks=(1,))
    return _stages[kind]


_memory: Any = None
# For a single reference, as most attributes contain.
_stages: dict[str, Any] = {}
