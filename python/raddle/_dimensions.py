"""Dimensions of datasets: labels, and attached dimension scales."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from raddle._dataset import Dataset


class Dimension:
    """A dimension of a dataset: its label, and its scales by index or name."""

    __slots__ = ("_dataset", "_number")

    def __init__(self, dataset: Dataset, number: int) -> None:
        self._dataset = dataset
        self._number = number

    @property
    def label(self) -> str:
        """The label; empty if there is none."""
        labels = self._dataset.attrs.get("DIMENSION_LABELS")
        return "" if labels is None else _text(labels[self._number])

    def values(self) -> list[Dataset]:
        """The scales, which are found through references read by h5py."""
        lists = self._dataset.attrs.get("DIMENSION_LIST")
        return [] if lists is None else [self._dataset.file[reference] for reference in lists[self._number]]

    def keys(self) -> list[str]:
        """Names of the scales; empty for scales without a name."""
        return [name for name, _ in self.items()]

    def items(self) -> list[tuple[str, Dataset]]:
        """Names and scales."""
        return [(_text(scale.attrs.get("NAME", "")), scale) for scale in self.values()]

    def __getitem__(self, item: int | str) -> Dataset:
        if not isinstance(item, str):
            return self.values()[operator.index(item)]
        for name, scale in self.items():
            if name == item:
                return scale
        raise KeyError(item)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        lists = self._dataset.attrs.get("DIMENSION_LIST")
        return 0 if lists is None else len(lists[self._number])

    def __repr__(self) -> str:
        return f'<"{self.label}" dimension {self._number} of "{posixpath.basename(self._dataset.name)}">'


class Dimensions:
    """The dimensions of a dataset, by index."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, number: int) -> Dimension:
        return Dimension(self._dataset, range(len(self))[number])

    def __len__(self) -> int:
        return self._dataset.ndim

    def __iter__(self) -> Iterator[Dimension]:
        return (Dimension(self._dataset, number) for number in range(len(self)))

    def __repr__(self) -> str:
        return f'<Dimensions of "{posixpath.basename(self._dataset.name)}">'


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, (bytes, np.bytes_)) else str(value)
