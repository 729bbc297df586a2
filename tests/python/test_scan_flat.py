"""Columns of shape (rows, 1), as in NOvA's files: every library reads plain values, and conditions exclude blocks."""

import h5py
import numpy as np
import pytest
import raddle
from raddle._supersets import Columns

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

ROWS = 200_000


@pytest.fixture
def path(tmp_path):
    """A table of columns of shape (rows, 1), with an index. `pair` has two values per row."""
    values = np.arange(ROWS)
    with h5py.File(tmp_path / "all.h5", "w") as file:
        table = file.create_group("rec.slc")
        table.create_dataset("run", data=values.reshape(-1, 1).astype("i4"), chunks=(1000, 1))
        table.create_dataset("calE", data=(values % 7).reshape(-1, 1).astype(">f4"), chunks=(1000, 1))
        table.create_dataset("detector", data=np.array([[b"near"], [b"far"]] * (ROWS // 2)), chunks=(1000, 1))
        table.create_dataset("pair", data=np.stack([values, -values], axis=1), chunks=(1000, 2))
    raddle.index(tmp_path / "all.h5", progress=False)
    return tmp_path / "all.h5"


def wanted():
    """The rows that the queries of the tests select."""
    rows = np.arange(ROWS)
    return rows[(rows >= 1500) & (rows < 1600) & (rows % 7 > 2)]


def found(path):
    return raddle.scan(path)["rec.slc"].filter("1500 <= run < 1600 & calE > 2")


def test_arrays_keep_their_shape(path):
    arrays = found(path).to_numpy()
    assert arrays["run"].shape == (len(wanted()), 1) and np.array_equal(arrays["run"][:, 0], wanted())
    assert found(path).explain()["pruned_blocks"] > 0


def test_frames_and_arrow_have_plain_values(path):
    frame = found(path).to_pandas()
    assert frame["run"].dtype == "i4" and frame["calE"].dtype == "f4" and frame["detector"][0] in ("near", "far")
    assert frame["run"].tolist() == wanted().tolist() and list(frame["pair"][0]) == [wanted()[0], -wanted()[0]]
    table = found(path).to_arrow()
    kinds = {field.name: field.type for field in table.schema}
    assert kinds == {"calE": pa.float32(), "detector": pa.string(), "pair": pa.list_(pa.int64(), 2), "run": pa.int32()}
    assert table["run"].to_pylist() == wanted().tolist()
    with raddle.open(path) as file:
        assert file["rec.slc"].read_columns(["run"], library="pandas")["run"].dtype == "i4"


def test_queries_compare_them(path):
    query = "SELECT run, detector FROM {} WHERE run >= 1500 AND run < 1600 AND \"calE\" > 2 ORDER BY run"
    duckdb = pytest.importorskip("duckdb")
    slices = raddle.scan(path)["rec.slc"].to_dataset()  # noqa: F841 (DuckDB finds it by its name)
    assert duckdb.sql(query.format("slices")).df()["run"].tolist() == wanted().tolist()
    pytest.importorskip("datafusion")
    result = raddle.sql(query.format(f"'{path}'.'rec.slc'"))
    assert result.to_pandas()["run"].tolist() == wanted().tolist()


def test_their_conditions_are_passed_on(path):
    columns = Columns(raddle.scan(path)["rec.slc"])
    assert columns.compare("run", ">=", 1500) is not None and columns.compare("detector", "==", "near") is not None
    assert columns.compare("pair", ">=", 1500) is None


def test_polars_compares_them(path):
    pl = pytest.importorskip("polars")
    frame = raddle.scan_polars(path, "rec.slc").select("run", "calE", "detector")
    rows = frame.filter((pl.col("run") >= 1500) & (pl.col("run") < 1600) & (pl.col("calE") > 2)).collect()
    assert rows["run"].to_list() == wanted().tolist() and rows.schema["detector"] == pl.String


def test_histograms_are_filled_with_them(path):
    bh = pytest.importorskip("boost_histogram")
    filled = raddle.scan(path)["rec.slc"].hist({"calE": bh.axis.Regular(7, 0, 7)}, weight="run")
    rows = np.arange(ROWS)
    assert filled.values().tolist() == [rows[rows % 7 == value].sum() for value in range(7)]
    texts = raddle.scan(path)["rec.slc"].hist({"detector": bh.axis.StrCategory(["far", "near"])})
    assert texts.values().tolist() == [ROWS / 2, ROWS / 2]
