"""Chunks aligned to stripes of the file system: different bytes than without, the same for any number of ranks."""

import json
import os

import pytest
from conftest import write_tables

STRIPE = 4096


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Inputs with enough small chunks for a dozen lanes."""
    folder = tmp_path_factory.mktemp("many")
    return [write_tables(folder / f"run{seed}.h5", seed, rows=40_000, tables=3) for seed in range(1, 4)]


@pytest.fixture(scope="module")
def options():
    return ["--chunk", "64rows", "--align", str(STRIPE), "-q"]


def report_in(folder, name):
    return json.loads((folder / name).read_text())


def test_places_are_those_of_one_process(ranks, alone, many, options, tmp_path):
    alone("merge", *many, "-o", "one.h5", "--report", "one.json", *options)
    right = (tmp_path / "one.h5").read_bytes()
    one = report_in(tmp_path, "one.json")
    arenas = one["alignment"]["arenas"]
    assert one["alignment"]["stripes"] == {"len_bytes": STRIPE, "count": None, "source": "asked"}
    assert arenas["stripe_len_bytes"] == STRIPE and arenas["arena_len_bytes"] % STRIPE == 0
    assert arenas["lanes"] >= 8
    for size in (2, 3, 7):
        ranks(size, "merge", *many, "-o", "all.h5", "-f", "--report", "all.json", "-j", 1 + size % 2, *options)
        assert (tmp_path / "all.h5").read_bytes() == right, f"{size} ranks"
        report = report_in(tmp_path, "all.json")
        assert report["digest"] == one["digest"] and report["alignment"] == one["alignment"]
        assert report["engine"]["unused_len_bytes"] == one["engine"]["unused_len_bytes"]
    alone("verify", "one.h5", "-q")
    alone("verify", "one.h5", "-q", "--against", *many)
    dense = [option for option in options if option not in ("--align", str(STRIPE))]
    alone("merge", *many, "-o", "dense.h5", "--report", "dense.json", *dense)
    assert report_in(tmp_path, "dense.json")["digest"] == one["digest"]
    unused = one["engine"]["unused_len_bytes"]
    length = len(right) - (tmp_path / "dense.h5").stat().st_size
    assert 0 < unused < len(right) / 10 and abs(length - unused) < STRIPE, (unused, length)


def test_values_without_order(ranks, alone, many, options):
    ranks(3, "merge", *many, "-o", "all.h5", "--unordered", *options)
    alone("verify", "all.h5", "-q", "--against", *many)


def test_the_file_system_is_asked(ranks, alone, inputs, tmp_path):
    blocks = os.statvfs(tmp_path).f_bsize
    out, _ = ranks(2, "merge", *inputs, "-o", "all.h5", "--align", "auto", "--report", "all.json")
    stripes = report_in(tmp_path, "all.json")["alignment"]["stripes"]
    assert stripes == {"len_bytes": blocks, "count": None, "source": "block"}
    assert "block length of the file system" in out
    alone("verify", "all.h5", "-q")
    planned, _ = ranks(2, "plan", *inputs, "--align", "1MiB")
    assert "aligned: stripes of 1.00 MiB (as requested)" in planned
    dry, _ = alone("merge", *inputs, "-o", "no.h5", "--align", "1MiB", "--dry-run")
    assert "aligned: stripes of 1.00 MiB (as requested)" in dry
    simulated, _ = alone("plan", *inputs, "--align", "64KiB", "--simulate", "ranks=4", "files=12")
    assert "stripes of 64.0 KiB (as requested)" in simulated


def test_what_cannot_be_aligned_to(alone, inputs):
    _, err = alone("merge", *inputs, "-o", "all.h5", "--align", "much", expect=2)
    assert "auto" in err
    _, err = alone("merge", *inputs, "-o", "all.h5", "--align", "1MiB", "--part", "1/2", expect=2)
    assert "--align" in err
