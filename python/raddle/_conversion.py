"""Values of one type as another, as libhdf5 converts them: what does not fit is clipped, and fields are matched by name.

Not for values of the type wanted, which are read where they belong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# What x86-64 makes of a NaN, which has no integer, where its own instructions convert: libhdf5 leaves numbers in the machine's
# byte order to them. 0 for all others.
_OF_NAN = {"i4": -(2**31), "i8": -(2**63), "u8": 2**63}


def converted(values: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of the same shape and the type wanted; ``values`` itself where it has it. Fields not in it are zero."""
    wanted = np.dtype(dtype).base
    if values.dtype == wanted:
        return values
    made = np.zeros(values.shape, wanted) if wanted.names else np.empty(values.shape, wanted)
    assign(made, values)
    return made


def assign(target: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Write values into an array of their shape.

    Integers beyond the range of the target's become its least or greatest, floats lose what is behind the point before. Floats
    that are too large for a shorter type become infinite. A NaN becomes the integer that h5py shows on x86-64.
    Fields of the target that the values do not have stay as they are.
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
            # The greatest of 8 bytes is no float: the power of two behind it is.
            target[values >= np.float64(limits.max + 1)] = limits.max
            target[values <= np.float64(limits.min)] = limits.min
            native = source.isnative and wanted.isnative
            target[np.isnan(values)] = _OF_NAN.get(wanted.str[1:], 0) if native else 0


def _within(values: npt.NDArray[Any], wanted: np.dtype[Any]) -> npt.NDArray[Any]:
    """Integers clipped to the range of another type; the values themselves where its range holds theirs."""
    have, limits = np.iinfo(values.dtype), np.iinfo(wanted)
    if limits.min <= have.min and have.max <= limits.max:
        return values
    number = values.dtype.type
    clipped: npt.NDArray[Any] = np.clip(values, number(max(have.min, limits.min)), number(min(have.max, limits.max)))
    return clipped
