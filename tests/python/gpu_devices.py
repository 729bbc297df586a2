"""Devices for the tests of `raddle.gpu`: stand-ins, and the GPU if available; and comparisons with h5py."""

import sys
import types

import cupy_stand_in
import numpy as np
import pytest
import raddle
from raddle import errors
from stand_in import StandIn

NUMBERS = [
    *(f"{order}{kind}" for order in "<>" for kind in ("i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16")),
    "i1", "u1", "?",
]  # fmt: skip


def gpu_there():
    """Returns the reason why there is no GPU to test with; empty if there is one."""
    from raddle._cuda import Cuda

    try:
        Cuda()
    except errors.RaddleError as error:
        return str(error).splitlines()[0]
    return ""


MISSING = gpu_there()


@pytest.fixture
def library(monkeypatch):
    """Installs nvCOMP's stand-in where `raddle._cuda` looks for it and for cupy's."""
    library = cupy_stand_in.Library()
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.cupy())
    monkeypatch.setitem(sys.modules, "kvikio", None)
    monkeypatch.setitem(sys.modules, "nvidia.libnvcomp", cupy_stand_in.nvcomp(library))
    monkeypatch.setitem(sys.modules, "nvidia", types.ModuleType("nvidia"))
    return library


@pytest.fixture(params=["stand-in", "cuda over stand-ins", "gpu"])
def device(request):
    """The stand-ins, and the GPU if available."""
    if request.param == "stand-in":
        return StandIn()
    if request.param == "cuda over stand-ins":
        from raddle._cuda import Cuda

        request.getfixturevalue("library")
        return Cuda()
    if MISSING:
        pytest.skip(MISSING)
    from raddle._cuda import Cuda

    return Cuda()


@pytest.fixture
def no_cpu(monkeypatch):
    """Makes requests to the CPU fail: otherwise a device that refuses everything would go unnoticed."""
    monkeypatch.setattr(raddle.Group, "read_columns", None)


def native(values):
    """Returns values as a device holds them: in the machine's byte order, without h5py's metadata."""
    values = np.asarray(values)
    return values.astype(np.dtype(values.dtype.newbyteorder("=").str))


def same(device, ours, theirs):
    """Asserts that a device's array equals h5py's in every bit."""
    found, expected = device.fetch(ours), native(theirs)
    assert found.dtype.str == expected.dtype.str and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def values_of(random, dtype, shape):
    """Returns compressible values with some extreme ones: for floats also infinities and several kinds of NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    octets = random.integers(0, 256, (*shape, dtype.itemsize)).astype("u1")
    octets[random.random(shape) < 0.6] = 0
    return octets.reshape(-1).view(dtype).reshape(shape) if octets.size else np.zeros(shape, dtype)


@pytest.fixture
def merged(runs, tmp_path):
    """One file of the runs, made by `raddle merge`."""
    raddle.merge(runs, tmp_path / "all.h5", progress=False)
    return tmp_path / "all.h5"
