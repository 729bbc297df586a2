"""Events converted by MPI ranks: the file of one process, one message, one exit code."""

import json
from pathlib import Path

import numpy as np
import pytest
import uproot

SIZES = [1, 3, 4]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree of 24 MiB in 12 baskets for each branch."""
    random = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("tree") / "run.root"
    with uproot.recreate(path, compression=None) as file:
        kinds = {"event": "u8", "run": "u4", "luminosityBlock": "u4", "px": "f8", "hits": np.dtype(("i2", 50))}
        file.mktree("Events", {name: np.dtype(kind) for name, kind in kinds.items()})
        for number in range(12):
            entries = 17_000 + number
            file["Events"].extend(
                {
                    "event": np.arange(entries, dtype="u8") + number * 100_000,
                    "run": np.full(entries, 7, "u4"),
                    "luminosityBlock": np.full(entries, number, "u4"),
                    "px": random.normal(size=entries),
                    "hits": random.integers(0, 50, (entries, 50), "i2"),
                }
            )
    return path


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "options",
    [
        ["--layout", "columns", "-c", "fast"],
        ["--layout", "columns", "-c", "none", "--chunk", "100kB"],
        ["--layout", "product", "-c", "fast"],
        ["--layout", "event", "-c", "none"],
        ["--layout", "batch", "--batch", 999, "-c", "fast"],
        ["--layout", "rntuple", "--codec", "zstd:3"],
    ],
    ids=lambda options: "-".join(str(option).strip("-") for option in options),
)
def test_any_number_of_ranks_writes_the_file_of_one_process(ranks, alone, tree, tmp_path, size, options):
    # Less memory means more rounds.
    alone("events", "convert", tree, "-o", "one", "-q", *options)
    # A rank holds a cluster of an RNTuple, and its encoded form, twice.
    memory = "128MiB" if "rntuple" in options else "64MiB"
    ranks(size, "events", "convert", tree, "-o", "all", "-q", "--memory", memory, "--report", "all.json", *options)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()
    report = json.loads((tmp_path / "all.json").read_text())
    assert report["events"] == report["entries"] == sum(17_000 + number for number in range(12))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "all.json", "one"]


def test_ranks_with_other_options_are_refused(ranks, tree, tmp_path):
    other = 'if [ "$RANK" = 1 ]; then set -- "$@" -c none; fi'
    _, err = ranks(3, "events", "convert", tree, "-o", "all.h5", "-q", expect=2, shell=other)
    assert err.count("error:") == 1 and "rank 1 has a different plan or different options" in err, err
    assert not list(tmp_path.iterdir())


def test_memory_that_is_too_little_for_a_range_is_an_error(ranks, tree, tmp_path):
    """Previously ranks waited forever in this case."""
    options = ["--layout", "rntuple", "--memory", "64MiB", "-q"]
    _, err = ranks(2, "events", "convert", tree, "-o", "all", *options, expect=6)
    assert "a range of entries" in err and "--memory" in err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def objects():
    """A tree of 12 events with objects, which the framework's layouts support."""
    return Path(__file__).parents[2] / "crates/root/tests/samples/unsplit.root"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", [["pds"], ["event", "--compat", "cce"], ["batch", "--compat", "cce", "--batch", 7]])
def test_ranks_write_what_the_framework_reads(ranks, alone, objects, tmp_path, size, form):
    products = [f"--products={name}" for name in ["pts", "hits", "tracks", "weights"]]
    often = ["--duplicates", "keep", "-q", *[objects] * 100, "--layout", *form, "--codec", "lz4", *products]
    alone("events", "convert", "-o", "one", *often)
    ranks(size, "events", "convert", "-o", "all", *often)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()
    assert "1,200 events" in alone("events", "inspect", "all")[0]


def test_files_are_merged_by_ranks(ranks, alone, tree, objects, tmp_path):
    for part, entries in [("a", "0..50000"), ("b", "50000..51000"), ("c", "51000..204066")]:
        alone("events", "convert", tree, "-o", part, "-q", "-c", "fast", "--entries", entries)
    alone("events", "convert", objects, "-o", "stream", "-q", "--layout", "pds", "--products", "hits")
    for inputs in ["abc", ["stream", "stream", "--duplicates", "keep"]]:
        alone("events", "merge", *inputs, "-o", "one", "-f", "-q", "-c", "fast")
        ranks(3, "events", "merge", *inputs, "-o", "all", "-f", "-q", "-c", "fast")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()


def test_one_rank_speaks_and_a_refusal_leaves_nothing(ranks, tree, tmp_path):
    out, _ = ranks(3, "events", "convert", tree, "-o", "all.h5")
    assert out.count("204,066 events") == 1
    _, err = ranks(3, "events", "convert", tree, "-o", "all.h5", expect=5)
    assert err.count("error:") == 1 and "--force" in err
    _, err = ranks(3, "events", "convert", tree, "-o", "none.h5", "--products", "x*", expect=3)
    assert err.count("error:") == 1 and "no such product" in err
    _, err = ranks(2, "events", "inspect", tree, expect=2)
    assert "one process" in err
    assert [path.name for path in tmp_path.iterdir()] == ["all.h5"]


def test_a_damaged_branch_ends_all_ranks_or_is_left_out(ranks, alone, tree, tmp_path):
    data = bytearray(tree.read_bytes())
    with uproot.open(tree) as file:
        # The length of the last basket's key.
        start = file["Events/px"].member("fBasketSeek")[11]
    data[start : start + 4] = b"\x7f\xff\xff\xff"
    (tmp_path / "bad.root").write_bytes(data)
    _, err = ranks(3, "events", "convert", "bad.root", "-o", "out.h5", "--memory", "64MiB", expect=3)
    assert err.count("error:") == 1 and "branch px, entries" in err
    alone("events", "convert", "bad.root", "-o", "one.h5", "--skip-bad", "-q", expect=4)
    ranks(3, "events", "convert", "bad.root", "-o", "all.h5", "--skip-bad", "-q", expect=4)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "all.h5").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "bad.root", "one.h5"]


def test_bench_on_ranks_says_what_each_did(ranks, tmp_path):
    (tmp_path / "files").mkdir()
    layouts = ["null", "columns", "batch", "pds", "rntuple"]
    options = ["--events", 600, "--products", 5, "--sinks", ",".join(layouts), "--threads", 1, "--rounds", 2]
    out, _ = ranks(3, "events", "bench", *options, "--folder", "files", "--json")
    measured = json.loads(out)
    assert [case["sink"] for case in measured] == layouts
    for case in measured:
        assert (case["number_of_ranks"], case["entries"], len(case["ranks"])) == (3, 600, 3)
        assert sum(rank["entries"] for rank in case["ranks"]) == 600
        assert all(0 < rank["message_s"] <= rank["elapsed_s"] <= case["elapsed_s"] for rank in case["ranks"])
        assert (case["len_bytes"] > 0) == (case["sink"] != "null")
    assert list((tmp_path / "files").iterdir()) == []
    text, _ = ranks(2, "events", "bench", *options[:-1], 1, "--folder", "files")
    assert text.count("messages") == 1 and text.count("rntuple") == 3
