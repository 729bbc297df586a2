"""Merges of grids on MPI ranks: tiles, ranges of dimensions and transposed layouts have the bytes of one process."""

import json

import h5py
import numpy as np
import pytest


def write_grid(path, times, columns, chunks=(1, 12, 20)):
    """Writes a part of a grid of (times, 12, 40) elements with dimension scales."""
    with h5py.File(path, "w") as file:
        for name, values in {"time": np.arange(40.0)[times], "y": np.arange(12.0), "x": np.arange(40.0)[columns]}.items():
            file[name] = values
            file[name].make_scale(name)
        values = np.random.default_rng(0).random((40, 12, 40))[times, :, columns]
        file.create_dataset("field", data=values, chunks=chunks, compression="gzip")
        for axis, name in enumerate(("time", "y", "x")):
            file["field"].dims[axis].attach_scale(file[name])
    return path


@pytest.fixture
def in_time(tmp_path):
    return [write_grid(tmp_path / f"t{number}.h5", slice(10 * number, 10 * number + 10), slice(0, 40)) for number in range(4)]


@pytest.fixture
def tiles(tmp_path):
    return [write_grid(tmp_path / f"x{number}.h5", slice(0, 40), slice(20 * number, 20 * number + 20)) for number in range(2)]


@pytest.fixture
def contradictory(tmp_path):
    """Tiles with a shared column, whose values differ in four datasets."""
    folder = tmp_path / "halos"
    folder.mkdir()
    for number, columns in enumerate([slice(0, 21), slice(20, 40)]):
        with h5py.File(write_grid(folder / f"x{number}.h5", slice(0, 40), columns), "r+") as file:
            for name in ("a", "b", "c", "field"):
                values = file["field"][()] + number
                if name in file:
                    file[name][...] = values
                    continue
                file.create_dataset(name, data=values, chunks=(1, 12, 20))
                for axis, scale in enumerate(("time", "y", "x")):
                    file[name].dims[axis].attach_scale(file[scale])
    return sorted(folder.iterdir())


def same_bytes(ranks, alone, folder, *arguments):
    alone("merge", *arguments, "-o", "one.h5", "-q")
    for size in (2, 3, 5):
        ranks(size, "merge", *arguments, "-o", "all.h5", "-q", "-f")
        assert (folder / "all.h5").read_bytes() == (folder / "one.h5").read_bytes(), f"{size} ranks"
    with h5py.File(folder / "all.h5") as file:
        return file["field"][()]


WHOLE = np.random.default_rng(0).random((40, 12, 40))


def test_ranges_of_dimensions(ranks, alone, in_time, tmp_path):
    found = same_bytes(ranks, alone, tmp_path, *in_time, "--dim", "time", "--select", "time=7:33, x=5..20", "--chunk", "4x3x4")
    np.testing.assert_array_equal(found, WHOLE[7:33, :, 5:21])
    _, said = ranks(2, "merge", *in_time, "-o", "none.h5", "--dim", "time", "--select", "tim=0:1", expect=3)
    assert said.count("no dimension") == 1


def test_tiles(ranks, alone, tiles, tmp_path):
    found = same_bytes(ranks, alone, tmp_path, *tiles, "--tiles", "--chunk", "4x3x7")
    np.testing.assert_array_equal(found, WHOLE)


@pytest.mark.parametrize("memory", ["64MiB", "32MiB"])
def test_layouts_across_the_chunks_of_the_inputs(ranks, alone, in_time, tmp_path, memory):
    found = same_bytes(ranks, alone, tmp_path, *in_time, "--dim", "time", "--chunk", "40x1x1", "--memory", memory)
    np.testing.assert_array_equal(found, WHOLE)


def test_values_that_contradict_each_other_are_reported_like_by_one_process(ranks, alone, contradictory, tmp_path):
    merge = ["merge", *contradictory, "-o", "none.h5", "--tiles", "-q", "--json"]
    found = json.loads(alone(*merge, expect=3)[0])["error"]["differences"]
    assert [difference["path"] for difference in found] == ["/a", "/b", "/c", "/field"]
    for size in (2, 3):
        out, _ = ranks(size, *merge, expect=3)
        assert json.loads(out)["error"]["differences"] == found, size


ACROSS = ["--chunk", "200x4x4"]


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        (["1GiB", "12MiB", "32MiB"], ACROSS),
        (["8MiB", "64MiB", "1GiB"], ACROSS),
        (["1GiB", "12MiB", "32MiB"], ["--preview"]),
    ],
)
def test_ranks_with_different_memory_have_the_same_plan(ranks, alone, tmp_path, limits, options):
    """The memory determines the groups in which tiles are assembled across the chunks of the inputs, and the samples of
    previews."""
    cube = np.random.default_rng(2).random((200, 64, 80), np.float32)
    inputs = [tmp_path / f"in{number}.h5" for number in range(4)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            values = cube[50 * number : 50 * number + 50]
            file.create_dataset("cube", data=values, chunks=(1, 64, 80), compression="gzip", compression_opts=1)
    alone("merge", *inputs, "-o", "one.h5", "-q", *options)
    memory = f"set_memory() {{ shift $RANK; export RADDLE_MEMORY=$1; }}; set_memory {' '.join(limits)}"
    ranks(3, "merge", *inputs, "-o", "all.h5", "-q", *options, shell=memory)
    assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    with h5py.File(tmp_path / "all.h5") as file:
        np.testing.assert_array_equal(file["cube"], cube)
