"""Rows of a table in batches, for training: each chunk is decoded once per epoch.

PyTorch is not needed: its loaders accept any object with ``__len__`` and ``__getitem__`` as a dataset, and any iterable
as a sampler.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._group import Group

# Rows per block if no column is chunked.
_UNCHUNKED_ROWS = 1 << 16


class Rows:
    """The rows of a table, as a PyTorch map-style dataset.

    ``rows[5]`` is a dict with the values of a row; ``rows[[5, 1, 7]]`` and ``rows[mask]`` are dicts of arrays. Rows are
    read in blocks of whole chunks; the most recently used blocks are kept.

    Parameters
    ----------
    group
        The group whose datasets are the columns.
    names
        Paths of the columns, relative to the group. Default: all datasets of the group that have a dimension.
    kept_blocks
        Number of blocks kept in memory. With fewer than twice the ``window`` of the `Batches` drawn from them, blocks
        are read again.
    """

    def __init__(self, group: Group, names: Sequence[str] | None = None, *, kept_blocks: int = 8) -> None:
        columns = group._columns(names)
        lengths = {column.shape[0] if column.shape else None for column in columns.values()}
        if len(lengths) != 1 or None in lengths:
            raise UsageError(
                f"{group.name}: columns of {len(lengths)} different lengths are not a table; name columns of equal length"
            )
        if kept_blocks < 1:
            raise UsageError(f"kept_blocks={kept_blocks} is too small")
        self._group = group
        self.names: list[str] = list(columns)
        """Names of the columns."""
        self._count: int = next(iter(lengths))  # type: ignore[assignment]
        chunk_rows = [column.chunks[0] for column in columns.values() if column.chunks]
        self.block_rows: int = max(chunk_rows, default=_UNCHUNKED_ROWS)
        """Number of rows per block, that of the longest chunk."""
        self._kept_blocks = kept_blocks
        self._kept: OrderedDict[int, dict[str, npt.NDArray[Any]]] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int | Sequence[int] | npt.NDArray[Any]) -> dict[str, Any]:
        if np.ndim(index) == 0:
            return {name: values[0] for name, values in self._rows(self._numbers([index])).items()}
        return self._rows(self._numbers(index))

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Several rows, each as a dict, for loaders that collate rows themselves."""
        batch = self._rows(self._numbers(indices))
        return [{name: values[at] for name, values in batch.items()} for at in range(len(indices))]

    def _numbers(self, index: Any) -> npt.NDArray[np.int64]:
        """Row numbers of a list or a mask, as in numpy's indexing."""
        listed = np.asarray(index)
        if listed.dtype == bool:
            if listed.shape != (self._count,):
                raise IndexError(f"a mask of shape {listed.shape} does not fit {self._count} rows")
            return np.flatnonzero(listed)
        if listed.ndim != 1 or (listed.size and listed.dtype.kind not in "iu"):
            raise IndexError(f"rows are selected by integers or a mask, not by an array of {listed.dtype}")
        return listed.astype(np.int64)

    def _rows(self, wanted: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
        rows = np.where(wanted < 0, wanted + self._count, wanted)
        if rows.size and not (0 <= rows.min() and rows.max() < self._count):
            raise IndexError(f"a row is out of range for {self._count} rows")
        blocks = rows // self.block_rows
        gathered: dict[str, npt.NDArray[Any]] = {}
        for block in np.unique(blocks):
            here = np.flatnonzero(blocks == block)
            for name, values in self._block(int(block)).items():
                if name not in gathered:
                    gathered[name] = np.empty((len(rows), *values.shape[1:]), values.dtype)
                gathered[name][here] = values[rows[here] - block * self.block_rows]
        return gathered or self._group.read_columns(self.names, slice(0, 0))

    def _block(self, block: int) -> dict[str, npt.NDArray[Any]]:
        found = self._kept.pop(block, None)
        if found is None:
            start = block * self.block_rows
            found = self._group.read_columns(self.names, slice(start, start + self.block_rows))
            while len(self._kept) >= self._kept_blocks:
                self._kept.popitem(last=False)
        assert found is not None
        self._kept[block] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": OrderedDict()}


class Batches:
    """Batches of row numbers drawn from few blocks at a time: a sampler for PyTorch's loaders.

    Blocks are put in a random order, and the rows of each ``window`` of blocks are shuffled together. Every row occurs
    once per epoch, and every block is read once if the `Rows` keep twice ``window`` blocks: a batch may begin in one
    window and end in the next.

    >>> rows = raddle.Rows(f["rec"], ["energy", "map"])  # doctest: +SKIP
    >>> batches = raddle.Batches(rows, 1024, seed=1)  # doctest: +SKIP
    >>> loader = torch.utils.data.DataLoader(rows, sampler=batches, batch_size=None)  # doctest: +SKIP

    Parameters
    ----------
    rows
        The rows to draw from.
    batch_rows
        Number of rows per batch; the last one may have fewer.
    shuffle
        False: keep the order of the file.
    seed
        The same seed and epoch give the same batches.
    window
        Number of blocks whose rows are shuffled together.
    rank, size
        This process draws every ``size``-th block, starting with number ``rank`` of the epoch's order.
    """

    def __init__(
        self,
        rows: Rows,
        batch_rows: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        window: int = 4,
        rank: int = 0,
        size: int = 1,
    ) -> None:
        if batch_rows < 1 or window < 1 or not 0 <= rank < size:
            raise UsageError(
                f"cannot draw batches of {batch_rows} rows from windows of {window} blocks for rank {rank} of {size}"
            )
        self._rows, self._batch_rows, self._shuffle = rows, batch_rows, shuffle
        self._seed, self._window, self._rank, self._size = seed, window, rank, size
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Draws the batches of another epoch, like PyTorch's distributed samplers.

        Parameters
        ----------
        epoch
            Number of the epoch, from 0. Equal numbers give equal batches.
        """
        self._epoch = epoch

    def _local_blocks(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        blocks = np.arange(math.ceil(len(self._rows) / self._rows.block_rows))
        if self._shuffle:
            random.shuffle(blocks)
        return blocks[self._rank :: self._size]

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self._seed, self._epoch))
        blocks = self._local_blocks(random)
        left = np.empty(0, np.int64)
        for start in range(0, len(blocks), self._window):
            drawn = [self._rows_of(block) for block in blocks[start : start + self._window]]
            rows = np.concatenate(drawn)
            if self._shuffle:
                random.shuffle(rows)
            left = np.concatenate([left, rows])
            whole = len(left) // self._batch_rows * self._batch_rows
            for first in range(0, whole, self._batch_rows):
                yield left[first : first + self._batch_rows].tolist()
            left = left[whole:]
        if len(left):
            yield left.tolist()

    def _rows_of(self, block: np.int64) -> npt.NDArray[np.int64]:
        start = int(block) * self._rows.block_rows
        return np.arange(start, min(start + self._rows.block_rows, len(self._rows)))

    def __len__(self) -> int:
        """Number of batches per epoch."""
        blocks = self._local_blocks(np.random.default_rng((self._seed, self._epoch)))
        return math.ceil(sum(len(self._rows_of(block)) for block in blocks) / self._batch_rows)
