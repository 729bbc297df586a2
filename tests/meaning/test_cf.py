"""Merges of netCDF-4 files of the CF conventions read as xarray concatenates the inputs."""

import shutil
import subprocess

import cf_files
import cf_judge
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cf_files import File, Variable, simple, write_all
from hypothesis import given
from merging import Merging, Refusal, case_folder, examples

MERGING = Merging("cf", cf_judge.judge)


@pytest.mark.parametrize("what", cf_files.SPECIALS)
def test_random_files(what):
    @examples(3)
    @given(cf_files.cases(what))
    def check(case):
        with case_folder() as folder:
            merge = MERGING.equal if case.must_merge else MERGING.equal_or_refused
            merge(write_all(folder, *case.files), *case.options)

    check()


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("dims", [("time", "x"), ("member", "time", "x"), ("x", "time")])
def test_files_that_xarray_writes(tmp_path, engine, dims):
    paths = []
    for number in range(3):
        sizes = {"member": 2, "time": 4, "x": 3}
        shape = [sizes[dim] for dim in dims]
        dataset = xr.Dataset(
            {"tas": (dims, np.random.default_rng(number).random(shape, "f4")), "area": ("x", np.arange(3.0))},
            # Each file has its own reference, as xarray chooses it.
            {"time": np.datetime64("2000-01-01T00", "h") + np.arange(4) * 6 + 24 * number, "x": [10, 20, 30]},
        )
        paths.append(tmp_path / f"{number}.nc")
        dataset.to_netcdf(paths[-1], engine=engine, unlimited_dims=["time"])
    MERGING.equal(paths)


@pytest.mark.parametrize("dims", [("member", "time", "x"), ("x", "time"), ("member", "x", "time"), ("time",)])
@pytest.mark.parametrize("is_unlimited", [True, False])
def test_the_record_dimension_may_be_any_axis(tmp_path, raddle, dims, is_unlimited):
    files = []
    for number, days in enumerate([3, 1, 2]):
        file = simple([0, 3, 4][number], days)
        shape = [{"member": 2, "time": days, "x": 2}[dim] for dim in dims]
        file.dims |= {"member": 2, "time": None if is_unlimited else days}
        file.variables["field"] = Variable(dims, np.random.default_rng(number).random(shape))
        files.append(file)
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs, *([] if is_unlimited else ["--dim", "time"]))
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_without_an_unlimited_dimension_time_is_followed(tmp_path):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["time"] = 3
    MERGING.equal(write_all(tmp_path, *files))


def test_without_any_time_a_dimension_is_asked_for(tmp_path):
    files = [File({"x": 2, "y": 3}, {"v": Variable(("x", "y"), np.full((2, 3), number))}) for number in range(2)]
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, names=["--dim", "x", "y"])
    MERGING.equal(inputs, "--dim", "y", dim="y")


def test_of_two_unlimited_dimensions_one_is_asked_for(tmp_path):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["member"] = None
        file.variables["pressure"] = Variable(("member", "time"), np.ones((2, 3)))
    inputs = write_all(tmp_path, *files)
    MERGING.equal(inputs, "--dim", "time")
    with case_folder() as folder:
        MERGING.equal_or_refused(inputs, output=folder / "out.nc")


def test_an_unknown_dimension_is_refused(tmp_path):
    MERGING.refused(write_all(tmp_path, simple(), simple(3)), "--dim", "tims", names=["--dim", "tims"])


def test_variables_without_the_record_dimension_are_carried_once(tmp_path):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["y"] = 2
        file.variables |= {
            "area": Variable(("y", "x"), np.arange(4.0).reshape(2, 2)),
            "names": Variable(("x",), ["a", "b"], type=str),
            "height": Variable((), 2.0),
            "nan": Variable(("x",), [np.nan, 1.0]),
        }
    output = MERGING.equal(write_all(tmp_path, *files))
    with netCDF4.Dataset(output) as merged:
        assert merged["area"].shape == (2, 2) and merged["height"].shape == ()


@pytest.mark.parametrize(
    ("name", "dims", "first", "second", "names"),
    [
        ("area", ("x",), [1.0, 2.0], [1.0, 2.5], ["/area", "2.5"]),
        ("height", (), 2.0, 10.0, ["/height", "2", "10"]),
        ("x", ("x",), [10.0, 20.0], [10.0, 21.0], ["/x", "20", "21"]),
        ("names", ("x",), ["a", "b"], ["a", "c"], ["/names", "c"]),
    ],
)
def test_a_variable_that_is_carried_once_must_be_equal(tmp_path, name, dims, first, second, names):
    files = [simple(), simple(3)]
    for file, values in zip(files, [first, second]):
        file.variables[name] = Variable(dims, values, type=str if name == "names" else None)
    MERGING.refused(write_all(tmp_path, *files), names=names)


def test_recomputed_grids_are_equal_within_a_tolerance(tmp_path):
    files = [simple(), simple(3)]
    files[1].variables["x"].values = [10.0, 20.000001]
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, names=["/x", "20", "20.000001", "--tolerance"])
    MERGING.refused(inputs, "--tolerance", "1e-7", names=["/x"])
    output = MERGING.equal_or_refused(inputs, "--tolerance", "1e-5", judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["x"][:].tolist() == [10, 20]


@pytest.mark.parametrize("holder", [0, 1])
def test_a_variable_may_be_named_as_a_coordinate_in_some_files_only(tmp_path, holder):
    files = [simple(), simple(3)]
    for file in files:
        file.variables["area"] = Variable(("x",), [1.0, 2.0])
    files[holder].variables["tas"].attributes["coordinates"] = "area"
    inputs = write_all(tmp_path, *files)
    MERGING.equal(inputs, judge=None)
    files[1].variables["area"].values = [2.0, 1.0]
    (tmp_path / "other").mkdir()
    MERGING.refused(write_all(tmp_path / "other", *files), "--scalars", "first", names=["/area", "different coordinates"])


LATITUDES = {
    "dimension": {"lat": ("lat", [10.0, 20.0, 30.0])},
    "texts": {"lat": ("lat", ["a", "b", "c"])},
    "curvilinear": {"lat2d": (("lat", "lon"), np.arange(6.0).reshape(3, 2))},
    "bounds": {"lat": ("lat", [10.0, 20.0, 30.0], {"bounds": "lat_bnds"})},
}


@pytest.mark.parametrize("place", LATITUDES)
def test_reversed_coordinates_are_refused_whatever_scalars_says(tmp_path, raddle, place):
    """Elements of the second file would be read at places of the first. Other shared values follow ``--scalars``."""
    inputs = []
    for number in range(2):
        data = {"t": (("time", "lat", "lon"), np.random.default_rng(number).random((3, 3, 2)))}
        data |= {"height": ((), 2.0 + number), "mask": (("lat", "lon"), np.full((3, 2), number))}
        dataset = xr.Dataset(data, {"time": np.arange(3.0) + 3 * number, "lon": [1.0, 2.0]} | LATITUDES[place])
        if place == "bounds":
            edges = np.arange(6.0).reshape(3, 2)
            dataset["lat_bnds"] = ("lat", "edge"), edges[::-1] if number else edges
        elif number:
            name = next(iter(LATITUDES[place]))
            dataset[name] = dataset[name].dims, dataset[name].values[::-1]
        inputs.append(tmp_path / f"{number}.nc")
        dataset.to_netcdf(inputs[-1], unlimited_dims=["time"])
    name = {"bounds": "/lat_bnds", "curvilinear": "/lat2d"}.get(place, "/lat")
    message = MERGING.refused(inputs, names=[name, "different coordinates", "/height", "/mask", "cdo invertlat"])
    assert "--scalars first" in message
    message = MERGING.refused(inputs, "--scalars", "first", names=[name, "different coordinates"])
    assert "what to do" in message and "--scalars" not in message
    raddle("merge", *inputs, "-o", tmp_path / "first.nc", "--exclude", name, "--scalars", "first")
    raddle("merge", *inputs, "-o", tmp_path / "named.nc", "--rule", f"{name}: once", "--scalars", "first")


@pytest.mark.parametrize("count", [1, 2])
def test_members_of_an_ensemble_name_their_dimension(tmp_path, count):
    """Files that hold other members of the same times follow one another along the members."""
    files = [simple(), simple()]
    for number, file in enumerate(files):
        file.dims["member"], file.dims["time"] = count, 3
        file.variables["member"] = Variable(("member",), 7 * number + np.arange(count))
        file.variables["rain"] = Variable(("member", "time"), np.full((count, 3), 1.0 + number))
    inputs = write_all(tmp_path, *files)
    message = MERGING.refused(inputs, names=["/member", "different coordinates", "--dim member"][: 3 if count == 1 else 2])
    assert count == 1 or "--dim" not in message
    MERGING.equal(inputs, "--dim", "member", dim="member", ordered=False)


def test_a_grid_of_another_length_is_refused(tmp_path):
    files = [simple(), simple(3)]
    files[1].dims["x"] = 3
    files[1].variables["x"].values = [10.0, 20.0, 30.0]
    files[1].variables["tas"].values = np.zeros((3, 3), "f4")
    MERGING.refused(write_all(tmp_path, *files), names=["x", "2", "3"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("i8", "f8"), ("f8", "i8"), ("i4", "f4"), ("i4", "u4"), ("i2", "i4"), ("i4", "i8"), ("f4", "f8"), ("f8", "f4"),
        ("i4", ">i4"),
    ],
)
@pytest.mark.parametrize("packing", [{}, {"scale_factor": np.float32(0.5)}])
def test_another_type_is_converted_or_refused(tmp_path, first, second, packing):
    outcome = MERGING.equal_or_refused(write_all(tmp_path, simple(type=first, **packing), simple(3, type=second, **packing)))
    assert not isinstance(outcome, Refusal) or "/tas" in outcome


@pytest.mark.parametrize("stored", [0, 1, 2])
@pytest.mark.parametrize("fill", [{}, {"_FillValue": np.float32(-1)}])
def test_short_variables_are_padded(tmp_path, stored, fill):
    # On disk the variable has fewer rows than its unlimited dimension.
    files = [simple(), simple(3), simple(6)]
    for file, rows in zip(files, [stored, None, stored]):
        file.variables["late"] = Variable(("time",), np.arange(3, dtype="f4"), dict(fill), stored_rows=rows)
    MERGING.equal(write_all(tmp_path, *files))


def test_unlimited_dimensions_without_a_coordinate(tmp_path):
    files = []
    for rows in [2, 3]:
        fields = {"a": Variable(("record",), np.arange(rows)), "b": Variable(("record", "x"), np.ones((rows, 2)))}
        files.append(File({"record": None, "x": 2}, fields))
    output = MERGING.equal(write_all(tmp_path, *files), dim="record")
    with netCDF4.Dataset(output) as merged:
        assert len(merged.dimensions["record"]) == 5


def test_an_input_without_rows(tmp_path):
    MERGING.equal(write_all(tmp_path, simple(), simple(3, 0), simple(3)))


def test_strings_of_other_lengths(tmp_path):
    files = [simple(), simple(3)]
    for file, width in zip(files, [3, 7]):
        file.dims["letters"] = width
        letters = np.array([list("ab".ljust(width, "\0")), list("abcdefg"[:width]), list("\0" * width)], "S1")
        file.variables["code"] = Variable(("time", "letters"), letters)
    output = MERGING.equal(write_all(tmp_path, *files))
    with netCDF4.Dataset(output) as merged:
        assert netCDF4.chartostring(merged["code"][:]).tolist() == ["ab", "abc", "", "ab", "abcdefg", ""]


def test_groups(tmp_path):
    files = [simple(), simple(3)]
    for number, file in enumerate(files):
        inner = {"wind": Variable(("time", "x"), np.full((3, 2), number)), "level": Variable(("x",), [1.0, 2.0])}
        deep = {"gust": Variable(("level2", "time"), np.full((2, 3), number)), "note": Variable((), 7)}
        file.groups["surface"] = File({"level2": 2}, inner, {"source": "model"}, {"deep": File({}, deep)})
    MERGING.equal(write_all(tmp_path, *files))


def test_strings_without_the_record_dimension_next_to_groups(tmp_path):
    files = [simple(), simple(3)]
    for file in files:
        file.variables["names"] = Variable(("x",), ["a", ""], type=str)
        file.groups["inner"] = File({}, {"gust": Variable(("time", "x"), np.ones((3, 2)))})
    MERGING.equal(write_all(tmp_path, *files))


def test_groups_with_times_of_their_own(tmp_path):
    files = [File({}, {}, groups={"a": simple(), "b": simple(0, 2)}), File({}, {}, groups={"a": simple(3), "b": simple(2, 2)})]
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs, ordered=False)
    with netCDF4.Dataset(output) as merged:
        assert merged["a/time"][:].tolist() == [0, 1, 2, 3, 4, 5] and merged["b/time"][:].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_variable(tmp_path, which):
    files = [simple(), simple(3)]
    values = np.arange(6.0).reshape(3, 2)
    files[which].variables["extra"] = Variable(("time", "x"), values, {"_FillValue": -1.0})
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, names=["/extra", "--join"])
    output = MERGING.equal_or_refused(inputs, "--join", "outer", judge=None)
    with netCDF4.Dataset(output) as merged:
        missing = np.full((3, 2), np.nan)
        expected = np.concatenate([values, missing] if which == 0 else [missing, values])
        np.testing.assert_array_equal(merged["extra"][:].filled(np.nan), expected)
        assert merged["tas"].shape == (6, 2)
    with h5py.File(output) as merged:
        attached = {(merged[place].name, int(axis)) for place, axis in merged["x"].attrs["REFERENCE_LIST"]}
        assert ("/extra", 1) in attached and ("/tas", 1) in attached
    output.unlink()
    output = MERGING.equal_or_refused(inputs, "--join", "inner", judge=None)
    with netCDF4.Dataset(output) as merged:
        assert "extra" not in merged.variables and merged["tas"].shape == (6, 2)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_missing_floats_without_a_fill_value_read_as_missing(tmp_path, kind, which):
    files = [simple(), simple(3)]
    files[which].variables["extra"] = Variable(("time", "x"), np.arange(6, dtype=kind).reshape(3, 2), stored_rows=2)
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal_or_refused(inputs, "--join", "outer", judge=None)
    with xr.open_dataset(output) as merged, xr.open_dataset(inputs[which]) as own:
        rows = slice(0, 3) if which == 0 else slice(3, 6)
        assert merged["extra"].dtype == kind
        # The last row was never written. The netCDF library regards it as missing, xarray only in the output.
        np.testing.assert_array_equal(merged["extra"][rows][:2], own["extra"][:2])
        assert int(merged["extra"].isnull().sum()) == 8
    with netCDF4.Dataset(output) as merged, netCDF4.Dataset(inputs[which]) as own:
        assert merged["extra"][rows].tolist() == own["extra"][:].tolist()


def test_missing_records_are_those_of_their_dimension(tmp_path):
    """A group has variables with several unlimited dimensions, which have equal lengths in one of the files."""
    files = [File({"time": None, "obs": None}, {}) for _ in range(2)]
    for file, days, counts in zip(files, [[0, 1], [2, 3, 4]], [2, 4]):
        units = {"units": "days since 2000-01-01"}
        file.variables["time"] = Variable(("time",), np.array(days, "f8"), units)
        file.variables["obs"] = Variable(("obs",), np.arange(counts, dtype="f8") + 10 * counts)
    files[0].variables["extra"] = Variable(("obs",), np.array([5.0, 6.0]))
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal_or_refused(inputs, "--join", "outer", judge=None)
    with xr.open_dataset(output) as merged:
        np.testing.assert_array_equal(merged["extra"], [5, 6, *[np.nan] * 4])
        assert merged.sizes == {"time": 5, "obs": 6}


@pytest.mark.parametrize("kind", ["i4", "u1", str, "S1"])
def test_missing_values_that_nothing_stands_for_are_refused(tmp_path, kind):
    files = [simple(), simple(3)]
    values = np.array(["a", "b", "c"], object if kind is str else "S1") if kind in [str, "S1"] else np.arange(3)
    files[1].variables["extra"] = Variable(("time",), values, type=kind)
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, "--join", "outer", names=["/extra", "--join inner"])


def test_a_grid_of_any_size_is_carried_once(tmp_path):
    """Grids of more than 64 MiB were refused."""
    inputs = write_all(tmp_path, simple(), simple(3))
    for path in inputs:
        with netCDF4.Dataset(path, "a") as file:
            file.createDimension("rows", 3000)
            file.createDimension("columns", 3000)
            grid = file.createVariable("grid", "f8", ("rows", "columns"), zlib=True, chunksizes=(700, 800))
            grid[:] = np.arange(9e6).reshape(3000, 3000) // 1000
    output = MERGING.equal_or_refused(inputs, judge=None)
    with netCDF4.Dataset(output) as merged, netCDF4.Dataset(inputs[0]) as first:
        np.testing.assert_array_equal(merged["grid"][:], first["grid"][:])
    with netCDF4.Dataset(inputs[1], "a") as file:
        file["grid"][2999, 7] = -1
    MERGING.refused(inputs, names=["/grid", "element 8997007 is 8997.0", "element 8997007 is -1.0", "--tolerance"])


def test_history_gets_a_line(tmp_path):
    inputs = write_all(tmp_path, simple(), simple(3))
    for path, line in zip(inputs, ["made by a model", "made later"]):
        with netCDF4.Dataset(path, "a") as file:
            file.history = line
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        added, *kept = merged.history.splitlines()
        assert "raddle merge" in added and kept == ["made by a model"]


def test_history_is_verified_after_an_append(tmp_path, raddle):
    inputs = write_all(tmp_path, simple(), simple(3), simple(6))
    for path in inputs:
        with netCDF4.Dataset(path, "a") as file:
            file.history = "made by a model"
    output = MERGING.equal(inputs[:2])
    raddle("append", output, inputs[2])
    raddle("verify", output, "--against", *inputs)
    with netCDF4.Dataset(output, "a") as file:
        file.history = file.history.replace("a model", "hand")
    assert "history" in raddle("verify", output, "--against", *inputs, expect=8).stdout


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda file: file.variables.update(x=Variable(("x",), [10.0, 20.0], type=np.dtype("f4"))), ["float64", "float32"]),
        (lambda file: file.variables.update(code=Variable(("time",), ["a"] * 3, type=str)), ["numbers", "values other than numbers"]),
        (lambda file: file.variables["time_bnds"].attributes.update(units="days since 2000-01-01"), ["times in units of their own"]),
        (lambda file: file.variables["crs"].attributes.update(pole=1.0), ["no attribute pole"]),
    ],
    ids=["type", "kind", "bounds", "attribute"],
)
def test_a_refusal_names_what_differs(tmp_path, change, names):
    files = [simple(), simple(3)]
    for file in files:
        file.dims["nv"] = 2
        file.variables["code"] = Variable(("time",), [1, 2, 3], type=np.dtype("i4"))
        file.variables["time"].attributes["bounds"] = "time_bnds"
        file.variables["time_bnds"] = Variable(("time", "nv"), np.ones((3, 2)))
        file.variables["crs"] = Variable((), 0, {"grid_mapping_name": "geostationary"}, type=np.dtype("i4"))
    change(files[1])
    message = MERGING.refused(write_all(tmp_path, *files), names=names)
    assert "--tolerance" not in message


def test_global_attributes_that_differ_are_listed(tmp_path, raddle):
    inputs = write_all(tmp_path, simple(), simple(3))
    for path, identity in zip(inputs, ["one", "two"]):
        with netCDF4.Dataset(path, "a") as file:
            file.tracking_id = identity
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        assert merged.tracking_id == "one"
    message = raddle("merge", *inputs, "-o", tmp_path / "again.nc")
    assert "tracking_id" in message.stdout + message.stderr
    output.unlink()
    MERGING.refused(inputs, "--require-equal", "tracking_id", names=["tracking_id", "one", "two", "--require-equal"])


def test_conventions_must_agree(tmp_path):
    files = [simple(), simple(3)]
    files[1].attributes["Conventions"] = "COARDS"
    MERGING.refused(write_all(tmp_path, *files), names=["Conventions", "CF-1.8", "COARDS"])


@pytest.mark.parametrize("first, second, others", [(8, 11, ""), (11, 8, ""), (9, 10, ", ACDD-1.3")])
def test_the_output_follows_the_latest_version_of_cf(tmp_path, raddle, first, second, others):
    def write(folder, start, *versions):
        files = [simple(start + 3 * number) for number in range(len(versions))]
        for file, version in zip(files, versions):
            file.attributes["Conventions"] = f"CF-1.{version}{others}"
        folder.mkdir()
        return write_all(folder, *files)

    inputs = write(tmp_path / "inputs", 0, first, second)
    output = MERGING.equal(inputs, "--extendible")
    latest = f"CF-1.{max(first, second)}{others}"
    with netCDF4.Dataset(output) as merged:
        assert merged.Conventions == latest
    raddle("verify", output, "--against", *inputs)
    MERGING.refused(inputs, "--require-equal", "Conventions", names=["Conventions", f"CF-1.{first}", f"CF-1.{second}"])
    # Attributes that describe a file do not change when it grows.
    earlier, later = write(tmp_path / "more", 6, 0, 12)
    raddle("append", output, earlier)
    refused = raddle("append", output, later, expect=3)
    assert f"CF-1.12{others}" in refused.stderr and latest in refused.stderr


def test_dimensions_stay_dimensions(tmp_path):
    """Compares the values that netCDF-C reads: dimensions in their order, unlimited ones, dimensions without a
    variable."""
    files = [simple(), simple(3)]
    for file in files:
        file.dims["nv"] = 2
        file.variables["edges"] = Variable(("x", "nv"), np.ones((2, 2)))
    output = MERGING.equal(write_all(tmp_path, *files))
    with netCDF4.Dataset(output) as merged:
        found = {name: (len(dim), dim.isunlimited()) for name, dim in merged.dimensions.items()}
    assert found == {"time": (6, True), "x": (2, False), "nv": (2, False)} and list(found) == ["time", "x", "nv"]


SECOND_JUDGES = {"ncrcat": ["ncrcat", "-O"], "cdo": ["cdo", "-s", "-O", "--no_history", "mergetime"]}


@pytest.mark.parametrize("tool", SECOND_JUDGES)
def test_other_tools_agree(tmp_path, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    files = [simple(), simple(3), simple(6, 2, times=[144, 168], since="hours since 2000-01-01")]
    inputs = write_all(tmp_path, *files)
    theirs = tmp_path / "theirs.nc"
    # CDO requires dates in its own form, ncrcat rebases times as raddle does.
    subprocess.run([*SECOND_JUDGES[tool], *map(str, inputs), str(theirs)], check=True, timeout=60)
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as ours, netCDF4.Dataset(theirs) as other:
        assert other["time"].units.startswith("days since 2000-01-01")
        for name in ["time", "x", "tas"]:
            np.testing.assert_array_equal(ours[name][:], other[name][:])


def test_without_a_convention_bytes_are_merged(tmp_path, raddle):
    inputs = write_all(tmp_path, simple(), simple(3, times=[72, 96, 120], since="hours since 2000-01-01"))
    output = tmp_path / "bytes.nc"
    raddle("merge", *inputs, "-o", output, "--convention", "none")
    with netCDF4.Dataset(output) as merged:
        assert merged["time"][:].tolist() == [0, 1, 2, 72, 96, 120]


def test_a_plan_names_the_convention(tmp_path, raddle):
    inputs = write_all(tmp_path, simple(), simple(3))
    message = raddle("plan", *inputs).stdout
    assert "CF" in message and "time" in message
    assert not list(tmp_path.glob("*.h5"))
