"""Appending and adding keys on MPI ranks: the bytes of one process."""

import json
import shutil

import h5py
import numpy as np
import pytest
from conftest import write_tables

SIZES = [1, 2, 5]
KEYS = ["--keys", "/spill/run,/spill/evt"]


@pytest.fixture
def parts(tmp_path):
    """Files in the order in which they are merged and appended; the third has no rows in its tables."""
    paths = [write_tables(tmp_path / f"in{seed}.h5", seed, rows=4_000, tables=3) for seed in range(4)]
    with h5py.File(paths[2], "r+") as file:
        for name in file["table1"]:
            file[f"table1/{name}"].resize(0, axis=0)
    return paths


@pytest.mark.parametrize("keys", [[], KEYS], ids=["plain", "keys"])
@pytest.mark.parametrize("size", SIZES)
def test_any_number_of_ranks_leaves_the_bytes_of_one_process(ranks, alone, parts, tmp_path, size, keys):
    alone("merge", *parts[:2], "-o", "one.h5", "-q", *keys)
    shutil.copy(tmp_path / "one.h5", tmp_path / "all.h5")
    alone("append", "one.h5", *parts[2:], "-q")
    out, _ = ranks(size, "append", "all.h5", *parts[2:], "-j", 1 + size % 2, "--json", "--progress", "never")
    assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    report = json.loads(out)
    assert report["inputs"] == 2 and report["output_len_bytes"] == (tmp_path / "all.h5").stat().st_size
    alone("verify", "all.h5", "--against", *parts, "-q")
    assert not [path for path in tmp_path.iterdir() if ".raddle" in path.name]


def test_one_rank_s_failure_leaves_the_file_as_it_was(ranks, alone, parts, tmp_path):
    alone("merge", *parts[:2], "-o", "all.h5", "-q")
    before = (tmp_path / "all.h5").read_bytes()
    # Damage in values, which only the rank that reads them finds.
    with h5py.File(parts[3], "r") as file:
        chunk = file["table2/hits"].id.get_chunk_info(1)
    with open(parts[3], "r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\xff" * 64)
    _, err = ranks(3, "append", "all.h5", *parts[2:], expect=3)
    assert err.count("error: ") == 1 and "/table2/hits" in err, err
    assert (tmp_path / "all.h5").read_bytes() == before
    # An input that the file already contains, reported once.
    _, err = ranks(2, "append", "all.h5", parts[2], parts[0], expect=3)
    assert err.count("error: ") == 1 and parts[0].name in err, err
    assert (tmp_path / "all.h5").read_bytes() == before
    ranks(2, "append", "all.h5", parts[2], "-q")
    alone("verify", "all.h5", "-q")


def test_dry_runs_and_locks(ranks, alone, parts, tmp_path):
    alone("merge", *parts[:2], "-o", "all.h5", "-q")
    before = (tmp_path / "all.h5").read_bytes()
    out, _ = ranks(3, "append", "all.h5", *parts[2:], "-n")
    assert out.count("2 files to append") == 1
    with h5py.File(tmp_path / "all.h5", "r+", locking=True):
        _, err = ranks(2, "append", "all.h5", parts[2], expect=7)
        assert err.count("error: ") == 1, err
    assert (tmp_path / "all.h5").read_bytes() == before


@pytest.mark.parametrize("size", SIZES)
def test_keys_are_added_by_ranks(ranks, alone, parts, tmp_path, size):
    alone("merge", *parts, "-o", "one.h5", "-q")
    shutil.copy(tmp_path / "one.h5", tmp_path / "all.h5")
    for run, name in [(alone, "one.h5"), (lambda *line: ranks(size, *line), "all.h5")]:
        out, _ = run("keys", "add", name, "-k", "/spill/run,/spill/evt")
        assert out.count("table1") <= 1
        run("keys", "spill-index", "/spill/run", name, "--group", "/table2", "--force")
    assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    alone("verify", "all.h5", "-q")
    _, err = ranks(2, "keys", "add", "all.h5", "-k", "/spill/run,/spill/evt", expect=3)
    assert err.count("error: ") == 1 and "--force" in err
    with h5py.File(tmp_path / "all.h5") as file:
        assert np.array_equal(file["spill/evt.seq"][()], np.arange(len(file["spill/evt"])))
