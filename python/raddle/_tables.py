"""Columns as tables of the libraries that people use."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from raddle.errors import UsageError

Library = Literal["dict", "numpy", "awkward", "pandas"]


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

        return awkward.Array(arrays)
    if library == "pandas":
        import pandas

        flat = {name: array if array.ndim == 1 else list(array) for name, array in arrays.items()}
        return pandas.DataFrame(flat)
    raise UsageError(f"library {library!r} is none of dict, numpy, awkward, pandas")
