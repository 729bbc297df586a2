"""Loops that read datasets one after the other: datasets read in the background, and memory that is used again."""

import os
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given, settings
from hypothesis import strategies as st

COUNT = 60


def values_of(number):
    """Returns the values of a dataset: short and long ones, of one and of several dimensions, some empty."""
    random = np.random.default_rng(number)
    rows = (0, 3, 400, 20_000, 120_000)[number % 5]
    if number % 7 == 6:
        return [f"text {row}" for row in range(number)]
    return random.integers(0, 50, (rows, 2) if number % 3 == 2 else rows).astype(("i4", ">f8", "u1", "f4")[number % 4])


def write(path, count=COUNT):
    with h5py.File(path, "w") as file:
        for number in range(count):
            values = values_of(number)
            chunks = True if len(values) > 1 and not isinstance(values, list) else None
            file.create_dataset(f"g{number // 20}/d{number:03}", data=values, chunks=chunks, compression="gzip" if chunks else None)


def name(number):
    return f"g{number // 20}/d{number:03}"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ahead") / "file.h5"
    write(path)
    return path


def check(array, number):
    expected = values_of(number)
    if isinstance(expected, list):
        assert [text.decode() for text in array] == expected
        return
    assert array.dtype == expected.dtype and array.shape == expected.shape
    assert array.tobytes() == expected.tobytes(), number


def bytes_read():
    return int(next(line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("rchar")).split()[1])


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


# In order, from anywhere, with datasets left out, and back to an earlier one.
runs = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(1, 30), st.sampled_from([1, 1, 1, 2, 3, -1])), min_size=1, max_size=8)


@given(runs=runs, threads=st.integers(1, 4), kept_every=st.integers(1, 5))
@settings(max_examples=80)
def test_values_are_those_of_any_order(path, runs, threads, kept_every):
    kept = []
    with raddle.open(path, threads=threads) as file:
        for start, count, step in runs:
            for place in range(count):
                number = start + step * place
                if not 0 <= number < COUNT:
                    break
                array = file[name(number)][()]
                check(array, number)
                if number % kept_every == 0:
                    kept.append((array, number))
    # Memory of dropped arrays was used again, that of others was not.
    for array, number in kept:
        check(array, number)


def test_arrays_belong_to_their_owner(path):
    with raddle.open(path, threads=2) as file:
        first = [file[name(number)][()] for number in range(COUNT)]
        for array in first:
            if array.dtype.kind in "iuf":
                assert array.flags.writeable and array.flags.c_contiguous
                array[...] = 1
        views = [array[1:] for array in first]
        del first
        for number in range(COUNT):
            check(file[name(number)][...], number)
        assert all((view == 1).all() for view in views if view.dtype.kind in "iuf")


def test_datasets_that_follow_are_read_while_the_program_works(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        for number in range(20):
            file[f"d{number:02}"] = np.random.default_rng(number).random(100_000)
    # Four datasets are requested.
    asked = 4 * 800_000
    with raddle.open(path, threads=2) as file:
        before = bytes_read()
        for number in range(4):
            file[f"d{number:02}"][()]
        deadline = time.monotonic() + 10
        while bytes_read() - before < asked + 800_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert bytes_read() - before >= asked + 800_000
    with raddle.open(path, threads=1) as file:
        before = bytes_read()
        for number in range(4):
            file[f"d{number:02}"][()]
        time.sleep(0.2)
        assert bytes_read() - before < asked + 800_000


def test_a_loop_over_one_column_of_each_group_reads_nothing_else(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        for group in range(40):
            for column in "abcdefgh":
                file[f"{group:02}/{column}"] = np.random.default_rng(group).random(50_000)
    with raddle.open(path, threads=4) as file:
        before = bytes_read()
        for group in range(40):
            file[f"{group:02}/a"][()]
        time.sleep(0.1)
        assert bytes_read() - before < 1.2 * 40 * 400_000


def test_an_error_is_that_of_the_dataset_that_is_read(tmp_path):
    path = tmp_path / "file.h5"
    write(path)
    with h5py.File(path) as file:
        chunk = file[name(33)].id.get_chunk_info(0)
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset + 10)
        file.write(b"\xff" * (chunk.size - 10))
    with raddle.open(path, threads=3) as file:
        for _ in range(2):
            for number in range(COUNT):
                if number == 33:
                    with pytest.raises(raddle.errors.DamagedError, match="chunk"):
                        file[name(number)][()]
                else:
                    check(file[name(number)][()], number)


def test_a_dataset_that_is_read_again_is_read_from_the_file(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        for number in range(10):
            file[f"d{number}"] = np.full(100_000, number)
        places = [file[f"d{number}"].id.get_offset() for number in range(10)]
    with raddle.open(path, threads=2) as file:
        assert [int(file[f"d{number}"][()][5]) for number in range(10)] == list(range(10))
        with path.open("r+b") as changed:
            for place in places:
                changed.seek(place)
                changed.write(np.full(100_000, 77).tobytes())
        assert [int(file[f"d{number}"][()][5]) for number in range(10)] == [77] * 10


def test_forked_processes_go_on(path):
    others = [raddle.open(path, threads=3) for _ in range(2)]
    stop = threading.Event()

    def read_others(file):
        while not stop.is_set():
            for number in range(COUNT):
                check(file[name(number)][()], number)

    readers = [threading.Thread(target=read_others, args=(file,)) for file in others]
    for reader in readers:
        reader.start()
    children = []
    with raddle.open(path, threads=3) as file:
        for number in range(COUNT):
            check(file[name(number)][()], number)
            if number % 4 == 3:
                child = os.fork()
                if not child:
                    try:
                        for rest in range(number + 1, COUNT):
                            check(file[name(rest)][()], rest)
                        os._exit(0)
                    finally:
                        os._exit(1)
                children.append(child)
    stop.set()
    for reader in readers:
        reader.join()
    deadline = time.monotonic() + 60
    for child in children:
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < deadline, "a forked process waits for a thread that it does not have"
            time.sleep(0.01)
        assert done[1] == 0
    for file in others:
        file.close()


def test_closing_a_file_ends_its_threads(path):
    before = threads_of_process()
    for _ in range(20):
        with raddle.open(path, threads=4) as file:
            for number in range(6):
                file[name(number)][()]
    deadline = time.monotonic() + 10
    while threads_of_process() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads_of_process() <= before
    with pytest.raises(raddle.errors.UsageError, match="closed"):
        file[name(0)][()]


def test_threads_share_a_file(path):
    failures = []

    def read(file, first):
        try:
            for number in [*range(first, COUNT), *range(first)]:
                check(file[name(number)][()], number)
        except BaseException as error:
            failures.append(error)

    with raddle.open(path, threads=2) as file:
        readers = [threading.Thread(target=read, args=(file, first)) for first in (0, 0, 7, 30)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert not failures
