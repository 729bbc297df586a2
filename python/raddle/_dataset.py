"""Datasets: their properties, and reading them.

Data that the compiled part does not decode like h5py (references, compounds with variable-length members, unusual
numbers, unknown filters) is read by h5py if it is installed. Virtual datasets and external files are otherwise read by
libhdf5. Both run in separate processes.
"""

from __future__ import annotations

import builtins
import math
import posixpath
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle._blocks import BLOCK_LEN_BYTES, chunk_selections, dask_array
from raddle._conversion import assign, converted
from raddle._dimensions import Dimensions
from raddle._object import HdfObject, through_h5py
from raddle._references import is_reference
from raddle._selection import Selection, ascending, bounds, check_destination, ends, is_whole, orthogonal, select, shifted
from raddle._types import ElementType, raw_bytes
from raddle._values import Empty, encoded
from raddle._views import FieldsView, TextView, TypeView, with_fields
from raddle.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from raddle._core import _Outline as Outline
    from raddle._file import File

# Bytes read at once when iterating over rows.
_ITERATION_LEN_BYTES = 1 << 20

# Bytes requested from h5py at once: they pass through a socket, and each answer has a separate time limit. Longer if a
# chunk is longer, because each block would decode it again; shorter if the length of the values is unknown.
_BLOCK_LEN_BYTES = 64 << 20
_LONG_BLOCK_LEN_BYTES = 512 << 20
_OBJECTS_LEN_BYTES = 1 << 20

# Limit of a dataset that the compiled part allocates itself, into memory that is used again. A longer array comes from
# numpy, which raises MemoryError if a damaged file claims more than there is.
_WHOLE_LEN_BYTES = 32 << 20

# Bit of szip's first parameter (H5_SZIP_EC_OPTION_MASK).
_ENTROPY_CODING = 4

_DEFLATE, _SHUFFLE, _FLETCHER32, _SZIP, _SCALEOFFSET, _LZF = 1, 2, 3, 4, 6, 32000


class Dataset(HdfObject):
    """A dataset that is read by indexing; its properties are those of h5py."""

    __slots__ = ("_outline", "_storage_facts", "_whole_form")

    def __init__(self, file: File, number: int, name: str, outline: Outline | None = None) -> None:
        self._file = file
        self._number = number
        self.name = name
        self._outline = outline
        self._storage_facts: tuple[str, tuple[int, ...] | None, list[tuple[int, str, tuple[int, ...]]], bool] | None
        self._storage_facts = None
        self._whole_form: tuple[np.dtype[Any], tuple[int, ...]] | tuple[()] | None = None

    def _described(self) -> Outline:
        outline = self._outline
        if outline is None or self._file._core_file is None:
            outline = self._outline = self._core().outline(self._number)
        return outline

    def _storage(self) -> tuple[str, tuple[int, ...] | None, list[tuple[int, str, tuple[int, ...]]], bool]:
        if self._storage_facts is None:
            self._storage_facts = self._core().storage(self._number)
        return self._storage_facts

    def _element_type(self) -> ElementType:
        return self._file._element_type(self._described()[2])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Number of elements per dimension; ``()`` for a scalar, None for a null dataspace."""
        return self._described()[0]

    @property
    def maxshape(self) -> tuple[int | None, ...] | None:
        """Maximum shape, with None for unlimited dimensions."""
        shape, largest, _ = self._described()
        return shape if largest is None else largest

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of an element, as shown by h5py."""
        kind = self._element_type()
        if kind.route == "other":
            return through_h5py(self, f"type of {self.name}").type(self.name)
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
        """Chunk shape; None if the data is not chunked."""
        return self._storage()[1]

    def _filter(self, number: int) -> tuple[int, ...] | None:
        return next((parameters for found, _, parameters in self._storage()[2] if found == number), None)

    @property
    def compression(self) -> str | None:
        """``"gzip"``, ``"lzf"``, ``"szip"``, ``"unknown"`` for a filter that h5py has no name for, or None."""
        names = {_DEFLATE: "gzip", _LZF: "lzf", _SZIP: "szip"}
        found = next((name for number, name in names.items() if self._filter(number) is not None), None)
        known = {*names, _SHUFFLE, _FLETCHER32, _SCALEOFFSET}
        return "unknown" if found is None and any(number not in known for number, *_ in self._storage()[2]) else found

    @property
    def compression_opts(self) -> Any:
        """Level of gzip; coding (``"ec"`` or ``"nn"``) and pixels per block of szip; None for other filters."""
        if parameters := self._filter(_DEFLATE):
            return parameters[0]
        if parameters := self._filter(_SZIP):
            return ("ec" if parameters[0] & _ENTROPY_CODING else "nn", parameters[1])
        return None

    @property
    def shuffle(self) -> bool:
        """Whether the shuffle filter is used."""
        return self._filter(_SHUFFLE) is not None

    @property
    def fletcher32(self) -> bool:
        """Whether chunks have a checksum."""
        return self._filter(_FLETCHER32) is not None

    @property
    def scaleoffset(self) -> int | None:
        """Parameter of the scale-offset filter: bits of integers, or decimal digits; None without the filter."""
        parameters = self._filter(_SCALEOFFSET)
        return parameters[1] if parameters else None

    @property
    def filters(self) -> list[tuple[int, str, tuple[int, ...]]]:
        """Number, name and parameters of each filter, in the order in which they are applied on writing."""
        return list(self._storage()[2])

    @property
    def filter_ids(self) -> tuple[int, ...]:
        """Numbers of the filters, in the order in which they are applied on writing."""
        return tuple(number for number, _, _ in self.filters)

    @property
    def filter_names(self) -> tuple[str, ...]:
        """Names of the filters as stored in the file, in the order in which they are applied on writing."""
        return tuple(name for _, name, _ in self.filters)

    @property
    def is_scale(self) -> bool:
        """Whether the dataset is a dimension scale."""
        found = self.attrs.get("CLASS")
        return isinstance(found, bytes) and found == b"DIMENSION_SCALE"

    @property
    def is_virtual(self) -> bool:
        """Whether the values are stored in other datasets."""
        return self._storage()[0] == "virtual"

    def virtual_sources(self) -> list[Any]:
        """Sources of a virtual dataset, as h5py's tuples.

        Raises UsageError if the dataset is not virtual, and `raddle.errors.UnsupportedError` without h5py.
        """
        if not self.is_virtual:
            raise UsageError(f"{self.name} is not a virtual dataset")
        return through_h5py(self, f"sources of {self.name}").sources(self.name)

    @property
    def external(self) -> list[tuple[str, int, int]] | None:
        """Names, offsets and lengths in bytes of the external file segments that hold the values; None without them."""
        if self._storage()[0] != "external":
            return None
        return through_h5py(self, f"files of {self.name}").external(self.name)

    @property
    def dims(self) -> Dimensions:
        """The dimensions: ``dims[0].label``, and ``dims[0][0]`` for the first dimension's first scale."""
        return Dimensions(self)

    @property
    def fillvalue(self) -> Any:
        """Value of elements that were never written."""
        kind = self._element_type()
        if kind.route == "other":
            return through_h5py(self, f"fill value of {self.name}").fill(self.name)
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
        """Number of elements along the first dimension."""
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
        """Reads a selection.

        Parameters
        ----------
        selection
            The index that would be in brackets: numbers, slices with steps of at least 1, `MultiBlockSlice`, Ellipsis,
            a list or array of numbers or a mask for one axis, a mask of the dataset's shape, names of fields; or a
            h5py region reference.
        out
            Array for the values, of the selection's shape. Values are converted to its type as in libhdf5, clipped to
            its range. No copy is made if it is C-contiguous and has the dataset's type.

        Returns
        -------
        numpy.ndarray or scalar
            ``out``, or a new array; a scalar if the selection names a single element, and an array without dimensions
            for an Ellipsis of a scalar dataset.

        Raises
        ------
        IndexError, TypeError, ValueError
            If the selection does not fit the shape.
        raddle.errors.DamagedError
            If a chunk does not decode to exactly its length.
        """
        if out is None and (selection is Ellipsis or (isinstance(selection, tuple) and not selection)):
            whole = self._whole()
            if whole is not None:
                return whole
        if is_reference(selection):
            return self._region(selection, out)
        shape = self.shape
        if shape is None:
            if out is not None or not is_whole(selection):
                raise UsageError("Empty datasets cannot be sliced")
            return Empty(self.dtype)
        if not shape and not _suits_scalar(selection):
            raise ValueError("Illegal slicing argument for scalar dataspace")
        chosen = select(selection, shape)
        if chosen.mask is None and chosen.fields is None:
            array = self._values(chosen, out)
        else:
            array = self._values(chosen, None)
            if chosen.mask is not None:
                array = array[chosen.mask]
            if chosen.fields is not None:
                array = with_fields(array, chosen.fields)
            if out is not None:
                check_destination(out, array.shape, array.dtype)
                assign(out, array)
        if out is not None:
            return out
        return array[()] if array.ndim == 0 and not chosen.keeps_array else array

    def _whole(self) -> npt.NDArray[Any] | None:
        """All values of a dataset of moderate size; None for scalars and for other datasets."""
        form = self._whole_form
        if form is None:
            form = self._whole_form = self._find_whole_form()
        core = self._file._core_file
        if not form or core is None:
            return None
        dtype, shape = form
        array: npt.NDArray[Any] = core.read_whole(self._number).view(dtype)
        return array if len(shape) == 1 else array.reshape(shape)

    def _find_whole_form(self) -> tuple[np.dtype[Any], tuple[int, ...]] | tuple[()]:
        """Type and shape of an array that the compiled part can allocate for all values; empty if it cannot."""
        shape = self.shape
        if not shape:
            return ()
        kind = self._element_type()
        if kind.route != "bytes" or not self._storage()[3]:
            return ()
        base, inner = kind.dtype.subdtype or (kind.dtype, ())
        return (base, shape + inner) if 0 < math.prod(shape) * kind.dtype.itemsize <= _WHOLE_LEN_BYTES else ()

    def _region(self, reference: Any, out: npt.NDArray[Any] | None) -> Any:
        """Values of a region, whose shape is determined by libhdf5."""
        found = through_h5py(self, f"a region of {self.name}").region(self.name, reference)
        if out is None:
            return found
        check_destination(out, found.shape, found.dtype)
        assign(out, found)
        return out

    def _values(self, chosen: Selection, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """The array of a selection, with all fields."""
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
            array = self._foreign(chosen)
        if out is not None and array is not out:
            assign(out, array)
        return array

    def _foreign(self, chosen: Selection) -> npt.NDArray[Any]:
        """Values that the compiled part cannot read."""
        other = self._file._h5py()
        kind = self._element_type()
        if other is not None:
            # All axes, because a single element is not an array. Axes of single numbers are dropped with the shape.
            asked, picked = ascending(chosen.axes)
            found = other.values(self.name, asked, *self._blocks(chosen))
            read: npt.NDArray[Any] = np.asarray(found, dtype=None if kind.route != "bytes" else kind.dtype.base)
            return orthogonal(read, picked).reshape(chosen.shape + read.shape[len(picked) :])
        if kind.route == "other":
            raise UnsupportedError(f"{self.name}: this type can only be read by h5py; install h5py")
        rows, relative = None, list(bounds(chosen.axes))
        if relative:
            first = chosen.axes[0]
            start, end = ends(first)
            rows = (start, end)
            relative[0] = shifted(first, start)
        shape = self.shape or ()
        shape = ((rows[1] - rows[0],) if rows else ()) + shape[1:]
        values = self._core().read_through_library(self._number, encoded(self.name), rows)
        inner = kind.dtype.subdtype[1] if kind.dtype.subdtype else ()
        array = orthogonal(kind.array(shape, values), relative)
        shaped: npt.NDArray[Any] = array.reshape(chosen.shape + inner)
        return shaped

    def _blocks(self, chosen: Selection) -> tuple[int, int]:
        """Rows of a selection to request from h5py at once, and the bytes to decode for each.

        Blocks consist of whole chunks unless these are too long.
        """
        dtype, chunks, shape = self.dtype, self.chunks, self.shape or ()
        # Selecting part of a chunk decodes all of it, and for scattered rows a chunk is decoded for each row.
        decoded_len_bytes = dtype.itemsize * math.prod(shape[1:]) * (chunks[0] if chunks else 1)
        row_len_bytes = max(1, dtype.itemsize * math.prod(chosen.read_shape[1:]))
        # Strings and sequences are longer than their descriptors.
        rows = (_OBJECTS_LEN_BYTES if dtype.hasobject else _BLOCK_LEN_BYTES) // row_len_bytes
        if chunks is None:
            return max(1, rows), decoded_len_bytes
        if rows < chunks[0]:
            return max(1, min(chunks[0], _LONG_BLOCK_LEN_BYTES // row_len_bytes)), decoded_len_bytes
        return rows - rows % chunks[0], decoded_len_bytes

    def read_direct(
        self, dest: npt.NDArray[Any], source_sel: Any = None, dest_sel: Any = None
    ) -> None:
        """Reads into an existing array, like the h5py method of this name.

        Parameters
        ----------
        dest
            Array to read into.
        source_sel
            Selection of the dataset, as from ``numpy.s_``. Default: all of it.
        dest_sel
            Selection of ``dest``. Default: all of it.
        """
        chosen = () if source_sel is None else source_sel
        target = dest if dest_sel is None else dest[dest_sel]
        if target.base is None and target is not dest:
            # Fancy indexing has made a copy.
            dest[dest_sel] = converted(np.asarray(self.read(chosen)), dest.dtype)
            return
        values = target if target.shape else target.reshape(())
        self.read(chosen, out=values)

    def to_dask(self, block_len_bytes: int = BLOCK_LEN_BYTES) -> Any:
        """The dataset as a dask array, read when it is computed.

        Parameters
        ----------
        block_len_bytes
            Approximate bytes of values per block. Blocks consist of whole chunks, so none is decoded twice.

        Returns
        -------
        dask.array.Array

        Raises
        ------
        raddle.errors.UsageError
            If the dataset has no dimension, or elements that are arrays.
        """
        return dask_array(self, block_len_bytes)

    def iter_chunks(self, sel: Any = None) -> Iterator[tuple[slice, ...]]:
        """Selections of one chunk each, in row-major order.

        Parameters
        ----------
        sel
            A number or slice per axis: only chunks that overlap it, restricted to it. Default: all.

        Raises
        ------
        TypeError
            If the dataset is not chunked.
        raddle.errors.UsageError
            If the selection does not consist of one number or slice without a step per axis, within the shape.
        """
        return chunk_selections(self, sel)

    def astype(self, dtype: npt.DTypeLike) -> TypeView:
        """A view whose values are converted to ``dtype`` when read, clipped to its range as in libhdf5.

        Parameters
        ----------
        dtype
            Type of the values.
        """
        return TypeView(self, dtype)

    def asstr(self, encoding: str = "utf-8", errors: str = "strict") -> TextView:
        """A view whose values are ``str`` instead of bytes. Raises TypeError for datasets that do not hold strings.

        Parameters
        ----------
        encoding
            Encoding of the stored bytes.
        errors
            What to do with bytes that are not valid, as for ``bytes.decode``.
        """
        kind = self._element_type()
        if kind.route != "strings" and (kind.route != "bytes" or kind.dtype.base.kind != "S"):
            raise TypeError(f"{self.name} does not hold strings")
        return TextView(self, encoding, errors)

    def fields(self, names: str | Sequence[str]) -> FieldsView:
        """A view of some fields of a compound. Raises ValueError if a field does not exist.

        Parameters
        ----------
        names
            Name of a field, or several names.
        """
        return FieldsView(self, names)

    def __reduce__(self) -> tuple[Any, ...]:
        # Identifiers of types are valid for one opening of the file only.
        return (Dataset, (self._file, self._number, self.name))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("values of a file cannot be returned without a copy")
        array: npt.NDArray[Any] = np.asarray(self.read(...))
        return array if dtype is None else converted(array, dtype)

    def __repr__(self) -> str:
        if not self:
            return "<Closed HDF5 dataset>"
        kind = self._element_type()
        type_name = "?" if kind.route == "other" else kind.dtype.str
        return f'<HDF5 dataset "{posixpath.basename(self.name)}": shape {self.shape}, type "{type_name}">'


def _suits_scalar(selection: Any) -> bool:
    items = selection if isinstance(selection, tuple) else (selection,)
    return all(item is Ellipsis or isinstance(item, (str, list)) for item in items)
