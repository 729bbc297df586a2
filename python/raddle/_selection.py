"""Indexing as in numpy and h5py, resolved to one selection per axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from raddle.errors import SelectionError, UsageError

# Start, count and step, or the selected elements themselves.
Axis = tuple[int, int, int] | npt.NDArray[np.uint64]


class MultiBlockSlice:
    """An index of an axis: blocks of consecutive elements at a regular distance.

    Parameters
    ----------
    start
        First element.
    stride
        Distance between the first elements of two blocks.
    count
        Number of blocks. Default: all whole blocks of the axis.
    block
        Number of elements per block.

    Raises
    ------
    raddle.errors.UsageError
        If an argument is negative, an argument other than ``start`` is 0, or blocks overlap.

    Examples
    --------
    >>> dataset[raddle.MultiBlockSlice(start=1, stride=10, block=3)]  # doctest: +SKIP
    """

    def __init__(self, start: int = 0, stride: int = 1, count: int | None = None, block: int = 1) -> None:
        if start < 0 or stride < 1 or block < 1 or (count is not None and count < 1) or block > stride:
            raise UsageError(f"blocks of {block} at {start}, every {stride} elements, {count} of them, are not a selection")
        self.start: int = start
        self.stride: int = stride
        self.count: int | None = count
        self.block: int = block

    def indices(self, length: int) -> tuple[int, int, int, int]:
        """Returns start, stride, count and block for an axis of some length.

        Raises `raddle.errors.UsageError` if the axis has no whole block or fewer than ``count``.

        Parameters
        ----------
        length
            Number of elements of the axis.
        """
        count = (length - self.start - self.block) // self.stride + 1 if self.count is None else self.count
        end = self.start + (count - 1) * self.stride + self.block
        if count < 1 or end > length:
            raise UsageError(f"{self!r} does not fit an axis of {length}")
        return self.start, self.stride, count, self.block

    def __repr__(self) -> str:
        return f"MultiBlockSlice(start={self.start}, stride={self.stride}, count={self.count}, block={self.block})"


@dataclass(frozen=True)
class Selection:
    """A selection of a dataset's elements."""

    axes: list[Axis]
    # Shape of the result, without axes selected by a single number.
    shape: tuple[int, ...]
    # Fields of a compound, in the requested order; a field that was not passed in a list gives an array of its values.
    fields: list[str] | str | None
    # Whether the result is an array even if it has a single element.
    keeps_array: bool
    # For a mask of several dimensions: which of the elements read are selected.
    mask: npt.NDArray[np.bool_] | None = None

    @property
    def read_shape(self) -> tuple[int, ...]:
        """Shape with all axes."""
        return tuple(axis[1] if isinstance(axis, tuple) else len(axis) for axis in self.axes)


def select(arguments: Any, shape: tuple[int, ...]) -> Selection:
    """Resolves the selection of ``dataset[arguments]``.

    Raises IndexError, TypeError or ValueError if it is not valid.
    """
    plain = _plain(arguments if isinstance(arguments, tuple) else (arguments,), shape)
    if plain is not None:
        return plain
    items = list(arguments) if isinstance(arguments, tuple) else [arguments]
    fields, items = _fields(items)
    if len(items) == 1 and isinstance(items[0], np.ndarray) and items[0].dtype == bool and items[0].ndim > 1:
        return _masked(items[0], shape, fields)
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        raise SelectionError("only one Ellipsis (...) is allowed")
    if any(item is None for item in items):
        raise TypeError("indexing with None (or np.newaxis) is not supported")
    if not ellipses:
        items.append(Ellipsis)
    missing = len(shape) - (len(items) - 1)
    if missing < 0:
        raise SelectionError(f"{len(items) - 1} indices for a dataset of {len(shape)} dimensions")
    at = next(number for number, item in enumerate(items) if item is Ellipsis)
    items[at : at + 1] = [slice(None)] * missing
    axes: list[Axis] = []
    result: list[int] = []
    lists = 0
    for item, dim in zip(items, shape, strict=True):
        axis, kept = _axis(item, dim)
        axes.append(axis)
        lists += not isinstance(axis, tuple) and not _is_blocks(item)
        if kept:
            result.append(axis[1] if isinstance(axis, tuple) else len(axis))
    if lists > 1:
        raise TypeError("only one axis can be indexed by a list or an array")
    return Selection(axes, tuple(result), fields, bool(ellipses) and not shape)


def _plain(items: tuple[Any, ...], shape: tuple[int, ...]) -> Selection | None:
    """Returns the selection by valid numbers and slices without a step; None for all others.

    Programs that read few elements at a time use these, and resolving them in general takes longer than reading.
    """
    if len(items) > len(shape):
        return None
    axes: list[Axis] = []
    result: list[int] = []
    for item, dim in zip(items, shape, strict=False):
        kind = type(item)
        if kind is int and -dim <= item < dim:
            axes.append((item + dim if item < 0 else item, 1, 1))
        elif kind is slice and item.step is None:
            start, stop, _ = item.indices(dim)
            axes.append((start, max(0, stop - start), 1))
            result.append(axes[-1][1])
        else:
            return None
    rest = shape[len(items) :]
    axes += [(0, dim, 1) for dim in rest]
    return Selection(axes, (*result, *rest), None, False)


Rows = slice | Sequence[int] | npt.NDArray[Any] | None
"""Rows of the first axis of columns: a slice, numbers in any order, a mask, or None for all."""


def rows_of(rows: Rows, dim: int) -> tuple[int, int, int]:
    """Start, count and step of a slice of rows. Raises UsageError if rows are not a slice."""
    if rows is not None and not isinstance(rows, slice):
        raise UsageError(f"rows must be a slice here, not a {type(rows).__name__}")
    axis, _ = _axis(slice(None) if rows is None else rows, dim)
    assert isinstance(axis, tuple)
    return axis


def listed_rows(rows: Rows, dim: int) -> Axis:
    """The selection of an axis for a slice, list or mask of rows.

    Raises UsageError for other types, and the errors of `select` for rows out of range.
    """
    if rows is None or isinstance(rows, slice):
        return rows_of(rows, dim)
    # A tuple looks like a range, for which a slice should be used.
    if isinstance(rows, (list, range)) or (isinstance(rows, np.ndarray) and rows.ndim == 1):
        return _listed(rows, dim)
    raise UsageError(f"rows {rows!r} are not a slice, list, or array of integers or booleans")


def bounds(axes: Sequence[Axis]) -> tuple[Any, ...]:
    """Axes as numpy indices, keeping all axes."""
    return tuple(shifted(axis, 0) for axis in axes)


def ascending(axes: Sequence[Axis]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Axes as h5py indices, keeping all axes with lists in ascending order, and the index that restores the requested
    order."""
    asked: list[Any] = []
    picked: list[Any] = []
    for number, axis in enumerate(axes):
        if not isinstance(axis, tuple) and any(not isinstance(other, tuple) for other in axes[:number]):
            # h5py takes only one list.
            start, end = ends(axis)
            asked.append(slice(start, end))
            picked.append(shifted(axis, start))
            continue
        if isinstance(axis, tuple) or not len(axis) or (axis[1:] > axis[:-1]).all():
            asked.append(shifted(axis, 0) if isinstance(axis, tuple) or len(axis) else slice(0, 0, 1))
            picked.append(slice(None))
        else:
            elements, places = np.unique(axis, return_inverse=True)
            asked.append(elements.astype(np.int64))
            picked.append(places)
    return tuple(asked), tuple(picked)


def orthogonal(array: npt.NDArray[Any], indices: Sequence[Any]) -> npt.NDArray[Any]:
    """Elements of an array that are selected on each axis; several axes may have lists."""
    for number, index in enumerate(indices):
        array = array[(slice(None),) * number + (index,)]
    return array


def shifted(axis: Axis, start: int) -> Any:
    """An axis as a numpy index into an array that begins at element ``start``."""
    if isinstance(axis, tuple):
        first, count, step = axis
        return slice(first - start, first - start + count * step, step)
    return axis.astype(np.int64) - start


def ends(axis: Axis) -> tuple[int, int]:
    """The first element, and the end (exclusive)."""
    if isinstance(axis, tuple):
        start, count, step = axis
        return start, start + (count - 1) * step + 1 if count else start
    return (int(axis.min()), int(axis.max()) + 1) if len(axis) else (0, 0)


def is_whole(selection: Any) -> bool:
    """Returns whether a selection is ``()`` or an Ellipsis, the only ones for a null dataspace."""
    items = selection if isinstance(selection, tuple) else (selection,)
    return len(items) <= 1 and all(item is Ellipsis for item in items)


def _fields(items: list[Any]) -> tuple[list[str] | str | None, list[Any]]:
    names = [item for item in items if isinstance(item, str)]
    lists = [item for item in items if isinstance(item, list) and item and all(isinstance(n, str) for n in item)]
    if not names and not lists:
        return None, items
    rest = [item for item in items if not isinstance(item, str) and not any(item is names_list for names_list in lists)]
    if lists:
        return [*names, *(name for names_list in lists for name in names_list)], rest
    return (names[0] if len(names) == 1 else names), rest


def _axis(item: Any, dim: int) -> tuple[Axis, bool]:
    """The selection of an axis, and whether the result keeps the axis."""
    if isinstance(item, slice):
        step = 1 if item.step is None else operator.index(item.step)
        if step < 1:
            raise ValueError(f"Step must be >= 1 (got {step})")
        start, stop, step = item.indices(dim)
        return (start, len(range(start, stop, step)), step), True
    if _is_blocks(item):
        return _blocks(*item.indices(dim)), True
    if isinstance(item, (list, tuple, range)) or (isinstance(item, np.ndarray) and item.ndim > 0):
        return _listed(item, dim), True
    try:
        number = operator.index(item)
    except TypeError:
        raise TypeError(f"{item!r} is not a valid index of a dataset") from None
    if isinstance(item, (bool, np.bool_)):
        raise TypeError("a single boolean is not a valid index of a dataset")
    wrapped = number + dim if number < 0 else number
    if not 0 <= wrapped < dim:
        raise IndexError(f"Index ({number}) out of range for (0-{dim - 1})" if dim else "index into an empty axis")
    return (wrapped, 1, 1), False


def _is_blocks(item: Any) -> bool:
    """Returns whether an index is a `MultiBlockSlice`, or h5py's class of this name."""
    return type(item).__name__ == "MultiBlockSlice" and hasattr(item, "block")


def _blocks(start: int, stride: int, count: int, block: int) -> Axis:
    if block == 1:
        return (start, count, stride)
    if block == stride or count == 1:
        return (start, count * block, 1)
    elements = start + stride * np.arange(count)[:, None] + np.arange(block)
    return elements.reshape(-1).astype(np.uint64)


def _listed(item: Sequence[Any] | npt.NDArray[Any], dim: int) -> npt.NDArray[np.uint64]:
    listed = np.asarray(item)
    if listed.ndim != 1:
        raise TypeError("only one-dimensional lists and arrays can index an axis")
    if listed.dtype == bool:
        if len(listed) != dim:
            raise TypeError(f"a mask of {len(listed)} elements does not fit an axis of {dim}")
        return np.flatnonzero(listed).astype(np.uint64)
    if not len(listed):
        return np.empty(0, np.uint64)
    if listed.dtype.kind not in "iu":
        raise TypeError(f"an array of {listed.dtype} is not a valid index of a dataset")
    if listed.dtype.kind == "i":
        # Types of 8 and 16 bits cannot hold the size of a long axis.
        listed = listed.astype(np.int64)
        listed = np.where(listed < 0, listed + dim, listed)
        if listed.min() < 0:
            raise IndexError(f"an index is out of range for an axis of {dim}")
    if listed.max() >= dim:
        raise IndexError(f"Index ({listed.max()}) out of range for (0-{dim - 1})")
    return np.ascontiguousarray(listed, np.uint64)


def _masked(mask: npt.NDArray[np.bool_], shape: tuple[int, ...], fields: list[str] | str | None) -> Selection:
    if mask.shape != shape:
        raise TypeError(f"a mask of shape {mask.shape} does not fit a dataset of shape {shape}")
    axes: list[Axis] = []
    bounds = []
    for number in range(mask.ndim):
        others = tuple(other for other in range(mask.ndim) if other != number)
        hit = np.flatnonzero(mask.any(axis=others))
        start, count = (int(hit[0]), int(hit[-1] - hit[0]) + 1) if len(hit) else (0, 0)
        axes.append((start, count, 1))
        bounds.append(slice(start, start + count))
    inner = mask[tuple(bounds)]
    return Selection(axes, tuple(inner.shape), fields, True, inner)


def check_destination(array: npt.NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Returns whether values can be read directly into ``array``; raises an exception if they do not fit."""
    if not isinstance(array, np.ndarray):
        raise TypeError("the output is not a numpy array")
    if array.shape != shape:
        raise UsageError(f"an output of shape {array.shape} does not fit values of shape {shape}")
    return array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
