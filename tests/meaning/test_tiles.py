"""Merges of files that each hold a tile of a larger grid: equal to what xarray and CDO join, holes and halos included."""

import itertools
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples

MERGING = Merging("tiles", None)


def grid(times=3, ny=7, nx=9, descending=False, seed=0):
    """Returns a grid with variables of all, some and none of its dimensions."""
    random = np.random.default_rng(seed)
    y = np.linspace(90, -90, ny) if descending else np.linspace(-90, 90, ny)
    data = {
        "tas": (("time", "y", "x"), random.random((times, ny, nx)).astype("f4"), {"units": "K"}),
        "mask": (("y", "x"), random.integers(0, 3, (ny, nx)).astype("i2")),
        "of_y": (("y",), random.random(ny)),
        "back": (("x", "time"), random.random((nx, times))),
        "series": (("time",), random.random(times)),
        "y_bounds": (("y", "bounds"), random.random((ny, 2))),
        "lat": (("y", "x"), random.random((ny, nx))),
        "level": ((), 2.5),
    }
    coordinates = {"time": ("time", np.arange(times), {"units": "days since 2000-01-01"}), "y": y, "x": np.arange(nx) * 1.5}
    dataset = xr.Dataset(data, coordinates)
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    return dataset


def cuts(size, at):
    """Returns the slices between positions."""
    bounds = [0, *sorted(set(at) - {0, size}), size]
    return [slice(start, end) for start, end in zip(bounds, bounds[1:])]


def write_tiles(folder, dataset, of_y, of_x, engine="netcdf4", storage=None, halo=0, skip=()):
    paths = []
    for number, (rows, columns) in enumerate(itertools.product(of_y, of_x)):
        if number in skip:
            continue
        wide = [slice(max(part.start - halo, 0), part.stop + halo) for part in (rows, columns)]
        paths.append(folder / f"tile_{number}.nc")
        encoding = {"tas": storage} if storage else None
        dataset.isel(y=wide[0], x=wide[1]).to_netcdf(paths[-1], engine=engine, encoding=encoding, unlimited_dims=["time"])
    return paths


def judge(output, inputs, whole=None):
    """The output is what xarray combines by coordinates, or the ``whole`` grid from which the tiles were cut."""
    if whole is None:
        parts = [xr.open_dataset(path, decode_times=False) for path in inputs]
        whole = xr.combine_by_coords(parts, data_vars="minimal", coords="minimal", compat="equals", join="outer")
    with xr.open_dataset(output, decode_times=False) as merged:
        assert set(merged.variables) == set(whole.variables)
        for name in whole.variables:
            wanted = whole[name].variable.transpose(*merged[name].dims)
            xr.testing.assert_equal(merged[name].variable, wanted)
            assert merged[name].dtype == wanted.dtype, name
    with h5py.File(output) as merged:
        for item in merged.values():
            name = item.attrs.get("NAME", b"")
            if b"not a netCDF variable" not in name and "REFERENCE_LIST" in item.attrs:
                for place, axis in item.attrs["REFERENCE_LIST"]:
                    assert merged[place].shape[axis] == item.shape[0]


@examples(20)
@given(st.data())
def test_tiles_by_coordinates(data):
    dataset = grid(seed=data.draw(st.integers(0, 99)), descending=data.draw(st.booleans()))
    positions = st.lists(st.integers(0, 9), max_size=3)
    of_y = cuts(7, [at for at in data.draw(positions) if at < 7])
    of_x = cuts(9, [3, *data.draw(positions)])
    storage = data.draw(st.sampled_from([None, {"zlib": True, "chunksizes": (1, 1, 1)}]))
    options = data.draw(st.sampled_from([(), ("--chunk", "2x3x4"), ("--memory", "64MiB", "--jobs", "3"), ("--contiguous",)]))
    with case_folder() as folder:
        inputs = write_tiles(folder, dataset, of_y, of_x, data.draw(st.sampled_from(["netcdf4", "h5netcdf"])), storage)
        order = data.draw(st.permutations(inputs))
        MERGING.equal(order, "--tiles", "--order", "given", *options, judge=judge)


def test_tiles_are_verified_by_their_inputs_and_by_digests(tmp_path, raddle):
    inputs = write_tiles(tmp_path, grid(), cuts(7, [4]), cuts(9, [2, 5]))
    output = MERGING.equal(inputs, "--tiles", judge=judge)
    plan = raddle("plan", *inputs, "--tiles").stdout
    assert "/tas: tiles along axes" in plan and "/series" in plan
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    with h5py.File(output, "a") as file:
        file["tas"][1, 5, 6] = -1
    for against in ([], ["--against", *inputs]):
        assert "/tas" in raddle("verify", output, *against, expect=8).stdout


def test_threads_and_parts_write_the_same_bytes(tmp_path, raddle):
    inputs = write_tiles(tmp_path, grid(), cuts(7, [4]), cuts(9, [2, 5]), skip=[1])
    options = ["--tiles", "--chunk", "2x3x4"]
    one, four = (MERGING.equal(inputs, *options, "--jobs", jobs, judge=None) for jobs in (1, 4))
    parts = tmp_path / "parts.nc"
    for part in ("2/3", "3/3", "1/3"):
        raddle("merge", *inputs, "-o", parts, *options, "--part", part)
    assert one.read_bytes() == four.read_bytes() == parts.read_bytes()


def test_time_is_one_of_the_dimensions_of_coordinates(tmp_path):
    """As in ``xarray.combine_by_coords``, files may also hold different times."""
    dataset, inputs = grid(times=4), []
    for number, (times, columns) in enumerate(itertools.product(cuts(4, [1]), cuts(9, [5]))):
        inputs.append(tmp_path / f"{number}.nc")
        dataset.isel(time=times, x=columns).to_netcdf(inputs[-1])
    MERGING.equal(inputs, "--tiles", judge=judge, whole=dataset)


@pytest.mark.parametrize("halo", [1, 2])
def test_halos_that_agree(tmp_path, raddle, halo):
    dataset = grid()
    inputs = write_tiles(tmp_path, dataset, cuts(7, [4]), cuts(9, [3, 6]), halo=halo)
    output = MERGING.equal(inputs, "--tiles", judge=judge, whole=dataset)
    raddle("verify", output, "--against", *inputs)


def test_halos_that_differ_are_refused(tmp_path):
    inputs = write_tiles(tmp_path, grid(), cuts(7, []), cuts(9, [5]), halo=1)
    with netCDF4.Dataset(inputs[1], "a") as file:
        before = float(file["tas"][2, 3, 1])
        file["tas"][2, 3, 1] = 500
    names = ["/tas", "(2, 3, 5)", "500.0", f"{before:.5}"[:5], "tile_0.nc", "tile_1.nc"]
    MERGING.refused(inputs, "--tiles", names=names)


def test_variables_of_no_tiled_dimension_must_be_equal(tmp_path):
    inputs = write_tiles(tmp_path, grid(), cuts(7, []), cuts(9, [5]))
    with netCDF4.Dataset(inputs[1], "a") as file:
        file["series"][1] = 7
    MERGING.refused(inputs, "--tiles", names=["/series", "7.0", "(1)"])
    with netCDF4.Dataset(inputs[1], "a") as file:
        file["level"][()] = 7
    MERGING.refused(inputs, "--tiles", names=["/level", "2.5", "7.0"])


def test_holes_are_fill_value_and_counted(tmp_path, raddle):
    dataset = grid().drop_vars("mask")
    dataset["count"] = ("y", "x"), np.ones((7, 9), "i4"), {"_FillValue": np.int32(-5)}
    del dataset["count"].attrs["_FillValue"]
    dataset["count"].encoding["_FillValue"] = -5
    dataset["tas"].encoding["_FillValue"] = np.float32(-1e30)
    inputs = write_tiles(tmp_path, dataset, cuts(7, [4]), cuts(9, [3, 6]), skip=[2])
    planned = raddle("plan", *inputs, "--tiles")
    assert "36 of 189" in planned.stdout + planned.stderr
    output = tmp_path / "out.nc"
    finished = raddle("merge", *inputs, "-o", output, "--tiles")
    assert "36 of 189" in finished.stderr
    with netCDF4.Dataset(output) as merged:
        assert merged["tas"][:].mask.sum() == 36 and merged["count"][:].mask.sum() == 12
        merged.set_auto_mask(False)
        assert (merged["tas"][:, :4, 6:] == np.float32(-1e30)).all() and (merged["count"][:4, 6:] == -5).all()
    with xr.open_dataset(output, decode_times=False) as merged:
        holes = merged["tas"].isnull()
        assert int(holes.sum()) == 36 and bool(holes[:, :4, 6:].all())
        assert int(merged["lat"].isnull().sum()) == 12, "NaN, which the output names in _FillValue"
        xr.testing.assert_equal(merged["tas"].where(~holes), dataset["tas"].where(~holes))
        np.testing.assert_array_equal(merged["of_y"], dataset["of_y"])
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_holes_without_a_value_are_refused(tmp_path):
    dataset = grid()
    dataset["flags"] = ("y", "x"), np.ones((7, 9), "u1")
    inputs = write_tiles(tmp_path, dataset, cuts(7, [4]), cuts(9, [3]), skip=[3])
    MERGING.refused(inputs, "--tiles", names=["/flags", "_FillValue", "18 of 63", "--exclude"])


def test_coordinates_that_do_not_place_tiles(tmp_path):
    dataset = grid()
    same = write_tiles(tmp_path, dataset, cuts(7, []), cuts(9, []))
    copy = tmp_path / "copy.nc"
    shutil.copy(same[0], copy)
    MERGING.refused([same[0], copy], "--tiles", names=["same values of all coordinates", "/x", "/y"])
    woven = [tmp_path / f"woven{start}.nc" for start in range(2)]
    for start, path in enumerate(woven):
        dataset.isel(x=slice(start, None, 2)).to_netcdf(path)
    MERGING.refused(woven, "--tiles", names=["/x", "consecutive", "elements 0 and 1"])
    turned = [tmp_path / f"turned{part}.nc" for part in range(2)]
    dataset.isel(x=slice(0, 4)).to_netcdf(turned[0])
    dataset.isel(x=slice(None, 3, -1)).to_netcdf(turned[1])
    MERGING.refused(turned, "--tiles", names=["/x", "another order"])
    for part, path in enumerate(turned):
        dataset.isel(x=slice(4 * part, 4 * part + 4)).drop_vars(["x", "y", "time"]).to_netcdf(path)
    MERGING.refused(turned, "--tiles", names=["neither coordinates", "domain_decomposition"])


def test_a_coordinate_that_all_tiles_share_may_have_any_order(tmp_path):
    dataset = grid().isel(x=[5, 6, 7, 8, 0, 1, 2, 3, 4])
    MERGING.equal(write_tiles(tmp_path, dataset, cuts(7, [3]), cuts(9, [])), "--tiles", judge=judge, whole=dataset)


def test_tiles_in_other_units_are_refused(tmp_path):
    inputs = write_tiles(tmp_path, grid(), cuts(7, []), cuts(9, [5]))
    cold = grid().isel(x=slice(5, 9))
    cold["tas"].attrs["units"] = "degC"
    inputs[1].unlink()
    cold.to_netcdf(inputs[1], unlimited_dims=["time"])
    MERGING.refused(inputs, "--tiles", names=["/tas", "units", "K", "degC"])


def write_fms(folder, dataset, of_y, of_x, first=1, skip=()):
    """Writes tiles as the FMS of GFDL does: the same name with a number, and domain_decomposition of coordinates."""
    paths = []
    for number, (rows, columns) in enumerate(itertools.product(of_y, of_x)):
        if number in skip:
            continue
        tile = dataset.isel(y=rows, x=columns)
        for name, part in (("y", rows), ("x", columns)):
            ends = [first, first + dataset.sizes[name] - 1, first + part.start, first + part.stop - 1]
            tile[name].attrs["domain_decomposition"] = np.array(ends, "i4")
        paths.append(folder / f"ocean.nc.{number:04}")
        tile.attrs["NumFilesInSet"] = np.int32(len(of_y) * len(of_x))
        tile.to_netcdf(paths[-1], unlimited_dims=["time"], engine="netcdf4")
    return paths


@pytest.mark.parametrize("first", [1, 0, -3])
def test_tiles_of_fms(tmp_path, raddle, first):
    dataset = grid().assign_coords(x=np.full(9, 4.0))  # A curvilinear grid repeats its coordinates.
    inputs = write_fms(tmp_path, dataset, cuts(7, [2, 5]), cuts(9, [4]), first)
    output = MERGING.equal(inputs, "--tiles", output=tmp_path / "ocean.nc", judge=judge, whole=dataset)
    with netCDF4.Dataset(output) as merged:
        assert "domain_decomposition" not in merged["x"].ncattrs() and "NumFilesInSet" not in merged.ncattrs()
    raddle("verify", output, "--against", *inputs)


def test_attributes_that_contradict_each_other(tmp_path):
    dataset = grid()
    inputs = write_fms(tmp_path, dataset, cuts(7, []), cuts(9, [4]))

    def set_place(path, values):
        with h5py.File(path, "a") as file:
            file["x"].attrs["domain_decomposition"] = np.array(values, "i4")

    set_place(inputs[1], [1, 12, 5, 9])
    MERGING.refused(inputs, "--tiles", names=["/x", "domain_decomposition", "1 to 9", "1 to 12", "ocean.nc.0001"])
    set_place(inputs[1], [1, 9, 5, 10])
    MERGING.refused(inputs, "--tiles", names=["/x", "domain_decomposition", "5 to 10"])
    set_place(inputs[1], [1, 9, 6, 9])
    MERGING.refused(inputs, "--tiles", names=["/tas", "(3, 7, 4)", "(3, 7, 5)"])
    set_place(inputs[1], [1, 9])
    MERGING.refused(inputs, "--tiles", names=["/x", "domain_decomposition"])
    set_place(inputs[1], [1, 9, 4, 8])
    MERGING.refused(inputs, "--tiles", names=["/tas", "ocean.nc.0000", "ocean.nc.0001"])


def write_wrf(folder, dataset, of_y, of_x):
    """Writes patches as WRF does (io_form 102): dimensions without coordinates, and attributes of the file."""
    paths, (ny, nx) = [], (dataset.sizes["south_north"], dataset.sizes["west_east"])
    for number, (rows, columns) in enumerate(itertools.product(of_y, of_x)):
        staggered = slice(columns.start, columns.stop + (columns.stop == nx))
        tile = dataset.isel(south_north=rows, west_east=columns, west_east_stag=staggered)
        for prefix, part, size in (("WEST-EAST", columns, nx), ("SOUTH-NORTH", rows, ny)):
            tile.attrs[f"{prefix}_GRID_DIMENSION"] = np.int32(size + 1)
            for end, last in (("UNSTAG", part.stop), ("STAG", part.stop + (part.stop == size))):
                tile.attrs[f"{prefix}_PATCH_START_{end}"] = np.int32(part.start + 1)
                tile.attrs[f"{prefix}_PATCH_END_{end}"] = np.int32(last)
        paths.append(folder / f"wrfout_d01_{number:04}")
        tile.to_netcdf(paths[-1], unlimited_dims=["Time"], engine="netcdf4")
    return paths


def test_patches_of_wrf(tmp_path, raddle):
    random = np.random.default_rng(0)
    names = ("Time", "bottom_top", "south_north")
    dataset = xr.Dataset({
        "T2": (("Time", "south_north", "west_east"), random.random((2, 5, 6)).astype("f4")),
        "U": ((*names, "west_east_stag"), random.random((2, 3, 5, 7)).astype("f4")),
        "ZNU": (("Time", "bottom_top"), random.random((2, 3)).astype("f4")),
        "Times": (("Time",), np.array([b"2000-01-01_00:00:00", b"2000-01-01_06:00:00"])),
    })  # fmt: skip
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    inputs = write_wrf(tmp_path, dataset, cuts(5, [2]), cuts(6, [3, 4]))
    output = MERGING.equal(inputs, "--tiles", judge=judge, whole=dataset)
    with netCDF4.Dataset(output) as merged:
        assert {name: len(item) for name, item in merged.dimensions.items() if "string" not in name and "Date" not in name} == {
            "Time": 2, "bottom_top": 3, "south_north": 5, "west_east": 6, "west_east_stag": 7,
        }  # fmt: skip
        ends = {name: int(merged.getncattr(name)) for name in merged.ncattrs() if "PATCH" in name}
        assert ends["WEST-EAST_PATCH_START_STAG"] == 1 and ends["WEST-EAST_PATCH_END_STAG"] == 7
        assert ends["SOUTH-NORTH_PATCH_END_UNSTAG"] == 5
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("is_tiled", [True, False])
def test_a_selection_of_a_grid_of_wrf_is_a_patch(tmp_path, raddle, is_tiled):
    """Its attributes give its place, so the parts of a grid can be joined again."""
    random = np.random.default_rng(0)
    dataset = xr.Dataset({
        "T2": (("Time", "south_north", "west_east"), random.random((2, 5, 6)).astype("f4")),
        "U": (("Time", "south_north", "west_east_stag"), random.random((2, 5, 7)).astype("f4")),
    })  # fmt: skip
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    of_x = cuts(6, [3, 4]) if is_tiled else cuts(6, [])
    inputs = write_wrf(tmp_path, dataset, cuts(5, []), of_x)
    options, parts = ["--tiles"] if is_tiled else [], []
    for first, last in [(0, 2), (2, 6)]:
        parts.append(tmp_path / f"wrfout_d01_part_{first}")
        end = last + (last == 6)
        raddle("merge", *inputs, *options, "-o", parts[-1], "--select", f"west_east={first}:{last},west_east_stag={first}:{end},Time=0:2")
        raddle("verify", parts[-1], "--against", *inputs)
        with netCDF4.Dataset(parts[-1]) as part:
            found = {name: int(part.getncattr(name)) for name in part.ncattrs() if "PATCH" in name}
            names = [f"PATCH_{bound}_{kind}" for kind in ("UNSTAG", "STAG") for bound in ("START", "END")]
            assert [found[f"WEST-EAST_{name}"] for name in names] == [first + 1, last, first + 1, end]
            assert [found[f"SOUTH-NORTH_{name}"] for name in names] == [1, 5, 1, 6 if not is_tiled else found["SOUTH-NORTH_PATCH_END_STAG"]]
            assert part.getncattr("WEST-EAST_GRID_DIMENSION") == 7
    # A part of a part.
    again = tmp_path / "wrfout_d01_again"
    raddle("merge", parts[1], "-o", again, "--select", "west_east=1:3")
    with netCDF4.Dataset(again) as part:
        assert part.getncattr("WEST-EAST_PATCH_START_UNSTAG") == 4 and part.getncattr("WEST-EAST_PATCH_END_UNSTAG") == 5
    MERGING.equal(parts, "--tiles", judge=judge, whole=dataset)


def write_named(folder, dataset, of_y, of_x, name):
    paths = []
    for (row, rows), (column, columns) in itertools.product(enumerate(of_y), enumerate(of_x)):
        paths.append(folder / name(row, column))
        dataset.isel(y=rows, x=columns).drop_vars(["x", "y"]).to_netcdf(paths[-1], unlimited_dims=["time"])
    return paths


@pytest.mark.parametrize("first", [0, 9])
def test_tiles_by_their_names(tmp_path, raddle, first):
    dataset = grid().drop_vars(["x", "y"])
    inputs = write_named(tmp_path, grid(), cuts(7, [2, 5]), cuts(9, [4]), lambda y, x: f"t_{y + first}_{'east' if x else 'a'}.nc")
    options = ["--tiles=t_{y}_{x}.nc"]
    output = MERGING.equal(inputs, *options, output=tmp_path / "out.nc", judge=judge, whole=dataset)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    MERGING.refused(inputs, "--tiles=t_{y}_{z}.nc", names=["no dimension", "z", "/y"])
    MERGING.refused(inputs, "--tiles=u_{y}_{x}.nc", names=["does not match", "u_{y}_{x}.nc"])
    inner = [path for path in inputs if f"t_{first + 1}_" not in path.name]
    MERGING.refused(inner, *options, names=[f"number {first + 2}", f"after {first}", "--tiles=@FILE"])


def test_tiles_by_a_table(tmp_path, raddle):
    dataset = grid().drop_vars(["x", "y", "mask", "back"])
    folder = tmp_path / "tiles"
    folder.mkdir()
    inputs = write_named(folder, grid().drop_vars(["mask", "back"]), cuts(7, [2]), cuts(9, [4]), lambda y, x: f"{y}{x}.nc")
    table = tmp_path / "table.csv"
    table.write_text("path,y,x\n00.nc,0,0\n01.nc,0,4\ntiles/10.nc,2,0\n11.nc,2,4\n")
    output = MERGING.equal(inputs, f"--tiles=@{table}", judge=judge, whole=dataset)
    table.unlink()
    raddle("verify", output, "--against", *inputs)
    table.write_text("path,y,x\n00.nc,0,0\n01.nc,0,4\n11.nc,2,5\n")
    MERGING.refused(inputs, f"--tiles=@{table}", names=["10.nc", "no line in the table"])
    holey = tmp_path / "holey.nc"
    finished = raddle("merge", *inputs[:2], inputs[3], "-o", holey, f"--tiles=@{table}")
    assert "of 210" in finished.stderr
    with netCDF4.Dataset(holey) as merged:
        assert merged["tas"].shape == (3, 7, 10)
        np.testing.assert_array_equal(merged["tas"][:, 2:, 5:], dataset["tas"][:, 2:, 4:])
    table.write_text("path,y,x\n00.nc,0\n")
    assert "line 2" in raddle("merge", *inputs, "-o", tmp_path / "o.nc", f"--tiles=@{table}", expect=2).stderr


@pytest.mark.skipif(not shutil.which("cdo"), reason="CDO is not installed")
def test_cdo_joins_the_same_grid(tmp_path):
    nx, ny = 8, 6
    random = np.random.default_rng(3)
    dataset = xr.Dataset(
        {"tas": (("time", "lat", "lon"), random.random((4, ny, nx)).astype("f4"), {"units": "K"})},
        {
            "time": ("time", np.arange(4.0), {"units": "days since 2000-01-01", "standard_name": "time"}),
            "lat": ("lat", np.linspace(-50, 50, ny), {"units": "degrees_north", "standard_name": "latitude"}),
            "lon": ("lon", np.linspace(0, 70, nx), {"units": "degrees_east", "standard_name": "longitude"}),
        },
    )
    inputs = []
    for number, (rows, columns) in enumerate(itertools.product(cuts(ny, [2]), cuts(nx, [4]))):
        inputs.append(tmp_path / f"tile_{number}.nc")
        dataset.isel(lat=rows, lon=columns).to_netcdf(inputs[-1], unlimited_dims=["time"])
    by_cdo = tmp_path / "cdo.nc"
    subprocess.run(["cdo", "-s", "collgrid", *inputs, by_cdo], check=True, capture_output=True)
    output = MERGING.equal(inputs, "--tiles", output=tmp_path / "raddle.nc", judge=judge, whole=dataset)
    with xr.open_dataset(by_cdo) as wanted, xr.open_dataset(output) as merged:
        xr.testing.assert_equal(merged["tas"], wanted["tas"])
    compared = subprocess.run(["cdo", "-s", "diffn", output, by_cdo], capture_output=True, text=True, check=False)
    assert not compared.stdout.strip(), compared.stdout


def test_plain_hdf5_with_scales(tmp_path):
    """Scales made by h5py are the coordinates."""
    inputs = [tmp_path / f"{part}.h5" for part in range(3)]
    for part, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = np.arange(2.0) + 2 * part, np.arange(3.0)
            file["image"] = np.arange(6.0).reshape(3, 2) + 100 * part
            for axis, name in enumerate(["y", "x"]):
                file[name].make_scale(name)
                file["image"].dims[axis].attach_scale(file[name])
    output = MERGING.equal(inputs, "--tiles", judge=judge)
    with h5py.File(output) as merged:
        parts = [h5py.File(path)["image"][:] for path in inputs]
        np.testing.assert_array_equal(merged["image"], np.concatenate(parts, 1))
    plain = [tmp_path / f"plain{part}.h5" for part in range(2)]
    for path in plain:
        with h5py.File(path, "w") as file:
            file["a"] = np.ones(3)
    MERGING.refused(plain, "--tiles", names=["no dimension scales", "--tiles"])


def test_a_grid_is_not_appended_to(tmp_path, raddle):
    inputs = write_tiles(tmp_path, grid(), cuts(7, []), cuts(9, [3, 6]))
    output = MERGING.equal(inputs[:2], "--tiles", judge=judge)
    assert "--tiles" in raddle("append", output, inputs[2], expect=3).stderr


@pytest.mark.parametrize("option", ["--dim=x", "--new-dim=x", "--axis=1", "--packing=unpack", "--overlap=first", "--keys=/x",
                                    "--union", "--add-column=run=@run"])  # fmt: skip
def test_options_without_effect_on_tiles(tmp_path, raddle, option):
    inputs = write_tiles(tmp_path, grid(), cuts(7, []), cuts(9, [5]))
    finished = raddle("merge", *inputs, "-o", tmp_path / "out.nc", "--tiles", option, expect=2)
    assert "--tiles" in finished.stderr and not (tmp_path / "out.nc").exists()


NUMBERED = {"signed": ["-60", "-30", "0", "30"], "decimal": ["1.5", "2.5", "10.5"], "mixed": ["0", "7.5", "15", "-22.5"]}


@pytest.mark.parametrize("numbers", NUMBERED.values(), ids=NUMBERED)
def test_numbers_in_names_are_sorted_as_numbers(tmp_path, raddle, numbers):
    inputs = []
    for number, text in enumerate(numbers):
        inputs.append(tmp_path / f"t_{text}.nc")
        xr.Dataset({"a": (("lat", "x"), np.full((1, 2), number))}).to_netcdf(inputs[-1])
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, "--tiles=t_{lat}.nc")
    with xr.open_dataset(output) as merged:
        assert merged["a"][:, 0].values.tolist() == sorted(range(len(numbers)), key=lambda number: float(numbers[number]))


@pytest.mark.parametrize("texts", [["ok"] * 3, ["a", "b", "c"]])
def test_strings_along_a_tiled_dimension_are_refused(tmp_path, texts):
    inputs = [tmp_path / f"{number}.nc" for number in range(2)]
    for number, path in enumerate(inputs):
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("x", 3)
            file.createVariable("x", "f8", ("x",))[:] = 3 * number + np.arange(3)
            file.createVariable("flag", str, ("x",))[:] = np.array(texts, object)
            file.createVariable("a", "f4", ("x",))[:] = number
    MERGING.refused(inputs, "--tiles", names=["/flag", "--exclude"])
    output = MERGING.equal(inputs, "--tiles", "--exclude", "flag", judge=None)
    with xr.open_dataset(output) as merged:
        assert merged["a"].values.tolist() == [0, 0, 0, 1, 1, 1]


def test_elements_that_were_never_written_stay_missing(tmp_path, raddle):
    """The netCDF library regards them as missing, without an attribute that states it."""
    inputs = [tmp_path / f"{number}.nc" for number in range(2)]
    for path, start, rows, written in zip(inputs, [0, 2], [4, 2], [3, 2]):
        with netCDF4.Dataset(path, "w") as file:
            for name, values in {"y": np.arange(rows), "x": start + np.arange(2)}.items():
                file.createDimension(name, len(values))
                file.createVariable(name, "f8", (name,))[:] = values
            file.createVariable("a", "f4", ("y", "x"))[:written] = 1
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, "--tiles")
    with netCDF4.Dataset(output) as merged:
        assert merged["a"][:].tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, None, None], [None] * 4]


def test_variables_without_a_tiled_dimension_have_files_of_their_own(tmp_path, raddle):
    whole = grid()
    inputs = write_tiles(tmp_path, whole, cuts(7, [3]), cuts(9, [4]))
    folder = tmp_path / "split"
    raddle("split", *inputs, "--tiles", "--by", "variable", "--dir", folder)
    for name in ["series", "tas"]:
        with xr.open_dataset(folder / f"{name}.nc", decode_times=False) as part:
            np.testing.assert_array_equal(part[name], whole[name])
