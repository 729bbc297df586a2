"""Runs and their events and logs in NeXus files, and their comparison as scippnexus reads them."""

import dataclasses

import h5py
import numpy as np
import scipp as sc
import scippnexus as snx
from merging import Merging, NoConcatenation

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


def set_attributes(inputs, name, attribute, values):
    """Sets an attribute of an object in each input, except where the value is None."""
    for path, value in zip(inputs, values):
        if value is not None:
            with h5py.File(path, "a") as file:
                file[name].attrs[attribute] = value


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
