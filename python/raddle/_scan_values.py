"""Columns of scans with the values that attributes of netCDF variables define, in the type of these values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from raddle import _core
from raddle._dataset import Dataset
from raddle._keywords import Values
from raddle._scan_files import OpenFile
from raddle.errors import UsageError


class DecodedColumn(Dataset):
    """A column whose values are computed from the stored ones, by scans only."""

    __slots__ = ("_value_type", "is_nullable")

    is_nullable: bool
    """Whether NaN stands for a missing value."""

    def __init__(self, column: Dataset, value_type: str | None, is_nullable: bool) -> None:
        super().__init__(column._file, column._number, column.name, column._outline)
        self._value_type = None if value_type is None else np.dtype(value_type)
        self.is_nullable = is_nullable

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a value."""
        return super().dtype if self._value_type is None else self._value_type

    def __getitem__(self, key: Any) -> Any:
        if self._value_type is None:
            return super().__getitem__(key)
        error = UsageError(f"{self._file.filename}: {self.name} has values that only libhdf5 can read, which a scan cannot decode")
        error.hint = 'leave the column out, or search the numbers in the file (values="stored")'
        raise error


def check_choice(values: Values | None) -> None:
    """Raises UsageError for anything but the values of the option."""
    if values not in (None, "stored", "decoded"):
        raise UsageError(f'values={values!r} is not a choice of values: give "stored" or "decoded"')


def with_values(opened: OpenFile, group: str, columns: Mapping[str, Dataset], values: Values | None, *, is_used: bool) -> dict[str, Dataset]:
    """Returns columns of an open file with the chosen values.

    Raises InputError for columns that need the choice or cannot be decoded. If they are not used, they are as stored.
    """
    if values == "stored" or values is None and not is_used:
        return dict(columns)
    unknown = [name for name in columns if (group, name, is_used) not in opened.value_types]
    if unknown:
        found = _core.value_types(opened.file._core(), (group, unknown), values, not is_used)
        opened.value_types.update(((group, name, is_used), of_column) for name, of_column in zip(unknown, found, strict=True))
    return {name: _of_type(column, *opened.value_types[group, name, is_used]) for name, column in columns.items()}


def _of_type(column: Dataset, value_type: str | None, is_nullable: bool) -> Dataset:
    return column if value_type is None and not is_nullable else DecodedColumn(column, value_type, is_nullable)


def nullable(columns: Mapping[str, Dataset]) -> set[str]:
    """Returns the names of the columns in which NaN stands for a missing value."""
    return {name for name, column in columns.items() if isinstance(column, DecodedColumn) and column.is_nullable}
