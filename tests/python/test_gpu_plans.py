"""Plans of reading columns on a device: any storage, rows and memory."""

import math
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
import raddle
from gpu_devices import NUMBERS, device, library, same, values_of  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from raddle import _device_plan, errors, gpu
from raddle._ranges import read_ranges
from stand_in import StandIn


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
