"""Results of appends, read by h5py; and access to one file by h5py and raddle at the same time."""

import shutil

import h5py
import numpy as np
import pytest
from conftest import assert_concatenated, visit, write_events


@pytest.mark.parametrize("compat", ["1.8", "1.10", "latest"])
def test_values_are_those_of_one_merge(raddle, events, tmp_path, compat):
    output = tmp_path / "out.h5"
    raddle("merge", *events[:2], "-o", output, "--compat", compat)
    for event in events[2:]:
        raddle("append", output, event)
    assert_concatenated(output, events)
    raddle("verify", output)
    raddle("verify", output, "--against", *events)


@pytest.mark.parametrize("libver", ["earliest", "v108", "v110", "latest"])
def test_files_of_h5py_grow(raddle, tmp_path, libver):
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"in{number}.h5")
        values = np.arange(number * 100, number * 100 + 90)
        with h5py.File(inputs[-1], "w", libver=libver) as file:
            file.create_dataset("lzf", data=values, maxshape=(None,), chunks=(32,), compression="lzf")
            file.create_dataset("plain", data=values * 0.5, maxshape=(None,), chunks=(32,))
            file.create_dataset("both", data=values.reshape(30, 3), maxshape=(None, None), chunks=(8, 2))
            file.create_dataset("text", data=[f"{value} ä" for value in values], maxshape=(None,), chunks=(32,))
    output = tmp_path / "out.h5"
    shutil.copy(inputs[0], output)
    raddle("append", output, *inputs[1:])
    merged, parts = visit(output), [visit(path) for path in inputs]
    for name, values in merged.items():
        assert (values == np.concatenate([part[name] for part in parts])).all(), name


@pytest.mark.parametrize("made", ["1.8", "1.10", "latest", "by h5py"])
def test_a_group_that_was_empty_fills(raddle, tmp_path, made):
    inputs = [tmp_path / "empty.h5", write_events(tmp_path / "full.h5", 2)]
    with h5py.File(inputs[0], "w") as empty, h5py.File(inputs[1]) as full:

        def without_rows(name, item):
            if isinstance(item, h5py.Dataset):
                made = empty.create_dataset(name, (0, item.shape[1]), item.dtype, maxshape=(None, item.shape[1]))
                made.attrs.update(item.attrs)

        full.visititems(without_rows)
    output = tmp_path / "out.h5"
    if made == "by h5py":
        shutil.copy(inputs[0], output)
    else:
        raddle("merge", inputs[0], "-o", output, "--compat", made)
    raddle("append", output, inputs[1])
    assert_concatenated(output, inputs)
    inputs.append(write_events(tmp_path / "more.h5", 3))
    raddle("append", output, inputs[2])
    assert_concatenated(output, inputs)


def test_other_bytes_between_equal_samples_are_not_a_repetition(raddle, tmp_path):
    """Two files of equal length differ only in places of which no sample is taken, as small tables in large ones do."""
    inputs = [tmp_path / "first.h5", tmp_path / "second.h5"]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file.create_dataset("zeros", data=np.zeros(100_000))
            file.create_dataset("few", data=np.arange(10) + number, maxshape=(None,), chunks=(10,))
            file.create_dataset("more", data=np.zeros(100_000))
    output = tmp_path / "out.h5"
    raddle("merge", inputs[0], "-o", output, "--extendible")
    raddle("append", output, inputs[1])
    with h5py.File(output) as file:
        assert file["few"][:].tolist() == [*range(10), *range(1, 11)]
    inputs[1].rename(tmp_path / "renamed.h5")
    before = output.read_bytes()
    raddle("append", output, tmp_path / "renamed.h5", expect=3)
    assert output.read_bytes() == before


def test_the_same_input_twice_is_refused(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events[:2], "-o", output)
    before = output.read_bytes()
    copy = tmp_path / "another_name.h5"
    shutil.copy(events[1], copy)
    assert "--again" in raddle("append", output, copy, events[2], expect=3).stderr
    assert output.read_bytes() == before
    raddle("append", output, copy, "--again")
    assert_concatenated(output, [*events[:2], copy])
    # Appended inputs are recognised too.
    raddle("append", output, events[2])
    before = output.read_bytes()
    assert events[2].name in raddle("append", output, events[3], events[2], expect=3).stderr
    assert output.read_bytes() == before


def test_what_cannot_grow_is_named_and_left_alone(raddle, tmp_path):
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"in{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["fixed"] = np.arange(10 + number)
    output = tmp_path / "out.h5"
    raddle("merge", inputs[0], "-o", output)
    before = output.read_bytes()
    assert "/fixed" in raddle("append", output, inputs[1], expect=3).stderr
    assert output.read_bytes() == before
    raddle("merge", inputs[0], "-o", output, "--extendible", "--force")
    raddle("append", output, inputs[1])
    assert_concatenated(output, inputs)


def write_fixed(path, sizes, seed):
    """Writes contiguous datasets of fixed extent."""
    with h5py.File(path, "w") as file:
        for name, size in sizes.items():
            file[name] = np.random.default_rng(seed).random(size)
    return path


@pytest.mark.parametrize(
    ("sizes", "grows"),
    [
        ({"a/large": 600, "b": 700}, True),
        # One chunk index for a small dataset is less than 1 % of the large one.
        ({"large": 200_000, "small": 3}, True),
        # Here the indexes would exceed 1 %.
        ({"large": 600, "small": 3}, False),
        ({f"small{number}": 30 for number in range(20)}, False),
    ],
)
def test_merges_of_plain_files_are_extendible_where_that_is_cheap(raddle, tmp_path, sizes, grows):
    inputs = [write_fixed(tmp_path / f"in{seed}.h5", sizes, seed) for seed in range(3)]
    output, fixed = tmp_path / "out.h5", tmp_path / "fixed.h5"
    for path, options in [(output, []), (fixed, ["--extendible=never"])]:
        raddle("merge", *inputs[:2], "-o", path, "--no-provenance", *options)
    assert output.stat().st_size <= fixed.stat().st_size * 1.01
    with h5py.File(output) as file, h5py.File(fixed) as unextended:
        assert {file[name].maxshape[0] is None for name in sizes} == {grows}
        assert not any(unextended[name].maxshape[0] is None for name in sizes)
    raddle("append", fixed, inputs[2], expect=3)
    raddle("append", output, inputs[2], expect=0 if grows else 3)
    if grows:
        assert_concatenated(output, inputs)
    # On request, all datasets become extendible at any cost; a rewritten file keeps its extents.
    raddle("merge", *inputs[:2], "-o", output, "--force", "--extendible")
    raddle("append", output, inputs[2])
    raddle("rechunk", fixed, "-o", output, "--force")
    with h5py.File(output) as file:
        assert not any(file[name].maxshape[0] is None for name in sizes)


def test_a_file_that_h5py_writes_is_locked(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events[:2], "-o", output)
    with h5py.File(output, "a", locking=True):
        raddle("append", output, events[2], expect=7)
    raddle("append", output, events[2])
    assert_concatenated(output, events[:3])


def test_h5py_continues_where_raddle_ended(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events[:2], "-o", output)
    raddle("append", output, events[2])
    with h5py.File(output, "a") as file:
        rows = len(file["spill/evt"])
        file["spill/evt"].resize(rows + 1000, axis=0)
        file["spill/evt"][rows:] = 7
    with h5py.File(output) as file:
        assert (file["spill/evt"][rows:] == 7).all()
        assert len(file["spill/run"]) == rows
    assert visit(output)["spill/run"].tobytes() == np.concatenate([visit(path)["spill/run"] for path in events[:3]]).tobytes()


def test_nothing_is_appended_if_no_input_can_be_read(raddle, tmp_path):
    good, bad, file = tmp_path / "good.h5", tmp_path / "bad.h5", tmp_path / "all.h5"
    with h5py.File(good, "w") as made:
        made["x"] = np.arange(5)
    bad.write_bytes(b"no HDF5 here" * 100)
    raddle("merge", good, "-o", file, "--extendible")
    before = file.read_bytes()
    assert "bad.h5" in raddle("append", file, bad, "--skip-bad", expect=3).stderr
    assert file.read_bytes() == before


def test_advice_is_accepted_by_a_file_of_stacked_scalars(raddle, tmp_path):
    """Its scalars are recorded as stacked, so that an append with --scalars first is refused."""
    inputs = [tmp_path / f"in{number}.h5" for number in range(3)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["run"] = number
            file["grid"] = np.arange(3) + number // 2
            file.create_dataset("rows", data=np.arange(4), maxshape=(None,))
    output = tmp_path / "out.h5"
    raddle("merge", *inputs[:2], "-o", output, "--scalars", "stack", "--keep", "grid")
    advice = raddle("append", output, inputs[2], expect=3).stderr.split("what to do:")[1]
    assert "--scalars" not in advice and "merge all inputs into a new file" in advice, advice
    raddle("merge", *inputs[:2], "-o", output, "--force", "--scalars", "first", "--keep", "grid")
    raddle("append", output, inputs[2])
