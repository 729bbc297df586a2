"""The xarray engine, compared with xarray's other engines."""

import h5py
import numpy as np
import pytest
from conftest import ROOT


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
def test_xarray_shows_strings_as_its_other_engines_do(xarray, texts, engine):
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


def test_xarray_shows_strings_of_other_programs_as_netcdf4_does(xarray, tmp_path):
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


@pytest.fixture
def storage(tmp_path):
    """A netCDF-4 file with filters, enumerations, and variables that are called like a dimension."""
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    path = tmp_path / "storage.nc"
    with netcdf.Dataset(path, "w") as file:
        for name, length in (("time", None), ("x", 4), ("empty", None), ("s", 3)):
            file.createDimension(name, length)
        file.createVariable("time", "f8", ("time",))[:] = [0, 1]
        filters = {"zlib": True, "complevel": 5, "shuffle": True, "fletcher32": True}
        file.createVariable("t", "f4", ("time", "x"), **filters)[:] = np.zeros((2, 4))
        file.createVariable("x", "f4", ("time", "x"))[:] = np.ones((2, 4))
        file.createVariable("s", "f4", ("x",))[:] = 1
        file.createVariable("swapped", ">f4", ("x",), endian="big")[:] = 1
        file.createVariable("scalar", "f4", ())[:] = 1
        color = file.createEnumType("u1", "color", {"red": 0, "green": 1})
        file.createVariable("color_of_x", color, ("x",))[:] = [0, 1, 0, 1]
        file.createVariable("text", str, ("x",))[:] = np.array(list("abcd"), object)
        group = file.createGroup("g")
        group.createDimension("u", None)
        group.createVariable("uu", "i4", ("u", "time"))[:] = np.zeros((3, 2))
        group.createVariable("color_of_u", color, ("u",))[:] = [0, 1, 1]
    return path


def written_by_h5netcdf(path):
    """Writes a file with an unlimited dimension, lzf and a variable that is not a coordinate."""
    h5netcdf = pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"x": 5, "t": None}
        file.resize_dimension("t", 3)
        file.create_variable("x", ("x",), float, data=np.arange(5.0))
        file.create_variable("v", ("t", "x"), float, compression="gzip", compression_opts=7, shuffle=True, chunks=(1, 5))
        file.create_variable("packed", ("t", "x"), float, compression="lzf")
        file.create_variable("t", ("x",), float)


def written_by_xarray(path):
    """Writes a file as xarray does, with times and packed values."""
    import xarray

    times = np.arange("2000-01-01", "2000-01-04", dtype="M8[D]").astype("M8[ns]")
    dataset = xarray.Dataset(
        {"a": (("time", "y"), np.zeros((3, 4))), "b": ("y", ["a", "bb", "c", "d"])}, {"time": ("time", times)}
    )
    packed = {"zlib": True, "complevel": 3, "dtype": "i2", "scale_factor": 0.1, "_FillValue": -1}
    dataset.to_netcdf(path, engine="h5netcdf", unlimited_dims=["time"], encoding={"a": packed})


def same_encodings(ours, theirs):
    """Checks that two datasets are stored alike, as far as xarray knows."""
    assert list(ours.variables) == list(theirs.variables)
    assert ours.encoding == theirs.encoding
    for name, expected in theirs.variables.items():
        assert ours[name].encoding == expected.encoding, name
        types = [variable.encoding["dtype"] for variable in (ours[name], expected)]
        assert types[0] is types[1] is str or types[0].metadata == types[1].metadata, name


@pytest.mark.parametrize("group", [None, "g"])
def test_xarray_shows_the_storage_of_netcdf4_as_h5netcdf_does(xarray, storage, group):
    from raddle._xarray import RaddleBackend

    with (
        xarray.open_dataset(storage, engine=RaddleBackend, group=group) as ours,
        xarray.open_dataset(storage, engine="h5netcdf", group=group) as theirs,
    ):
        same_encodings(ours, theirs)
        xarray.testing.assert_identical(ours, theirs)


@pytest.mark.parametrize("write", [written_by_h5netcdf, written_by_xarray])
def test_xarray_shows_the_storage_of_other_writers_as_h5netcdf_does(xarray, tmp_path, write):
    from raddle._xarray import RaddleBackend

    write(tmp_path / "file.nc")
    with (
        xarray.open_dataset(tmp_path / "file.nc", engine=RaddleBackend) as ours,
        xarray.open_dataset(tmp_path / "file.nc", engine="h5netcdf") as theirs,
    ):
        same_encodings(ours, theirs)
        xarray.testing.assert_identical(ours, theirs)
        # What was read is written as it was stored.
        ours.to_netcdf(tmp_path / "again.nc", engine="h5netcdf")
        with xarray.open_dataset(tmp_path / "again.nc", engine=RaddleBackend) as again:
            assert again.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]
            for name in theirs.variables:
                assert again[name].encoding.get("zlib") == theirs[name].encoding.get("zlib")


def test_filters_that_h5py_cannot_name_are_listed(xarray, tmp_path):
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    from raddle._xarray import RaddleBackend

    with netcdf.Dataset(tmp_path / "file.nc", "w") as file:
        file.createDimension("x", 4)
        for name in ("zstd", "bzip2"):
            file.createVariable(name, "f4", ("x",), compression=name, complevel=3)[:] = 1
    with xarray.open_dataset(tmp_path / "file.nc", engine=RaddleBackend) as ours:
        for name in ("zstd", "bzip2"):
            encoding = ours[name].encoding
            assert encoding[name] is True and encoding["complevel"] == 3 and "compression" not in encoding


def test_variables_shorter_than_an_unlimited_dimension_continue_with_fill_values(xarray, tmp_path):
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    from raddle._xarray import RaddleBackend

    path = tmp_path / "short.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("long", "f4", ("time", "x"))[0:5] = np.arange(15).reshape(5, 3)
        file.createVariable("short", "f4", ("time", "x"), fill_value=-1)[0:2] = np.arange(6).reshape(2, 3)
        file.createVariable("none", "i2", ("time",))
        file.createVariable("text", str, ("time",))[0] = "a"
        group = file.createGroup("g")
        group.createVariable("deep", "f4", ("time",))[0:7] = np.arange(7)
        other = file.createGroup("other")
        other.createDimension("time", None)
        other.createVariable("alone", "f4", ("time",))[0:9] = np.arange(9)
    for name in (None, "g", "other"):
        with (
            xarray.open_dataset(path, engine=RaddleBackend, group=name, mask_and_scale=False) as ours,
            xarray.open_dataset(path, engine="netcdf4", group=name, mask_and_scale=False) as theirs,
        ):
            assert ours.sizes == theirs.sizes
            for variable in theirs.variables:
                assert ours[variable].encoding.get("original_shape") == theirs[variable].encoding.get("original_shape")
            for chosen in ({}, {"time": 1}, {"time": -1}, {"time": [6, 0, 1, 1]}, {"time": slice(None, None, -2)},
                           {"time": slice(1, 4)}, {"time": slice(3, 6)}, {"time": []}):  # fmt: skip
                read, expected = ours.isel(chosen).load(), theirs.isel(chosen).load()
                for variable in expected.variables:
                    assert np.array_equal(read[variable].values, expected[variable].values), (name, chosen, variable)
                    assert read[variable].dtype == expected[variable].dtype


def test_axes_without_names_are_called_as_in_h5netcdf(xarray, tmp_path):
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    from raddle._xarray import RaddleBackend

    with h5py.File(tmp_path / "file.h5", "w") as file:
        for group in ("a", "b"):
            for name, shape in {"cube": (5, 5, 5), "box": (25, 5, 5), "line": (7,), "other": (4, 3)}.items():
                file[f"{group}/{name}"] = np.zeros(shape, "i2")
        file["b/x"] = np.arange(4)
        file["b/x"].make_scale("x")
        file["b/other"].dims[0].attach_scale(file["b/x"])
        file["b/other"].dims[1].attach_scale(file["b/x"])
        file["b/loose"] = np.zeros((4, 4), "i2")
    options = {"engine": "h5netcdf", "phony_dims": "access"}
    for group in ("a", "b"):
        with (
            xarray.open_dataset(tmp_path / "file.h5", engine=RaddleBackend, group=group, drop_variables="other") as ours,
            xarray.open_dataset(tmp_path / "file.h5", group=group, drop_variables="other", **options) as theirs,
        ):
            assert {name: ours[name].dims for name in ours} == {name: theirs[name].dims for name in theirs}
    with xarray.open_datatree(tmp_path / "file.h5", engine=RaddleBackend) as tree:
        assert not set(tree["a"].dims) & set(tree["b"].dims)


@pytest.mark.filterwarnings("ignore:Duplicate dimension names")
def test_a_dimension_may_repeat(xarray, tmp_path):
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    from raddle._xarray import RaddleBackend

    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["lat"] = np.arange(3.0)
        file["lat"].make_scale("lat")
        file["covariance"] = np.arange(9.0).reshape(3, 3)
        for axis in range(2):
            file["covariance"].dims[axis].attach_scale(file["lat"])
    with (
        xarray.open_dataset(tmp_path / "file.h5", engine=RaddleBackend) as ours,
        xarray.open_dataset(tmp_path / "file.h5", engine="h5netcdf") as theirs,
    ):
        assert ours["covariance"].dims == theirs["covariance"].dims == ("lat", "lat") and ours.sizes == theirs.sizes
        np.testing.assert_array_equal(ours["covariance"].values, theirs["covariance"].values)


def test_strings_of_attributes_that_are_not_utf_8_stay_bytes(xarray, tmp_path):
    from raddle._xarray import RaddleBackend

    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.attrs["title"] = np.bytes_(b"\xc3")
        file["x"] = np.array([b"ab", b"X"])
        file["x"].attrs["_FillValue"] = np.bytes_(b"X")
    with (
        pytest.warns(UnicodeWarning, match="'title' of '/'.*undecoded"),
        xarray.open_dataset(tmp_path / "file.h5", engine=RaddleBackend) as ours,
    ):
        assert ours.title == b"\xc3"
        assert ours["x"].values[0] == b"ab" and ours["x"].isnull().values.tolist() == [False, True]


def test_a_short_second_dimension_continues_with_fill_values(xarray, tmp_path):
    # Not compared: netCDF-C 4.10 reads the values of such a variable as if its rows had no gaps.
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    from raddle._xarray import RaddleBackend

    with netcdf.Dataset(tmp_path / "short.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 2)
        file.createVariable("long", "f4", ("time",))[0:3] = 1
        file.createVariable("short", "f4", ("x", "time"), fill_value=-1)[:, 0:1] = [[5], [6]]
    with xarray.open_dataset(tmp_path / "short.nc", engine=RaddleBackend, mask_and_scale=False) as ours:
        assert ours["short"].values.tolist() == [[5, -1, -1], [6, -1, -1]]
        assert ours["short"][1, 2].values == -1 and ours["short"][1, 0].values == 6


def test_xarray_opens_what_its_other_engines_open(xarray, weather, monkeypatch):
    from raddle._xarray import RaddleBackend

    monkeypatch.setenv("HOME", str(weather.parent))
    for source in (f"~/{weather.name}", type(weather)("~", weather.name), weather.read_bytes()):
        with (
            xarray.open_dataset(source, engine=RaddleBackend) as ours,
            xarray.open_dataset(source, engine="h5netcdf") as theirs,
        ):
            xarray.testing.assert_identical(ours, theirs)
    with xarray.open_datatree(f"~/{weather.name}", engine=RaddleBackend) as tree:
        assert "model" in tree


def test_an_axis_with_several_scales_is_named_as_in_other_engines(xarray, tmp_path):
    pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    from raddle._xarray import RaddleBackend

    path = tmp_path / "scales.h5"
    with h5py.File(path, "w", track_order=True) as file:
        for name in "abc":
            file[name] = np.arange(3.0)
            file[name].make_scale(name)
        for name, axes in {"v": ["ba"], "w": ["cb", "a"], "u": ["abc"]}.items():
            file[name] = np.zeros([3] * len(axes))
            for axis, scales in enumerate(axes):
                for scale in scales:
                    file[name].dims[axis].attach_scale(file[scale])
    with (
        xarray.open_dataset(path, engine=RaddleBackend) as ours,
        xarray.open_dataset(path, engine="netcdf4") as theirs,
        xarray.open_dataset(path, engine="h5netcdf") as other,
    ):
        xarray.testing.assert_identical(ours, theirs)
        xarray.testing.assert_identical(ours, other)
