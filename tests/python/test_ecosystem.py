"""The interfaces to other libraries: dask, PyTables, PyTorch."""

import os
import pickle
import subprocess
import sys
from collections import Counter

import h5py
import numpy as np
import pytest
import raddle
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from raddle import errors
from raddle._blocks import block_shape


@given(st.data())
def test_blocks_are_whole_chunks_and_of_about_the_size_wanted(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 200), min_size=1, max_size=4)))
    chunks = tuple(data.draw(st.integers(1, dim)) for dim in shape)
    chunks = data.draw(st.sampled_from([chunks, None]))
    wanted = data.draw(st.integers(1, 100_000))
    block = block_shape(shape, chunks, 4, wanted)
    unit = chunks or (1, *shape[1:])
    assert len(block) == len(shape)
    for part, of, dim in zip(block, unit, shape, strict=True):
        assert 1 <= part <= dim and (part % of == 0 or part == dim)
    if any(part > of for part, of in zip(block, unit, strict=True)):
        assert np.prod(block) * 4 <= wanted
    # The next block along an axis is the next run of the array: rows are cut last.
    cut = [axis for axis in range(len(shape)) if block[axis] < shape[axis]]
    assert all(block[axis] <= unit[axis] for axis in cut[:-1])


def test_dask(tmp_path):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    import dask.array

    values = np.random.default_rng(0).normal(size=(103, 17, 5)).astype(">f4")
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("d", data=values, chunks=(10, 4, 5), compression="gzip")
        file["plain"] = values
        file["scalar"] = 1
        file["empty"], file["flat"] = np.zeros((7, 0)), np.zeros((0, 3, 0), "i2")
    with raddle.open(tmp_path / "d.h5") as file:
        array = file["d"].to_dask(3000)
        assert isinstance(array, dask.array.Array) and array.dtype == values.dtype and array.shape == values.shape
        for axis, chunk in enumerate((10, 4, 5)):
            assert all(part % chunk == 0 for part in array.chunks[axis][:-1])
        assert array.npartitions > 4
        for scheduler in ("threads", "sync"):
            assert np.array_equal(array.compute(scheduler=scheduler), values)
        assert np.array_equal(array[5:90:7, 3].compute(), values[5:90:7, 3])
        assert float(array.astype("f8").sum().compute()) == pytest.approx(float(values.astype("f8").sum()))
        assert np.array_equal(file["plain"].to_dask(1000).compute(), values)
        # Equal names deduplicate equal work; different file content gives a different name.
        assert file["d"].to_dask(3000).name == array.name != file["plain"].to_dask(3000).name
        again = pickle.loads(pickle.dumps(array))
        assert np.array_equal(again.compute(), values)
        for name in ("empty", "flat"):
            found = file[name].to_dask().compute()
            assert found.shape == file[name].shape and found.dtype == file[name].dtype
        with pytest.raises(errors.UsageError):
            file["scalar"].to_dask()
        with pytest.raises(errors.UsageError):
            file["d"].to_dask(0)


def test_tables_of_pytables(tmp_path):
    tables = pytest.importorskip("tables", reason="PyTables is not installed")
    row = np.dtype([("id", "<i8"), ("energy", "<f4"), ("name", "S9"), ("place", "<f8", (3,))])
    values = np.zeros(500, row)
    values["id"], values["energy"] = np.arange(500), np.random.default_rng(0).normal(size=500)
    values["name"], values["place"] = b"track", np.random.default_rng(1).normal(size=(500, 3))
    path = tmp_path / "pytables.h5"
    ragged = [np.arange(length, dtype="i4") for length in (3, 0, 5)]
    with tables.open_file(path, "w") as file:
        filters = tables.Filters(complevel=5, complib="blosc", shuffle=True)
        file.create_table("/", "tracks", values, filters=filters, chunkshape=64)
        file.create_carray("/", "array", obj=np.arange(600.0).reshape(60, 10), filters=filters)
        several = file.create_vlarray("/", "ragged", tables.Int32Atom())
        for item in ragged:
            several.append(item)
    with raddle.open(path) as ours, tables.open_file(path) as theirs:
        assert np.array_equal(ours["tracks"][:], theirs.root.tracks.read())
        assert np.array_equal(ours["tracks"]["energy"], theirs.root.tracks.col("energy"))
        assert np.array_equal(ours["array"][5:50:7], theirs.root.array[5:50:7])
        assert all(np.array_equal(our, item) for our, item in zip(ours["ragged"][:], ragged, strict=True))


@pytest.fixture
def table(tmp_path):
    """A table of 1,000 rows in chunks of 64."""
    with h5py.File(tmp_path / "table.h5", "w") as file:
        random = np.random.default_rng(0)
        file.create_dataset("t/number", data=np.arange(1000), chunks=(64,), compression="gzip")
        file.create_dataset("t/map", data=random.normal(size=(1000, 4, 4)).astype("f4"), chunks=(32, 4, 4))
        file["other"] = np.zeros(3)
    with raddle.open(tmp_path / "table.h5") as file:
        yield file["t"]


def test_rows_by_number(table):
    rows = raddle.Rows(table, kept_blocks=3)
    values = table.read_columns()
    assert len(rows) == 1000 and rows.block_rows == 64 and rows.names == ["map", "number"]
    assert rows[5]["number"] == 5 and np.array_equal(rows[-1]["map"], values["map"][-1])
    for numbers in ([3, 999, 3, 64, 63], [], np.array([-1000, 500])):
        batch = rows[numbers]
        for name, column in values.items():
            expected = column[np.asarray(numbers, int)]
            assert batch[name].dtype == column.dtype and np.array_equal(batch[name], expected)
    assert [row["number"] for row in rows.__getitems__([7, 700, 70])] == [7, 700, 70]
    assert pickle.loads(pickle.dumps(rows))[100]["number"] == 100
    for numbers in (1000, -1001, [5, 1000]):
        with pytest.raises(IndexError):
            rows[numbers]
    with pytest.raises(errors.UsageError):
        raddle.Rows(table.file, ["t/number", "other"])


def test_rows_by_mask_as_numpy_takes_masks(table):
    rows = raddle.Rows(table)
    values = table.read_columns()
    for mask in (values["number"] % 90 == 7, np.zeros(1000, bool), (values["number"] < 2).tolist()):
        batch = rows[mask]
        for name, column in values.items():
            assert batch[name].dtype == column.dtype and np.array_equal(batch[name], column[np.asarray(mask)])
    assert rows[np.uint64(5)]["number"] == rows[np.array(5)]["number"] == 5
    for wrong in ([True, False], True, 1.5, [1.5], np.array([1.0]), ["a"], [[1]], None):
        with pytest.raises(IndexError):
            rows[wrong]


SEQUENCES = ["<f4", "<i1", "<c8", "<u8", "<f2", ">i2", "?"]


@pytest.mark.parametrize("rows", [slice(None), slice(0, 0), [3, 1]], ids=str)
def test_awkward_columns_keep_their_types(tmp_path, rows):
    awkward = pytest.importorskip("awkward", reason="awkward is not installed")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        for base in map(np.dtype, SEQUENCES):
            column = file.create_dataset(base.name, (4,), h5py.vlen_dtype(base))
            for row, length in enumerate((2, 0, 3)):
                column[row] = np.arange(length).astype(base)
        file["uint64"][0] = np.array([2**64 - 1, 0], "u8")
        grid = file.create_dataset("grid", (4, 2), h5py.vlen_dtype(np.dtype("<f4")))
        grid[1, 1] = np.array([1.5, 2.5], "f4")
        file["texts"], file["fixed"] = ["a", "bü", "", "d"], np.array([b"a", b"bc", b"", b"d"])
        mixed = np.dtype([("n", "i4"), ("text", h5py.string_dtype()), ("v", ">f4", (2,))])
        file["mixed"] = np.array([(row, f"t{row}", (row, 0.5)) for row in range(4)], mixed)
        file["plain"] = np.arange(8, dtype=">f4").reshape(4, 2)
    with raddle.open(tmp_path / "file.h5") as ours:
        arrays = ours.read_columns(rows=rows)
        table = ours.read_columns(rows=rows, library="awkward")
    for base in map(np.dtype, SEQUENCES):
        name = base.name
        assert awkward.to_numpy(awkward.flatten(table[name])).dtype == base.newbyteorder("=")
        assert table[name].to_list() == [row.tolist() for row in arrays[name]], name
    assert table.grid.to_list() == [[item.tolist() for item in row] for row in arrays["grid"]]
    assert table.texts.to_list() == arrays["texts"].tolist() and table.fixed.to_list() == arrays["fixed"].tolist()
    assert table.mixed.text.to_list() == arrays["mixed"]["text"].tolist()
    assert table.mixed.v.to_list() == arrays["mixed"]["v"].tolist() and awkward.to_numpy(table.mixed.n).dtype == "i4"
    assert awkward.to_numpy(table.plain).dtype == "f4" and table.plain.to_list() == arrays["plain"].tolist()


def test_awkward_has_no_array_of_some_columns(tmp_path):
    pytest.importorskip("awkward", reason="awkward is not installed")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["fine"] = np.arange(2)
        file["pointers"] = np.array([file["fine"].ref] * 2, h5py.ref_dtype)
        file["opaque"] = np.frombuffer(b"abcdef", "V3")
        file["nested"] = np.array([(1, file["fine"].ref)] * 2, [("n", "i4"), ("to", h5py.ref_dtype)])
    with raddle.open(tmp_path / "file.h5") as file:
        for name in ("pointers", "opaque", "nested"):
            with pytest.raises(errors.UsageError, match=name):
                file.read_columns(["fine", name], library="awkward")


@pytest.mark.parametrize("batch_rows", [1, 50, 64, 333, 5000])
@pytest.mark.parametrize("size", [1, 3])
def test_batches_hold_every_row_once(table, batch_rows, size):
    rows = raddle.Rows(table)
    drawn = []
    for rank in range(size):
        batches = raddle.Batches(rows, batch_rows, seed=4, window=3, rank=rank, size=size)
        own = list(batches)
        assert len(own) == len(batches) and own == list(batches)
        assert {len(batch) for batch in own[:-1]} <= {batch_rows} and 1 <= len(own[-1]) <= batch_rows
        drawn += [row for batch in own for row in batch]
    assert sorted(drawn) == list(range(1000)) and drawn != sorted(drawn)
    ordered = raddle.Batches(rows, batch_rows, shuffle=False)
    assert [row for batch in ordered for row in batch] == list(range(1000))


def test_batches_differ_by_epoch_and_seed_and_read_each_chunk_once(table):
    rows = raddle.Rows(table, kept_blocks=8)
    batches = raddle.Batches(rows, 100, window=4)
    first = list(batches)
    batches.set_epoch(1)
    assert list(batches) != first != list(raddle.Batches(rows, 100, window=4, seed=1))
    read = Counter()

    class Counting(type(table)):
        def read_columns(self, names=None, rows=None, **options):
            read[rows.start] += 1
            return super().read_columns(names, rows, **options)

    rows._group = Counting(table.file, table._number, table.name)
    numbers = np.concatenate([rows[batch]["number"] for batch in batches])
    assert sorted(numbers) == list(range(1000))
    assert read == dict.fromkeys(range(0, 1000, 64), 1)
    with pytest.raises(errors.UsageError):
        raddle.Batches(rows, 0)


def test_a_loader_of_pytorch(table):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its loaders are not tested")
    rows = raddle.Rows(table)
    loader = torch.utils.data.DataLoader(rows, sampler=raddle.Batches(rows, 100), batch_size=None)
    loaded = torch.cat([batch["number"] for batch in loader])
    assert sorted(loaded.tolist()) == list(range(1000))
    plain = torch.utils.data.DataLoader(rows, batch_size=10)
    assert next(iter(plain))["number"].tolist() == list(range(10))


@pytest.mark.parametrize(
    ("example", "options", "printed"),
    [
        ("histograms.py", ["--files", "5", "--events", "300"], '"tracks"'),
        ("mass_peak.py", ["--events", "20000"], '"peak_gev": 91.25'),
    ],
)
def test_the_examples_of_analyses(tmp_path, environment, example, options, printed):
    figure = tmp_path / "figure.svg"
    pytest.importorskip("boost_histogram", reason="boost-histogram is not installed")
    command = [sys.executable, ROOT / "examples" / example, *options, "--figure", figure]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    environment = {**environment, "MPLCONFIGDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        list(map(os.fspath, command)), env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert printed in finished.stdout and b"</svg>" in figure.read_bytes()
