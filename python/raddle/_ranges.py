"""Reading of file ranges into existing memory by several threads.

Consecutive ranges of the file are read in one call, wherever they belong in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from raddle.errors import DamagedError

_CALL_LEN_BYTES = 8 << 20
"""Approximate length of a read: small enough that threads share the reads of a batch, large compared with the cost of a
call."""

_CALL_RANGES = 1024
"""Maximum number of buffers per call: Linux's UIO_MAXIOV."""


def read_ranges(
    descriptor: int,
    reads: npt.NDArray[np.int64],
    memory: memoryview,
    threads: ThreadPoolExecutor,
    name: str,
) -> None:
    """Reads ranges of an open file into ``memory``.

    Rows of ``reads``: file offset, offset in ``memory``, length; all in bytes.

    Raises
    ------
    raddle.errors.DamagedError
        If the file ``name`` ends within a range.
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
        # Calls may return fewer bytes than requested.
        while have < len(part):
            more = os.preadv(descriptor, [part[have:]], address + have)
            if not more:
                raise DamagedError(f"{name}: the file ends before byte {address + len(part)}, the end of a chunk")
            have += more
