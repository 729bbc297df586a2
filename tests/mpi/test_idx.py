"""IDX written by MPI ranks: the files of one process, one message, one exit code."""

import json

import h5py
import numpy as np
import pytest

SIZES = [1, 2, 3, 8]
# z first; neither powers of two nor divisible by the number of ranks.
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
    """Returns every file of a dataset, with its bytes."""
    found = {path.relative_to(folder / name): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}
    return {**found, "header": (folder / f"{name}.idx").read_bytes().replace(name.encode(), b"NAME")}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        ["--phases", "three", "--bits-per-block", 9],
        ["--phases", "three", "--box", "expanded", "--aggregators", 2, "--bits-per-block", 9, "--order", "hz"],
        ["--phases", "three", "--box", "cube", "--bits-per-block", 9, "--order", "hz"],
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


@pytest.mark.parametrize("size", SIZES)
def test_any_number_of_ranks_puts_a_box_into_a_step(ranks, alone, volume, tmp_path, size):
    rho, _ = volume
    part = -rho[7:20, :, 5:9]
    np.save(tmp_path / "part.npy", part)
    alone("idx", "write", "rho.h5:/state/rho", "-o", "all.idx", "-q", "--bits-per-block", 9, "--blocks-per-file", 16)
    ranks(size, "idx", "write", "part.npy", "-o", "all.idx", "-q", "--name", "rho", "--into", "z=7:20,x=5:9")
    rho = rho.copy()
    rho[7:20, :, 5:9] = part
    np.save(tmp_path / "rho.npy", rho)
    alone("idx", "write", "rho.npy", "-o", "one.idx", "-q", "--bits-per-block", 9, "--blocks-per-file", 16)
    assert files_of(tmp_path, "all") == files_of(tmp_path, "one")


def test_reports_of_phases_show_what_every_rank_did(ranks, alone, volume, tmp_path):
    stages = {}
    for phases in ("one", "two", "three"):
        report = f"{phases}.json"
        options = ["--phases", phases, "--bits-per-block", 9, "-c", "none", "--report", report]
        ranks(3, "idx", "write", "rho.h5", "-o", f"{phases}.idx", "-q", *options)
        (step,) = json.loads((tmp_path / report).read_text())["steps"]
        engine = step["engine"]["stages"] if step["engine"] else []
        ranks_of = {}
        for stage in [*step["stages"], *engine]:
            ranks_of.setdefault(stage["stage"], set()).add(stage["rank"])
        stages[phases] = ranks_of
        assert len(step["rank_memory"]) == 3 and all(memory["peak_rss_bytes"] > 0 for memory in step["rank_memory"])
    every = {0, 1, 2}
    assert all(printed["encode"] and printed["place"] and printed["commit"] == every for printed in stages.values())
    assert stages["one"]["encode"] == every
    assert "regroup" not in stages["one"] and "restructure" not in stages["two"]
    assert stages["two"]["regroup"] == every and stages["three"]["restructure"] == every
    alone("report", "one.json", "two.json", "three.json", "-o", "phases.html")
    page = (tmp_path / "phases.html").read_text()
    for words in ("Phases compared", "Messages between ranks", "Memory of ranks", "per rank"):
        assert words in page


def test_tuning_takes_what_is_measured_and_leaves_nothing(ranks, alone, volume, tmp_path):
    rho, _ = volume
    before = {path.name for path in tmp_path.iterdir()}
    ranks(2, "idx", "write", "rho.h5", "-o", "t.idx", "--tune=mine.toml", "--report", "t.json", "-q", "--bits-per-block", 9)
    assert {path.name for path in tmp_path.iterdir()} - before == {"t", "t.idx", "mine.toml", "t.json"}
    tried = json.loads((tmp_path / "t.json").read_text())["tuned"]
    assert {of["option"] for of in tried} == {"box", "blocks_per_file", "aggregators"}
    assert all(not of["is_taken"] or of["verdict"] == "better" for of in tried)
    alone("idx", "read", "t.idx", "-o", "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), rho)
    measured = '[idx.{}]\nvalue = {}\nratio = 0.5\ninterval = [0.4, 0.6]\nblocks = 7\nmetric = "wall_s"\ninflation = 1.0\n'
    kept = (tmp_path / "mine.toml").read_text().partition("[idx.")[0]
    (tmp_path / "mine.toml").write_text(kept + measured.format("blocks_per_file", 4) + measured.format("box", '"expanded"'))
    ranks(2, "idx", "write", "rho.h5", "-o", "p.idx", "--profile", "mine.toml", "-q", "--bits-per-block", 9)
    out, _ = alone("idx", "info", "p.idx", "--json")
    assert json.loads(out)["blocks_per_file"] == 4
    ranks(2, "idx", "write", "rho.h5", "-o", "q.idx", "--profile", "mine.toml", "-q", "--blocks-per-file", 8)
    out, _ = alone("idx", "info", "q.idx", "--json")
    assert json.loads(out)["blocks_per_file"] == 8
    (tmp_path / "mine.toml").write_text(kept + measured.format("box", '"huge"'))
    _, err = ranks(2, "idx", "write", "rho.h5", "-o", "r.idx", "--profile", "mine.toml", expect=3)
    assert err.count("error:") == 1 and "box" in err, err


@pytest.mark.parametrize("size", SIZES)
def test_any_number_of_ranks_reads_the_same(ranks, alone, volume, tmp_path, size):
    rho, _ = volume
    alone("idx", "write", "rho.h5", "-o", "rho.idx", "-q", "--bits-per-block", 9, "--blocks-per-file", 8)
    for name, options in [("whole.npy", []), ("coarse.raw", ["--resolution", 11]), ("slice.npy", ["--box", "z=7:8,x=3:44"])]:
        ranks(size, "idx", "read", "rho.idx", "-o", name, "-j", 2, *options)
        alone("idx", "read", "rho.idx", "-o", f"alone-{name}", "-j", 3, *options)
        assert (tmp_path / name).read_bytes() == (tmp_path / f"alone-{name}").read_bytes()
    assert np.array_equal(np.load(tmp_path / "whole.npy"), rho)
    _, err = ranks(size, "idx", "read", "rho.idx", "-o", "whole.npy", expect=5)
    assert err.count("error:") == 1 and "exists" in err, err


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
