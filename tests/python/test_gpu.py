"""Columns decoded on a device equal h5py's: plans and decoding with a stand-in for the device, and on a GPU if
available."""

import ctypes
import importlib.util
import json
import math
import sys
import types
import zlib
from concurrent.futures import ThreadPoolExecutor

import cupy_stand_in
import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given
from hypothesis import strategies as st
from interpreter import python
from raddle import _device_plan, errors, gpu
from raddle._ranges import read_ranges
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


STORED = {
    "contiguous": {},
    "chunked": {"chunks": (7, 2, 3)},
    "deflated": {"chunks": (7, 5, 3), "compression": "gzip"},
    "shuffled": {"chunks": (7, 5, 3), "shuffle": True},
    "both": {"chunks": (7, 5, 3), "compression": "gzip", "shuffle": True},
    "both, edges everywhere": {"chunks": (7, 2, 2), "compression": "gzip", "shuffle": True},
    "larger than the extent": {"chunks": (64, 8, 4), "maxshape": (None, None, None), "compression": "gzip", "shuffle": True},
}
ELSEWHERE = {
    "checked": {"chunks": (7, 5, 3), "compression": "gzip", "fletcher32": True},
    "lzf": {"chunks": (7, 5, 3), "compression": "lzf", "shuffle": True},
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_every_storage_and_type(tmp_path, device, libver, monkeypatch):
    read_columns = raddle.Group.read_columns
    random = np.random.default_rng(7)
    path = tmp_path / "all.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for storage, options in {**STORED, **ELSEWHERE}.items():
            for dtype in NUMBERS:
                file.create_dataset(f"{storage}/{dtype}", data=values_of(random, dtype, (40, 5, 3)), **options)
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for storage in (*STORED, *ELSEWHERE):
            by = gpu.decoded_by(ours[storage])
            assert all((way == "device") == (storage in STORED) for way in by.values()), (storage, by)
            # A device that refuses everything would go unnoticed.
            monkeypatch.setattr(raddle.Group, "read_columns", None if storage in STORED else read_columns)
            for rows in (None, slice(9, 31), slice(14, 21), slice(3, 39, 4), slice(50, 60), slice(-1, None)):
                columns = gpu.read_columns(ours[storage], rows=rows, device=device)
                assert sorted(columns) == sorted(NUMBERS)
                for name, found in columns.items():
                    same(device, found, theirs[storage][name][rows or slice(None)])


def test_only_stored_bytes_go_to_the_device(tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(100_000) // 50, chunks=(10_000,), compression="gzip", shuffle=True)
        stored = [file["a"].id.get_chunk_info(number).size for number in range(10)]
    device = StandIn()
    with raddle.open(path) as file:
        gpu.read_columns(file, device=device)
        assert (device.loaded_bytes, device.inflated, device.uploaded_bytes) == (sum(stored), 10, 0)
        gpu.read_columns(file, rows=slice(25_000, 40_000), device=device)
        assert (device.loaded_bytes, device.inflated) == (sum(stored) + sum(stored[2:4]), 12)


def test_what_was_never_written_is_the_fill_value(tmp_path, device, no_cpu):
    path = tmp_path / "fill.h5"
    fills = {"i": np.int32(7), "big": np.array(-3, ">i8"), "nan": np.float32(np.nan), "c": np.array(1 - 2j, ">c16"), "none": None}
    with h5py.File(path, "w") as file:
        for name, fill in fills.items():
            dtype = np.dtype("u2") if fill is None else fill.dtype
            for storage, options in (("chunked", {"chunks": (4, 3), "compression": "gzip"}), ("contiguous", {})):
                dataset = file.create_dataset(f"{storage}/{name}", (30, 6), dtype, fillvalue=fill, **options)
                if storage == "chunked":
                    dataset[8:11, :3] = np.ones((3, 3), dtype)
                    dataset[28:] = np.ones((2, 6), dtype)
                    rows = file.create_dataset(f"rows/{name}", (30, 6), dtype, fillvalue=fill, chunks=(4, 6), shuffle=True)
                    rows[:4] = rows[12:20] = np.ones((1, 6), dtype)
            file.create_dataset(f"contiguous/written {name}", data=np.ones((30, 6), dtype))
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for group in ("chunked", "contiguous", "rows"):
            assert set(gpu.decoded_by(ours[group]).values()) == {"device"}
            for rows in (slice(None), slice(9, 29, 3), slice(12, 16)):
                for name, found in gpu.read_columns(ours[group], rows=rows, device=device).items():
                    same(device, found, theirs[group][name][rows])


def test_filters_that_were_skipped(tmp_path, device, no_cpu):
    path = tmp_path / "masks.h5"
    values = np.arange(32, dtype=">u4").reshape(8, 4)
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", values.shape, values.dtype, chunks=(2, 4), compression="gzip", shuffle=True)
        for mask in range(4):
            part = values[2 * mask : 2 * mask + 2]
            octets = part.tobytes() if mask & 1 else part.reshape(-1).view("u1").reshape(-1, 4).T.tobytes()
            dataset.id.write_direct_chunk((2 * mask, 0), octets if mask & 2 else zlib.compress(octets), mask)
    with raddle.open(path) as file:
        assert gpu.decoded_by(file) == {"d": "device"}
        same(device, gpu.read_columns(file, device=device)["d"], values)


def libhdf5():
    """Returns the library that h5py has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libhdf5-" in line or "/libhdf5.so" in line}
    return next(library for library in map(ctypes.CDLL, sorted(paths)) if hasattr(library, "H5Pset_chunk_opts"))


def test_edge_chunks_without_filters(tmp_path, device):
    path = tmp_path / "edges.h5"
    values = np.arange(50, dtype="i4").reshape(10, 5)
    with h5py.File(path, "w", libver="latest") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((4, 2))
        creation.set_shuffle()
        creation.set_deflate(6)
        # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, for which h5py has no name.
        assert libhdf5().H5Pset_chunk_opts(ctypes.c_int64(creation.id), 2) >= 0
        h5py.h5d.create(file.id, b"d", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((10, 5)), creation)
        file["d"][...] = values
    with raddle.open(path) as file:
        # No filters at the edge: 1 of 3 x 3 chunks along the rows, 1 along the columns.
        assert gpu.decoded_by(file) == {"d": "device"}
        same(device, gpu.read_columns(file, device=device)["d"], values)
        assert not isinstance(device, StandIn) or device.inflated == 4


def test_elements_that_are_arrays_and_enumerations(tmp_path, device):
    path = tmp_path / "elements.h5"
    inner = np.dtype((">i2", (2, 3)))
    with h5py.File(path, "w") as file:
        matrices = file.create_dataset("m", (9,), inner, chunks=(4,), compression="gzip", shuffle=True)
        matrices[...] = np.arange(54).reshape(9, 2, 3)
        kinds = h5py.enum_dtype({"a": 1, "b": 300}, ">i2")
        file.create_dataset("e", data=np.array([1, 300, 1], kinds), chunks=(2,))
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for name, found in gpu.read_columns(ours, device=device).items():
            same(device, found, theirs[name][...])
        same(device, gpu.read_columns(ours, ["m"], slice(3, 9, 2), device=device)["m"], theirs["m"][3:9:2])


def test_columns_that_no_device_holds_are_named_together(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["number"] = np.arange(3)
        file["text"] = np.array([b"a", b"bc", b"d"])
        file["record"] = np.zeros(3, [("a", "i4")])
        file["one"] = 1
    with raddle.open(tmp_path / "other.h5") as file:
        with pytest.raises(errors.UsageError, match=r"record \(.*text \(\|S2\)"):
            gpu.read_columns(file, device=StandIn())
        with pytest.raises(errors.UsageError, match="one .no rows"):
            gpu.read_columns(file, ["one"], device=StandIn())
        with pytest.raises(KeyError):
            gpu.read_columns(file, ["absent"], device=StandIn())
        with pytest.raises(errors.UsageError, match="memory=0 is too small"):
            gpu.read_columns(file, ["number"], memory=0, device=StandIn())
        assert list(gpu.read_columns(file, ["number"], device=StandIn())) == ["number"]


@pytest.fixture
def merged(runs, tmp_path):
    """One file of the runs, made by `raddle merge`."""
    raddle.merge(runs, tmp_path / "all.h5", progress=False)
    return tmp_path / "all.h5"


def test_columns_of_a_merged_file(merged, device, no_cpu):
    with raddle.open(merged) as ours, h5py.File(merged) as theirs:
        names = ["map", "evt", "energy"]
        assert set(gpu.decoded_by(ours["rec"], names).values()) == {"device"}
        columns = gpu.read_columns(ours["rec"], names, slice(20, 140), device=device)
        assert list(columns) == names
        for name, found in columns.items():
            same(device, found, theirs["rec"][name][20:140])


def test_batches_keep_to_the_memory(tmp_path, device):
    random = np.random.default_rng(3)
    path = tmp_path / "many.h5"
    with h5py.File(path, "w") as file:
        for number in range(20):
            options = {"chunks": (50 + number,), "compression": "gzip", "shuffle": number % 2 == 0}
            file.create_dataset(f"{number}", data=random.integers(0, 9, 2000).astype("i4"), **options)
        file.create_dataset("wide", data=random.random((2000, 4)), chunks=(2000, 4), compression="gzip")
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for memory in (1 << 30, 40_000, 2_000):
            columns = gpu.read_columns(ours, memory=memory, device=device)
            for name, found in columns.items():
                same(device, found, theirs[name][...])
            if isinstance(device, StandIn):
                assert sum(len(slot.memory) for slot in device.slots[-2:]) <= memory
                first, second = (slot.loads for slot in device.slots[-2:])
                # One batch is read while another is decoded.
                assert first - second in (0, 1)
        assert "a chunk needs" in gpu.decoded_by(ours, memory=40_000)["wide"]
        plan = _device_plan.plan_columns(ours._columns(None), None, 20_000)
        assert all(20_000 - 1_000 < batch.len_bytes <= 20_000 for batch in plan.batches[:-1])


def damage(path, name, change):
    """Changes the stored bytes of the first chunk of a dataset."""
    with h5py.File(path) as file:
        place = file[name].id.get_chunk_info(0)
    with open(path, "r+b") as file:
        file.seek(place.byte_offset)
        stored = bytearray(file.read(place.size))
        change(stored)
        file.seek(place.byte_offset)
        file.write(stored)


def test_chunks_that_are_not_as_long_as_they_should_be(tmp_path):
    path = tmp_path / "lengths.h5"
    options = {"chunks": (10,), "compression": "gzip", "shuffle": True}
    with h5py.File(path, "w") as file:
        for name, stored, mask in (("short", bytes(39), 3), ("long", bytes(41), 3), ("no stream", bytes(6), 0)):
            file.create_dataset(name, (10,), "i4", **options).id.write_direct_chunk((0,), stored, mask)
    with raddle.open(path) as file:
        by = gpu.decoded_by(file)
        assert by["short"] == by["long"] == "cpu: a chunk that is not as long as it should be"
        assert by["no stream"] == "cpu: a deflated chunk that is too short"
        for name in by:
            with pytest.raises(errors.RaddleError):
                file[name][...]
            with pytest.raises(errors.RaddleError):
                gpu.read_columns(file, [name], device=StandIn())


def test_filters_in_another_order_are_for_the_cpu(tmp_path, monkeypatch):
    path = tmp_path / "order.h5"
    values = np.arange(40, dtype="i4")
    with h5py.File(path, "w") as file:
        for name, filters in (("turned", ["deflate", "shuffle"]), ("twice", ["deflate", "deflate"]), ("usual", ["shuffle", "deflate"])):
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((10,))
            for made in filters:
                # h5py's and libhdf5's own calls would reorder or refuse them.
                number, options = {"deflate": (1, (6,)), "shuffle": (2, ())}[made]
                creation.set_filter(number, h5py.h5z.FLAG_MANDATORY, options)
            space = h5py.h5s.create_simple(values.shape)
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, space, creation)
            file[name][...] = values
    with raddle.open(path) as file:
        by = gpu.decoded_by(file)
        assert by["usual"] == "device" and by["turned"] == "cpu: filters in an unusual order"
        assert by["twice"].startswith("cpu: ")
        for found in gpu.read_columns(file, device=StandIn()).values():
            assert np.array_equal(found, values)
        # More than a device can sum without overflow.
        monkeypatch.setattr(_device_plan, "_MAX_CHUNK_LEN_BYTES", 39)
        assert gpu.decoded_by(file)["usual"] == "cpu: deflated chunks of 40 bytes"


def test_facts_that_contradict_each_other_are_for_the_cpu():
    with pytest.raises(_device_plan._ByCpu, match="40 bytes stored instead of 48"):
        _device_plan._in_blocks((6, 2), 4, np.array([[0, 0, 100, 40, 0]]), 1 << 20)
    column = _device_plan.Column("c", (10,), np.dtype("i4"), (10,), (0, 10, 1), (10,), 4, 0, None)
    pieces = _device_plan._pieces(np.array([[0, 100, 40, 0]]), [2])
    _device_plan._check_pieces(column, pieces, [(2, "shuffle", (4,))], False)
    with pytest.raises(_device_plan._ByCpu, match=r"shuffled by \(8,\) bytes, but elements have 4"):
        _device_plan._check_pieces(column, pieces, [(2, "shuffle", (8,))], False)


def test_any_number_of_ranges_in_one_run(tmp_path):
    values = np.random.default_rng(1).integers(0, 256, 9_000).astype("u1")
    (tmp_path / "ranges").write_bytes(values.tobytes())
    # Reversed in memory, with gaps.
    at = np.arange(3_000)
    reads = np.stack([3 * at, 4 * at[::-1], np.full(3_000, 3)], axis=1)
    memory = np.zeros(12_000, "u1")
    with open(tmp_path / "ranges", "rb") as file, ThreadPoolExecutor(2) as threads:
        read_ranges(file.fileno(), reads, memory.data, threads, "ranges")
        assert np.array_equal(memory.reshape(-1, 4)[::-1, :3].reshape(-1), values)
        with pytest.raises(errors.DamagedError, match="ranges: the file ends before byte 9001"):
            read_ranges(file.fileno(), reads + [1, 0, 0], memory.data, threads, "ranges")


def test_checksums_of_the_largest_chunk_do_not_overflow():
    most = _device_plan._MAX_CHUNK_LEN_BYTES
    assert 255 * most * (most + 1) // 2 < 2**64


def flip_sum(stored):
    stored[-1] ^= 1


def flip_header(stored):
    stored[0] ^= 7


def flip_middle(stored):
    stored[len(stored) // 2] ^= 0x55


@pytest.mark.parametrize("change", [flip_sum, flip_header, flip_middle])
def test_damage_is_for_the_cpu_to_judge(tmp_path, device, change):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        for name in "ab":
            file.create_dataset(name, data=np.arange(4000) % 37, chunks=(1000,), compression="gzip")
    damage(path, "a", change)
    with raddle.open(path) as file:
        with pytest.raises(errors.DamagedError):
            file["a"][...]
        with pytest.raises(errors.DamagedError):
            gpu.read_columns(file, device=device)
        same(device, gpu.read_columns(file, ["b"], device=device)["b"], np.arange(4000) % 37)


def test_what_is_behind_a_stream_does_not_matter(tmp_path):
    # libhdf5 and the CPU stop at the end of the stream, so its checksum need not be at the end of a chunk.
    path = tmp_path / "behind.h5"
    values = np.arange(100, dtype="i4")
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", values.shape, values.dtype, chunks=(100,), compression="gzip")
        dataset.id.write_direct_chunk((0,), zlib.compress(values.tobytes()) + b"behind")
    device = StandIn()
    with raddle.open(path) as file:
        assert np.array_equal(gpu.read_columns(file, device=device)["d"], file["d"][...])
    assert device.uploaded_bytes == values.nbytes


def test_a_file_cut_short_after_it_was_opened(tmp_path):
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.arange(100_000)
    with raddle.open(path) as file:
        with open(path, "r+b") as cut:
            cut.truncate(50_000)
        with pytest.raises(errors.DamagedError, match="ends before byte"):
            gpu.read_columns(file, device=StandIn())


@st.composite
def files(draw):
    """Draws datasets of one group, each with its own storage."""
    length = draw(st.integers(1, 60))
    found = {}
    for number in range(draw(st.integers(1, 4))):
        inner = tuple(draw(st.lists(st.integers(1, 5), max_size=2)))
        shape = (length, *inner)
        options = {}
        if draw(st.booleans()):
            options["chunks"] = tuple(draw(st.integers(1, side + 2)) for side in shape)
            options["maxshape"] = (None,) * len(shape)
            options["compression"] = draw(st.sampled_from([None, "gzip", "gzip", "lzf"]))
            options["shuffle"] = draw(st.booleans())
            options["fletcher32"] = draw(st.integers(0, 5)) == 0
        # Rows that are written, in one or two parts.
        cuts = sorted(draw(st.lists(st.integers(0, length), min_size=3, max_size=3))) if draw(st.booleans()) else [0, 0, 0]
        dtype, seed = draw(st.sampled_from(NUMBERS)), draw(st.integers(0, 2**32 - 1))
        found[f"c{number}"] = (dtype, shape, options, [(0, cuts[0]), (cuts[1], cuts[2] or length)], seed)
    return found


@given(data=st.data())
def test_any_columns_any_rows_any_memory(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("property") / "file.h5"
    described = data.draw(files())
    with h5py.File(path, "w", libver=data.draw(st.sampled_from(["earliest", "latest"]))) as file:
        for name, (dtype, shape, options, written, seed) in described.items():
            random = np.random.default_rng(seed)
            fill = values_of(random, dtype, (1,))[0] if seed % 2 else None
            dataset = file.create_dataset(name, shape, dtype, fillvalue=fill, **options)
            for start, stop in written:
                if stop > start:
                    dataset[start:stop] = values_of(random, dtype, (stop - start, *shape[1:]))
    length = next(iter(described.values()))[1][0]
    start, stop = sorted(data.draw(st.lists(st.integers(0, length), min_size=2, max_size=2)))
    rows = slice(start, stop, data.draw(st.integers(1, 7)))
    memory = data.draw(st.sampled_from([200, 1_000, 5_000, 1 << 30]))
    device = StandIn()
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        plan = _device_plan.plan_columns(ours._columns(None), rows, memory // 2)
        covers_each_chunk_once(plan)
        for name, found in gpu.read_columns(ours, rows=rows, memory=memory, device=device).items():
            same(device, found, theirs[name][rows])


def covers_each_chunk_once(plan):
    """Asserts the plan's invariant, and that spans of a batch do not overlap."""
    seen = {}
    for batch in plan.batches:
        taken = []
        for span in batch.spans:
            column = plan.columns[span.column]
            origins = [tuple(origin) for origin in span.origins.tolist()]
            seen.setdefault(span.column, []).extend(origins)
            taken += zip(span.packed_offsets.tolist(), span.lengths.tolist(), strict=True)
            if span.is_deflated:
                assert span.raw_offset + len(span) * column.stride_bytes <= batch.raw_len_bytes
        taken.sort()
        assert all(at + length <= after for (at, length), (after, _) in zip(taken, taken[1:], strict=False))
        assert taken[-1][0] + taken[-1][1] <= batch.packed_len_bytes
    for number, column in enumerate(plan.columns):
        origins = seen.get(number, [])
        assert len(set(origins)) == len(origins)
        start, count, step = column.rows
        end = start + (count - 1) * step + 1
        near = math.ceil(end / column.chunk_shape[0]) - start // column.chunk_shape[0] if count else 0
        others = math.prod(math.ceil(d / c) for d, c in zip(column.dims[1:], column.chunk_shape[1:], strict=True))
        assert len(origins) <= near * others
        assert (len(origins) == near * others) == (column.fill is None)


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
