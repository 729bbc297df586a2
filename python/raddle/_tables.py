"""Columns as tables of popular libraries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from raddle.errors import UsageError

Library = Literal["dict", "numpy", "awkward", "pandas", "cupy"]


def table(arrays: dict[str, npt.NDArray[Any]], library: str) -> Any:
    """The columns in the form described in `Group.read_columns`."""
    if library == "dict":
        return arrays
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise UsageError(f"columns of {len(lengths)} different lengths are not a table; name columns of equal length, or read a dict")
    if library == "numpy":
        fields = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
        table = np.empty(lengths.pop() if lengths else 0, fields)
        for name, array in arrays.items():
            table[name] = array
        return table
    if library == "awkward":
        import awkward

        columns = [awkward_column(array, name) for name, array in arrays.items()]
        rows = lengths.pop() if lengths else 0
        return awkward.Array(awkward.contents.RecordArray(columns, list(arrays), length=rows))
    if library == "pandas":
        import pandas

        frame: dict[str, Any] = {}
        for name, column in (pair for name, array in arrays.items() for pair in _frame_columns(name, array)):
            if name in frame:
                raise UsageError(f"two columns are called {name!r}: a dataset, and a field of a compound; read one of them")
            frame[name] = column
        return pandas.DataFrame(frame)
    raise UsageError(f"library {library!r} is not one of dict, numpy, awkward, pandas, cupy")


def flat_shape(row: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a row in a table: rows of one element, as in datasets of shape (rows, 1), are plain values."""
    return () if math.prod(row) == 1 else row


def flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values of a column for a table, as `flat_shape` describes."""
    return array.reshape(len(array), *flat_shape(array.shape[1:]))


def _frame_columns(name: str, array: npt.NDArray[Any]) -> Iterator[tuple[str, Any]]:
    """Yields names and values of the columns for a data frame: one per field of a compound, called ``NAME.FIELD``.

    Strings become ``str``, numbers get the byte order of the machine, and rows with several elements become arrays.
    """
    if array.dtype.names is not None:
        for field in array.dtype.names:
            yield from _frame_columns(f"{name}.{field}", array[field])
        return
    array = as_str(flat(array))
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    yield name, array if array.ndim == 1 and array.dtype.kind != "V" else list(array)


def as_str(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns strings as ``str`` in an array of objects; all other values as they are."""
    metadata: Mapping[str, Any] = array.dtype.metadata or {}
    if array.dtype.kind != "S" and metadata.get("vlen") not in (str, bytes):
        return array
    strings = np.empty(array.shape, object)
    strings.reshape(-1)[:] = [text.decode("utf-8", "surrogateescape") for text in array.reshape(-1).tolist()]
    return strings


def awkward_column(array: npt.NDArray[Any], name: str = "a column") -> Any:
    """A column as an awkward layout of the same types, including strings, lists of variable length and compounds.

    Raises UsageError, with the column's name, for a type that awkward cannot represent.
    """
    import awkward

    flat = array if array.ndim == 1 else array.reshape(-1)
    if array.dtype.names is not None:
        fields = [awkward_column(flat[field], f"{field} of {name}") for field in array.dtype.names]
        return _regular(awkward.contents.RecordArray(fields, list(array.dtype.names), length=len(flat)), array.shape)
    if array.dtype != object:
        # Awkward requires native byte order.
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        try:
            return awkward.from_numpy(native, highlevel=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name}: awkward cannot represent {array.dtype}: {error}") from error
    kept: Mapping[str, Any] = array.dtype.metadata or {}
    base = kept.get("vlen")
    if base in (str, bytes):
        content = _content(flat, [np.frombuffer(text, np.uint8) for text in flat], np.dtype(np.uint8), text=True)
    elif isinstance(base, np.dtype) and base.kind in "biufcmM":
        content = _content(flat, list(flat), base)
    else:
        raise UsageError(f"{name}: awkward cannot represent its type; read it as a dict")
    return _regular(content, array.shape)


def _content(flat: npt.NDArray[Any], items: list[npt.NDArray[Any]], base: np.dtype[Any], text: bool = False) -> Any:
    """Lists of variable length as offsets and values."""
    import awkward

    offsets = np.zeros(len(flat) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    native = base.newbyteorder("=")
    values = np.concatenate(items, dtype=native) if items else np.empty(0, native)
    of = {"parameters": {"__array__": "byte"}} if text else {}
    lists = {"parameters": {"__array__": "bytestring"}} if text else {}
    numbers = awkward.contents.NumpyArray(values, **of)
    return awkward.contents.ListOffsetArray(awkward.index.Index64(offsets), numbers, **lists)


def _regular(content: Any, shape: tuple[int, ...]) -> Any:
    """Consecutive elements of an array, as lists of its dimensions after the first."""
    import awkward

    for axis in reversed(range(1, len(shape))):
        length = int(np.prod(shape[:axis], dtype=np.int64))
        content = awkward.contents.RegularArray(content, shape[axis], zeros_length=length)
    return content
