"""The parts of cupy and of nvCOMP's C interface that `raddle._cuda` uses, over the host's memory.

It shows that addresses, lengths and statuses are passed as documented by cupy and nvcomp/deflate.h. It shows nothing
about a device: it has no order between streams and no kernel.
"""

import ctypes
import types
import zlib

import numpy as np


class Array(np.ndarray):
    """An array that exposes its address like cupy's."""

    @property
    def data(self):
        return Pointer(self.ctypes.data if self.nbytes else 0)


class Pointer:
    def __init__(self, ptr):
        self.ptr = ptr

    def copy_from_host_async(self, source, length, stream):
        assert isinstance(source, int) and isinstance(stream, Stream)
        ctypes.memmove(self.ptr, source, length)


class Stream:
    current = []
    made = 0

    def __init__(self, non_blocking=False):
        assert non_blocking
        Stream.made += 1
        self.ptr = Stream.made

    def __enter__(self):
        Stream.current.append(self)
        return self

    def __exit__(self, *_):
        assert Stream.current.pop() is self

    def synchronize(self):
        pass


class Device:
    def synchronize(self):
        pass


class CUDARuntimeError(RuntimeError):
    pass


def of_device(array):
    return np.array(array, copy=True).view(Array)


def empty(shape, dtype):
    array = np.empty(shape, dtype).view(Array)
    array.reshape(-1).view("u1")[:] = 0xA5
    return array


class ReductionKernel:
    """Supports only one expression of its language, this sum."""

    def __init__(self, inputs, outputs, mapped, reduced, after, identity, name):
        assert (inputs, outputs) == ("uint8 octet, uint64 weight", "uint64 total")
        assert (mapped, reduced, after, identity) == ("octet * weight", "a + b", "total = a", "0")

    def __call__(self, octets, weights, axis):
        return (octets * weights).sum(axis=axis, dtype="u8")


def cupy(devices=1):
    """Returns the module."""
    def count():
        if devices is None:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: no driver")
        return devices

    found = types.ModuleType("cupy")
    found.empty, found.asarray, found.asnumpy = empty, of_device, lambda array: np.array(array)
    found.arange = lambda *bounds, dtype: np.arange(*bounds, dtype=dtype).view(Array)
    found.where, found.ReductionKernel = np.where, ReductionKernel
    found.cuda = types.SimpleNamespace(
        Stream=Stream,
        Device=Device,
        alloc_pinned_memory=lambda length: bytearray(b"\xa5" * (length + 64)),
        runtime=types.SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError),
    )
    return found


class Function:
    """A C function that converts arguments to the declared types, like ctypes."""

    def __init__(self, work):
        self.work, self.argtypes, self.restype = work, (), None

    def __call__(self, *arguments):
        assert len(arguments) == len(self.argtypes), self.work
        for value, kind in zip(arguments, self.argtypes, strict=True):
            kind.from_param(value)
        return self.work(*arguments)


class Library:
    """nvCOMP 6."""

    def __init__(self, version=6000):
        self.version, self.batches, self.said, self.status = version, [], 0, 0
        self.nvcompGetProperties = Function(self.properties)
        self.nvcompGetStatusString = Function(lambda status: b"printed")
        self.nvcompBatchedDeflateDecompressGetRequiredAlignments = Function(lambda options, found: 0)
        self.nvcompBatchedDeflateDecompressGetTempSize = Function(self.room)
        self.nvcompBatchedDeflateDecompressAsync = Function(self.inflate)

    def properties(self, found):
        found._obj.version = self.version
        return 0

    def room(self, count, largest, options, found, total, stream):
        assert count * largest >= total and ctypes.sizeof(options) == 64 and bytes(options) == bytes(64)
        found._obj.value = 64
        return 0

    def inflate(self, *arguments):
        packed, lengths, room, found, count, temporary, temporary_length, raw, options, statuses, stream = arguments
        assert temporary_length == 64 and temporary and bytes(options) == bytes(64)
        assert Stream.current and stream == Stream.current[-1].ptr
        self.batches.append(count)
        packed, lengths, room, found, raw = (numbers(at, count, "u8") for at in (packed, lengths, room, found, raw))
        statuses = numbers(statuses, count, "i4")
        for at in range(count):
            # Reads only the stream's own bytes, not the rest of the buffer.
            inflater = zlib.decompressobj(-15)
            try:
                values = inflater.decompress(ctypes.string_at(int(packed[at]), int(lengths[at])), int(room[at]) + 1)
            except zlib.error:
                values = b""
            fits = inflater.eof and len(values) <= room[at]
            statuses[at], found[at] = (self.status, len(values)) if fits else (12, room[at])
            ctypes.memmove(int(raw[at]), values, len(values) if fits else 0)
        return self.said


def numbers(address, count, dtype):
    """Returns the array at an address."""
    length = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * length).from_address(address), dtype)


def nvcomp(library):
    """Returns the module that loads it."""
    found = types.ModuleType("nvidia.libnvcomp")
    found.load_library = lambda: library
    return found
