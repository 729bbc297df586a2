"""The xarray engine ``"raddle"``: netCDF-4 and other HDF5 files, with variables read on demand.

Variable-length strings become ``str``, as in other engines.

Dimensions are named after dimension scales, as in netCDF-4. An axis without a scale gets a dimension of the group with
the same length or, if there is none, a dimension named ``phony_dim_0`` and so on, as in other xarray engines.
"""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle._dataset import Dataset
from raddle._file import File
from raddle._group import Group
from raddle._object import Datatype, HdfObject, Unreadable
from raddle._sources import SIGNATURE
from raddle._values import Empty
from raddle._xarray_variables import Values, encoding
from raddle.errors import UsageError
from xarray import Variable
from xarray.backends import AbstractDataStore, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing

if TYPE_CHECKING:
    from xarray import Dataset as XarrayDataset
    from xarray import DataTree

# Prefix of the names of variables that are called like a dimension but are not its coordinate.
_NOT_COORDINATE = "_nc4_non_coord_"

# Attributes used internally by HDF5 and netCDF-4.
_HIDDEN = {
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
}


class _Store(AbstractDataStore):
    """A group of a file for xarray's decoders."""

    def __init__(self, file: File, group: Group, numbers: Iterator[int]) -> None:
        self._file = file
        self._group = group
        # Numbers of dimensions without a name, which differ between all groups of a tree.
        self._numbers = numbers

    def get_attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return _attributes(self._group)

    def get_variables(self) -> dict[str, Variable]:
        """Datasets of the group that have values; unreadable ones are left out, with a warning."""
        columns = []
        for name, found in self._group.items():
            if isinstance(found, Unreadable):
                warnings.warn(f"{found.name} is left out: {found.reason}", stacklevel=2)
            elif isinstance(found, Dataset) and found.shape is not None and found.dtype.subdtype is None:
                columns.append((name, found))
        has_enumerations = any("enum" in (found.dtype.metadata or {}) for _, found in columns)
        enumerations = _enumerations(self._group) if has_enumerations else {}
        extents = _Extents(self._group)
        found = [
            (name, column, axes)
            for (name, column), (axes, has_values) in zip(columns, _axes([found for _, found in columns]), strict=True)
            if has_values
        ]
        names = self._names_by_length([(column, axes) for _, column, axes in found], extents)
        return {
            name.removeprefix(_NOT_COORDINATE): self._variable(column, axes, names, extents, enumerations)
            for name, column, axes in found
        }

    def _names_by_length(
        self, variables: list[tuple[Dataset, list[str | None]]], extents: _Extents
    ) -> dict[int, list[str]]:
        """Returns the dimensions for axes without a scale, by length: first those of the group, then numbered ones."""
        needed: Counter[int] = Counter()
        for dataset, axes in variables:
            lengths = zip(axes, dataset.shape or (), strict=True)
            needed |= Counter(length for axis, length in lengths if axis is None)
        names: dict[int, list[str]] = {length: [] for length in needed}
        for name, member in self._group.items() if needed else ():
            if _is_scale(member):
                length = extents.of(name) if _is_unlimited(member) else len(member)
                names.setdefault(length, []).append(name)
        for length, axes_of_length in needed.items():
            numbered = axes_of_length - len(names[length])
            names[length] += [f"phony_dim_{next(self._numbers)}" for _ in range(numbered)]
        return names

    def _variable(
        self,
        dataset: Dataset,
        axes: list[str | None],
        names: dict[int, list[str]],
        extents: _Extents,
        enumerations: dict[int, str],
    ) -> Variable:
        stored = dataset.shape or ()
        dims: list[str] = []
        shape: list[int] = []
        unnamed: Counter[int] = Counter()
        for axis, length, longest in zip(axes, stored, dataset.maxshape or (), strict=True):
            name = axis or names[length][unnamed[length]]
            unnamed[length] += axis is None
            extent = max(length, extents.of(axis)) if axis and longest is None else length
            # Axes of the same dimension have its name; one of another length cannot.
            while name in dims and shape[dims.index(name)] != extent:
                name += "_1"
            dims.append(name)
            shape.append(extent)
        values = indexing.LazilyIndexedArray(Values(dataset, tuple(shape)))
        return Variable(dims, values, _attributes(dataset), encoding(dataset, dims, tuple(shape), enumerations))

    def get_encoding(self) -> dict[str, Any]:
        """Names of the group's dimensions that are unlimited."""
        return {"unlimited_dims": {name for name, found in self._group.items() if _is_unlimited(found)}}

    def get_dimensions(self) -> dict[str, int]:
        """Lengths of the dimensions; xarray takes those of variables from the variables."""
        return {}

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class _Extents:
    """Lengths of unlimited dimensions: of the longest variable that has the dimension, in any group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._lengths: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Returns the length of the dimension that a name stands for in the group."""
        if name not in self._lengths:
            self._lengths[name] = max(
                (
                    length
                    for dataset, axes in self._found(name)
                    for axis, length in zip(axes, dataset.shape or (), strict=True)
                    if axis == name
                ),
                default=0,
            )
        return self._lengths[name]

    def _found(self, name: str) -> Iterator[tuple[Dataset, list[str | None]]]:
        """Yields the datasets below the group that declares a dimension, without groups that declare it again."""
        declaring = self._group
        while not _is_unlimited(declaring.get(name)) and declaring.name != "/":
            declaring = declaring.parent
        waiting, seen = [declaring], {declaring._number}
        while waiting:
            members = list(waiting.pop().values())
            datasets = [member for member in members if isinstance(member, Dataset) and None in (member.maxshape or ())]
            yield from ((dataset, axes) for dataset, (axes, _) in zip(datasets, _axes(datasets), strict=True))
            for member in members:
                if isinstance(member, Group) and member._number not in seen and member.file is declaring.file:
                    seen.add(member._number)
                    if not _is_scale(member.get(name)):
                        waiting.append(member)


def _axes(datasets: list[Dataset]) -> list[tuple[list[str | None], bool]]:
    """Returns the names of the dimensions of each dataset, and whether it has values."""
    numbers = [dataset._number for dataset in datasets]
    return datasets[0]._core().dimensions(numbers) if datasets else []


def _is_scale(member: Any) -> bool:
    return isinstance(member, Dataset) and member.is_scale


def _is_unlimited(member: Any) -> bool:
    return isinstance(member, Dataset) and (member.maxshape or (0,))[0] is None and _is_scale(member)


def _enumerations(group: Group) -> dict[int, str]:
    """Returns the names of committed types in a group and in the groups that contain it, by their identifiers."""
    names: dict[int, str] = {}
    while True:
        for name, member in group.items():
            if isinstance(member, Datatype):
                names.setdefault(group._core().committed(member._number), name)
        if group.name == "/":
            return names
        group = group.parent


def _attributes(owner: HdfObject) -> dict[str, Any]:
    """Attributes in xarray's form: strings as ``str``, arrays of one element as that element."""
    found = {}
    for name in owner.attrs:
        if name in _HIDDEN:
            continue
        value = owner.attrs[name]
        if isinstance(value, Empty):
            value = np.empty(0, value.dtype)
        is_fill = name in ("_FillValue", "missing_value")
        if isinstance(value, bytes) and not is_fill:
            try:
                value = value.decode("utf-8")
            except UnicodeDecodeError:
                warnings.warn(
                    f"attribute {name!r} of {owner.name!r} is not UTF-8, returning bytes undecoded",
                    UnicodeWarning,
                    stacklevel=2,
                )
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "S" and not is_fill:
                value = np.char.decode(value, "utf-8", "surrogateescape")
            if value.shape == (1,):
                value = value[0]
            elif value.dtype.kind in "OU":
                value = value.tolist()
        found[name] = value
    return found


class RaddleBackend(BackendEntrypoint):
    """Opens HDF5 and netCDF-4 files on all cores: ``xarray.open_dataset(path, engine="raddle")``."""

    description = "Open HDF5 and netCDF-4 files on all cores"
    url = ""
    supports_groups = True
    # Other engines also open these files: this one is used only if it is named.
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "group",
        "threads",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Always false: the engine must be named."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        threads: int | None = None,
    ) -> XarrayDataset:
        """Opens a group of a file (default: the root) as an xarray dataset; ``threads`` as in `raddle.open`."""
        file = _opened(filename_or_obj, threads)
        store = _Store(file, _group(file, group), count())
        dataset = StoreBackendEntrypoint().open_dataset(
            store,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        dataset.set_close(store.close)
        return dataset

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group: str | None = None,
        threads: int | None = None,
        **decoders: Any,
    ) -> dict[str, XarrayDataset]:
        """Opens a group of a file (default: the root) and all groups below as xarray datasets, by path relative to the
        group.

        ``decoders`` are the other parameters of `open_dataset`.
        """
        file = _opened(filename_or_obj, threads)
        numbers = count()
        datasets: dict[str, XarrayDataset] = {}
        in_use: set[str] = set()
        for below, found in _groups(_group(file, group)).items():
            store = _Store(file, found, numbers)
            # Named as in other engines.
            path = below or "." if group else f"/{below}"
            datasets[path] = StoreBackendEntrypoint().open_dataset(store, **decoders)
            in_use.add(path)
            datasets[path].set_close(partial(_close_last, file, in_use, path))
        return datasets

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Opens a group of a file (default: the root) and all groups below as an xarray tree; parameters as in
        `open_groups_as_dict`."""
        from xarray import DataTree

        datasets = self.open_groups_as_dict(filename_or_obj, **options)
        tree = DataTree.from_dict(datasets)
        for path, dataset in datasets.items():
            tree[path].set_close(dataset._close)
        return tree


def _opened(source: Any, threads: int | None) -> File:
    """Opens what other engines accept, too: paths that begin with ``~``, and the content of a file as bytes."""
    if isinstance(source, bytes) and source.startswith(SIGNATURE):
        return File(io.BytesIO(source), threads=threads)
    if isinstance(source, (str, os.PathLike)):
        source = os.path.expanduser(source)
    return File(source, threads=threads)


def _close_last(file: File, in_use: set[str], path: str) -> None:
    """Closes one of several datasets of a file, and the file with the last one."""
    in_use.discard(path)
    if not in_use:
        file.close()


def _group(file: File, path: str | None) -> Group:
    """A group of a newly opened file, which is closed if the group does not exist."""
    try:
        found = file[path] if path else file
        if not isinstance(found, Group):
            raise UsageError(f"{path!r} is not a group")
    except BaseException:
        file.close()
        raise
    return found


def _groups(group: Group) -> dict[str, Group]:
    """A group and all groups below, each once, by path relative to it."""
    groups = {"": group}

    def take(path: str, member: Any) -> None:
        if isinstance(member, Group):
            groups[path] = member

    group.visititems(take)
    return groups
