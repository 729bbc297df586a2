"""Scans in batches of rows, whose memory does not depend on the number of rows.

The compiled part finds the events of `Scan.where_event` in each search. Several batches of a file would find them again
each, so the events are found once, as a mask over event numbers, and each batch looks its rows up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from raddle import _core
from raddle._conditions import Condition
from raddle._scan_files import Piece, row_shape
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._scan import Arrays, Scan

BATCH_LEN_BYTES = 64 << 20
"""Length of the values of a batch, unless threads need more."""
MIN_CHUNKS_PER_THREAD = 4
"""Minimum number of the longest chunks in a batch, per thread: with fewer, threads wait for the last one."""
EVENT_LEN_BYTES = 8
"""Length of the number of an event, of which a batch has one per row and condition on events."""
MAX_EVENTS = 1 << 33
"""Maximum number of events in a mask, of one byte each."""


def batches(scan: Scan, rows: int | None) -> Iterator[Arrays]:
    """Yield the columns in successive rows of the table. Batches without a matching row are left out."""
    for piece in scan._pieces():
        yield from _batches_of(scan, piece, rows)


def _batches_of(scan: Scan, piece: Piece, rows: int | None) -> Iterator[Arrays]:
    """Yield the batches of one file."""
    among = range(scan._row_counts()[piece.file]) if piece.rows is None else piece.rows
    step = rows or _default_rows(scan, piece.file)
    is_divided = among.start // step < (among.stop - 1) // step
    masks = _event_masks(scan, piece.file) if is_divided else []
    for window in _windows(among, step):
        found = piece._replace(rows=window)
        arrays = _rows_of_events(scan, found, masks) if masks else scan._read_piece(found)
        if len(next(iter(arrays.values()))):
            yield arrays
        # Not held while the next batch is read.
        del arrays


def _windows(rows: range, step: int) -> Iterator[range]:
    """Divide rows at the multiples of a number: if it is one of the rows per chunk, each chunk is decoded once."""
    start = rows.start
    while start < rows.stop:
        end = min((start // step + 1) * step, rows.stop)
        yield range(start, end)
        start = end


def _default_rows(scan: Scan, number: int) -> int:
    """Return the number of rows of a batch: whole chunks that occupy all threads."""
    with scan._source._files.use(number):
        columns = scan._columns_of(number, is_tested=True)
        row_len_bytes = sum(column.dtype.itemsize * math.prod(row_shape(column)) for column in columns.values())
        chunk_rows = max([1, *(column.chunks[0] for column in columns.values() if column.chunks)])
    row_len_bytes += EVENT_LEN_BYTES * len(scan._events)
    threads = scan._source._files.threads or _core.default_threads()
    wanted = max(BATCH_LEN_BYTES // max(1, row_len_bytes), MIN_CHUNKS_PER_THREAD * threads * chunk_rows)
    return math.ceil(wanted / chunk_rows) * chunk_rows


def _event_masks(scan: Scan, number: int) -> list[EventMask]:
    """Return the selected events for each condition on events of a scan."""
    masks = []
    for data in scan._events:
        seq = _seq_of(scan, data["key"])
        for table in (scan._group, data["table"]):
            if seq not in scan._source._names(table):
                raise UsageError(f'{table} has no column "{seq}"; make keys with raddle keys add')
        condition = None if data["condition"] is None else Condition(data["condition"])
        other = type(scan)(scan._source, data["table"])
        other = other._but(_condition=condition, _events=tuple(data["events"]), _columns=(seq,))
        mask = EventMask(seq)
        for arrays in _batches_of(other, Piece(number, None), None):
            mask.add(_integers(arrays[seq], data["table"], seq))
        masks.append(mask)
    return masks


class EventMask:
    """Events of a file, by number."""

    seq: str
    """Name of the dataset with the event of each row."""

    def __init__(self, seq: str) -> None:
        self.seq = seq
        # The last element stands for all larger numbers.
        self._is_selected = np.zeros(1, bool)

    def add(self, events: np.ndarray[Any, Any]) -> None:
        """Select events."""
        count = int(events.max()) + 1
        if count >= len(self._is_selected):
            # At least twice as long, so that few copies are made.
            grown = np.zeros(max(count + 1, 2 * len(self._is_selected)), bool)
            grown[: len(self._is_selected)] = self._is_selected
            self._is_selected = grown
        self._is_selected[events] = True

    def selects(self, events: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return whether each event is selected."""
        return self._is_selected.take(events, mode="clip")


def _rows_of_events(scan: Scan, piece: Piece, masks: list[EventMask]) -> Arrays:
    """Return the columns in the rows of a window whose events are selected."""
    assert piece.rows is not None
    is_kept = _is_of_events(scan, piece.file, piece.rows, masks)
    # Rows before the first one and behind the last one are not read.
    start, stop = (int(is_kept.argmax()), len(is_kept) - int(is_kept[::-1].argmax())) if is_kept.any() else (0, 0)
    rows = range(piece.rows.start + start, piece.rows.start + stop)
    return scan._but(_events=())._read_piece(piece._replace(rows=rows), is_kept[start:stop])


def _is_of_events(scan: Scan, number: int, rows: range, masks: list[EventMask]) -> np.ndarray[Any, Any]:
    """Return whether the event of each row is selected by all masks."""
    is_kept = np.ones(len(rows), bool)
    with scan._source._files.use(number) as opened:
        for mask in masks:
            events = opened.file[f"{scan._group}/{mask.seq}"][rows.start : rows.stop]
            is_kept &= mask.selects(_integers(events, scan._group, mask.seq))
    return is_kept


def _seq_of(scan: Scan, key: str | None) -> str:
    """Return the name of the dataset with the event of each row of a table."""
    if key is not None:
        return f"{key.removesuffix('.seq')}.seq"
    keys = [name for name in scan._source._names(scan._group) if name.endswith(".seq")]
    if len(keys) != 1:
        have = f"has several partition keys ({', '.join(keys)}); name one" if keys else "has no partition keys (NAME.seq); make them with raddle keys add"
        raise UsageError(f"{scan._group} {have}")
    return keys[0]


def _integers(events: np.ndarray[Any, Any], table: str, seq: str) -> np.ndarray[Any, Any]:
    """Return the numbers of events, after checking them."""
    numbers = events.astype(np.int64, copy=False) if events.dtype.kind in "iu" and events.ndim == 1 else None
    if numbers is None or (len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < MAX_EVENTS):
        raise UsageError(f"{table}/{seq} does not hold numbers of events; recreate the keys with raddle keys add")
    return numbers
