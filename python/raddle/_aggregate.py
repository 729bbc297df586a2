"""Aggregates of a column, combined from those of several files."""

from __future__ import annotations

import math
from collections.abc import Sequence

Number = int | float
Part = tuple[int, int, Number | None, Number | None, bytes, float | None]
"""Number of rows, number of NaN, smallest and largest number, sum as the bytes of an integer, infinity or NaN that the sum is."""

UNITS_PER_ONE = 2**1074
"""Sums of floats are multiples of the smallest positive one."""


class Aggregate:
    """Number, limits and exact sum of the values of a column."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._count = sum(part[0] for part in parts)
        self._has_nans = any(part[1] for part in parts)
        self._smallest = [part[2] for part in parts if part[2] is not None]
        self._largest = [part[3] for part in parts if part[3] is not None]
        # Sums of integers have 16 bytes, which no sum of floats has.
        self._is_integer = len(parts[0][4]) == 16
        self._sum = sum(int.from_bytes(part[4], "little", signed=True) for part in parts)
        self._infinities = [part[5] for part in parts if part[5] is not None]

    def sum(self) -> Number:
        if self._is_integer:
            return self._sum
        return self._of_floats(UNITS_PER_ONE)

    def mean(self) -> float | None:
        if not self._count:
            return None
        if self._is_integer:
            return self._sum / self._count
        return self._of_floats(UNITS_PER_ONE * self._count)

    def _of_floats(self, divisor: int) -> float:
        if self._has_nans:
            return math.nan
        if self._infinities:
            return sum(self._infinities)
        try:
            # Python rounds the quotient of two integers once.
            return self._sum / divisor
        except OverflowError:
            return math.inf if self._sum > 0 else -math.inf

    def min(self) -> Number | None:
        return math.nan if self._has_nans else min(self._smallest, default=None)

    def max(self) -> Number | None:
        return math.nan if self._has_nans else max(self._largest, default=None)
