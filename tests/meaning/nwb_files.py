"""Writes NWB files of sessions with pynwb."""

import dataclasses
import datetime

import numpy as np
import pynwb

START = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.timezone.utc)
WORDS = [[["a", "b"], ["c"]], [["dd"]], [["e"], ["f", "g", "h"]]]


@dataclasses.dataclass
class Session:
    """Contents of a session's file. ``words`` are doubly ragged strings; ids start at ``first_id``."""

    spikes: list = dataclasses.field(default_factory=list)
    words: list = dataclasses.field(default_factory=list)
    samples: int = 3
    first_id: int = 0
    first_s: float = 0.0
    start: datetime.datetime = START
    reference: datetime.datetime = START
    identifier: str = "session"
    waveforms: bool = False
    electrodes: int = 0
    rate: float | None = None
    unit: str = "V"


def write(path, session):
    file = pynwb.NWBFile(
        "one session", session.identifier, session.start, timestamps_reference_time=session.reference, session_id="7"
    )
    times = session.first_s + np.arange(session.samples)
    file.add_acquisition(pynwb.TimeSeries("speed", data=times * 2, unit=session.unit, timestamps=times))
    if session.rate:
        rated = dict(rate=session.rate, starting_time=session.first_s)
        file.add_acquisition(pynwb.TimeSeries("rated", data=times * 3, unit="m", **rated))
    if session.electrodes:
        group = file.create_electrode_group("shank", "d", "CA1", file.create_device("probe"))
        for number in range(session.electrodes):
            file.add_electrode(group=group, location=f"site{number}", id=100 + number)
        region = file.create_electrode_table_region(list(range(session.electrodes))[::-1], "all")
        data = np.outer(times, np.arange(session.electrodes) + 1)
        file.add_acquisition(pynwb.ecephys.ElectricalSeries("lfp", data, region, timestamps=times))
    if session.spikes:
        file.add_unit_column("quality", "by eye")
    for number, count in enumerate(session.spikes):
        more = {}
        if session.waveforms:
            more["waveforms"] = [[[float(spike), number], [0.5, 1.5]] for spike in range(count)]
        if session.electrodes:
            more["electrodes"] = [number % session.electrodes, session.electrodes - 1]
        file.add_unit(
            spike_times=session.first_s + np.arange(count) / 8, quality="good" if number % 2 else "bad",
            obs_intervals=[[session.first_s, session.first_s + 1]], id=session.first_id + number, **more,
        )
    if session.words:
        file.add_trial_column("words", "said", index=2)
    for number, words in enumerate(session.words):
        start = session.first_s + number
        file.add_trial(start_time=start, stop_time=start + 0.5, words=words, id=session.first_id + number)
    with pynwb.NWBHDF5IO(path, "w") as io:
        io.write(file)
    return path


def write_all(folder, *sessions):
    return [write(folder / f"part{number}.nwb", session) for number, session in enumerate(sessions)]
