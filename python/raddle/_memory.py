"""Arrays that are about to be read into.

The kernel clears every new page before it is written, which costs less in large pages (2 MiB). numpy asks for these where an
array has 4 MiB or more, but an array begins anywhere: one of 4 MB has room for one of them, and the rest lies in small pages. So
arrays that are read together lie one behind the other in memory that begins with such a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# A large page of x86-64, and the usual one elsewhere. Less than one is not worth sharing.
_PAGE = 2 << 20
# Bytes of an allocation that arrays share: it is freed when the last of them is.
_SHARED = 32 << 20
# Bytes from which an array has an allocation of its own.
_ALONE = _SHARED // 2
# Bytes to whose multiples arrays lie: a line of the cache, and the widest vector.
_ALIGNMENT = 64


def empty_arrays(wanted: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[npt.NDArray[Any]]:
    """Uninitialised arrays of these shapes and types; those below 16 MiB share allocations of up to 32 MiB."""
    lengths = [int(np.prod(shape, dtype=np.int64)) * kind.itemsize for shape, kind in wanted]
    shares = [0 if length >= _ALONE else length + -length % _ALIGNMENT for length in lengths]
    left = sum(shares)
    arrays = []
    shared, used = np.empty(0, np.uint8), 0
    for (shape, kind), length, share in zip(wanted, lengths, shares):
        if share and used + share > shared.size and left >= _PAGE:
            shared, used = _pages(min(left, _SHARED)), 0
        left -= share
        if share and used + share <= shared.size:
            arrays.append(shared[used : used + length].view(kind).reshape(shape))
            used += share
        elif length >= _ALONE:
            arrays.append(_pages(length).view(kind).reshape(shape))
        else:
            arrays.append(np.empty(shape, kind))
    return arrays


def _pages(length: int) -> npt.NDArray[np.uint8]:
    """Uninitialised bytes that begin with a large page. numpy asks for large pages, for there is room for a whole one before."""
    # The last page is whole if little of it is unused; else small ones do for what lies in it.
    unused = -length % _PAGE
    room = length + unused if unused <= length // 4 else length
    memory = np.empty(_PAGE + max(room, _PAGE), np.uint8)
    start = -memory.__array_interface__["data"][0] % _PAGE
    return memory[start : start + length]
