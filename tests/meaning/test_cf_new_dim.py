"""Merges of netCDF files that are one record each: the output reads as xarray concatenates them along a new dimension."""

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples


def judge(output, inputs, name="time"):
    """Judges the output; xarray repeats variables that raddle keeps once, which are equal in all inputs."""
    opened = [xr.open_dataset(path, decode_timedelta=False) for path in inputs]
    expected = xr.concat(opened, name, data_vars="all", coords="different", compat="equals", combine_attrs="override")
    with xr.open_dataset(output, decode_timedelta=False) as merged:
        assert set(merged.variables) == set(expected.variables)
        for variable in expected.variables:
            found, wanted = xr.broadcast(merged[variable], expected[variable])
            xr.testing.assert_equal(found.drop_attrs(), wanted.transpose(*found.dims).drop_attrs())
            assert merged[variable].dtype == expected[variable].dtype, variable
    for dataset in opened:
        dataset.close()
    with netCDF4.Dataset(output) as merged:
        assert merged[name].dimensions == (name,)


MERGING = Merging("cf", judge)


def record(number, kind="f4", units="days since 2000-01-01", time=None, half=0.5):
    """Returns one record; its time has bounds, and the grid has bounds and coordinates of two dimensions."""
    random = np.random.default_rng(number)
    values = (random.random((3, 4)) * 100).astype(kind)
    time = float(number) if time is None else time
    data = {
        "field": (("y", "x"), values),
        "total": ((), values.sum()),
        "time_bounds": (("bounds",), [time - half, time + half]),
        "y_bounds": (("y", "bounds"), np.arange(6.0).reshape(3, 2)),
        "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude"}),
        "label": (("y",), np.array([f"{number}", "b", "öß"], object)),
    }
    coordinates = {
        "time": ((), time, {"units": units, "bounds": "time_bounds"}),
        "x": np.arange(4.0),
        "y": ("y", np.arange(3.0), {"bounds": "y_bounds"}),
        "lat": (("y", "x"), np.ones((3, 4))),
    }
    dataset = xr.Dataset(data, coordinates)
    for variable in dataset.variables.values():
        variable.encoding["_FillValue"] = None
    return dataset


def write_all(folder, *records, engine="netcdf4", encoding=None):
    paths = [folder / f"{number}.nc" for number in range(len(records))]
    for path, dataset in zip(paths, records):
        dataset.to_netcdf(path, engine=engine, encoding=encoding)
    return paths


UNITS = {"days since 2000-01-01": (1, 0), "days since 1999-12-25": (1, 7), "hours since 2000-01-01": (24, 0)}
"""Of each unit how many make a day, and how many days its reference lies before the first record."""


@examples(10)
@given(
    st.lists(st.sampled_from(sorted(UNITS)), min_size=2, max_size=4),
    st.sampled_from(["f4", "f8", "i2", "i4", "u1"]),
    st.sampled_from(["netcdf4", "h5netcdf"]),
    st.sampled_from([{}, {"zlib": True, "chunksizes": (2, 3)}, {"chunksizes": (3, 4)}]),
)
def test_random_records(units, kind, engine, storage):
    """Times in different units are converted, together with their bounds."""
    records = []
    for number, unit in enumerate(units):
        per_day, days = UNITS[unit]
        records.append(record(number, kind, unit, float((number + days) * per_day), per_day / 2))
    with case_folder() as folder:
        inputs = write_all(folder, *records, engine=engine, encoding={"field": storage})
        MERGING.equal(inputs, "--new-dim", "time")


def test_records_are_put_in_the_order_of_their_times(tmp_path):
    inputs = write_all(tmp_path, record(2), record(0), record(1))
    output = MERGING.equal_or_refused(inputs, "--new-dim", "time", judge=None)
    judge(output, [inputs[1], inputs[2], inputs[0]])


def test_the_same_time_twice_is_refused(tmp_path):
    inputs = write_all(tmp_path, record(1), record(2, time=1.0))
    MERGING.refused(inputs, "--new-dim", "time", names=["/time", "--overlap"])


def test_another_coordinate_than_a_time(tmp_path):
    records = [record(0, time=1.0).assign_coords(member=member) for member in [3, 1, 2]]
    inputs = write_all(tmp_path, *records)
    output = MERGING.equal_or_refused(inputs, "--new-dim", "member", judge=None)
    with xr.open_dataset(output) as merged:
        assert merged["member"].values.tolist() == [3, 1, 2] and merged["field"].dims == ("member", "y", "x")
        assert merged["label"].values.tolist() == [["0", "b", "öß"]] * 3


def test_another_grid_is_refused(tmp_path):
    other = record(1).assign_coords(lat=(("y", "x"), np.full((3, 4), 2.0)))
    MERGING.refused(write_all(tmp_path, record(0), other), "--new-dim", "time", names=["/lat", "1.0", "2.0"])


def test_other_packing_is_unpacked_where_asked_for(tmp_path):
    paths = [tmp_path / f"{number}.nc" for number in range(2)]
    for number, path in enumerate(paths):
        packing = {"dtype": "i2", "scale_factor": 0.01 * (number + 1), "add_offset": 5.0, "_FillValue": -1}
        record(number).to_netcdf(path, encoding={"field": packing})
    MERGING.refused(paths, "--new-dim", "time", names=["/field", "scale_factor", "--packing unpack"])
    output = MERGING.equal_or_refused(paths, "--new-dim", "time", "--packing", "unpack", judge=None)
    with xr.open_dataset(output) as merged:
        for number, path in enumerate(paths):
            with xr.open_dataset(path) as part:
                np.testing.assert_allclose(merged["field"][number], part["field"], rtol=1e-6)


@pytest.mark.parametrize("name, message", [("run", "no scalar variable"), ("x", "--dim x"), ("crs", "no scalar variable")])
def test_anything_but_a_scalar_variable_is_refused(tmp_path, name, message):
    MERGING.refused(write_all(tmp_path, record(0), record(1)), "--new-dim", name, names=[message])


def test_the_dimension_is_one_for_the_library_of_hdf5(tmp_path, raddle):
    inputs = write_all(tmp_path, record(0), record(1))
    output = MERGING.equal(inputs, "--new-dim", "time")
    with h5py.File(output) as merged:
        scale = merged["time"]
        assert scale.is_scale and scale.attrs["NAME"] == b"time"
        attached = {merged[place].name: int(axis) for place, axis in scale.attrs["REFERENCE_LIST"]}
        assert attached == dict.fromkeys(["/field", "/total", "/time_bounds", "/label"], 0)
        places = {(merged[place].name, int(axis)) for place, axis in merged["y"].attrs["REFERENCE_LIST"]}
        assert {("/field", 1), ("/lat", 0), ("/label", 1), ("/y_bounds", 0)} == places
    assert "equal" in raddle("verify", output, "--against", *inputs).stdout
