"""Conversion of values between types as in libhdf5: values out of range are clipped, and fields are matched by name.

Values that already have the requested type are read without this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# The integer that x86-64 instructions give for a NaN. libhdf5 uses these instructions for numbers in native byte order;
# for all others a NaN becomes 0.
_OF_NAN = {"i4": -(2**31), "i8": -(2**63), "u8": 2**63}


def converted(values: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Returns an array of the requested type; ``values`` itself if it has that type. Missing fields become zero."""
    wanted = np.dtype(dtype).base
    if values.dtype == wanted:
        return values
    converted = np.zeros(values.shape, wanted) if wanted.names else np.empty(values.shape, wanted)
    assign(converted, values)
    return converted


def assign(target: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Assigns values to an array of the same shape.

    Integers out of range are clipped to the minimum or maximum of the target type, and floats are truncated first.
    Floats that are too large for a shorter type become infinite. A NaN becomes the integer that h5py shows on x86-64.
    Fields of the target that the values lack are unchanged.
    """
    source, wanted = values.dtype, target.dtype
    if source != wanted and source.names is not None and wanted.names is not None:
        for name in wanted.names:
            if name in source.names:
                assign(target[name], values[name])
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if source.kind in "iu" and wanted.kind in "iu":
            target[...] = _within(values, wanted)
            return
        target[...] = values
        if source.kind == "f" and wanted.kind in "iu":
            limits = np.iinfo(wanted)
            # The maximum of an 8-byte integer is not a float, but the next power of two is.
            target[values >= np.float64(limits.max + 1)] = limits.max
            target[values <= np.float64(limits.min)] = limits.min
            native = source.isnative and wanted.isnative
            target[np.isnan(values)] = _OF_NAN.get(wanted.str[1:], 0) if native else 0


def _within(values: npt.NDArray[Any], wanted: np.dtype[Any]) -> npt.NDArray[Any]:
    """Clips integers to the range of another type; returns the values themselves if its range contains theirs."""
    have, limits = np.iinfo(values.dtype), np.iinfo(wanted)
    if limits.min <= have.min and have.max <= limits.max:
        return values
    number = values.dtype.type
    clipped: npt.NDArray[Any] = np.clip(values, number(max(have.min, limits.min)), number(min(have.max, limits.max)))
    return clipped
