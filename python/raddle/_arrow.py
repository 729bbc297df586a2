"""Columns as Arrow: types, arrays, and streams of record batches.

Each numpy type has one Arrow type, whatever the values. The schema of a stream is therefore known before anything is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle._scan_files import row_shape
from raddle._tables import flat, flat_shape
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._scan import Scan


def reader(scan: Scan) -> Any:
    """Returns a scan as a reader of record batches."""
    import pyarrow  # type: ignore[import-untyped, unused-ignore]

    kind = schema(scan, is_used=True)
    return pyarrow.RecordBatchReader.from_batches(kind, record_batches(scan, kind))


def schema(scan: Scan, *, is_used: bool = False) -> Any:
    """Returns the schema of the columns of a scan.

    Raises UsageError, with the column's name, for a type that Arrow cannot represent, and InputError if the columns are used and the values
    of one must be chosen.
    """
    import pyarrow

    columns = scan._columns_of(0, is_used=is_used)
    return pyarrow.schema([(name, arrow_type(name, column.dtype, row_shape(column))) for name, column in columns.items()])


def record_batches(scan: Scan, kind: Any) -> Iterator[Any]:
    """Yields the batches of a scan as record batches of a schema."""
    import pyarrow

    nullable = scan._nullable()
    for arrays in scan.batches():
        columns = [arrow_array(name, arrays[name], kind.field(name).type, is_nullable=name in nullable) for name in kind.names]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=kind)


def arrow_type(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Returns the Arrow type of a column. A row of one element becomes a plain value, a row of several a list of fixed size."""
    import pyarrow

    base, inner = dtype.subdtype or (dtype, ())
    metadata: Mapping[str, Any] = base.metadata or {}
    vlen = metadata.get("vlen")
    if base.kind == "S" or vlen in (str, bytes):
        kind = pyarrow.string()
    elif _is_number(base):
        kind = pyarrow.from_numpy_dtype(base.newbyteorder("="))
    elif isinstance(vlen, np.dtype) and _is_number(vlen):
        kind = pyarrow.list_(pyarrow.from_numpy_dtype(vlen.newbyteorder("=")))
    else:
        raise UsageError(f"{name}: Arrow has no type for {dtype}; select other columns, or read it with to_numpy")
    lengths = flat_shape((*shape, *inner))
    if 0 in lengths:
        # pyarrow divides by the length.
        raise UsageError(f"{name}: Arrow has no lists of 0 elements; select other columns, or read it with to_numpy")
    for length in reversed(lengths):
        kind = pyarrow.list_(kind, length)
    return kind


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Returns whether values are Booleans or numbers of at most 64 bits, which Arrow can represent. Long doubles have more."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def arrow_array(name: str, values: np.ndarray[Any, Any], kind: Any, *, is_nullable: bool = False) -> Any:
    """Returns values as an Arrow array of the type that `arrow_type` has for them. ``is_nullable`` makes NaN null.

    Raises UsageError, with the column's name, for a string that is not UTF-8.
    """
    import pyarrow

    if not pyarrow.types.is_fixed_size_list(kind):
        values = flat(values)
    if values.ndim > 1:
        items = arrow_array(name, values.reshape(-1, *values.shape[2:]), kind.value_type, is_nullable=is_nullable)
        return pyarrow.FixedSizeListArray.from_arrays(items, type=kind)
    try:
        if values.dtype.kind == "S":
            return _strings(values, kind)
        if values.dtype.kind == "O":
            return pyarrow.array(values.tolist(), kind)
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"{name}: some strings are not UTF-8; select other columns, or read it with to_numpy") from error
    numbers = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    return pyarrow.array(numbers, kind, mask=np.isnan(numbers) if is_nullable else None)


def _strings(values: np.ndarray[Any, Any], kind: Any) -> Any:
    """Returns fixed-length strings as an Arrow array of strings, without trailing zeros."""
    import pyarrow

    lengths = np.char.str_len(values)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    flat = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    data = flat[np.arange(flat.shape[1]) < lengths[:, np.newaxis]]
    strings = pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)])
    strings.validate(full=True)
    return strings
