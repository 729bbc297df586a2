"""A stand-in for a GPU: implements with numpy and zlib what `raddle._cuda` does with cupy and nvCOMP.

As on a device, uninitialised memory holds arbitrary bytes; here they are recognisable.
"""

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import numpy as np
from raddle._device import ALIGNMENT
from raddle._ranges import read_ranges


class StandIn:
    """A device in the host's memory that counts its operations."""

    def __init__(self):
        self.loaded_bytes = 0
        self.inflated = 0
        self.uploaded_bytes = 0
        self.slots = []

    def empty(self, shape, dtype):
        array = np.empty(shape, dtype)
        dirty(array)
        return array

    def upload(self, host):
        self.uploaded_bytes += host.nbytes
        return host.copy()

    def fetch(self, array):
        return array.copy()

    def finish(self):
        pass

    @contextmanager
    def slot(self, path, threads, packed_len_bytes, len_bytes):
        slot = Slot(self, path, threads, packed_len_bytes, len_bytes)
        yield slot
        slot.threads.shutdown()
        os.close(slot.descriptor)


class Slot:
    def __init__(self, device, path, threads, packed_len_bytes, len_bytes):
        self.device, self.path = device, path
        self.packed_len_bytes, self.memory = packed_len_bytes, np.empty(len_bytes, "u1")
        self.descriptor = os.open(path, os.O_RDONLY)
        self.threads = ThreadPoolExecutor(threads)
        self.loads = 0
        device.slots.append(self)

    def current(self):
        return nullcontext()

    def load(self, reads):
        dirty(self.memory)
        self.loads += 1
        ends = np.sort(reads[:, 1]), np.sort(reads[:, 1] + reads[:, 2])
        assert (ends[0][1:] >= ends[1][:-1]).all(), "two chunks overlap"
        assert ends[1][-1] <= self.packed_len_bytes
        read_ranges(self.descriptor, reads, self.memory.data, self.threads, self.path)
        self.device.loaded_bytes += int(reads[:, 2].sum())

    def inflate(self, streams):
        found = []
        for offset, length, raw_offset, raw_length in streams.tolist():
            assert offset % ALIGNMENT == 0 and raw_offset % ALIGNMENT == 0
            assert raw_offset + raw_length <= len(self.memory)
            inflater = zlib.decompressobj(-15)
            try:
                values = inflater.decompress(self.memory[offset : offset + length].tobytes(), raw_length + 1)
            except zlib.error:
                values = b""
            held = values[:raw_length]
            self.memory[raw_offset : raw_offset + len(held)] = np.frombuffer(held, "u1")
            found.append(len(values) if inflater.eof and len(values) <= raw_length else -1)
            self.device.inflated += 1
        return np.array(found, "i8")

    def gather(self, positions):
        return self.memory[positions]

    def adler32(self, rows):
        return np.array([zlib.adler32(row.tobytes()) for row in rows], "u8")


def dirty(array):
    """Fills uninitialised memory with recognisable bytes."""
    array.reshape(-1).view("u1")[:] = 0xA5
