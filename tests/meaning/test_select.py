"""Merges restricted to ranges of dimensions (``--select``): what xarray reads of the same range of all inputs together."""

import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples

MERGING = Merging("select", None)


def grid(times=(5, 4, 3), ny=6, nx=8, *, descending=False, seed=0):
    """Returns a grid with variables of all, some and none of its dimensions, and the number of times of each file."""
    random = np.random.default_rng(seed)
    total = sum(times)
    lat = np.linspace(-75, 75, ny).astype("f4")
    data = {
        "tas": (("time", "lat", "lon"), random.random((total, ny, nx)).astype("f4"), {"units": "K"}),
        "mask": (("lat", "lon"), random.integers(0, 3, (ny, nx)).astype("i2")),
        "back": (("lon", "time"), random.random((nx, total))),
        "series": (("time",), random.integers(0, 99, total)),
        "lat_bounds": (("lat", "bounds"), random.random((ny, 2))),
        "label": (("time",), np.array([f"step {number}" for number in range(total)], dtype=object)),
        "level": ((), 2.5),
        "members": (("member",), random.random(3)),
    }
    hours = xr.Variable(("time",), np.arange(total) * 18.0, {"units": "hours since 2001-01-30", "calendar": "standard"})
    dataset = xr.Dataset(data, {"time": hours, "lat": lat[::-1] if descending else lat, "lon": np.arange(nx) * 45.0})
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    return dataset


def write(folder, dataset, times=(5, 4, 3), storage=None):
    paths, first = [], 0
    for number, count in enumerate(times):
        paths.append(folder / f"part_{number}.nc")
        part = dataset.isel(time=slice(first, first + count))
        part.to_netcdf(paths[-1], unlimited_dims=["time"], encoding={"tas": storage} if storage else None)
        first += count
    return paths


def judge(output, inputs, wanted):
    with xr.open_dataset(output, decode_times=False) as found:
        for name in wanted.variables:
            assert found[name].dims == wanted[name].dims, name
            xr.testing.assert_equal(found[name].variable, wanted[name].variable)
        assert set(found.variables) == set(wanted.variables)
    with netCDF4.Dataset(output) as file:
        for name, dimension in file.dimensions.items():
            assert len(dimension) == wanted.sizes[name], name
    with h5py.File(output) as file:
        for name, item in file.items():
            text = item.attrs.get("NAME", b"")
            if b"not a netCDF variable" in text:
                assert int(text.split()[-1]) == item.shape[0] == wanted.sizes[name]


RANGES = {
    "time": st.one_of(
        st.tuples(st.integers(0, 11), st.integers(1, 12)).filter(lambda pair: pair[0] < pair[1]).map(
            lambda pair: (f"{pair[0]}:{pair[1]}", slice(*pair))
        ),
        st.integers(1, 12).map(lambda count: (f"-{count}:", slice(-count, None))),
    ),
    "lat": st.tuples(st.integers(0, 5), st.integers(1, 6)).filter(lambda pair: pair[0] < pair[1]).map(
        lambda pair: (f"{pair[0]}:{pair[1]}", slice(*pair))
    ),
    "lon": st.integers(0, 7).map(lambda at: (str(at), slice(at, at + 1))),
    "member": st.just((":2", slice(0, 2))),
}


@examples(25)
@given(st.data())
def test_elements(data):
    times = data.draw(st.sampled_from([(5, 4, 3), (12,), (1, 11), (6, 6)]))
    dataset = grid(times, seed=data.draw(st.integers(0, 99)))
    names = data.draw(st.lists(st.sampled_from(sorted(RANGES)), min_size=1, unique=True))
    drawn = {name: data.draw(RANGES[name]) for name in names}
    storage = data.draw(st.sampled_from([None, {"zlib": True, "chunksizes": (2, 3, 8)}]))
    options = data.draw(st.sampled_from([(), ("--chunk", "2x3x4"), ("--contiguous",), ("--for", "timeseries"), ("-c", "keep")]))
    with case_folder() as folder:
        inputs = write(folder, dataset, times, storage)
        select = ", ".join(f"{name}={text}" for name, (text, _) in drawn.items())
        wanted = dataset.isel({name: part for name, (_, part) in drawn.items()})
        MERGING.equal(inputs, "--select", select, *options, judge=judge, wanted=wanted)


@examples(15)
@given(st.data())
def test_values(data):
    dataset = grid(descending=data.draw(st.booleans()), seed=data.draw(st.integers(0, 99)))
    low, high = sorted(data.draw(st.tuples(st.integers(-80, 80), st.integers(-80, 80))))
    first, last = sorted(data.draw(st.tuples(st.integers(0, 360), st.integers(0, 360))))
    wanted = dataset.isel(
        lat=np.flatnonzero((dataset["lat"] >= low) & (dataset["lat"] <= high)),
        lon=np.flatnonzero((dataset["lon"] >= first) & (dataset["lon"] <= last)),
    )
    with case_folder() as folder:
        inputs = write(folder, dataset)
        options = ["--select", f"lat={low}..{high}", "--select", f"lon={first}..{last}"]
        if wanted.sizes["lat"] and wanted.sizes["lon"]:
            MERGING.equal(inputs, *options, judge=judge, wanted=wanted)
        else:
            MERGING.refused(inputs, *options, names=["has no value in"])


def test_integers_are_selected_exactly(tmp_path):
    """Doubles do not distinguish these numbers."""
    station = 2**53 + np.arange(8)
    dataset = xr.Dataset({"x": (("station",), np.arange(8.0), {"_FillValue": np.nan})}, {"station": station})
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"part_{number}.nc")
        dataset.isel(station=slice(4 * number, 4 * number + 4)).to_netcdf(inputs[-1], unlimited_dims=["station"])
    for first, last in [(1, 2), (3, 5), (7, 7)]:
        wanted = dataset.sel(station=slice(station[first], station[last]))
        select = f"station={station[first]}..{station[last]}"
        MERGING.equal(inputs, "--select", select, judge=judge, wanted=wanted)
    MERGING.refused(inputs, "--select", f"station=..{2**53 - 1}", names=["reach from 9007199254740992 to"])


@pytest.mark.parametrize("dates", [("2001-02", "2001-02"), ("2001-02-03", "2001-02-04"), ("2001-01-31T12:00", "2001-02-02T06"),
                                   (None, "2001"), ("2001-02-05", None), ("2001-01-30T00", "2001-02-01T12"),
                                   ("2001-01-30T18:00", "2001-01-31T12:00")])
def test_dates_are_those_that_xarray_selects(tmp_path, dates):
    inputs = write(tmp_path, grid())
    with xr.open_mfdataset(inputs, data_vars="minimal", coords="minimal", compat="equals") as decoded:
        count = decoded.sel(time=slice(*dates)).sizes["time"]
        first = int(np.searchsorted(decoded["time"].values, decoded.sel(time=slice(*dates))["time"].values[0]))
    select = f"time={dates[0] or ''}..{dates[1] or ''}"
    MERGING.equal(inputs, "--select", select, judge=judge, wanted=grid().isel(time=slice(first, first + count)))


@pytest.mark.parametrize(("first", "units"), [(0, "degrees_east"), (0, None), (-180, "degrees_east")])
@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
def test_longitudes_past_the_end_of_the_coordinate(tmp_path, first, units, kind):
    """Elements of a selection follow one another, so the part past the end is not just left out: the refusal tells how to
    get what ncks selects."""
    dataset = grid(nx=36)
    dataset = dataset.assign_coords(lon=("lon", (first + 10 * np.arange(36)).astype(kind), {"units": units} if units else {}))
    inputs = write(tmp_path, dataset)
    parts = {0: ["350..350", "0..10"], -180: ["170..170", "-180..-170"]}[first]
    low, high = {0: (-10, 10), -180: (170, 190)}[first]
    for select in [f"lon={low}..{high}", f"lon={low % 360}..{high % 360}" if first == 0 else "lon=170..-170"]:
        MERGING.refused(inputs, "--select", select, names=["/lon", *parts, "--dim lon", "--select"])
    outputs = [MERGING.equal(inputs, "--select", f"lon={part}", judge=None) for part in parts]
    output = MERGING.equal(outputs, "--dim", "lon", judge=None)
    west, east = {0: ("350.", "10."), -180: ("170.", "-170.")}[first]
    for number, path in enumerate(inputs):
        wrapped = tmp_path / f"wrapped_{number}.nc"
        subprocess.run(["ncks", "-O", "-d", f"lon,{west},{east}", path, wrapped], check=True, timeout=60)
    wanted = xr.open_mfdataset(sorted(tmp_path.glob("wrapped_*.nc")), data_vars="minimal", coords="minimal", compat="equals")
    with xr.open_dataset(output) as found:
        for name in ["tas", "mask", "back", "lon"]:
            xr.testing.assert_equal(found[name].variable, wanted[name].variable)
    # A range on one side of the end has other numbers.
    MERGING.refused(inputs, "--select", f"lon={low - 20}..{low - 10}" if first == 0 else "lon=200..230", names=["/lon", "as such"])
    whole = {0: "0..360", -180: "-180..180"}[first]
    MERGING.equal(inputs, "--select", f"lon={whole}", judge=judge, wanted=dataset)


def test_times_are_those_of_the_output(tmp_path):
    """Files count from different days, are given in another order, and overlap."""
    dataset = grid((12,))
    paths = write(tmp_path, dataset, (12,))
    parts = [slice(8, 12), slice(0, 6), slice(4, 9)]
    inputs = []
    for number, part in enumerate(parts):
        inputs.append(tmp_path / f"shifted_{number}.nc")
        piece = xr.open_dataset(paths[0]).isel(time=part).load()
        piece["time"].encoding.update(units=f"hours since 2001-01-{28 - number}", dtype="f8")
        piece.to_netcdf(inputs[-1], unlimited_dims=["time"])
    options = ["--time-units", "hours since 2001-01-30", "--overlap", "first"]
    output = MERGING.equal(inputs, *options, "--select", "time=2001-02-01..2001-02-05,lat=0..60", judge=None)
    wanted = dataset.isel(lat=slice(3, 5))
    wanted = wanted.isel(time=(wanted["time"] >= 48) & (wanted["time"] < 168))
    with xr.open_dataset(output, decode_times=False) as found:
        np.testing.assert_array_equal(found["time"], wanted["time"])
        np.testing.assert_array_equal(found["tas"], wanted["tas"])
        np.testing.assert_array_equal(found["label"], wanted["label"])


def test_a_selection_is_verified_as_it_was_made(tmp_path, raddle):
    inputs = write(tmp_path, grid())
    output = MERGING.equal(inputs, "--select", "time=3:8,lat=-30..30", judge=None)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    # Another range takes the place of the recorded one, for the inputs only.
    other = raddle("verify", output, "--against", *inputs, "--select", "time=3:9,lat=-30..30", expect=8).stdout
    assert "dimensions are [5] instead of [6]" in other
    plain = MERGING.equal(inputs, "--select", "time=3:8", "--no-provenance", judge=None)
    raddle("verify", plain, "--against", *inputs, "--select", "time=3:8")
    assert "/tas" in raddle("verify", plain, "--against", *inputs, expect=8).stdout
    copy = tmp_path / "copy.nc"
    raddle("rechunk", output, "-o", copy, "--chunk", "time=1")
    raddle("verify", copy, "--against", output)
    again = MERGING.equal([output], "--select", "time=1:3", judge=None)
    raddle("verify", again, "--against", output)
    with xr.open_dataset(again, decode_times=False) as found:
        xr.testing.assert_equal(found["tas"].variable, grid()["tas"].variable[4:6, 2:4])
    assert "merge all inputs again" in raddle("append", output, inputs[2], "--again", expect=3).stderr
    with h5py.File(output, "a") as file:
        file["tas"][1, 1, 5] = -1
    for against in ([], ["--against", *inputs]):
        assert "/tas" in raddle("verify", output, *against, expect=8).stdout


def test_threads_and_parts_write_the_same_bytes(tmp_path, raddle):
    inputs = write(tmp_path, grid())
    options = ["--select", "time=3:8,lat=-30..30", "--chunk", "2x3x4"]
    one, four = (MERGING.equal(inputs, *options, "--jobs", jobs, judge=None) for jobs in (1, 4))
    parts = tmp_path / "parts.nc"
    for part in ("2/3", "3/3", "1/3"):
        raddle("merge", *inputs, "-o", parts, *options, "--part", part)
    assert one.read_bytes() == four.read_bytes() == parts.read_bytes()


def test_tiles_are_restricted_after_they_are_joined(tmp_path):
    dataset = grid((12,)).drop_vars("label")
    inputs = []
    for number, columns in enumerate((slice(0, 3), slice(3, 8))):
        inputs.append(tmp_path / f"tile_{number}.nc")
        dataset.isel(lon=columns).to_netcdf(inputs[-1], unlimited_dims=["time"])
    wanted = dataset.isel(lon=slice(2, 5), time=slice(4, 6))
    MERGING.equal(inputs, "--tiles", "--select", "lon=90..180, time=4:6", judge=judge, wanted=wanted)


def test_plain_files_are_restricted_by_their_scales(tmp_path):
    random = np.random.default_rng(3)
    values = random.random((9, 4))
    inputs = []
    for number, rows in enumerate((slice(0, 5), slice(5, 9))):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            group = file.create_group("run")
            group["depth"] = np.arange(4) * 10
            group["depth"].make_scale("depth")
            group["values"] = values[rows]
            group["values"].dims[1].attach_scale(group["depth"])
            group["values"].dims[0].label = "event"
            group["other"] = np.arange(rows.stop - rows.start)
    output = MERGING.equal(inputs, "--keep", "/run/depth", "--select", "depth=10..25,event=4:7", judge=None)
    with h5py.File(output) as file:
        np.testing.assert_array_equal(file["run/values"], values[4:7, 1:3])
        np.testing.assert_array_equal(file["run/depth"], [10, 20])
        assert file["run/other"].shape == (9,)


def test_names_with_commas(tmp_path, raddle):
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        part = xr.Dataset({"tas": (("time", "x, y", "a,b"), np.arange(60.0).reshape(3, 4, 5) + number)})
        part = part.assign_coords({"a,b": np.arange(5.0), "time": 3.0 * number + np.arange(3)})
        part.to_netcdf(inputs[-1], unlimited_dims=["time"], encoding={"tas": {"_FillValue": None}})
    wanted = xr.concat([xr.open_dataset(path) for path in inputs], "time").isel({"x, y": slice(1, 3), "a,b": slice(2, 5), "time": slice(1, 6)})
    options = ["--select", "x, y=1:3,a,b=2..4,time=1:", "--chunk", "time=2,x, y=1,a,b=3"]
    output = MERGING.equal(inputs, *options, judge=judge, wanted=wanted)
    raddle("verify", output, "--against", *inputs)
    with h5py.File(output) as file:
        assert file["tas"].chunks == (2, 1, 3)
    output = MERGING.equal(inputs, "--layout", "/tas: chunk=(x, y=2, a,b=4), shuffle", judge=None)
    with h5py.File(output) as file:
        assert file["tas"].chunks[1:] == (2, 4)
    MERGING.refused(inputs, "--select", "time,x, y=1:3", names=['no dimension "time,x, y"'])


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("tim=0:3", ['no dimension "tim"', "/time", "/lat"]),
        ("time=0:99", ["/time", "has 12 element(s)", "--select time=0:99"]),
        ("time=5:5", ["/time", "holds none"]),
        ("lat=80..90", ["/lat", "has no value in 80..90", "reach from -75 to 75"]),
        ("lat=30..-30", ["/lat", "the first value is the larger one"]),
        ("member=0..1", ["/member", "no coordinate", "by numbers of elements"]),
        ("time=2001-02-30..", ["/time", "not a date of its calendar"]),
        ("lat=0:2,lat=3:4", ["/lat", "selected twice"]),
    ],
)
def test_ranges_that_select_nothing_clear_are_refused(tmp_path, select, names):
    MERGING.refused(write(tmp_path, grid()), "--select", select, names=names)


def test_positions_along_a_selected_dimension_are_refused(tmp_path):
    stations = xr.Dataset(
        {
            "row_size": (("station",), np.array([2, 3]), {"sample_dimension": "obs"}),
            "temperature": (("obs",), np.arange(5.0)),
        }
    )
    stations.to_netcdf(tmp_path / "ragged.nc")
    for select in ("obs=0:2", "station=0:1"):
        MERGING.refused([tmp_path / "ragged.nc"], "--select", select, names=["/row_size", "sample_dimension"])
    land = xr.Dataset({"land": (("land",), np.array([1, 4]), {"compress": "lat lon"}), "lat": np.arange(2.0), "lon": np.arange(3.0)})
    land.to_netcdf(tmp_path / "gathered.nc")
    MERGING.refused([tmp_path / "gathered.nc"], "--select", "lat=0:1", names=["/land", "compress"])
    MERGING.equal([tmp_path / "gathered.nc"], "--select", "land=0:1", judge=judge, wanted=land.isel(land=slice(0, 1)))


def test_nodes_of_geometries_and_tie_points_are_refused(tmp_path):
    container = {"geometry_type": "line", "node_count": "node_count", "node_coordinates": "x y"}
    lines = xr.Dataset(
        {
            "lines": ((), 0, container),
            "node_count": (("instance",), np.array([2, 3, 4])),
            "x": (("node",), np.arange(9.0)),
            "y": (("node",), np.arange(9.0)),
            "flow": (("instance", "time"), np.arange(6.0).reshape(3, 2), {"geometry": "lines"}),
        }
    )
    tie_points = xr.Dataset(
        {
            "interpolation": ((), 0, {"interpolation_name": "linear", "tie_point_mapping": "x: x_indices tie_x"}),
            "x_indices": (("tie_x",), np.array([0, 4, 8])),
            "lon": (("tie_x",), np.arange(3.0)),
            "swath": (("x",), np.arange(9.0), {"coordinate_interpolation": "lon: interpolation"}),
        }
    )
    for name, dataset in (("lines.nc", lines), ("tie_points.nc", tie_points)):
        for variable in dataset.variables.values():
            variable.encoding["_FillValue"] = None
        dataset.to_netcdf(tmp_path / name)
    for select in ("instance=1:3", "node=2:5"):
        MERGING.refused([tmp_path / "lines.nc"], "--select", select, names=["/lines", "positions"])
    MERGING.equal([tmp_path / "lines.nc"], "--select", "time=1", judge=judge, wanted=lines.isel(time=slice(1, 2)))
    for select in ("x=2:5", "tie_x=0:2"):
        MERGING.refused([tmp_path / "tie_points.nc"], "--select", select, names=["/interpolation", "tie_point_mapping"])


def test_all_scales_of_an_axis_are_restricted(tmp_path):
    path = tmp_path / "spectra.h5"
    with h5py.File(path, "w") as file:
        scales = {"energy": np.arange(6.0), "wavelength": 12.4 / np.arange(1.0, 7.0), "run": np.arange(3)}
        for name, values in scales.items():
            file[name] = values
            file[name].make_scale(name)
        file["counts"] = np.arange(18).reshape(3, 6)
        file["counts"].dims[0].attach_scale(file["run"])
        file["response"] = np.arange(6) * 10
        for dimension in (file["counts"].dims[1], file["response"].dims[0]):
            dimension.attach_scale(file["energy"])
        file["counts"].dims[1].attach_scale(file["wavelength"])
        file["counts"].dims[1].label = "channel"
    for select in ("energy=2..4", "wavelength=2:5", "energy=2:5,wavelength=2:5", "channel=2:5"):
        output = MERGING.equal([path], "--select", select, judge=None)
        with h5py.File(output) as found, h5py.File(path) as source:
            np.testing.assert_array_equal(found["counts"], source["counts"][:, 2:5])
            np.testing.assert_array_equal(found["response"], source["response"][2:5])
            for number, name in enumerate(("energy", "wavelength")):
                np.testing.assert_array_equal(found["counts"].dims[1][number], source[name][2:5])
    MERGING.refused([path], "--select", "energy=2:5,wavelength=2:6", names=["/counts", "/energy", "/wavelength", "one axis"])


def test_region_references_to_restricted_datasets_are_refused(tmp_path):
    path = tmp_path / "regions.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10.0)
        file["x"].make_scale("x")
        file["signal"] = np.arange(10)
        file["signal"].dims[0].attach_scale(file["x"])
        file.attrs["peak"] = file["signal"].regionref[7:9]
    MERGING.refused([path], "--select", "x=5:10", names=["region references", "--exclude"])


@pytest.mark.parametrize("select", ["time", "time=a:b", "=0:3", "time=0:4:2", "time=0:3,", "time=0:3,lat"])
def test_strings_that_are_no_ranges_are_refused(tmp_path, raddle, select):
    [path, *_] = write(tmp_path, grid())
    refused = raddle("merge", path, "-o", tmp_path / "out.nc", "--select", select, expect=2)
    assert "is not a range of a dimension" in refused.stderr


@pytest.mark.parametrize("option", [["--link", "virtual"], ["--union"], ["--keys", "run"], ["--attributes", "stack"]])
def test_options_that_contradict_a_selection_are_refused(tmp_path, raddle, option):
    [path, *_] = write(tmp_path, grid())
    refused = raddle("merge", path, "-o", tmp_path / "out.nc", "--select", "time=0:1", *option, expect=2)
    assert "leave out --select" in refused.stderr
