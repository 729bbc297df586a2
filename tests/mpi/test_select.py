"""Selections of events on MPI ranks have the bytes of one process."""

import h5py
import numpy as np
import pytest


@pytest.fixture
def keyed(alone, tmp_path):
    """Returns a file of 2,000 events with keys."""
    random, path = np.random.default_rng(5), tmp_path / "keyed.h5"
    with h5py.File(path, "w") as file:
        file["spill/evt"] = np.arange(2000)
        for name in ("slc", "trk"):
            events = np.repeat(np.arange(2000), random.integers(0, 6, 2000))
            for column, values in {"evt": events, "e": random.exponential(1, len(events))}.items():
                file.create_dataset(f"{name}/{column}", data=values, chunks=(512,), compression="gzip")
            file[f"{name}/text"] = [f"{name} {row}" for row in range(len(events))]
    alone("keys", "add", path, "--keys", "/spill/evt", "-q")
    return path


def test_an_index(ranks, alone, keyed, tmp_path):
    for size in (2, 5):
        ranks(size, "rechunk", keyed, "-o", "all.h5", "--chunk", "100rows", "--index", "-q", "-f")
        assert (tmp_path / "all.h5.stats").exists()
        # Compares the limits with the values.
        alone("verify", "all.h5")
        with h5py.File(tmp_path / "all.h5", "a") as file:
            assert file["slc/e"].chunks == (100,)


def test_events(ranks, alone, keyed, tmp_path):
    arguments = ("select", keyed, "--where", "slc: e > 2", "--chunk", "100rows", "-q", "-f")
    alone(*arguments, "-o", "one.h5")
    for size in (2, 3, 5):
        ranks(size, *arguments, "-o", "all.h5")
        assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes(), f"{size} ranks"
        ranks(size, "verify", "all.h5", "--against", keyed)
    with h5py.File(tmp_path / "all.h5") as file, h5py.File(keyed) as before:
        chosen = np.unique(before["slc/evt"][()][before["slc/e"][()] > 2])
        wanted = np.isin(before["trk/evt"], chosen)
        assert np.array_equal(file["trk/e"], before["trk/e"][()][wanted])
        assert np.array_equal(file["trk/text"], before["trk/text"][()][wanted])
    _, said = ranks(2, "select", keyed, "--where", "slc: energy > 2", "-o", "none.h5", expect=2)
    assert said.count("no column") == 1
