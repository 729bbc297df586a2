"""Allocation of arrays that values are read into.

The kernel clears every new page before its first use, which is cheaper for large pages (2 MiB). numpy requests large
pages for arrays of 4 MiB or more, but arrays begin anywhere: a 4 MB array covers only one large page, and the rest is
in small pages. Arrays that are read together are therefore placed one after another in memory that begins with a large
page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# A large page of x86-64, and the usual one elsewhere. Sharing is not worthwhile for less than one.
_PAGE = 2 << 20
# Length of an allocation shared by arrays, which is freed when the last of them is.
_SHARED = 32 << 20
# Minimum length of an array that gets a separate allocation.
_ALONE = _SHARED // 2
# Alignment of arrays: a cache line, and the widest vector.
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
    """Uninitialised bytes that begin with a large page.

    They are part of an array that is longer by a large page, for which numpy therefore requests large pages.
    """
    # The last page is a large one if little of it is unused; otherwise small pages suffice for the remainder.
    unused = -length % _PAGE
    room = length + unused if unused <= length // 4 else length
    memory = np.empty(_PAGE + max(room, _PAGE), np.uint8)
    start = -memory.__array_interface__["data"][0] % _PAGE
    return memory[start : start + length]
