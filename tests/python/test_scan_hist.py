"""Histograms of scans, and the shares of readers: what filling at once, and one reader, give."""

import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from drawn_tables import drawn_tables, write
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import _scan_batches, errors
from ranks import on_ranks

bh = pytest.importorskip("boost_histogram")


@settings(max_examples=60)
@given(st.data())
def test_a_histogram_is_that_of_all_rows(data):
    tables = drawn_tables(data, data.draw(st.integers(1, 3)))
    together = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    together["wide"] = together["wide"][:, 0]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scan_batches, "BATCH_LEN_BYTES", data.draw(st.sampled_from([500, 1 << 26])))
        patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 0)
        paths = [
            write(Path(folder) / f"{number}.h5", {**table, "wide": table["wide"][:, 0].copy()})
            for number, table in enumerate(tables)
        ]
        with raddle.scan(paths, threads=data.draw(st.sampled_from([1, 3]))) as scanned:
            low = data.draw(st.integers(0, 51))
            rows = together["key"] >= low
            scan = scanned["rec"].filter(f"key >= {low}")
            axes = {"e": bh.axis.Regular(8, -2, 2), "key": bh.axis.Integer(0, 50), "name": bh.axis.StrCategory([], growth=True)}
            names = data.draw(st.lists(st.sampled_from(sorted(axes)), min_size=1, max_size=3, unique=True))
            weight = data.draw(st.sampled_from([None, "wide", "e" if "e" in names else "wide"]))
            found = scan.hist({name: axes[name] for name in names}, weight=weight)
            expected = bh.Histogram(*(axes[name] for name in names), storage=bh.storage.Int64() if weight is None else bh.storage.Weight())
            if rows.any():
                columns = [together[name][rows] for name in names]
                texts = [column.astype(str).tolist() if column.dtype.kind == "S" else column for column in columns]
                expected.fill(*texts, weight=None if weight is None else together[weight][rows])
            # Categories are in the order in which they occur, which depends on threads.
            ordered = [sorted(range(len(axis)), key=axis.value) if isinstance(axis, bh.axis.StrCategory) else None for axis in found.axes]
            other = [sorted(range(len(axis)), key=axis.value) if isinstance(axis, bh.axis.StrCategory) else None for axis in expected.axes]
            for of in ("values", "variances"):
                here, there = getattr(found, of)(), getattr(expected, of)()
                for axis, (order, order_there) in enumerate(zip(ordered, other)):
                    if order is not None:
                        here, there = here.take(order, axis), there.take(order_there, axis)
                assert np.array_equal(here, there) if weight is None else np.allclose(here, there, rtol=1e-12, equal_nan=True)
            assert weight is not None or found.sum(flow=True) == rows.sum()


def test_a_histogram_is_that_of_numpy(events):
    path, tables = events
    edges = np.linspace(0, 1, 11)
    with raddle.scan(path) as file:
        found = file["trk"].where_event(file["slc"].filter("e > 0.9")).hist({"e": bh.axis.Variable(edges)}, weight="n")
        storage = file["trk"].hist({"e": bh.axis.Regular(10, 0, 1)}, storage=bh.storage.Double())
    rows = np.isin(tables["trk"]["event"], tables["slc"]["event"][tables["slc"]["e"] > 0.9])
    assert np.array_equal(found.values(), np.histogram(tables["trk"]["e"][rows], edges, weights=tables["trk"]["n"][rows])[0])
    assert storage.values().dtype == "f8" and storage.sum() == len(tables["trk"]["e"])


@pytest.mark.parametrize("axis", [bh.axis.Regular(3, 0, 0.3, growth=True), bh.axis.Variable([0, 0.1, 0.3], growth=True)])
def test_ranges_grow(events, monkeypatch, axis):
    monkeypatch.setattr(_scan_batches, "BATCH_LEN_BYTES", 500)
    path, tables = events
    expected = bh.Histogram(axis, storage=bh.storage.Int64()).fill(tables["trk"]["e"])
    with raddle.scan(path, threads=3) as file:
        found = file["trk"].hist({"e": axis})
    assert found.axes[0] == expected.axes[0] and found.size > 5
    assert np.array_equal(found.values(flow=True), expected.values(flow=True))


def test_mistakes_in_histograms_are_explained(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["rec/x"], file["rec/wide"], file["rec/t"] = np.arange(3.0), np.zeros((3, 2)), np.array([b"a", b"b", b"a"])
        file["rec/note"] = ["a", "b", "b"]
    table, axis, texts = raddle.scan(tmp_path / "all.h5")["rec"], bh.axis.Regular(3, 0, 3), bh.axis.StrCategory(["a", "b"])
    for axes, weight, said in [
        ({}, None, "name the column of each axis"),
        (axis, None, "name the column of each axis"),
        ({"wide": axis}, None, r"wide does not have one number or text per row: float64 of shape \(2,\)"),
        ({"t": axis}, None, "t has strings"),
        ({"x": texts}, None, "x has float64, and its axis has strings"),
        ({"x": axis}, "t", "t has strings"),
        ({"t": texts}, "t", "strings cannot be weights"),
    ]:
        with pytest.raises(errors.UsageError, match=said):
            table.hist(axes, weight=weight)
    with pytest.raises(errors.ObjectNotFoundError, match="'y'"):
        table.hist({"y": axis})
    assert table.hist({"note": texts, "x": axis}).values().tolist() == [[1, 0, 0], [0, 1, 1]]
    monkeypatch.setitem(sys.modules, "boost_histogram", None)
    with pytest.raises(errors.UsageError, match="pip install boost-histogram"):
        table.hist({"x": axis})


@settings(max_examples=40)
@given(st.data())
def test_shares_together_have_each_row_once(events, data):
    path, tables = events
    copies = data.draw(st.integers(1, 2))
    size = data.draw(st.integers(1, 5))
    with raddle.scan([path] * copies) as file:
        name = data.draw(st.sampled_from(["spill", "slc", "trk", "unsorted"]))
        key = data.draw(st.sampled_from([None, "evt"])) if name != "unsorted" else None
        whole = file[name].filter("evt > 100") if data.draw(st.booleans()) else file[name]
        shares = [whole.partition(rank, size, key=key) for rank in range(size)]
        assert sum(share.count() for share in shares) == whole.count()
        assert sorted(np.concatenate([share.rows() for share in shares])) == whole.rows().tolist()
        if name != "unsorted":
            of_ranks = [set(share.to_numpy()["evt"]) for share in shares]
            assert sum(map(len, of_ranks)) == len(set.union(*of_ranks))
        if name != "spill":
            axes = {"e": bh.axis.Regular(9, 0, 1)}
            assert sum((share.hist(axes) for share in shares[1:]), shares[0].hist(axes)) == whole.hist(axes)


def test_shares_of_communicators_and_mistakes(events):
    path, tables = events
    with raddle.scan(path) as file:
        counts = on_ranks(3, lambda communicator: file["trk"].partition(communicator).count())
        assert sum(counts) == len(tables["trk"]["evt"]) and min(counts) > 0
        share = file["trk"].partition(0, 2)
        assert share.where_event(file["slc"].filter("e > 2")).count() == 0
        for wrong, said in [
            (lambda: share.partition(0, 2), "already the share"),
            (lambda: file["trk"].partition(2, 2), "rank 2 is not valid"),
            (lambda: file["trk"].partition(0), r"call partition\(rank, size\)"),
            (lambda: file["trk"].where_event(share), "whole tables"),
        ]:
            with pytest.raises(errors.UsageError, match=said):
                wrong()
        with pytest.raises(errors.ObjectNotFoundError, match="raddle keys add"):
            file["trk"].partition(0, 2, key="run")


def test_a_key_of_several_is_named(tmp_path):
    paths = []
    for run in range(3):
        columns = {"run": np.full(40, run), "evt": np.arange(40)}
        paths.append(write(tmp_path / f"{run}.h5", columns, "spill"))
        write(paths[-1], {"run": np.full(90, run), "evt": np.sort(np.arange(90) % 40), "e": np.arange(90.0)}, "trk")
    raddle.merge(paths, tmp_path / "all.h5", keys=["/spill/run", "/spill/evt"], progress=False)
    with h5py.File(tmp_path / "all.h5", "a") as file:
        for ending in ("seq", "offsets"):
            file[f"trk/run.{ending}"] = file[f"trk/evt.{ending}"][()]
    with raddle.scan(tmp_path / "all.h5") as file:
        with pytest.raises(errors.UsageError, match="has the keys .*: name one, as in partition"):
            file["trk"].partition(0, 2)
        shares = [file["trk"].partition(rank, 4, key="evt").to_numpy() for rank in range(4)]
        events = [set(zip(share["run"], share["evt"])) for share in shares]
        assert sum(map(len, events)) == len(set.union(*events)) == 120
        assert sum(len(share["e"]) for share in shares) == 270


RANKS = """
import sys
import boost_histogram as bh, raddle
from mpi4py import MPI
world = MPI.COMM_WORLD
with raddle.scan(sys.argv[1], threads=1) as file:
    chosen = file["trk"].where_event(file["slc"].filter("e > 0.5"))
    axes = {"e": bh.axis.Regular(50, 0, 1)}
    together = world.reduce(chosen.partition(world).hist(axes))
    if world.rank == 0:
        assert world.size == 3 and together == chosen.hist(axes) and together.sum() > 100
        print("equal")
"""


def test_ranks_of_mpi(on_three_ranks, events):
    on_three_ranks(RANKS, events[0])


def test_strings_as_weights_are_explained(tmp_path):
    """An axis of strings would not help."""
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["rec/x"], file["rec/t"], file["rec/note"] = np.arange(3.0), np.array([b"a", b"b", b"a"]), ["a", "b", "b"]
    table = raddle.scan(tmp_path / "all.h5")["rec"]
    for weight in ["t", "note"]:
        with pytest.raises(errors.UsageError) as found:
            table.hist({"x": bh.axis.Regular(3, 0, 3)}, weight=weight)
        said = str(found.value)
        assert weight in said and "weight" in said and "StrCategory" not in said, said
