"""Memory into which columns are read: see `raddle._memory`. Memory of long scans."""

import sys

import awkward as ak
import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given
from hypothesis import strategies as st
from interpreter import python
from raddle._memory import empty_arrays

PAGE = 2 << 20


def address(array):
    return array.__array_interface__["data"][0]


def owner(array):
    while array.base is not None:
        array = array.base
    return array


@pytest.mark.parametrize("length", [16 << 20, (16 << 20) + 5, 50_000_000])
def test_what_is_large_begins_with_a_page(length):
    first, second = empty_arrays([((length,), np.dtype("u1")), ((length // 8, 2), np.dtype("f4"))])
    assert address(first) % PAGE == 0 and first.shape == (length,)
    assert address(second) % PAGE == 0 and second.shape == (length // 8, 2)
    assert owner(first) is not owner(second)


@given(st.lists(st.tuples(st.integers(0, 3_000_000), st.sampled_from(["u1", "i2", "f8", "S3", "c16"])), max_size=30))
def test_what_shares_memory_does_not_overlap(drawn):
    wanted = [((length,), np.dtype(kind)) for length, kind in drawn]
    arrays = empty_arrays(wanted)
    assert [(array.shape, array.dtype) for array in arrays] == wanted
    ends = sorted((address(array), address(array) + array.nbytes) for array in arrays if array.nbytes)
    assert all(end <= start for (_, end), (start, _) in zip(ends, ends[1:]))
    assert all(array.flags.writeable and array.flags.c_contiguous and array.flags.aligned for array in arrays)
    # Each array lies in its owner, and the used part of every owner except small arrays begins with a page.
    firsts = {}
    for array in arrays:
        if array.base is not None:
            base = owner(array)
            assert address(base) <= address(array) and address(array) + array.nbytes <= address(base) + base.nbytes
            firsts[id(base)] = min(firsts.get(id(base), address(array)), address(array))
    assert all(first % PAGE == 0 for first in firsts.values())


@pytest.mark.parametrize("values", [400_000, 1_000_000, 9_000_000])
def test_arrays_of_events_begin_with_a_page(tmp_path, values):
    """Arrays of events grow piece by piece: from small memory to large, and from large to larger."""
    written = np.arange(values, dtype="f8")
    raddle.events.write(tmp_path / "events.h5", {"x": written}, compress="none")
    read = raddle.events.open(tmp_path / "events.h5").arrays("x", library="np")["x"]
    assert np.array_equal(read, written)
    assert address(read) % PAGE == 0
    jagged = ak.unflatten(written, np.full(values // 100, 100))
    raddle.events.write(tmp_path / "jagged.h5", {"x": jagged}, compress="none")
    layout = raddle.events.open(tmp_path / "jagged.h5")["x"].layout
    assert address(np.asarray(layout.content.data)) % PAGE == 0 and ak.array_equal(layout, jagged)


MEASURE_BATCHES = """
import re, sys
import raddle
table = raddle.scan(sys.argv[1], threads=2)["t"]
for _ in range(8):
    for batch in table.batches(1 << 20):
        pass
    print(int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux reports it")
def test_memory_does_not_grow_with_the_number_of_batches(tmp_path, environment):
    """In a separate process, because memory that other tests freed would be used again."""
    path = tmp_path / "long.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(1).integers(0, 1000, 6_000_000).astype("f8")
        file.create_dataset("t/x", data=values, chunks=(1 << 18,), compression="gzip", compression_opts=1, shuffle=True)
    run = python(environment, "-c", MEASURE_BATCHES, path)
    assert run.returncode == 0, run.stderr
    memory = list(map(int, run.stdout.split()))
    assert max(memory[4:]) < max(memory[:4]) + (16 << 20), memory
