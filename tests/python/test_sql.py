"""SQL queries on tables of files: `raddle.sql`."""

import gc
import os
import sys

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given, settings
from hypothesis import strategies as st
from predicates import combined
from raddle import Scan, errors
from sql_tables import ROWS, file, small_batches  # noqa: F401

df = pytest.importorskip("datafusion")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
_sql = pytest.importorskip("raddle._sql")
_sql_tables = pytest.importorskip("raddle._sql_tables")
_sql_plans = pytest.importorskip("raddle._sql_plans")
_sql_output = pytest.importorskip("raddle._sql_output")
_sql_command = pytest.importorskip("raddle._sql_command")

@pytest.fixture(scope="module")
def in_memory(file):
    """Returns a function that runs a query on the same tables in memory, with one NaN and one zero."""
    path, tables = file
    context = df.SessionContext(df.SessionConfig({"datafusion.sql_parser.enable_ident_normalization": "false"}))
    with raddle.scan(path) as scans:
        for number, group in enumerate(tables):
            columns = scans[group].to_arrow()
            for name in ("energy", "y"):
                values = columns[name].to_numpy()
                values = np.where(np.isnan(values), values.dtype.type(np.nan), np.where(values == 0, 0, values)).astype(values.dtype)
                columns = columns.set_column(columns.column_names.index(name), name, pa.array(values))
            context.from_arrow(columns, name=f"t{number}")

    def run(query):
        return context.sql(query.format("t0", "t1")).to_arrow_table()

    return run


def on_file(path, query, **options):
    return raddle.sql(query.format(f"'{path}'.'rec.slc'", f"'{path}'.\"rec/trk\""), **options)


COLUMNS = ["evt", "run", "energy", "y", "big", '"a ""quoted"" == (name)"', "far", "low", "CAST(energy AS DOUBLE)", "CAST(big AS FLOAT)"]


def predicates():
    value = st.one_of(
        st.integers(-3, 12),
        st.sampled_from([
            "0.1", "-0.3", "2.5", "0.0", "-0.0", "1e9", "1050", ROWS // 2, 2**24, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), "18446744073709551615",
            "'nan'::FLOAT", "'inf'::DOUBLE", "'-inf'::DOUBLE", "arrow_cast(0.1, 'Float32')",
        ]),
    )  # fmt: skip
    word = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    one = st.tuples(st.sampled_from(COLUMNS), word, value)
    either = st.one_of(one.map(lambda drawn: f"{drawn[0]} {drawn[1]} {drawn[2]}"), one.map(lambda drawn: f"{drawn[2]} {drawn[1]} {drawn[0]}"))
    others = st.sampled_from([
        "flag", "not flag", "flag = true", "name = 'near'", "name > 'g'", "name in ('far', '')", "name != 'far'", "big in (1, 2, 700, 4, 5)",
        "energy in (0.1, 0, 2, 3, 4)", "y in (0, 2.5)", "isnan(energy)", "evt between 100 and 6000", "energy between -1 and 0.5", "evt % 3 = 0",
        "wide[1] < 0.5", "evt < big * 1000", "energy is null", "name like 'n%'", "energy = energy", "run not between 1010 and 1020", "far > low",
        "CAST(energy AS INT) = 2", "CAST(y AS FLOAT) = 0.5", "CAST(name AS STRING) = 'near'", "CAST(run AS STRING) = '1010'", "abs(big) > 3", "energy > y",
        "CASE WHEN flag THEN run > 1050 ELSE energy > 0 END", "evt in (SELECT evt FROM {1} WHERE energy > 2)", "big > (SELECT min(big) + 2 FROM {0} WHERE run > 1090)",
        "TRY_CAST(y AS INT) = 0", "CAST(big AS DECIMAL(10, 2)) > 1.5",
    ])  # fmt: skip
    return combined(st.one_of(either, either, others))


def outcome(run, query):
    """Returns the rows of a query, or "refused" if DataFusion cannot compute it."""
    try:
        return run(query)
    except Exception as error:  # noqa: BLE001
        # A cast that fails in a row fails the query, unless the row is excluded before.
        assert "Cast error" in str(error) or "cast" in str(error), error
        return "refused"


@settings(max_examples=200)
@given(predicates(), st.booleans())
def test_rows_are_those_of_datafusion_on_the_values(file, in_memory, predicate, has_small_batches):
    path, _ = file
    with pytest.MonkeyPatch.context() as patch:
        if has_small_batches:
            small_batches(patch)
        query = f"SELECT evt, big, name, wide FROM {{0}} WHERE {predicate} ORDER BY evt"
        expected = outcome(in_memory, query)
        if expected != "refused":
            assert outcome(lambda text: on_file(path, text).to_arrow_table(), query) == expected


def compared(values, word, number):
    """Returns which values satisfy a comparison, by the documented rule."""
    values, number = values.astype("f8"), float(number)
    equal = (values == number) | (np.isnan(values) & np.isnan(number))
    less = (values < number) | (~np.isnan(values) & np.isnan(number))
    return {"=": equal, "!=": ~equal, "<": less, "<=": less | equal, ">": ~less & ~equal, ">=": ~less}[word]


def rules():
    """Draws a condition as SQL, and as a function that returns which rows satisfy it."""
    among = st.lists(st.sampled_from([-2.5, 0.0, 0.5, 2.0, 1.5, np.nan, np.inf]), min_size=1, max_size=6, unique=True)
    # DataFusion regards y = 0.0 AND y = -0.0 as a contradiction.
    number = st.sampled_from([-2.5, 0.0, 0.5, 2.0, 1e300, np.nan, np.inf, -np.inf, 0.1])
    one = st.tuples(st.sampled_from(["energy", "y", "big", "run"]), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), number).map(
        lambda drawn: (f"{drawn[0]} {drawn[1]} '{drawn[2]!r}'::DOUBLE", lambda columns: compared(columns[drawn[0]], drawn[1], drawn[2]))
    )
    several = st.tuples(st.sampled_from(["energy", "y", "big"]), among).map(
        lambda drawn: (
            "{} IN ({})".format(drawn[0], ", ".join(f"'{one!r}'::DOUBLE" for one in drawn[1])),
            lambda columns: np.any([compared(columns[drawn[0]], "=", one) for one in drawn[1]], axis=0),
        )
    )
    is_nan = st.sampled_from(["energy", "y"]).map(lambda name: (f"isnan({name})", lambda columns: np.isnan(columns[name])))
    return st.recursive(
        st.one_of(one, one, several, is_nan),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: (f"({pair[0][0]}) AND ({pair[1][0]})", lambda c: pair[0][1](c) & pair[1][1](c))),
            st.tuples(inner, inner).map(lambda pair: (f"({pair[0][0]}) OR ({pair[1][0]})", lambda c: pair[0][1](c) | pair[1][1](c))),
            inner.map(lambda drawn: (f"NOT ({drawn[0]})", lambda c: ~drawn[1](c))),
        ),
        max_leaves=4,
    )


@settings(max_examples=150)
@given(rules())
def test_numbers_are_compared_by_the_documented_rule(file, rule):
    path, tables = file
    text, holds = rule
    found = on_file(path, f"SELECT evt FROM {{0}} WHERE {text} ORDER BY evt").to_pydict()["evt"]
    assert found == np.flatnonzero(holds(tables["rec.slc"])).tolist()


def test_zeros_are_equal(file):
    path, tables = file
    y = tables["rec.slc"]["y"]
    for condition, holds in {
        "y = -0.0": y == 0, "y >= -0.0": ~(y < 0), "y > -0.0": (y > 0) | np.isnan(y), "y < 0": y < 0, "y IN (0, 1, 2, 3, 4)": y == 0,
        "y IS NOT DISTINCT FROM 0": y == 0, "CASE y WHEN 0 THEN true ELSE false END": y == 0,
    }.items():  # fmt: skip
        found = on_file(path, f"SELECT evt FROM {{0}} WHERE {condition} ORDER BY evt").to_pydict()["evt"]
        assert found == np.flatnonzero(holds).tolist(), condition
    assert on_file(path, "SELECT count(DISTINCT y) n FROM {0}").to_pydict() == {"n": [7]}


STRUCTURES = [
    "SELECT count(*) n FROM {0}",
    "SELECT count(*) n FROM {0} WHERE run = 1050",
    "SELECT run, count(*) n, sum(big) s, max(energy) FILTER (WHERE NOT isnan(energy)) m, avg(y) a FROM {0} WHERE evt < 5000 GROUP BY run ORDER BY run",
    "SELECT y, count(*) n FROM {0} GROUP BY y ORDER BY y, n",
    "SELECT a.evt, b.run FROM {0} a JOIN {1} b ON a.evt = b.evt WHERE a.run = 1050 AND b.big > 2 ORDER BY 1, 2",
    "SELECT a.evt, b.evt other FROM {0} a JOIN {0} b ON a.evt = b.evt + 1 WHERE a.run > 1090 AND b.run < 1092 ORDER BY 1, 2",
    "SELECT a.evt, b.run FROM {0} a LEFT JOIN {1} b ON a.evt = b.evt AND b.run > 1050 WHERE a.evt < 50 ORDER BY 1, 2",
    "SELECT a.evt, b.run FROM {0} a FULL JOIN {1} b ON a.evt = b.evt AND a.run = 1003 AND b.run > 1090 ORDER BY 1, 2",
    "SELECT evt FROM {0} WHERE run = 1010 UNION ALL SELECT evt FROM {0} WHERE run = 1090 ORDER BY 1",
    "SELECT evt FROM {0} WHERE run = 1010 UNION ALL SELECT evt FROM {0} ORDER BY 1",
    "SELECT evt FROM {0} WHERE run < 1010 EXCEPT SELECT evt FROM {0} WHERE energy > 0 ORDER BY 1",
    "SELECT max(evt) m FROM {0} WHERE run > (SELECT min(run) + 90 FROM {0} WHERE evt > 10)",
    "SELECT evt FROM {0} WHERE run = 1010 AND run < (SELECT max(run) FROM {0} WHERE run = 1020) ORDER BY 1",
    "SELECT evt FROM {0} WHERE run = 1010 AND EXISTS (SELECT 1 FROM {1} t WHERE t.evt = evt AND t.run = 1020) ORDER BY 1",
    "SELECT count(*) n FROM (SELECT evt, run FROM {0} ORDER BY evt LIMIT 100) WHERE run = 1000",
    "SELECT count(*) n FROM (SELECT evt, run FROM {0} ORDER BY evt OFFSET 10) WHERE run = 1000",
    "SELECT count(*) n FROM (SELECT run FROM {0} OFFSET 1) a, {1} b WHERE a.run = 1000 AND b.run = 1001",
    "SELECT count(*) n FROM (SELECT * FROM {0} LIMIT 9223372036854775806) a, {1} b WHERE a.run = 1000 AND b.run = 1001",
    "WITH a AS (SELECT * FROM {0} WHERE run = 1010), b AS (SELECT * FROM a WHERE energy > 1) SELECT evt FROM a UNION ALL SELECT evt FROM b ORDER BY 1",
    "WITH RECURSIVE r AS (SELECT evt FROM {0} WHERE evt = 5 UNION ALL SELECT s.evt FROM {0} s JOIN r ON s.evt = r.evt + 1 WHERE s.evt < 9) SELECT * FROM r ORDER BY 1",
    "SELECT evt, row_number() OVER (PARTITION BY run ORDER BY evt) n FROM {0} WHERE run IN (1010, 1011) ORDER BY 1",
    "SELECT run FROM (SELECT run, energy FROM {0}) WHERE run + 1 = 1011 AND isnan(energy) ORDER BY 1",
    "SELECT CASE WHEN run > 1050 THEN 1 ELSE 0 END c, count(*) n FROM {0} WHERE name = 'near' GROUP BY 1 ORDER BY 1",
    "SELECT unnest(wide) w FROM {0} WHERE run = 1010 ORDER BY 1",
]


@pytest.mark.parametrize("query", STRUCTURES)
def test_queries_of_any_structure_are_computed(file, in_memory, query, monkeypatch):
    small_batches(monkeypatch)
    assert str(on_file(file[0], query).to_pydict()) == str(in_memory(query).to_pydict())


def test_joins_and_aggregates_are_those_of_pandas(file):
    path, tables = file
    slices, tracks = (pd.DataFrame({name: columns[name].astype(columns[name].dtype.newbyteorder("=")) for name in ("evt", "run", "big", "far")}) for columns in tables.values())
    joined = slices.merge(tracks, on="evt", suffixes=("", "_trk"))
    joined = joined[(joined.run > 1040) & (joined.big_trk < 3)].astype({"big": "i8"})
    expected = joined.groupby("run").agg(n=("evt", "size"), s=("big", "sum"), far=("far_trk", "max")).reset_index()
    query = "SELECT s.run, count(*) n, sum(s.big) s, max(t.far) far FROM {0} s JOIN {1} t ON s.evt = t.evt WHERE s.run > 1040 AND t.big < 3 GROUP BY s.run ORDER BY 1"
    pd.testing.assert_frame_equal(on_file(path, query).to_pandas(), expected, check_dtype=False)


def test_values_keep_their_types(file):
    path, tables = file
    found = on_file(path, "SELECT * FROM {0} ORDER BY evt").to_arrow_table()
    with raddle.scan(path) as scans:
        expected = scans["rec.slc"].to_arrow()
    assert found.schema.equals(expected.schema) and found.num_rows == ROWS
    for name, values in tables["rec.slc"].items():
        if name in ("name", "wide"):
            assert found[name].to_pylist() == [value.decode() if name == "name" else value.tolist() for value in values]
        else:
            assert np.array_equal(found[name].to_numpy(), values, equal_nan=values.dtype.kind == "f")
    # There is one NaN, and one zero.
    assert np.array_equal(np.signbit(found["y"].to_numpy()), tables["rec.slc"]["y"] < 0)


def test_any_number_of_values_are_compared(file):
    path, tables = file
    values = ", ".join(map(str, range(300)))
    found = on_file(path, f"SELECT count(*) AS n FROM {{0}} WHERE evt IN ({values})").to_pydict()
    assert found == {"n": [int((tables["rec.slc"]["evt"] < 300).sum())]}


def test_the_result_is_a_data_frame_of_datafusion(file):
    result = on_file(file[0], "SELECT evt, name FROM {0} WHERE run = 1010 ORDER BY evt", threads=1)
    assert isinstance(result, df.DataFrame)
    table = result.to_arrow_table()
    assert result.to_pandas().equals(table.to_pandas())
    assert pa.RecordBatchReader.from_stream(result).read_all() == table
    polars = pytest.importorskip("polars")
    assert result.to_polars().equals(polars.from_arrow(table))
    assert result.filter(df.col("name") == df.lit("far")).count() == table["name"].to_pylist().count("far")


@pytest.mark.parametrize("has_small_batches", [False, True])
def test_nan_in_lists_is_the_same_one(tmp_path, monkeypatch, has_small_batches):
    if has_small_batches:
        monkeypatch.setattr(_sql_tables, "MAX_BATCH_ROWS", 1)
    path = tmp_path / "lists.h5"
    with h5py.File(path, "w") as file:
        file["t/fixed"] = np.array([[1, -np.nan], [-np.nan, 2]], "f4")
        file.create_dataset("t/free", (2,), h5py.vlen_dtype("f8"))[:] = np.array([np.array([-np.nan, 1.0]), np.array([])], object)
        file["t/half"] = np.array([-np.nan, 1], "f2")
        file["t/row"] = [0, 1]
    query = f"SELECT row, fixed[2] > 5 a, free[1] > 5 b, half > arrow_cast(5, 'Float16') c FROM '{path}'.t ORDER BY row"
    found = raddle.sql(query).select("a", "b", "c").to_pydict()
    assert found == {"a": [True, False], "b": [True, None], "c": [True, False]}
    kept = raddle.sql(f"SELECT fixed, free, half FROM '{path}'.t").to_arrow_table()
    assert str(kept["free"].to_pylist()) == "[[nan, 1.0], []]" and str(kept["fixed"].to_pylist()) == "[[1.0, nan], [nan, 2.0]]"


# What is read.


def reads(monkeypatch):
    """Returns a list of the scans that read a batch."""
    asked, read = [], Scan._read_piece
    monkeypatch.setattr(Scan, "_read_piece", lambda scan, *more: asked.append(scan) or read(scan, *more))
    return asked


def test_columns_and_conditions_are_passed_on(file, monkeypatch):
    path, _ = file
    asked = reads(monkeypatch)
    query = "SELECT wide FROM {0} WHERE evt >= 39900 AND 39950 > evt AND (name = 'far' OR energy < 2.5 OR big IN (3, 4, 5, 6)) AND abs(big) > 0"
    assert on_file(path, query).count()
    [found] = asked
    # What does not need the values of the selected column does not read it.
    assert set(found._names()) == {"big", "energy", "evt", "name"}
    explained = found.explain()
    assert explained["pruned_blocks"] > explained["blocks"] / 2
    assert "evt >= 39900" in repr(found._condition) and 'name == "far"' in repr(found._condition)
    del asked[:]
    assert on_file(path, "SELECT count(*) FROM {0}").to_pydict() == {"count(*)": [ROWS]}
    assert not asked


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT evt FROM {0} WHERE run = 1010", "(run == 1010)"),
        ("SELECT evt FROM {0} WHERE energy > 2.5", "((energy >= 2.5) | ~((energy <= inf) | (energy > inf)))"),
        ("SELECT evt FROM {0} WHERE y < 2", "(y <= 2.0)"),
        ("SELECT evt FROM {0} WHERE flag AND far = 18446744073709551615", "((flag == 1) & (far == 18446744073709551615))"),
        ("SELECT evt FROM {0} WHERE low > 0.5", "(low >= 0.5)"),
        ("SELECT evt FROM {0} WHERE far > -1", "(far >= -1)"),
        ("SELECT evt FROM {0} WHERE isnan(y)", "~((y <= inf) | (y > inf))"),
        ("SELECT evt FROM {0} WHERE NOT isnan(y)", "~~((y <= inf) | (y > inf))"),
        ("SELECT evt FROM {0} WHERE NOT isnan(y + 1)", None),
        ("SELECT evt FROM {0} WHERE NOT flag", None),
        ("SELECT evt FROM {0} WHERE run = 1 OR abs(big) = 3", None),
        ("SELECT evt FROM {0} WHERE CAST(energy AS INT) = 3", None),
        ("SELECT evt FROM {0} WHERE CAST(y AS FLOAT) = 0.5", None),
        ("SELECT a.evt FROM {0} a JOIN {0} b ON a.evt = b.evt WHERE a.run = 3 AND b.run = 4", "((run == 3) | (run == 4))"),
        ("SELECT a.evt FROM {0} a JOIN {0} b ON a.evt = b.evt WHERE a.run = 3", None),
        ("SELECT evt FROM {0} WHERE run = 3 AND big > (SELECT min(big) FROM {0})", None),
        ("SELECT evt FROM (SELECT * FROM {0} LIMIT 10) WHERE run = 3", None),
        ("SELECT evt FROM (SELECT * FROM {0} OFFSET 10) WHERE run = 3", None),
        ("EXPLAIN SELECT evt FROM {0} WHERE run = 3", "(run == 3)"),
        ("EXPLAIN ANALYZE SELECT evt FROM {0} WHERE run = 3", "(run == 3)"),
    ],
)
def test_rows_that_no_part_of_a_query_needs_are_excluded(file, query, expected):
    _, tables = _sql.planned(query.format(f"'{file[0]}'.'rec.slc'", ""), index=True, threads=None)
    [dataset] = tables._datasets
    assert (None if dataset.condition is None else repr(dataset.condition)) == expected


def test_the_plan_shows_the_columns_that_are_read(file):
    [_, physical] = on_file(file[0], "EXPLAIN SELECT max(energy) FROM {0} WHERE run = 1050").to_pydict()["plan"]
    assert "projection=[energy, run]" in physical and "filter_expr" not in physical


def test_plans_that_are_not_understood_exclude_nothing(file, in_memory, monkeypatch):
    query = "SELECT evt FROM {0} WHERE run = 1010 ORDER BY evt"
    for name in ("_understood", "_compared", "_column", "_value"):
        with monkeypatch.context() as patch:
            patch.setattr(_sql_plans, name, None)
            assert on_file(file[0], query).to_arrow_table() == in_memory(query)


def test_memory_is_that_of_a_batch(file, monkeypatch):
    small_batches(monkeypatch)
    asked = reads(monkeypatch)
    stream = on_file(file[0], "SELECT * FROM {0} WHERE evt >= 0").execute_stream()
    next(iter(stream))
    assert 0 < len(asked) < 30
    assert on_file(file[0], "SELECT evt FROM {0} LIMIT 3").count() == 3


def test_several_files_are_one_table(file, tmp_path, runs):
    pattern = str(runs[0].parent / "run*.h5")
    energies = [h5py.File(path)["rec/energy"][:] for path in runs]
    found = raddle.sql(f"SELECT evt, energy, map FROM '{pattern}'.'/rec' WHERE evt < 2020 ORDER BY evt").to_pydict()
    assert found["evt"] == [*range(100), *range(2000, 2020)]
    assert np.array_equal(np.array(found["energy"], "f4"), np.concatenate([energies[0], energies[2][:20]]))
    assert np.shape(found["map"][0]) == (3, 5)
    query = f"SELECT count(*) n FROM '{pattern}'.rec a JOIN '{runs[2]}'.rec b ON a.evt = b.evt"
    assert raddle.sql(query).to_pydict() == {"n": [57]}


def test_names_may_be_quoted_in_both_ways(file):
    path = file[0]
    query = 'SELECT "a ""quoted"" == (name)" AS Quoted, s.Evt FROM (SELECT evt AS "Evt", "a ""quoted"" == (name)" FROM {}) s WHERE Evt = 3'
    for table in (f"'{path}'.'rec.slc'", f'"{path}"."rec.slc"', f"\"{path}\".'rec.slc'", f"`{path}`.`rec.slc`", f"'{path}'.'/rec.slc/'"):
        assert list(raddle.sql(query.format(table)).to_pydict()) == ["Quoted", "Evt"]
    qualified = f'SELECT "{path}"."rec.slc".evt, "rec.slc".run FROM \'{path}\'.\'rec.slc\' WHERE "rec.slc".evt = 3'
    assert raddle.sql(qualified).to_pydict()["evt"] == [3]


def test_files_are_closed_with_the_result(tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file["t/x"] = np.arange(10)

    def is_open():
        return str(path) in [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]

    result = raddle.sql(f"SELECT max(x) m FROM '{path}'.t")
    assert result.to_pydict() == {"m": [9]} and is_open()
    del result
    gc.collect()
    assert not is_open()


@pytest.mark.parametrize("query", [
    "SELECT run, max(y) FROM {0} GROUP BY run",
    "SELECT run, min(y) + 1 FROM {0} GROUP BY run HAVING count(*) > 1",
    "SELECT run, max(abs(y)) FROM {0} GROUP BY run",
    "SELECT run, max(z) FROM (SELECT run, y AS z FROM {0}) GROUP BY run",
    "SELECT run, max(y), count(DISTINCT big) FROM {0} GROUP BY run",
    "SELECT run, max(evt) FROM (SELECT run, y AS evt FROM {0}) GROUP BY run",
    "SELECT run, max(evt) FROM (SELECT run, evt FROM {0} UNION ALL SELECT run, y FROM {0}) GROUP BY run",
    "SELECT run, max(evt) FROM (SELECT run, y FROM {0}) s(run, evt) GROUP BY run",
    "SELECT run, max(y) FILTER (WHERE NOT isnan(energy)) FROM {0} GROUP BY run",
    "SELECT run, max(y) FILTER (WHERE NOT isnan(y) OR big > 3) FROM {0} GROUP BY run",
    "EXPLAIN ANALYZE SELECT run, max(y) FROM {0} GROUP BY run",
    "SELECT count(*) FROM {0} WHERE y > (SELECT avg(m) FROM (SELECT max(y) m FROM {0} GROUP BY run))",
])  # fmt: skip
def test_results_that_depend_on_the_order_of_rows_are_refused(file, query):
    # With NaN last in a group, its minimum would be NaN; with NaN in the middle, it would ignore the numbers before.
    with pytest.raises(Exception, match="(y|energy) has NaN, and max and min of groups would depend on the order"):
        on_file(file[0], query).to_pydict()


def test_max_and_min_without_nan_are_not_refused(file):
    path, tables = file
    columns = tables["rec.slc"]
    y = pd.Series(np.where(np.isnan(columns["y"]), np.nan, columns["y"]))
    expected = y.groupby(columns["run"]).max().tolist()
    for query in (
        "SELECT max(y) FILTER (WHERE NOT isnan(y)) m FROM {0} GROUP BY run ORDER BY run",
        "SELECT max(y) FILTER (WHERE NOT isnan(y)) m, count(DISTINCT big) FROM {0} GROUP BY run ORDER BY run",
        "SELECT max(y) m FROM {0} WHERE NOT isnan(y) GROUP BY run ORDER BY run",
        "SELECT max(y) m, avg(energy) FROM {0} WHERE NOT isnan(y) GROUP BY run ORDER BY run",
    ):
        assert on_file(path, query).to_pydict()["m"] == expected
    # Other columns with NaN are not compared.
    for query in ("SELECT run, max(big) AS y, sum(y) FROM {0} GROUP BY run", "SELECT a.run, max(b.big) FROM {0} a JOIN {0} b USING (evt) GROUP BY a.run, a.y"):
        assert on_file(path, query).count() >= 100
    assert str(on_file(path, "SELECT max(y) m, min(y) n FROM {0}").to_pydict()) == "{'m': [nan], 'n': [-inf]}"


# What is refused.


WRITING = [
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW v AS SELECT * FROM {0}",
    "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}'",
    "INSERT INTO {0} VALUES (1)",
    "INSERT INTO {0} SELECT * FROM {0}",
    "DELETE FROM {0}",
    "UPDATE {0} SET evt = 3",
    "DROP TABLE {0}",
    "COPY (SELECT 1) TO '{path}.csv'",
    "COPY {0} TO '{path}.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{path}.csv'",
    "-- a comment\n/* and\nanother */ drop table {0}",
    "SET datafusion.execution.batch_size = 1",
    "TRUNCATE TABLE {0}",
]


@pytest.mark.parametrize("query", WRITING)
def test_queries_cannot_write(file, query):
    path, _ = file
    before, names = path.read_bytes(), sorted(os.listdir(path.parent))
    with pytest.raises(errors.UsageError, match="SQL reads tables, and changes nothing"):
        raddle.sql(query.format(f"'{path}'.'rec.slc'", path=path))
    assert path.read_bytes() == before and sorted(os.listdir(path.parent)) == names


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("SELECT evt FROM '{path}'.'rec.slx'", errors.ObjectNotFoundError, "(?s)no object 'rec.slx' in /.*name one of its groups: rec.slc"),
        ("SELECT evt FROM '{path}'.'quite different'", errors.ObjectNotFoundError, "(?s)name one of its groups: rec, rec.slc"),
        ("SELECT evt FROM '{path}'.'rec.slc/evt'", errors.UsageError, "is not a group of datasets"),
        ("SELECT evt FROM '{path}'.'rec'", errors.UsageError, "rec has no datasets that can be columns"),
        ("SELECT event FROM '{path}'.'rec.slc'", errors.ObjectNotFoundError, "No field named event. Did you mean .*evt"),
        ("SELECT Evt FROM '{path}'.'rec.slc'", errors.ObjectNotFoundError, "(?s)No field named .*Evt.*names in their case"),
        ("SELECT evt FROM '{path}'.'rec.slc' WHERE name = \"near\"", errors.ObjectNotFoundError, "strings in single quotes"),
        ("SELECT evt FROM '{path}.none'.'rec.slc'", errors.InputNotFoundError, "No such file"),
        ("SELECT evt FROM '{path}.none*'.'rec.slc'", errors.InputNotFoundError, "no file matches"),
        ("SELECT evt FROM '{text}'.'rec.slc'", errors.DamagedError, "not an HDF5 file"),
        ("SELECT evt FROM '{path}'", errors.UsageError, "(?s)table .* not found.*its file and its group, both in quotes"),
        ("SELECT evt FROM t", errors.UsageError, "(?s)table 't' not found.*its file and its group, both in quotes"),
        ("SELECT evt FROM all.h5.rec.slc", errors.UsageError, "its file and its group, both in quotes"),
        ("SELECT evt FROM '{path}'.rec.slc", errors.UsageError, "its file and its group, both in quotes"),
        ("SELECT * FROM information_schema.tables", errors.UsageError, "not found"),
        ("SHOW TABLES", errors.UsageError, "SHOW TABLES"),
        ("SELECT none(evt) FROM '{path}'.'rec.slc'", errors.UsageError, "Invalid function 'none'"),
        ("SELECT evt FROM '{path}'.'rec.slc' WHERE evt LIKE 3", errors.UsageError, "LIKE"),
        ("SELECT 1; SELECT 2", errors.UsageError, "single SQL statement"),
        ("SELECT", errors.UsageError, "Expected"),
        ("", errors.UsageError, "No SQL statements"),
    ],
)
def test_what_is_not_known_is_named(file, tmp_path, query, kind, message):
    text = tmp_path / "text.h5"
    text.write_text("not HDF5 " * 100)
    with pytest.raises(kind, match=message):
        raddle.sql(query.format(path=file[0], text=text))


def test_columns_without_a_type_of_arrow_are_left_out(tmp_path):
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file["t/x"], file["t/pair"], file["t/z"] = np.arange(4), np.zeros(4, [("a", "i4")]), np.zeros(4, "c8")
        file["t/short"], file["t/text"] = np.arange(3), np.array([b"a", b"\xff", b"c", b"d"])
        file["t/long"] = np.arange(4).astype("g")
    with pytest.warns(UserWarning, match="t: left out, because Arrow has no type for them: long, pair, z"):
        assert raddle.sql(f"SELECT sum(x) s FROM '{path}'.t").to_pydict() == {"s": [6]}
    with pytest.warns(UserWarning, match="left out"):
        for wrong, message in (("text", "not UTF-8"), ("x, short", "short has 3"), ("count(*)", "short has 3 rows")):
            with pytest.raises(Exception, match=message):
                raddle.sql(f"SELECT {wrong} FROM '{path}'.t").to_pydict()


def test_an_index_of_another_state_is_not_used(tmp_path):
    path = tmp_path / "changed.h5"
    with h5py.File(path, "w") as file:
        file["t/x"] = np.arange(100)
    raddle.index(path, progress=False)
    with h5py.File(path, "a") as file:
        file["t/x"][:] = np.arange(100) + 1000
    os.utime(path, (1, 1))
    query = f"SELECT count(*) n FROM '{path}'.t WHERE x > 500"
    with pytest.warns(errors.StaleIndexWarning):
        assert raddle.sql(query).to_pydict() == {"n": [100]}
    assert raddle.sql(query, index=False).to_pydict() == {"n": [100]}


def test_datafusion_is_named_if_it_is_missing(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "datafusion", None)
    with pytest.raises(errors.UsageError, match=r"pip install 'raddle\[sql\]'"):
        raddle.sql("SELECT 1")


def test_the_number_of_threads_is_positive():
    with pytest.raises(errors.UsageError, match="threads=0"):
        raddle.sql("SELECT 1", threads=0)


@pytest.mark.parametrize("group", ["g", "outer/g"])
def test_a_group_without_columns_names_the_groups_in_it(tmp_path, group):
    path = tmp_path / "nested.h5"
    with h5py.File(path, "w") as file:
        for name in [f"{group}/near/x", f"{group}/far/x", "other/x"]:
            file[name] = np.arange(3)
    with pytest.raises(errors.UsageError, match=f"{group} has no datasets that can be columns") as found:
        raddle.sql(f"SELECT * FROM '{path}'.'{group}'")
    named = {name.strip("/") for name in str(found.value).partition("name one of its groups: ")[2].split(", ")}
    assert {f"{group}/near", f"{group}/far"} <= named and group not in named
    assert raddle.sql(f"SELECT sum(x) s FROM '{path}'.'{group}/near'").to_pydict() == {"s": [3]}


def test_external_links_are_not_columns(tmp_path):
    path = tmp_path / "linking.h5"
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(5)
    with h5py.File(path, "w") as file:
        file["t/n"], file["t/l"] = np.arange(100), h5py.ExternalLink("other.h5", "/x")
    assert raddle.sql(f"SELECT count(*) c, sum(n) s FROM '{path}'.t").to_pydict() == {"c": [100], "s": [4950]}
