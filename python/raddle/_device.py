"""What a device has to do for columns to be decoded on it. Not for CUDA itself, which is in `raddle._cuda`.

Device arrays are used as numpy's and cupy's are: slices, ``reshape``, ``transpose``, ``view`` and assignments mean the same in
both. Everything in which the two differ is here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# Of cupy, or of numpy in tests.
Array = Any

ALIGNMENT = 16
"""Bytes to whose multiples streams and what they inflate to are aligned: nvCOMP asks for 4, and advises 16 where in doubt."""


class Slot(Protocol):
    """Memory for a batch, and the order of the work on it: calls take effect one after the other, but may return earlier.

    Batches take turns between slots, so one is read from the file while another is decoded.
    """

    memory: Array
    """Stored bytes, and behind them what they inflate to; uint8."""

    def current(self) -> AbstractContextManager[Any]:
        """Inside, operations on arrays are part of the slot's work."""
        ...

    def load(self, reads: npt.NDArray[np.int64]) -> None:
        """Wait for the slot's earlier work, then bring ranges of the file to ``memory``.

        Rows of ``reads``: file offset, offset in ``memory``, length; all in bytes.

        Raises
        ------
        raddle.errors.DamagedError
            If the file ends before a range does.
        """
        ...

    def inflate(self, streams: npt.NDArray[np.int64]) -> Array:
        """Inflate deflate streams (RFC 1951, no header).

        Rows of ``streams``: offset and length of a stream, offset and length of what it gives; all in bytes of ``memory``.

        Returns
        -------
        array of int64
            Bytes that each stream gave; negative where one was refused.
        """
        ...

    def gather(self, positions: npt.NDArray[np.int64]) -> Array:
        """A copy of the bytes of ``memory`` at ``positions``, of their shape."""
        ...

    def adler32(self, rows: Array) -> Array:
        """Checksums (RFC 1950) of the rows of an array of bytes with two dimensions, as uint64."""
        ...


class Device(Protocol):
    """Where columns are decoded."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array whose values are not set."""
        ...

    def upload(self, host: npt.NDArray[Any]) -> Array:
        """A copy on the device."""
        ...

    def fetch(self, array: Array) -> npt.NDArray[Any]:
        """A copy in the host's memory."""
        ...

    def slot(self, path: str, threads: int, packed_len_bytes: int, len_bytes: int) -> AbstractContextManager[Slot]:
        """Memory of ``len_bytes`` for batches of a file's chunks, released at the end; ``threads`` read.

        Stored bytes take at most the first ``packed_len_bytes`` of it.
        """
        ...

    def finish(self) -> None:
        """Wait for all work."""
        ...
