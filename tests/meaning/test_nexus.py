"""Merges of NeXus files read as scippnexus concatenates the inputs.

A pulse keeps its events, an entry of a log its time. Values of a whole run are carried once or refused.
"""

import dataclasses

import h5py
import numpy as np
import pytest
import scipp as sc
import scippnexus as snx
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, NoConcatenation, case_folder, examples

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclasses.dataclass
class Run:
    """A run: the number of events of each pulse, its start, and its storage."""

    pulses: list
    log: int
    start: str = "2024-05-01T10:00:00Z"
    first_s: int = 0
    unit: str = "s"
    index_type: str = "i8"
    time_type: str = "f8"
    scalars: dict = dataclasses.field(default_factory=dict)
    origin: str = "offset"


def write(path, run, seed=0):
    random = np.random.default_rng([seed, run.first_s])
    total = sum(run.pulses)
    with h5py.File(path, "w") as file:
        file.attrs["default"] = "entry"
        entry = group(file, "entry", "NXentry")
        entry["title"] = "one run"
        for name, value in run.scalars.items():
            entry[name] = value
        detector = group(group(entry, "instrument", "NXinstrument"), "bank", "NXdetector")
        detector["detector_number"] = np.arange(4, dtype="i4")
        events = group(entry, "events", "NXevent_data")
        rows(events, "event_index", (np.cumsum(run.pulses) - run.pulses).astype(run.index_type))
        zero = (run.first_s + np.arange(len(run.pulses))) * PER_SECOND[run.unit]
        rows(events, "event_time_zero", zero.astype(run.time_type), units=run.unit, **{run.origin: run.start})
        rows(events, "event_time_offset", random.integers(0, 71_000, total).astype("i4"), units="us")
        rows(events, "event_id", random.integers(0, 4, total).astype("i4"))
        log = group(group(entry, "sample", "NXsample"), "temperature", "NXlog")
        time = (run.first_s + np.arange(run.log)) * PER_SECOND[run.unit]
        rows(log, "time", time.astype(run.time_type), units=run.unit, start=run.start)
        rows(log, "value", random.random(run.log), units="K")
        log["value"].attrs["units"] = "K"
    return path


def group(parent, name, kind):
    made = parent.create_group(name)
    made.attrs["NX_class"] = kind
    return made


def rows(parent, name, values, **attributes):
    made = parent.create_dataset(name, data=values, chunks=(16,), maxshape=(None,))
    made.attrs.update(attributes)
    return made


def write_all(folder, *runs):
    return [write(folder / f"run{number}.nxs", run, number) for number, run in enumerate(runs)]


EVENTS, LOG, ENTRY = "entry/events", "entry/sample/temperature", "entry"


def judge(output, inputs):
    """Compares events by pulse and logs by time, as scippnexus reads them and as plain arrays."""
    with snx.File(output) as merged:
        found = [_events(merged[EVENTS]), _log(merged[LOG])]
    parts = []
    for path in inputs:
        with snx.File(path) as part:
            parts.append([_events(part[EVENTS]), _log(part[LOG])])
    times, pulses = zip(*[part[0] for part in parts])
    assert found[0][1] == [events for part in pulses for events in part], "the events of pulses"
    assert found[0][0] == [time for part in times for time in part], "the times of pulses"
    assert found[1] == [row for _, log in parts for row in log], "the log"
    with h5py.File(output) as merged, h5py.File(inputs[0]) as first:
        assert merged["entry/instrument/bank/detector_number"][:].tolist() == [0, 1, 2, 3]
        for name, value in first[ENTRY].items():
            if isinstance(value, h5py.Dataset):
                held = []
                for path in inputs:
                    with h5py.File(path) as part:
                        held.append(part[ENTRY][name][()])
                if any(value != held[0] for value in held):
                    raise NoConcatenation(f"{name} of the runs differs: {held}")
                assert merged[ENTRY][name][()] == held[0], name


def _events(events):
    """Returns the times of the pulses, and the events of each."""
    read = events[()]
    # scippnexus returns the bare fields if it cannot interpret them.
    assert isinstance(read, sc.DataArray), "no events by pulse"
    pulses = []
    for index in range(read.sizes["event_time_zero"]):
        inside = read["event_time_zero", index].value
        pulses.append([*zip(inside.coords["event_time_offset"].values.tolist(), inside.coords["event_id"].values.tolist())])
    assert sum(map(len, pulses)) == events["event_id"].shape[0], "events outside of pulses"
    return _nanoseconds(read.coords["event_time_zero"]), pulses


def _log(log):
    read = log[()]
    assert isinstance(read, sc.DataArray), "no log by time"
    return [*zip(_nanoseconds(read.coords["time"]), read.values.tolist())]


def _nanoseconds(times):
    return times.to(unit="ns", copy=False).values.astype("datetime64[ns]").astype(np.int64).tolist()


MERGING = Merging("nexus", judge)

STARTS = [
    "2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z", "2024-05-01T12:00:00+02:00", "2024-04-30T10:00:00", "2024-05-01T10:00:00",
]


@st.composite
def cases(draw):
    count = draw(st.integers(2, 3))
    runs = []
    unit, kind, index = (draw(st.sampled_from(of)) for of in [list(PER_SECOND), ["f8", "i8"], ["i4", "i8", "u8"]])
    start = draw(st.sampled_from(STARTS))
    special = draw(st.sampled_from(["plain", "start", "start", "unit", "index", "scalars"]))
    for number in range(count):
        is_last = number == count - 1
        runs.append(
            Run(
                # scippnexus needs a pulse and two entries of a log.
                draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)),
                draw(st.integers(2, 4)),
                draw(st.sampled_from(STARTS)) if special == "start" else start,
                10_000 * number,
                draw(st.sampled_from(list(PER_SECOND))) if special == "unit" and is_last else unit,
                draw(st.sampled_from(["i4", "i8", "u8"])) if special == "index" and is_last else index,
                kind,
                {"duration": 5.0 + number if special == "scalars" else 5.0},
            )
        )
    return runs, special in ["plain", "start"]


@examples(30)
@given(cases())
def test_random_files(case):
    runs, must_merge = case
    with case_folder() as folder:
        (MERGING.equal if must_merge else MERGING.equal_or_refused)(write_all(folder, *runs))


def test_pulses_keep_their_events(tmp_path, raddle):
    inputs = write_all(tmp_path, Run([2, 0, 3], 3), Run([1, 4], 2, first_s=10))
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged:
        assert merged[f"{EVENTS}/event_index"][:].tolist() == [0, 2, 2, 5, 6]
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("origin", ["offset", "start"])
@pytest.mark.parametrize("kind", ["f8", "i8"])
def test_times_of_another_start_are_converted(tmp_path, origin, kind):
    first = Run([1, 2], 3, origin=origin, time_type=kind, unit="ns")
    second = Run([1], 2, "2024-05-01T10:01:00Z", origin=origin, time_type=kind, unit="ns")
    output = MERGING.equal(write_all(tmp_path, first, second))
    with h5py.File(output) as merged:
        zero = merged[f"{EVENTS}/event_time_zero"]
        assert zero.attrs[origin] == first.start and zero[-1] == 60_000_000_000
        assert merged[f"{LOG}/time"][3:].tolist() == [60_000_000_000, 61_000_000_000]


def test_times_that_are_not_exact_are_refused(tmp_path):
    first = Run([1, 2], 3, time_type="i8")
    second = Run([1], 2, "2024-05-01T10:00:00.5Z", time_type="i8")
    names = ["event_time_zero", "offset", "10:00:00Z", "10:00:00.5Z"]
    MERGING.refused(write_all(tmp_path, first, second), names=names)


def test_a_start_in_one_input_only_is_refused(tmp_path):
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 2, first_s=10))
    with h5py.File(inputs[1], "a") as file:
        del file[f"{EVENTS}/event_time_zero"].attrs["offset"]
    MERGING.refused(inputs, names=["event_time_zero", "offset"])


@pytest.mark.parametrize("name", ["duration", "total_counts", "run_number", "end_time", "proton_charge"])
def test_what_belongs_to_a_run_is_refused_or_stacked(tmp_path, raddle, name):
    values = ["2024-05-01T11:00:00Z", "2024-05-01T12:00:00Z"] if name == "end_time" else [3.5, 4.5]
    runs = [Run([1, 2], 3, scalars={name: values[0]}), Run([1], 2, first_s=10, scalars={name: values[1]})]
    inputs = write_all(tmp_path, *runs)
    MERGING.refused(inputs, names=[f"/entry/{name}", *values, "--scalars"])
    raddle("merge", *inputs, "-o", tmp_path / "stacked.nxs", "--scalars", "stack")
    with h5py.File(tmp_path / "stacked.nxs") as merged:
        stacked = merged[f"entry/{name}"]
        assert (stacked.asstr()[:] if name == "end_time" else stacked[:]).tolist() == values


def test_index_types_are_widened(tmp_path):
    """The last index of the merge does not fit the type of the first input."""
    runs = [Run([150, 100], 2, index_type="u1"), Run([100, 90], 2, first_s=10, index_type="u1")]
    MERGING.equal_or_refused(write_all(tmp_path, *runs))


def test_an_index_past_the_events_does_not_wrap(tmp_path):
    """Writers store the largest number if no more events follow."""
    inputs = write_all(tmp_path, *[Run([2, 1, 0], 2, first_s=10 * number, index_type="u8") for number in range(2)])
    for path in inputs:
        with h5py.File(path, "a") as file:
            file[f"{EVENTS}/event_index"][2] = 2**64 - 1
    MERGING.equal_or_refused(inputs)


def test_events_before_the_first_pulse_are_refused(tmp_path):
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([2, 1], 2, first_s=10))
    with h5py.File(inputs[1], "a") as file:
        file[f"{EVENTS}/event_index"][:] = [1, 2]
    MERGING.refused(inputs, names=["event_index"])


def test_an_index_that_ends_with_the_number_of_events_is_refused(tmp_path):
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([2, 1], 2, first_s=10))
    for path in inputs:
        with h5py.File(path, "a") as file:
            index = file[f"{EVENTS}/event_index"][:]
            del file[f"{EVENTS}/event_index"]
            file[f"{EVENTS}/event_index"] = [*index, 3]
    MERGING.refused(inputs, names=["event_index", "one entry more than event_time_zero"])


def test_events_without_pulses(tmp_path):
    """A bank without events."""
    inputs = write_all(tmp_path, Run([0, 0], 2), Run([3, 1], 2, first_s=10), Run([0], 2, first_s=20))
    MERGING.equal(inputs)


def test_events_in_a_detector(tmp_path):
    """The fields of NXevent_data may lie in the detector's own group."""
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([1, 3], 2, first_s=10))
    for path in inputs:
        with h5py.File(path, "a") as file:
            file[EVENTS].attrs["NX_class"] = "NXdetector"

    def judge_indexes(output, inputs):
        with h5py.File(output) as merged:
            assert merged[f"{EVENTS}/event_index"][:].tolist() == [0, 2, 3, 4]

    MERGING.equal(inputs, judge=judge_indexes)


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


def test_another_detector_is_refused(tmp_path):
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([2, 1], 2, first_s=10))
    with h5py.File(inputs[1], "a") as file:
        file["entry/instrument/bank/detector_number"][2] = 7
    MERGING.refused(inputs, names=["/entry/instrument/bank/detector_number", "2", "7"])


@pytest.mark.parametrize("name", ["detector_number", "pixel_id", "x_pixel_offset"])
def test_other_pixels_are_refused_whatever_scalars_says(tmp_path, raddle, name):
    """Events of the second file would lie at the places of the first file's pixels."""
    inputs = write_all(tmp_path, Run([2, 1], 2), Run([2, 1], 2, first_s=10))
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            bank = file["entry/instrument/bank"]
            bank.pop(name, None)
            bank[name] = np.arange(4)[:: 1 - 2 * number]
            bank["efficiency"] = np.full(4, 0.5 + number)
    path = f"/entry/instrument/bank/{name}"
    message = MERGING.refused(inputs, "--scalars", "first", names=[path, "different coordinates"])
    assert "efficiency" not in message
    raddle("merge", *inputs, "-o", tmp_path / "named.nxs", "--rule", f"{path}: once", "--scalars", "first")


def test_a_plan_names_the_convention(tmp_path, raddle):
    assert "NeXus" in raddle("plan", *write_all(tmp_path, Run([1], 2), Run([1], 2, first_s=10))).stdout


def set_attributes(inputs, name, attribute, values):
    """Sets an attribute of an object in each input, except where the value is None."""
    for path, value in zip(inputs, values):
        if value is not None:
            with h5py.File(path, "a") as file:
                file[name].attrs[attribute] = value


TIMES = [f"{LOG}/time", f"{EVENTS}/event_time_zero"]


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("factors", [(1e-3, 1e-2), (1e-3, None), (None, 1e-3)])
def test_another_scaling_factor_of_times_is_refused(tmp_path, name, factors):
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 2, first_s=10))
    set_attributes(inputs, name, "scaling_factor", factors)
    MERGING.refused(inputs, names=[f"/{name}", "scaling_factor"])


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("factor", [1e-3, 60.0])
@pytest.mark.parametrize("kind", ["f8", "i8"])
def test_a_scaling_factor_applies_to_times_of_another_start(tmp_path, name, factor, kind):
    """The numbers count steps of that many seconds."""
    inputs = write_all(tmp_path, Run([1, 2], 3, time_type=kind), Run([1], 2, "2024-05-01T11:00:00Z", time_type=kind))
    set_attributes(inputs, name, "scaling_factor", [factor] * 2)
    MERGING.equal_or_refused(inputs)


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("attribute", ["epoch", "t0"])
def test_another_start_under_another_name_is_refused(tmp_path, name, attribute):
    """scippnexus counts from any attribute that is a date."""
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 2, first_s=10))
    for path in inputs:
        with h5py.File(path, "a") as file:
            del file[name].attrs["start" if name in TIMES[:1] else "offset"]
    set_attributes(inputs, name, attribute, ["2024-05-01T10:00:00", "2024-05-01T11:00:00"])
    MERGING.refused(inputs, names=[f"/{name}", attribute, "10:00:00", "11:00:00"])


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("values", [("2024-05-01T10:00:00", "2024-05-01T11:00:00"), (0.0, 3600.0), (None, 3600.0)])
def test_another_offset_next_to_an_equal_start_is_refused(tmp_path, name, values):
    inputs = write_all(tmp_path, *[Run([1, 2], 3, first_s=10 * number, origin="start") for number in range(2)])
    set_attributes(inputs, name, "offset", values)
    MERGING.refused(inputs, names=[f"/{name}", "offset"])


def test_another_unit_of_an_offset_is_refused(tmp_path):
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 2, first_s=10))
    for path, unit in zip(inputs, ["mm", "m"]):
        with h5py.File(path, "a") as file:
            moved = group(file["entry/instrument/bank"], "transformations", "NXtransformations")
            moved["shift"] = 2.5
            moved["shift"].attrs.update(
                transformation_type="translation", vector=[0.0, 0, 1], depends_on=".", units="m",
                offset=[0.0, 0, 3], offset_units=unit,
            )
    MERGING.refused(inputs, names=["/entry/instrument/bank/transformations/shift", "offset_units", "mm"])


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
    for path, rows in zip(inputs, [2, 1]):
        with h5py.File(path, "a") as file:
            del file[f"{LOG}/value"]
            file[f"{LOG}/value"], file[f"{LOG}/quality"] = np.ones((rows, 3)), np.ones(rows)
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
