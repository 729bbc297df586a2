"""Merges of files without a convention: attributes that describe values must be equal in all inputs, or they are
refused."""

import h5py
import numpy as np
import pytest
from merging import Merging


def judge(output, inputs):
    """The output has the rows of the inputs, and the attributes of the first, which every other input has."""
    with h5py.File(output) as merged:
        parts = [h5py.File(path) for path in inputs]
        np.testing.assert_array_equal(merged["x"][:], np.concatenate([part["x"][:] for part in parts]))
        assert dict(merged["x"].attrs) == dict(parts[0]["x"].attrs)


MERGING = Merging("none", judge)


def write(path, attributes, scalar=False):
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(4.0)
        file["x"].attrs.update({} if scalar else attributes)
        file["gain"] = 2.0
        file["gain"].attrs.update(attributes if scalar else {})
    return path


NAMES = [
    "units", "Units", "unitSI", "scale_factor", "add_offset", "offset", "_FillValue", "ScaleFactor", "SCALE FACTOR",
    "Slope", "Intercept", "CAL_SLOPE", "FillValue", "MissingValue",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("values", [(1.0, 2.0), (1.0, None), (None, 2.0), ("m", "cm")])
@pytest.mark.parametrize("scalar", [False, True])
def test_values_that_stand_for_other_quantities_are_refused(tmp_path, name, values, scalar):
    made = [{} if value is None else {name: value} for value in values]
    inputs = [write(tmp_path / f"{number}.h5", attributes, scalar) for number, attributes in enumerate(made)]
    MERGING.refused(inputs, names=["/gain" if scalar else "/x", name, "--convention none"])
    MERGING.equal(inputs, "--convention", "none")


def test_inputs_without_values_may_differ(tmp_path):
    paths = [tmp_path / f"{number}.h5" for number in range(3)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(3.0) if number == 1 else np.zeros(0)
            if number < 2:
                file["x"].attrs["units"] = "m"
    MERGING.equal([paths[1], paths[2]])
    output = MERGING.equal_or_refused([paths[2], paths[1]], judge=None)
    with h5py.File(output) as merged:
        assert merged["x"][:].tolist() == [0, 1, 2]
    with h5py.File(paths[0], "a") as file:
        file["x"].attrs["units"] = "cm"
    MERGING.refused(paths[:2], names=["/x", "cm", "--convention none"])


def test_attributes_that_say_nothing_of_values_are_those_of_the_first(tmp_path):
    made = [{"units": "m", "comment": text} for text in ["one", "two"]]
    inputs = [write(tmp_path / f"{number}.h5", attributes) for number, attributes in enumerate(made)]
    MERGING.equal(inputs)


OPTIONS = ["--time-units=days since 2000-01-01", "--packing=unpack", "--units=convert",
           "--overlap=first", "--require-equal=title", "--axis=var", "--pairwise", "--merge=first", "--index-unique=-"]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_a_convention_that_inputs_do_not_follow_are_refused(tmp_path, option):
    """Such options would have no effect, and the merge would differ from the requested one."""
    inputs = [write(tmp_path / f"{number}.h5", {"units": "m", "run": number}) for number in range(2)]
    MERGING.refused(inputs, option, names=[option.split("=")[0], "no convention", "--convention"])


@pytest.mark.parametrize("units", ["mm", "mg"])
def test_units_in_a_dataset_next_to_a_table(tmp_path, units):
    """astropy writes the units of the columns of a table as lines of YAML."""
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path, unit in zip(inputs, units):
        with h5py.File(path, "w") as file:
            file["stars"] = np.zeros(2, [("x", "f8")])
            lines = ["datatype:", f"- {{name: x, unit: {unit}, datatype: float64}}"]
            file["stars.__table_column_meta__"] = np.array(lines, "S")

    def judge(output, inputs):
        with h5py.File(output) as merged, h5py.File(inputs[0]) as first:
            assert merged["stars"].shape == (4,)
            assert (merged["stars.__table_column_meta__"][:] == first["stars.__table_column_meta__"][:]).all()

    if units == "mm":
        MERGING.equal(inputs, judge=judge)
    else:
        MERGING.refused(inputs, names=["/stars.__table_column_meta__", "unit: g", "--scalars first"])
        output = MERGING.equal(inputs, "--convention", "none", judge=None)
        with h5py.File(output) as merged:
            assert merged["stars.__table_column_meta__"].shape == (4,)
