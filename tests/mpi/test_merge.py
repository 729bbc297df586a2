"""Merging on MPI ranks: the bytes of one process, one message, one exit code."""

import json
import time

import h5py
import numpy as np
import pytest
from conftest import write_tables

SIZES = [1, 2, 3, 7]


def bytes_of(path):
    return path.read_bytes()


def digest_in(out):
    """Returns the digest in the report of a run."""
    return json.loads(out)["digest"]


@pytest.mark.parametrize("size", SIZES)
def test_any_number_of_ranks_makes_the_bytes_of_one_process(ranks, alone, inputs, tmp_path, size):
    options = ["--keys", "/spill/run,/spill/evt", "-q"]
    alone("merge", *inputs, "-o", "one.h5", "--report", "one.json", *options)
    ranks(size, "merge", *inputs, "-o", "all.h5", "--report", "all.json", "-j", 1 + size % 2, *options)
    assert bytes_of(tmp_path / "all.h5") == bytes_of(tmp_path / "one.h5")
    reports = [json.loads((tmp_path / name).read_text()) for name in ("one.json", "all.json")]
    assert reports[0]["digest"] == reports[1]["digest"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "all.json", "in", "one.h5", "one.json"]


def test_ranks_follow_what_merged_files_remember(ranks, alone, tmp_path):
    halves = []
    for half in range(2):
        inputs = []
        for number in range(2):
            inputs.append(write_tables(tmp_path / f"in{half}{number}.h5", 10 * half + number, rows=50, tables=1))
            with h5py.File(inputs[-1], "r+") as file:
                file["spill/evt"][()] = np.arange(len(file["spill/evt"]))
        halves.append(f"half{half}.h5")
        alone("merge", *inputs, "-o", halves[-1], "--rule", "/spill/evt: rows of /spill/run", "-q")
    alone("merge", *halves, "-o", "one.h5", "-q")
    for size in (2, 3):
        ranks(size, "merge", *halves, "-o", "all.h5", "-q", "-f")
        assert bytes_of(tmp_path / "all.h5") == bytes_of(tmp_path / "one.h5")
    with h5py.File(tmp_path / "all.h5") as file:
        assert np.array_equal(file["spill/evt"], np.arange(len(file["spill/run"])))


def test_ranks_share_the_join_of_long_tables(ranks, alone, tmp_path):
    inputs = [write_tables(tmp_path / f"in{seed}.h5", seed, rows=30_000, tables=3) for seed in (5, 6)]
    options = ["--keys", "/spill/run,/spill/evt", "-q", "-f"]
    alone("merge", *inputs, "-o", "one.h5", *options)
    for size in (2, 4):
        ranks(size, "merge", *inputs, "-o", "all.h5", *options)
        assert bytes_of(tmp_path / "all.h5") == bytes_of(tmp_path / "one.h5"), f"{size} ranks"
    with h5py.File(tmp_path / "all.h5") as merged:
        run, evt = merged["table2/run"][()], merged["table2/evt"][()]
        assert np.array_equal(merged["table2/evt.seq"][()], (run - 5) * 30_000 + evt)
    # Two rows, far from each other, of events that do not exist.
    with h5py.File(inputs[1], "r+") as file:
        file["table2/evt"][7] = file["table2/evt"][-1] = 99_999
    _, err = ranks(3, "merge", *inputs, "-o", "refused.h5", *options, expect=3)
    assert err.count("error:") == 1 and err.count("/table2") == 1 and "2" in err, err
    assert not (tmp_path / "refused.h5").exists()


def test_values_and_objects_without_order(ranks, alone, inputs, tmp_path):
    ranks(3, "merge", *inputs, "-o", "all.h5", "--unordered")
    alone("verify", "all.h5", "--against", *inputs)
    alone("verify", "all.h5")
    with h5py.File(tmp_path / "all.h5") as file:
        parts = [h5py.File(path) for path in inputs]
        for name in ("table2/hits", "table4/energy", "spill/evt"):
            assert np.array_equal(file[name][()], np.concatenate([part[name][()] for part in parts]))
        assert [text.decode() for text in file["names"][-2:]] == ["module 3.5", "module 3.6"]
        assert (file.attrs["experiment"], file["table1/energy"].attrs["unit"]) == ("loom", "GeV")


def test_one_rank_speaks(ranks, inputs):
    out, err = ranks(4, "merge", *inputs, "-o", "all.h5")
    assert out.count("all.h5") == 1, out
    assert err.count("scan ") <= 1, err
    planned, _ = ranks(3, "plan", *inputs)
    assert planned.count("spill") == 1, planned
    dry, _ = ranks(3, "merge", *inputs, "-o", "other.h5", "--dry-run")
    assert dry.count("spill") == 1, dry
    ranks(3, "rechunk", inputs[0], "-o", "rechunked.h5", "-q")


def test_inputs_from_a_list_and_left_out(ranks, inputs, tmp_path):
    (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in inputs))
    (tmp_path / "cut.h5").write_bytes(bytes_of(inputs[0])[:5000])
    ranks(3, "merge", "@list.txt", "-o", "all.h5", "-q", "--sort-by", "/spill/run")
    _, err = ranks(3, "merge", "@list.txt", "cut.h5", "-o", "refused.h5", expect=3)
    assert err.count("cut.h5") == 1 and err.count("error:") == 1, err
    assert not (tmp_path / "refused.h5").exists()
    ranks(4, "merge", "@list.txt", "cut.h5", "-o", "left.h5", "--skip-bad", "-q", expect=4)
    with h5py.File(tmp_path / "all.h5") as merged, h5py.File(tmp_path / "left.h5") as left:
        assert np.array_equal(merged["table1/hits"][()], left["table1/hits"][()])


def test_differences_are_reported_once(ranks, inputs, tmp_path):
    with h5py.File(inputs[1], "r+") as file:
        del file["table3/energy"]
    _, err = ranks(3, "merge", *inputs, "-o", "all.h5", expect=3)
    assert err.count("/table3/energy") == 1, err
    ranks(2, "merge", *inputs, "-o", "all.h5", "--join", "inner", "-q")
    with h5py.File(tmp_path / "all.h5") as file:
        assert "energy" not in file["table3"]


def test_usage_and_commands_of_one_process(ranks, inputs):
    _, err = ranks(3, "merge", "--no-such-option", expect=2)
    assert err.count("error: unexpected argument") == 1, err
    ranks(2, "merge", *inputs, "-o", "all.h5", "-q")
    _, err = ranks(3, "merge", *inputs, "-o", "all.h5", expect=5)
    assert err.count("exists") == 1, err
    for command in (["keys", "sort", *inputs], ["keys", "check", "all.h5"]):
        _, err = ranks(3, *command, expect=2)
        assert err.count("runs as one process") == 1, err
        assert "share their work across ranks" in err
    ranks(1, "keys", "sort", *inputs, "--by", "/spill/run,/spill/evt", "-q")


# Rank 1 has more options, as if it found another profile or rule file on its machine.
def on_rank_1(*more):
    return f'if [ "$RANK" = 1 ]; then set -- "$@" {" ".join(more)}; fi'


def test_ranks_with_other_options_are_refused(ranks, inputs, tmp_path):
    for more in (["-c", "zstd:3"], ["--exclude", "/table1"]):
        _, err = ranks(3, "merge", *inputs, "-o", "all.h5", "-q", expect=2, shell=on_rank_1(*more))
        assert err.count("error:") == 1 and "rank 1 has a different plan or different options" in err, err
        assert "--profile auto" in err, err
    ranks(3, "merge", *inputs, "-o", "all.h5", "-q", shell=on_rank_1("-j", "2"))


def test_options_that_one_rank_cannot_read_end_all_at_once(ranks, inputs, tmp_path):
    started = time.monotonic()
    shell = on_rank_1("--rules", "missing.toml")
    _, err = ranks(3, "merge", *inputs, "-o", "all.h5", "-q", expect=2, shell=shell)
    assert err.count("error:") == 1 and "missing.toml" in err, err
    # A rank that leaves the others waits for them longer.
    assert time.monotonic() - started < 9


def test_ranks_share_contiguous_datasets(ranks, alone, tmp_path):
    inputs = [write_tables(tmp_path / f"in{seed}.h5", seed, rows=200_000, tables=2) for seed in (1, 2)]
    options = ["--contiguous", "--empty", "compact", "-q", "-f"]
    alone("merge", *inputs, "-o", "one.h5", *options)
    with h5py.File(tmp_path / "one.h5") as file:
        energy = file["table1/energy"]
        assert energy.chunks is None and energy.nbytes > 1 << 20
    for size in (2, 3):
        ranks(size, "merge", *inputs, "-o", "all.h5", *options)
        assert bytes_of(tmp_path / "all.h5") == bytes_of(tmp_path / "one.h5"), f"{size} ranks"
        ranks(size, "merge", *inputs, "-o", "all.h5", *options, "--io", "mpiio")
        assert bytes_of(tmp_path / "all.h5") == bytes_of(tmp_path / "one.h5"), f"{size} ranks through MPI-IO"
    alone("verify", "all.h5", "--against", *inputs)
