"""Merged netCDF files for other programs: the netCDF library and NCO read and change them like their inputs, whatever
dimensions these have."""

import subprocess

import cf_judge
import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cf_files import Variable, simple, write_all
from merging import Merging

MERGING = Merging("cf", cf_judge.judge)
FORMATS = ["NETCDF4", "NETCDF4_CLASSIC"]


def write_format(folder, form):
    """Writes two files in a format of the netCDF library."""
    inputs = []
    for number in range(2):
        inputs.append(folder / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w", format=form) as file:
            file.Conventions = "CF-1.8"
            file.createDimension("time", None)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = [2 * number, 2 * number + 1]
            file.createVariable("tas", "f4", ("time",))[:] = [number, number + 0.5]
    return inputs


@pytest.mark.parametrize("form", FORMATS)
def test_a_merged_file_can_be_changed(tmp_path, form):
    inputs = write_format(tmp_path, form)
    output = MERGING.equal(inputs)
    with xr.open_dataset(output) as merged:
        expected = merged.load().assign(added=("time", [1, 2, 3, 4])).assign_attrs(title="changed")
    with netCDF4.Dataset(output, "a") as file:
        file.title = "changed"
        file.createVariable("added", "i4", ("time",))[:] = [1, 2, 3, 4]
        file["tas"][0] = 7
    expected["tas"][0] = 7
    with xr.open_dataset(output) as changed:
        xr.testing.assert_equal(changed, expected)
        assert changed.attrs["title"] == "changed"


@pytest.mark.parametrize("tool", ["ncks", "ncrcat"])
def test_a_merged_classic_file_can_be_copied(tmp_path, tool):
    output = MERGING.equal(write_format(tmp_path, "NETCDF4_CLASSIC"))
    copy = tmp_path / "copy.nc"
    copied = subprocess.run([tool, output, copy], capture_output=True, text=True, timeout=60, check=False)
    assert copied.returncode == 0, copied.stderr
    with xr.open_dataset(output) as merged, xr.open_dataset(copy) as again:
        xr.testing.assert_equal(again, merged)


@pytest.mark.parametrize("texts", [["ru29"], ["ru29", "b"]])
def test_a_string_whose_length_is_a_dimension_of_its_own(tmp_path, raddle, texts):
    """Files of gliders have the name of their trajectory in such a variable."""
    files = [simple(), simple(3)]
    for file in files:
        for number, text in enumerate(texts):
            file.dims[f"length{number}"] = len(text)
            letters = np.array(list(text), "S1")
            file.variables[f"text{number}"] = Variable((f"length{number}",), letters, {"long_name": "name"})
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        for number, text in enumerate(texts):
            assert netCDF4.chartostring(merged[f"text{number}"][:]).item() == text
            assert merged.dimensions[f"length{number}"].size == len(text)
    raddle("verify", output, "--against", *inputs)


def test_a_dimension_without_variables_is_verified_after_an_append(tmp_path, raddle):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["unused"] = 3
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs[:1])
    raddle("append", output, inputs[1])
    cf_judge.judge(output, inputs)
    raddle("verify", output, "--against", *inputs)


LEFT_OUT = {
    "the coordinate": ["--exclude", "x"],
    "all but a variable": ["--include", "q"],
    "another variable": ["--exclude", "p"],
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_leaves_its_dimensions(tmp_path, raddle, what, count):
    """The variable of a dimension can be left out, but not the dimension along which others lie."""
    inputs = write_all(tmp_path, *[simple(3 * number) for number in range(count)])
    for path in inputs:
        with netCDF4.Dataset(path, "a") as file:
            for name in "pq":
                file.createVariable(name, "f4", ("time", "x"))[:] = 1
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, *LEFT_OUT[what])
    raddle("verify", output, "--against", *inputs)
    raddle("verify", output)
    names = {"the coordinate": {"time", "tas", "p", "q"}, "all but a variable": {"q"}, "another variable": {"time", "x", "tas", "q"}}
    with xr.open_dataset(output, decode_times=False) as merged:
        assert set(merged.variables) == names[what]
        assert dict(merged.sizes) == {"time": 3 * count, "x": 2}
        for name, variable in merged.variables.items():
            each = [xr.load_dataset(path, decode_times=False)[name].variable for path in inputs]
            expected = each[0] if name == "x" else xr.Variable.concat(each, "time")
            assert variable.dims == expected.dims
            np.testing.assert_array_equal(variable, expected)
    with netCDF4.Dataset(output, "a") as file:
        file.renameDimension("x", "renamed")
    subprocess.run(["ncrename", "-d", "time,steps", output, tmp_path / "renamed.nc"], check=True, capture_output=True)


def strict_dimensions(path):
    """Returns the dimensions of each variable in a file, all of which must have a name; h5netcdf reads no others."""
    with h5netcdf.File(path, phony_dims=None) as file:

        def of_group(group):
            yield from ((variable.name, variable.dimensions) for variable in group.variables.values())
            for inner in group.groups.values():
                yield from of_group(inner)

        return dict(of_group(file))


@pytest.mark.parametrize("has_ids", [True, False])
def test_all_axes_of_a_merged_file_have_dimensions(tmp_path, raddle, has_ids):
    """Some libraries, such as cfdm, do not read a file with another axis at all, so the tables of /_raddle need
    dimensions."""
    inputs = write_all(tmp_path, simple(), simple(3), simple(6))
    for path in inputs:
        with netCDF4.Dataset(path, "a") as file:
            group = file.createGroup("later")
            group.createDimension("y", 5)
            group.createVariable("grid", "f4", ("y", "x"))[:] = 1
        with h5py.File(path, "a") as file:
            for scale in scales_of(file) if not has_ids else []:
                del scale.attrs["_Netcdf4Dimid"]
    output = MERGING.equal(inputs[:2])
    raddle("append", output, inputs[2])
    of_input, of_output = strict_dimensions(inputs[0]), strict_dimensions(output)
    assert of_input == {name: of_output[name] for name in of_input}
    assert of_output["/_raddle/row_starts"] == ("raddle_row_list", "raddle_row_start")
    with netCDF4.Dataset(output) as file:
        assert file["later/grid"].dimensions == ("y", "x")
        assert len(file["_raddle"].dimensions["raddle_input"]) == 3
        lengths = {name: len(dimension) for name, dimension in file["_raddle"].dimensions.items()}
        assert file["_raddle/datasets/digest"].shape == (lengths["raddle_dataset"],)
    with xr.open_datatree(output) as tree:
        assert tree["_raddle"].sizes["raddle_row_start"] == 4
    with h5py.File(output) as file:
        ids = [item.attrs["_Netcdf4Dimid"] for item in scales_of(file)] if has_ids else []
        assert len(set(ids)) == len(ids)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("options", [[], ["--extendible"]])
def test_stacked_scalars_have_a_dimension(tmp_path, raddle, options):
    inputs = write_all(tmp_path, simple(), simple(3))
    for number, path in enumerate(inputs):
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("input", "i4", ())[...] = 5
            for name in ["first", "second", "group/third"]:
                file.createVariable(name, "f8", ())[...] = number
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, "--scalars", "stack", *options)
    dimensions = strict_dimensions(output)
    assert all(dimensions[f"/{name}"] == ("input_",) for name in ["first", "second", "group/third"]), dimensions
    with netCDF4.Dataset(output, "a") as file:
        assert file["first"][:].tolist() == file["group/third"][:].tolist() == [0, 1]
        assert file["input"][...] == 5
        file.renameDimension("input_", "run")
    with xr.open_dataset(output) as merged:
        assert merged["second"].dims == ("run",)
        assert merged["tas"].dims == ("time", "x")
    output.unlink()
    raddle("merge", *inputs, "-o", output, "--scalars", "stack", *options)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def scales_of(file):
    found = []
    file.visititems(lambda _, item: found.append(item) if item.attrs.get("CLASS") == b"DIMENSION_SCALE" else None)
    return found


def test_other_files_of_hdf5_get_no_dimensions(tmp_path, raddle):
    inputs = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file["x"] = [1, 2, 3]
    raddle("merge", *inputs, "-o", tmp_path / "output.h5")
    with h5py.File(tmp_path / "output.h5") as file:
        assert not scales_of(file)


@pytest.mark.parametrize("has_dimensions", [True, False])
def test_a_file_that_the_library_opened_for_writing_is_intact(tmp_path, raddle, has_dimensions):
    """The library adds dimensions to the datasets of the group /_raddle that have none, as those of earlier versions."""
    inputs = write_all(tmp_path, simple(), simple(3), simple(6))
    output = MERGING.equal(inputs[:2])
    if not has_dimensions:
        with h5py.File(output, "a") as file:
            group = file["_raddle"]
            for inner in [group, *(group[name] for name in ["inputs", "objects", "datasets"])]:
                for item in inner.values():
                    item.attrs.pop("DIMENSION_LIST", None)
            for name in [name for name in group if name.startswith("raddle_")]:
                del group[name]
    with netCDF4.Dataset(output, "a"):
        pass
    with h5py.File(output) as file:
        assert any(name.startswith("phony_dim") for name in file["_raddle"]) != has_dimensions
    raddle("verify", output)
    raddle("append", output, inputs[2])
    cf_judge.judge(output, inputs)
    raddle("verify", output)
