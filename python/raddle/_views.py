"""Views of a dataset that convert values when they are read: to another type, to ``str``, or to some of its fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle._conversion import converted
from raddle._values import Empty

if TYPE_CHECKING:
    from raddle._dataset import Dataset


class View(ABC):
    """A dataset whose values are converted on reading: indexed and pickled like the dataset."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the values read."""

    @abstractmethod
    def _changed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Converts values of the dataset to those of the view."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the dataset."""
        return self._dataset.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._dataset.ndim

    @property
    def size(self) -> int | None:
        """Number of elements; None for a null dataspace."""
        return self._dataset.size

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, arguments: Any) -> Any:
        values = self._dataset[arguments]
        if isinstance(values, Empty):
            return values
        if isinstance(values, np.ndarray):
            return self._changed(values)
        boxed = np.empty((), self._dataset.dtype)
        boxed[()] = values
        return self._changed(boxed)[()]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("values of a file cannot be returned without a copy")
        return np.asarray(self[()], dtype=self.dtype.base if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dataset!r}>"


class TypeView(View):
    """Values converted to another type as in libhdf5, clipped to its range."""

    __slots__ = ("_dtype",)

    def __init__(self, dataset: Dataset, dtype: npt.DTypeLike) -> None:
        super().__init__(dataset)
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The requested type."""
        return self._dtype

    def _changed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return converted(values, self._dtype)


class TextView(View):
    """Strings as ``str``."""

    __slots__ = ("_encoding", "_errors")

    def __init__(self, dataset: Dataset, encoding: str, errors: str) -> None:
        super().__init__(dataset)
        self._encoding, self._errors = encoding, errors

    @property
    def dtype(self) -> np.dtype[Any]:
        """The object type."""
        return np.dtype(object)

    def _changed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        strings = np.empty(values.shape, object)
        strings.reshape(-1)[:] = [value.decode(self._encoding, self._errors) for value in values.reshape(-1)]
        return strings


class FieldsView(View):
    """Some fields of a compound; a field that is not passed in a list gives an array of its values."""

    __slots__ = ("_dtype", "_names")

    def __init__(self, dataset: Dataset, names: str | Sequence[str]) -> None:
        super().__init__(dataset)
        self._names = names if isinstance(names, str) else list(names)
        self._dtype = fields_dtype(dataset.dtype, self._names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The field's type, or a compound of the named fields."""
        return self._dtype

    def _changed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return with_fields(values, self._names)


def fields_dtype(dtype: np.dtype[Any], names: str | list[str]) -> np.dtype[Any]:
    """Packed type of fields of a compound. Raises ValueError if a field does not exist."""
    if dtype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in [names] if isinstance(names, str) else names:
        if name not in dtype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    return dtype[names] if isinstance(names, str) else np.dtype([(name, dtype[name]) for name in names])


def with_fields(array: npt.NDArray[Any], names: str | list[str]) -> npt.NDArray[Any]:
    """Fields of a structured array, packed as by h5py."""
    dtype = fields_dtype(array.dtype, names)
    if isinstance(names, str):
        return np.ascontiguousarray(array[names]) if array.ndim else array[names]
    packed = np.empty(array.shape, dtype)
    for name in names:
        packed[name] = array[name]
    return packed
