"""Searches of several files: what one file with all their rows gives."""

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
import raddle
from drawn_tables import drawn_tables, write
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import _scan_files, col, errors


@settings(max_examples=60)
@given(st.data())
def test_rows_and_values_follow_the_order_of_the_files(data):
    tables = drawn_tables(data, data.draw(st.integers(1, 4)))
    together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    limit, low = data.draw(st.sampled_from([-1.0, 0.5, 9.0])), data.draw(st.integers(0, 50))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scan_files, "MAX_OPEN_FILES", 1)
        paths = [write(Path(folder) / f"{number}.h5", table) for number, table in enumerate(tables)]
        if data.draw(st.booleans()):
            raddle.index(paths[0], progress=False)
        with raddle.scan(data.draw(st.sampled_from([paths, f"{folder}/*.h5", [f"{folder}/?.h5"]]))) as scanned:
            assert scanned.paths == list(map(str, paths))
            whole = scanned["rec"]
            assert whole.count() == len(together["key"])
            np.testing.assert_array_equal(whole.rows(), np.arange(len(together["key"])))
            found = whole.filter((col("e") > limit) | (col("key") < low))
            wanted = np.flatnonzero((together["e"] > limit) | (together["key"] < low))
            assert found.count() == len(wanted)
            np.testing.assert_array_equal(found.rows(), wanted)
            for scan, rows in ((whole, slice(None)), (found, wanted)):
                for name, values in scan.to_numpy().items():
                    assert values.dtype == tables[0][name].dtype
                    np.testing.assert_array_equal(values, together[name][rows])
            explained = found.explain()
            assert explained["rows"] == len(together["key"])
            assert explained["blocks"] == sum(raddle.scan(path)["rec"].filter("e > 0").explain()["blocks"] for path in paths)


@pytest.fixture
def runs(tmp_path):
    """Returns three files with a table of floats."""
    return [write(tmp_path / f"run{number}.h5", {"x": np.arange(5.0), "sub/y": np.arange(5)}) for number in range(3)]


def test_few_files_are_open_at_a_time(runs, monkeypatch):
    monkeypatch.setattr(_scan_files, "MAX_OPEN_FILES", 1)
    with raddle.scan(runs) as scanned:
        assert scanned["rec"].filter("x > 2").count() == 6
        assert len(scanned._files._open_files) == 2
        assert scanned.file.filename == str(runs[0]) and scanned.file
        assert "and 2 more" in repr(scanned)
        scan = scanned["rec"]
    with pytest.raises(errors.UsageError, match="closed"):
        scan.to_numpy()


def test_files_that_differ_are_refused(runs, tmp_path):
    for table, said in [
        ({"x": np.arange(5, dtype="f4")}, "/rec/x is float64 in .*run0.h5, and float32 in .*other.h5"),
        ({"x": np.zeros((5, 2))}, r"/rec/x is float64 in .*run0.h5, and float64 of shape \(2,\) in .*other.h5"),
        ({"z": np.arange(5.0)}, "/rec/x is float64 in .*run0.h5, and missing in .*other.h5"),
        ({"x": np.arange(5.0), "z": np.arange(5)}, "/rec/z is missing in .*run0.h5, and int64 in .*other.h5"),
    ]:
        other = tmp_path / "other.h5"
        other.unlink(missing_ok=True)
        with pytest.raises(errors.InputError, match=said):
            raddle.scan([*runs, write(other, table)])["rec"]
    other.unlink()
    write(other, {"x": np.arange(5.0)}, "elsewhere")
    with pytest.raises(errors.ObjectNotFoundError, match=r"other\.h5: no object 'rec'"):
        raddle.scan([*runs, other])["rec"]
    other.unlink()
    write(other, {"x": np.arange(5.0), "sub/y": np.arange(5.0)})
    table = raddle.scan([runs[0], other])["rec"]
    assert table.count() == 10
    for scan in (table.select("sub/y"), table.filter("`sub/y` > 2")):
        with pytest.raises(errors.InputError, match="/rec/sub/y is int64 in .*, and float64 in"):
            scan.to_numpy()
    with pytest.raises(errors.InputNotFoundError, match="no file matches"):
        raddle.scan(str(tmp_path / "none*.h5"))
    with pytest.raises(errors.UsageError, match="no files"):
        raddle.scan([])
    with open(runs[0], "rb") as opened, pytest.raises(errors.UsageError, match="is a file object: pass the paths"):
        raddle.scan(opened)
    with pytest.raises(errors.UsageError, match="index of one file"):
        raddle.scan(runs, index="all.stats")


def test_an_index_of_another_state_is_named(runs):
    raddle.index(runs[2], progress=False)
    runs[2].touch()
    with pytest.warns(errors.StaleIndexWarning, match=r"run2\.h5\.stats was written for a different state"):
        assert raddle.scan(runs)["rec"].filter("x > 2").count() == 6


def test_polars_and_arrow_take_several_files(runs):
    polars = pytest.importorskip("polars")
    frame = raddle.scan_polars(runs, "rec").filter(polars.col("x") > 2).collect()
    assert frame["x"].to_list() == [3.0, 4.0] * 3
    dataset = pytest.importorskip("pyarrow.dataset")
    found = raddle.scan(runs)["rec"].to_dataset().to_table(filter=dataset.field("x") > 2)
    assert found["x"].to_pylist() == [3.0, 4.0] * 3


def test_relative_paths_keep_their_meaning(tmp_path, monkeypatch):
    """Also those of files that are opened later, and those of a pickled scan."""
    for folder, sign in ((tmp_path, 1), (tmp_path / "other", -1)):
        folder.mkdir(exist_ok=True)
        for number in range(3):
            write(folder / f"run{number}.h5", {"x": sign * np.arange(5.0)})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_scan_files, "MAX_OPEN_FILES", 1)
    raddle.index("run0.h5", progress=False)
    scan = raddle.scan("run*.h5")["rec"].filter("x != 2")
    indexed = raddle.scan((tmp_path / "run0.h5").absolute(), index="run0.h5.stats")["rec"]
    pickled = pickle.dumps(scan)
    monkeypatch.chdir("other")
    for one in (scan, pickle.loads(pickled)):
        assert one.sum("x") == 24 and one.count() == 12
        assert repr(one).startswith("<raddle.scan('run0.h5' and 2 more)['rec']")
    assert pickle.loads(pickle.dumps(indexed)).filter("x > 9").explain()["blocks"] == indexed.filter("x > 9").explain()["blocks"]
    (tmp_path / "run1.h5").unlink()
    with pytest.raises(errors.InputNotFoundError, match=r"^run1\.h5: open failed"):
        scan.sum("x")
