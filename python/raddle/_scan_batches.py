"""Scans in batches of rows, whose memory does not depend on the number of rows.

The events of `Scan.where_event` are found once per file, and each batch looks its rows up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from raddle import _core
from raddle._scan_files import Piece, row_shape

if TYPE_CHECKING:
    from raddle._scan import Arrays, Scan

BATCH_LEN_BYTES = 64 << 20
"""Length of the values of a batch, unless threads need more."""
MIN_CHUNKS_PER_THREAD = 4
"""Minimum number of the longest chunks in a batch, per thread: with fewer, threads wait for the last one."""
EVENT_LEN_BYTES = 8
"""Length of the number of an event, of which a batch has one per row and condition on events."""


def batches(scan: Scan, rows: int | None) -> Iterator[Arrays]:
    """Yields the columns in successive rows of the table. Batches without a matching row are left out."""
    for piece in scan._pieces():
        yield from _batches_of(scan, piece, rows)


def _batches_of(scan: Scan, piece: Piece, rows: int | None) -> Iterator[Arrays]:
    """Yields the batches of one file."""
    among = range(scan._row_counts()[piece.file]) if piece.rows is None else piece.rows
    if not among:
        # Checks the columns: the others may have rows.
        scan._read_piece(piece._replace(rows=among))
        return
    step = rows or _default_rows(scan, piece.file)
    is_divided = among.start // step < (among.stop - 1) // step
    events = scan._find_events(piece.file) if is_divided and scan._events else None
    for window in _windows(among, step):
        arrays = scan._read_piece(piece._replace(rows=window), events)
        if len(next(iter(arrays.values()))):
            yield arrays
        # Not held while the next batch is read.
        del arrays


def _windows(rows: range, step: int) -> Iterator[range]:
    """Divides rows at the multiples of a number: if it is one of the rows per chunk, each chunk is decoded once."""
    start = rows.start
    while start < rows.stop:
        end = min((start // step + 1) * step, rows.stop)
        yield range(start, end)
        start = end


def _default_rows(scan: Scan, number: int) -> int:
    """Returns the number of rows of a batch: whole chunks that occupy all threads."""
    with scan._source._files.use(number):
        columns = scan._columns_of(number, is_tested=True)
        row_len_bytes = sum(column.dtype.itemsize * math.prod(row_shape(column)) for column in columns.values())
        chunk_rows = max([1, *(column.chunks[0] for column in columns.values() if column.chunks)])
    row_len_bytes += EVENT_LEN_BYTES * len(scan._events)
    threads = scan._source._files.threads or _core.default_threads()
    wanted = max(BATCH_LEN_BYTES // max(1, row_len_bytes), MIN_CHUNKS_PER_THREAD * threads * chunk_rows)
    return math.ceil(wanted / chunk_rows) * chunk_rows
