"""Fields that are links to datasets elsewhere in the file are concatenated with the rows of their group."""

import h5py
import numpy as np
import pytest
import scipp as sc
import scippnexus as snx
from nexus_files import MERGING, group

pytestmark = pytest.mark.filterwarnings("ignore:Failed to load")


def write(path, make):
    with h5py.File(path, "w") as file:
        make(group(file, "entry", "NXentry"))
    return path


def link(holder, name, target, is_hard):
    holder[name] = target if is_hard else h5py.SoftLink(target.name)


def fields(values):
    """Yields the variables of loaded groups, with the names of their groups."""
    for name, value in values.items():
        if isinstance(value, sc.DataGroup):
            yield from ((f"{name}/{inner}", each) for inner, each in fields(value))
        elif isinstance(value, sc.DataArray):
            yield from ((f"{name}/{inner}", each) for inner, each in [("", value.data), *value.coords.items()])
        elif isinstance(value, sc.Variable):
            yield name, value


def judge_rows(*dims):
    """Returns a judge: variables along one of these dimensions must be concatenated, all others equal."""

    def read(path):
        with snx.File(path) as file:
            return dict(fields(file["entry"][()]))

    def judge(output, inputs):
        found, parts = read(output), [read(path) for path in inputs]
        assert found.keys() == parts[0].keys()
        for name, value in found.items():
            each = [part[name] for part in parts]
            along = [dim for dim in dims if dim in value.dims]
            expected = sc.concat(each, along[0]) if along else each[0]
            assert sc.identical(value, expected), (name, value, expected)

    return judge


@pytest.mark.parametrize("is_hard", [True, False])
@pytest.mark.parametrize("step", [0, 10])
@pytest.mark.parametrize("target", ["place", "counts"])
def test_an_axis_or_a_signal_elsewhere(tmp_path, raddle, is_hard, step, target):
    """A scan is repeated at the same places, or measures the same counts."""

    def make(number):
        def make_entry(entry):
            positioner, data = group(entry, "a_motor", "NXpositioner"), group(entry, "scan", "NXdata")
            data.attrs.update(signal="counts", axes=["place", "x"], time_indices=0)
            data["x"], data["time"] = np.arange(3.0), np.arange(2.0) + number
            values = {"place": np.arange(2.0), "counts": np.ones((2, 3))}
            for name, value in values.items():
                holder = positioner if name == target else data
                holder[name] = value + step * number
            link(data, target, positioner[target], is_hard)

        return make_entry

    inputs = [write(tmp_path / f"{number}.nxs", make(number)) for number in range(2)]
    output = MERGING.equal(inputs, judge=judge_rows("place", "dim_0"))
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("is_hard", [True, False])
@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize("names", [("b_detector", "a_data"), ("a_detector", "b_data")])
def test_fields_for_each_frame_of_a_detector(tmp_path, raddle, is_hard, is_equal, names):
    def make(number):
        def make_entry(entry):
            detector, data = group(entry, names[0], "NXdetector"), group(entry, names[1], "NXdata")
            detector["data"] = np.arange(12.0).reshape(3, 2, 2) + number
            detector["count_time"] = np.full(3, 0.5 if is_equal else 0.5 + number)
            detector["sequence_number"], detector["distance"] = np.arange(3), 1.5
            data.attrs.update(signal="data", axes=["time", ".", "."])
            data["time"] = np.arange(3.0) + 10 * number
            link(data, "data", detector["data"], is_hard)

        return make_entry

    inputs = [write(tmp_path / f"{number}.nxs", make(number)) for number in range(2)]
    output = MERGING.equal(inputs, judge=judge_rows("time", "dim_0"))
    raddle("verify", output, "--against", *inputs)


def test_pixels_and_errors_of_as_many_frames_as_pixels(tmp_path):
    def make(number):
        def make_entry(entry):
            detector, data = group(entry, "detector", "NXdetector"), group(entry, "data", "NXdata")
            detector["data"], detector["data_errors"] = np.ones((3, 3, 3)) + number, np.ones((3, 3, 3))
            detector["flatfield"] = np.ones((3, 3))
            data.attrs.update(signal="data", axes=["time", ".", "."])
            data["data"], data["time"] = detector["data"], np.arange(3.0) + 10 * number

        return make_entry

    inputs = [write(tmp_path / f"{number}.nxs", make(number)) for number in range(2)]
    output = MERGING.equal(inputs, judge=None)
    with h5py.File(output) as merged:
        lengths = {name: len(field) for name, field in merged["entry/detector"].items()}
    assert lengths == {"data": 6, "data_errors": 6, "flatfield": 3}


def test_a_field_of_as_many_elements_as_frames_and_pixels_is_refused(tmp_path):
    def make_entry(entry):
        detector, data = group(entry, "detector", "NXdetector"), group(entry, "data", "NXdata")
        detector["data"], detector["efficiency"] = np.ones((3, 3)), np.ones(3)
        data.attrs.update(signal="data", axes=["time", "."])
        data["data"], data["time"] = detector["data"], np.arange(3.0)

    inputs = [write(tmp_path / f"{number}.nxs", make_entry) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/detector/efficiency", "--exclude"])


@pytest.mark.parametrize("is_hard", [True, False])
@pytest.mark.parametrize("step", [0, 10])
@pytest.mark.parametrize("kind", ["NXlog", "NXcollection"])
def test_times_elsewhere(tmp_path, raddle, is_hard, step, kind):
    def make(number):
        def make_entry(entry):
            first, second = group(entry, "first", kind), group(entry, "second", "NXlog")
            for holder in [first, second] if kind == "NXlog" else [second]:
                holder["value"] = np.arange(3.0) + number
            first["time"] = np.arange(3.0) + step * number
            first["time"].attrs.update(units="s", start="2024-05-01T10:00:00")
            second["quality"] = np.ones(3)
            link(second, "time", first["time"], is_hard)

        return make_entry

    inputs = [write(tmp_path / f"{number}.nxs", make(number)) for number in range(2)]
    output = MERGING.equal(inputs, judge=judge_rows("time", "dim_0"))
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("is_hard", [True, False])
def test_pixels_as_the_axis_of_rows_are_refused(tmp_path, is_hard):
    """Each pixel would be twice in its detector."""

    def make_entry(entry):
        detector, data = group(entry, "detector", "NXdetector"), group(entry, "z", "NXdata")
        detector["detector_number"] = np.arange(4)
        data.attrs.update(signal="counts", axes=["detector_number"])
        data["counts"] = np.ones(4)
        link(data, "detector_number", detector["detector_number"], is_hard)

    inputs = [write(tmp_path / f"{number}.nxs", make_entry) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/z/detector_number", "/entry/detector/detector_number", "--exclude"])


@pytest.mark.parametrize("is_hard", [True, False])
def test_axes_of_fields_next_to_a_signal_elsewhere(tmp_path, is_hard):
    """The merged signal is a square, so that readers cannot guess the axis of a field."""

    def make(number):
        def make_entry(entry):
            images, data = group(entry, "a_images", "NXcollection"), group(entry, "data", "NXdata")
            images["counts"] = np.arange(18.0).reshape(3, 6) + number
            data.attrs.update(signal="counts", axes=["time", "x"])
            data["time"], data["x"], data["angle"] = np.arange(3.0) + 10 * number, np.arange(6.0), np.arange(6.0)
            data["weight"] = np.full(3, 1.0 + number)
            link(data, "counts", images["counts"], is_hard)

        return make_entry

    inputs = [write(tmp_path / f"{number}.nxs", make(number)) for number in range(2)]
    MERGING.equal(inputs, judge=judge_rows("time", "dim_0"))
