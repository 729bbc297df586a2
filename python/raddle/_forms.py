"""Conversion of awkward arrays to the forms of products in the compiled part, with their arrays in its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from raddle.errors import UsageError

Arrays = list[npt.NDArray[Any]]


def flattened(arrays: Any, classes: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[Arrays], int]:
    """Products, the arrays of each, and the number of events, from an array of records or a mapping of arrays.

    ``classes`` maps products to the names of their classes.
    """
    import awkward as ak

    if isinstance(arrays, Mapping):
        named = {str(name): ak.Array(_native(array)) for name, array in arrays.items()}
    else:
        whole = ak.Array(_native(arrays))
        if not ak.fields(whole):
            raise UsageError(f"an array of type {whole.type} has no named fields; pass a dict of arrays")
        named = {name: whole[name] for name in ak.fields(whole)}
    absent = classes.keys() - named.keys()
    if absent:
        raise UsageError(f"unknown products in `classes`: {', '.join(sorted(absent))}")
    lengths = {name: len(array) for name, array in named.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"arrays of different lengths: {lengths}")
    products, columns = [], []
    for name, array in named.items():
        column: Arrays = []
        form = _taken_apart(name, ak.to_packed(array).layout, column)
        products.append({"name": name, "class": classes.get(name, ""), "form": form})
        columns.append(column)
    return products, columns, next(iter(lengths.values()), 0)


def _native(array: Any) -> Any:
    """Converts to numpy arrays in native byte order, which awkward requires."""
    is_other = isinstance(array, np.ndarray) and not array.dtype.isnative
    return array.astype(array.dtype.newbyteorder("=")) if is_other else array


def _taken_apart(name: str, layout: Any, arrays: Arrays) -> Any:
    """Returns the form of a packed layout and appends its arrays to ``arrays``."""
    from awkward import contents

    if isinstance(layout, contents.EmptyArray):
        layout = layout.to_NumpyArray(np.dtype(np.float64))
    if isinstance(layout, contents.ListArray):
        layout = layout.to_ListOffsetArray64(True)
    if isinstance(layout, contents.ListOffsetArray):
        offsets = np.asarray(layout.offsets)
        arrays.append(np.ascontiguousarray(offsets - offsets[0], np.uint64))
        content = layout.content[offsets[0] : offsets[-1]]
        kind = layout.parameter("__array__")
        if kind in ("string", "bytestring"):
            arrays.append(_bytes(np.asarray(content.data, np.uint8)))
            return "string" if kind == "string" else {"blob": "root"}
        return {"list": _taken_apart(name, content, arrays)}
    if isinstance(layout, contents.RegularArray):
        if layout.parameter("__array__") in ("string", "bytestring"):
            return _taken_apart(name, layout.to_ListOffsetArray64(True), arrays)
        content = layout.content[: len(layout) * layout.size]
        return {"regular": {"length": layout.size, "content": _taken_apart(name, content, arrays)}}
    if isinstance(layout, contents.RecordArray):
        fields = []
        for field, content in zip(layout.fields, layout.contents, strict=True):
            form = _taken_apart(f"{name}.{field}", content[: len(layout)], arrays)
            fields.append({"name": field, "form": form})
        return {"record": fields}
    if isinstance(layout, contents.NumpyArray):
        return _numbers(name, np.asarray(layout.data), arrays)
    is_categorical = layout.parameter("__array__") == "categorical"
    if layout.is_option and not is_categorical and not np.asarray(layout.mask_as_bool(valid_when=False)).any():
        # Columns of Arrow and Parquet, and numpy's masked arrays, may have missing values but rarely do.
        return _taken_apart(name, layout.project(), arrays)
    if is_categorical and not layout.is_option:
        raise UsageError(f"product {name!r} is categorical: write its values, which ak.from_categorical returns")
    raise UsageError(f"product {name!r} has type {layout.form.type}: missing values and unions cannot be written")


def _numbers(name: str, values: npt.NDArray[Any], arrays: Arrays) -> Any:
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8 or values.dtype == np.float16:
        raise UsageError(
            f"product {name!r} has type {values.dtype}: only bools, integers, float32 and float64 can be written"
        )
    arrays.append(_bytes(np.ascontiguousarray(values, values.dtype.newbyteorder("<"))))
    form: Any = {"number": values.dtype.newbyteorder("=").name}
    for count in reversed(values.shape[1:]):
        form = {"regular": {"length": count, "content": form}}
    return form


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
