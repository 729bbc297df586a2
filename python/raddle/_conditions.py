"""Conditions on rows, built from columns with operators, as in Polars, or parsed from text."""

from __future__ import annotations

import json
import math
import operator
import struct
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from raddle import _core
from raddle.errors import UsageError

__all__ = ["Column", "Condition", "col"]


class Condition:
    """A condition on rows. ``&``, ``|`` and ``~`` combine conditions; Python's ``and``, ``or`` and ``not`` cannot."""

    __slots__ = ("_data",)

    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __and__(self, other: Condition) -> Condition:
        return joined("and", [self._data, _data(other)])

    def __or__(self, other: Condition) -> Condition:
        return joined("or", [self._data, _data(other)])

    def __invert__(self) -> Condition:
        return Condition({"not": self._data})

    def __bool__(self) -> bool:
        raise UsageError("a condition has no truth value: combine conditions with &, | and ~, each in parentheses")

    def __repr__(self) -> str:
        return _core.condition_text(json.dumps(self._data))


class Column:
    """A column of a table, for conditions: ``raddle.col("energy") > 2``."""

    __slots__ = ("_name",)

    _name: str

    def __init__(self, name: str) -> None:
        self._name = name

    def _compare(self, operator: str, value: Any) -> Condition:
        return Condition({"compare": {"column": self._name, "operator": operator, "value": _literal(value)}})

    def __lt__(self, value: Any) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Condition:
        return self._compare(">=", value)

    def __eq__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def is_between(self, low: Any, high: Any) -> Condition:
        """Returns the condition that the value lies between two values, both included.

        Parameters
        ----------
        low
            Smallest value.
        high
            Largest value.
        """
        return self.__ge__(low) & self.__le__(high)

    def is_in(self, values: Iterable[Any]) -> Condition:
        """Returns the condition that the value is one of some values.

        Parameters
        ----------
        values
            Values of which one must be equal.
        """
        if isinstance(values, (str, bytes)):
            # Its characters would be the values.
            raise UsageError(f"is_in takes several values, not {values!r}: put it in a list, or compare with ==")
        return Condition({"or": [(self == value)._data for value in values]})

    def is_nan(self) -> Condition:
        """Returns the condition that the value is NaN."""
        return Condition({"not": {"or": [(self <= np.inf)._data, (self > np.inf)._data]}})

    def __repr__(self) -> str:
        return f"col({self._name!r})"


def col(name: str) -> Column:
    """A column of a table, for conditions.

    Parameters
    ----------
    name
        Name of the dataset, or its path relative to the table.

    Returns
    -------
    Column
        Compare it with a number, a string or another column:
        ``(raddle.col("energy") > 2) & (raddle.col("detector") == "near")``.
    """
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not the name of a column, which is a str")
    return Column(name)


def _data(other: Any) -> dict[str, Any]:
    if not isinstance(other, Condition):
        raise UsageError(f"{other!r} is not a condition: put each comparison in parentheses")
    return other._data


def joined(word: str, parts: Sequence[dict[str, Any]]) -> Condition:
    """Returns a condition whose parts are joined by ``and`` or ``or``.

    Parts joined by the same word become one list, because the depth is limited.
    """
    return Condition({word: [inner for part in parts for inner in part.get(word, [part])]})


def parsed(condition: Condition | str) -> Condition:
    if isinstance(condition, str):
        return Condition(json.loads(_core.condition_of(condition)))
    _data(condition)
    return condition


def columns_of(data: dict[str, Any]) -> set[str]:
    """Returns the names of the columns of a condition."""
    if "compare" in data:
        compared = data["compare"]
        return {compared["column"], compared["value"].get("column", compared["column"])}
    inner = [data["not"]] if "not" in data else data.get("and", data.get("or", []))
    return set().union(*map(columns_of, inner))


def _literal(value: Any) -> dict[str, Any]:
    """Returns a value in the form of the compiled part: integers as text, floats by their bits."""
    if isinstance(value, Column):
        return {"column": value._name}
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, (bytes, np.bytes_)):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{value!r} is not UTF-8: a condition compares strings; select the column and compare its bytes with numpy") from None
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, (bool, np.bool_)):
        return {"integer": str(int(value))}
    if isinstance(value, SupportsIndex) and not isinstance(value, np.ndarray):
        integer = operator.index(value)
        if -(1 << 127) <= integer < 1 << 127:
            return {"integer": str(integer)}
        # No column has larger integers, so that the nearest float compares in the same way.
        return _float(_nearest_float(integer))
    if isinstance(value, (float, np.floating)):
        return _float(float(value))
    raise UsageError(f"{value!r} cannot be compared with a column: give a number, a string or a column")


def _float(value: float) -> dict[str, Any]:
    [bits] = struct.unpack("<Q", struct.pack("<d", value))
    return {"float": bits}


def _nearest_float(value: int) -> float:
    """Returns the nearest float of an integer, which is infinite if the integer exceeds all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
