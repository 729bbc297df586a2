"""Reading HDF5 files with the interface of h5py and all cores.

Objects are numbers of the compiled part with names; nothing is read from the file but values. What the compiled part does
not decode as h5py shows it (references, compounds with variable-length members, unusual numbers, filters it does not
know) is read by h5py where that is installed; virtual datasets and external files otherwise by libhdf5 in a process of
its own.
"""

from __future__ import annotations

import builtins
import os
import posixpath
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from types import TracebackType
from typing import Any, Callable, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from raddle import _core
from raddle._selection import Selection, check_destination, rows_of, select
from raddle._types import ElementType, element_type, raw_bytes
from raddle.errors import InputError, ObjectNotFoundError, UnsupportedError, UsageError

_T = TypeVar("_T")

# Values read at once by an iteration over rows.
_ITERATION_LEN_BYTES = 1 << 20

_DEFLATE, _SHUFFLE, _FLETCHER32, _SZIP, _SCALEOFFSET, _LZF = 1, 2, 3, 4, 6, 32000


def open(path: str | os.PathLike[str], *, threads: int | None = None) -> File:
    """Open an HDF5 file for reading.

    Parameters
    ----------
    path
        Any HDF5 file, netCDF-4 files among them.
    threads
        Threads that decode chunks. Default: the cores that this process may use.

    Returns
    -------
    File
        The file, which is also its root group and a context manager.

    Raises
    ------
    raddle.errors.InputNotFoundError
        If there is no such file (also a ``FileNotFoundError``).
    raddle.errors.DamagedError
        If it is no HDF5 file, cut short or damaged (also an ``OSError``).

    Notes
    -----
    The metadata is read at once, values when they are asked for. Chunks are decoded outside of libhdf5 and of Python's
    lock. The file must not be written meanwhile.

    Examples
    --------
    >>> with raddle.open("run.h5") as f:  # doctest: +SKIP
    ...     energy = f["rec/energy"][1000:2000]
    """
    return File(path, threads=threads)


def read_columns(
    group: Group,
    names: Sequence[str] | None = None,
    rows: slice | None = None,
    *,
    library: Literal["dict", "numpy", "awkward", "pandas"] = "dict",
) -> Any:
    """Read many datasets of a group in one parallel pass: `Group.read_columns` as a function."""
    return group.read_columns(names, rows, library=library)


class Empty:
    """The value of a dataset or attribute without elements (a null dataspace): a type and no shape."""

    __slots__ = ("dtype",)

    shape = None
    size = None

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        # h5py's class of the same name counts as well.
        alike = getattr(other, "shape", 0) is None and getattr(other, "size", 0) is None
        return alike and getattr(other, "dtype", None) == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"Empty(dtype={self.dtype!r})"


class SoftLink:
    """A link to a path, as `Group.get` gives it with ``getlink``."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<SoftLink to {self.path!r}>"


class ExternalLink:
    """A link to a path in another file, as `Group.get` gives it with ``getlink``."""

    __slots__ = ("filename", "path")

    def __init__(self, filename: str, path: str) -> None:
        self.filename = filename
        self.path = path

    def __repr__(self) -> str:
        return f"<ExternalLink to {self.path!r} in file {self.filename!r}>"


class _Object:
    """An object of a file: its number and the name by which it was found."""

    __slots__ = ("_file", "_number", "name")

    _file: File
    _number: int
    name: str
    """Absolute path by which the object was found."""

    def __init__(self, file: File, number: int, name: str) -> None:
        self._file = file
        self._number = number
        self.name = name

    @property
    def file(self) -> File:
        """The file."""
        return self._file

    @property
    def parent(self) -> Group:
        """The group in the object's name."""
        parent = self._file[posixpath.dirname(self.name)]
        assert isinstance(parent, Group)
        return parent

    @property
    def attrs(self) -> AttributeManager:
        """The attributes."""
        return AttributeManager(self)

    def _core(self) -> _core.File:
        return self._file._open_core()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Object):
            return NotImplemented
        return self._file.filename == other._file.filename and self._number == other._number

    def __hash__(self) -> int:
        return hash((self._file.filename, self._number))

    def __bool__(self) -> bool:
        return self._file._core_file is not None


class AttributeManager(Mapping[str, Any]):
    """The attributes of an object, read when asked for; values as h5py gives them."""

    __slots__ = ("_owner",)

    def __init__(self, owner: _Object) -> None:
        self._owner = owner

    def __getitem__(self, name: str) -> Any:
        owner = self._owner
        found = owner._core().attribute(owner._number, _encoded(name))
        if found is None:
            raise _not_found(f"{owner.name} has no attribute {name!r}")
        number, shape, values = found
        kind = owner._file._element_type(number)
        if kind.route == "other" or values is None:
            return _through_h5py(owner, f"attribute {name!r} of {owner.name}").attrs[name]
        if shape is None:
            return Empty(kind.dtype)
        if kind.route == "strings":
            texts = [value.decode("utf-8", "surrogateescape") for value in values]  # type: ignore[union-attr]
            array = np.empty(shape, kind.dtype)
            array.reshape(-1)[:] = texts
        else:
            array = kind.array(shape, values)
        return array[()] if array.ndim == 0 else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner._core().attribute_names(self._owner._number))

    def __len__(self) -> int:
        return len(self._owner._core().attribute_names(self._owner._number))

    def __contains__(self, name: object) -> bool:
        owner = self._owner
        return isinstance(name, str) and owner._core().attribute(owner._number, _encoded(name)) is not None

    def __repr__(self) -> str:
        return f"<Attributes of {self._owner.name!r}: {', '.join(self)}>"


class Datatype(_Object):
    """A committed (named) datatype."""

    __slots__ = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in numpy's terms."""
        kind = self._file._element_type(self._core().committed(self._number))
        if kind.route == "other":
            return _through_h5py(self, f"type {self.name}").dtype  # type: ignore[no-any-return]
        return kind.dtype

    def __repr__(self) -> str:
        return f'<HDF5 named type "{posixpath.basename(self.name)}">'


class Dataset(_Object):
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
            return _through_h5py(self, f"type of {self.name}").dtype  # type: ignore[no-any-return]
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
            return _through_h5py(self, f"fill value of {self.name}").fillvalue
        stored = self._core().fill(self._number)
        if stored is None:
            if kind.route == "strings":
                return b""
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
        chosen = select(selection, shape)
        if not shape and not (selection == () or selection is Ellipsis or chosen.fields is not None):
            raise ValueError("Illegal slicing argument for scalar dataspace")
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
            raise _unsupported(f"{self.name}: a type that only h5py shows; install h5py")
        rows, relative = None, list(_bounds(chosen))
        if relative:
            first = chosen.axes[0]
            start, end = _ends(first)
            rows = (start, end)
            relative[0] = _shifted(first, start)
        shape = self.shape or ()
        shape = ((rows[1] - rows[0],) if rows else ()) + shape[1:]
        values = self._core().read_through_library(self._number, _encoded(self.name), rows)
        return kind.array(shape, values)[tuple(relative)].reshape(chosen.shape + (kind.dtype.subdtype or (0, ()))[1])

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


class _Items(ItemsView[str, Any]):
    """Names and objects; None for links that lead nowhere."""

    _mapping: Group

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._pairs()


class _Values(ValuesView[Any]):
    """Objects; None for links that lead nowhere."""

    _mapping: Group

    def __iter__(self) -> Iterator[Any]:
        return (member for _, member in self._mapping._pairs())


class Group(_Object, Mapping[str, Any]):
    """A group: a mapping of names and paths to groups, datasets and committed datatypes."""

    __slots__ = ()

    def __getitem__(self, name: str | bytes) -> Any:
        path = _encoded(name) if isinstance(name, str) else name
        found = self._core().find(self._number, path)
        shown = path.decode("utf-8", "surrogateescape")
        if found is None:
            raise _not_found(f"no object {shown!r} in {self.name}")
        if isinstance(found, tuple):
            return self._file._foreign_object(found[0], found[1])
        return self._file._object(found, posixpath.normpath(posixpath.join(self.name, shown)))

    @overload
    def get(self, name: str, /) -> Any | None: ...
    @overload
    def get(self, name: str, /, default: _T, getclass: bool = ..., getlink: bool = ...) -> Any | _T: ...
    def get(self, name: str, default: Any = None, getclass: bool = False, getlink: bool = False) -> Any:
        """An object, its class, its link, or ``default`` where there is none."""
        if getlink:
            link = self._link(name)
            if link is None:
                return default
            made = {"soft": SoftLink, "external": ExternalLink}.get(link[0])
            found = made if getclass else made(*link[1:]) if made else link
            return found
        try:
            found = self[name]
        except KeyError:
            return default
        return type(found) if getclass else found

    def _link(self, name: str) -> tuple[Any, ...] | None:
        folder, base = posixpath.split(name.rstrip("/"))
        group = self[folder] if folder else self
        return self._core().link(group._number, _encoded(base)) if isinstance(group, Group) else None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, (str, bytes)):
            return False
        try:
            self[name]
        except (KeyError, OSError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._core().names(self._number))

    def __len__(self) -> int:
        return self._core().link_count(self._number)

    def keys(self) -> KeysView[str]:
        """Names of the members."""
        return KeysView(self)

    def items(self) -> ItemsView[str, Any]:
        """Names and members; None for a link that leads nowhere."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Members; None for a link that leads nowhere."""
        return _Values(self)

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        prefix = self.name if self.name.endswith("/") else self.name + "/"
        make = self._file._make
        for name, number, kind in self._core().children(self._number):
            if number is None or kind is None:
                yield name, self.get(name)
            else:
                yield name, make(kind, number, prefix + name)

    def visititems(self, function: Callable[[str, Any], _T | None]) -> _T | None:
        """Call ``function(path, object)`` for every object below, each once, until it returns something."""
        return self._visit("", {self._number}, function)

    def visit(self, function: Callable[[str], _T | None]) -> _T | None:
        """Call ``function(path)`` for every object below, each once, until it returns something."""
        return self.visititems(lambda path, _: function(path))

    def _visit(
        self, prefix: str, seen: set[int], function: Callable[[str, Any], _T | None]
    ) -> _T | None:
        below = self.name if self.name.endswith("/") else self.name + "/"
        children = self._core().children(self._number)
        # In the order of names' bytes, as libhdf5 visits.
        for name, number, kind in sorted(children, key=lambda child: _encoded(child[0])):
            if number is None or kind is None or number in seen:
                continue
            seen.add(number)
            found = self._file._make(kind, number, below + name)
            result = function(prefix + name, found)
            if result is None and isinstance(found, Group):
                result = found._visit(prefix + name + "/", seen, function)
            if result is not None:
                return result
        return None

    def read_columns(
        self,
        names: Sequence[str] | None = None,
        rows: slice | None = None,
        *,
        library: Literal["dict", "numpy", "awkward", "pandas"] = "dict",
    ) -> Any:
        """Read many datasets in one parallel pass.

        Parameters
        ----------
        names
            Paths of datasets, from this group. Default: all datasets of the group that have a dimension.
        rows
            Rows of the first axis, the same of every dataset. Default: all.
        library
            ``"dict"``: a dict of arrays by name. ``"numpy"``: one structured array. ``"awkward"``: an awkward record
            array. ``"pandas"``: a data frame. All but the first need columns of equal length.

        Returns
        -------
        dict, numpy.ndarray, awkward.Array or pandas.DataFrame

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If there is no such dataset (also a ``KeyError``).
        """
        columns = self._columns(names)
        arrays: dict[str, npt.NDArray[Any]] = {}
        wanted = []
        for name, column in columns.items():
            shape = column.shape
            if not shape:
                raise UsageError(f"{column.name} has no rows")
            axis = rows_of(rows, shape[0])
            kind = column._element_type()
            if kind.route != "bytes" or not column._storage()[3]:
                start, count, step = axis
                arrays[name] = column.read(slice(start, start + count * step, step))
                continue
            base, inner = kind.dtype.subdtype or (kind.dtype, ())
            array = np.empty((axis[1], *shape[1:], *inner), base)
            arrays[name] = array
            if array.nbytes:
                axes = [axis, *((0, dim, 1) for dim in shape[1:])]
                wanted.append((column._number, axes, raw_bytes(array)))
        self._core().read(wanted)
        return _in_library(arrays, library)

    def _columns(self, names: Sequence[str] | None) -> dict[str, Dataset]:
        if names is None:
            return {name: found for name, found in self.items() if isinstance(found, Dataset) and found.shape}
        if isinstance(names, str):
            raise UsageError("names is a list of names, not one text")
        columns = {}
        for name in names:
            found = self[name]
            if not isinstance(found, Dataset) or found.file is not self._file:
                raise UsageError(f"{name!r} is no dataset of this file")
            columns[name] = found
        return columns

    def __eq__(self, other: object) -> bool:
        return _Object.__eq__(self, other)

    def __hash__(self) -> int:
        return _Object.__hash__(self)

    def __repr__(self) -> str:
        return f'<HDF5 group "{self.name}" ({len(self)} members)>' if self else "<Closed HDF5 group>"


class File(Group):
    """An HDF5 file opened for reading; made by `raddle.open`. It is its root group and a context manager."""

    __slots__ = ("_core_file", "_elements", "_h5py_file", "_linked", "filename")

    filename: str
    """Path as given."""

    def __init__(self, path: str | os.PathLike[str], *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise UsageError(f"{threads} threads are too few")
        self.filename = os.fspath(path)
        self._core_file: _core.File | None = _core.File(path, threads)
        self._elements: dict[int, ElementType] = {}
        self._h5py_file: Any = None
        self._linked: dict[str, File] = {}
        super().__init__(self, 0, "/")

    @property
    def mode(self) -> str:
        """Always ``"r"``."""
        return "r"

    def close(self) -> None:
        """Close the file and those that were opened through its external links."""
        self._core_file = None
        if self._h5py_file:
            self._h5py_file.close()
        for file in self._linked.values():
            file.close()
        self._h5py_file, self._linked = None, {}

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open_core(self) -> _core.File:
        if self._core_file is None:
            raise UsageError(f"{self.filename}: the file is closed")
        return self._core_file

    def _element_type(self, number: int) -> ElementType:
        found = self._elements.get(number)
        if found is None:
            found = self._elements[number] = element_type(*self._open_core().datatype(number))
        return found

    def _object(self, number: int, name: str) -> Any:
        if number == 0:
            return self if name == "/" else Group(self, 0, name)
        return self._make(self._open_core().kind(number)[0], number, name)

    def _make(self, kind: str, number: int, name: str) -> Any:
        if kind == "dataset":
            return Dataset(self, number, name)
        if kind == "group":
            return Group(self, number, name)
        if kind == "datatype":
            return Datatype(self, number, name)
        reason = self._open_core().reason(number)
        error = InputError(f"{self.filename}: {name} cannot be read: {reason}")
        error.kind = "damaged"
        raise error

    def _foreign_object(self, filename: bytes, path: bytes) -> Any:
        """The object behind an external link; its file stays open as long as this one."""
        folder = os.path.dirname(os.path.abspath(self.filename))
        other = os.path.join(folder, os.fsdecode(filename))
        if other not in self._linked:
            try:
                self._linked[other] = File(other)
            except OSError as error:
                raise _not_found(f"{other}: {error}") from error
        return self._linked[other][path]

    def _h5py(self) -> Any:
        """The same file in h5py; None where that is not installed."""
        if self._h5py_file is None:
            try:
                import h5py
            except ImportError:
                return None
            try:
                # Registers the filters that it brings.
                import hdf5plugin  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
            except ImportError:
                pass
            self._h5py_file = h5py.File(self.filename, "r", locking="best-effort")
        return self._h5py_file

    def __repr__(self) -> str:
        state = "mode r" if self else "closed"
        return f'<HDF5 file "{os.path.basename(self.filename)}" ({state})>'

    def __reduce__(self) -> tuple[Any, ...]:
        return (File, (self.filename,))


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _not_found(message: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(message)


def _unsupported(message: str) -> UnsupportedError:
    return UnsupportedError(message)


def _through_h5py(owner: _Object, what: str) -> Any:
    """The same object in h5py."""
    other = owner._file._h5py()
    if other is None:
        raise _unsupported(f"{what}: only h5py reads it; install h5py")
    return other[owner.name]


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


def _in_library(arrays: dict[str, npt.NDArray[Any]], library: str) -> Any:
    if library == "dict":
        return arrays
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise UsageError(f"columns of {len(lengths)} lengths make no table; read them as a dict")
    if library == "numpy":
        fields = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
        table = np.empty(lengths.pop() if lengths else 0, fields)
        for name, array in arrays.items():
            table[name] = array
        return table
    if library == "awkward":
        import awkward

        return awkward.Array(arrays)
    if library == "pandas":
        import pandas

        flat = {name: array if array.ndim == 1 else list(array) for name, array in arrays.items()}
        return pandas.DataFrame(flat)
    raise UsageError(f"library {library!r} is none of dict, numpy, awkward, pandas")
