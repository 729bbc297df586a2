"""Blocks of whole chunks of a dataset, for dask arrays and other block-wise readers."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._dataset import Dataset

# Of decoded values: large compared with the cost of a dask task (0.1 to 1 ms), small compared with memory.
BLOCK_LEN_BYTES = 64 << 20


def block_shape(
    shape: tuple[int, ...], chunks: tuple[int, ...] | None, element_len_bytes: int, block_len_bytes: int
) -> tuple[int, ...]:
    """Shape of blocks of about ``block_len_bytes``: as many whole chunks as fit, extended along the last axes first.

    Never smaller than a chunk. Without chunks, blocks consist of whole rows.
    """
    unit = [max(1, part) for part in (chunks or (1, *shape[1:]) if shape else ())]
    block = [max(1, min(part, dim)) for part, dim in zip(unit, shape, strict=True)]
    for axis in reversed(range(len(block))):
        others = int(np.prod(block, dtype=object)) // block[axis]
        wanted = block_len_bytes // max(1, others * element_len_bytes)
        whole = max(1, wanted // unit[axis]) * unit[axis]
        block[axis] = max(block[axis], min(whole, shape[axis]))
        if block[axis] < shape[axis]:
            break
    return tuple(block)


def chunk_selections(dataset: Dataset, selection: Any) -> Iterator[tuple[slice, ...]]:
    """The part of a selection in each chunk of a dataset; see `Dataset.iter_chunks`."""
    shape, chunks = dataset.shape, dataset.chunks
    if not shape or chunks is None:
        raise TypeError(f"{dataset.name} is not chunked")
    if selection is None:
        items: list[Any] = [slice(None)] * len(shape)
    else:
        items = list(selection) if isinstance(selection, (tuple, list)) else [selection]
    if len(items) != len(shape):
        raise UsageError(f"a selection of {len(items)} axes does not fit a dataset with {len(shape)}")
    parts = [_chunk_slices(*args) for args in zip(items, shape, chunks, strict=True)]
    return itertools.product(*parts)


def _chunk_slices(item: Any, dim: int, chunk: int) -> list[slice]:
    """The part of a number or slice in each chunk along an axis."""
    if not isinstance(item, slice):
        number = operator.index(item)
        item = slice(number, number + 1)
    start, stop = item.start or 0, dim if item.stop is None else item.stop
    if item.step not in (None, 1):
        raise UsageError(f"a step of {item.step} is not supported when selecting chunks")
    if not 0 <= start <= stop <= dim:
        raise UsageError(f"elements {start} to {stop} are not within an axis of {dim}")
    first = start // chunk * chunk
    return [slice(max(start, begin), min(stop, begin + chunk), 1) for begin in range(first, stop, chunk) if start < stop]


def dask_array(dataset: Dataset, block_len_bytes: int) -> Any:
    """The dataset as a dask array."""
    import dask.array
    from dask.base import tokenize

    shape = dataset.shape
    if shape is None or not shape:
        raise UsageError(f"{dataset.name}: a dataset without dimensions cannot be a dask array; read it")
    if dataset.dtype.subdtype is not None:
        raise UsageError(f"{dataset.name}: elements that are arrays cannot be a dask array")
    if block_len_bytes < 1:
        raise UsageError(f"block_len_bytes={block_len_bytes} is too small")
    path = dataset.file._source.path
    status = os.stat(path)
    # The same content has the same name in every process, and a changed file another name.
    token = tokenize(os.path.abspath(path), status.st_ino, status.st_mtime_ns, status.st_size, dataset.name)
    blocks = block_shape(shape, dataset.chunks, dataset.dtype.itemsize, block_len_bytes)
    return dask.array.from_array(
        dataset,
        chunks=blocks,
        name=f"raddle-{token}-{'x'.join(map(str, blocks))}",
        meta=np.empty((0,) * len(shape), dataset.dtype),
        fancy=False,
        lock=False,
    )
