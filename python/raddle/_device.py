"""Interface of a device that decodes columns. The implementation for CUDA is in `raddle._cuda`.

Device arrays are used like numpy's and cupy's: slices, ``reshape``, ``transpose``, ``view`` and assignments have the
same meaning in both. Everything that differs is in this interface.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# A cupy array, or a numpy array in tests.
Array = Any

ALIGNMENT = 16
"""Alignment of streams and of their output: nvCOMP requires 4 bytes, and advises 16 if in doubt."""


class Slot(Protocol):
    """Memory for a batch, and the order of work on it: calls take effect one after another, but may return earlier.

    Batches alternate between slots, so one is read from the file while another is decoded.
    """

    memory: Array
    """Stored bytes, followed by their inflated bytes; uint8."""

    def current(self) -> AbstractContextManager[Any]:
        """A context in which operations on arrays are part of the slot's work."""
        ...

    def load(self, reads: npt.NDArray[np.int64]) -> None:
        """Waits for the slot's earlier work, then reads ranges of the file into ``memory``.

        Rows of ``reads``: file offset, offset in ``memory``, length; all in bytes.

        Raises
        ------
        raddle.errors.DamagedError
            If the file ends within a range.
        """
        ...

    def inflate(self, streams: npt.NDArray[np.int64]) -> Array:
        """Inflates deflate streams (RFC 1951, no header).

        Rows of ``streams``: offset and length of a stream, offset and length of its output; all in bytes of ``memory``.

        Returns
        -------
        array of int64
            Number of bytes inflated from each stream; negative if the stream was refused.
        """
        ...

    def gather(self, positions: npt.NDArray[np.int64]) -> Array:
        """A copy of the bytes of ``memory`` at ``positions``, with the shape of ``positions``."""
        ...

    def adler32(self, rows: Array) -> Array:
        """Checksums (RFC 1950) of the rows of a two-dimensional array of bytes, as uint64."""
        ...


class Device(Protocol):
    """A device that decodes columns."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised array."""
        ...

    def upload(self, host: npt.NDArray[Any]) -> Array:
        """A copy on the device."""
        ...

    def fetch(self, array: Array) -> npt.NDArray[Any]:
        """A copy in host memory."""
        ...

    def slot(self, path: str, threads: int, packed_len_bytes: int, len_bytes: int) -> AbstractContextManager[Slot]:
        """Memory of ``len_bytes`` for batches of a file's chunks, released at the end; ``threads`` threads read.

        Stored bytes use at most the first ``packed_len_bytes`` of it.
        """
        ...

    def finish(self) -> None:
        """Waits for all work."""
        ...
