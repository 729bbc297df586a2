"""Merged variables have the same dimensions as in every input, whatever numbers and names these have there."""

import cf_judge
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cf_files import Variable, simple, write_all
from merging import Merging

MERGING = Merging("cf", cf_judge.judge)


def dataset(day, names, notes):
    """Returns strings as stored by xarray, whose characters have a dimension named after their number."""
    time = np.datetime64("2000-01-01", "D") + day + np.arange(len(names))
    variables = {"name": ("time", np.array(names, "S")), "note": ("time", np.array(notes, "S"))}
    return xr.Dataset(
        {**variables, "tas": (("time", "site"), np.arange(2.0 * len(names)).reshape(-1, 2) + day)},
        {"time": time, "site": np.array(["lo", "hi"], "S")},
        {"Conventions": "CF-1.8"},
    )


SETS = {
    "one longer": [(["abc", "ab"], ["xyz", "x"]), (["abcd", "a"], ["xyzw", "y"])],
    "one name for two lengths": [(["abc", "ab"], ["xyz", "x"]), (["abcd", "a"], ["xyz", "y"])],
    "two names for one length": [(["abcd", "ab"], ["xyz", "x"]), (["abc", "a"], ["xyz", "y"])],
    "exchanged": [(["abc", "ab"], ["wxyz", "x"]), (["abcd", "a"], ["xyz", "y"])],
    "as long as a label": [(["abc", "ab"], ["xy", "x"]), (["ab", "a"], ["xyz", "y"]), (["abcdef", "a"], ["x", "y"])],
}


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("join", ["exact", "outer", "inner"])
@pytest.mark.parametrize("texts", SETS.values(), ids=SETS.keys())
def test_lengths_of_strings_that_xarray_names(tmp_path, raddle, texts, join, engine):
    paths = []
    for number, (names, notes) in enumerate(texts):
        paths.append(tmp_path / f"{number}.nc")
        dataset(2 * number, names, notes).to_netcdf(paths[-1], engine=engine, unlimited_dims=["time"])
    output = tmp_path / "merged.nc"
    raddle("merge", *paths, "-o", output, "--join", join)
    raddle("verify", output, "--against", *paths, "--join", join)
    for reader in ["netcdf4", "h5netcdf"]:
        with xr.open_dataset(output, engine=reader) as merged:
            wanted = xr.concat([xr.open_dataset(path, engine=reader) for path in paths], "time")
            xr.testing.assert_identical(merged, wanted)
    with netCDF4.Dataset(output) as merged:
        used = {dim for variable in merged.variables.values() for dim in variable.dimensions}
        assert set(merged.dimensions) == used
        assert {name: int(name[6:]) for name in used if name.startswith("string")} == {
            name: len(dim) for name, dim in merged.dimensions.items() if name.startswith("string")
        }


def test_a_length_of_strings_that_is_another_variable_s_too_is_refused(tmp_path):
    files = [simple(), simple(3)]
    for file, (first, second) in zip(files, [("short", "short"), ("short", "long")]):
        file.dims |= {"short": 2, "long": 4}
        for name, dim in [("a", first), ("b", second)]:
            file.variables[name] = Variable(("time", dim), np.full((3, file.dims[dim]), b"x"))
    MERGING.equal(write_all(tmp_path, *files))
    for file, size in zip(files, [2, 3]):
        file.dims["short"] = size
        file.variables["a"].values = np.full((3, size), b"x")
    files[0].variables["b"].values = np.full((3, 2), b"x")
    # Four characters in the second file; those of the first file's dimension become three.
    MERGING.equal(write_all(tmp_path, *files))
    files[1].dims["long"] = 2
    files[1].variables["b"].values = np.full((3, 2), b"x")
    MERGING.refused(write_all(tmp_path, *files), names=["/b", "/short", "2", "3"])


@pytest.mark.parametrize("join", ["exact", "outer"])
def test_dimensions_of_later_files_get_numbers_of_their_own(tmp_path, raddle, join):
    """The library finds dimensions by their numbers: if two had the same number, variables had the last one."""
    files = [simple(), simple(3)]
    for file, name, size in zip(files, "yz", [2, 5]):
        file.dims[name] = size
        file.variables[name] = Variable((name,), np.arange(float(size)))
        file.variables["of_" + name] = Variable(("time", name), np.arange(3.0 * size).reshape(3, size))
    inputs = write_all(tmp_path, *files)
    if join == "exact":
        MERGING.refused(inputs, names=["/y", "/z"])
        return
    output = tmp_path / "merged.nc"
    raddle("merge", *inputs, "-o", output, "--join", join)
    with netCDF4.Dataset(output) as merged:
        assert merged["of_y"].dimensions == ("time", "y") and merged["of_z"].dimensions == ("time", "z")
        assert merged["of_y"][:3].tolist() == np.arange(6.0).reshape(3, 2).tolist()
        assert merged["of_z"][3:].tolist() == np.arange(15.0).reshape(3, 5).tolist()
    with xr.open_dataset(output) as merged:
        wanted = xr.concat([xr.open_dataset(path) for path in inputs], "time", data_vars="minimal", join="outer")
        assert merged.of_y.dims == wanted.of_y.dims and merged.of_z.dims == wanted.of_z.dims


@pytest.mark.parametrize("join", ["inner", "outer"])
@pytest.mark.parametrize("users", [[1], [0], [1, 2]])
@pytest.mark.parametrize("dims", [("time", "y"), ("y", "time"), ("y",)])
def test_a_dimension_that_only_some_files_use(tmp_path, raddle, join, users, dims):
    """Models declare all their dimensions in each file, whatever variables it has."""
    files = [simple(3 * number) for number in range(3)]
    for number, file in enumerate(files):
        file.dims["y"] = 4
        if number in users:
            sizes = {"time": 3, "y": 4}
            file.variables["extra"] = Variable(dims, np.full([sizes[dim] for dim in dims], 0.5))
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs, "--join", join, judge=None)
    raddle("verify", output, "--against", *inputs)
    with xr.open_dataset(output) as merged:
        parts = [xr.open_dataset(path) for path in inputs]
        if join == "inner":
            parts = [part.drop_vars("extra", errors="ignore") for part in parts]
        wanted = xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override")
        xr.testing.assert_equal(merged.transpose(*wanted.dims), wanted.transpose(*wanted.dims))
        assert merged.sizes == wanted.sizes


def test_a_dimension_that_is_longer_where_no_variable_uses_it_is_refused(tmp_path):
    files = [simple(), simple(3)]
    files[0].dims["y"], files[1].dims["y"] = 5, 4
    files[1].variables["extra"] = Variable(("time", "y"), np.ones((3, 4)))
    MERGING.refused(write_all(tmp_path, *files), "--join", "outer", names=["/extra", "4 elements along /y", "of length 5"])


def test_a_union_of_files_with_the_same_numbers(tmp_path, raddle):
    paths = []
    for name, size in [("y", 2), ("z", 5)]:
        path = tmp_path / f"{name}.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.Conventions = "CF-1.8"
            group = file.createGroup(name)
            group.createDimension(name, size)
            group.createDimension(f"of_{name}", 3)
            # A coordinate of two dimensions names the second only by its number.
            group.createVariable(name, "f8", (name, f"of_{name}"))[:] = np.ones((size, 3))
            group.createVariable("field", "f8", (name,))[:] = np.arange(float(size))
        paths.append(path)
    output = tmp_path / "union.nc"
    raddle("merge", *paths, "-o", output, "--union")
    raddle("verify", output)
    with netCDF4.Dataset(output) as merged:
        for name, size in [("y", 2), ("z", 5)]:
            assert merged[f"{name}/field"].dimensions == (name,) and merged[f"{name}/field"].shape == (size,)
            assert merged[f"{name}/{name}"].dimensions == (name, f"of_{name}")


def labelled(day, dims, second):
    """Returns a file with a coordinate of two dimensions, of which the library keeps only numbers. ``dims``: in their
    order."""
    file = simple(day)
    file.dims = {name: file.dims.get(name, 2) for name in dims}
    file.variables["site"] = Variable(("site", second), np.arange(4.0).reshape(2, 2))
    others = tuple(name for name in dims if name in "km")
    file.variables["other"] = Variable(others, np.ones([2] * len(others)))
    file.variables["sites"] = Variable(("time", "site"), np.arange(6.0).reshape(3, 2))
    return file


def test_numbers_in_another_order(tmp_path):
    orders = [["time", "x", "site", "k"], ["k", "site", "time", "x"], ["x", "time", "k", "site"]]
    inputs = write_all(tmp_path, *(labelled(3 * number, order, "k") for number, order in enumerate(orders)))
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        assert merged["site"].dimensions == ("site", "k") and merged["sites"].dimensions == ("time", "site")


def test_other_dimensions_of_the_same_number_are_refused(tmp_path):
    inputs = write_all(
        tmp_path,
        labelled(0, ["time", "x", "site", "k", "m"], "k"),
        labelled(3, ["time", "x", "site", "m", "k"], "m"),
    )
    MERGING.refused(inputs, names=["/site (dimensions)", "(/site, /k)", "(/site, /m)"])


def test_other_dimensions_of_the_same_length_are_refused(tmp_path):
    files = [simple(), simple(3)]
    for file, dim in zip(files, ["x", "y"]):
        file.dims["y"] = 2
        file.variables["field"] = Variable(("time", dim), np.ones((3, 2)))
    MERGING.refused(write_all(tmp_path, *files), names=["/field (dimensions)", "(/time, /x)", "(/time, /y)"])


def test_an_append_of_shorter_strings(tmp_path, raddle):
    output, paths = tmp_path / "all.nc", []
    for number, names in enumerate([["abc", "ab"], ["xyz", "x"], ["ab", "a"], ["abcd", "a"]]):
        paths.append(tmp_path / f"{number}.nc")
        dataset(2 * number, names, names).to_netcdf(paths[-1], unlimited_dims=["time"])
    raddle("merge", *paths[:2], "-o", output, "--extendible")
    raddle("append", output, paths[2])
    with xr.open_dataset(output) as grown:
        xr.testing.assert_identical(grown, xr.concat([xr.open_dataset(path) for path in paths[:3]], "time"))
    with netCDF4.Dataset(output) as grown:
        assert [name for name in grown.dimensions if name.startswith("string")] == ["string3", "string2"]
    refused = raddle("append", output, paths[3], expect=3)
    assert "/name" in refused.stderr and "up to 3 characters" in refused.stderr and "up to 4" in refused.stderr


def test_files_without_numbers(tmp_path, raddle):
    """Scales made by h5py have no numbers."""
    paths = []
    for number in range(2):
        paths.append(tmp_path / f"{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            file.attrs["Conventions"] = "CF-1.8"
            for name, values in [("time", np.arange(2.0) + 2 * number), ("x", np.arange(3.0))]:
                file.create_dataset(name, data=values, maxshape=(None if name == "time" else 3,)).make_scale(name)
            field = file.create_dataset("tas", data=np.ones((2, 3)), maxshape=(None, 3))
            field.dims[0].attach_scale(file["time"])
            field.dims[1].attach_scale(file["x"])
    output = tmp_path / "merged.h5"
    raddle("merge", *paths, "-o", output)
    with h5py.File(output) as merged:
        assert "_Netcdf4Dimid" not in merged["time"].attrs
        assert [axis[0].name for axis in merged["tas"].dims] == ["/time", "/x"]


@pytest.mark.parametrize("options", [["--keep", "w"], ["--rule", "w: once"]])
def test_a_dataset_along_the_records_is_not_carried_once(tmp_path, options):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["time"] = 3
        file.variables["w"] = Variable(("time",), np.arange(3.0))
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, *options, names=["/w", "/time", "--exclude"])
    MERGING.equal(inputs)


@pytest.mark.parametrize("options", [["--keep", "time", "--scalars", "first"], ["--rule", "time: once", "--scalars", "first"]])
def test_the_coordinate_of_the_records_is_not_carried_once(tmp_path, options):
    MERGING.refused(write_all(tmp_path, simple(), simple(3)), *options, names=["/time", "/tas", "--exclude"])


def test_a_coordinate_of_another_axis_is_not_concatenated(tmp_path):
    names = ["/x", "/tas", "--exclude"]
    MERGING.refused(write_all(tmp_path, simple(), simple(3)), "--rule", "x: concatenate", names=names)


def test_datasets_that_are_shorter_than_their_dimension_stay_in_chunks(tmp_path, raddle):
    path, output = tmp_path / "input.nc", tmp_path / "output.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in {"time": None, "member": None, "x": 2}.items():
            file.createDimension(name, size)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(6.0)
        file.createVariable("late", "i2", ("time",))[:2] = [1, 2]
        file.createVariable("m", "f4", ("member", "x"))[:3] = np.arange(6).reshape(3, 2)
        file.createDimension("station", None)
        file.createVariable("height", "f4", ("station",))[:] = np.arange(4.0)
        file.createVariable("station", "i4", ("station",))[:2] = [7, 8]
    for options in (["--contiguous"], ["--contiguous=1MB"], ["--empty", "contiguous"]):
        raddle("rechunk", path, "-o", output, "-f", *options)
        for engine in ["netcdf4", "h5netcdf"]:
            with xr.open_dataset(path, engine=engine) as one, xr.open_dataset(output, engine=engine) as other:
                xr.testing.assert_identical(one, other)
    for name in ["late", "time", "member", "station"]:
        finished = raddle("rechunk", path, "-o", output, "-f", "--layout", f"{name}: contiguous", expect=3)
        assert f"/{name}" in finished.stderr


@pytest.mark.parametrize("kind", ["S1", "f4", str])
@pytest.mark.parametrize("records", [(0, 2), (2, 0), (2, 3), (3, 2)])
def test_another_length_of_an_axis_before_the_concatenated_one_is_refused(tmp_path, kind, records):
    """As ``N_HISTORY`` of Argo floats, an unlimited dimension that may be empty."""
    inputs = []
    for number, count in enumerate(records):
        inputs.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.Conventions = "CF-1.6"
            file.createDimension("N_HISTORY", None)
            file.createDimension("N_PROF", 1 + number)
            file.createDimension("STRING4", 4)
            file.createVariable("JULD", "f8", ("N_PROF",))[:] = 10 * number + np.arange(1 + number)
            step = file.createVariable("HISTORY_STEP", kind, ("N_HISTORY", "N_PROF", "STRING4"))
            if count:
                step[:] = np.full((count, 1 + number, 4), 7 if kind == "f4" else "x", object if kind is str else kind)
    MERGING.refused(inputs, names=["/JULD", "1 elements", "2 elements", "--dim NAME"])
    MERGING.refused(inputs, "--dim", "N_PROF", names=["/HISTORY_STEP", f"({records[0]}, rows", f"({records[1]}, rows"])


def test_an_append_to_fewer_records_than_the_dimension_has_is_refused(tmp_path, raddle):
    """A merge of one file keeps a variable as short as it is there."""
    inputs = write_all(tmp_path, simple(), simple(3))
    for path in inputs:
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("late", "f4", ("time",), fill_value=-1)[0] = 5
    output = tmp_path / "all.nc"
    raddle("merge", inputs[0], "-o", output)
    refused = raddle("append", output, inputs[1], expect=3).stderr
    assert "/late" in refused and "which an append cannot fill" in " ".join(refused.split())
    MERGING.equal(inputs)


@pytest.mark.parametrize("options", [[], ["--dim", "time"]])
def test_files_without_dimensions(tmp_path, raddle, options):
    """Some programs write the attribute Conventions without any dimension scales."""
    paths = [tmp_path / f"{number}.h5" for number in range(2)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            file.attrs["Conventions"], file["x"] = "CF-1.8", np.arange(3.0) + number
    message = MERGING.refused(paths, *options, names=["has no dimension along which", "--convention none"])
    assert "--dim" not in message
    raddle("merge", *paths, "-o", tmp_path / "merged.h5", "--convention", "none")
    with h5py.File(tmp_path / "merged.h5") as merged:
        assert merged["x"][:].tolist() == [0, 1, 2, 1, 2, 3]


def test_an_empty_unlimited_dimension_is_not_the_one_that_was_meant(tmp_path):
    """The only unlimited dimension of Argo's profiles is often empty."""
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.Conventions = "Argo-3.1 CF-1.6"
            file.createDimension("N_PROF", 2)
            file.createDimension("N_HISTORY", None)
            file.createVariable("PRES", "f4", ("N_PROF",))[:] = [number, number + 1]
            file.createVariable("HISTORY_START_PRES", "f4", ("N_HISTORY", "N_PROF"))
    MERGING.refused(inputs, names=["/PRES", "the unlimited dimension is empty", "--dim NAME"])
    output = MERGING.equal(inputs, "--dim", "N_PROF", judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["PRES"][:].tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("has_coordinate", [False, True])
def test_records_of_excluded_variables_count(tmp_path, raddle, has_coordinate):
    """The length of an unlimited dimension is that of its longest variable, also if that one is left out."""
    inputs = [tmp_path / f"{number}.nc" for number in range(3)]
    first = 0
    for path, (records, written) in zip(inputs, [(4, 2), (3, 3), (3, 0)]):
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            file.createDimension("x", 2)
            file.createVariable("all", "f4", ("time",))[:] = first + np.arange(records)
            late = file.createVariable("late", "f8", ("time", "x"), fill_value=np.nan)
            late[:written] = first + np.arange(2.0 * written).reshape(written, 2)
            if has_coordinate:
                file.createVariable("time", "f8", ("time",))[:] = first + np.arange(records)
        first += records
    with xr.open_mfdataset(inputs, combine="nested", concat_dim="time") as whole:
        wanted = whole["late"].values
    outputs = []
    for options in (["--include", "late"], ["--exclude", "all"], ["--include", "late", "--select", "time=1:9"]):
        outputs.append(MERGING.equal(inputs, *options, judge=None))
        raddle("verify", outputs[-1], "--against", *inputs, *options)
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "split")
    outputs.insert(0, tmp_path / "split" / "late.nc")
    for output in outputs:
        with xr.open_dataset(output) as found:
            np.testing.assert_array_equal(found["late"], wanted[1:9] if output == outputs[-1] else wanted)


def test_a_damaged_list_of_what_lies_along_a_dimension(tmp_path, raddle):
    """An address near 2^64 overflows if the length of the user block is added."""
    path = tmp_path / "damaged.nc"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["Conventions"] = "CF-1.8"
        time = file.create_dataset("time", data=np.arange(5.0), maxshape=(None,), chunks=(4,))
        time.make_scale("time")
        time.attrs["_Netcdf4Dimid"] = np.int32(0)
        tas = file.create_dataset("tas", data=np.arange(5.0), maxshape=(None,), chunks=(4,))
        tas.dims[0].attach_scale(time)
        address = h5py.h5o.get_info(tas.id).addr
    content = path.read_bytes()
    # The last occurrence is that of the attribute.
    at = content.rindex(address.to_bytes(8, "little"))
    path.write_bytes(content[:at] + (2**64 - 7).to_bytes(8, "little") + content[at + 8 :])
    raddle("merge", path, "-o", tmp_path / "out.nc", "--exclude", "time")
    assert "address 18446744073709551609 overflows" in raddle("merge", path, "-o", tmp_path / "all.nc", expect=3).stderr


def write_unlimited(path, number, lengths, sizes=(3, 5)):
    """Writes a file with two unlimited dimensions and a variable of which less is written along the second one."""
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.8"
        file.createDimension("time", None)
        file.createDimension("station", None)
        file.createVariable("time", "f8", ("time",))[:] = sizes[0] * number + np.arange(sizes[0])
        file["time"].units = "days since 2000-01-01"
        file.createVariable("station", "i4", ("station",))[:] = np.arange(sizes[1])
        file.createVariable("full", "f4", ("time", "station"))[:] = np.arange(15.0).reshape(sizes) + number
        file.createVariable("part", "f4", ("time", "station"), fill_value=-9.0)
        if lengths[1]:
            file["part"][: lengths[0], : lengths[1]] = np.ones(lengths)
        file.createVariable("level", "f4", ("station",))[:3] = np.arange(3)
    return path


@pytest.mark.parametrize("lengths", [(3, 5), (2, 5), (0, 0)])
def test_a_second_unlimited_dimension(tmp_path, raddle, lengths):
    inputs = [write_unlimited(tmp_path / f"{number}.nc", number, lengths) for number in range(2)]
    MERGING.refused(inputs, names=["more than one unlimited dimension", "/time", "/station", "--dim"])
    output = MERGING.equal(inputs, "--dim", "time", judge=None)
    raddle("verify", output, "--against", *inputs)
    for engine in ["netcdf4", "h5netcdf"]:
        # The netCDF library does not initialise the missing records of the inputs.
        parts = [xr.load_dataset(path, engine="h5netcdf") for path in inputs]
        wanted = xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="equals", join="exact")
        xr.testing.assert_equal(xr.load_dataset(output, engine=engine), wanted)


@pytest.mark.parametrize("lengths", [(3, 3), (2, 3), (3, 1)])
def test_a_variable_that_is_shorter_than_a_second_unlimited_dimension_is_refused(tmp_path, raddle, lengths):
    """The netCDF library reads its values at wrong places, and others that are not initialised."""
    inputs = [write_unlimited(tmp_path / "0.nc", 0, (3, 5)), write_unlimited(tmp_path / "1.nc", 1, lengths)]
    names = ["/part", f"{lengths[1]} of the 5 elements along /station", "--exclude"]
    MERGING.refused(inputs, "--dim", "time", names=names)
    MERGING.refused([inputs[1], write_unlimited(tmp_path / "2.nc", 2, lengths)], "--dim", "time", names=names)
    MERGING.equal(inputs, "--dim", "time", "--exclude", "part", judge=None)
    # Nothing is concatenated.
    raddle("merge", inputs[1], "-o", tmp_path / "one.nc")
