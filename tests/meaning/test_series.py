"""Regularly sampled series, whose attributes state the first time and the interval, as PyCBC and many programs write them:
an input continues the series, or the merge is refused."""

import h5py
import numpy as np
import pytest
from merging import Merging

MERGING = Merging("series", None)

REGULAR = [
    {"start_time": 1000.0, "delta_t": 0.25},
    {"epoch": 1_000_000_000.5, "delta_t": 1 / 4096},
    {"t0": 3, "dt": 2},
    {"StartTime": 10.0, "Sampling Rate": 4},
    {"tstart": 5.0, "fs": 16.0},
]

STARTS = [next(iter(attributes)) for attributes in REGULAR]
RATES = ["Sampling Rate", "fs"]


def written(folder, attributes):
    paths = [folder / f"part{number}.h5" for number in range(len(attributes))]
    for number, (path, of_input) in enumerate(zip(paths, attributes)):
        with h5py.File(path, "w") as file:
            file["H1"] = np.arange(4.0) + 4 * number
            file["H1"].attrs.update(of_input)
    return paths


def starting(attributes, samples):
    """Returns the attributes of a series that starts later by a number of samples."""
    (start, first), (name, value) = attributes.items()
    interval = 1 / value if name in RATES else value
    return {start: type(first)(first + samples * interval), name: value}


def judge(output, inputs):
    """Compares the times and values of all samples, each computed from the attributes of its file."""

    def samples(path):
        with h5py.File(path) as file:
            attributes = file["H1"].attrs
            start = next(attributes[name] for name in attributes if name in STARTS)
            step = next(value for name, value in attributes.items() if name not in STARTS)
            times = start + np.arange(len(file["H1"])) * (1 / step if set(RATES) & set(attributes) else step)
            return np.stack([times, file["H1"][:]])

    assert np.allclose(samples(output), np.concatenate([samples(path) for path in inputs], axis=1), rtol=1e-15)


@pytest.mark.parametrize("attributes", REGULAR)
def test_an_input_continues_the_series(tmp_path, attributes):
    MERGING.equal(written(tmp_path, [attributes, starting(attributes, 4), starting(attributes, 8)]), judge=judge)


@pytest.mark.parametrize("attributes", REGULAR)
@pytest.mark.parametrize("samples", [3, 5, 400])
def test_a_gap_or_an_overlap_is_refused(tmp_path, raddle, attributes, samples):
    inputs = written(tmp_path, [attributes, starting(attributes, samples)])
    start = next(iter(attributes))
    MERGING.refused(inputs, names=[f"a series of 4 samples from {start}", "--convention none", "--attributes stack"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--convention", "none")
    with h5py.File(tmp_path / "out.h5") as merged:
        assert merged["H1"].shape == (8,)


def test_inputs_in_another_order_are_refused(tmp_path):
    first = REGULAR[0]
    inputs = written(tmp_path, [starting(first, 4), first])
    MERGING.refused(inputs, names=["start_time"])


def test_an_append_continues_the_series(tmp_path, raddle):
    first = REGULAR[0]
    inputs = written(tmp_path, [first, starting(first, 4), starting(first, 8), starting(first, 16)])
    raddle("merge", *inputs[:2], "-o", tmp_path / "out.h5", "--extendible")
    raddle("append", tmp_path / "out.h5", inputs[2])
    judge(tmp_path / "out.h5", inputs[:3])
    finished = raddle("append", tmp_path / "out.h5", inputs[3], expect=3)
    assert "a series of 12 samples" in " ".join((finished.stdout + finished.stderr).split())
    judge(tmp_path / "out.h5", inputs[:3])


def test_dates_of_the_first_sample_cannot_be_compared(tmp_path):
    inputs = written(tmp_path, [{"start_time": f"2024-01-0{day}", "sampling_rate": 4} for day in [1, 2]])
    MERGING.refused(inputs, names=["2024-01-01", "2024-01-02"])


@pytest.mark.parametrize("name", ["sampling_rate", "SamplingFrequency", "sample rate", "delta_t"])
def test_another_interval_is_refused(tmp_path, name):
    MERGING.refused(written(tmp_path, [{name: 44100}, {name: 48000}]), names=["44100", "48000"])


def test_a_start_without_an_interval_is_a_note(tmp_path, raddle):
    inputs = written(tmp_path, [{"start_time": "2024-01-01"}, {"start_time": "2024-01-02"}])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5")
