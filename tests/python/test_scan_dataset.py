"""Scans as pyarrow datasets: what DuckDB and pyarrow find in the same values."""

import math

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given, settings
from hypothesis import strategies as st
from predicates import combined
from raddle import Scan, _arrow_dataset, _scan_batches, _supersets, errors

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pc = pytest.importorskip("pyarrow.compute")
duckdb = pytest.importorskip("duckdb")

ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Returns a scan of a table with an index, and the same Arrow table."""
    path = tmp_path_factory.mktemp("dataset") / "all.h5"
    random = np.random.default_rng(0)
    columns = {
        "evt": np.arange(ROWS),
        "energy": np.where(random.random(ROWS) < 0.1, np.nan, np.round(random.normal(0, 2, ROWS), 1)).astype("f4"),
        "y": np.where(random.random(ROWS) < 0.1, -0.0, np.round(random.normal(0, 2, ROWS), 1)),
        "big": random.integers(0, 9, ROWS).astype(">i2"),
        "far": random.choice(np.array([0, 1, 2**24 + 1, 2**53 + 1, 2**64 - 1], "u8"), ROWS),
        "flag": random.random(ROWS) > 0.5,
        "name": random.choice(np.array([b"near", b"far", b""]), ROWS),
        "wide": random.random((ROWS, 2)),
        'a "quoted" == (name)': random.integers(-5, 5, ROWS).astype("i1"),
    }
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file.create_dataset(f"rec/{name}", data=values, chunks=(500, *values.shape[1:]), compression="gzip")
        padded = h5py.h5t.C_S1.copy()
        padded.set_size(6)
        padded.set_strpad(h5py.h5t.STR_SPACEPAD)
        columns["padded"] = np.where(columns["flag"], b"ab    ", b"c     ")
        space = h5py.h5s.create_simple((ROWS,))
        h5py.h5d.create(file["rec"].id, b"padded", padded, space).write(space, space, columns["padded"].astype("S6"), padded)
        columns["colour"] = random.choice(np.array([3, -1], "i1"), ROWS)
        file["rec"].create_dataset("colour", data=columns["colour"], dtype=h5py.enum_dtype({"red": 3, "blue": -1}, "i1"))
    raddle.index(path, progress=False)
    scan = raddle.scan(path)["rec"]
    return scan, scan.to_arrow()


QUOTED = '"a ""quoted"" == (name)"'


def predicates():
    column = st.sampled_from(["evt", "energy", "y", "big", QUOTED, "far", "colour"])
    value = st.one_of(
        st.integers(-3, 12),
        st.sampled_from([0.1, -0.3, 2.5, 0.0, -0.0, 1e9, ROWS // 2, 2**24, 2.0**53, "'nan'::FLOAT", "'inf'::DOUBLE"]),
    )
    word = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    either = st.tuples(column, word, value).map(lambda drawn: f"{drawn[0]} {drawn[1]} {drawn[2]}")
    others = st.sampled_from([
        "flag", "flag = true", "name = 'near'", "name > 'g'", "name in ('far', '')", "name != 'far'", "padded = 'ab'", "padded = 'ab    '",
        "padded in ('c', 'ab')", "big in (1, 2, 700)", "energy in (0.1, 0)", "y in (0, 2.5)", "isnan(energy)", "evt between 100 and 9000",
        "energy between -1 and 0.5", "wide[1] < 0.5", "evt < big * 1000", "energy is null", "name like 'n%'", "2 < big",
    ])  # fmt: skip
    return combined(st.one_of(either, either, others))


@settings(max_examples=150)
@given(predicates(), st.booleans())
def test_rows_are_those_of_duckdb(table, predicate, has_small_batches):
    scan, arrow = table
    with pytest.MonkeyPatch.context() as patch:
        if has_small_batches:
            patch.setattr(_scan_batches, "BATCH_LEN_BYTES", 100_000)
            patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 1)
        dataset = scan.to_dataset()
        query = f"SELECT evt, name, wide FROM {{}} WHERE {predicate} ORDER BY evt"
        assert duckdb.sql(query.format("dataset")).fetchall() == duckdb.sql(query.format("arrow")).fetchall()


def literals():
    floats = st.sampled_from([0.1, -0.3, 2.5, 0.0, -0.0, 1e9, math.nan, math.inf, 2.0**24, 2.0**53])
    return st.one_of(st.integers(-3, 12), floats, st.sampled_from([pa.scalar(0.1, pa.float32()), pa.scalar(3, pa.int16())]))


def expressions():
    column = st.sampled_from(["evt", "energy", "y", "big", "colour", 'a "quoted" == (name)'])
    word = st.sampled_from(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    either = st.tuples(column, word, literals()).map(lambda drawn: getattr(ds.field(drawn[0]), drawn[1])(drawn[2]))
    others = st.sampled_from([
        ds.field("flag"), ds.field("flag") == True, ds.field("name") == "near", ds.field("name").isin(["far", ""]),  # noqa: E712
        ds.field("energy").isin(pa.array([0.1, math.nan], pa.float32())), ds.field("y") != ds.field("y"), ds.field("energy") != ds.field("energy"),
        ds.field("big").isin(pa.array([], pa.int16())), ds.field("energy").is_nan(), ds.field("evt").is_valid(), pc.scalar(3) > ds.field("big"),
        ds.field("evt") < ds.field("big"), pc.if_else(ds.field("flag"), ds.field("big") == 1, False),
    ])  # fmt: skip
    return st.recursive(
        st.one_of(either, either, others),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
            inner.map(lambda one: ~one),
        ),
        max_leaves=4,
    )


@settings(max_examples=100)
@given(expressions())
def test_rows_are_those_of_arrow(table, expression):
    scan, arrow = table
    expected = ds.dataset(arrow).to_table(columns=["evt", "wide"], filter=expression)
    assert scan.to_dataset().to_table(columns=["evt", "wide"], filter=expression) == expected


def test_columns_and_conditions_are_passed_on(table, monkeypatch):
    scan, _ = table
    asked, read = [], Scan._read_piece
    monkeypatch.setattr(Scan, "_read_piece", lambda scan, *more: asked.append(scan) or read(scan, *more))
    dataset = scan.to_dataset()
    query = "SELECT wide FROM dataset WHERE evt >= 19700 AND evt < 19800 AND (name = 'far' OR energy < 2.5 OR big IN (3, 4))"
    assert duckdb.sql(query).fetchall()
    [found] = asked
    assert set(found._names()) == {"big", "energy", "evt", "name", "wide"} and found.explain()["pruned_blocks"] > 0
    del asked[:]
    assert duckdb.sql("SELECT count(*) FROM dataset").fetchall() == [(ROWS,)]
    assert len(asked[0]._names()) == 1


@pytest.mark.parametrize("most", [1000, 299])
@pytest.mark.parametrize("name", ["evt", "energy", "name"])
def test_any_number_of_values_are_passed_on(table, monkeypatch, most, name):
    scan, arrow = table
    monkeypatch.setattr(_supersets, "MAX_VALUES", most)
    dataset, random = scan.to_dataset(), np.random.default_rng(0)
    wanted = {"evt": random.integers(5000, 6000, 300), "energy": random.normal(0, 1, 300).round(1), "name": [f"near{n}" for n in range(299)] + ["far"]}[name]
    values = ", ".join(map(repr, wanted if name == "name" else wanted.tolist()))
    query = f"SELECT evt FROM {{}} WHERE {name} IN ({values})"
    assert duckdb.sql(query.format("dataset")).fetchall() == duckdb.sql(query.format("arrow")).fetchall() != []


def test_many_values_are_compared_by_their_limits(table, monkeypatch):
    columns = _supersets.Columns(table[0])
    assert repr(columns.is_in("evt", [3, 1, 2])) == "((evt == 3) | (evt == 1) | (evt == 2))"
    monkeypatch.setattr(_supersets, "MAX_VALUES", 2)
    assert repr(columns.is_in("evt", [3, 1, 2])) == "((evt >= 1) & (evt <= 3))"
    assert repr(columns.is_in("evt", [3, 1])) == "((evt == 3) | (evt == 1))"
    assert columns.is_in("name", ["a", "b", "c"]) is None and columns.is_in("evt", [1, None]) is None


def test_a_form_that_is_not_understood_excludes_nothing(table, monkeypatch):
    scan, arrow = table
    expected = arrow.filter(ds.field("evt") == 7).select(["evt"])
    for wrong in ([], [("call", "equal")], [("call", "equal"), ("field_ref", "evt"), ("literal", "9")], [("other", "x")], [("literal", "0")]):
        with monkeypatch.context() as patch:
            patch.setattr(_arrow_dataset, "_metadata", lambda _, wrong=wrong: wrong)
            condition = _arrow_dataset._narrowed(scan, arrow.column_names, ["evt"], ds.field("evt") == 7)._condition
        assert condition is None
    with monkeypatch.context() as patch:
        patch.setattr(_arrow_dataset, "_serialized", None)
        assert scan.to_dataset().to_table(columns=["evt"], filter=ds.field("evt") == 7) == expected


def test_memory_is_that_of_a_batch(table, monkeypatch):
    scan, _ = table
    monkeypatch.setattr(_scan_batches, "BATCH_LEN_BYTES", 10_000)
    monkeypatch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 0)
    asked, read = [], Scan._read_piece
    monkeypatch.setattr(Scan, "_read_piece", lambda scan, *more: asked.append(scan) or read(scan, *more))
    reader = scan.to_dataset().scanner(columns=["evt"], filter=ds.field("evt") >= 0).to_reader()
    reader.read_next_batch()
    assert len(asked) == 1
    assert reader.read_all().num_rows == ROWS - 1500 and len(asked) > 10


def test_methods_are_those_of_a_dataset(table):
    scan, arrow = table
    dataset, expected = scan.select("evt", "name").to_dataset(), ds.dataset(arrow.select(["evt", "name"]))
    condition = ds.field("evt") > 19_000
    assert dataset.schema == expected.schema and isinstance(dataset, ds.Dataset)
    assert dataset.partition_expression.equals(expected.partition_expression)
    assert dataset.count_rows(filter=condition) == expected.count_rows(filter=condition)
    assert dataset.head(3, filter=condition) == expected.head(3, filter=condition)
    assert dataset.head(0).num_rows == 0
    assert dataset.take(pa.array([5, 1])) == expected.take(pa.array([5, 1]))
    assert pa.Table.from_batches(dataset.to_batches(columns=["name"])) == expected.to_table(columns=["name"])
    projected = {"twice": ds.field("evt") * 2}
    assert dataset.to_table(columns=projected, filter=condition) == expected.to_table(columns=projected, filter=condition)
    assert dataset.scanner(columns=projected).projected_schema == expected.scanner(columns=projected).projected_schema
    for name in _arrow_dataset.REFUSED:
        with pytest.raises(errors.UsageError, match="has no fragments"):
            getattr(dataset, name)()
    with pytest.raises(errors.UsageError, match="has no fragments"):
        dataset.__reduce__()
    with pytest.raises(pa.ArrowInvalid, match="none"):
        dataset.to_table(columns=["none"])
    # What a method of a later pyarrow does without a dataset of the C++ library is not known.
    through_scanner = {"count_rows", "head", "scanner", "take", "to_batches", "to_table"}
    others = {"schema", "partition_expression", "_scan_options", "_scanner_options"}
    assert {name for name in dir(ds.Dataset) if not name.startswith("__")} == through_scanner | others | set(_arrow_dataset.REFUSED)


def test_a_type_that_arrow_lacks_is_named(tmp_path):
    path = tmp_path / "long.h5"
    with h5py.File(path, "w") as file:
        file["t/x"], file["t/long"] = np.arange(3.0), np.arange(3).astype("g")
        file["t/half"] = np.arange(3, dtype="f2")
        file.create_dataset("lists/l", (2,), h5py.vlen_dtype(np.dtype("g")))
    table = raddle.scan(path)["t"]
    for convert in (table.to_arrow, table.to_dataset):
        with pytest.raises(errors.UsageError, match="^long: Arrow has no type for float"):
            convert()
    with pytest.raises(errors.UsageError, match="^l: Arrow has no type"):
        raddle.scan(path)["lists"].to_arrow()
    assert table.select("x", "half").to_arrow().to_pydict() == {"x": [0, 1, 2], "half": [0, 1, 2]}
