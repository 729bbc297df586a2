"""Merges of NeXus files read as scippnexus concatenates the inputs.

A pulse keeps its events, an entry of a log its time. Values of a whole run are carried once or refused.
"""

import h5py
import numpy as np
import pytest
import scipp as sc
import scippnexus as snx
from hypothesis import given
from hypothesis import strategies as st
from merging import case_folder, examples
from nexus_files import EVENTS, LOG, MERGING, PER_SECOND, Run, group, rows, set_attributes, write_all

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


@pytest.mark.parametrize("place", ["data", "collection"])
@pytest.mark.parametrize("values", [(STARTS[0], STARTS[1]), (STARTS[0], None), (None, STARTS[0])])
@pytest.mark.parametrize("attribute", ["epoch", "start"])
def test_another_start_of_any_field_with_a_unit_of_time_is_refused(tmp_path, place, values, attribute):
    """scippnexus reads instants. Their numbers are equal, in all files and in the merge."""
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 2, first_s=10))
    for path in inputs:
        with h5py.File(path, "a") as file:
            scan = group(file["entry"], "scan", {"data": "NXdata", "collection": "NXcollection"}[place])
            scan.attrs.update(signal="counts", axes=["moment"])
            scan["counts"] = np.ones(2)
            rows(scan, "moment", np.arange(2), units="ms")
    set_attributes(inputs, "entry/scan/moment", attribute, values)
    MERGING.refused(inputs, names=["/entry/scan/moment", attribute])
    if None not in values:
        set_attributes(inputs, "entry/scan/moment", attribute, [values[0]] * 2)
        MERGING.equal(inputs)


@pytest.mark.parametrize("counts", [(1, 2), (2, 2), (3, 3), (3, 1)])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_further_logs_of_a_log(tmp_path, raddle, counts, unit):
    """An alarm and the state of a connection have times of their own, whose number may equal that of the log."""
    inputs = write_all(tmp_path, Run([1, 2], 3), Run([1], 3, STARTS[1]))
    for path, start, unit_here, count in zip(inputs, STARTS, ["s", unit], counts):
        with h5py.File(path, "a") as file:
            log = file[LOG]
            times = np.arange(count) * 5 * PER_SECOND[unit_here]
            for name in ["alarm_time", "link_time"]:
                rows(log, name, times, units=unit_here, start=start)
            # The first values are equal in all inputs.
            rows(log, "alarm_severity", np.arange(count))
            log["alarm_message"] = [f"message {number}" for number in range(count)]
            rows(log, "link", np.arange(count))

    def read(path):
        with snx.File(path) as file:
            found = file[LOG][()]
        found["alarm"].coords["message"] = sc.array(dims=["time"], values=found["alarm"].coords["message"].values)
        logs = {name: found[name] for name in ["value", "alarm", "link"]}
        for log in logs.values():
            log.coords["time"] = log.coords["time"].to(unit="ns")
        return logs

    def judge_logs(output, inputs):
        found, parts = read(output), [read(path) for path in inputs]
        for name in found:
            expected = sc.concat([part[name] for part in parts], "time")
            assert sc.identical(found[name], expected), (found[name], expected)

    output = MERGING.equal(inputs, judge=judge_logs)
    raddle("verify", output, "--against", *inputs)
