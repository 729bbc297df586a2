"""Variables of the xarray engine: their values, read on demand, and their encodings, which are those of h5netcdf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from xarray.backends import BackendArray
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

if TYPE_CHECKING:
    from raddle._dataset import Dataset

# Filters that xarray's encodings list, by their registered numbers, with the parameter that is the level.
_SZIP, _BZIP2, _BLOSC, _ZSTD = 4, 307, 32001, 32015
_FILTERS = {1: ("zlib", 0), _SZIP: ("szip", None), _BZIP2: ("bzip2", 0), _BLOSC: ("blosc", 4), _ZSTD: ("zstd", 0)}


class Values(BackendArray):
    """Values of a dataset, read when xarray indexes them.

    A dataset that is shorter than an unlimited dimension continues with its fill value, as in netCDF-4.
    """

    def __init__(self, dataset: Dataset, shape: tuple[int, ...]) -> None:
        strings = has_strings(dataset)
        self._read_from = dataset.asstr(errors="surrogateescape") if strings else dataset
        self._dataset = dataset
        self.shape = shape
        self.dtype = create_vlen_dtype(str) if strings else dataset.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        if self.shape == self._dataset.shape:
            return self._read_from[key]
        axes = [
            _split(index, stored, extent)
            for index, stored, extent in zip(key, self._dataset.shape or (), self.shape, strict=True)
        ]
        fill = "" if has_strings(self._dataset) else self._dataset.fillvalue
        values = np.full([count for count, _, _ in axes if count is not None], fill, self.dtype)
        if all(index is not None for _, index, _ in axes):
            place = tuple(place for _, _, place in axes if place is not None)
            values[place] = self._read_from[tuple(index for _, index, _ in axes)]
        return values[()]


def _split(index: Any, stored: int, extent: int) -> tuple[int | None, Any, Any]:
    """Splits an index of an axis of length ``extent``, of which the first ``stored`` elements are stored.

    Returns the number of elements (None for an axis that disappears), the index of the stored ones (None if a single
    element is not stored), and their place in the result.
    """
    if isinstance(index, slice):
        wanted = range(*index.indices(extent))
        found = range(wanted.start, max(wanted.start, min(wanted.stop, stored)), wanted.step)
        return len(wanted), slice(min(found.start, stored), min(found.stop, stored), found.step), slice(len(found))
    if isinstance(index, np.ndarray) and index.ndim:
        positive = np.where(index < 0, index + extent, index)
        return len(index), positive[positive < stored], positive < stored
    number = int(index) + (extent if index < 0 else 0)
    return None, number if number < stored else None, None


def has_strings(dataset: Dataset) -> bool:
    """Returns whether the elements are variable-length strings."""
    return dataset._element_type().route == "strings"


def encoding(
    dataset: Dataset, dims: list[str], shape: tuple[int, ...], enumerations: Mapping[int, str]
) -> dict[str, Any]:
    """Returns the encoding of a variable; ``enumerations`` are the names of committed types by their identifiers."""
    chunks = dataset.chunks
    found: dict[str, Any] = {"dtype": _type(dataset, enumerations), "contiguous": not chunks, "chunksizes": chunks}
    if chunks:
        found["preferred_chunks"] = dict(zip(dims, chunks, strict=True))
    found.update({name: False for name, _ in _FILTERS.values()})
    found["shuffle"], found["fletcher32"] = dataset.shuffle, dataset.fletcher32
    for number, _, parameters in dataset.filters:
        if number in _FILTERS:
            name, level = _FILTERS[number]
            found[name] = True
            if level is not None and len(parameters) > level:
                found["complevel"] = parameters[level]
    # Other filters than these two have no name in h5py by which they can be written.
    if dataset.compression in ("lzf", "szip"):
        found["compression"], found["compression_opts"] = dataset.compression, dataset.compression_opts
    return {**found, "source": dataset.file.filename, "original_shape": shape}


def _type(dataset: Dataset, enumerations: Mapping[int, str]) -> npt.DTypeLike:
    if has_strings(dataset):
        return str
    dtype = dataset.dtype
    metadata = dict(dtype.metadata or {})
    name = enumerations.get(dataset._described()[2])
    return dtype if name is None or "enum" not in metadata else np.dtype(dtype, metadata={**metadata, "enum_name": name})
