"""Columns as tables of the libraries that people use."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from raddle.errors import UsageError

Library = Literal["dict", "numpy", "awkward", "pandas", "cupy"]


def table(arrays: dict[str, npt.NDArray[Any]], library: str) -> Any:
    """The columns as `Group.read_columns` promises them."""
    if library == "dict":
        return arrays
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise UsageError(f"columns of {len(lengths)} lengths make no table; read them as a dict")
    if library == "numpy":
        fields = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
        table = np.empty(lengths.pop() if lengths else 0, fields)
        for name, array in arrays.items():
            table[name] = array
        return table
    if library == "awkward":
        import awkward

        columns = [awkward_column(array) for array in arrays.values()]
        rows = lengths.pop() if lengths else 0
        return awkward.Array(awkward.contents.RecordArray(columns, list(arrays), length=rows))
    if library == "pandas":
        import pandas

        flat = {name: array if array.ndim == 1 else list(array) for name, array in arrays.items()}
        return pandas.DataFrame(flat)
    raise UsageError(f"library {library!r} is none of dict, numpy, awkward, pandas, cupy")


def awkward_column(array: npt.NDArray[Any]) -> Any:
    """A column as awkward's layout: texts and lists of variable length included."""
    import awkward

    if array.dtype == object:
        return awkward.from_iter(array.tolist(), highlevel=False)
    # Awkward's arrays are in the machine's byte order.
    native = array.dtype.newbyteorder("=")
    return awkward.from_numpy(np.ascontiguousarray(array, native), highlevel=False)
