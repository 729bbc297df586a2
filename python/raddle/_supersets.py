"""Conditions of other libraries, as conditions of a scan that exclude no row that the library would keep.

Invariant: an expression that is not understood becomes None, and excludes nothing. The library
evaluates the whole condition on what was read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle._conditions import Condition, col, joined
from raddle._scan_files import table_row_shape

if TYPE_CHECKING:
    from raddle._scan import Scan

# Strict comparisons become non-strict: libraries compare floats in different precisions.
_COMPARISONS: dict[str, Callable[[Any, Any], Condition]] = {
    ">": operator.ge, ">=": operator.ge, "<": operator.le, "<=": operator.le, "==": operator.eq,
}  # fmt: skip
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "=="}
"""Comparison of the exchanged operands."""

MAX_VALUES = 1000
"""Maximum number of values in a condition that is passed on: strings and floats of a row are compared with each of them."""

MAX_EXACT_FLOAT = 1 << 24
"""Limit of floats to which integers are compared: a library may convert the integers to floats, which have larger ones exactly."""


class Columns:
    """Columns that can be compared: those of numbers and of fixed-length strings, with one value per row."""

    dtypes: Mapping[str, np.dtype[Any]]
    """Type of each of these columns."""

    def __init__(self, scan: Scan) -> None:
        columns = scan._columns_of(0, is_used=False).items()
        self.dtypes = {name: column.dtype for name, column in columns if not table_row_shape(column) and _is_plain(column.dtype)}

    def compare(self, name: str, comparison: str, value: Any) -> Condition | None:
        """Returns the condition that a column compares with a value: ``<``, ``<=``, ``>``, ``>=`` or ``==``."""
        dtype = self.dtypes.get(name)
        if dtype is None or comparison not in _COMPARISONS or not _is_comparable(dtype, comparison, value):
            return None
        return _COMPARISONS[comparison](col(name), value)

    def is_in(self, name: str, values: Sequence[Any]) -> Condition | None:
        """Returns the condition that a column has one of some values.

        If they are many, return the condition that the column lies between the smallest and the largest.
        """
        equal = [self.compare(name, "==", value) for value in values]
        known = [condition._data for condition in equal if condition is not None]
        if not known or len(known) < len(equal):
            return None
        if len(known) > MAX_VALUES:
            return both(self.compare(name, ">=", min(values)), self.compare(name, "<=", max(values)))
        return joined("or", known)

    def compare_ordered(self, name: str, comparison: str, value: Any) -> Condition | None:
        """Returns the condition of a library that treats NaN as the largest number."""
        condition = self.compare(name, comparison, value)
        is_nan = self.is_nan(name) if comparison in (">", ">=") else None
        return condition if condition is None or is_nan is None else condition | is_nan

    def is_nan(self, name: str) -> Condition | None:
        """Returns the condition that a column of floats is NaN."""
        return col(name).is_nan() if name in self.dtypes and self.dtypes[name].kind == "f" else None


def both(one: Condition | None, other: Condition | None) -> Condition | None:
    """Returns the condition that two conditions hold."""
    return one & other if one is not None and other is not None else (one if other is None else other)


def either(one: Condition | None, other: Condition | None) -> Condition | None:
    """Returns the condition that one of two conditions holds."""
    return None if one is None or other is None else one | other


def _is_plain(dtype: np.dtype[Any]) -> bool:
    metadata: Mapping[str, Any] = dtype.metadata or {}
    return dtype.kind in "biuS" and "enum" not in metadata or dtype.kind == "f" and dtype.itemsize in (4, 8)


def _is_comparable(dtype: np.dtype[Any], comparison: str, value: Any) -> bool:
    """Returns whether every library finds the same rows as a scan, or fewer."""
    if isinstance(value, bool):
        return dtype.kind == "b" and comparison == "=="
    if isinstance(value, int):
        return dtype.kind in "iuf"
    if isinstance(value, float):
        return math.isfinite(value) and (dtype.kind == "f" or dtype.kind in "iu" and abs(value) < MAX_EXACT_FLOAT)
    return isinstance(value, str) and dtype.kind == "S" and comparison == "==" and "\0" not in value
