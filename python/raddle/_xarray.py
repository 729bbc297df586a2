"""The engine ``"raddle"`` of xarray: netCDF-4 and other HDF5 files, variables read when they are used.

Dimensions are named by dimension scales, as in netCDF-4; those without a name are called ``phony_dim_0`` and so on, one per
length, as other engines of xarray do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing

from raddle._file import File, Group
from raddle._object import HdfObject
from raddle._values import Empty
from raddle.errors import UsageError

if TYPE_CHECKING:
    from xarray import Dataset as XarrayDataset

    from raddle._dataset import Dataset

# HDF5's and netCDF-4's own bookkeeping.
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
    """Values of a dataset, read where xarray indexes them."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.shape = dataset.shape
        self.dtype = dataset.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self._dataset[key]


class _Store(AbstractDataStore):
    """A group of a file as xarray's decoders take it."""

    def __init__(self, file: File, group: Group) -> None:
        self._file = file
        self._group = group
        self._unnamed: dict[int, str] = {}

    def get_attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return _attributes(self._group)

    def get_variables(self) -> dict[str, Variable]:
        """Datasets of the group that have values."""
        columns = [
            (name, found)
            for name, found in self._group.items()
            if hasattr(found, "chunks") and found.shape is not None and found.dtype.subdtype is None
        ]
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
        if dataset.chunks:
            encoding["chunksizes"] = dataset.chunks
            encoding["preferred_chunks"] = dict(zip(dims, dataset.chunks, strict=True))
        return Variable(dims, indexing.LazilyIndexedArray(_Values(dataset)), attributes, encoding)

    def get_dimensions(self) -> dict[str, int]:
        """Lengths of the dimensions; those of the variables are known to xarray."""
        return {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _attributes(owner: HdfObject) -> dict[str, Any]:
    """Attributes as xarray has them: texts as ``str``, arrays of one element as that."""
    found = {}
    for name in owner.attrs:
        if name in _HIDDEN:
            continue
        value = owner.attrs[name]
        if isinstance(value, Empty):
            continue
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
    """Opens HDF5 and netCDF-4 files with all cores: ``xarray.open_dataset(path, engine="raddle")``."""

    description = "Open HDF5 and netCDF-4 files with all cores"
    url = ""
    # Other engines know these files as well: this one is used where it is named.
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
        """Never: the engine is named."""
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
        """A group of a file (default: the root) as a dataset of xarray; ``threads`` as in `raddle.open`."""
        file = File(filename_or_obj, threads=threads)
        found = file[group] if group else file
        if not isinstance(found, Group):
            file.close()
            raise UsageError(f"{group!r} is no group")
        store = _Store(file, found)
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
