"""Groups: mappings of names to the objects of a file, with the interface of h5py.

Objects are identifiers of the compiled part with names; only values are read from the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

from raddle import gpu
from raddle._completion import Names, completions
from raddle._dataset import Dataset
from raddle._events import read_events, without_event_counts
from raddle._memory import empty_arrays
from raddle._object import HdfObject, Unreadable
from raddle._references import is_reference, referenced
from raddle._selection import Rows, listed_rows, shifted
from raddle._tables import Library, table
from raddle._types import raw_bytes
from raddle._values import Link, decoded, encoded, link
from raddle.errors import ObjectNotFoundError, TooManyLinksError, UsageError

if TYPE_CHECKING:
    from raddle._core import _Child as Child

_T = TypeVar("_T")

# A name of a child of a group.
_NAME: Callable[[Child], str] = itemgetter(0)

# Maximum number of soft and external links followed in one path, as in libhdf5 (H5L_NUM_LINKS).
_MAX_LINKS = 16


class _Items(ItemsView[str, Any]):
    """Names and objects; None for dangling links, `Unreadable` for objects that cannot be read."""

    _mapping: Group

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._pairs()

    def __repr__(self) -> str:
        return f"ItemsView({self._mapping!r})"


class _Values(ValuesView[Any]):
    """Objects; None for dangling links, `Unreadable` for objects that cannot be read."""

    _mapping: Group

    def __iter__(self) -> Iterator[Any]:
        return (member for _, member in self._mapping._pairs())

    def __repr__(self) -> str:
        return f"ValuesView({self._mapping!r})"


class Group(HdfObject, Mapping[str, Any]):
    """A group: a mapping of names and paths to groups, datasets and committed datatypes."""

    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        """The object with a name or path, or the one that an h5py reference points to."""
        if not isinstance(name, (str, bytes)) and is_reference(name):
            return referenced(self._file, name)
        found = self._find(encoded(name))
        if isinstance(found, Unreadable):
            raise found._error()
        return found

    def _find(self, path: bytes, max_links: int = _MAX_LINKS) -> Any:
        """The object at a path, `Unreadable` if it cannot be read.

        Raises ObjectNotFoundError, or TooManyLinksError for circular soft links.
        """
        found = self._core().find(self._number, path, max_links) if path else None
        if found is None:
            raise ObjectNotFoundError(f"no object {decoded(path)!r} in {self.name}")
        if isinstance(found, tuple):
            filename, path_there, links_left = found
            if not links_left:
                # Not a TooManyLinksError: h5py also distinguishes circles through files from those within one file.
                raise ObjectNotFoundError(f"no object {decoded(path)!r} in {self.name}: too many links into other files")
            return self._file._foreign_object(filename, path_there, links_left - 1)
        # Two leading slashes mean something to POSIX, but not to HDF5.
        name = "/" + posixpath.normpath(posixpath.join(self.name, decoded(path))).lstrip("/")
        return self._file._make(self._core().kind(found)[0], found, name)

    @overload
    def get(self, name: str, /) -> Any | None: ...
    @overload
    def get(self, name: str, /, default: _T, getclass: bool = ..., getlink: bool = ...) -> Any | _T: ...
    def get(self, name: str, default: Any = None, getclass: bool = False, getlink: bool = False) -> Any:
        """An object, its class or its link (a `HardLink`, `SoftLink` or `ExternalLink`); ``default`` if it does not
        exist.

        Parameters
        ----------
        name
            Path relative to this group, or absolute.
        default
            Returned if there is no such object.
        getclass
            Whether to return the class of the object, or of the link.
        getlink
            Whether to return the link instead of the object.
        """
        try:
            if getlink:
                described = self._link(encoded(name))
                found = default if described is None else link(described)
                return type(found) if getclass and described else found
            found = self[name]
        except KeyError:
            return default
        return type(found) if getclass else found

    def _link(self, path: bytes) -> tuple[Any, ...] | None:
        """The last link of a path. Raises ObjectNotFoundError if an earlier part of the path does not exist."""
        folder, name = posixpath.split(path.rstrip(b"/"))
        group = self._before(folder)
        return group._core().link(group._number, name) if isinstance(group, Group) else None

    def _before(self, folder: bytes) -> Any:
        """The object that contains the last link of a path. Raises ObjectNotFoundError or TooManyLinksError."""
        try:
            return self[folder] if folder else self
        except TooManyLinksError as error:
            # Circular soft links of this file raise again; those of another file count as missing, as in libhdf5.
            self._core().find(self._number, folder, _MAX_LINKS)
            raise ObjectNotFoundError(str(error)) from error

    def __contains__(self, name: object) -> bool:
        """Returns whether there is a link with this name, even if it is dangling; raises TypeError for values that are not
        names.

        Raises TooManyLinksError if soft links before the last part are circular.
        """
        path = encoded(name)  # type: ignore[arg-type]
        folder, last = posixpath.split(path.rstrip(b"/"))
        try:
            if path and last in (b"", b"."):
                return not folder or isinstance(self._before(folder), Group)
            return self._link(path) is not None
        except (KeyError, OSError):
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._core().names(self._number))

    def __len__(self) -> int:
        return self._core().link_count(self._number)

    def keys(self) -> KeysView[str]:
        """Names of the members."""
        return Names(self)

    def items(self) -> ItemsView[str, Any]:
        """Names and members; None for dangling links, `Unreadable` for objects that cannot be read."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Members; None for dangling links, `Unreadable` for objects that cannot be read."""
        return _Values(self)

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        prefix = self.name if self.name.endswith("/") else self.name + "/"
        make = self._file._make
        for name, number, kind, outline in self._core().children(self._number):
            if number is None or kind is None:
                yield name, self._led_to(name)
            else:
                yield name, make(kind, number, prefix + name, outline)

    def _led_to(self, name: str) -> Any | None:
        try:
            return self._find(encoded(name))
        except (KeyError, TooManyLinksError):
            return None

    def visititems(self, function: Callable[[str, Any], _T | None]) -> _T | None:
        """Calls ``function(path, object)`` for every object below, each once, until it returns a value other than None.

        An object that cannot be read is passed as `Unreadable`.

        Parameters
        ----------
        function
            Called with the path relative to this group, and the object.
        """
        return self._visit("", {self._number}, function)

    def visit(self, function: Callable[[str], _T | None]) -> _T | None:
        """Calls ``function(path)`` for every object below, each once, until it returns a value other than None.

        Parameters
        ----------
        function
            Called with the path relative to this group.
        """
        return self.visititems(lambda path, _: function(path))

    def visititems_links(self, function: Callable[[str, Link], _T | None]) -> _T | None:
        """Calls ``function(path, link)`` for every link below until it returns a value other than None; groups with
        several names are visited once.

        Parameters
        ----------
        function
            Called with the path relative to this group, and the link.
        """
        return self._visit_links("", {self._number}, function)

    def visit_links(self, function: Callable[[str], _T | None]) -> _T | None:
        """Calls ``function(path)`` for every link below until it returns a value other than None; groups with several
        names are visited once.

        Parameters
        ----------
        function
            Called with the path relative to this group.
        """
        return self.visititems_links(lambda path, _: function(path))

    def _in_visiting_order(self) -> list[Child]:
        # Sorted by the bytes of the names, in which order libhdf5 visits them; for ASCII names this is the order of
        # strings.
        children = self._core().children(self._number)
        if "".join(map(_NAME, children)).isascii():
            return sorted(children, key=_NAME)
        return sorted(children, key=lambda child: encoded(child[0]))

    def _visit_links(
        self, prefix: str, seen: set[int], function: Callable[[str, Link], _T | None]
    ) -> _T | None:
        for name, number, kind, _ in self._in_visiting_order():
            described = self._core().link(self._number, encoded(name))
            assert described is not None
            result = function(prefix + name, link(described))
            if result is None and number is not None and kind == "group" and number not in seen:
                seen.add(number)
                result = Group(self._file, number, name)._visit_links(prefix + name + "/", seen, function)
            if result is not None:
                return result
        return None

    def _visit(
        self, prefix: str, seen: set[int], function: Callable[[str, Any], _T | None]
    ) -> _T | None:
        below = self.name if self.name.endswith("/") else self.name + "/"
        make = self._file._make
        for name, number, kind, outline in self._in_visiting_order():
            if number is None or kind is None or number in seen:
                continue
            seen.add(number)
            found = make(kind, number, below + name, outline)
            result = function(prefix + name, found)
            if result is None and kind == "group":
                result = found._visit(prefix + name + "/", seen, function)
            if result is not None:
                return result
        return None

    def read_columns(
        self,
        names: Sequence[str] | None = None,
        rows: Rows = None,
        *,
        library: Library = "dict",
    ) -> Any:
        """Reads many datasets in one parallel pass.

        Parameters
        ----------
        names
            Paths of datasets, relative to this group. Default: all datasets of the group that have a dimension, except
            those of other files, to which external links lead. For libraries that need columns of equal length,
            ``KEY.seq_cnt`` and ``KEY.offsets``, which have a row per event, are also left out.
        rows
            Rows of the first axis, the same for all datasets: a slice, a list or array of numbers in any order, or a
            mask. Default: all.
        library
            ``"dict"``: a dict of arrays by name. ``"numpy"``: one structured array. ``"awkward"``: an awkward record
            array. ``"pandas"``: a data frame with a column per field of a compound (``NAME.FIELD``), and strings as
            ``str``. These three need columns of equal length. ``"cupy"``: a dict of GPU arrays, decoded on the GPU
            (`raddle.gpu.read_columns`); rows must be a slice.

        Returns
        -------
        dict, numpy.ndarray, awkward.Array or pandas.DataFrame

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If a dataset does not exist (also a ``KeyError``).
        raddle.errors.UsageError
            If ``rows`` is not valid, or the library cannot represent a column, which is named.
        IndexError, TypeError
            If a list or a mask of rows does not fit a dataset.
        """
        if library == "cupy":
            if rows is not None and not isinstance(rows, slice):
                raise UsageError("rows for a GPU must be a slice")
            return gpu.read_columns(self, names, rows)
        columns = self._columns(names)
        if names is None and library != "dict":
            columns = without_event_counts(columns)
        arrays: dict[str, Any] = dict.fromkeys(columns)
        wanted = []
        for name, column in columns.items():
            shape = column.shape
            if not shape:
                raise UsageError(f"{column.name} has no rows")
            axis = listed_rows(rows, shape[0])
            kind = column._element_type()
            if kind.route != "bytes" or not column._storage()[3]:
                arrays[name] = column.read(shifted(axis, 0))
                continue
            base, inner = kind.dtype.subdtype or (kind.dtype, ())
            axes = [axis, *((0, dim, 1) for dim in shape[1:])]
            count = axis[1] if isinstance(axis, tuple) else len(axis)
            wanted.append((name, column._number, axes, ((count, *shape[1:], *inner), base)))
        requests = []
        for (name, number, axes, _), array in zip(wanted, empty_arrays([place for *_, place in wanted])):
            arrays[name] = array
            if array.nbytes:
                requests.append((number, axes, raw_bytes(array)))
        self._core().read(requests)
        return table(arrays, library)

    def read_events(
        self, names: Sequence[str] | None = None, events: slice | None = None, *, key: str = "evt"
    ) -> Any:
        """Reads rows by event, from a table with partition keys, in one parallel pass.

        Parameters
        ----------
        names
            Paths of columns, relative to this group. Default: all columns of the table.
        events
            Events, as rows of the group with one row per event. Default: all.
        key
            Name of the key: ``KEY.offsets`` contains the rows of each event.

        Returns
        -------
        awkward.Array
            A list of records of any length per event.

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If the group has no ``KEY.offsets``; create it with ``raddle keys add``.
        """
        return read_events(self, names, events, key)

    def _columns(self, names: Sequence[str] | None) -> dict[str, Dataset]:
        if names is None:
            # Objects behind external links belong to another file.
            members = [(name, found) for name, found in self.items() if found is not None and found.file is self._file]
            for _, found in members:
                if isinstance(found, Unreadable):
                    raise found._error()
            return {name: found for name, found in members if isinstance(found, Dataset) and found.shape}
        if isinstance(names, str):
            raise UsageError("names must be a list of names, not a string")
        columns = {}
        for name in names:
            found = self[name]
            if not isinstance(found, Dataset) or found.file is not self._file:
                raise UsageError(f"{name!r} is not a dataset of this file")
            columns[name] = found
        return columns

    def __eq__(self, other: object) -> bool:
        return HdfObject.__eq__(self, other)

    def __hash__(self) -> int:
        return HdfObject.__hash__(self)

    def __repr__(self) -> str:
        return f'<HDF5 group "{self.name}" ({len(self)} members)>' if self else "<Closed HDF5 group>"

    def _repr_html_(self) -> str:
        from raddle._html import tree

        return tree(self)

    def _ipython_key_completions_(self) -> list[str]:
        return completions(self) if self else []


def read_columns(
    group: Group,
    names: Sequence[str] | None = None,
    rows: Rows = None,
    *,
    library: Library = "dict",
) -> Any:
    """Reads many datasets of a group in one parallel pass: `Group.read_columns` as a function.

    Parameters
    ----------
    group
        Group that contains the datasets.
    names
        Paths of datasets, as for `Group.read_columns`.
    rows
        Rows of the first axis, as for `Group.read_columns`.
    library
        What to return, as for `Group.read_columns`.
    """
    return group.read_columns(names, rows, library=library)
