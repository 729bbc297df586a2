"""OME-Zarr written by MPI ranks: the files of one process, one message, one exit code."""

import json

import numpy as np
import pytest
import zarr

SIZES = [1, 2, 3, 8]
# z first; neither powers of two nor divisible by the number of ranks.
SHAPE = (37, 20, 45)
SMALL = ["--chunk", "8x8x8", "--shard", "16x8x16"]


@pytest.fixture
def volume(tmp_path):
    random = np.random.default_rng(5)
    rho = random.random(SHAPE).astype("f4")
    rho[:16] = 0  # the fill value, which is not stored
    np.save(tmp_path / "rho.npy", rho)
    np.save(tmp_path / "velocity.npy", (random.random((*SHAPE, 3)) * 100).astype("i2"))
    return rho


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        ["--downsample", "average", "--phases", "three"],
        ["--downsample", "average", "--phases", "two", "-c", "zip"],
        ["--phases", "three", "--box", "expanded", "--aggregators", 2],
        ["--phases", "two", "-c", "none"],
    ],
)
def test_any_number_of_ranks_writes_the_files_of_one_process(ranks, alone, volume, tmp_path, size, options):
    alone("idx", "write", "rho.npy", "-o", "one.zarr", "-q", *SMALL, *options)
    ranks(size, "idx", "write", "rho.npy", "-o", "all.zarr", "-q", "--report", "all.json", *SMALL, *options)
    assert files_of(tmp_path / "all.zarr") == files_of(tmp_path / "one.zarr")
    alone("idx", "verify", "all.zarr", "--against", "rho.npy")
    assert np.array_equal(zarr.open_array(tmp_path / "all.zarr/0", mode="r")[...], volume)
    (report,) = json.loads((tmp_path / "all.json").read_text())["steps"]
    assert report["ranks"] == size and len(report["aggregate_messages"]) == size
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_time_steps_of_vectors(ranks, alone, volume, tmp_path):
    steps = ["velocity.npy", "velocity.npy", "--as", "steps", "--vector"]
    ranks(3, "idx", "write", *steps, "-o", "v.zarr", "-q", *SMALL)
    alone("idx", "write", *steps, "-o", "one.zarr", "-q", *SMALL)
    assert files_of(tmp_path / "v.zarr") == files_of(tmp_path / "one.zarr")
    velocity = np.moveaxis(np.load(tmp_path / "velocity.npy"), -1, 0)
    assert np.array_equal(zarr.open_array(tmp_path / "v.zarr/0", mode="r")[...], np.stack([velocity] * 2))


def test_one_rank_speaks_and_a_refusal_leaves_nothing(ranks, volume, tmp_path):
    out, _ = ranks(3, "idx", "write", "rho.npy", "-o", "rho.zarr")
    assert out.count("rho.zarr") == 1, out
    before = sorted(path.name for path in tmp_path.iterdir())
    _, err = ranks(3, "idx", "write", "rho.npy", "-o", "rho.zarr", expect=5)
    assert err.count("error:") == 1 and "exists" in err, err
    _, err = ranks(3, "idx", "write", "rho.npy", "-o", "one.zarr", "--phases", "one", expect=2)
    assert err.count("error:") == 1, err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
