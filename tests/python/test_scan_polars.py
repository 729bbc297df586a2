"""Tables as lazy frames: what Polars finds in the same values."""

import operator
from functools import reduce

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import _scan_batches

pl = pytest.importorskip("polars")

ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("polars") / "all.h5"
    random = np.random.default_rng(0)
    columns = {
        "evt": np.arange(ROWS),
        "energy": np.where(random.random(ROWS) < 0.1, np.nan, np.round(random.normal(0, 2, ROWS), 1)).astype("f4"),
        "big": random.integers(0, 9, ROWS).astype(">i8"),
        "flag": random.random(ROWS) > 0.5,
        "name": random.choice(np.array([b"near", b"far"]), ROWS),
        "wide": random.random((ROWS, 2)),
    }
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file.create_dataset(f"rec/{name}", data=values, chunks=(500, *values.shape[1:]), compression="gzip")
    raddle.index(path, progress=False)
    frame = pl.DataFrame(
        {
            **{name: pl.Series(columns[name].astype(columns[name].dtype.newbyteorder("="))) for name in ("evt", "energy", "big", "flag")},
            "name": pl.Series([text.decode() for text in columns["name"]]),
            "wide": pl.Series(columns["wide"], dtype=pl.Array(pl.Float64, 2)),
        }
    )
    # Links are in the order of their names.
    return path, frame.select(sorted(frame.columns))


def comparisons():
    column = st.sampled_from(["evt", "energy", "big"])
    value = st.one_of(st.integers(-3, 12), st.sampled_from([0.1, -0.3, 2.5, 0.0, 1e9, ROWS // 2]))
    word = st.sampled_from(["__gt__", "__ge__", "__lt__", "__le__", "__eq__", "__ne__"])
    either = st.tuples(column, word, value).map(lambda drawn: getattr(pl.col(drawn[0]), drawn[1])(drawn[2]))
    others = st.sampled_from([pl.col("flag"), pl.col("name") == "near", pl.col("energy").is_nan(), pl.col("big").is_in([1, 2]), pl.lit(2) < pl.col("big")])
    return st.one_of(either, either, others)


@settings(max_examples=80, deadline=None)
@given(st.recursive(comparisons(), lambda inner: st.one_of(
    st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
    st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    inner.map(lambda one: ~one),
), max_leaves=4))
def test_rows_are_those_of_polars(table, condition):
    path, frame = table
    found = raddle.scan_polars(path, "rec").filter(condition).collect()
    assert found.equals(frame.filter(condition)), condition


@settings(max_examples=40, deadline=None)
@given(comparisons(), comparisons(), st.sampled_from([0, 1, 700, ROWS, ROWS + 5]), st.booleans(), st.booleans())
def test_first_rows_are_those_of_polars(table, before, after, count, is_filtered, has_small_batches):
    path, frame = table
    with pytest.MonkeyPatch.context() as patch:
        if has_small_batches:
            patch.setattr(_scan_batches, "BATCH_LEN_BYTES", 100_000)
            patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 1)
        scanned, expected = raddle.scan_polars(path, "rec"), frame
        if is_filtered:
            scanned, expected = scanned.filter(before), expected.filter(before)
        scanned, expected = scanned.head(count).filter(after), expected.head(count).filter(after)
        for engine in ("in-memory", "streaming"):
            assert scanned.collect(engine=engine).equals(expected), (before, after)


def test_columns_and_conditions_are_passed_on(table, monkeypatch):
    path, frame = table
    asked = []
    run = raddle.Scan._run
    monkeypatch.setattr(raddle.Scan, "_run", lambda scan, what, columns, **more: asked.append((scan, columns)) or run(scan, what, columns, **more))
    condition = (pl.col("evt") >= 19_700) & (pl.col("evt") < 19_800) & (pl.col("name") == "far")
    found = raddle.scan_polars(path, "rec").filter(condition).select("evt", "wide").collect()
    assert found.equals(frame.filter(condition).select("evt", "wide"))
    [(scan, columns)] = asked
    assert set(columns) == {"evt", "wide", "name"}
    assert scan.explain()["pruned_blocks"] > 0
    assert raddle.scan_polars(path, "rec").head(5).collect().equals(frame.head(5))
    assert raddle.scan_polars(path, "rec").select(pl.len()).collect().item() == ROWS


def test_tables_that_polars_cannot_hold_are_refused(tmp_path):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["rec/pair"] = np.zeros(3, [("a", "i4"), ("b", "f4")])
    with pytest.raises(raddle.errors.UsageError, match="pair: Polars has no type"):
        raddle.scan_polars(tmp_path / "odd.h5", "rec")
    with pytest.raises(raddle.errors.ObjectNotFoundError):
        raddle.scan_polars(tmp_path / "odd.h5", "none")
    with h5py.File(tmp_path / "latin.h5", "w") as file:
        file["rec/text"], file["rec/x"] = np.array([b"caf\xe9", b"ok"]), np.arange(2)
    frame = raddle.scan_polars(tmp_path / "latin.h5", "rec")
    assert frame.select("x").collect()["x"].to_list() == [0, 1]
    with pytest.raises(raddle.errors.UsageError, match="text: some strings are not UTF-8"):
        frame.collect()


def test_any_number_of_comparisons_are_joined(table):
    path, frame = table
    # Python's own limit is 1000 levels.
    condition = reduce(operator.or_, (pl.col("evt") == number for number in range(500)))
    assert raddle.scan_polars(path, "rec").filter(condition).select("evt").collect().equals(frame.select("evt").head(500))


def test_large_integers_are_compared_as_polars_does(tmp_path):
    values = np.array([2**53, 2**53 + 1, 2**24 + 1, -(2**53) - 1])
    with h5py.File(tmp_path / "big.h5", "w") as file:
        file["rec/x"] = values
    for condition in (pl.col("x") <= 2.0**53, pl.col("x") == 2.0**24, pl.col("x") >= -(2.0**53)):
        expected = pl.DataFrame({"x": values}).filter(condition)
        assert raddle.scan_polars(tmp_path / "big.h5", "rec").filter(condition).collect().equals(expected)


def test_polars_and_duckdb_take_a_scan(table):
    path, frame = table
    pytest.importorskip("pyarrow")
    found = raddle.scan(path)["rec"].filter(raddle.col("evt") < 5).select("evt", "energy")
    assert pl.DataFrame(found).equals(frame.head(5).select("evt", "energy"))
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("SELECT sum(evt) FROM found").fetchall() == [(10,)]
