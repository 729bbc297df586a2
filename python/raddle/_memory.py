"""Arrays that are about to be read into.

The kernel clears every new page before it is written, which costs less in large pages (2 MiB). numpy asks for these
where an array has 4 MiB or more, so smaller ones that are read together share memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Bytes from which numpy asks for large pages itself.
_LARGE = 4 << 20
# Bytes of an allocation that arrays share: it is freed when the last of them is.
_SHARED = 32 << 20
# Bytes to whose multiples arrays lie: a line of the cache, and the widest vector.
_ALIGNMENT = 64


def empty_arrays(wanted: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[npt.NDArray[Any]]:
    """Uninitialised arrays of these shapes and types; small ones share allocations of up to 32 MiB."""
    lengths = [int(np.prod(shape, dtype=np.int64)) * kind.itemsize for shape, kind in wanted]
    shares = [0 if length >= _LARGE else length + -length % _ALIGNMENT for length in lengths]
    left = sum(shares)
    arrays = []
    memory, used = np.empty(0, np.uint8), 0
    for (shape, kind), length, share in zip(wanted, lengths, shares):
        if share and used + share > memory.size and left >= _LARGE:
            memory, used = np.empty(min(left, _SHARED), np.uint8), 0
        left -= share
        if share and used + share <= memory.size:
            arrays.append(memory[used : used + length].view(kind).reshape(shape))
            used += share
        else:
            arrays.append(np.empty(shape, kind))
    return arrays
