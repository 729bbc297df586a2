"""Bindings to the batched inflate of nvCOMP's C interface (nvcomp.h and nvcomp/deflate.h of nvCOMP 6).

The C interface is used because nvCOMP's Python classes do not report the status of individual streams. No part of nvCOMP is
included: the package nvidia-libnvcomp-cu12 (or -cu13) provides the library.
"""

from __future__ import annotations

import ctypes

from raddle.errors import InternalError, UsageError

_MAJOR = 6
"""Supported major version of nvCOMP: functions and options changed with each version so far."""

_SUCCESS = 0


class _DeflateOptions(ctypes.Structure):
    """nvcompBatchedDeflateDecompressOpts_t; zeros are the defaults: any backend, unsorted."""

    _fields_ = (("backend", ctypes.c_int), ("sort", ctypes.c_int), ("reserved", ctypes.c_char * 56))


class _Properties(ctypes.Structure):
    """nvcompProperties_t."""

    _fields_ = (("version", ctypes.c_uint32), ("cudart_version", ctypes.c_uint32))


class _Alignments(ctypes.Structure):
    """nvcompAlignmentRequirements_t, in bytes."""

    _fields_ = (("input", ctypes.c_size_t), ("output", ctypes.c_size_t), ("temp", ctypes.c_size_t))


class NvComp:
    """The loaded library. Addresses are those of device memory; work is enqueued on ``stream``."""

    def __init__(self) -> None:
        try:
            from nvidia.libnvcomp import load_library
        except ImportError as error:
            raise UsageError("nvCOMP is not installed: pip install 'raddle[gpu]'") from error
        library = load_library()
        if library is None:
            raise UsageError("nvCOMP's library cannot be loaded; reinstall nvidia-libnvcomp-cu12 (CUDA 13: -cu13)")
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        signatures = {
            "nvcompGetProperties": (pointer,),
            "nvcompBatchedDeflateDecompressGetRequiredAlignments": (_DeflateOptions, pointer),
            "nvcompBatchedDeflateDecompressGetTempSize": (size, size, _DeflateOptions, pointer, size, pointer),
            "nvcompBatchedDeflateDecompressAsync": (
                *(pointer, pointer, pointer, pointer, size, pointer, size, pointer),
                *(_DeflateOptions, pointer, pointer),
            ),
        }
        try:
            for name, types in signatures.items():
                function = getattr(library, name)
                function.argtypes, function.restype = types, ctypes.c_int
        except AttributeError as error:
            raise UsageError(f"the installed nvCOMP is not version {_MAJOR}: {error}") from error
        library.nvcompGetStatusString.argtypes = (ctypes.c_int,)
        library.nvcompGetStatusString.restype = ctypes.c_char_p
        self._library = library
        properties = _Properties()
        self._call("nvcompGetProperties", ctypes.byref(properties))
        self.version: tuple[int, int] = divmod(properties.version // 100, 10)
        """Major and minor version."""
        if self.version[0] != _MAJOR:
            raise UsageError(f"nvCOMP {'.'.join(map(str, self.version))} is installed, but raddle needs version {_MAJOR}")

    def alignments(self) -> tuple[int, int, int]:
        """Required alignments of streams, of their output, and of temporary memory, in bytes."""
        found = _Alignments()
        self._call(
            "nvcompBatchedDeflateDecompressGetRequiredAlignments", _DeflateOptions(), ctypes.byref(found)
        )
        return found.input, found.output, found.temp

    def temporary_len_bytes(self, count: int, largest_bytes: int, total_bytes: int, stream: int) -> int:
        """Device memory needed to inflate ``count`` streams, the largest of which gives ``largest_bytes``."""
        found = ctypes.c_size_t()
        self._call(
            "nvcompBatchedDeflateDecompressGetTempSize",
            *(count, largest_bytes, _DeflateOptions(), ctypes.byref(found), total_bytes, stream),
        )
        return found.value

    def inflate(
        self,
        count: int,
        packed: tuple[int, int],
        raw: tuple[int, int],
        found: tuple[int, int],
        temporary: tuple[int, int],
        stream: int,
    ) -> None:
        """Inflates ``count`` deflate streams without headers; returns before the work is done.

        Parameters
        ----------
        packed, raw
            Addresses of two arrays each: addresses and lengths of the streams (of the outputs), as 64-bit numbers.
        found
            Addresses of two arrays to fill: inflated lengths (64 bits) and statuses (32 bits; 0 is success).
        temporary
            Address and length of temporary memory.
        """
        self._call(
            "nvcompBatchedDeflateDecompressAsync",
            *(packed[0], packed[1], raw[1], found[0], count, temporary[0], temporary[1], raw[0]),
            *(_DeflateOptions(), found[1], stream),
        )

    def _call(self, name: str, *arguments: object) -> None:
        status: int = getattr(self._library, name)(*arguments)
        if status != _SUCCESS:
            said = self._library.nvcompGetStatusString(status)
            raise InternalError(f"{name}: {said.decode() if said else 'status'} ({status})")
