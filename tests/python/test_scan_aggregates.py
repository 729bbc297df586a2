"""Sums, means and limits of the rows that match, and distinct values of blocks: compared with exact arithmetic on numpy arrays."""

import math
import os
import tempfile
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from drawn_columns import KINDS, drawn_column, drawn_condition, write
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import col, errors


def exact(values):
    """Returns sum, mean, smallest and largest value, each rounded once."""
    if values.dtype.kind != "f":
        numbers = [int(one) for one in values]
        return (sum(numbers), *((sum(numbers) / len(numbers), min(numbers), max(numbers)) if numbers else (None,) * 3))
    if np.isnan(values).any():
        return (math.nan,) * 4
    numbers = [float(one) for one in values]
    if not numbers:
        return 0.0, None, None, None
    infinities = [one for one in numbers if math.isinf(one)]
    if infinities:
        return sum(infinities), sum(infinities), min(numbers), max(numbers)
    total = sum(map(Fraction, numbers), Fraction(0))
    try:
        rounded = total.numerator / total.denominator
    except OverflowError:
        rounded = math.inf if total > 0 else -math.inf
    mean = total / len(numbers)
    return rounded, mean.numerator / mean.denominator, min(numbers), max(numbers)


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other), (found, expected)
        # -0 equals 0, but the result is always 0.
        assert one is None or (math.isnan(one) and math.isnan(other)) or one == other, (found, expected)
        assert not (isinstance(one, float) and one == 0 and math.copysign(1, one) < 0)


def aggregates(scan, name):
    return scan.sum(name), scan.mean(name), scan.min(name), scan.max(name)


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.filterwarnings("ignore:overflow")
def test_aggregates_are_exact_with_and_without_an_index(data):
    rows = data.draw(st.sampled_from([0, 1, 7, 200]))
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    columns = {f"c{number}": drawn_column(data, kind, rows) for number, kind in enumerate(kinds)}
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path = Path(folder) / "all.h5"
        write(path, columns, data)
        condition, holds = drawn_condition(data, columns)
        for indexed in (False, True):
            if indexed:
                raddle.index(path, progress=False)
            with raddle.scan(path, threads=data.draw(st.sampled_from([1, 3]))) as tables:
                for name, values in columns.items():
                    same(aggregates(tables["rec"], name), exact(values))
                    wanted = values[holds()] if rows else values
                    same(aggregates(tables["rec"].filter(condition), name), exact(wanted))


@pytest.fixture
def table(tmp_path):
    """Columns in blocks of several lengths, of which few hold few values."""
    path, rows = tmp_path / "all.h5", 150_000
    random = np.random.default_rng(1)
    columns = {
        "run": np.sort(random.choice([1000, 1005, 2000, 3000], rows)).astype("i4"),
        "flag": random.random(rows) > 0.5,
        "kind": random.choice([-13, 11, 13, 211], rows).astype("i2"),
        "energy": random.normal(2, 1, rows).astype("f4"),
        "weight": random.choice([0.0, -0.0, 0.5, 1.5, np.nan], rows),
        "large": random.integers(-(2**63), 2**63 - 1, rows),
        "text": random.choice(np.array([b"far", b"near", b"ninth"]), rows),
    }
    columns["weight"][:40_000] = 0.5
    with h5py.File(path, "w") as file:
        for number, (name, values) in enumerate(columns.items()):
            file.create_dataset(f"rec/{name}", data=values, chunks=(1000 + 300 * number,), compression="gzip")
        texts = [text.decode() for text in columns["text"]]
        file.create_dataset("rec/long", data=texts, dtype=h5py.string_dtype(), chunks=(1000,))
    return path, columns


NUMBERS = ("run", "flag", "kind", "energy", "weight", "large")
CONDITIONS = {
    "run > 1005": lambda c: c["run"] > 1005,
    "run == 1002 | run == 2000": lambda c: c["run"] == 2000,
    "kind == 12 | kind == 12.5": lambda c: c["kind"] == 12,
    "11 < kind & kind < 100": lambda c: c["kind"] == 13,
    "energy > 2 & weight != 0.25": lambda c: c["energy"] > 2,
    "weight == 0": lambda c: c["weight"] == 0,
    "~(weight <= 5)": lambda c: np.isnan(c["weight"]),
    "text == 'middle'": lambda c: c["text"] == b"middle",
    "long == 'near' & flag == true": lambda c: (c["text"] == b"near") & c["flag"],
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_aggregates_of_many_blocks(table, text):
    path, columns = table
    wanted = CONDITIONS[text](columns)
    raddle.index(path, progress=False)
    for index in (True, False):
        for threads in (1, 2):
            scan = raddle.scan(path, index=index, threads=threads)["rec"].filter(text)
            assert scan.count() == wanted.sum()
            for name in NUMBERS:
                same(aggregates(scan, name), exact(columns[name][wanted]))


def pruned(path, text, index=True):
    explained = raddle.scan(path, index=index)["rec"].filter(text).explain()
    return explained["pruned_blocks"], explained["whole_blocks"], explained["blocks"]


def test_distinct_values_exclude_what_lies_between_the_limits(table):
    path, _ = table
    raddle.index(path, progress=False)
    for text in ("kind == 12", "kind == 12 | kind == 100", "11 < kind & kind < 13", "weight == 1", "text == 'middle'", "long == 'middle'"):
        none, every, blocks = pruned(path, text)
        assert none == blocks > 1, text
        none, every, blocks = pruned(path, f"~({text})")
        assert every == blocks, text
        assert pruned(path, text, index=False)[0] == 0
    # 17 values are too many.
    none, _, blocks = pruned(path, "energy == 2.25")
    assert none == 0 < blocks


def test_rows_that_all_match_are_not_read(table):
    """The index answers for them, unless a sum of floats is requested."""
    path, columns = table
    raddle.index(path, progress=False)
    stored, time = path.read_bytes(), path.stat().st_mtime_ns
    with h5py.File(path) as file:
        places = {name: file[f"rec/{name}"].id.get_chunk_info(3).byte_offset for name in NUMBERS}
    damaged = bytearray(stored)
    for place in places.values():
        damaged[place : place + 40] = bytes(40)
    path.write_bytes(damaged)
    # As if the file had not been changed since it was indexed.
    os.utime(path, ns=(time, time))
    scan = raddle.scan(path)["rec"]
    for name in NUMBERS:
        expected = exact(columns[name])
        same((scan.min(name), scan.max(name)), expected[2:])
        if columns[name].dtype.kind == "f":
            with pytest.raises(errors.InputError):
                scan.sum(name)
        else:
            same((scan.sum(name), scan.mean(name)), expected[:2])


def test_several_files_are_one_column(tmp_path):
    random = np.random.default_rng(2)
    parts = [random.normal(0, 10.0**power, 1000) for power in (-200, 0, 200, 5)]
    for number, part in enumerate(parts):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["rec/x"], file["rec/n"] = part, np.full(1000, 2**62)
    values = np.concatenate(parts)
    scan = raddle.scan(str(tmp_path / "*.h5"))["rec"]
    same(aggregates(scan, "x"), exact(values))
    assert scan.sum("x") == math.fsum(values)
    assert (scan.sum("n"), scan.mean("n")) == (4000 * 2**62, 2.0**62)
    assert scan.partition(1, 4).sum("n") == 1000 * 2**62
    nothing = scan.filter("n == 0")
    assert aggregates(nothing, "n") == (0, None, None, None) and aggregates(nothing, "x") == (0.0, None, None, None)


def test_sums_beyond_the_largest_float_are_infinite(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["rec/x"] = np.array([1.5e308, 1.5e308, 1.0])
        file["rec/y"] = np.array([1.5e308, 1.5e308, -1.5e308])
        file["rec/z"] = np.array([-1.5e308, -1.5e308, 1.0])
    scan = raddle.scan(tmp_path / "all.h5")["rec"]
    # The mean is a float although the sum is none.
    assert (scan.sum("x"), scan.mean("x"), scan.sum("y"), scan.sum("z")) == (math.inf, 1e308, 1.5e308, -math.inf)


def test_aggregates_are_of_numbers(table):
    path, _ = table
    scan = raddle.scan(path)["rec"]
    with pytest.raises(errors.UsageError, match="holds strings, and only numbers have a sum"):
        scan.sum("text")
    with pytest.raises(errors.UsageError, match="variable length"):
        scan.max("long")
    with pytest.raises(errors.UsageError, match="did you mean energy"):
        scan.mean("enrgy")
    with pytest.raises(errors.UsageError, match="variable length"):
        scan.filter(col("long") == "near").min("long")


