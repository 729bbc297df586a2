"""The interfaces to other libraries: dask, xarray, PyTables, PyTorch."""

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


@pytest.fixture
def weather(tmp_path):
    """A netCDF-4 file with groups, packed values, times, a dimension without variable and an unlimited one."""
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    path = tmp_path / "weather.nc"
    with netcdf.Dataset(path, "w") as file:
        file.title = "a test"
        for name, length in (("time", None), ("lat", 4), ("lon", 6), ("bnds", 2)):
            file.createDimension(name, length)
        times = file.createVariable("time", "f8", ("time",))
        times.units, times.calendar = "hours since 2000-01-01", "standard"
        times[:] = np.arange(10) * 6
        latitudes = file.createVariable("lat", "f4", ("lat",))
        latitudes.units, latitudes[:] = "degrees_north", np.linspace(-60, 60, 4)
        file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = np.arange(20).reshape(10, 2)
        packed = file.createVariable(
            "t2m", "i2", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=(3, 4, 3), fill_value=-9999
        )
        packed.scale_factor, packed.add_offset, packed.long_name = 0.01, 273.15, "temperature"
        values = np.random.default_rng(1).normal(280, 5, (10, 4, 6))
        packed[:] = np.ma.masked_where(values > 285, values)
        file.createVariable("label", "S1", ("lat", "lon"))[:] = np.full((4, 6), b"x")
        group = file.createGroup("model")
        group.createVariable("run", "i4", ("lat",))[:] = np.arange(4)
        wide = file.createGroup("wide")
        wide.createDimension("x", 3)
        wide.createVariable("x", "f4", ("x", "lon"))[:] = np.arange(18).reshape(3, 6)
    return path


@pytest.fixture
def xarray():
    return pytest.importorskip("xarray", reason="xarray is not installed")


@pytest.mark.parametrize("group", [None, "model", "wide"])
def test_xarray_shows_what_its_other_engines_show(xarray, weather, group):
    from raddle._xarray import RaddleBackend

    with (
        xarray.open_dataset(weather, engine=RaddleBackend, group=group) as ours,
        xarray.open_dataset(weather, engine="netcdf4", group=group) as theirs,
        xarray.open_dataset(weather, engine="h5netcdf", group=group) as other,
    ):
        xarray.testing.assert_identical(ours, theirs)
        xarray.testing.assert_identical(ours, other)
        if group is None:
            for selection in ({"time": 3}, {"time": [7, 1, 1], "lat": slice(1, 3)}, {"lon": slice(None, None, -1)}):
                xarray.testing.assert_identical(ours.isel(selection).load(), theirs.isel(selection).load())
            selected = {"lat": [0, 3], "lon": [5, 1, 2]}
            xarray.testing.assert_identical(ours.isel(selected).load(), theirs.isel(selected).load())
            assert ours["t2m"].encoding["preferred_chunks"] == {"time": 3, "lat": 4, "lon": 3}


def test_xarray_with_dask_reads_whole_chunks(xarray, weather):
    pytest.importorskip("dask", reason="dask is not installed")
    from raddle._xarray import RaddleBackend

    with (
        xarray.open_dataset(weather, engine=RaddleBackend, chunks={}) as ours,
        xarray.open_dataset(weather, engine="netcdf4") as theirs,
    ):
        assert ours["t2m"].data.chunks == ((3, 3, 3, 1), (4,), (3, 3))
        # Sums of blocks are rounded differently.
        xarray.testing.assert_allclose(ours.mean("time").compute(), theirs.mean("time").compute(), rtol=1e-12)
        xarray.testing.assert_identical(ours.compute(), theirs.compute())


def test_xarray_of_files_without_dimensions(xarray, runs):
    from raddle._xarray import RaddleBackend

    with xarray.open_dataset(runs[0], engine=RaddleBackend, group="rec") as ours, h5py.File(runs[0]) as file:
        assert set(ours) == {"evt", "energy", "map"} and ours.attrs == {"detector": "near"}
        assert ours["evt"].dims == ours["energy"].dims == ours["map"].dims[:1] and len(set(ours["map"].dims)) == 3
        for name in ours:
            assert np.array_equal(ours[name].values, file["rec"][name][:])
    with pytest.raises(FileNotFoundError):
        xarray.open_dataset(runs[0].parent / "none.h5", engine=RaddleBackend)


@pytest.fixture
def texts(tmp_path):
    """Strings of variable and of fixed length, in variables, scalars and attributes, in groups."""
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    path = tmp_path / "texts.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("n", 4)
        names = file.createVariable("names", str, ("x",))
        names[:] = np.array(["a", "bü", ""], object)
        names.flag, names.many, names.one, names.none = "text", ["a", "b"], ["q"], ""
        names.numbers, names.number = np.array([1, 2], "i2"), np.array([3], "i2")
        file.createVariable("scalar", str, ())[...] = "one"
        file.createVariable("characters", "S1", ("x", "n"))[:] = np.array([list("abcd")] * 3, "S1")
        encoded = file.createVariable("encoded", "S1", ("x", "n"))
        encoded._Encoding = "utf-8"
        encoded[:] = np.array(["ab", "c", ""])
        file.createVariable("unwritten", str, ("x",))
        file.createVariable("filled", str, ("x",), fill_value="zz")[0] = "x"
        grid = file.createVariable("grid", str, ("x", "n"), chunksizes=(2, 2))
        grid[:] = np.array([[f"{a}{b}" for b in range(4)] for a in range(3)], object)
        group = file.createGroup("g/h")
        group.createVariable("y", str, ("x",))[:] = np.array(["p", "q", "r"], object)
        group.title = b"bytes"
        for number, owner in enumerate((file, group)):
            owner.createVariable("numbers", "i4", ("n",))[:] = np.arange(4) + number
    return path


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_shows_texts_as_its_other_engines_do(xarray, texts, engine):
    from raddle._xarray import RaddleBackend

    with xarray.open_dataset(texts, engine=RaddleBackend) as ours, xarray.open_dataset(texts, engine=engine) as theirs:
        xarray.testing.assert_identical(ours, theirs)
        for name, expected in theirs.variables.items():
            assert ours[name].dtype == expected.dtype, name
            assert ours[name].encoding["dtype"] == expected.encoding["dtype"]
            assert type(ours[name].values.flat[0]) is type(expected.values.flat[0])
            assert {key: type(value) for key, value in ours[name].attrs.items()} == {
                key: type(value) for key, value in expected.attrs.items()
            }
        for selection in ({"x": 1}, {"x": [2, 0, 0]}, {"x": 1, "n": 2}, {"n": slice(None, None, -2)}):
            xarray.testing.assert_identical(ours.isel(selection).load(), theirs.isel(selection).load())


def test_xarray_shows_texts_of_other_programs_as_netcdf4_does(xarray, tmp_path):
    pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    from raddle._xarray import RaddleBackend

    path = tmp_path / "texts.h5"
    with h5py.File(path, "w") as file:
        file["ascii"] = np.array(["a", "b"], h5py.string_dtype("ascii"))
        file["utf8"], file["scalar"] = ["a", "ü"], "hello"
        for name, value in {
            "fixed": np.bytes_(b"ab"), "several": np.array([b"ab", b"c"]), "texts": ["a", "b"], "one": ["x"],
            "ascii": np.array(["a", "b"], h5py.string_dtype("ascii")), "null": h5py.Empty("f4"), "nothing": np.zeros(0, "f4"),
        }.items():  # fmt: skip
            file.attrs[name] = value
    with xarray.open_dataset(path, engine=RaddleBackend) as ours, xarray.open_dataset(path, engine="netcdf4") as theirs:
        xarray.testing.assert_identical(ours, theirs)
        assert all(ours[name].dtype == theirs[name].dtype for name in theirs)


@pytest.mark.parametrize("group", [None, "g"])
def test_xarray_opens_trees_as_its_other_engines_do(xarray, texts, group):
    from raddle._xarray import RaddleBackend

    ours, theirs = (xarray.open_groups(texts, engine=engine, group=group) for engine in (RaddleBackend, "netcdf4"))
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        # The remaining ones can be read after others were closed.
        xarray.testing.assert_identical(ours[name], expected)
        ours[name].close()
        expected.close()
    with (
        xarray.open_datatree(texts, engine=RaddleBackend, group=group) as ours,
        xarray.open_datatree(texts, engine="netcdf4", group=group) as theirs,
    ):
        xarray.testing.assert_identical(ours, theirs)


def test_xarray_of_a_file_with_one_dataset_that_cannot_be_read(xarray, tmp_path):
    from raddle._xarray import RaddleBackend

    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(3)
        layout = h5py.VirtualLayout((2, 4), "f8", maxshape=(None, 4))
        source = h5py.VirtualSource("none.h5", "d", (2, 4), maxshape=(None, 4))
        layout[0 : h5py.h5s.UNLIMITED, :] = source[0 : h5py.h5s.UNLIMITED, :]
        file.create_virtual_dataset("virtual", layout)
    with (
        pytest.warns(UserWarning, match="/virtual is left out: .*none.h5"),
        xarray.open_dataset(path, engine=RaddleBackend) as ours,
    ):
        assert list(ours) == ["a"] and ours["a"].values.tolist() == [0, 1, 2]


def test_the_engine_is_declared():
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["xarray.backends"]
    module, _, name = declared["raddle"].partition(":")
    pytest.importorskip("xarray", reason="xarray is not installed")
    from importlib import import_module

    assert getattr(import_module(module), name).__name__ == "RaddleBackend"


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
    ("example", "options", "told"),
    [
        ("histograms.py", ["--files", "5", "--events", "300"], '"tracks"'),
        ("mass_peak.py", ["--events", "20000"], '"peak_gev": 91.25'),
    ],
)
def test_the_examples_of_analyses(tmp_path, environment, example, options, told):
    figure = tmp_path / "figure.svg"
    command = [sys.executable, ROOT / "examples" / example, *options, "--figure", figure]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    environment = {**environment, "MPLCONFIGDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        list(map(os.fspath, command)), env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert told in finished.stdout and b"</svg>" in figure.read_bytes()
