"""Datasets of many kinds as xarray writes them, with its own choice of types, units and fill values, and reads them
back."""

import numpy as np
import pytest
import xarray as xr
from merging import Merging

DAYS = 5
NAT = np.datetime64("NaT")


def judge(output, inputs):
    with xr.open_dataset(output, decode_timedelta=True) as merged:
        parts = [xr.open_dataset(path, decode_timedelta=True) for path in inputs]
        dim = "time" if "time" in merged.dims else "station"
        expected = xr.concat(
            parts, dim, data_vars="minimal", coords="minimal", compat="override", join="exact", combine_attrs="override"
        )
        xr.testing.assert_equal(merged, expected)
        for name in expected.variables:
            assert merged[name].dtype == expected[name].dtype, name


MERGING = Merging("cf", judge)


def days(number, step="D"):
    start = np.datetime64("2001-01-01", "ns") + number * DAYS * np.timedelta64(1, "D")
    return start + np.arange(DAYS) * np.timedelta64(1, step)


def base(number):
    random = np.random.default_rng(number)
    return xr.Dataset(
        {"tas": (("time", "lat", "lon"), random.normal(280, 5, (DAYS, 2, 3)).astype("f4"), {"units": "K"})},
        {"time": days(number), "lat": [-45.0, 45.0], "lon": [0.0, 120.0, 240.0]},
    )


def added(**variables):
    """Returns datasets with more variables, each a function of the file's number."""
    return lambda number: base(number).assign({name: make(number) for name, make in variables.items()})


def numbers(kind, by=1):
    return np.arange(DAYS, dtype=kind) * by


def with_nat(number):
    times = days(number)
    times[2] = NAT
    return "time", times


def curvilinear(number):
    dataset = base(number).rename(lat="y", lon="x").drop_vars(["y", "x"])
    grid = np.arange(6.0).reshape(2, 3)
    return dataset.assign_coords(lat=(("y", "x"), grid), lon=(("y", "x"), 2 * grid))


def bounds(number):
    dataset = base(number)
    edges = np.stack([dataset.time.values, dataset.time.values + np.timedelta64(1, "D")], 1)
    dataset.time.attrs["bounds"] = "time_bnds"
    return dataset.assign(time_bnds=(("time", "nv"), edges))


def grid_mapping(number):
    dataset = added(crs=lambda _: ((), 0, {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6378137.0}))(number)
    dataset.tas.attrs["grid_mapping"] = "crs"
    return dataset


def attributes(number):
    dataset = base(number).assign_attrs(Conventions="CF-1.8", history=f"made {number}", title="x", source=f"s{number}")
    dataset.tas.attrs["cell_methods"] = "time: mean"
    return dataset


def missing_day(number):
    dataset = base(number)
    dataset.tas[1, 0, 1] = np.nan
    return dataset


PACKED = {"tas": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}}

# A dataset by the number of its file, and options of `to_netcdf`.
EQUAL = {
    "by default": (base, {}),
    "engine h5netcdf": (base, {"engine": "h5netcdf"}),
    "deflated": (base, {"encoding": {"tas": {"zlib": True, "complevel": 3}}}),
    "unlimited": (base, {"unlimited_dims": ["time"]}),
    "missing values": (missing_day, {}),
    "no fill values": (base, {"encoding": {"tas": {"_FillValue": None}, "lat": {"_FillValue": None}}}),
    "packed": (missing_day, {"encoding": PACKED}),
    "packed and unlimited": (missing_day, {"encoding": PACKED, "unlimited_dims": ["time"]}),
    "times of floats with a fill value": (base, {"encoding": {"time": {"dtype": "f8", "_FillValue": np.nan}}}),
    "missing times": (added(seen=with_nat), {}),
    "missing records": (lambda number: base(number).assign_coords(time=with_nat(number)), {}),
    "times with fractions": (lambda number: base(number).assign_coords(time=days(number) + np.timedelta64(123456789, "ns")), {}),
    "another time variable": (added(valid=lambda number: ("time", days(number) + np.timedelta64(6, "h"))), {}),
    "durations": (added(lead=lambda number: ("time", numbers("m8[h]", 1 + number).astype("m8[ns]"))), {}),
    "booleans": (added(flag=lambda number: ("time", np.arange(DAYS) % 2 == number)), {}),
    "texts": (added(name=lambda number: ("time", np.array([f"s{10**number * i}" for i in range(DAYS)], object))), {}),
    "complex numbers": (added(c=lambda number: ("time", np.arange(DAYS) + 1j * number)), {"auto_complex": True}),
    "integers": (added(i=lambda _: ("time", numbers("u4")), j=lambda number: ("time", numbers("i8") + 2**60)), {}),
    "a calendar without leap days": (
        lambda number: base(number).assign_coords(
            time=xr.date_range(f"2001-01-0{1 + 5 * number}", periods=DAYS, calendar="noleap", use_cftime=True)
        ),
        {},
    ),
    "bounds": (bounds, {}),
    "a curvilinear grid": (curvilinear, {}),
    "a grid mapping": (grid_mapping, {}),
    "a scalar coordinate": (lambda number: base(number).assign_coords(height=2.0), {}),
    "attributes": (attributes, {}),
    "stations": (
        lambda number: xr.Dataset({"v": ("station", np.arange(3.0) + number)}, {"station": [f"a{number}{i}" for i in range(3)]}),
        {"unlimited_dims": ["station"]},
    ),
}


def write_all(folder, make, options):
    paths = [folder / f"{number}.nc" for number in range(2)]
    for number, path in enumerate(paths):
        make(number).to_netcdf(path, **options)
    return paths


@pytest.mark.parametrize("what", EQUAL)
def test_what_xarray_writes(tmp_path, raddle, what):
    inputs = write_all(tmp_path, *EQUAL[what])
    output = MERGING.equal(inputs)
    raddle("verify", output, "--against", *inputs)


def other_type(number):
    return base(number).astype("f8") if number else base(number)


def other_unit(number):
    return added(lead=lambda _: ("time", numbers("m8[m]" if number else "m8[h]").astype("m8[ns]")))(number)


REFUSED = {
    "another type": (other_type, ["/tas", "float32", "float64"]),
    "durations in other units": (other_unit, ["/lead", "hours", "minutes", "--units convert"]),
    "times between the records": (
        lambda number: base(number).assign_coords(time=days(number, "h" if number else "D")), ["/time", "--time-units"],
    ),
    "a scalar that differs": (lambda number: base(number).assign_coords(run=number), ["/run", "--scalars"]),
    "a dimension that is no time": (lambda number: base(number).assign_coords(time=np.arange(DAYS) + 5.0 * number), ["--dim"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_xarray_writes_and_a_merge_refuses(tmp_path, what):
    make, names = REFUSED[what]
    message = MERGING.refused(write_all(tmp_path, make, {}), names=names)
    assert "[NaN]" not in message, message


def test_whole_days_and_halves(tmp_path):
    """Whole days are stored as integers without a fill value, others as floats with one."""
    inputs = write_all(tmp_path, base, {})
    half = {"units": "days since 2001-01-01", "dtype": "f8", "_FillValue": np.nan}
    base(1).assign_coords(time=days(1) + np.timedelta64(12, "h")).to_netcdf(inputs[1], encoding={"time": half})
    MERGING.equal(inputs)


@pytest.mark.parametrize("kind", ["i8", "f8"])
def test_a_missing_time_among_floats(tmp_path, kind):
    """The integer that stands for a missing time is an ordinary value among floats."""
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        encoding = {"seen": {"dtype": kind if number else "i8", "units": f"hours since 2001-01-0{1 + number}"}}
        added(seen=with_nat)(number).to_netcdf(inputs[-1], encoding=encoding)
    if kind == "i8":
        MERGING.equal(inputs)
    else:
        MERGING.refused(inputs, names=["/seen", str(np.iinfo("i8").min)])
