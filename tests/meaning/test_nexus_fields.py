"""Fields of NXdata and NXlog in merges of NeXus files: axes, errors, signals and summaries, as scippnexus finds them."""

import h5py
import numpy as np
import pytest
import scipp as sc
import scippnexus as snx
from nexus_files import EVENTS, LOG, MERGING, Run, group, rows, set_attributes, write_all


def write_data(path, first, edges=0, axes=("x",), signal="counts", unit="mm"):
    with h5py.File(path, "w") as file:
        entry = group(file, "entry", "NXentry")
        data = group(entry, "data", "NXdata")
        data.attrs["signal"], data.attrs["axes"] = signal, list(axes)
        data.create_dataset("counts", data=np.arange(4.0) + first, maxshape=(None,), chunks=(4,))
        data.create_dataset("x", data=np.arange(4.0 + edges) + first, maxshape=(None,), chunks=(4,)).attrs["units"] = unit
    return path


def judge_data(output, inputs):
    with snx.File(output) as merged:
        found = merged["entry/data"][()]
    parts = []
    for path in inputs:
        with snx.File(path) as part:
            parts.append(part["entry/data"][()])
    assert sc.identical(found, sc.concat(parts, "x"))


def test_data_along_an_axis(tmp_path):
    """The files do not state whether data continue along their axis or are another image of the same bins."""
    inputs = [write_data(tmp_path / f"{number}.nxs", 4 * number) for number in range(2)]
    MERGING.equal_or_refused(inputs, judge=judge_data)


def test_edges_of_bins_are_refused(tmp_path):
    inputs = [write_data(tmp_path / f"{number}.nxs", 4 * number, edges=1) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/data/x"])


@pytest.mark.parametrize(
    ("what", "values"), [("signal", ["counts", "x"]), ("axes", [("x",), ("counts",)]), ("unit", ["mm", "m"])]
)
def test_data_of_another_kind_are_refused(tmp_path, what, values):
    inputs = [write_data(tmp_path / f"{number}.nxs", 4 * number, **{what: values[number]}) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/data", "units" if what == "unit" else what])


def write_scan(path, first, fields, width=2, indices=(), signals=()):
    """Writes a signal of three rows along time, with more ``fields`` in its group. ``first`` is added to the values."""
    with h5py.File(path, "w") as file:
        data = group(group(file, "entry", "NXentry"), "data", "NXdata")
        data.attrs.update(signal="counts", axes=["time", "x"], time_indices=0, x_indices=1)
        data.attrs.update({f"{name}_indices": 0 for name in indices})
        if signals:
            data.attrs["auxiliary_signals"] = list(signals)
        data["counts"] = np.arange(3.0 * width).reshape(3, width) + first
        data["time"], data["x"] = np.arange(3.0) + first, np.arange(float(width))
        data["x_errors"] = np.full(width, 0.5)
        for name, values in fields.items():
            data[name] = values
    return path


def judge_along_time(name):
    """Returns a judge of one group: each of its variables must be those of the inputs, concatenated if it has a time."""

    def read(path):
        with snx.File(path) as file:
            found = file[name][()]
        return type(found), {"data": found.data, **found.coords} if isinstance(found, sc.DataArray) else dict(found)

    def judge(output, inputs):
        (kind, found), (first, expected), *others = [read(path) for path in [output, *inputs]]
        assert kind is first and found.keys() == expected.keys()
        for name, value in expected.items():
            if "time" in value.dims:
                value = sc.concat([value, *(variables[name] for _, variables in others)], "time")
            assert sc.identical(found[name], value), name

    return judge


ALONG_TIME = {
    "count_time": {"indices": ["count_time"]},
    "count_time without indices": {},
    "monitor": {"indices": ["monitor"], "signals": ["monitor"]},
    "monitor without indices": {"signals": ["monitor"]},
    "time_errors": {},
}


@pytest.mark.filterwarnings("ignore:Failed to load")
@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize(
    ("what", "width"), [*((what, 2) for what in ALONG_TIME), ("count_time", 3), ("monitor", 3), ("time_errors", 3)]
)
def test_fields_along_the_first_axis_of_the_signal(tmp_path, is_equal, what, width):
    """The indices show the axis of a field, or its name, or its length if the other axis has another one."""
    values = [np.ones(3), np.ones(3) if is_equal else np.full(3, 2.0)]
    inputs = [
        write_scan(tmp_path / f"{number}.nxs", 10 * number, {what.split()[0]: values[number]}, width, **ALONG_TIME[what])
        for number in range(2)
    ]
    MERGING.equal(inputs, judge=judge_along_time("entry/data"))


def test_a_field_that_fits_two_axes_is_refused(tmp_path):
    field = {"count_time": np.ones(3)}
    inputs = [write_scan(tmp_path / f"{number}.nxs", 10 * number, field, width=3) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/data/count_time"])


COORDINATES = {
    "x": {"x": np.array([1.0, 0.0])},
    "errors": {"x_errors": np.array([0.25, 0.5])},
    "label": {"angle": np.array([5.0, 6.0])},
    "edges": {"x": np.array([5.0, 6.0, 7.0])},
    "one element": {"x": np.array([1.0])},
}


@pytest.mark.parametrize("place", COORDINATES)
def test_other_axes_are_refused_whatever_scalars_says(tmp_path, raddle, place):
    """Elements of the second file would be read at places of the first. Scalars and other signals follow ``--scalars``."""
    (name, values), = COORDINATES[place].items()
    width, inputs = (1, []) if place == "one element" else (2, [])
    for number in range(2):
        fields = {"temperature": np.full(1, 5.0 + number), "background": np.full(width, 1.0 + number)}
        inputs.append(write_scan(tmp_path / f"{number}.nxs", 10 * number, fields, width, signals=["background"]))
        with h5py.File(inputs[-1], "a") as file:
            data = file["entry/data"]
            data.pop(name, None)
            data[name] = values + number
    message = MERGING.refused(inputs, names=[f"/entry/data/{name}", "different coordinates", "/entry/data/background"])
    assert "--scalars first" in message
    message = MERGING.refused(inputs, "--scalars", "first", names=[f"/entry/data/{name}", "different coordinates"])
    assert "--scalars" not in message and "background" not in message and "temperature" not in message
    raddle("merge", *inputs, "-o", tmp_path / "named.nxs", "--rule", f"/entry/data/{name}: once", "--scalars", "first")


@pytest.mark.filterwarnings("ignore:Failed to load")
@pytest.mark.parametrize("name", ["count_time", "monitor", "angle", "edge", "angle and time"])
@pytest.mark.parametrize("rows", [(3, 3), (1, 5), (5, 1)])
def test_axes_that_the_lengths_of_the_merge_do_not_show(tmp_path, raddle, name, rows):
    """Readers guess the axes of fields that the attributes of their group do not name: the merged signal is a square."""
    inputs, first = [], 0
    for number, count in enumerate(rows):
        lengths = {"angle": 6, "edge": 7}.get(name, count)
        values = np.arange(6.0 * count).reshape(count, 6)[:, :4] if name == "angle and time" else np.arange(1.0 * lengths)
        inputs.append(tmp_path / f"{number}.nxs")
        with h5py.File(inputs[-1], "w") as file:
            data = group(group(file, "entry", "NXentry"), "data", "NXdata")
            depth = () if name != "angle and time" else (4,)
            data.attrs.update(signal="counts", axes=["time", "x", "y"][: 2 + len(depth)])
            if name == "monitor":
                data.attrs["auxiliary_signals"] = ["monitor"]
            data["counts"] = np.ones((count, 6, *depth))
            data["time"], data["x"] = first + np.arange(count), np.arange(6.0)
            if depth:
                data["y"] = np.arange(4.0)
            data[name] = values
        first += count
    output = MERGING.equal(inputs, judge=judge_along_time("entry/data"))
    raddle("verify", output, "--against", *inputs)


@pytest.mark.filterwarnings("ignore:Failed to load")
@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize("indices", [None, [1, 0]])
def test_a_field_whose_second_axis_is_that_of_the_rows(tmp_path, is_equal, indices):
    inputs = []
    for number in range(2):
        values = np.arange(6.0).reshape(2, 3) + (0 if is_equal else number)
        inputs.append(write_scan(tmp_path / f"{number}.nxs", 10 * number, {"turned": values}))
        if indices:
            set_attributes(inputs[-1:], "entry/data", "turned_indices", [indices])
    MERGING.equal(inputs, judge=judge_along_time("entry/data"))


def test_other_axes_of_a_field_are_refused(tmp_path):
    inputs = []
    for number, indices in enumerate([[0, 1], [1, 0]]):
        values = np.arange(9.0).reshape(3, 3) + number
        inputs.append(write_scan(tmp_path / f"{number}.nxs", 10 * number, {"turned": values}, width=3))
        set_attributes(inputs[-1:], "entry/data", "turned_indices", [indices])
    MERGING.refused(inputs, names=["/entry/data", "turned_indices", "1.nxs"])


@pytest.mark.parametrize("is_equal", [True, False])
def test_edges_along_the_rows_are_refused(tmp_path, is_equal):
    """They may have any name."""
    fields = [{"edge": np.arange(4.0) + (0 if is_equal else number)} for number in range(2)]
    inputs = [write_scan(tmp_path / f"{number}.nxs", 10 * number, fields[number]) for number in range(2)]
    MERGING.refused(inputs, names=["/entry/data/edge", "edges of bins"])


@pytest.mark.parametrize("name", ["detector_number", "x_pixel_offset", "efficiency"])
def test_fields_of_pixels_next_to_equally_many_pulses(tmp_path, name):
    """The fields of events may lie in the group of the detector."""
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([1, 3], 2, first_s=10))
    for path in inputs:
        with h5py.File(path, "a") as file:
            file[EVENTS].attrs["NX_class"] = "NXdetector"
            file[f"{EVENTS}/detector_number"] = np.arange(2)
            if name != "detector_number":
                file[f"{EVENTS}/{name}"] = np.ones(2)
    if name == "efficiency":
        MERGING.refused(inputs, names=[f"/{EVENTS}/efficiency", "pixel", "--exclude"])
        return

    def judge_pixels(output, inputs):
        with h5py.File(output) as merged:
            assert merged[f"{EVENTS}/{name}"].shape == (2,) and merged[f"{EVENTS}/event_index"][:].tolist() == [0, 2, 3, 4]

    MERGING.equal(inputs, judge=judge_pixels)


def test_a_log_of_as_many_values_as_components_is_refused(tmp_path):
    """Readers would not know to which axis of the values a field belongs."""
    inputs = write_all(tmp_path, Run([1], 2), Run([1], 1, first_s=10))
    for path, count in zip(inputs, [2, 1]):
        with h5py.File(path, "a") as file:
            del file[f"{LOG}/value"]
            file[f"{LOG}/value"], file[f"{LOG}/quality"] = np.ones((count, 3)), np.ones(count)
    MERGING.refused(inputs, names=[f"/{LOG}/quality", "--exclude"])
    MERGING.equal(inputs, "--exclude", f"{LOG}/quality", judge=None)


def test_axes_that_an_append_hides_are_refused(tmp_path, raddle):
    """The attributes of the file stay, so they cannot name the axes of its fields."""
    inputs = [write_scan(tmp_path / f"{number}.nxs", 10 * number, {"count_time": np.ones(3)}, 6) for number in range(2)]
    raddle("merge", inputs[0], "-o", tmp_path / "all.nxs", "--extendible")
    refused = raddle("append", tmp_path / "all.nxs", inputs[1], expect=3).stderr
    assert "/entry/data/count_time" in refused and "count_time_indices" in "".join(refused.split())


@pytest.mark.parametrize("place", ["log", "data", "detector", "transformation"])
def test_scalars_of_assembled_groups_are_not_stacked(tmp_path, raddle, place):
    """scippnexus reads the group as a bare list of fields, or the position as several, if one of them is an array."""
    inputs = write_all(tmp_path, Run([1], 3, scalars={"duration": 1.0}), Run([1], 2, first_s=10, scalars={"duration": 2.0}))
    names = {"log": f"{LOG}/average_value", "data": "entry/scan/distance"}
    names |= {"detector": "entry/instrument/bank/distance", "transformation": "entry/instrument/bank/moved/shift"}
    name = names[place]
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            if place == "data":
                scan = group(file["entry"], "scan", "NXdata")
                scan.attrs.update(signal="counts", axes=["time"])
                scan["counts"], scan["time"] = np.ones(3), 10.0 * number + np.arange(3)
            file[name] = 1.5 + number
            if place == "transformation":
                file["entry/instrument/bank/moved"].attrs["NX_class"] = "NXtransformations"
                file[name].attrs.update(transformation_type="translation", vector=[0.0, 0, 1], depends_on=".", units="m")
    MERGING.refused(inputs, "--scalars", "stack", names=[f"/{name}", "1.5", "2.5", "--scalars first"])
    output = tmp_path / "output.nxs"
    raddle("merge", *inputs, "-o", output, "--scalars", "stack", "--exclude", name)
    with h5py.File(output) as merged:
        assert merged["entry/duration"][:].tolist() == [1, 2]


def test_attributes_of_assembled_groups_are_not_stacked(tmp_path):
    inputs = [write_data(tmp_path / f"{number}.nxs", 4 * number) for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            file["entry"].attrs["comment"] = file["entry/data/counts"].attrs["comment"] = f"run {number}"
    MERGING.refused(inputs, "--attributes", "stack", names=["/entry/data/counts", "comment", "--attributes first"])
    for path in inputs:
        with h5py.File(path, "a") as file:
            del file["entry/data/counts"].attrs["comment"]
    output = MERGING.equal(inputs, "--attributes", "stack", judge=judge_data)
    with h5py.File(output) as merged:
        assert merged["entry/comment"].asstr()[:].tolist() == ["run 0", "run 1"]


@pytest.mark.parametrize("is_equal", [True, False])
def test_errors_of_a_log(tmp_path, is_equal):
    inputs = write_all(tmp_path, Run([1], 3), Run([1], 3, first_s=10))
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            rows(file[LOG], "value_errors", np.full(3, 0.1 if is_equal else 0.1 + number), units="K")
    MERGING.equal(inputs, judge=judge_along_time(LOG))


@pytest.mark.parametrize("shape", [(), (1,)], ids=["scalar", "array"])
@pytest.mark.parametrize("entries", [(1, 1), (1, 3), (3, 1)])
@pytest.mark.parametrize("name", ["average_value", "average_value_error", "minimum_value", "maximum_value", "duration"])
def test_summaries_of_logs_with_one_entry(tmp_path, name, entries, shape):
    """A summary belongs to no entry, even if it is an array of as many elements as the log has entries."""
    inputs = write_all(tmp_path, *[Run([1], count, first_s=10 * number) for number, count in enumerate(entries)])
    for path in inputs:
        with h5py.File(path, "a") as file:
            file[LOG][name] = np.full(shape, 1.5)
    output = MERGING.equal(inputs)
    with snx.File(output) as merged:
        summary = merged[LOG][()].coords[name]
        assert summary.ndim == 0 and summary.value == 1.5
    with h5py.File(inputs[1], "a") as file:
        file[LOG][name][...] = 2.5
    MERGING.refused(inputs, names=[f"/{LOG}/{name}", "1.5", "2.5", "--exclude"])


@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize(("name", "of"), [("event_weight", "event_id"), ("period_number", "event_index")])
def test_more_fields_of_events_and_of_pulses(tmp_path, is_equal, name, of):
    """scippnexus does not read them."""
    inputs = write_all(tmp_path, Run([2, 0, 3], 2), Run([1, 3, 1], 2, first_s=10))
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            rows(file[EVENTS], name, np.full(file[f"{EVENTS}/{of}"].shape, 1 if is_equal else number))
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged, h5py.File(inputs[0]) as first, h5py.File(inputs[1]) as second:
        expected = np.concatenate([part[f"{EVENTS}/{name}"][:] for part in [first, second]])
        assert merged[f"{EVENTS}/{name}"][:].tolist() == expected.tolist()


@pytest.mark.parametrize("count", [1, 2])
def test_signals_may_be_left_out_but_for_the_first(tmp_path, raddle, count):
    inputs = []
    for number in range(count):
        inputs.append(tmp_path / f"{number}.nxs")
        with h5py.File(inputs[-1], "w") as file:
            data = group(group(file, "entry", "NXentry"), "data", "NXdata")
            data.attrs.update({"signal": "counts", "axes": ["time"], "auxiliary_signals": ["monitor", "other"], "time_indices": 0})
            rows(data, "time", 3.0 * number + np.arange(3), units="s")
            for place, name in enumerate(["counts", "monitor", "other"]):
                rows(data, name, np.arange(3.0) + 10 * place)
    output = tmp_path / "output.nxs"
    raddle("merge", *inputs, "-o", output, "--exclude", "entry/data/monitor")
    with snx.File(output) as file:
        found = file["entry/data"][()]
    assert {*found} == {"counts", "other"} and found.sizes == {"time": 3 * count}
    raddle("verify", output, "--against", *inputs)
    refused = raddle("merge", *inputs, "-o", output, "-f", "--exclude", "entry/data/counts", expect=3).stderr
    assert "/entry/data" in refused and "leave out the group" in refused
    raddle("merge", *inputs, "-o", output, "-f", "--exclude", "entry/data")
    with snx.File(output) as file:
        assert "data" not in file["entry"]
