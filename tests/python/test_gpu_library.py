"""CUDA, nvCOMP, cupy and kvikio: how they are called, and errors if they are missing or refuse."""

import importlib.util
import json
import sys
import types

import cupy_stand_in
import h5py
import numpy as np
import pytest
import raddle
from gpu_devices import MISSING, library, merged  # noqa: F401
from interpreter import python
from raddle import _device_plan, errors, gpu


def test_without_the_packages_the_error_says_what_to_install(library, merged, monkeypatch):
    with raddle.open(merged) as file:
        for module, name in (("nvidia.libnvcomp", "nvCOMP"), ("cupy", "cupy")):
            monkeypatch.setitem(sys.modules, module, None)
            with pytest.raises(errors.UsageError, match=rf"^{name} is not installed: pip install 'raddle\[gpu\]'$"):
                file["rec"].read_columns(["evt"], library="cupy")


def test_without_a_device_the_error_says_so(merged):
    if importlib.util.find_spec("cupy") is None or not MISSING.startswith("no CUDA device"):
        pytest.skip(MISSING or "there is a device")
    with raddle.open(merged) as file, pytest.raises(errors.UnsupportedError, match="no CUDA device"):
        gpu.read_columns(file["rec"])


def test_what_cuda_is_asked_for(library, merged):
    with raddle.open(merged) as ours, h5py.File(merged) as theirs:
        columns = ours["rec"].read_columns(["map", "energy"], library="cupy")
        assert library.batches == [sum(theirs["rec"][name].id.get_num_chunks() for name in columns)]
        assert all(type(column) is cupy_stand_in.Array for column in columns.values())
        library.said = 1000
        with pytest.raises(errors.InternalError, match=r"DecompressAsync: printed \(1000\)"):
            ours["rec"].read_columns(["map"], library="cupy")


def test_a_status_other_than_success_is_a_refusal(library, merged):
    from raddle._cuda import Cuda

    with raddle.open(merged) as file:
        plan = _device_plan.plan_columns(file["rec"]._columns(["evt"]), None, 1 << 20)
    span, at = plan.batches[0].spans[0], plan.batches[0].packed_len_bytes
    stored, offset = int(span.lengths[0]), int(span.packed_offsets[0])
    streams = np.array([[offset + 2, stored - 6, at, plan.columns[0].chunk_len_bytes]])
    with Cuda().slot(str(merged), 1, at, plan.batches[0].len_bytes) as slot:
        slot.load(np.array([[span.addresses[0], offset, stored]]))
        for status, found in ((0, plan.columns[0].chunk_len_bytes), (12, -1)):
            library.status = status
            with slot.current():
                assert slot.inflate(streams).tolist() == [found]


@pytest.mark.parametrize("devices, said", [(0, "the driver reports none"), (None, "cudaErrorInsufficientDriver")])
def test_no_device(library, merged, monkeypatch, devices, said):
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.cupy(devices))
    with raddle.open(merged) as file, pytest.raises(errors.UnsupportedError, match=f"no CUDA device: {said}"):
        gpu.read_columns(file["rec"])


def test_another_nvcomp_is_refused(library, merged):
    library.version = 5100
    with raddle.open(merged) as file:
        with pytest.raises(errors.UsageError, match=r"nvCOMP 5\.1 is installed, but raddle needs version 6"):
            gpu.read_columns(file["rec"])
        library.version = 6000
        del library.nvcompBatchedDeflateDecompressGetTempSize
        with pytest.raises(errors.UsageError, match="the installed nvCOMP is not version 6"):
            gpu.read_columns(file["rec"])


class DirectFile:
    """kvikio's file: reads into memory of the device, here the host's."""

    missing = 0

    def __init__(self, path, flags):
        assert flags == "r"
        self.file = open(path, "rb", buffering=0)

    def pread(self, memory, size, file_offset):
        assert memory.nbytes == size
        self.file.seek(file_offset)
        return types.SimpleNamespace(get=lambda: self.file.readinto(memoryview(np.asarray(memory))) - self.missing)

    def close(self):
        self.file.close()


@pytest.mark.parametrize("available", [True, False])
def test_direct_reads_where_the_system_has_them(library, merged, monkeypatch, available):
    asked = []
    driver = types.SimpleNamespace(get=lambda name: asked.append(name) or available)
    kvikio = types.ModuleType("kvikio")
    kvikio.CuFile, kvikio.cufile_driver = DirectFile, driver
    monkeypatch.setitem(sys.modules, "kvikio", kvikio)
    if available:
        monkeypatch.setattr(raddle._cuda, "read_ranges", None)
    with raddle.open(merged) as ours, h5py.File(merged) as theirs:
        columns = gpu.read_columns(ours["rec"], ["map"])
        assert np.array_equal(columns["map"], theirs["rec/map"][...])
        assert set(asked) == {"is_gds_available"}
        if available:
            monkeypatch.setattr(DirectFile, "missing", 1)
            with pytest.raises(errors.DamagedError, match="all.h5: the file ends within"):
                gpu.read_columns(ours["rec"], ["map"])


def test_nvcomp_takes_what_the_plans_give_it():
    pytest.importorskip("nvidia.libnvcomp", reason="nvCOMP is not installed")
    from raddle._nvcomp import NvComp

    nvcomp = NvComp()
    assert nvcomp.version[0] == 6
    assert all(_device_plan.ALIGNMENT % needed == 0 for needed in nvcomp.alignments())
    assert nvcomp.temporary_len_bytes(1000, 1 << 20, 1000 << 20, 0) >= 0


def test_the_package_starts_without_cupy(environment):
    code = "import raddle, raddle.gpu, raddle._file, sys, json; print(json.dumps(sorted(sys.modules)))"
    printed = python(environment, "-c", code)
    assert not {"cupy", "nvidia", "kvikio"} & set(json.loads(printed.stdout)), printed.stderr
    assert "raddle._device" in json.loads(printed.stdout)
