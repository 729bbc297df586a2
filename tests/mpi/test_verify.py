"""Verifying on MPI ranks: the report of one process, whatever is wrong with the file."""

import json
import shutil

import h5py
import numpy as np
import pytest
from conftest import write_tables

SIZES = [2, 3, 5]


@pytest.fixture
def merged(alone, tmp_path):
    """A merged file, and its inputs."""
    inputs = [write_tables(tmp_path / f"in{seed}.h5", seed, rows=20_000, tables=3) for seed in range(3)]
    alone("merge", *inputs, "-o", "merged.h5", "--chunk", "3000rows", "-q")
    return tmp_path / "merged.h5", inputs


def reports(run, *arguments, expect):
    """Returns the report without its times."""
    out, _ = run("verify", *arguments, "--json", "-q", expect=expect)
    found = json.loads(out)
    found.pop("elapsed_s")
    return found


def same_on_ranks(ranks, alone, *arguments, expect):
    """Returns the report of one process, after all numbers of ranks have reported the same."""
    wanted = reports(alone, *arguments, expect=expect)
    for size in SIZES:
        assert reports(lambda *line, **how: ranks(size, *line, **how), *arguments, expect=expect) == wanted, size
    return wanted


def test_what_is_equal(ranks, alone, merged):
    path, inputs = merged
    for against in ([], ["--against", *inputs]):
        found = same_on_ranks(ranks, alone, path, *against, expect=0)
        assert found["mismatches"] == [] and found["datasets"] > 3 and found["compared_len_bytes"] > 1_000_000


def test_rows_that_changed(ranks, alone, merged, tmp_path):
    path, inputs = merged
    with h5py.File(path, "r+") as file:
        names = [name for name in file["table1"]]
        file[f"table1/{names[0]}"][10] += 1
        # Consecutive rows: one damage, whichever ranks check its parts.
        file[f"table1/{names[1]}"][5_000:45_000] += 1
        file[f"table2/{names[0]}"][-1] += 1
    found = same_on_ranks(ranks, alone, path, expect=8)
    damaged = [(each["path"], each["row"]) for each in found["mismatches"]]
    assert [name for name, _ in damaged] == [f"/table1/{names[0]}", f"/table1/{names[1]}", f"/table2/{names[0]}"]
    assert found["mismatches"][1]["what"].count("rows") == 1
    found = same_on_ranks(ranks, alone, path, "--against", *inputs, expect=8)
    assert {each["path"] for each in found["mismatches"]} == {name for name, _ in damaged}


# Threads of each rank: three ranks that share four cores have 2, 1 and 1.
THREADS = [[3, 1], [2, 1, 1], [3, 2, 1]]


@pytest.mark.parametrize("memory", ["80MiB", "160MiB"])
def test_ranks_with_different_numbers_of_threads_compare_all_values(ranks, alone, tmp_path, memory):
    """Tall chunks are read in boxes, whose size depends on the memory of a thread."""
    random = np.random.default_rng(1)
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for path in inputs:
        with h5py.File(path, "w") as file:
            values = random.random((2_000, 3_000), np.float32)
            file.create_dataset("d", data=values, chunks=(2_000, 50), maxshape=(None, 3_000))
    alone("merge", *inputs, "-o", "rows.h5", "--chunk", "20x3000", "-c", "none", "-q")
    alone("merge", *inputs, "-o", "tall.h5", "--chunk", "4000x1000", "-c", "none", "-q")
    for name in ("rows.h5", "tall.h5"):
        with h5py.File(tmp_path / name, "r+") as file:
            file["d"][:, ::100] = -1
    for arguments in (["rows.h5", "--against", *inputs], ["tall.h5"]):
        options = [*arguments, "--memory", memory]
        wanted = reports(alone, *options, expect=8)
        assert wanted["compared_len_bytes"] == 48_000_000
        for threads in THREADS:
            jobs = f"set_jobs() {{ shift $RANK; export RADDLE_JOBS=$1; }}; set_jobs {' '.join(map(str, threads))}"
            found = reports(lambda *line, **how: ranks(len(threads), *line, shell=jobs, **how), *options, expect=8)
            assert found["compared_len_bytes"] == wanted["compared_len_bytes"], (arguments, threads)
            assert found["mismatches"][0]["row"] == wanted["mismatches"][0]["row"], (arguments, threads)


def test_objects_that_changed(ranks, alone, merged):
    path, inputs = merged
    with h5py.File(path, "r+") as file:
        file["new"] = np.arange(3)
        file["spill"].attrs["note"] = "changed"
        del file["table0"]
    for against in ([], ["--against", *inputs]):
        found = same_on_ranks(ranks, alone, path, *against, expect=8)
        assert {"/new", "/spill"} <= {each["path"] for each in found["mismatches"]}


def test_files_that_cannot_be_verified(ranks, alone, merged, tmp_path):
    path, inputs = merged
    missing = tmp_path / "missing.h5"
    plain = shutil.copy(inputs[0], tmp_path / "plain.h5")
    (tmp_path / "broken.h5").write_bytes(path.read_bytes()[:5_000])
    for file, code in [(missing, 3), (plain, 3), (tmp_path / "broken.h5", 3)]:
        words = alone("verify", file, expect=code)[1].splitlines()[-1]
        for size in SIZES[:2]:
            _, err = ranks(size, "verify", file, expect=code)
            assert words in err and err.count("error: ") == 1, err


def test_files_are_inspected_by_ranks(ranks, alone, tmp_path):
    for seed in range(5):
        write_tables(tmp_path / f"in{seed}.h5", seed, rows=300, tables=2)
    (tmp_path / "in3.h5").write_bytes(b"no HDF5")
    names = [f"in{seed}.h5" for seed in range(5)]
    for options in (["--total"], ["--json"], ["--total", "--json"]):
        wanted = alone("inspect", *names, *options, expect=3)
        for size in SIZES[1:]:
            out, err = ranks(size, "inspect", *names, *options, expect=3)
            # Open MPI gives the first rank a terminal, where tables have different blanks.
            assert out.split() == wanted[0].split() and wanted[1] in err, (size, options)
