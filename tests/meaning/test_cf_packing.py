"""Attributes that define the meaning of values in netCDF-4 files: if they differ, values are converted on request or
refused."""

import cf_judge
import netCDF4
import numpy as np
import pytest
import xarray as xr
from cf_files import Variable, simple, write_all
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, Refusal, case_folder, examples

MERGING = Merging("cf", cf_judge.judge)

PACKING = {
    "scale_factor": (0.1, 0.2),
    "add_offset": (0.0, 1.0),
    "_FillValue": (np.int16(3), np.int16(4)),
    "missing_value": (np.int16(3), np.int16(4)),
    "_Unsigned": ("true", "false"),
    "valid_max": (np.int16(200), np.int16(100)),
    "valid_range": (np.array([0, 200], "i2"), np.array([0, 100], "i2")),
}


@pytest.mark.parametrize("attribute", PACKING)
@pytest.mark.parametrize("absent", [False, True])
def test_another_packing_is_refused(tmp_path, attribute, absent):
    first, second = PACKING[attribute]
    files = [simple(type="i2", **({} if absent else {attribute: first})), simple(3, type="i2", **{attribute: second})]
    MERGING.refused(write_all(tmp_path, *files), names=["/tas", attribute, np.ravel(second)[-1], "--packing"])


def test_scales_of_one_value_are_distinguished_by_their_types(tmp_path):
    files = [simple(scale_factor=np.float32(0.5)), simple(3, scale_factor=np.float64(0.5))]
    MERGING.refused(write_all(tmp_path, *files), names=["0.5] (float32 little-endian)", "0.5] (float64 little-endian)"])


def packed(first_day, scale, offset, fill, kind="i2"):
    file = simple(first_day, type=kind, scale_factor=scale, add_offset=offset, _FillValue=np.dtype(kind).type(fill))
    values = np.asarray(file.variables["tas"].values)
    values[:] = np.arange(values.size).reshape(values.shape)
    values[0, 0] = fill
    return file


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "u1"])
@pytest.mark.parametrize("float_type", [np.float32, np.float64])
def test_unpacked_values(tmp_path, kind, float_type):
    first = packed(0, float_type(0.1), float_type(5), 99, kind)
    second = packed(3, float_type(0.2), float_type(3), 98, kind)
    inputs = write_all(tmp_path, first, second)
    output = MERGING.equal(inputs, "--packing", "unpack", unpacked=["tas"], different=["tas"])
    with netCDF4.Dataset(output) as merged:
        assert merged["tas"].dtype.kind == "f"
        assert not {"scale_factor", "add_offset"} & {*merged["tas"].ncattrs()}


def test_unpacked_unsigned_bytes(tmp_path):
    files = [simple(type="i1", _Unsigned="true", scale_factor=0.5), simple(3, type="i1", _Unsigned="true", scale_factor=0.25)]
    for file in files:
        file.variables["tas"].values[:] = -1
    MERGING.equal(write_all(tmp_path, *files), "--packing", "unpack", unpacked=["tas"], different=["tas"])


@examples(10)
@given(
    st.sampled_from(["i1", "i2", "i4", "u1", "u2"]),
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=4, unique=True),
    st.integers(0, 2**32 - 1),
)
def test_repacked_values(kind, packings, seed):
    """Every value is within half a step of the new packing of its input's value; missing values stay missing."""
    random = np.random.default_rng(seed)
    limits = np.iinfo(kind)
    files = []
    for number, (scale, offset) in enumerate(packings):
        fill = limits.max - number
        file = packed(3 * number, scale, offset, fill, kind)
        values = np.asarray(file.variables["tas"].values)
        values[:] = random.integers(limits.min, limits.max, values.shape, endpoint=True)
        values[0, 0] = fill
        files.append(file)
    with case_folder() as folder:
        inputs = write_all(folder, *files)
        output = MERGING.equal_or_refused(inputs, "--packing", "repack", judge=None)
        assert not isinstance(output, Refusal), output
        with xr.open_dataset(output) as merged, xr.open_dataset(output, mask_and_scale=False) as stored:
            assert stored["tas"].dtype == kind
            step = stored["tas"].attrs["scale_factor"]
            parts = [xr.open_dataset(path)["tas"].values.astype("f8") for path in inputs]
            expected = np.concatenate(parts)
            np.testing.assert_array_equal(np.isnan(merged["tas"]), np.isnan(expected))
            # xarray unpacks some inputs in 32 bits.
            rounding = np.nanmax(np.abs(expected)) * 2e-6
            assert np.nanmax(np.abs(merged["tas"] - expected)) <= step * 0.5 + rounding


def test_the_largest_error_of_repacking_is_reported(tmp_path, raddle):
    inputs = write_all(tmp_path, packed(0, 0.5, 0.0, 99), packed(3, 1.0, 100.0, 98))
    output = tmp_path / "merged.nc"
    finished = raddle("merge", *inputs, "-o", output, "--packing", "repack")
    with netCDF4.Dataset(output) as merged:
        step = merged["tas"].scale_factor
    assert "/tas is repacked" in finished.stderr and f"the largest error is {step / 2:.3e}".replace("e-0", "e-") in finished.stderr
    assert "equal" in raddle("verify", output, "--against", *inputs).stdout


@pytest.mark.parametrize("kind", ["f4", "i8"])
def test_what_cannot_be_repacked_is_refused(tmp_path, kind):
    inputs = write_all(tmp_path, packed(0, 0.5, 0.0, 99, kind), packed(3, 1.0, 100.0, 98, kind))
    MERGING.refused(inputs, "--packing", "repack", names=["/tas", "--packing unpack"])


MEANINGS = {
    "units": ("K", "degC"),
    "cell_methods": ("time: mean", "time: maximum"),
    "standard_name": ("air_temperature", "surface_temperature"),
    "positive": ("up", "down"),
    "flag_meanings": ("good bad", "bad good"),
    "flag_values": (np.array([0, 1], "f4"), np.array([1, 0], "f4")),
    "grid_mapping": ("crs", "other_crs"),
    "compress": ("y x", "x y"),
    "bounds": ("tas_bounds", "other_bounds"),
}


@pytest.mark.parametrize("attribute", MEANINGS)
def test_another_meaning_is_refused(tmp_path, attribute):
    first, second = MEANINGS[attribute]
    inputs = write_all(tmp_path, simple(**{attribute: first}), simple(3, **{attribute: second}))
    MERGING.refused(inputs, names=["/tas", attribute, np.ravel(first)[0], np.ravel(second)[0]])


@pytest.mark.parametrize(
    ("first", "second", "slope", "shift"),
    [("K", "degC", 1, 273.15), ("m", "km", 1000, 0), ("Pa", "hPa", 100, 0), ("degC", "K", 1, -273.15)],
)
def test_units_are_converted_if_asked(tmp_path, raddle, first, second, slope, shift):
    inputs = write_all(tmp_path, simple(type="f8", units=first), simple(3, type="f8", units=second))
    MERGING.refused(inputs, names=["/tas", "units", first, second, "--units"])
    output = tmp_path / "converted.nc"
    raddle("merge", *inputs, "-o", output, "--units", "convert")
    with netCDF4.Dataset(output) as merged, netCDF4.Dataset(inputs[1]) as other:
        assert merged["tas"].units == first
        np.testing.assert_allclose(merged["tas"][3:], other["tas"][:] * slope + shift, rtol=1e-14)


def test_grid_mappings_must_agree(tmp_path):
    files = [simple(grid_mapping="crs"), simple(3, grid_mapping="crs")]
    for file, pole in zip(files, [39.25, 40.25]):
        attributes = {"grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": pole}
        file.variables["crs"] = Variable((), 0, attributes, type=np.dtype("i4"))
    MERGING.refused(write_all(tmp_path, *files), names=["/crs", "grid_north_pole_latitude", "39.25", "40.25"])


@pytest.mark.parametrize("dims", [(), ("one",)])
@pytest.mark.parametrize("form", ["crs", "crs: time x"])
def test_grid_mappings_without_the_name_of_a_projection_must_agree(tmp_path, dims, form):
    """GDAL and rioxarray write the text of a coordinate system only, if CF has no name for its projection."""
    files = [simple(grid_mapping=form), simple(3, grid_mapping=form)]
    for file, code in zip(files, ["EPSG:31467", "EPSG:31468"]):
        file.dims["one"] = 1
        file.variables["crs"] = Variable(dims, np.zeros(len(dims)), {"crs_wkt": code}, type=np.dtype("i4"))
    MERGING.refused(write_all(tmp_path, *files), names=["/crs", "crs_wkt", "EPSG:31467", "EPSG:31468"])
    files[1].variables["crs"].attributes["crs_wkt"] = "EPSG:31467"
    # A coordinate that the mapping concerns may differ in attributes without meaning.
    for file, comment in zip(files, ["one", "two"]):
        file.variables["x"].attributes["comment"] = comment
    MERGING.equal(write_all(tmp_path, *files))


def test_an_append_names_no_option_that_it_lacks(tmp_path, raddle):
    inputs = write_all(tmp_path, packed(0, 0.5, 0.0, 99), packed(3, 0.5, 0.0, 99), packed(6, 1.0, 100.0, 98))
    output = tmp_path / "merged.nc"
    raddle("merge", *inputs[:2], "-o", output)
    refused = raddle("append", output, inputs[2], expect=3).stderr
    assert "--packing unpack" in refused and "merge all inputs into a new file with an option from the table" in refused
