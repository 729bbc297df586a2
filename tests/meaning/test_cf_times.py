"""Times of netCDF-4 files: other units and references are converted exactly or refused, other calendars are refused."""

import itertools

import cf_judge
import cftime
import netCDF4
import numpy as np
import pytest
import xarray
from cf_files import Variable, simple, write_all
from merging import Merging, Refusal

MERGING = Merging("cf", cf_judge.judge)


# Consecutive files: their times are those of 2000-01-01 to 2000-01-06.
FOLLOWING = {
    "hours": dict(times=[72, 96, 120], since="hours since 2000-01-01"),
    "minutes": dict(times=[4320, 5760, 7200], since="minutes since 2000-01-01 00:00"),
    "seconds": dict(times=[259200, 345600, 432000], since="seconds since 2000-01-01 00:00:00"),
    "another reference": dict(times=[35, 36, 37], since="days since 1999-11-30"),
    "reference at noon": dict(times=[2.5, 3.5, 4.5], since="days since 2000-01-01 12:00:00"),
    "reference in another zone": dict(times=[73, 97, 121], since="hours since 2000-01-01 00:00:00 +01:00"),
    "reference in ISO 8601": dict(times=[3, 4, 5], since="days since 2000-01-01T00:00:00Z"),
    "reference without zeros": dict(times=[3, 4, 5], since="days since 2000-1-1"),
    "another letter case": dict(times=[3, 4, 5], since="Days since 2000-01-01"),
    "an abbreviation": dict(times=[72, 96, 120], since="h since 2000-01-01"),
}


@pytest.mark.parametrize(("what", "kind"), [*itertools.product(FOLLOWING, ["f8", "i4"]), ("hours", "f4"), ("hours", "i8")])
def test_times_of_other_units_are_converted(tmp_path, raddle, what, kind):
    if kind.startswith("i") and what == "reference at noon":
        pytest.skip("halves are not integers")
    first, second = simple(kind=kind), simple(3, kind=kind, **FOLLOWING[what])
    inputs = write_all(tmp_path, first, second)
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].units == "days since 2000-01-01"
        assert merged["time"].dtype == np.dtype(kind)
        assert merged["time"][:].tolist() == [0, 1, 2, 3, 4, 5]
    raddle("verify", output, "--against", *inputs)


def test_the_first_input_gives_the_units_of_times(tmp_path):
    first = simple(times=[0, 24, 48], since="hours since 2000-01-01", kind="i4")
    output = MERGING.equal(write_all(tmp_path, first, simple(3, kind="i4")))
    with netCDF4.Dataset(output) as merged:
        assert merged["time"][:].tolist() == [0, 24, 48, 72, 96, 120]


@pytest.mark.parametrize("kind", ["i4", "i8", "f4"])
def test_times_that_the_type_cannot_hold_are_refused(tmp_path, kind):
    # A third of a day is neither an integer nor exact in float32.
    other = simple(3, times=[80, 104, 128], since="hours since 2000-01-01", kind=kind)
    inputs = write_all(tmp_path, simple(kind=kind), other)
    MERGING.refused(
        inputs, names=["/time", "units", "days since 2000-01-01", "hours since 2000-01-01", "--time-units"]
    )
    output = MERGING.equal(inputs, "--time-units", "hours since 2000-01-01")
    with netCDF4.Dataset(output) as merged:
        assert merged["time"][:].tolist() == [0, 24, 48, 80, 104, 128]


def test_a_third_of_a_day_is_not_rounded_to_a_double(tmp_path):
    other = simple(3, times=[80, 104, 128], since="hours since 2000-01-01")
    MERGING.refused(write_all(tmp_path, simple(), other), names=["/time", "--time-units"])


THIRDS = np.arange(9) / 3


def eight_hourly(kind="f8"):
    """Returns three files of three days, each of which counts days from its own first day."""
    return [
        simple(day, times=THIRDS, since=f"days since 2000-01-{day + 1:02}", kind=kind) for day in (0, 3, 6)
    ]


@pytest.mark.parametrize(
    ("units", "per_day"), [("days since 2000-01-01", 1), ("hours since 2000-01-01", 24), ("days since 1950-01-01", 1)]
)
def test_thirds_of_a_day_become_the_nearest_doubles(tmp_path, raddle, units, per_day):
    inputs = write_all(tmp_path, *eight_hourly())
    MERGING.refused(inputs, names=["/time", "--time-units", "--times nearest"])
    output = tmp_path / "output.nc"
    options = ["--times", "nearest", "--time-units", units]
    raddle("merge", *inputs[:2], "-o", output, *options)
    raddle("append", output, inputs[2])
    raddle("verify", output, "--against", *inputs)
    expected = np.datetime64("2000-01-01", "us") + np.arange(27) * np.timedelta64(8, "h")
    with xarray.open_dataset(output) as merged:
        found = merged["time"].values.astype("M8[us]")
        assert abs(found - expected).max() <= np.timedelta64(1, "us")
    with netCDF4.Dataset(output) as merged:
        if not units.endswith("1950-01-01"):
            assert merged["time"][:].tolist() == (np.arange(27) * per_day / 3).tolist()


def test_appended_times_without_a_counterpart_need_another_merge(tmp_path, raddle):
    """An append has no options for times, so the advice is to merge with them."""
    inputs = write_all(tmp_path, simple(), simple(4, times=[8, 32], since="hours since 2000-02-01"))
    output = tmp_path / "output.nc"
    raddle("merge", inputs[0], "-o", output)
    refused = raddle("append", output, inputs[1], expect=3).stderr
    assert refused.endswith("merge all inputs into a new file with an option that the message names\n"), refused
    MERGING.equal(inputs, "--time-units", "hours since 2000-01-01")


def test_integers_become_the_nearest_doubles(tmp_path, raddle):
    first, second = simple(), simple(3, times=[80, 104, 128], since="hours since 2000-01-01", kind="i4")
    inputs = write_all(tmp_path, first, second)
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, "--times", "nearest")
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].dtype == np.dtype("f8")
        assert merged["time"][:].tolist() == [0, 1, 2, 80 / 24, 104 / 24, 128 / 24]


@pytest.mark.parametrize(("kind", "names"), [("f4", ["microsecond"]), ("i4", ["--times nearest", "floating-point"])])
def test_nearest_times_are_within_a_microsecond(tmp_path, kind, names):
    other = simple(3, times=[80, 104, 128], since="hours since 2000-01-01", kind=kind)
    inputs = write_all(tmp_path, simple(kind=kind), other)
    MERGING.refused(inputs, "--times", "nearest", names=["/time", "80 hours since 2000-01-01", "--time-units", *names])
    output = MERGING.equal(inputs, "--times", "nearest", "--time-units", "hours since 2000-01-01")
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].dtype == np.dtype(kind)


def test_time_units_convert_every_input(tmp_path):
    inputs = write_all(tmp_path, simple(), simple(3))
    output = MERGING.equal(inputs, "--time-units", "seconds since 1970-01-01")
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].units == "seconds since 1970-01-01"
        assert merged["time"][0] == 946684800


@pytest.mark.parametrize("kind", ["f8", "i4"])
@pytest.mark.parametrize("own_units", [True, False])
def test_bounds_are_converted_with_their_parent(tmp_path, kind, own_units):
    files = [simple(), simple(3, times=[72, 96, 120], since="hours since 2000-01-01")]
    for file, hours in zip(files, [24, 1]):
        time = file.variables["time"]
        time.attributes["bounds"] = "time_bnds"
        file.dims["nv"] = 2
        edges = np.stack([np.asarray(time.values), np.asarray(time.values) + 24 // hours], 1)
        attributes = {"units": time.attributes["units"]} if own_units else {}
        file.variables["time_bnds"] = Variable(("time", "nv"), edges, attributes, type=np.dtype(kind))
    output = MERGING.equal(write_all(tmp_path, *files))
    with netCDF4.Dataset(output) as merged:
        assert merged["time_bnds"][:].tolist() == [[day, day + 1] for day in range(6)]


def test_bounds_with_a_unit_but_no_reference_are_not_converted(tmp_path):
    """Older models write bounds in ``days`` for a time in ``days since ...``."""

    def write(**second):
        files = [simple(), simple(3, **second)]
        for file in files:
            time = file.variables["time"]
            time.attributes["bounds"] = "time_bnds"
            file.dims["nv"] = 2
            file.variables["time_bnds"] = Variable(("time", "nv"), np.add.outer(time.values, [0, 1]), {"units": "days"})
        return write_all(tmp_path, *files)

    # The judge takes bounds for times.
    output = MERGING.equal(write(), judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["time_bnds"][:].tolist() == [[day, day + 1] for day in range(6)]
    output.unlink()
    MERGING.refused(
        write(times=[0.0, 1.0, 2.0], since="days since 2000-01-04"),
        names=["/time_bnds", "days since 2000-01-01", "days since 2000-01-04", 'bounds in "days"'],
    )


@pytest.mark.parametrize("form", ["/limits/time_bnds", "limits/time_bnds", "../limits/time_bnds"])
def test_bounds_of_another_group_are_converted_with_their_parent(tmp_path, form):
    """CF names variables of other groups by paths (section 2.7)."""
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.Conventions = "CF-1.8"
            file.createDimension("time", None)
            file.createDimension("nv", 2)
            time = (file.createGroup("data") if form.startswith("..") else file).createVariable("time", "f8", ("time",))
            time.setncatts({"units": f"days since 2000-01-0{1 + number}", "bounds": form})
            time[:] = [0, 0.5]
            bounds = file.createGroup("limits").createVariable("time_bnds", "f8", ("time", "nv"))
            bounds[:] = [[0, 0.5], [0.5, 1]]
    output = MERGING.equal(inputs, judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["limits/time_bnds"][:].tolist() == [[0, 0.5], [0.5, 1], [1, 1.5], [1.5, 2]]


def with_bounds(folder, references, calendar, own_units):
    """Writes files of two days each that count from `references`, with bounds that have no calendar of their own."""
    inputs = [folder / f"{number}.nc" for number in range(len(references))]
    for path, reference in zip(inputs, references):
        units = f"days since {reference}"
        with netCDF4.Dataset(path, "w") as file:
            file.Conventions = "CF-1.8"
            file.createDimension("time", None)
            file.createDimension("nv", 2)
            time = file.createVariable("time", "f8", ("time",))
            time.setncatts({"units": units, "calendar": calendar, "bounds": "time_bnds"})
            bounds = file.createVariable("time_bnds", "f8", ("time", "nv"))
            if own_units:
                bounds.units = units
            time[:] = [0, 1]
            bounds[:] = [[0, 1], [1, 2]]
            file.createVariable("tas", "f4", ("time",))[:] = 280
    return inputs


@pytest.mark.parametrize("options", [["--exclude", "time"], ["--include", "time_bnds", "--include", "tas"]])
@pytest.mark.parametrize("own_units", [True, False])
def test_bounds_without_their_time_have_its_units(tmp_path, raddle, options, own_units):
    inputs = with_bounds(tmp_path, ["2000-02-28", "2000-03-01"], "noleap", own_units)
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, *options)
    raddle("verify", output, "--against", *inputs)
    with netCDF4.Dataset(output) as merged:
        bounds = merged["time_bnds"]
        dates = cftime.num2date(bounds[:, 0], bounds.units, bounds.calendar)
    assert [str(date)[:10] for date in dates] == ["2000-02-28", "2000-03-01", "2000-03-01", "2000-03-02"]


def test_bounds_without_their_coordinate_have_its_units(tmp_path, raddle):
    inputs = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path, units in zip(inputs, ["m", "km"]):
        with netCDF4.Dataset(path, "w") as file:
            file.Conventions = "CF-1.8"
            file.createDimension("depth", None)
            file.createDimension("nv", 2)
            file.createVariable("depth", "f8", ("depth",)).setncatts({"units": units, "bounds": "depth_bnds"})
            file.createVariable("depth_bnds", "f8", ("depth", "nv"))[:] = [[0, 1], [1, 2]]
    MERGING.refused(inputs, "--exclude", "depth", names=["/depth_bnds", "units", '"m"', '"km"', "--units convert"])
    output = tmp_path / "output.nc"
    raddle("merge", *inputs, "-o", output, "--exclude", "depth", "--units", "convert")
    with netCDF4.Dataset(output) as merged:
        assert merged["depth_bnds"].units == "m"
        assert merged["depth_bnds"][:].tolist() == [[0, 1], [1, 2], [0, 1000], [1000, 2000]]


@pytest.mark.parametrize("own_units", [True, False])
@pytest.mark.parametrize("options", [[], ["--time-units", "days since 1999-12-31"]])
def test_bounds_have_the_calendar_of_their_time(tmp_path, raddle, own_units, options):
    inputs = with_bounds(tmp_path, ["2000-01-01", "2001-01-01", "2002-01-01"], "noleap", own_units)
    output = tmp_path / "output.nc"
    raddle("merge", *inputs[:2], "-o", output, *options)
    raddle("append", output, inputs[2])
    raddle("verify", output, "--against", *inputs)
    first = 1 if options else 0
    with netCDF4.Dataset(output) as merged:
        assert (merged["time"][:] - first).tolist() == [0, 1, 365, 366, 730, 731]
        assert merged["time_bnds"][:, 0].tolist() == merged["time"][:].tolist()
        assert getattr(merged["time_bnds"], "units", merged["time"].units) == merged["time"].units


def test_every_variable_of_time_units_is_converted(tmp_path):
    files = [simple(), simple(3)]
    for file, units, value in zip(files, ["days since 2000-01-01", "hours since 2000-01-01"], [1, 48]):
        file.variables["forecast_reference_time"] = Variable(("time",), np.full(3, value), {"units": units}, type=np.dtype("i4"))
    output = MERGING.equal(write_all(tmp_path, *files))
    with netCDF4.Dataset(output) as merged:
        assert merged["forecast_reference_time"][:].tolist() == [1, 1, 1, 2, 2, 2]


def test_fill_values_of_times_stay(tmp_path):
    files = [simple(), simple(3)]
    for file, units in zip(files, ["days since 2000-01-01", "hours since 2000-01-01"]):
        attributes = {"units": units, "_FillValue": np.int32(-999)}
        file.variables["seen"] = Variable(("time",), [24, -999, 48], attributes, type=np.dtype("i4"))
    output = MERGING.equal_or_refused(write_all(tmp_path, *files))
    if not isinstance(output, Refusal):
        with netCDF4.Dataset(output) as merged:
            assert merged["seen"][:].tolist() == [24, None, 48, 1, None, 2]


@pytest.mark.parametrize("units", [("months", "days"), ("days", "months"), ("months", "months")])
def test_months_of_30_days(tmp_path, units):
    inputs = []
    for number, unit in enumerate(units):
        times = (np.arange(3) + 3 * number - number) * (30 if unit == "days" else 1)
        since = f"{unit} since 2000-0{1 + number}-01"
        inputs.append(simple(3 * number, times=times, since=since))
        inputs[-1].variables["time"].attributes["calendar"] = "360_day"
    output = MERGING.equal(write_all(tmp_path, *inputs))
    with netCDF4.Dataset(output) as merged:
        assert (merged["time"][:] / (30 if units[0] == "days" else 1)).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("calendar", "unit"), [("standard", "months"), ("noleap", "months"), ("360_day", "years")])
def test_months_of_other_lengths_are_refused(tmp_path, calendar, unit):
    inputs = [simple(3 * number, times=[0, 1, 2], since=f"{unit} since 200{number}-01-01") for number in range(2)]
    for file in inputs:
        file.variables["time"].attributes["calendar"] = calendar
    MERGING.refused(write_all(tmp_path, *inputs), names=["/time", "2000-01-01", "2001-01-01", "cdo setreftime"])


@pytest.mark.parametrize(
    ("first", "second"), [("noleap", "standard"), ("360_day", "noleap"), ("standard", "julian"), (None, "noleap")]
)
def test_another_calendar_is_refused(tmp_path, first, second):
    files = [simple(), simple(3)]
    for file, calendar in zip(files, [first, second]):
        if calendar:
            file.variables["time"].attributes["calendar"] = calendar
    names = ["/time", "calendar", second, first or "standard"]
    MERGING.refused(write_all(tmp_path, *files), names=names)


@pytest.mark.parametrize(("first", "second"), [("standard", "gregorian"), ("noleap", "365_day"), ("standard", None)])
def test_names_of_one_calendar_are_equal(tmp_path, first, second):
    files = [simple(), simple(3, times=[72, 96, 120], since="hours since 2000-01-01")]
    for file, calendar in zip(files, [first, second]):
        if calendar:
            file.variables["time"].attributes["calendar"] = calendar
    MERGING.equal(write_all(tmp_path, *files))
