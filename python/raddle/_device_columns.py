"""Columns decoded on a device according to a plan; the CPU decodes all others.

Independent of CUDA: everything here works with any `Device`. Invariant: values are those of `Group.read_columns`, in
native byte order. If a chunk does not inflate to its length and checksum, the CPU reads its column again and decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from raddle import _core
from raddle._device import Array, Device, Slot
from raddle._device_plan import (
    ZLIB_HEADER_LEN_BYTES,
    ZLIB_TRAILER_LEN_BYTES,
    Batch,
    Column,
    Plan,
    Span,
    plan_columns,
)

if TYPE_CHECKING:
    from raddle._group import Group

SLOTS = 2
"""Number of batches in flight: one is read while another is decoded."""


@dataclass(frozen=True)
class _Proof:
    """Evidence that a batch inflated correctly, still on the device: a row per deflated chunk."""

    columns: list[int]
    lengths_bytes: npt.NDArray[np.int64]
    inflated: Array
    sums: list[Array]
    """Adler-32 of the inflated chunks, one array per span."""
    ends: Array
    """Header and trailer of each stored chunk."""


def columns_on(
    device: Device,
    group: Group,
    names: Sequence[str] | None,
    rows: slice | None,
    memory: int,
    threads: int | None = None,
) -> dict[str, Array]:
    """The columns as arrays of the device, in the order of their names; batches use ``memory`` bytes on the device."""
    plan = plan_columns(group._columns(names), rows, memory // SLOTS)
    arrays = _decoded(device, group.file._source.path, plan, threads or _core.default_threads())
    # The batches were read from the path of the file.
    group.file._open_core().check_not_replaced()
    left = [name for name in plan.names if name not in arrays]
    for name, values in group.read_columns(left, rows).items() if left else ():
        arrays[name] = device.upload(np.ascontiguousarray(values, values.dtype.newbyteorder("=").str))
    device.finish()
    return {name: arrays[name] for name in plan.names}


def _decoded(device: Device, path: str, plan: Plan, threads: int) -> dict[str, Array]:
    """The columns that the device decodes and that pass verification."""
    arrays = [device.empty(column.shape, column.dtype) for column in plan.columns]
    cells = [_cells(column, array) for column, array in zip(plan.columns, arrays, strict=True)]
    for column, target in zip(plan.columns, cells, strict=True):
        if column.fill is not None:
            target[...] = device.upload(_turned(column, np.frombuffer(column.fill, np.uint8)).copy())
    device.finish()
    damaged: set[int] = set()
    if plan.batches:
        packed = max(batch.packed_len_bytes for batch in plan.batches)
        both = max(batch.len_bytes for batch in plan.batches)
        with ExitStack() as stack:
            slots = [stack.enter_context(device.slot(path, threads, packed, both)) for _ in range(SLOTS)]
            proofs = []
            for number, batch in enumerate(plan.batches):
                proofs.append(_decode(slots[number % SLOTS], batch, plan.columns, cells))
            device.finish()
            for proof in filter(None, proofs):
                damaged.update(_refuted(device, proof))
    return {
        column.name: array
        for number, (column, array) in enumerate(zip(plan.columns, arrays, strict=True))
        if number not in damaged
    }


def reads(batch: Batch) -> npt.NDArray[np.int64]:
    """Arguments for `Slot.load` that read a batch to the device."""
    fields = ("addresses", "packed_offsets", "lengths")
    return np.stack([np.concatenate([getattr(span, field) for span in batch.spans]) for field in fields], axis=1)


def streams(spans: list[Span], columns: tuple[Column, ...], behind: int) -> npt.NDArray[np.int64]:
    """Arguments for `Slot.inflate` that inflate the chunks of spans to memory starting at ``behind``."""
    around = ZLIB_HEADER_LEN_BYTES + ZLIB_TRAILER_LEN_BYTES
    found = []
    for span in spans:
        column = columns[span.column]
        raw = behind + span.raw_offset + column.stride_bytes * np.arange(len(span))
        length = np.full(len(span), column.chunk_len_bytes)
        found.append(np.stack([span.packed_offsets + ZLIB_HEADER_LEN_BYTES, span.lengths - around, raw, length], axis=1))
    return np.concatenate(found)


def _decode(slot: Slot, batch: Batch, columns: tuple[Column, ...], cells: list[Array]) -> _Proof | None:
    """Reads a batch to the device, inflates deflated chunks and puts every chunk in its place."""
    slot.load(reads(batch))
    with slot.current():
        deflated = [span for span in batch.spans if span.is_deflated]
        behind = batch.packed_len_bytes
        proof = _inflate(slot, behind, deflated, columns) if deflated else None
        for span in batch.spans:
            column = columns[span.column]
            _place(_chunks(slot, behind, span, column), span, column, cells[span.column])
    return proof


def _inflate(slot: Slot, behind: int, spans: list[Span], columns: tuple[Column, ...]) -> _Proof:
    wanted = streams(spans, columns, behind)
    inflated = slot.inflate(wanted)
    sums = [slot.adler32(_chunks(slot, behind, span, columns[span.column])) for span in spans]
    header = wanted[:, :1] - np.arange(ZLIB_HEADER_LEN_BYTES, 0, -1)
    trailer = wanted[:, :1] + wanted[:, 1:2] + np.arange(ZLIB_TRAILER_LEN_BYTES)
    ends = slot.gather(np.concatenate([header, trailer], axis=1))
    numbers = [span.column for span in spans for _ in range(len(span))]
    return _Proof(numbers, wanted[:, 3], inflated, sums, ends)


def _refuted(device: Device, proof: _Proof) -> set[int]:
    """Columns with a chunk that did not inflate to its length and checksum, or whose stream has another format."""
    ends = device.fetch(proof.ends).astype(np.uint32)
    sums = np.concatenate([device.fetch(sums) for sums in proof.sums])
    header = ends[:, 0] << 8 | ends[:, 1]
    # RFC 1950: method 8 is deflate, the header is a multiple of 31, no preset dictionary.
    is_zlib = (ends[:, 0] & 15 == 8) & (header % 31 == 0) & (ends[:, 1] & 32 == 0)
    expected = ends[:, 2] << 24 | ends[:, 3] << 16 | ends[:, 4] << 8 | ends[:, 5]
    good = is_zlib & (device.fetch(proof.inflated) == proof.lengths_bytes) & (sums == expected)
    return {proof.columns[chunk] for chunk in np.flatnonzero(~good)}


def _cells(column: Column, array: Array) -> Array:
    """An array as bytes with axes for rows, other axes of the dataset, numbers of an element, and bytes of a number."""
    width = column.swap_len_bytes or column.item_len_bytes
    octets = array.reshape(array.size).view(np.uint8)
    return octets.reshape(column.rows[1], *column.dims[1:], column.item_len_bytes // width, width)


def _turned(column: Column, octets: Array) -> Array:
    """Elements with their bytes as the last axis, split into numbers in native byte order."""
    width = column.swap_len_bytes or column.item_len_bytes
    numbers = octets.reshape(*octets.shape[:-1], column.item_len_bytes // width, width)
    return numbers[..., ::-1] if column.swap_len_bytes else numbers


def _chunks(slot: Slot, behind: int, span: Span, column: Column) -> Array:
    """The chunks of a span, a row each, without filters except for the shuffle."""
    stride = column.stride_bytes
    offset = behind + span.raw_offset if span.is_deflated else int(span.packed_offsets[0])
    rows = slot.memory[offset : offset + len(span) * stride].reshape(len(span), stride)
    return rows[:, : column.chunk_len_bytes]


def _place(chunks: Array, span: Span, column: Column, target: Array) -> None:
    """Copies chunks to their rows and undoes the shuffle."""
    count, shape = len(span), column.chunk_shape
    if span.is_shuffled:
        # The first bytes of all elements, then the second bytes, and so on.
        planes = chunks.reshape(count, column.item_len_bytes, *shape)
        items = planes.transpose(0, *range(2, 2 + len(shape)), 1)
    else:
        items = chunks.reshape(count, *shape, column.item_len_bytes)
    items = _turned(column, items)
    if span.is_run:
        first = int(span.origins[0, 0]) - column.rows[0]
        rows = target[first : first + count * shape[0]]
        rows.reshape(count, shape[0], *rows.shape[1:])[...] = items
        return
    for number, origin in enumerate(span.origins.tolist()):
        here, there = _overlap(column, origin)
        target[there] = items[number][here]


def _overlap(column: Column, origin: list[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The requested part of a chunk, and its place in the result."""
    start, count, step = column.rows
    first = max(0, -((start - origin[0]) // step))
    last = max(first, min(count, -((start - origin[0] - column.chunk_shape[0]) // step)))
    from_row = start + first * step - origin[0]
    here = [slice(from_row, from_row + (last - first) * step, step)]
    there = [slice(first, last)]
    for begin, side, dim in zip(origin[1:], column.chunk_shape[1:], column.dims[1:], strict=True):
        wanted = min(side, dim - begin)
        here.append(slice(0, wanted))
        there.append(slice(begin, begin + wanted))
    return tuple(here), tuple(there)
