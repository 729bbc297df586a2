"""IDX written by ranks of MPI: the files of one process, one voice, one exit code."""

import json

import h5py
import numpy as np
import pytest

SIZES = [1, 2, 3, 4, 8]
# z first: neither a power of two nor divisible among ranks.
SHAPE = (37, 20, 45)


@pytest.fixture
def volume(tmp_path):
    """A scalar and a vector field in HDF5 and .npy."""
    random = np.random.default_rng(5)
    rho = random.random(SHAPE).astype("f4")
    velocity = (random.random((*SHAPE, 3)) * 100).astype("i2")
    with h5py.File(tmp_path / "rho.h5", "w") as file:
        file.create_dataset("state/rho", data=rho, chunks=(5, 7, 9), compression="gzip")
        file["note"] = "no array of numbers"
    np.save(tmp_path / "velocity.npy", velocity)
    return rho, velocity


def files_of(folder, name):
    """Every file of a dataset, with its bytes."""
    found = {path.relative_to(folder / name): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}
    return {**found, "header": (folder / f"{name}.idx").read_bytes().replace(name.encode(), b"NAME")}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        ["--phases", "three", "--bits-per-block", 9],
        ["--phases", "three", "--box", "expanded", "--aggregators", 2, "--bits-per-block", 9, "--order", "hz"],
        ["--phases", "two", "--bits-per-block", 9, "-c", "lz4"],
        ["--phases", "one", "--bits-per-block", 9, "-c", "none"],
    ],
)
def test_any_number_of_ranks_writes_the_files_of_one_process(ranks, alone, volume, tmp_path, size, options):
    rho, _ = volume
    alone("idx", "write", "rho.h5", "-o", "one.idx", "-q", *options)
    ranks(size, "idx", "write", "rho.h5:/state/rho", "-o", "all.idx", "-q", "--report", "all.json", *options)
    assert files_of(tmp_path, "all") == files_of(tmp_path, "one")
    alone("idx", "verify", "all.idx", "--against", "rho.h5")
    alone("idx", "read", "all.idx", "-o", "back.npy", "--box", "z=3:30,x=1:45")
    assert np.array_equal(np.load(tmp_path / "back.npy"), rho[3:30, :, 1:45])
    (report,) = json.loads((tmp_path / "all.json").read_text())["steps"]
    assert report["ranks"] == size and len(report["aggregate_messages"]) == size
    if "--aggregators" in options and size > 2:
        writers = {stage["rank"] for stage in report["engine"]["stages"] if stage["stage"] == "place"}
        assert len(writers) <= 2


def test_time_steps_of_vectors(ranks, alone, volume, tmp_path):
    _, velocity = volume
    ranks(3, "idx", "write", "velocity.npy", "velocity.npy", "-o", "v.idx", "--as", "steps", "--vector", "-q")
    ranks(2, "idx", "write", "velocity.npy", "-o", "v.idx", "--append", "--step", 5, "--vector", "-q")
    alone("idx", "read", "v.idx", "-o", "five.npy", "--step", 5)
    assert np.array_equal(np.load(tmp_path / "five.npy"), velocity)
    out, _ = alone("idx", "info", "v.idx", "--json")
    assert json.loads(out)["steps"] == [0, 1, 5]


def test_one_rank_speaks_and_a_refusal_leaves_nothing(ranks, volume, tmp_path):
    out, _ = ranks(3, "idx", "write", "rho.h5", "-o", "rho.idx")
    assert out.count("rho.idx") == 1, out
    before = sorted(path.name for path in tmp_path.iterdir())
    _, err = ranks(3, "idx", "write", "rho.h5", "-o", "rho.idx", expect=5)
    assert err.count("error:") == 1 and "exists" in err, err
    _, err = ranks(3, "idx", "write", "rho.h5:/state/none", "-o", "none.idx", expect=3)
    assert err.count("error:") == 1 and "/state/rho" in err, err
    _, err = ranks(2, "idx", "verify", "rho.idx", expect=2)
    assert "one process" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
