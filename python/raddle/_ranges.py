"""Ranges of a file read into memory that is there, by several threads.

Ranges that follow one another in the file come in one call, wherever in memory they belong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from raddle.errors import DamagedError

_CALL_LEN_BYTES = 8 << 20
"""About how much a call reads: many calls per batch for the threads to share, each long against what a call costs."""

_CALL_RANGES = 1024
"""Buffers that one call takes: Linux's UIO_MAXIOV."""


def read_ranges(
    descriptor: int,
    reads: npt.NDArray[np.int64],
    memory: memoryview,
    threads: ThreadPoolExecutor,
    name: str,
) -> None:
    """Read ranges of an open file into ``memory``.

    Rows of ``reads``: file offset, offset in ``memory``, length; all in bytes.

    Raises
    ------
    raddle.errors.DamagedError
        If the file ``name`` ends before a range does.
    """
    parts = [(address, memory[offset : offset + length]) for address, offset, length in reads.tolist() if length]
    list(threads.map(lambda call: _read(descriptor, call, name), _calls(parts)))


_Part = tuple[int, memoryview]


def _calls(parts: list[_Part]) -> Iterator[list[_Part]]:
    call: list[_Part] = []
    end = taken = 0
    for address, part in parts:
        if call and (address != end or taken + len(part) > _CALL_LEN_BYTES or len(call) == _CALL_RANGES):
            yield call
            call, taken = [], 0
        call.append((address, part))
        end, taken = address + len(part), taken + len(part)
    if call:
        yield call


def _read(descriptor: int, call: list[_Part], name: str) -> None:
    got = os.preadv(descriptor, [part for _, part in call], call[0][0])
    for address, part in call:
        have = min(got, len(part))
        got -= have
        # Calls may read less than is there.
        while have < len(part):
            more = os.preadv(descriptor, [part[have:]], address + have)
            if not more:
                raise DamagedError(f"{name}: ends before byte {address + len(part)}, where a chunk does")
            have += more
