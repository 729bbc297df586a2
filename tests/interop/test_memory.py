"""Memory against its budget if a small file has large chunks: operations stay within it or are refused."""

import zlib

import h5py
import numpy as np
import pytest
from peak_memory import peak

CHUNK_LEN_BYTES = 256 << 20


def deflated_zeros(length):
    """Returns zeros as deflate stores them: a thousandth of the length, made without allocating that length."""
    compressor = zlib.compressobj(6)
    block = bytes(1 << 20)
    return b"".join([*(compressor.compress(block) for _ in range(length >> 20)), compressor.flush()])


@pytest.fixture(scope="module")
def stored():
    return deflated_zeros(CHUNK_LEN_BYTES)


def write_long_chunks(path, stored, shuffle, chunks=2, rows=None):
    """Writes a file of half a megabyte whose chunks inflate to 256 MiB each."""
    rows_per_chunk = CHUNK_LEN_BYTES // 8
    with h5py.File(path, "w") as file:
        file["short"] = np.arange(10)
        dataset = file.create_dataset(
            "deep/long", (rows or chunks * rows_per_chunk,), "f8", chunks=(rows_per_chunk,), compression="gzip",
            shuffle=shuffle, maxshape=(None,),
        )  # fmt: skip
        for number in range(chunks):
            dataset.id.write_direct_chunk((number * rows_per_chunk,), stored)
    return path


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_merge_keeps_to_its_budget(tmp_path, stored, shuffle):
    path, output = write_long_chunks(tmp_path / "in.h5", stored, shuffle), tmp_path / "out.h5"
    needed = (2 if shuffle else 1) * CHUNK_LEN_BYTES
    budget = needed + (160 << 20)
    code, text, most = peak("merge", path, "-o", output, "--memory", budget, "--jobs", 4, "-q")
    assert code == 0, text
    assert most < 1.1 * budget, most
    # Shows that the budget is not generous.
    assert most > needed
    with h5py.File(path) as expected, h5py.File(output) as found:
        assert found["deep/long"].shape == expected["deep/long"].shape
        assert not found["deep/long"][::9973].any()
    for against in ([], ["--against", path]):
        code, text, most = peak("verify", output, *against, "--memory", budget + needed, "--jobs", 4, "-q")
        assert code == 0, text
        assert most < 1.1 * (budget + needed), most


@pytest.mark.parametrize("command", ["merge", "merge -c keep", "plan", "rechunk"])
def test_what_does_not_fit_is_refused_by_name(tmp_path, stored, command):
    path = write_long_chunks(tmp_path / "in.h5", stored, False)
    name, *options = command.split()
    output = [] if name == "plan" else ["-o", tmp_path / "out.h5"]
    code, text, most = peak(name, path, *output, *options, "--memory", "128MiB")
    assert code == 6, text
    assert "/deep/long" in text and "in.h5" in text and "--memory" in text and "256" in text, text
    assert most < 1.1 * (128 << 20), most
    assert not (tmp_path / "out.h5").exists()


def test_a_union_is_not_advised_to_choose_chunks(tmp_path):
    """It keeps those of its inputs, and refuses options of layouts."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["deep/wide"] = np.zeros((1 << 19, 4))
    for options, offered in (["--union"], False), (["--chunk", "65536rows"], True):
        code, text, _ = peak("merge", path, "-o", tmp_path / "out.h5", "--memory", "1MiB", *options)
        assert code == 6 and "/deep/wide" in text and "raise --memory" in text, text
        assert ("--chunk" in text.split("what to do:")[1]) == offered, text


def test_the_rest_of_a_worker_is_counted(tmp_path, stored):
    """Memory for a chunk, but not for a tile next to it: detected by the engine and reported with the dataset."""
    path = write_long_chunks(tmp_path / "in.h5", stored, False)
    code, text, _ = peak("merge", path, "-o", tmp_path / "out.h5", "--memory", CHUNK_LEN_BYTES + (5 << 20))
    assert code == 6 and "/deep/long" in text, text


def test_values_that_are_kept_once(tmp_path, stored):
    path = write_long_chunks(tmp_path / "in.h5", stored, False, chunks=1, rows=3)
    code, text, most = peak("merge", path, "-o", tmp_path / "out.h5", "--keep", "/deep/long", "--memory", "128MiB")
    assert code == 6, text
    assert "/deep/long" in text and "in.h5" in text and "--memory" in text, text
    assert most < 1.1 * (128 << 20), most
    code, text, _ = peak("merge", path, "-o", tmp_path / "out.h5", "--keep", "/deep/long", "--memory", "2GiB")
    assert code == 0, text


def test_variable_length_elements_in_long_chunks(tmp_path, stored):
    """Variable-length elements are read with the objects, not in tiles."""
    rows = CHUNK_LEN_BYTES // 16
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        texts = file.create_dataset("texts", (rows,), h5py.string_dtype(), chunks=(rows,), compression="gzip")
        texts.id.write_direct_chunk((0,), stored)
    code, text, most = peak("merge", path, "-o", tmp_path / "out.h5", "--memory", "128MiB")
    assert code == 6 and "/texts" in text, text
    assert most < 1.1 * (128 << 20), most


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory):
    """Returns a file of 300 strings of half a megabyte, whose addresses fit into a single chunk of a few kilobytes."""
    path = tmp_path_factory.mktemp("texts") / "in.h5"
    with h5py.File(path, "w") as file:
        texts = file.create_dataset("texts", (300,), h5py.string_dtype(), chunks=(300,), maxshape=(None,))
        for row in range(300):
            texts[row] = f"{row:04}" * (1 << 17)
    return path


def test_long_values_of_variable_length_are_read_in_parts(tmp_path, long_texts):
    """Neither the addresses of values nor the chunks that hold them bound the memory for the values."""
    output = tmp_path / "out.h5"
    for *arguments, rows in (
        ("plan", long_texts, 0),
        ("merge", long_texts, "-o", output, 300),
        ("verify", output, 300),
        ("verify", output, "--against", long_texts, 300),
        ("append", output, long_texts, "--again", 600),
    ):
        code, text, most = peak(*arguments, "--memory", "32MiB", "-q")
        assert code == 0, text
        assert most < 128 << 20, (arguments[0], most)
        if rows:
            with h5py.File(output) as file, h5py.File(long_texts) as expected:
                assert file["texts"].shape == (rows,)
                assert all(file["texts"][row] == expected["texts"][row % 300] for row in range(7, rows, 97))


def test_many_small_chunks_are_moved_with_little_memory(tmp_path):
    """The bound of a stored chunk depends on its length, because a batch moves thousands of them."""
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.h5")
        with h5py.File(paths[-1], "w") as file:
            values = np.arange(128 * 16000, dtype="f4")
            file.create_dataset(name, data=values, chunks=(128,), compression="gzip", compression_opts=1)
    code, text, most = peak("merge", *paths, "-o", tmp_path / "out.h5", "--union", "--memory", "32MiB", "-j", 2, "-q")
    assert code == 0, text
    assert most < 96 << 20, most
    with h5py.File(tmp_path / "out.h5") as file:
        assert all((file[name][:] == np.arange(128 * 16000)).all() for name in "ab")
