"""Columns on a CUDA device: cupy arrays, nvCOMP inflate, reads through pinned memory or GPUDirect Storage.

Contains only what needs CUDA: planning, placement and verification are in `raddle._device_columns`, which works with
any `Device`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from raddle._device import Array, Slot
from raddle._nvcomp import NvComp
from raddle._ranges import read_ranges
from raddle.errors import DamagedError, UnsupportedError, UsageError

_ADLER_MODULUS = 65521
"""Modulus of Adler-32 (RFC 1950): the largest prime below 2**16."""


class Cuda:
    """The current cupy device.

    Raises
    ------
    raddle.errors.UsageError
        If cupy or nvCOMP is not installed.
    raddle.errors.UnsupportedError
        If there is no CUDA device, or no driver for it.
    """

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError as error:
            raise UsageError("cupy is not installed: pip install 'raddle[gpu]'") from error
        self.nvcomp = NvComp()
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise _no_device(str(error)) from error
        if not count:
            raise _no_device("the driver reports none")
        self.cupy = cupy
        # Avoids the temporary array of products that `octets * weights` would create.
        self.weighted_sum = cupy.ReductionKernel(
            "uint8 octet, uint64 weight", "uint64 total", "octet * weight", "a + b", "total = a", "0", "raddle_weighted_sum"
        )

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """See `Device.empty`."""
        return self.cupy.empty(shape, dtype)

    def upload(self, host: npt.NDArray[Any]) -> Array:
        """See `Device.upload`."""
        return self.cupy.asarray(host)

    def fetch(self, array: Array) -> npt.NDArray[Any]:
        """See `Device.fetch`."""
        host: npt.NDArray[Any] = self.cupy.asnumpy(array)
        return host

    def finish(self) -> None:
        """See `Device.finish`."""
        self.cupy.cuda.Device().synchronize()

    @contextmanager
    def slot(self, path: str, threads: int, packed_len_bytes: int, len_bytes: int) -> Iterator[Slot]:
        """See `Device.slot`."""
        slot = CudaSlot(self, path, threads, packed_len_bytes, len_bytes)
        try:
            yield slot
        finally:
            slot.close()


class CudaSlot:
    """A stream with the memory that its work uses."""

    def __init__(self, device: Cuda, path: str, threads: int, packed_len_bytes: int, len_bytes: int) -> None:
        cupy = device.cupy
        self._device, self._path = device, path
        self._stream = cupy.cuda.Stream(non_blocking=True)
        with self._stream:
            self.memory = cupy.empty(len_bytes, np.uint8)
        self._direct = direct_file(path)
        if self._direct is None:
            pinned = cupy.cuda.alloc_pinned_memory(packed_len_bytes)
            self._staged = np.frombuffer(pinned, np.uint8, packed_len_bytes)
            self._descriptor = os.open(path, os.O_RDONLY)
            self._threads = ThreadPoolExecutor(threads)

    def close(self) -> None:
        """Waits for the slot's work and releases its memory."""
        self._stream.synchronize()
        if self._direct is None:
            self._threads.shutdown()
            os.close(self._descriptor)
        else:
            self._direct.close()

    def current(self) -> AbstractContextManager[Any]:
        """See `Slot.current`."""
        stream: AbstractContextManager[Any] = self._stream
        return stream

    def load(self, reads: npt.NDArray[np.int64]) -> None:
        """See `Slot.load`."""
        self._stream.synchronize()
        if self._direct is not None:
            parts = [(self.memory[offset : offset + length], length, address) for address, offset, length in reads.tolist()]
            under_way = [self._direct.pread(*part) for part in parts]
            if any(future.get() != length for future, (_, length, _) in zip(under_way, parts, strict=True)):
                raise DamagedError(f"{self._path}: the file ends within a chunk")
            return
        read_ranges(self._descriptor, reads, self._staged.data, self._threads, self._path)
        end = int((reads[:, 1] + reads[:, 2]).max())
        self.memory.data.copy_from_host_async(self._staged.ctypes.data, end, self._stream)

    def inflate(self, streams: npt.NDArray[np.int64]) -> Array:
        """See `Slot.inflate`."""
        cupy, nvcomp, count = self._device.cupy, self._device.nvcomp, len(streams)
        table = streams.T.astype(np.uint64)
        table[0] += np.uint64(self.memory.data.ptr)
        table[2] += np.uint64(self.memory.data.ptr)
        # Kept until the call: freed memory could be reused for the next array.
        on_device = cupy.asarray(np.ascontiguousarray(table))
        packed, packed_lengths, raw, raw_lengths = (on_device[row].data.ptr for row in range(4))
        inflated, statuses = cupy.empty(count, np.uint64), cupy.empty(count, np.int32)
        lengths = streams[:, 3]
        room = nvcomp.temporary_len_bytes(count, int(lengths.max()), int(lengths.sum()), self._stream.ptr)
        temporary = cupy.empty(room, np.uint8)
        nvcomp.inflate(
            count,
            (packed, packed_lengths),
            (raw, raw_lengths),
            (inflated.data.ptr, statuses.data.ptr),
            (temporary.data.ptr, room),
            self._stream.ptr,
        )
        return cupy.where(statuses == 0, inflated.astype(np.int64), -1)

    def gather(self, positions: npt.NDArray[np.int64]) -> Array:
        """See `Slot.gather`."""
        return self.memory[self._device.cupy.asarray(positions)]

    def adler32(self, rows: Array) -> Array:
        """See `Slot.adler32`."""
        cupy, count = self._device.cupy, rows.shape[1]
        weights = cupy.arange(1, count + 1, dtype=np.uint64)[None, ::-1]
        low = (rows.sum(axis=1, dtype=np.uint64) + 1) % _ADLER_MODULUS
        high = (self._device.weighted_sum(rows, weights, axis=1) + count) % _ADLER_MODULUS
        return high << 16 | low


def direct_file(path: str) -> Any:
    """The file opened for GPUDirect Storage; None without kvikio or GPUDirect Storage."""
    try:
        import kvikio
        from kvikio import cufile_driver
    except ImportError:
        return None
    return kvikio.CuFile(path, "r") if cufile_driver.get("is_gds_available") else None


def _no_device(why: str) -> UnsupportedError:
    error = UnsupportedError(f"no CUDA device: {why}")
    error.hint = "read with library='dict', or on a machine with an NVIDIA GPU and its driver"
    return error
