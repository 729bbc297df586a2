"""Merges of NWB files read as pynwb reads the inputs, table by table and series by series."""

import contextlib
import datetime
import uuid

import h5py
import hdmf.common
import numpy as np
import pynwb
import pytest
from hdmf.backends.hdf5 import HDF5IO
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples
from nwb_files import START, WORDS, Session, write_all
from nwb_judge import judge, row_of

pytestmark = pytest.mark.filterwarnings("ignore")
MERGING = Merging("nwb", judge)


@st.composite
def cases(draw):
    count = draw(st.integers(2, 3))
    special = draw(st.sampled_from(["plain", "plain", "ids", "start", "identifier", "unit"]))
    electrodes, waveforms = draw(st.sampled_from([0, 3])), draw(st.booleans())
    sessions = []
    for number in range(count):
        is_last = number == count - 1
        sessions.append(
            Session(
                draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)),
                draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)),
                draw(st.integers(1, 4)),
                first_id=0 if special == "ids" else 100 * number,
                first_s=1000.0 * number,
                start=START + datetime.timedelta(hours=is_last and special == "start"),
                reference=START + datetime.timedelta(hours=is_last and special == "start"),
                identifier=f"session{number if special == 'identifier' else ''}",
                waveforms=waveforms,
                electrodes=electrodes,
                unit="A" if special == "unit" and is_last else "V",
            )
        )
    return sessions, special == "plain"


@examples(6)
@given(cases())
def test_random_files(case):
    sessions, must_merge = case
    with case_folder() as folder:
        (MERGING.equal if must_merge else MERGING.equal_or_refused)(write_all(folder, *sessions))


def test_ragged_columns_are_rebased(tmp_path, raddle):
    sessions = [Session([2, 3], WORDS[:2]), Session([1, 4], WORDS[1:], first_id=10, first_s=100.0)]
    inputs = write_all(tmp_path, *sessions)
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged:
        assert merged["units/spike_times_index"][:].tolist() == [2, 5, 6, 10]
        words = merged["intervals/trials/words_index"][:].tolist()
        assert words == [2, 3, 4, 5, 6, 9] and merged["intervals/trials/words_index_index"][:].tolist() == [2, 3, 4, 6]
        target = merged["units/spike_times_index"].attrs["target"]
        assert merged[target].name == "/units/spike_times"
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_index_types_are_widened(tmp_path):
    """hdmf stores an index in the smallest type that holds its last value."""
    inputs = write_all(tmp_path, Session([200], WORDS[:1]), Session([100], WORDS[1:2], first_id=10, first_s=100.0))
    with h5py.File(inputs[0]) as first:
        assert first["units/spike_times_index"].dtype == np.uint8
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged:
        assert merged["units/spike_times_index"][:].tolist() == [200, 300]


def test_waveforms_of_units(tmp_path):
    sessions = [Session([n, 3 - n], WORDS[:1], first_id=10 * n, first_s=100.0 * n, waveforms=True) for n in [1, 2]]
    MERGING.equal(write_all(tmp_path, *sessions))


def test_electrodes_are_carried_once(tmp_path):
    sessions = [
        Session([1, 2], WORDS[:1], first_id=10 * number, first_s=100.0 * number, electrodes=3) for number in range(2)
    ]
    MERGING.equal(write_all(tmp_path, *sessions))


def test_other_electrodes_are_refused_or_rebased(tmp_path):
    sessions = [
        Session([1, 2], WORDS[:1], first_id=10 * count, first_s=100.0 * count, electrodes=count) for count in [2, 3]
    ]
    MERGING.equal_or_refused(write_all(tmp_path, *sessions))


@pytest.mark.parametrize("what", ["start", "reference"])
def test_another_reference_time_is_refused(tmp_path, what):
    other = Session([1], WORDS[:1], first_id=10, **{what: START + datetime.timedelta(hours=1)})
    name = {"start": "session_start_time", "reference": "timestamps_reference_time"}[what]
    names = [f"/{name}", "2024-05-01T10:00:00", "2024-05-01T11:00:00"]
    MERGING.refused(write_all(tmp_path, Session([1], WORDS[:1]), other), names=names)


def test_repeated_ids_do_not_stay(tmp_path):
    sessions = [Session([1, 2], WORDS[:1], first_s=100.0 * number) for number in range(2)]
    MERGING.equal_or_refused(write_all(tmp_path, *sessions))


@pytest.mark.parametrize(("second_s", "follows"), [(3.0, True), (4.0, False), (0.0, False)])
def test_series_of_a_rate(tmp_path, second_s, follows):
    """Times of such series are computed from the first sample: only a series that follows without a gap can be concatenated."""
    sessions = [Session([1], WORDS[:1], rate=1.0), Session([1], WORDS[:1], first_id=10, first_s=second_s, rate=1.0)]
    inputs = write_all(tmp_path, *sessions)
    if follows:
        MERGING.equal_or_refused(inputs)
    else:
        MERGING.refused(inputs, names=["/acquisition/rated/starting_time"])


def test_another_unit_is_refused(tmp_path):
    sessions = [Session([1], WORDS[:1]), Session([1], WORDS[:1], first_id=10, first_s=100.0, unit="A")]
    MERGING.refused(write_all(tmp_path, *sessions), names=["/acquisition/speed/data", "unit", "V", "A"])


def test_a_file_without_units(tmp_path):
    MERGING.equal_or_refused(write_all(tmp_path, Session([], []), Session([2], WORDS[:1], first_s=100.0)))


def test_a_plan_names_the_convention(tmp_path, raddle):
    inputs = write_all(tmp_path, Session([1], WORDS[:1]), Session([1], WORDS[:1], first_id=10, first_s=100.0))
    assert "NWB" in raddle("plan", *inputs).stdout


@pytest.mark.parametrize("options", [[], ["--scalars", "first"]])
def test_labels_in_another_order_are_refused(tmp_path, options):
    """The values of an `EnumData` are numbers of its labels."""
    inputs = []
    for number, labels in enumerate([["left", "right"], ["right", "left"]]):
        file = pynwb.NWBFile("one session", f"{number}", START, session_id="7")
        file.add_trial_column("side", "of the animal", enum=True)
        # They are numbered in order of appearance.
        for trial, label in enumerate(labels):
            file.add_trial(id=2 * number + trial, start_time=1.0 * trial, stop_time=trial + 0.5, side=label)
        inputs.append(tmp_path / f"{number}.nwb")
        with pynwb.NWBHDF5IO(inputs[-1], "w") as io:
            io.write(file)
    MERGING.refused(inputs, *options, names=["/intervals/trials/side_elements", "left", "right"])


def write_each(folder, count=2, **differs):
    """Yields empty sessions with their numbers. Each is written as ``part0.nwb``, ``part1.nwb``, ... after its turn."""
    for number in range(count):
        texts = {"session_description": "one session", "identifier": "session", "session_id": "7"}
        texts.update({name: each[number] for name, each in differs.items()})
        file = pynwb.NWBFile(session_start_time=START, **texts)
        yield number, file
        with pynwb.NWBHDF5IO(folder / f"part{number}.nwb", "w") as io:
            io.write(file)


def part_paths(folder):
    return sorted(folder.glob("part*.nwb"))


@contextlib.contextmanager
def opened(path):
    with pynwb.NWBHDF5IO(path, "r", load_namespaces=True) as io:
        yield io.read()


def set_attributes(inputs, name, attribute, values):
    for path, value in zip(inputs, values):
        with h5py.File(path, "a") as file:
            file[name].attrs[attribute] = value


def ragged_table(number):
    table = hdmf.common.DynamicTable(name="root", description="d")
    table.add_column(name="hits", description="d", index=True)
    table.add_column(name="words", description="d", index=2)
    for row in range(2):
        table.add_row(hits=[10.0 * number + row] * (row + 1), words=WORDS[number + row], id=10 * number + row)
    return table


def aligned_table(number):
    """Returns a table with another table in its group, whose rows belong to its own."""
    category = hdmf.common.DynamicTable(name="category", description="d")
    category.add_column(name="b", description="d", index=True)
    table = hdmf.common.AlignedDynamicTable(name="root", description="d", category_tables=[category])
    table.add_column(name="a", description="d")
    for row in range(2 + number):
        value = 10 * number + row
        table.add_row(data={"a": value, "category": {"b": [value / 2] * (row + 1), "id": value}}, id=value)
    return table


def read_table(path):
    """Returns the rows of an HDMF table with those of its categories."""
    with HDF5IO(path, manager=hdmf.common.get_manager(), mode="r") as io:
        root = io.read()
        tables = [root, *getattr(root, "category_tables", {}).values()]
        return [[row_of(table, row) for table in tables] for row in range(len(root.id))]


def judge_table(output, inputs):
    assert read_table(output) == [row for path in inputs for row in read_table(path)]


@pytest.mark.parametrize("make", [ragged_table, aligned_table])
@pytest.mark.parametrize("options", [[], ["--convention", "nwb"]])
def test_tables_of_hdmf_without_nwb(tmp_path, raddle, make, options):
    """Their objects have an attribute data_type in place of neurodata_type."""
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with HDF5IO(path, manager=hdmf.common.get_manager(), mode="w") as io:
            io.write(make(number))
    output = MERGING.equal(inputs, *options, judge=judge_table)
    raddle("verify", output, "--against", *inputs)
    assert "NWB" in raddle("plan", *inputs, *options).stdout


def test_other_containers_of_hdmf(tmp_path, raddle):
    """HDMF cannot read a container with a group that it does not know, other than in a table."""
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        tables = [ragged_table(number)]
        with HDF5IO(path, manager=hdmf.common.get_manager(), mode="w") as io:
            io.write(hdmf.common.SimpleMultiContainer(name="root", containers=tables))

    def read(path):
        with HDF5IO(path, manager=hdmf.common.get_manager(), mode="r") as io:
            (table,) = io.read().containers.values()
            return [row_of(table, row) for row in range(len(table.id))]

    output = tmp_path / "output.h5"
    assert "HDMF" in raddle("merge", *inputs, "-o", output).stderr
    assert read(output) == [row for path in inputs for row in read(path)]
    raddle("verify", output, "--against", *inputs)


def write_rois(folder, masks):
    """Writes traces of two regions of interest each. They refer to a table outside of /general."""
    for number, file in write_each(folder):
        plane = file.create_imaging_plane(
            name="plane", optical_channel=pynwb.ophys.OpticalChannel("channel", "d", 500.0), description="d",
            device=file.create_device("microscope"), excitation_lambda=600.0, indicator="GFP", location="V1",
        )  # fmt: skip
        segmentation, fluorescence = pynwb.ophys.ImageSegmentation(), pynwb.ophys.Fluorescence()
        module = file.create_processing_module("ophys", "d")
        module.add(segmentation)
        module.add(fluorescence)
        table = segmentation.create_plane_segmentation(name="ps", description="d", imaging_plane=plane)
        for roi in range(2):
            table.add_roi(image_mask=np.full((2, 2), masks[number] + roi), id=int(masks[number]) + roi)
        region = table.create_roi_table_region(region=[0, 1], description="all")
        times = 10.0 * number + np.arange(2)
        data = np.outer(times, [1, 2])
        fluorescence.add_roi_response_series(
            pynwb.ophys.RoiResponseSeries(name="traces", data=data, rois=region, unit="au", timestamps=times)
        )
    return part_paths(folder)


def judge_rois(output, inputs):
    def read(path):
        with opened(path) as file:
            series = file.processing["ophys"]["Fluorescence"]["traces"]
            ids = series.rois.table.id[:][series.rois.data[:]].tolist()
            return ids, [*zip(series.timestamps[:].tolist(), series.data[:].tolist())]

    each = [read(path) for path in inputs]
    ids, samples = read(output)
    assert all(part[0] == ids for part in each)
    assert samples == [sample for part in each for sample in part[1]]


def test_rows_of_a_table_for_each_column_of_a_series(tmp_path, raddle):
    """A series has one such list for all samples, so its table cannot have the rows of all inputs."""
    for name, masks in {"different": (0.0, 10.0), "equal": (5.0, 5.0)}.items():
        (tmp_path / name).mkdir()
        inputs = write_rois(tmp_path / name, masks)
        MERGING.refused(inputs, names=["/processing/ophys/Fluorescence/traces/rois", "--keep"])
    keep = ["--keep", "/processing/ophys/ImageSegmentation/ps/**"]
    output = MERGING.equal(inputs, *keep, judge=judge_rois)
    raddle("verify", output, "--against", *inputs)
    names = ["/processing/ophys/ImageSegmentation/ps/image_mask"]
    MERGING.refused(part_paths(tmp_path / "different"), *keep, names=names)


def write_bands(folder, means):
    for number, file in write_each(folder):
        times = 10.0 * number + np.arange(2)
        data = np.full((2, 1, 2), float(number))
        series = pynwb.misc.DecompositionSeries("waves", data=data, metric="power", unit="V", timestamps=times)
        for name in ["alpha", "beta"]:
            series.add_band(band_name=name, band_limits=(8.0, 12.0), band_mean=means[number], band_stdev=1.0)
        file.add_acquisition(series)
    return part_paths(folder)


def judge_bands(output, inputs):
    def read(path):
        with opened(path) as file:
            series = file.acquisition["waves"]
            bands = [row_of(series.bands, row) for row in range(len(series.bands))]
            return bands, [*zip(series.timestamps[:].tolist(), series.data[:].tolist())]

    each = [read(path) for path in inputs]
    bands, samples = read(output)
    assert [band["band_name"] for band in bands] == ["alpha", "beta"] and bands == each[0][0]
    assert samples == [sample for part in each for sample in part[1]]


def test_a_table_of_a_series_is_kept_once(tmp_path, raddle):
    """Its rows describe an axis of the series that does not grow."""
    inputs = write_bands(tmp_path, [10.0, 10.0])
    output = MERGING.equal(inputs, judge=judge_bands)
    raddle("verify", output, "--against", *inputs)


def test_another_table_of_a_series_is_refused(tmp_path):
    MERGING.refused(write_bands(tmp_path, [10.0, 11.0]), names=["/acquisition/waves/bands/band_mean", "10", "11"])


def write_meanings(folder, meanings):
    for number, file in write_each(folder):
        file.add_trial_column("side", "d")
        for row, side in enumerate("lrl"):
            start = 10.0 * number + row
            file.add_trial(id=10 * number + row, start_time=start, stop_time=start + 0.5, side=side)
        table = hdmf.common.MeaningsTable(target=file.trials["side"], description="d")
        for value, meaning in zip("lr", meanings[number]):
            table.add_row(value=value, meaning=meaning)
        file.trials.add_meanings_table(table)
    return part_paths(folder)


def judge_meanings(output, inputs):
    def read(path):
        with opened(path) as file:
            table = file.trials.get_meanings_for_column("side")
            meanings = [(table["value"][row], table["meaning"][row]) for row in range(len(table))]
            return meanings, [row_of(file.trials, row) for row in range(len(file.trials))]

    each = [read(path) for path in inputs]
    meanings, rows = read(output)
    assert len(meanings) == 2 and all(part[0] == meanings for part in each)
    assert rows == [row for part in each for row in part[1]]


def test_meanings_of_values_are_kept_once(tmp_path, raddle):
    """They belong to the values of a column, not to the rows of its table."""
    inputs = write_meanings(tmp_path, [["left", "right"]] * 2)
    output = MERGING.equal(inputs, judge=judge_meanings)
    raddle("verify", output, "--against", *inputs)


def test_other_meanings_of_values_are_refused(tmp_path):
    inputs = write_meanings(tmp_path, [["left", "right"], ["left", "rear"]])
    MERGING.refused(inputs, names=["side_meanings/meaning", "right", "rear"])


def test_another_sampling_rate_of_waveforms_is_refused(tmp_path):
    for number, file in write_each(tmp_path):
        file.units = pynwb.misc.Units(name="units", description="d", waveform_rate=10_000.0 * (number + 1))
        file.add_unit(spike_times=[1.0, 2.0], waveform_mean=np.ones(4), id=number)
    MERGING.refused(part_paths(tmp_path), names=["/units/waveform_mean", "sampling_rate", "10000", "20000"])


@pytest.mark.parametrize(
    ("name", "attribute", "values"),
    [
        ("speed/data", "continuity", ("continuous", "step")),
        ("speed", "exposure_time", (0.01, 0.02)),
        ("speed", "scan_line_rate", (8000.0, 9000.0)),
        ("speed", "power", (0.5, 0.75)),
        ("speed", "sweep_number", (3, 4)),
        ("speed", "stimulus_description", ("ramp", "pulse")),
    ],
)
def test_another_attribute_of_the_values_of_a_series_is_refused(tmp_path, name, attribute, values):
    sessions = [Session([1], WORDS[:1], first_id=10 * number, first_s=100.0 * number) for number in range(2)]
    inputs = write_all(tmp_path, *sessions)
    set_attributes(inputs, f"acquisition/{name}", attribute, values)
    MERGING.refused(inputs, names=[f"/acquisition/{name}", attribute, *values])


@pytest.mark.parametrize("is_linked", [True, False])
@pytest.mark.parametrize("is_equal", [True, False])
def test_more_datasets_with_an_element_per_timestamp(tmp_path, raddle, is_equal, is_linked):
    """Extensions such as ndx-pose add them to series. Series may share timestamps by a link."""
    sessions = [Session([1], WORDS[:1], first_id=10 * number, first_s=100.0 * number) for number in range(2)]
    inputs = write_all(tmp_path, *sessions)
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            if is_linked:
                file.copy("acquisition/speed", "acquisition/base")
                file["acquisition/base"].attrs["object_id"] = str(uuid.uuid4())
                del file["acquisition/speed/timestamps"]
                file["acquisition/speed/timestamps"] = h5py.SoftLink("/acquisition/base/timestamps")
            file["acquisition/speed/confidence"] = np.full(3, 0.5 if is_equal else 0.5 + number)
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged:
        assert merged["acquisition/speed/confidence"][:].tolist() == [0.5] * 3 + [0.5 if is_equal else 1.5] * 3
    raddle("verify", output, "--against", *inputs)


def test_a_dataset_as_long_as_two_axes_of_the_data_is_refused(tmp_path):
    sessions = [Session([1], WORDS[:1], first_id=10 * number, first_s=100.0 * number) for number in range(2)]
    inputs = write_all(tmp_path, *sessions)
    for path in inputs:
        with h5py.File(path, "a") as file:
            attributes = dict(file["acquisition/speed/data"].attrs)
            del file["acquisition/speed/data"]
            file["acquisition/speed/data"] = np.zeros((3, 3))
            file["acquisition/speed/data"].attrs.update(attributes)
            file["acquisition/speed/weights"] = np.ones(3)
    MERGING.refused(inputs, names=["/acquisition/speed/weights", "--exclude"])


@pytest.mark.parametrize("is_equal", [True, False])
def test_descriptions_of_as_many_values_as_samples(tmp_path, is_equal):
    """The values of ``control`` are positions in its descriptions, which are not samples."""
    for number, file in write_each(tmp_path):
        texts = ["first", "second" if is_equal else f"second of {number}"]
        times = 10.0 * number + np.arange(2)
        control = {"control": np.array([0, 1], "u1"), "control_description": texts}
        file.add_acquisition(pynwb.TimeSeries("speed", data=times, unit="V", timestamps=times, **control))

    def judge(output, inputs):
        with opened(output) as merged:
            series = merged.acquisition["speed"]
            assert list(series.control_description[:]) == ["first", "second"]
            assert series.control[:].tolist() == [0, 1, 0, 1]

    if is_equal:
        MERGING.equal(part_paths(tmp_path), judge=judge)
    else:
        MERGING.refused(part_paths(tmp_path), names=["/acquisition/speed/control_description", "second of 1"])


OF_CHANNELS = [
    "acquisition/lfp/electrodes", "acquisition/lfp/channel_conversion", "general/extracellular_ephys/electrodes/id",
    "general/extracellular_ephys/electrodes/location",
]


@pytest.mark.parametrize("path", OF_CHANNELS)
def test_other_channels_are_refused_whatever_scalars_says(tmp_path, raddle, path):
    """Samples of the second file would belong to the channels of the first."""
    sessions = [Session(electrodes=3, first_s=100.0 * number) for number in range(2)]
    inputs = write_all(tmp_path, *sessions)
    for number, part in enumerate(inputs):
        with h5py.File(part, "a") as file:
            if path.endswith("channel_conversion"):
                file[path] = np.ones(3) + np.arange(3) * number
            elif number:
                file[path][:] = file[path][:][::-1]
    message = MERGING.refused(inputs, "--scalars", "first", names=[f"/{path}", "different coordinates"])
    assert "what to do" in message and "--scalars" not in message
    raddle("merge", *inputs, "-o", tmp_path / "named.nwb", "--rule", f"/{path}: once", "--scalars", "first")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("identifier", "/identifier"),
        ("session_description", "/session_description"),
        ("session_id", "/general/session_id"),
        ("subject_id", "/general/subject/subject_id"),
    ],
)
def test_strings_of_the_file_that_differ_are_not_stacked(tmp_path, name, path):
    """pynwb does not read a list in their place."""
    texts = ["of one", "of two"]
    for number, file in write_each(tmp_path, **({} if name == "subject_id" else {name: texts})):
        file.subject = pynwb.file.Subject(subject_id=texts[number] if name == "subject_id" else "mouse")
        times = 10.0 * number + np.arange(2)
        file.add_acquisition(pynwb.TimeSeries("speed", data=times * 2, unit="V", timestamps=times))
    inputs = part_paths(tmp_path)
    message = MERGING.refused(inputs, names=[path, *texts, "--scalars first"])
    assert "--scalars stack" not in " ".join(message.split()), message
    MERGING.refused(inputs, "--scalars", "stack", names=[path])

    def judge(output, inputs):
        with opened(output) as file:
            holder = file.subject if name == "subject_id" else file
            assert getattr(holder, name) == texts[0]
            assert file.acquisition["speed"].timestamps[:].tolist() == [0, 1, 10, 11]

    MERGING.equal(inputs, "--scalars", "first", judge=judge)


@pytest.mark.parametrize("count", [1, 2])
def test_columns_may_be_left_out(tmp_path, raddle, count):
    """The table then lists the other columns only."""
    inputs = write_all(tmp_path, *[Session(spikes=[3, 1], words=[[["a"]], [["b", "c"]]], first_id=10 * part) for part in range(count)])
    output = tmp_path / "output.nwb"
    raddle("merge", *inputs, "-o", output, "--exclude", "intervals/trials/words*", "--exclude", "units/quality")
    with opened(output) as file:
        assert file.trials.colnames == ("start_time", "stop_time") and len(file.trials) == 2 * count
        assert file.units.colnames == ("spike_times", "obs_intervals") and len(file.units) == 2 * count
        assert [len(times) for times in file.units.to_dataframe()["spike_times"]] == [3, 1] * count
    raddle("verify", output, "--against", *inputs)
