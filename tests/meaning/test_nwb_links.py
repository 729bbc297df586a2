"""Series in NWB files whose samples are links to another series."""

import datetime

import h5py
import numpy as np
import pynwb
import pytest
from merging import Merging

START = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.timezone.utc)
pytestmark = pytest.mark.filterwarnings("ignore")


def write(path, number, is_equal):
    file = pynwb.NWBFile("one session", "session", START)
    speed = pynwb.TimeSeries("speed", data=np.arange(3.0) + number, unit="V", timestamps=10.0 * number + np.arange(3))
    file.add_acquisition(speed)
    file.add_acquisition(pynwb.TimeSeries("linked", data=speed, unit="V", timestamps=speed))
    with pynwb.NWBHDF5IO(path, "w") as io:
        io.write(file)
    # Extensions add such datasets to series.
    with h5py.File(path, "a") as written:
        written["acquisition/linked/confidence"] = np.full(3, 0.5 if is_equal else 0.5 + number)
    return path


def judge(output, inputs):
    def read(path):
        with pynwb.NWBHDF5IO(path, "r") as io:
            series = io.read().acquisition["linked"]
            rows = [series.timestamps[:], series.data[:]]
        with h5py.File(path) as file:
            rows.append(file["acquisition/linked/confidence"][:])
        return [*zip(*(row.tolist() for row in rows), strict=True)]

    assert read(output) == [row for path in inputs for row in read(path)]


MERGING = Merging("nwb", judge)


@pytest.mark.parametrize("is_equal", [True, False])
def test_another_dataset_of_a_series_of_links(tmp_path, raddle, is_equal):
    inputs = [write(tmp_path / f"part{number}.nwb", number, is_equal) for number in range(2)]
    output = MERGING.equal(inputs)
    raddle("verify", output, "--against", *inputs)
