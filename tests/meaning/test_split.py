"""Merges that are divided into several files: together they are what xarray reads of all inputs."""

import json
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pandas
import pytest
import scipy.sparse
import xarray as xr
from merging import _without_wraps


def model(times=12, seed=0):
    """Returns the output of a model: variables of several shapes, what describes them, and a mapping."""
    random = np.random.default_rng(seed)
    days = np.arange(times) * 1.0
    data = {
        "tas": (("time", "y", "x"), random.random((times, 4, 5)).astype("f4"), {"grid_mapping": "crs", "coordinates": "lat lon height"}),
        "ta": (("time", "lev", "y", "x"), random.random((times, 3, 4, 5)).astype("f4"), {"cell_measures": "area: areacella"}),
        "ps": (("time", "y", "x"), random.random((times, 4, 5))),
        "co2": (("time",), random.random(times)),
        "orog": (("y", "x"), random.random((4, 5))),
        "areacella": (("y", "x"), random.random((4, 5))),
        "lat": (("y", "x"), random.random((4, 5))),
        "lon": (("y", "x"), random.random((4, 5))),
        "time_bnds": (("time", "bnds"), np.stack([days, days + 1], 1)),
        "crs": ((), 0, {"grid_mapping_name": "latitude_longitude"}),
        "height": ((), 2.0),
        "p0": ((), 1e5),
        "release": ((), 7.0),
        "a": (("lev",), random.random(3)),
    }
    coordinates = {
        "time": ("time", days, {"units": "days since 2000-01-01", "calendar": "noleap", "bounds": "time_bnds"}),
        "lev": ("lev", np.arange(3.0), {"formula_terms": "a: a p0: p0 ps: ps", "positive": "down"}),
        "x": np.arange(5.0),
        "y": np.arange(4.0),
    }
    dataset = xr.Dataset(data, coordinates, {"Conventions": "CF-1.11", "source": "model"})
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    return dataset


def write(folder, dataset, counts):
    folder.mkdir(exist_ok=True)
    paths, first = [], 0
    for number, count in enumerate(counts):
        paths.append(folder / f"model_{number}.nc")
        dataset.isel(time=slice(first, first + count)).to_netcdf(paths[-1], unlimited_dims=["time"])
        first += count
    return paths


def opened(path):
    return xr.open_dataset(path, decode_cf=False)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


DESCRIBED = {
    "tas": {"time", "time_bnds", "y", "x", "lat", "lon", "height", "crs"},
    "ta": {"time", "time_bnds", "lev", "y", "x", "areacella", "a", "p0", "ps"},
    "ps": {"time", "time_bnds", "y", "x"},
    "co2": {"time", "time_bnds"},
    "orog": {"y", "x"},
}


def test_a_file_per_variable_has_what_describes_it(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 4, 3))
    wanted = opened(write(tmp_path / "whole", model(), (12,))[0])
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out")
    assert files(tmp_path / "out") == sorted(f"{name}.nc" for name in DESCRIBED)
    for name, described in DESCRIBED.items():
        path = tmp_path / "out" / f"{name}.nc"
        with opened(path) as found:
            # The scalar that nothing names is in every file.
            assert set(found.variables) == {name, "release", *described}, name
            for variable in found.variables:
                xr.testing.assert_identical(found[variable].variable, wanted[variable].variable)
            assert found.attrs["source"] == "model"
        with netCDF4.Dataset(path) as file:
            assert file.dimensions.keys() == {dim for variable in found.variables for dim in wanted[variable].dims}
        raddle("verify", path)
        raddle("verify", path, "--against", *(inputs if "time" in described else inputs[:1]))


def test_a_file_has_as_many_times_as_asked(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 4, 3))
    raddle("split", *inputs, "--rows-per-file", 5, "--dir", tmp_path / "out", "--name", "run")
    assert files(tmp_path / "out") == [f"run_000{number}.nc" for number in (1, 2, 3)]
    wanted = opened(write(tmp_path / "whole", model(), (12,))[0])
    for number, times in enumerate((slice(0, 5), slice(5, 10), slice(10, 12)), 1):
        path = tmp_path / "out" / f"run_000{number}.nc"
        with opened(path) as found:
            xr.testing.assert_identical(found.drop_attrs(deep=False), wanted.isel(time=times).drop_attrs(deep=False))
        raddle("verify", path, "--against", *inputs)


def test_a_selection_is_divided(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 4, 3))
    raddle("split", *inputs, "--rows-per-file", 4, "--dir", tmp_path / "out", "--select", "time=2000-01-03..2000-01-11, x=1:3")
    wanted = opened(write(tmp_path / "whole", model(), (12,))[0]).isel(x=slice(1, 3))
    assert files(tmp_path / "out") == [f"part_000{number}.nc" for number in (1, 2, 3)]
    for number, times in enumerate((slice(2, 6), slice(6, 10), slice(10, 11)), 1):
        path = tmp_path / "out" / f"part_000{number}.nc"
        with opened(path) as found:
            xr.testing.assert_equal(found, wanted.isel(time=times))
        raddle("verify", path, "--against", *inputs)


@pytest.mark.parametrize(
    "options",
    [["--select", "x=1:3,time=2000-01-03..2000-01-08"], ["--dim", "time"], ["--rule", "/co2: concatenate"]],
    ids=lambda options: options[0],
)
def test_options_hold_for_the_variables_that_they_concern(tmp_path, raddle, options):
    inputs = write(tmp_path / "in", model(), (5, 4, 3))
    wanted = opened(write(tmp_path / "whole", model(), (12,))[0])
    if options[0] == "--select":
        wanted = wanted.isel(x=slice(1, 3), time=slice(2, 8))
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out", *options)
    for name, described in DESCRIBED.items():
        with opened(tmp_path / "out" / f"{name}.nc") as found:
            assert set(found.variables) == {name, "release", *described}
            xr.testing.assert_equal(found[name].variable, wanted[name].variable)
        raddle("verify", tmp_path / "out" / f"{name}.nc", "--against", *(inputs if "time" in described else inputs[:1]))


def test_stacked_files_are_divided(tmp_path, raddle):
    whole = model()
    for number in range(3):
        part = whole.isel(time=0, drop=True).drop_vars(["time_bnds", "co2"]).assign(run=float(number))
        part["tas"] = part["tas"] + number
        part["ta"].attrs.pop("cell_measures")
        part.to_netcdf(tmp_path / f"run{number}.nc")
    inputs = sorted(tmp_path.glob("run*.nc"))
    raddle("merge", *inputs, "-o", tmp_path / "all.nc", "--new-dim", "run")
    raddle("split", *inputs, "--new-dim", "run", "--rows-per-file", 2, "--dir", tmp_path / "rows")
    raddle("split", *inputs, "--new-dim", "run", "--by", "variable", "--dir", tmp_path / "variables")
    with opened(tmp_path / "all.nc") as wanted:
        for number, runs in ((1, slice(0, 2)), (2, slice(2, 3))):
            with opened(tmp_path / "rows" / f"part_000{number}.nc") as found:
                xr.testing.assert_equal(found, wanted.isel(run=runs))
        for path in (tmp_path / "variables").iterdir():
            with opened(path) as found:
                assert path.stem in found
                for name in found.variables:
                    xr.testing.assert_equal(found[name].variable, wanted[name].variable)
        assert {"tas.nc", "ta.nc", "orog.nc"} <= {path.name for path in (tmp_path / "variables").iterdir()}


def test_a_variable_that_is_shorter_than_its_dimension_counts_in_each_row(tmp_path, raddle):
    path = tmp_path / "short.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 4)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = np.arange(50)
        file.createVariable("long", "f8", ("time", "x"))[:] = np.arange(200).reshape(50, 4)
        file.createVariable("short", "f8", ("time", "x"), chunksizes=(1, 4))[:10] = np.arange(40).reshape(10, 4)
    raddle("split", path, "--size-per-file", 1500, "--dir", tmp_path / "out")
    for part in (tmp_path / "out").iterdir():
        with h5py.File(part) as file:
            assert sum(file[name].nbytes for name in ("time", "long", "short")) <= 1500
    assert len(files(tmp_path / "out")) == 3


def test_files_of_coordinates_or_scalars_only(tmp_path, raddle):
    xr.Dataset(coords={"x": np.arange(3.0), "y": np.arange(2.0)}).to_netcdf(tmp_path / "axes.nc")
    xr.Dataset({"a": ((), 1.0), "b": ((), 2.0)}).to_netcdf(tmp_path / "scalars.nc")
    raddle("split", tmp_path / "axes.nc", "--by", "variable", "--dir", tmp_path / "axes")
    assert files(tmp_path / "axes") == ["x.nc", "y.nc"]
    raddle("split", tmp_path / "scalars.nc", "--by", "variable", "--dir", tmp_path / "scalars")
    with opened(tmp_path / "scalars" / "a.nc") as found:
        assert set(found.variables) == {"a", "b"}


def test_variables_are_divided_by_size(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 7))
    raddle("split", *inputs, "--by", "variable", "--size-per-file", "1000", "--dir", tmp_path / "out", "--include", "ta", "--include", "tas",
           "--include", "lev", "--include", "x", "--include", "y", "--include", "time")
    whole = model()
    for name in ("ta", "tas"):
        parts = sorted((tmp_path / "out").glob(f"{name}_*.nc"))
        assert len(parts) > 1
        assert sum(opened(path).sizes["time"] for path in parts) == 12
        joined = xr.concat([opened(path)[name] for path in parts], "time", compat="override", coords="minimal")
        np.testing.assert_array_equal(joined, whole[name])
        for path in parts:
            with opened(path) as found:
                assert sum(variable.nbytes for variable in found.variables.values()) <= 1000
    assert files(tmp_path / "out") == sorted(path.name for name in ("ta", "tas") for path in (tmp_path / "out").glob(f"{name}_*.nc"))


def test_layouts_hold_for_the_variables_that_they_fit(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 7))
    layout = ["--for", "timeseries", "--layout", "/ta: chunk=time=2,lev=1", "--chunk", "time=6"]
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out", *layout)
    with h5py.File(tmp_path / "out" / "ta.nc") as file:
        assert file["ta"].chunks[:2] == (2, 1)
    with h5py.File(tmp_path / "out" / "tas.nc") as file:
        assert file["tas"].chunks[0] == 6
    unknown = ["--by", "variable", "--dir", tmp_path / "new"]
    assert "matches no dataset" in raddle("split", *inputs, *unknown, "--layout", "/tos: chunk=time=2", expect=3).stderr
    assert "no dimension" in raddle("split", *inputs, *unknown, "--chunk", "tim=6", expect=3).stderr
    assert not (tmp_path / "new").exists()


def test_differences_between_inputs_are_shown_once(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 7))
    with netCDF4.Dataset(inputs[1], "a") as file:
        file["tas"].comment = "second"
    shown = raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out").stderr
    assert shown.count('comment = "second"') == 1


def tables(folder, counts):
    """Writes files like those of events: two tables of different lengths in each."""
    folder.mkdir(exist_ok=True)
    random, paths = np.random.default_rng(5), []
    for number, count in enumerate(counts):
        paths.append(folder / f"run{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            file["spill/evt"] = np.arange(count)
            file["hits/energy"] = random.random(count * 3)
    return paths


def test_tables_are_divided_between_inputs(tmp_path, raddle):
    inputs = tables(tmp_path / "in", (3, 2, 4, 1))
    raddle("split", *inputs, "--rows-per-file", 15, "--dir", tmp_path / "out")
    for number, group in enumerate((inputs[:2], inputs[2:]), 1):
        path = tmp_path / "out" / f"part_000{number}.h5"
        with h5py.File(path) as found:
            parts = [h5py.File(source) for source in group]
            for name in ("spill/evt", "hits/energy"):
                np.testing.assert_array_equal(found[name], np.concatenate([part[name][()] for part in parts]))
        raddle("verify", path, "--against", *group)
        assert "inputs recorded: 2, inputs given: 4" in raddle("verify", path, "--against", *inputs, expect=8).stdout
    sizes = raddle("split", *inputs, "--size-per-file", "200", "--dir", tmp_path / "sizes", "--dry-run", "--json").stdout
    assert [Path(file["output"]).name for file in json.loads(sizes)["files"]] == ["part_0001.h5", "part_0002.h5"]
    assert not (tmp_path / "sizes").exists()


@pytest.mark.parametrize("axis", ["obs", "var"])
def test_observations_of_anndata_are_counted_and_not_stored_numbers(tmp_path, raddle, axis):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    inputs = []
    for number, count in enumerate((4, 2, 3)):
        matrix = scipy.sparse.csr_matrix(np.ones((count, 5), "f4"))
        names = [f"{number}_{row}" for row in range(count)]
        kind = pandas.Categorical(["a", "b"] * count, categories=["a", "b", "c"])[:count]
        along = pandas.DataFrame({"kind": kind}, index=names)
        other = pandas.DataFrame(index=[f"{at}" for at in range(5)])
        inputs.append(tmp_path / f"{number}.h5ad")
        frames = {"obs": along, "var": other} if axis == "obs" else {"obs": other, "var": along}
        anndata.AnnData(matrix if axis == "obs" else matrix.T.tocsr(), **frames).write_h5ad(inputs[-1])
    raddle("split", *inputs, "--rows-per-file", 6, "--dir", tmp_path / "out", "--axis", axis)
    for path, group in zip(sorted((tmp_path / "out").iterdir()), (inputs[:2], inputs[2:]), strict=True):
        found, wanted = anndata.read_h5ad(path), anndata.concat([anndata.read_h5ad(part) for part in group], axis=axis)
        assert list(found.obs_names) == list(wanted.obs_names) and list(found.var_names) == list(wanted.var_names)
        np.testing.assert_array_equal(found.X.toarray(), wanted.X.toarray())
        assert getattr(found, axis)["kind"].tolist() == getattr(wanted, axis)["kind"].tolist()
    refused = raddle("split", *inputs, "--rows-per-file", 3, "--dir", tmp_path / "none", "--axis", axis, expect=3).stderr
    assert "has 4 rows" in refused, refused


def test_an_input_that_is_too_long_is_named(tmp_path, raddle):
    inputs = tables(tmp_path / "in", (3, 2, 4))
    refused = raddle("split", *inputs, "--rows-per-file", 10, "--dir", tmp_path / "out", expect=3).stderr
    assert "run2.h5" in refused and "12 rows" in refused and not (tmp_path / "out").exists()
    refused = raddle("split", *write(tmp_path / "nc", model(), (12,)), "--size-per-file", "100", "--dir", tmp_path / "out", expect=3).stderr
    assert "/time" in refused and "for one element" in refused
    path = tmp_path / "fixed.nc"
    model().isel(time=slice(0, 4)).to_netcdf(path)
    refused = raddle("split", path, "--rows-per-file", 3, "--dir", tmp_path / "out", expect=3).stderr
    assert "--dim names the dimension" in refused
    raddle("split", path, "--rows-per-file", 3, "--dir", tmp_path / "out", "--dim", "time")
    assert files(tmp_path / "out") == ["part_0001.nc", "part_0002.nc"]


def test_datasets_of_plain_files_get_files_of_their_own(tmp_path, raddle):
    inputs = tables(tmp_path / "in", (3, 2))
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out")
    assert files(tmp_path / "out") == ["hits.energy.h5", "spill.evt.h5"]
    with h5py.File(tmp_path / "out" / "hits.energy.h5") as found:
        assert list(found) == ["_raddle", "hits"] and found["hits/energy"].shape == (15,)


def test_existing_files_and_wrong_options_are_refused(tmp_path, raddle):
    inputs = write(tmp_path / "in", model(), (5, 7))
    out = tmp_path / "out"
    raddle("split", *inputs, "--rows-per-file", 6, "--dir", out)
    assert "2 of the outputs exist" in raddle("split", *inputs, "--rows-per-file", 6, "--dir", out, expect=5).stderr
    raddle("split", *inputs, "--rows-per-file", 6, "--dir", out, "--force")
    assert "part_0002.nc is not a part" in raddle("split", *inputs, "--rows-per-file", 20, "--dir", out, "--force").stderr
    raddle("split", *inputs, "--rows-per-file", 6, "--dir", tmp_path / "part", "--select", "x=1:3")
    with opened(tmp_path / "part" / "part_0002.nc") as found:
        assert dict(found.sizes) == {"time": 6, "y": 4, "x": 2, "lev": 3, "bnds": 2}
    assert "required" in raddle("split", *inputs, "--dir", out, expect=2).stderr
    assert "cannot be used with" in raddle("split", *inputs, "--dir", out, "--rows-per-file", 1, "--size-per-file", "1GB", expect=2).stderr
    raddle("split", *inputs, "--dir", out, "--rows-per-file", 0, expect=2)
    columns = ["--add-column", "a=@source"]
    assert "leave out --by" in raddle("split", *inputs, "--dir", out, "--by", "variable", *columns, expect=2).stderr
    assert "--name" in raddle("split", *inputs, "--dir", out, "--rows-per-file", 6, "--name", "a/b", expect=2).stderr
    [only] = write(tmp_path / "one", model(), (12,))
    only = only.rename(tmp_path / "one" / "model_0001.nc")
    refused = raddle("split", only, "--dir", tmp_path / "one", "--rows-per-file", 6, "--name", "model", "--force", expect=5).stderr
    assert "is also an input" in _without_wraps(refused).replace("isalsoaninput", "is also an input")


def test_names_that_would_clash_are_refused(tmp_path, raddle):
    path = tmp_path / "clash.h5"
    with h5py.File(path, "w") as file:
        file["a/b"] = np.arange(3)
        file["a.b"] = np.arange(4)
    refused = raddle("split", path, "--by", "variable", "--dir", tmp_path / "out", expect=3).stderr
    assert "a.b.h5" in _without_wraps(refused)


@pytest.mark.parametrize("name", ["x[1]*", "{a}", "what?"])
def test_names_with_characters_of_patterns(tmp_path, raddle, name):
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file[name] = np.arange(3)
        file["x1"] = np.arange(4)
    raddle("split", path, "--by", "variable", "--dir", tmp_path / "out")
    assert files(tmp_path / "out") == sorted([f"{name}.h5", "x1.h5"])
    with h5py.File(tmp_path / "out" / f"{name}.h5") as found:
        assert set(found) == {"_raddle", name}


def test_a_file_without_records_is_verified_against_all_inputs(tmp_path, raddle):
    """Nothing in it lies along the time of the inputs, which must have the same values."""
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"part_{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.Conventions = "CF-1.8"
            file.createDimension("time", None)
            file.createDimension("lat", 4)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = np.arange(5.0) + 5 * number
            file.createVariable("lat", "f8", ("lat",))[:] = np.arange(4.0)
            file.createVariable("tas", "f4", ("time", "lat"))[:] = number
            file.createVariable("orog", "f4", ("lat",))[:] = np.arange(4.0)
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "series")
    raddle("merge", *inputs, "-o", tmp_path / "series/other.nc", "--include", "orog")
    for name in ("tas", "orog", "other"):
        raddle("verify", tmp_path / f"series/{name}.nc", "--against", *inputs)
    with netCDF4.Dataset(tmp_path / "series/other.nc") as file:
        assert "time" not in file.dimensions and file["orog"][:].tolist() == [0, 1, 2, 3]
    with netCDF4.Dataset(inputs[2], "a") as file:
        file["orog"][1] = 7
    assert "orog" in raddle("verify", tmp_path / "series/orog.nc", "--against", *inputs, expect=3).stderr
    refused = raddle("merge", *inputs, "-o", tmp_path / "none.nc", "--include", "orog", expect=3).stderr
    assert "/orog" in refused and not (tmp_path / "none.nc").exists()


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_dimension_that_only_an_option_names_holds_for_every_file(tmp_path, raddle, is_merged):
    """The file of ``orog`` does not have the dimension, and a union of the files concatenates nothing."""
    inputs, parts = [], tmp_path / "parts"
    for number in range(2):
        inputs.append(tmp_path / f"model_{number}.nc")
        data = {"tas": (("time", "lat"), np.full((2, 3), number)), "orog": ("lat", np.arange(3))}
        coordinates = {"time": ("time", [2 * number, 2 * number + 1], {"units": "days since 2000-01-01"}), "lat": np.arange(3)}
        xr.Dataset(data, coordinates, {"Conventions": "CF-1.11"}).to_netcdf(inputs[-1])
    if is_merged:
        raddle("merge", *inputs, "-o", tmp_path / "all.nc", "--dim", "time")
        inputs = [tmp_path / "all.nc"]
    raddle("split", *inputs, "--by", "variable", "--dir", parts, *([] if is_merged else ["--dim", "time"]))
    assert files(parts) == ["orog.nc", "tas.nc"]
    for name in files(parts):
        raddle("verify", parts / name, "--against", *inputs)
    raddle("merge", *sorted(parts.glob("*.nc")), "-o", tmp_path / "union.nc", "--union", "--keep", "lat")
    raddle("verify", tmp_path / "union.nc", "--against", *sorted(parts.glob("*.nc")))
    refused = raddle("merge", *inputs, "-o", tmp_path / "none.nc", "--include", "orog", "--dim", "tmie", expect=3).stderr
    assert "tmie" in refused and not (tmp_path / "none.nc").exists()
