"""Values of netCDF-4 variables that depend on attributes: packed times, limits, fill values, references before the
first year, units of bounds, encodings of strings. xarray judges: a merge reads as the concatenation of its inputs, or is
refused."""

import cf_judge
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cf_files import File, Variable, simple, write_all
from command import run_command
from merging import Merging
from netcdf_variables import create, variable


def judge(output, inputs, tolerance=0.0, keep=None):
    """Asserts that xarray reads the concatenation of the inputs, in the order of their first times. ``keep`` names the
    record that is expected where times are equal: the first or the last one."""
    parts = sorted(map(read, inputs), key=lambda part: part["time"].values[0])
    expected = xr.concat(
        parts, "time", data_vars="minimal", coords="minimal", compat="equals", join="exact", combine_attrs="override"
    )
    if keep:
        expected = expected.drop_duplicates("time", keep=keep).sortby("time")
    xr.testing.assert_allclose(read(output), expected, rtol=0, atol=tolerance)


def read(path):
    return xr.load_dataset(path, decode_timedelta=False)


MERGING = Merging("cf", judge)
DAYS = "days since 2000-01-01"
ONE_DAY_EARLIER = "days since 1999-12-31"
HOURS = "hours since 2000-01-01"


def with_bounds(file, **attributes):
    """Adds bounds without units to the times of a file."""
    time = file.variables["time"]
    time.attributes["bounds"] = "time_bnds"
    file.dims["nv"] = 2
    edges = np.stack([np.asarray(time.values), np.asarray(time.values) + 1], 1)
    file.variables["time_bnds"] = Variable(("time", "nv"), edges, attributes, type=time.type)
    return file


def timed(folder, place, *attributes, units=(DAYS, DAYS), own_units=False):
    """Writes two files whose variable ``place``, the times or their bounds, has the given attributes in each. The bounds
    have ``own_units``, or those of the times."""
    files = [simple(kind="i2", since=units[0]), simple(30, kind="i2", since=units[1])]
    for file, own, since in zip(files, attributes, units):
        if place == "time_bnds":
            with_bounds(file, **({"units": since} if own_units else {}))
        file.variables[place].attributes |= own
    return write_all(folder, *files)


# Attributes that define which times the stored numbers are, or which of them are valid: a value and another one.
OF_TIMES = {
    "scale_factor": (0.5, 2.0),
    "add_offset": (10.0, 20.0),
    "_Unsigned": ("true", "false"),
    "valid_min": (np.int16(0), np.int16(-5)),
    "valid_max": (np.int16(500), np.int16(900)),
    "valid_range": (np.array([0, 500], "i2"), np.array([0, 900], "i2")),
}
each_attribute_of_times = pytest.mark.parametrize("attribute", OF_TIMES)
each_place = pytest.mark.parametrize("place", ["time", "time_bnds"])


@pytest.mark.parametrize(("place", "own_units"), [("time", False), ("time_bnds", False), ("time_bnds", True)])
@each_attribute_of_times
def test_packed_and_limited_times_are_concatenated_but_not_converted(tmp_path, place, attribute, own_units):
    own = {attribute: OF_TIMES[attribute][0]}
    inputs = timed(tmp_path, place, own, own, own_units=own_units)
    MERGING.equal(inputs)
    MERGING.refused(inputs, "--time-units", HOURS, names=[f"/{place}", attribute])
    inputs = timed(tmp_path, place, own, own, units=(DAYS, ONE_DAY_EARLIER), own_units=own_units)
    MERGING.refused(inputs, names=[f"/{place}", attribute])


@pytest.mark.parametrize("kind", ["i2", "i4"])
def test_times_with_limits_beyond_their_type_are_converted(tmp_path, kind):
    """Files of MERRA-2 have such a range, and another reference in each."""
    files = [simple(kind=kind, since="minutes since 2019-01-01 00:30"), simple(kind=kind, since="minutes since 2019-01-02 00:30")]
    for file in files:
        limits = {"valid_range": np.array([-1e15, 1e15], "f4"), "valid_min": np.float32(-1e15)}
        file.variables["time"].attributes |= limits
    MERGING.equal(write_all(tmp_path, *files))


@each_place
@each_attribute_of_times
def test_other_packing_and_limits_of_times_are_refused(tmp_path, place, attribute):
    own, other = ({attribute: value} for value in OF_TIMES[attribute])
    for first, second in [(own, other), (own, {}), ({}, own)]:
        MERGING.refused(timed(tmp_path, place, first, second, own_units=True), names=[f"/{place}", attribute])


def test_unsigned_times_are_not_ordered_as_signed_numbers(tmp_path):
    files = [simple(times=np.array(days, "u1").view("i1"), kind="i1") for days in [[0, 100], [150, 200]]]
    for file in files:
        file.variables["time"].attributes["_Unsigned"] = "true"
    MERGING.equal_or_refused(write_all(tmp_path, *files))


@pytest.mark.parametrize("holder", [0, 1])
@pytest.mark.parametrize("marker", ["_FillValue", "missing_value"])
def test_a_marker_that_is_nan_may_be_in_some_files_only(tmp_path, marker, holder):
    """xarray writes it for floats, and other programs do not."""
    files = [simple(3 * number, **({marker: np.float32("nan")} if number == holder else {})) for number in range(2)]
    for file in files:
        file.variables["tas"].values[1, 0] = np.nan
    MERGING.equal(write_all(tmp_path, *files))


@pytest.mark.parametrize("how", ["unpack", "repack"])
@pytest.mark.parametrize(("kind", "unsigned"), [("i1", "true"), ("i2", "true"), ("i4", "true"), ("u1", "false")])
def test_fill_values_of_unsigned_numbers_stay_missing(tmp_path, raddle, kind, unsigned, how):
    """The largest unsigned number is stored as -1, and the bytes of a negative number as a large one."""
    files = []
    for number, (scale, fill) in enumerate([(0.5, -1), (0.25, -2)]):
        fill = np.array(fill).astype(kind)[()]
        file = simple(3 * number, type=kind, _Unsigned=unsigned, scale_factor=scale, add_offset=1.0, _FillValue=fill)
        file.variables["tas"].values[:] = np.array([[fill, 0], [1, 100], [-3, -100]]).astype(kind)
        files.append(file)
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs, "--packing", how, judge=None)
    tolerance = 0.0
    if how == "repack":
        tolerance = xr.load_dataset(output, mask_and_scale=False)["tas"].attrs["scale_factor"] * 0.501
    judge(output, inputs, tolerance=tolerance)
    assert np.isnan(read(output)["tas"]).sum() == 2
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
@pytest.mark.parametrize("kind", ["i4", "f8"])
@pytest.mark.parametrize(("units", "options"), [((DAYS, ONE_DAY_EARLIER), []), ((DAYS, DAYS), ["--time-units", HOURS])])
def test_missing_bounds_of_times_stay_missing(tmp_path, units, options, kind, attribute):
    files = []
    for number, since in enumerate(units):
        file = with_bounds(simple(30 * number, kind=kind, since=since), **{attribute: np.dtype(kind).type(-9999)})
        file.variables["time_bnds"].values[1, 1] = -9999
        files.append(file)
    output = MERGING.equal(write_all(tmp_path, *files), *options)
    assert np.isnat(read(output)["time_bnds"].values).sum() == 2


@each_place
@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_times_that_a_conversion_would_turn_into_missing_ones_are_refused(tmp_path, place, attribute):
    fill = {attribute: np.int16(-1)}
    # The last edge of the first file, and the first time of the second file, are one hour before the second day.
    files = [simple(times=[20, 22], since=HOURS, kind="i2"), simple(times=[23, 24], since=HOURS, kind="i2")]
    for file in files:
        with_bounds(file).variables[place].attributes |= fill
    inputs = write_all(tmp_path, *files)
    MERGING.equal(inputs)
    MERGING.refused(inputs, "--time-units", "hours since 2000-01-02", names=[f"/{place}", attribute])
    files[0].variables["time"].attributes["units"] = "hours since 2000-01-02"
    files[0].variables["time"].values = [-5, -4]
    files[0].variables["time_bnds"].values = np.array([[-5, -4], [-4, -3]])
    MERGING.refused(write_all(tmp_path, *files), names=[f"/{place}", attribute])


def test_a_station_whose_number_would_be_the_fill_value_is_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        with create(path) as file:
            file.createDimension("station", None)
            file.createDimension("obs", None)
            variable(file, "lat", "f4", ("station",), [0, 1])
            variable(file, "station_index", "i4", ("obs",), [0, 1], fill=3, instance_dimension="station")
    MERGING.refused(paths, names=["/station_index", "_FillValue"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reference", ["-4713-01-01 12:00:00", "0000-01-01"])
def test_references_before_the_first_year(tmp_path, reference):
    """The standard and the Julian calendar have no year 0, but files and programs disagree about it. The other
    calendars have one."""
    first = f"days since {reference}"
    calendars = {"standard": False, "gregorian": False, "julian": False, None: False}
    calendars |= {"proleptic_gregorian": True, "noleap": True, "360_day": True}
    for calendar, is_converted in calendars.items():
        early = [simple(times=730000.0 + day + np.arange(3), since=first) for day in [0, 3]]
        late = [simple(times=2500000.0 + day + np.arange(3), since=DAYS) for day in [0, 3]]
        for file in early + late if calendar else []:
            file.variables["time"].attributes["calendar"] = calendar
        # cftime reads no reference in year 0 of a calendar without that year.
        is_readable = is_converted or reference[0] == "-"
        MERGING.equal(write_all(tmp_path, *early), judge=cf_judge.judge if is_readable else None)
        cases = [([early[0], late[0]], []), ([late[0], early[0]], [])]
        cases += [(early, ["--time-units", DAYS]), (late, ["--time-units", first])]
        for files, options in cases:
            inputs = write_all(tmp_path, *files)
            if is_converted:
                MERGING.equal(inputs, *options, judge=cf_judge.judge)
            else:
                MERGING.refused(inputs, *options, names=["/time", "units"])


@pytest.mark.parametrize("date", ["19700101", "1970-001"])
def test_dates_without_months_are_not_read_as_years(tmp_path, date):
    files = [simple(since=f"days since {date}"), simple(3, since=f"days since {date}"), simple(6, since="days since 1970-01-02")]
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs[:2], judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].units == f"days since {date}" and merged["time"][:].tolist() == [0, 1, 2, 3, 4, 5]
    for order in [inputs[1:], inputs[:0:-1]]:
        MERGING.refused(order, names=["/time", "units", date])
    MERGING.refused(inputs[:2], "--time-units", DAYS, names=["/time", "units", date])
    output = tmp_path / "converted.nc"
    finished = run_command("merge", inputs[2], "-o", output, "--time-units", f"days since {date}")
    assert finished.returncode in [2, 3] and date in finished.stderr and not output.exists()


def test_a_time_zone_without_a_sign(tmp_path):
    """Files of ARM have such units, with another day in each."""
    units = [f"seconds since 2019-01-0{day} 00:00:00 0:00" for day in [1, 2]]
    inputs = write_all(tmp_path, *(simple(times=[0, 60], since=since) for since in units))
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        assert merged["time"].units == units[0] and merged["time"][:].tolist() == [0, 60, 86400, 86460]


@pytest.mark.parametrize("kind", ["i2", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("has_marker", [True, False])
def test_times_that_were_never_written_stay_missing_or_are_refused(tmp_path, kind, has_marker):
    """Without an attribute that names it, the netCDF default fill value is a missing value for netCDF4 only."""
    inputs = write_all(tmp_path, simple(), simple(3))
    fill = netCDF4.default_fillvals[kind]
    for path, day in zip(inputs, [1, 3]):
        with netCDF4.Dataset(path, "a") as file:
            seen = file.createVariable("seen", kind, ("time",), fill_value=fill if has_marker else None)
            seen.units = f"hours since 2000-01-0{day}"
            seen[0], seen[2] = 5, 7
    if not has_marker:
        MERGING.refused(inputs, names=["/seen", "_FillValue"])
        return
    output = MERGING.equal(inputs)
    with netCDF4.Dataset(output) as merged:
        assert merged["seen"][:].tolist() == [5, None, 7, 53, None, 55]


def unwritten(folder, kind, fill, *attributes):
    """Writes files with a variable ``seen``, whose second record is never written."""
    inputs = write_all(folder, simple(), simple(3))
    for path, own in zip(inputs, attributes):
        with netCDF4.Dataset(path, "a") as file:
            seen = file.createVariable("seen", kind, ("time",), fill_value=fill)
            seen.setncatts(own)
            seen.set_auto_maskandscale(False)
            seen[0], seen[2] = 5, 7
    return inputs


@pytest.mark.parametrize(("kind", "how"), [("i2", "unpack"), ("i2", "repack"), ("i4", "repack"), ("u2", "unpack"), ("f4", "unpack")])
@pytest.mark.parametrize("marker", [None, "_FillValue", "missing_value"])
def test_packed_values_that_were_never_written_stay_missing_or_are_refused(tmp_path, kind, how, marker):
    """netCDF4 masks the netCDF default fill value unless ``_FillValue`` names another; xarray masks only what attributes name."""
    fill = np.dtype(kind).type(netCDF4.default_fillvals[kind])
    attributes = [{"scale_factor": scale} | ({marker: fill} if marker == "missing_value" else {}) for scale in [0.5, 0.25]]
    inputs = unwritten(tmp_path, kind, fill if marker == "_FillValue" else None, *attributes)
    options = ["--packing", how]
    if marker is None:
        MERGING.refused(inputs, *options, names=["/seen", str(fill)[:4].replace(".", ""), "_FillValue"])
        return
    output = MERGING.equal(inputs, *options, judge=None)
    with netCDF4.Dataset(output) as merged:
        found = merged["seen"][:].tolist()
    assert [found[1], found[4]] == [None, None]
    np.testing.assert_allclose([found[0], *found[2:4], found[5]], [2.5, 3.5, 1.25, 1.75], atol=1e-4)
    with xr.open_dataset(output) as merged:
        assert np.isnan(merged["seen"]).values.tolist() == [False, True, False] * 2


@pytest.mark.parametrize("has_marker", [True, False])
@pytest.mark.parametrize(
    ("attribute", "values", "option"), [("scale_factor", (0.5, 0.25), "--packing=unpack"), ("units", ("m", "km"), "--units=convert")]
)
def test_variables_that_are_shorter_than_their_dimension(tmp_path, attribute, values, option, has_marker):
    """Elements after their end read as the fill value."""
    inputs = write_all(tmp_path, simple(), simple(3))
    for path, value in zip(inputs, values):
        with netCDF4.Dataset(path, "a") as file:
            late = file.createVariable("late", "f4", ("time",), fill_value=netCDF4.default_fillvals["f4"] if has_marker else None)
            late.setncattr(attribute, value)
            late.set_auto_maskandscale(False)
            late[0] = 5
    if not has_marker:
        MERGING.refused(inputs, option, names=["/late", "_FillValue"])
        return
    output = MERGING.equal(inputs, option, judge=None)
    with netCDF4.Dataset(output) as merged:
        assert merged["late"][:].mask.tolist() == [False, True, True] * 2
    with xr.open_dataset(output) as merged:
        assert np.isnan(merged["late"].values).tolist() == [False, True, True] * 2


@pytest.mark.parametrize("kind", ["i1", "u1"])
def test_bytes_have_no_fill_value_of_netcdf(tmp_path, kind):
    """Every byte is a number for netCDF4 and for xarray."""
    inputs = unwritten(tmp_path, kind, None, {"scale_factor": 0.5}, {"scale_factor": 0.25})
    output = MERGING.equal(inputs, "--packing", "unpack", judge=None)
    number = float(netCDF4.default_fillvals[kind])
    with netCDF4.Dataset(output) as merged:
        assert merged["seen"][:].tolist() == [2.5, number / 2, 3.5, 1.25, number / 4, 1.75]


@pytest.mark.parametrize(
    ("units", "kind"), [(("degC", "K"), "f4"), (("degC", "K"), "f8"), (("m", "km"), "f4"), (("m", "km"), "i4"), (("g", "kg"), "f8")]
)
@pytest.mark.parametrize("has_marker", [True, False])
def test_converted_values_that_were_never_written_stay_missing_or_are_refused(tmp_path, kind, units, has_marker):
    """A shift does not change the netCDF default fill value, because it is a large number."""
    fill = netCDF4.default_fillvals[kind]
    inputs = unwritten(tmp_path, kind, fill if has_marker else None, *({"units": unit} for unit in units))
    if not has_marker and units[0] != "degC":
        MERGING.refused(inputs, "--units", "convert", names=["/seen", "_FillValue"])
        return
    output = MERGING.equal(inputs, "--units", "convert", judge=None)
    with netCDF4.Dataset(output) as merged:
        found = merged["seen"][:].tolist()
    assert [found[1], found[4]] == [None, None] and found[0] == 5 and found[3] == pytest.approx(5 - 273.15 if units[0] == "degC" else 5000)
    with xr.open_dataset(output) as merged:
        seen = merged["seen"].values[[1, 4]]
        assert np.isnan(seen).all() if has_marker else (seen == np.dtype(kind).type(fill)).all()


@pytest.mark.parametrize("zone", ["+5", "-8:00", "+5:30", "UTC+1", "+05:3", "+053", "+aéb"])
def test_time_zones_that_readers_ignore_are_refused(tmp_path, zone):
    """pandas, and so xarray for some calendars, reads these as time zones, and cftime ignores them."""
    units = ["hours since 2000-01-01", f"hours since 2000-01-01 00:00:00 {zone}"]
    inputs = write_all(tmp_path, simple(times=[0, 1], since=units[0]), simple(times=[48, 49], since=units[1]))
    MERGING.refused(inputs, names=["/time", *units])


@pytest.mark.parametrize("zone", ["+05", "-08:00", "+0530", "+0", "UTC", "Z"])
def test_time_zones_that_all_readers_know(tmp_path, zone):
    units = ["hours since 2000-01-01", f"hours since 2000-01-01 00:00:00 {zone}"]
    MERGING.equal(write_all(tmp_path, simple(times=[0, 1], since=units[0]), simple(times=[48, 49], since=units[1])))


def test_an_overlap_with_times_that_only_one_file_has_is_refused(tmp_path):
    cases = {
        "first and last": [([0, 2, 4], [1, 3, 5]), ([0, 1, 3, 4], [2]), ([0, 1, 2.5, 3], [2, 3, 4]), ([0, 1, 2], [1, 1.5, 3])],
        "first": [([0, 1, 2, 3], [2, 2.5, 3, 4])],
        "last": [([0, 1, 2, 2.5, 3], [2, 3, 4])],
    }
    equal = [([0, 1, 2, 3], [2, 3, 4, 5]), ([0, 1, 2], [2, 3]), ([0, 1], [0, 1])]
    for which in ["first", "last"]:
        for first, second in equal:
            inputs = write_all(tmp_path, simple(times=first), simple(30, times=second))
            MERGING.equal(inputs, "--overlap", which, keep=which)
        for first, second in [pair for words, pairs in cases.items() if which in words for pair in pairs]:
            inputs = write_all(tmp_path, simple(times=first), simple(30, times=second))
            MERGING.refused(inputs, "--overlap", which, names=["/time"])


@pytest.mark.parametrize("along", ["z", "time"])
@pytest.mark.parametrize(("units", "slope", "shift"), [(("m", "cm"), 100.0, 0.0), (("degC", "K"), 1.0, 273.15)])
def test_bounds_have_the_units_of_their_coordinate(tmp_path, units, slope, shift, along):
    files = []
    for number, (unit, factor, offset) in enumerate(zip(units, [1.0, slope], [0.0, shift])):
        edges = np.arange(2.0)[:, None] + 2 * number + [0.0, -0.5, 0.5]
        values = edges * factor + offset
        file = File({along: None, "nv": 2}, {"z": Variable((along,), values[:, 0], {"units": unit, "bounds": "z_bnds"})})
        file.variables["z_bnds"] = Variable((along, "nv"), values[:, 1:])
        file.attributes["Conventions"] = "CF-1.8"
        if along == "time":
            file.variables["time"] = Variable(("time",), np.arange(2.0) + 2 * number, {"units": DAYS})
        files.append(file)

    def judge_coordinate(output, inputs):
        merged = read(output)
        assert merged["z"].attrs["units"] == units[0]
        np.testing.assert_allclose(merged["z"], np.arange(4.0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(merged["z_bnds"], np.arange(4.0)[:, None] + [-0.5, 0.5], rtol=0, atol=1e-12)

    MERGING.equal_or_refused(write_all(tmp_path, *files), "--units", "convert", judge=judge_coordinate)


def test_differences_of_temperatures_are_not_converted_like_temperatures(tmp_path):
    metadata = {"units_metadata": "temperature: difference"}
    for unit in ["mK", "degC", "degF"]:
        files = [simple(type="f8", **metadata), simple(3, type="f8", **metadata)]
        files[1].variables["tas"].attributes["units"] = unit
        inputs = write_all(tmp_path, *files)
        if unit == "mK":
            output = MERGING.equal(inputs, "--units", "convert", judge=None)
            np.testing.assert_allclose(read(output)["tas"][3:], read(inputs[1])["tas"] / 1000, rtol=1e-14)
        else:
            MERGING.refused(inputs, "--units", "convert", names=["/tas", "units_metadata"])


@pytest.mark.parametrize("options", [[], ["--units", "convert"]])
def test_differences_of_temperatures_are_not_joined_to_temperatures(tmp_path, options):
    metadata = ["temperature: difference", "temperature: on_scale"]
    files = [simple(3 * number, type="f8", units_metadata=text) for number, text in enumerate(metadata)]
    MERGING.refused(write_all(tmp_path, *files), *options, names=["/tas", "units_metadata", *metadata])


@pytest.mark.parametrize("encodings", [("latin-1", "utf-8"), ("utf-8", "latin-1"), ("utf-8", None), (None, "utf-8")])
def test_other_encodings_of_strings_are_refused(tmp_path, encodings):
    def write(encodings):
        files = [simple(), simple(3)]
        for file, encoding in zip(files, encodings):
            text = "é".encode(encoding or "utf-8").ljust(4, b"\0")
            letters = np.tile(np.frombuffer(text, "S1"), (3, 1))
            file.dims["letters"] = len(text)
            attributes = {"_Encoding": encoding} if encoding else {}
            file.variables["name"] = Variable(("time", "letters"), letters, attributes)
        return write_all(tmp_path, *files)

    MERGING.equal(write(encodings[:1] * 2))
    MERGING.refused(write(encodings), names=["/name", "_Encoding", *filter(None, encodings)])


@pytest.mark.parametrize("kinds", [("bool", None), (None, "bool"), ("timedelta64[ns]", None), (None, "timedelta64[ns]")])
def test_other_types_of_decoded_values_are_refused(tmp_path, raddle, kinds):
    """xarray reads numbers as booleans or durations where an attribute says so."""
    files = [simple(3 * number, **({"dtype": kind} if kind else {})) for number, kind in enumerate(kinds)]
    for number, file in enumerate(files):
        kind, units = ("i1", "1") if "bool" in kinds else ("i8", "hours")
        field = file.variables["tas"]
        field.values, field.type, field.attributes["units"] = np.full((3, 2), 5 * number), np.dtype(kind), units
    inputs = write_all(tmp_path, *files)
    MERGING.refused(inputs, names=["/tas", "dtype", *filter(None, kinds)])
    output = MERGING.equal(inputs[:1])
    before = output.read_bytes()
    refused = raddle("append", output, inputs[1], expect=3)
    assert "/tas" in refused.stderr and "dtype" in refused.stderr
    assert output.read_bytes() == before


def unsigned_axis(values, **dims):
    """Returns a file of one field along an axis, which is stored as signed bytes."""
    axis = Variable(("x",), np.array(values, "u1").view("i1"), {"_Unsigned": "true"})
    field = Variable((*dims, "x"), np.broadcast_to(np.array(values, "f4"), (*dims.values(), len(values))))
    return File({**dims, "x": len(values)}, {"x": axis, "v": field}, {"Conventions": "CF-1.8"})


def test_unsigned_coordinates_are_selected_by_number_only(tmp_path):
    files = [unsigned_axis([0, 50, 100, 150, 200], time=1) for _ in range(2)]
    for number, file in enumerate(files):
        file.variables["time"] = Variable(("time",), [float(number)], {"units": DAYS})
        file.dims["time"] = None
    inputs = write_all(tmp_path, *files)
    output = MERGING.equal(inputs, "--select", "x=2:5", judge=None)
    assert read(output)["x"].values.tolist() == [100, 150, 200]
    MERGING.refused(inputs, "--select", "x=100..200", names=["/x", "_Unsigned"])


def test_tiles_are_not_placed_by_unsigned_coordinates(tmp_path):
    inputs = write_all(tmp_path, unsigned_axis([100, 120]), unsigned_axis([150, 200]))
    MERGING.refused(inputs, "--tiles", names=["/x", "_Unsigned"])
