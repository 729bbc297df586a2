"""Searches of files that change while they are open: rows are those that h5py finds, and the index is no longer used."""

import os

import h5py
import numpy as np
import pytest
import raddle
from raddle import col, errors


def write_index(path):
    """Writes the index of a file whose modification time lies far in the past, so that a change gives it a different one."""
    os.utime(path, ns=(1, 1))
    raddle.index(path, progress=False)


@pytest.fixture
def changing(tmp_path):
    """Returns a file with an index, and a function that changes one of its values."""
    path = tmp_path / "changing.h5"
    with h5py.File(path, "w") as file:
        for name, values in (("x", np.arange(100_000.0)), ("evt", np.arange(100_000))):
            file.create_dataset(f"t/{name}", data=values, chunks=(1000,))
    write_index(path)

    def change():
        with h5py.File(path, "r+") as file:
            file["t/x"][90_000] = 5

    return path, change


def test_an_open_scan_does_not_use_the_index_of_an_earlier_state(changing):
    path, change = changing
    table = raddle.scan(path)["t"]
    found = table.filter(col("x") == 5)
    assert found.explain()["pruned_blocks"] > 0 and found.rows().tolist() == [5]
    change()
    with h5py.File(path) as file:
        x = file["t/x"][()]
    with pytest.warns(errors.StaleIndexWarning, match=r"changing\.h5\.stats was written for a different state") as warned:
        assert found.rows().tolist() == np.flatnonzero(x == 5).tolist() == [5, 90_000]
    assert [one.filename for one in warned] == [__file__]
    assert found.explain()["pruned_blocks"] == 0
    assert table.filter("evt >= 50000").min("x") == x[50_000:].min() == 5
    assert [len(batch["x"]) for batch in found.batches(50_000)] == [1, 1]


@pytest.mark.parametrize("how", ["polars", "dataset", "where_event"])
def test_every_search_of_an_open_file_notices_a_change(changing, how):
    path, change = changing
    if how == "where_event":
        with h5py.File(path, "r+") as file:
            file["t/evt.seq"] = np.arange(100_000)
        write_index(path)
    table = raddle.scan(path)["t"]
    if how == "polars":
        pl = pytest.importorskip("polars")
        frame = raddle.scan_polars(path, "t").filter(pl.col("x") == 5)
    dataset = table.to_dataset() if how == "dataset" and pytest.importorskip("pyarrow") else None

    def count():
        if how == "polars":
            return frame.collect().height
        if dataset is not None:
            return dataset.to_table(filter=pytest.importorskip("pyarrow.dataset").field("x") == 5).num_rows
        return table.where_event(table.filter("x == 5")).count()

    assert count() == 1
    change()
    with pytest.warns(errors.StaleIndexWarning, match="a different state"):
        assert count() == 2


def test_each_of_several_files_is_checked(changing, tmp_path):
    path, change = changing
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["t/x"], file["t/evt"] = np.arange(9.0), np.arange(9)
    write_index(other)
    found = raddle.scan([other, path])["t"].filter("x == 5")
    assert found.rows().tolist() == [5, 14]
    change()
    with pytest.warns(errors.StaleIndexWarning, match=r"changing\.h5\.stats"):
        assert found.rows().tolist() == [5, 14, 90_009]


def test_a_removed_file_is_searched_without_its_index(changing):
    path, _ = changing
    found = raddle.scan(path)["t"].filter("x == 5")
    os.unlink(path)
    with pytest.warns(errors.StaleIndexWarning):
        assert found.rows().tolist() == [5]


def test_a_relative_path_is_that_of_the_folder_in_which_it_was_opened(changing, monkeypatch, recwarn):
    path, _ = changing
    monkeypatch.chdir(path.parent)
    found = raddle.scan(path.name)["t"].filter("x == 5")
    monkeypatch.chdir("/")
    assert found.explain()["pruned_blocks"] > 0 and found.count() == 1 and not recwarn.list
