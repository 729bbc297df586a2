"""Datasets: what they say of themselves, and reading them.

What the compiled part does not decode as h5py shows it (references, compounds with variable-length members, unusual
numbers, filters it does not know) is read by h5py where that is installed; virtual datasets and external files otherwise by
libhdf5 in a process of its own.
"""

from __future__ import annotations

import builtins
import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from raddle._blocks import BLOCK_LEN_BYTES, dask_array
from raddle._object import HdfObject, through_h5py
from raddle._selection import Selection, check_destination, select
from raddle._types import ElementType, raw_bytes
from raddle._values import Empty, encoded
from raddle.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from raddle._file import File

# Values read at once by an iteration over rows.
_ITERATION_LEN_BYTES = 1 << 20

_DEFLATE, _SHUFFLE, _FLETCHER32, _SZIP, _LZF = 1, 2, 3, 4, 32000


class Dataset(HdfObject):
    """A dataset: indexed, it reads; its properties are h5py's."""

    __slots__ = ("_outline", "_storage_facts")

    def __init__(self, file: File, number: int, name: str) -> None:
        super().__init__(file, number, name)
        self._outline: tuple[tuple[int, ...] | None, tuple[int | None, ...] | None, int] | None = None
        self._storage_facts: tuple[str, tuple[int, ...] | None, list[tuple[int, str, tuple[int, ...]]], bool] | None
        self._storage_facts = None

    def _described(self) -> tuple[tuple[int, ...] | None, tuple[int | None, ...] | None, int]:
        if self._outline is None:
            self._outline = self._core().outline(self._number)
        return self._outline

    def _storage(self) -> tuple[str, tuple[int, ...] | None, list[tuple[int, str, tuple[int, ...]]], bool]:
        if self._storage_facts is None:
            self._storage_facts = self._core().storage(self._number)
        return self._storage_facts

    def _element_type(self) -> ElementType:
        return self._file._element_type(self._described()[2])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Elements per dimension; ``()`` for a scalar, None for a null dataspace."""
        return self._described()[0]

    @property
    def maxshape(self) -> tuple[int | None, ...] | None:
        """Largest shape; None for a dimension that can grow without limit."""
        shape, largest, _ = self._described()
        return shape if largest is None else largest

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of an element, as h5py shows it."""
        kind = self._element_type()
        if kind.route == "other":
            return through_h5py(self, f"type of {self.name}").dtype  # type: ignore[no-any-return]
        return kind.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape or ())

    @property
    def size(self) -> int | None:
        """Number of elements; None for a null dataspace."""
        shape = self.shape
        return None if shape is None else int(np.prod(shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return (self.size or 0) * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Chunk shape; None where the data is not chunked."""
        return self._storage()[1]

    def _filter(self, number: int) -> tuple[int, ...] | None:
        return next((parameters for found, _, parameters in self._storage()[2] if found == number), None)

    @property
    def compression(self) -> str | None:
        """``"gzip"``, ``"lzf"``, ``"szip"``, or None (also for other filters)."""
        names = {_DEFLATE: "gzip", _LZF: "lzf", _SZIP: "szip"}
        return next((name for number, name in names.items() if self._filter(number) is not None), None)

    @property
    def compression_opts(self) -> Any:
        """Level of gzip; None for other filters, those of szip and others see h5py."""
        parameters = self._filter(_DEFLATE)
        return parameters[0] if parameters else None

    @property
    def shuffle(self) -> bool:
        """Whether the shuffle filter is used."""
        return self._filter(_SHUFFLE) is not None

    @property
    def fletcher32(self) -> bool:
        """Whether chunks have a checksum."""
        return self._filter(_FLETCHER32) is not None

    @property
    def filters(self) -> list[tuple[int, str, tuple[int, ...]]]:
        """Number, name and parameters of each filter, in the order of writing."""
        return list(self._storage()[2])

    @property
    def fillvalue(self) -> Any:
        """Value of elements that were never written."""
        kind = self._element_type()
        if kind.route == "other":
            return through_h5py(self, f"fill value of {self.name}").fillvalue
        stored = self._core().fill(self._number)
        if stored is None:
            if kind.route != "bytes":
                return b"" if kind.route == "strings" else None
            return np.zeros((), kind.dtype)[()]
        return kind.array((), stored)[()]

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("Attempt to take len() of scalar dataset")
        return shape[0]

    def len(self) -> int:
        """Elements of the first dimension."""
        return builtins.len(self)

    def __iter__(self) -> Iterator[Any]:
        rows = len(self)
        row_len_bytes = max(1, self.nbytes // max(1, rows))
        block = max(1, _ITERATION_LEN_BYTES // row_len_bytes)
        for start in range(0, rows, block):
            yield from self[start : start + block]

    def __getitem__(self, arguments: Any) -> Any:
        return self.read(arguments)

    def read(self, selection: Any = (), *, out: npt.NDArray[Any] | None = None) -> Any:
        """Read a selection.

        Parameters
        ----------
        selection
            What would stand between brackets: numbers, slices with steps of at least 1, Ellipsis, a list or array of
            numbers or a mask for one axis, a mask of the dataset's shape, names of fields.
        out
            Array for the values, of the selection's shape; values are converted to its type. Read without a copy where
            it is C-contiguous and has the dataset's type.

        Returns
        -------
        numpy.ndarray or scalar
            ``out``, or a new array; a scalar where the selection names one element.

        Raises
        ------
        IndexError, TypeError, ValueError
            If the selection makes no sense for the shape.
        raddle.errors.DamagedError
            If a chunk does not decode to exactly its length.
        """
        shape = self.shape
        if shape is None:
            if out is not None or selection not in ((), Ellipsis):
                raise UsageError("Empty datasets cannot be sliced")
            return Empty(self.dtype)
        if not shape and not _suits_scalar(selection):
            raise ValueError("Illegal slicing argument for scalar dataspace")
        chosen = select(selection, shape)
        if chosen.mask is None and chosen.fields is None:
            array = self._values(chosen, selection, out)
        else:
            array = self._values(chosen, selection, None)
            if chosen.mask is not None:
                array = array[chosen.mask]
            if chosen.fields is not None:
                array = _with_fields(array, chosen.fields)
            if out is not None:
                check_destination(out, array.shape, array.dtype)
                out[...] = array
        if out is not None:
            return out
        return array[()] if array.ndim == 0 and not chosen.keeps_array else array

    def _values(self, chosen: Selection, selection: Any, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """The array of a selection, all fields."""
        kind = self._element_type()
        base, inner = kind.dtype.subdtype or (kind.dtype, ())
        direct = out is not None and check_destination(out, chosen.shape + inner, base)
        if kind.route == "bytes" and self._storage()[3]:
            array = out if out is not None and direct else np.empty(chosen.shape + inner, base)
            if array.nbytes:
                self._core().read([(self._number, chosen.axes, raw_bytes(array))])
        elif kind.route in ("strings", "sequences") and self._storage()[3]:
            items = self._core().read_items(self._number, chosen.axes) if 0 not in chosen.shape else []
            array = kind.array(chosen.shape, items)
        else:
            array = self._foreign(chosen, selection)
        if out is not None and array is not out:
            out[...] = array
        return array

    def _foreign(self, chosen: Selection, selection: Any) -> npt.NDArray[Any]:
        """Values that the compiled part does not read itself."""
        other = self._file._h5py()
        kind = self._element_type()
        if other is not None:
            # Fields and masks are the caller's affair.
            plain = _bounds(chosen) if chosen.fields is not None or chosen.mask is not None else selection
            return np.asarray(other[self.name][plain], dtype=None if kind.route != "bytes" else kind.dtype.base)
        if kind.route == "other":
            raise UnsupportedError(f"{self.name}: a type that only h5py shows; install h5py")
        rows, relative = None, list(_bounds(chosen))
        if relative:
            first = chosen.axes[0]
            start, end = _ends(first)
            rows = (start, end)
            relative[0] = _shifted(first, start)
        shape = self.shape or ()
        shape = ((rows[1] - rows[0],) if rows else ()) + shape[1:]
        values = self._core().read_through_library(self._number, encoded(self.name), rows)
        inner = kind.dtype.subdtype[1] if kind.dtype.subdtype else ()
        array = kind.array(shape, values)[tuple(relative)]
        shaped: npt.NDArray[Any] = array.reshape(chosen.shape + inner)
        return shaped

    def read_direct(
        self, dest: npt.NDArray[Any], source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        """Read into an array that is there, as h5py's method of this name."""
        chosen = () if source_sel is None else source_sel
        target = dest if dest_sel is None else dest[dest_sel]
        if target.base is None and target is not dest:
            # A fancy index made a copy.
            dest[dest_sel] = self.read(chosen)
            return
        values = target if target.shape else target.reshape(())
        self.read(chosen, out=values)

    def to_dask(self, block_len_bytes: int = BLOCK_LEN_BYTES) -> Any:
        """The dataset as a dask array, read when it is computed.

        Parameters
        ----------
        block_len_bytes
            About how many bytes of values a block has. Blocks consist of whole chunks, so none is decoded twice.

        Returns
        -------
        dask.array.Array

        Raises
        ------
        raddle.errors.UsageError
            If the dataset has no dimension, or elements that are arrays.
        """
        return dask_array(self, block_len_bytes)

    def astype(self, dtype: npt.DTypeLike) -> _View:
        """A view whose values are converted to ``dtype`` when read."""
        return _View(self, lambda array: np.asarray(array).astype(dtype))

    def asstr(self, encoding: str = "utf-8", errors: str = "strict") -> _View:
        """A view whose values are ``str`` instead of bytes."""
        return _View(self, lambda array: _decoded(array, encoding, errors))

    def fields(self, names: str | Sequence[str]) -> _View:
        """A view of some fields of a compound."""
        wanted = names if isinstance(names, str) else list(names)
        return _View(self, lambda array: _with_fields(np.asarray(array), wanted))

    def __reduce__(self) -> tuple[Any, ...]:
        # Numbers of types are those of one opening of the file.
        return (Dataset, (self._file, self._number, self.name))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("values of a file cannot be had without a copy")
        array: npt.NDArray[Any] = np.asarray(self.read(...))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 dataset>"
        kind = self._element_type()
        shown = "?" if kind.route == "other" else kind.dtype.str
        return f'<HDF5 dataset "{posixpath.basename(self.name)}": shape {self.shape}, type "{shown}">'


class _View:
    """A dataset whose values are changed on reading."""

    __slots__ = ("_change", "_dataset")

    def __init__(self, dataset: Dataset, change: Callable[[Any], Any]) -> None:
        self._dataset = dataset
        self._change = change

    def __getitem__(self, arguments: Any) -> Any:
        return self._change(self._dataset[arguments])

    def __len__(self) -> int:
        return len(self._dataset)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = np.asarray(self._change(np.asarray(self._dataset)))
        return array if dtype is None else array.astype(dtype, copy=False)


def _suits_scalar(selection: Any) -> bool:
    items = selection if isinstance(selection, tuple) else (selection,)
    return all(item is Ellipsis or isinstance(item, (str, list)) for item in items)


def _with_fields(array: npt.NDArray[Any], names: list[str] | str) -> npt.NDArray[Any]:
    """Fields of a structured array, packed, as h5py gives them."""
    if array.dtype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in [names] if isinstance(names, str) else names:
        if name not in array.dtype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    if isinstance(names, str):
        return np.ascontiguousarray(array[names]) if array.ndim else array[names]
    packed = np.empty(array.shape, [(name, array.dtype[name]) for name in names])
    for name in names:
        packed[name] = array[name]
    return packed


def _bounds(chosen: Selection) -> tuple[Any, ...]:
    """A selection as numpy takes it, all axes kept."""
    return tuple(_shifted(axis, 0) for axis in chosen.axes)


def _shifted(axis: Any, start: int) -> Any:
    if isinstance(axis, tuple):
        first, count, step = axis
        return slice(first - start, first - start + count * step, step)
    return axis.astype(np.int64) - start


def _ends(axis: Any) -> tuple[int, int]:
    """The first element and one past the last."""
    if isinstance(axis, tuple):
        start, count, step = axis
        return start, start + (count - 1) * step + 1 if count else start
    return (int(axis.min()), int(axis.max()) + 1) if len(axis) else (0, 0)


def _decoded(values: Any, encoding: str, errors: str) -> Any:
    if isinstance(values, bytes):
        return values.decode(encoding, errors)
    texts = np.empty(values.shape, object)
    texts.reshape(-1)[:] = [value.decode(encoding, errors) for value in values.reshape(-1)]
    return texts
