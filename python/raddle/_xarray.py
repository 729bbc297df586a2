"""The xarray engine ``"raddle"``: netCDF-4 and other HDF5 files, with variables read on demand.

Texts of variable length become ``str``, as in other engines.

Dimensions are named after dimension scales, as in netCDF-4; dimensions without a name are called ``phony_dim_0`` and so
on, one per length, as in other xarray engines.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from raddle._file import File
from raddle._group import Group
from raddle._object import HdfObject, Unreadable
from raddle._values import Empty
from raddle.errors import UsageError

if TYPE_CHECKING:
    from xarray import Dataset as XarrayDataset
    from xarray import DataTree

    from raddle._dataset import Dataset

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


class _Values(BackendArray):
    """Values of a dataset, read when xarray indexes them."""

    def __init__(self, dataset: Dataset) -> None:
        texts = _has_texts(dataset)
        self._read_from = dataset.asstr(errors="surrogateescape") if texts else dataset
        self.shape = dataset.shape
        self.dtype = create_vlen_dtype(str) if texts else dataset.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self._read_from[key]


def _has_texts(dataset: Dataset) -> bool:
    """Whether the elements are texts of variable length."""
    return dataset._element_type().route == "strings"


class _Store(AbstractDataStore):
    """A group of a file for xarray's decoders."""

    def __init__(self, file: File, group: Group, unnamed: dict[int, str]) -> None:
        self._file = file
        self._group = group
        # Generated names of dimensions, by length: the same in all groups of a tree.
        self._unnamed = unnamed

    def get_attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return _attributes(self._group)

    def get_variables(self) -> dict[str, Variable]:
        """Datasets of the group that have values; unreadable ones are left out, with a warning."""
        columns = []
        for name, found in self._group.items():
            if isinstance(found, Unreadable):
                warnings.warn(f"{found.name} is left out: {found.reason}", stacklevel=2)
            elif hasattr(found, "chunks") and found.shape is not None and found.dtype.subdtype is None:
                columns.append((name, found))
        names = self._file._open_core().dimensions([column._number for _, column in columns])
        variables = {}
        for (name, column), (axes, has_values) in zip(columns, names, strict=True):
            if has_values:
                variables[name] = self._variable(column, axes)
        return variables

    def _variable(self, dataset: Dataset, axes: list[str | None]) -> Variable:
        shape = dataset.shape or ()
        dims: list[str] = []
        for axis, length in zip(axes, shape, strict=True):
            name = axis or self._unnamed.setdefault(length, f"phony_dim_{len(self._unnamed)}")
            while name in dims:
                name += "_1"
            dims.append(name)
        attributes = _attributes(dataset)
        encoding: dict[str, Any] = {"source": self._file.filename, "original_shape": shape, "dtype": dataset.dtype}
        if _has_texts(dataset):
            encoding["dtype"] = str
        if dataset.chunks:
            encoding["chunksizes"] = dataset.chunks
            encoding["preferred_chunks"] = dict(zip(dims, dataset.chunks, strict=True))
        return Variable(dims, indexing.LazilyIndexedArray(_Values(dataset)), attributes, encoding)

    def get_dimensions(self) -> dict[str, int]:
        """Lengths of the dimensions; xarray takes those of variables from the variables."""
        return {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _attributes(owner: HdfObject) -> dict[str, Any]:
    """Attributes in xarray's form: texts as ``str``, arrays of one element as that element."""
    found = {}
    for name in owner.attrs:
        if name in _HIDDEN:
            continue
        value = owner.attrs[name]
        if isinstance(value, Empty):
            value = np.empty(0, value.dtype)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "S":
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
        """Open a group of a file (default: the root) as an xarray dataset; ``threads`` as in `raddle.open`."""
        file = File(filename_or_obj, threads=threads)
        store = _Store(file, _group(file, group), {})
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
        """Open a group of a file (default: the root) and all groups below as xarray datasets, by path relative to the
        group.

        ``decoders`` are the other parameters of `open_dataset`.
        """
        file = File(filename_or_obj, threads=threads)
        unnamed: dict[int, str] = {}
        datasets: dict[str, XarrayDataset] = {}
        in_use: set[str] = set()
        for below, found in _groups(_group(file, group)).items():
            store = _Store(file, found, unnamed)
            # Named as in other engines.
            path = below or "." if group else f"/{below}"
            datasets[path] = StoreBackendEntrypoint().open_dataset(store, **decoders)
            in_use.add(path)
            datasets[path].set_close(partial(_close_last, file, in_use, path))
        return datasets

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Open a group of a file (default: the root) and all groups below as an xarray tree; parameters as in
        `open_groups_as_dict`."""
        from xarray import DataTree

        datasets = self.open_groups_as_dict(filename_or_obj, **options)
        tree = DataTree.from_dict(datasets)
        for path, dataset in datasets.items():
            tree[path].set_close(dataset._close)
        return tree


def _close_last(file: File, in_use: set[str], path: str) -> None:
    """Close one of several datasets of a file, and the file with the last one."""
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
