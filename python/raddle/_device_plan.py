"""Plan of batches: which chunks of which columns a device decodes together; plain values, made from metadata alone.

A column is decoded on the device if it is contiguous, or stored in chunks that are not filtered, shuffled, deflated, or
shuffled and deflated. Every other column gets a reason here and is decoded by the CPU. Nothing is decoded here.

Invariant: the chunks of a column's spans are all its chunks with requested rows, each once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle._device import ALIGNMENT
from raddle._selection import rows_of
from raddle._types import raw_bytes
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._dataset import Dataset

_DEFLATE, _SHUFFLE = 1, 2

ZLIB_HEADER_LEN_BYTES, ZLIB_TRAILER_LEN_BYTES = 2, 4
"""Bytes before and after the deflate stream of a chunk (RFC 1950): compression method and flags; Adler-32 of the
inflated bytes."""

_MIN_STREAM_LEN_BYTES = ZLIB_HEADER_LEN_BYTES + 1 + ZLIB_TRAILER_LEN_BYTES

_MAX_CHUNK_LEN_BYTES = 1 << 28
"""Maximum length of a deflated chunk: for this many bytes, the weighted sum of an Adler-32, 255 n (n + 1) / 2, is below
2**64. nvCOMP's limit is 2**32 - 1."""

_BLOCK_LEN_BYTES = 8 << 20
"""Approximate length of the pieces of contiguous data: several in flight, each large compared with the cost of a
copy."""

_HELD = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
"""Types that cupy arrays can have: numpy kinds with lengths in bytes."""


@dataclass(frozen=True)
class Column:
    """A column that the device decodes."""

    name: str
    shape: tuple[int, ...]
    """Shape of the result; axes of elements that are arrays come last."""
    dtype: np.dtype[Any]
    """Type of the result, in native byte order."""
    dims: tuple[int, ...]
    """Extent of the dataset, in elements."""
    rows: tuple[int, int, int]
    """First row, number of rows, step."""
    chunk_shape: tuple[int, ...]
    """Shape of a chunk in elements, or of a piece of contiguous data."""
    item_len_bytes: int
    """Length of an element."""
    swap_len_bytes: int
    """Length of numbers whose bytes must be reversed; 0 if none."""
    fill: bytes | None
    """Stored element of rows without a chunk; None if every row has a chunk."""

    @property
    def chunk_len_bytes(self) -> int:
        """Length of a chunk without filters."""
        return math.prod(self.chunk_shape) * self.item_len_bytes

    @property
    def stride_bytes(self) -> int:
        """Distance between consecutive chunks on the device."""
        return int(_aligned(self.chunk_len_bytes))


@dataclass(frozen=True)
class Span:
    """Chunks of a column with the same filters, in one batch, ordered by origin."""

    column: int
    """Index of the column."""
    origins: npt.NDArray[np.int64]
    """First element of each chunk, per axis."""
    addresses: npt.NDArray[np.int64]
    """File offsets in bytes."""
    lengths: npt.NDArray[np.int64]
    """Stored lengths in bytes."""
    packed_offsets: npt.NDArray[np.int64]
    """Offset of each chunk in the batch's stored bytes."""
    raw_offset: int
    """Offset of the first inflated chunk after the batch's stored bytes, if deflated; the others follow at the
    stride."""
    is_deflated: bool
    is_shuffled: bool
    is_run: bool
    """Whether whole chunks are requested that form contiguous rows, so that all are copied at once."""

    def __len__(self) -> int:
        return len(self.addresses)


@dataclass(frozen=True)
class Batch:
    """The chunks on the device at one time."""

    spans: tuple[Span, ...]
    packed_len_bytes: int
    """Length of the stored bytes, including gaps for alignment."""
    raw_len_bytes: int
    """Length of the inflated bytes, which follow the stored ones."""

    @property
    def len_bytes(self) -> int:
        """Total length."""
        return self.packed_len_bytes + self.raw_len_bytes


@dataclass(frozen=True)
class Plan:
    """Plan of decoding columns."""

    names: tuple[str, ...]
    """All columns, in the requested order."""
    columns: tuple[Column, ...]
    """Columns that the device decodes."""
    batches: tuple[Batch, ...]
    by_cpu: dict[str, str]
    """Columns that the CPU decodes, with the reason."""


@dataclass(frozen=True)
class Pieces:
    """Chunks of one column as stored in the file: a row per chunk."""

    origins: npt.NDArray[np.int64]
    addresses: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    is_deflated: npt.NDArray[np.bool_]
    is_shuffled: npt.NDArray[np.bool_]


class _ByCpu(Exception):
    """Reason why the device does not decode a column."""


def plan_columns(datasets: dict[str, Dataset], rows: slice | None, memory: int) -> Plan:
    """Plans reading columns in batches of at most ``memory`` bytes.

    Raises
    ------
    raddle.errors.UsageError
        If a column has no rows, or a type that device arrays cannot have: all such columns are named.
    """
    _check_types(datasets)
    columns: list[Column] = []
    pieces: list[Pieces] = []
    by_cpu: dict[str, str] = {}
    for name, dataset in datasets.items():
        try:
            column, found = _column(name, dataset, rows, memory)
            stored = int(found.lengths[found.is_deflated].max(initial=0))
            taken = column.stride_bytes + (_padded(stored) if stored else 0)
            if taken > memory:
                raise _ByCpu(f"a chunk needs {taken} bytes, but a batch may use only {memory}")
        except _ByCpu as reason:
            by_cpu[name] = str(reason)
        else:
            columns.append(column)
            pieces.append(found)
    return Plan(tuple(datasets), tuple(columns), tuple(batches(columns, pieces, memory)), by_cpu)


def _check_types(datasets: dict[str, Dataset]) -> None:
    unfit = []
    for name, dataset in datasets.items():
        base = dataset.dtype.base
        if not dataset.shape:
            unfit.append(f"{name} (no rows)")
        elif base.itemsize not in _HELD.get(base.kind, ()):
            unfit.append(f"{name} ({base})")
    if unfit:
        raise UsageError(f"device arrays cannot hold {', '.join(unfit)}; name only columns of numbers")


def _column(name: str, dataset: Dataset, rows: slice | None, memory: int) -> tuple[Column, Pieces]:
    """The column and its chunks, from metadata; raises _ByCpu if the device does not decode it."""
    kind = dataset._element_type()
    layout, chunk_shape, filters, is_native = dataset._storage()
    if kind.route != "bytes" or not is_native or layout not in ("contiguous", "chunked"):
        raise _ByCpu(f"{layout} data that the device does not decode")
    dims = dataset.shape
    assert dims is not None
    wanted = rows_of(rows, dims[0])
    start, count, step = wanted
    end = start + (count - 1) * step + 1 if count else start
    base, inner = kind.dtype.subdtype or (kind.dtype, ())
    item_len_bytes = kind.dtype.itemsize
    is_empty = not count or 0 in dims
    if is_empty:
        places = np.empty((0, len(dims) + 3), np.int64)
    else:
        places = dataset._core().places(dataset._number, start, end).astype(np.int64).reshape(-1, len(dims) + 3)
    if layout == "contiguous":
        chunk_shape, places = _in_blocks(dims, item_len_bytes, places, min(memory, _BLOCK_LEN_BYTES))
        near = (places[:, 0] < end) & (places[:, 0] + chunk_shape[0] > start)
        places = places[near]
    assert chunk_shape is not None
    pieces = _pieces(places, [number for number, _, _ in filters])
    missing = 0 if is_empty else _chunks_with(dims, chunk_shape, start, end) - len(places)
    column = Column(
        name,
        (count, *dims[1:], *inner),
        # Without h5py's metadata: an enumeration becomes its numbers.
        np.dtype(base.newbyteorder("=").str),
        dims,
        wanted,
        tuple(chunk_shape),
        item_len_bytes,
        _swap_len_bytes(base),
        _fill(dataset, item_len_bytes) if missing else None,
    )
    _check_pieces(column, pieces, filters, layout == "contiguous")
    return column, pieces


def _in_blocks(
    dims: tuple[int, ...], item_len_bytes: int, places: npt.NDArray[np.int64], block_len_bytes: int
) -> tuple[tuple[int, ...], npt.NDArray[np.int64]]:
    """Contiguous data as if it were in chunks of whole rows; the last chunk may be shorter."""
    row_len_bytes = max(1, math.prod(dims[1:]) * item_len_bytes)
    block_rows = max(1, min(dims[0], block_len_bytes // row_len_bytes))
    shape = (block_rows, *dims[1:])
    if not len(places):
        return shape, places
    address, length = int(places[0, -3]), int(places[0, -2])
    if length != dims[0] * row_len_bytes:
        raise _ByCpu(f"{length} bytes stored instead of {dims[0] * row_len_bytes}")
    blocks = np.zeros((-(-dims[0] // block_rows), places.shape[1]), np.int64)
    blocks[:, 0] = np.arange(len(blocks)) * block_rows
    blocks[:, -3] = address + blocks[:, 0] * row_len_bytes
    blocks[:, -2] = np.minimum(block_rows, dims[0] - blocks[:, 0]) * row_len_bytes
    return shape, blocks


def _pieces(places: npt.NDArray[np.int64], filters: list[int]) -> Pieces:
    """Chunks with the operations to undo in each, for filters that were not skipped."""
    order = np.lexsort(places[:, -4::-1].T)
    places = places[order]
    mask = places[:, -1]
    undone = {number: np.zeros(len(places), bool) for number in (_DEFLATE, _SHUFFLE)}
    for position, number in enumerate(filters):
        used = mask >> position & 1 == 0
        if number not in undone and used.any():
            raise _ByCpu(f"filter {number}")
        if number in undone:
            if undone[number].any() or (number == _SHUFFLE and undone[_DEFLATE].any()):
                raise _ByCpu("filters in an unusual order")
            undone[number] = used
    return Pieces(places[:, :-3], places[:, -3], places[:, -2], undone[_DEFLATE], undone[_SHUFFLE])


def _check_pieces(
    column: Column, pieces: Pieces, filters: list[tuple[int, str, tuple[int, ...]]], is_cut: bool
) -> None:
    """Leaves chunks of unexpected length to the CPU, which reports the error."""
    for number, _, parameters in filters:
        if number == _SHUFFLE and parameters[:1] != (column.item_len_bytes,):
            raise _ByCpu(f"shuffled by {parameters[:1]} bytes, but elements have {column.item_len_bytes}")
    if pieces.is_deflated.any() and column.chunk_len_bytes > _MAX_CHUNK_LEN_BYTES:
        raise _ByCpu(f"deflated chunks of {column.chunk_len_bytes} bytes")
    if (pieces.lengths[pieces.is_deflated] < _MIN_STREAM_LEN_BYTES).any():
        raise _ByCpu("a deflated chunk that is too short")
    expected = np.full(len(pieces.lengths), column.chunk_len_bytes)
    if is_cut:
        row_len_bytes = column.chunk_len_bytes // column.chunk_shape[0]
        expected = np.minimum(expected, (column.dims[0] - pieces.origins[:, 0]) * row_len_bytes)
    if (pieces.lengths != expected)[~pieces.is_deflated].any():
        raise _ByCpu("a chunk that is not as long as it should be")


def _swap_len_bytes(base: np.dtype[Any]) -> int:
    if base.isnative:
        return 0
    return base.itemsize // 2 if base.kind == "c" else base.itemsize


def _fill(dataset: Dataset, item_len_bytes: int) -> bytes:
    stored = dataset._core().fill(dataset._number)
    if stored is None:
        return bytes(item_len_bytes)
    value = dataset._element_type().array((), stored)
    return raw_bytes(np.ascontiguousarray(value)).tobytes()


def _chunks_with(dims: tuple[int, ...], chunk_shape: tuple[int, ...], start: int, end: int) -> int:
    """Number of chunks with rows from ``start`` to ``end``, if none is missing."""
    along = -(-end // chunk_shape[0]) - start // chunk_shape[0]
    return along * math.prod(-(-dim // side) for dim, side in zip(dims[1:], chunk_shape[1:], strict=True))


def batches(columns: list[Column], pieces: list[Pieces], memory: int) -> Iterable[Batch]:
    """Chunks of all columns in batches of at most ``memory`` bytes, counting stored and inflated bytes."""
    spans: list[Span] = []
    packed = raw = 0
    for number, (column, found) in enumerate(zip(columns, pieces, strict=True)):
        for first, last, is_run in _alike(column, found):
            while first < last:
                span, packed_end, raw_end = _span(number, column, found, first, last, is_run, packed, raw, memory)
                if span is None:
                    yield Batch(tuple(spans), packed, raw)
                    spans, packed, raw = [], 0, 0
                    continue
                spans.append(span)
                packed, raw, first = packed_end, raw_end, first + len(span)
    if spans:
        yield Batch(tuple(spans), packed, raw)


def _alike(column: Column, pieces: Pieces) -> Iterable[tuple[int, int, bool]]:
    """First and last of chunks that form a span, and whether they are a run."""
    count = len(pieces.addresses)
    if not count:
        return
    start, rows, step = column.rows
    first_rows = pieces.origins[:, 0]
    is_wide = step == 1 and column.chunk_shape[1:] == column.dims[1:]
    inside = (first_rows >= start) & (first_rows + column.chunk_shape[0] <= start + rows) & is_wide
    # Equal for all chunks of a run: the origin of a chunk minus its index.
    lag = np.where(inside, first_rows - np.arange(count) * column.chunk_shape[0], -1)
    facts = np.stack([inside, pieces.is_deflated, pieces.is_shuffled, lag])
    cuts = np.flatnonzero((facts[:, 1:] != facts[:, :-1]).any(axis=0)) + 1
    bounds = [0, *cuts.tolist(), count]
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        yield first, last, bool(inside[first])


def _span(
    number: int,
    column: Column,
    pieces: Pieces,
    first: int,
    last: int,
    is_run: bool,
    packed: int,
    raw: int,
    memory: int,
) -> tuple[Span | None, int, int]:
    """As many chunks as fit in the rest of a batch, and their end; None if not even one fits."""
    is_deflated = bool(pieces.is_deflated[first])
    stride = column.stride_bytes
    lengths = pieces.lengths[first:last]
    if is_deflated:
        taken = _padded(lengths)
        packed_ends = packed + np.cumsum(taken)
        # The stream, which follows its header, must be aligned.
        offsets = packed_ends - taken + ALIGNMENT - ZLIB_HEADER_LEN_BYTES
        raw_ends = raw + stride * np.arange(1, len(lengths) + 1)
    else:
        packed_ends = packed + stride * np.arange(1, len(lengths) + 1)
        offsets = packed_ends - stride
        raw_ends = np.full(len(lengths), raw)
    count = int(np.searchsorted(packed_ends + raw_ends, memory, side="right"))
    if not count:
        return None, packed, raw
    span = Span(
        number,
        pieces.origins[first : first + count],
        pieces.addresses[first : first + count],
        lengths[:count],
        offsets[:count],
        raw,
        is_deflated,
        bool(pieces.is_shuffled[first]),
        is_run,
    )
    return span, int(packed_ends[count - 1]), int(raw_ends[count - 1])


def _aligned(length: Any) -> Any:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _padded(length: Any) -> Any:
    """Space for a deflated chunk whose stream is aligned."""
    return _aligned(ALIGNMENT - ZLIB_HEADER_LEN_BYTES + length)
