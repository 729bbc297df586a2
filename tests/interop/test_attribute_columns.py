"""Attributes that differ between inputs, as datasets: `--attributes stack` and `--add-column`, read by h5py."""

import json

import h5py
import numpy as np
import pytest

SITES = ["north", "south", "é", "west"]


def write(path, number, rows, **extra):
    """Writes two tables in groups, and attributes of the root, of a group and of a dataset."""
    with h5py.File(path, "w") as file:
        file.attrs["run"] = np.int32(100 + number)
        file.attrs["pressure"] = 0.5 * number
        file.attrs["site"] = SITES[number % 4]
        file.attrs["code"] = np.bytes_("x" * (number + 1))
        file.attrs["origin"] = np.array([number, 0.0, -number])
        file.attrs["experiment"] = "loom"
        for name, scale in (("hits", 3), ("tracks", 1)):
            group = file.create_group(name)
            group.create_dataset("energy", data=np.arange(rows * scale) + 1000.0 * number, chunks=(8,), maxshape=(None,))
            group.create_dataset("layer", data=np.arange(rows * scale) % 5, chunks=(8,), maxshape=(None,))
        file["hits"].attrs["threshold"] = number + 0.25
        file["hits/energy"].attrs["channel"] = np.uint16(number)
        for name, value in extra.items():
            file.attrs[name] = value
    return path


@pytest.fixture
def inputs(tmp_path):
    return [write(tmp_path / f"run{number}.h5", number, 5 + 3 * number) for number in range(4)]


def attribute(inputs, name):
    values = []
    for path in inputs:
        with h5py.File(path) as file:
            values.append(file.attrs[name])
    return values


def assert_stacked(output, inputs):
    numbers = range(len(inputs))
    with h5py.File(output) as file:
        assert file["run"].dtype == "i4" and file["run"][:].tolist() == [100 + number for number in numbers]
        assert file["pressure"].dtype == "f8" and file["pressure"][:].tolist() == [0.5 * number for number in numbers]
        assert file["site"].asstr()[:].tolist() == [SITES[number % 4] for number in numbers]
        assert file["code"][:].tolist() == [b"x" * (number + 1) for number in numbers]
        assert file["origin"].shape == (len(inputs), 3) and np.array_equal(file["origin"], attribute(inputs, "origin"))
        assert file["hits/threshold"][:].tolist() == [number + 0.25 for number in numbers]
        assert file["hits/energy.channel"].dtype == "u2" and file["hits/energy.channel"][:].tolist() == list(numbers)
        # Attributes that are equal in all inputs stay attributes.
        assert dict(file.attrs) == {"experiment": "loom"}
        assert not file["hits"].attrs and not file["hits/energy"].attrs


def test_attributes_are_stacked(raddle, tmp_path, inputs):
    output = tmp_path / "all.h5"
    reported = raddle("merge", *inputs, "-o", output, "--attributes", "stack").stderr
    assert "stacked in /run" in reported, reported
    assert_stacked(output, inputs)
    # The file records the options of its merge.
    assert "equal" in raddle("verify", output, "--against", *inputs).stdout
    raddle("verify", output)
    with h5py.File(output, "a") as file:
        file["run"][1] = 7
    different = raddle("verify", output, "--against", *inputs, expect=8).stdout
    assert "/run" in different and "run1.h5" in different, different


def test_a_file_of_stacked_attributes_grows(raddle, tmp_path, inputs):
    output = tmp_path / "all.h5"
    raddle("merge", *inputs[::3], "-o", output, "--attributes", "stack")
    raddle("append", output, *inputs[1:3])
    inputs = [inputs[0], inputs[3], *inputs[1:3]]
    with h5py.File(output) as file:
        assert file["run"][:].tolist() == [100, 103, 101, 102] and file["code"][:].tolist() == [b"x", b"xxxx", b"xx", b"xxx"]
        assert np.array_equal(file["origin"], attribute(inputs, "origin")) and len(file["hits/energy.channel"]) == 4
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs, "--order", "given")
    # The longest string determined the type.
    refused = raddle("append", output, write(tmp_path / "run4.h5", 4, 2), expect=3).stderr
    assert "code as string of 4 bytes" in refused and "run4.h5" in refused and 'code = "xxxxx"' in refused, refused


def test_a_file_with_stacked_numbers_grows(raddle, tmp_path):
    inputs = [tmp_path / f"in{number}.h5" for number in range(4)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(4) + number, chunks=(3,), maxshape=(None,))
            file.attrs["run"], file.attrs["site"] = number, SITES[number % 4]
    output = tmp_path / "all.h5"
    raddle("merge", *inputs[:2], "-o", output, "--attributes", "stack")
    raddle("append", output, inputs[2])
    raddle("append", output, inputs[3], "--attributes", "stack", expect=2)
    raddle("append", output, inputs[3])
    with h5py.File(output) as file:
        assert file["run"][:].tolist() == [0, 1, 2, 3] and file["site"].asstr()[:].tolist() == SITES
        assert len(file["x"]) == 16 and not file.attrs
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    with h5py.File(tmp_path / "lacks.h5", "w") as file:
        file["x"] = np.arange(3)
        file.attrs["site"] = "west"
    refused = raddle("append", output, tmp_path / "lacks.h5", expect=3).stderr
    assert "/run" in refused and "lacks.h5" in refused, refused


def test_columns_are_added(raddle, tmp_path, inputs):
    output = tmp_path / "all.h5"
    options = ["--add-column", "run=@run", "--add-column", "/hits/site=@site", "--add-column", "/hits/cut=/hits@threshold"]
    planned = raddle("plan", *inputs, *options, "--datasets").stdout
    assert "/hits/run" in planned or " run" in planned, planned
    raddle("merge", *inputs, "-o", output, *options)
    with h5py.File(output) as file:
        assert sorted(file["tracks"]) == ["energy", "layer", "run"]
        assert sorted(file["hits"]) == ["cut", "energy", "layer", "run", "site"]
        for table in ("hits", "tracks"):
            energy, run = file[table]["energy"][:], file[table]["run"]
            assert run.dtype == "i4" and run.maxshape == (None,) and np.array_equal(run, 100 + energy // 1000)
        number = (file["hits/energy"][:] // 1000).astype(int)
        assert file["hits/site"].asstr()[:].tolist() == [SITES[one % 4] for one in number]
        assert np.array_equal(file["hits/cut"], number + 0.25)
    raddle("verify", output, "--against", *inputs)
    raddle("verify", output)
    # With chunks, several threads, parts and resuming, the bytes are the same.
    achannel = tmp_path / "achannel.h5"
    for number in (1, 2):
        raddle("merge", *inputs, "-o", achannel, *options, "--part", f"{number}/2")
    assert achannel.read_bytes() == output.read_bytes()


def test_a_file_with_added_columns_grows(raddle, tmp_path, inputs):
    options = ["--add-column", "run=@run", "--add-column", "/hits/site=@site"]
    output, whole = tmp_path / "all.h5", tmp_path / "whole.h5"
    raddle("merge", *inputs, "-o", whole, *options)
    raddle("merge", *inputs[:2], "-o", output, *options)
    for path in inputs[2:]:
        raddle("append", output, path)
    with h5py.File(output) as grown, h5py.File(whole) as file:
        for path in ("hits/run", "hits/site", "tracks/run", "hits/energy"):
            assert grown[path].dtype == file[path].dtype and np.array_equal(grown[path], file[path]), path
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_a_virtual_file_has_added_columns(raddle, tmp_path, inputs):
    output = tmp_path / "view.h5"
    raddle("merge", *inputs, "-o", output, "--link", "virtual", "--add-column", "run=@run")
    with h5py.File(output) as file:
        assert file["hits/energy"].is_virtual and not file["hits/run"].is_virtual
        assert np.array_equal(file["hits/run"], 100 + file["hits/energy"][:] // 1000)
    raddle("verify", output, "--against", *inputs)


def refused(raddle, tmp_path, inputs, *options):
    text = raddle("merge", *inputs, "-o", tmp_path / "out.h5", *options, expect=3).stderr
    assert not (tmp_path / "out.h5").exists()
    return text


def test_what_is_missing_or_of_another_type_is_refused(raddle, tmp_path, inputs):
    with h5py.File(inputs[2], "a") as file:
        del file.attrs["run"]
    for options in (["--attributes", "stack"], ["--add-column", "run=@run"]):
        text = refused(raddle, tmp_path, inputs, *options)
        assert "no run" in text and "run2.h5" in text and "run = 100" in text, text
    for value, shown in [(np.int64(102), "run = 102"), ("late", 'run = "late"'), (np.array([1, 2], "i4"), "[1, 2]")]:
        with h5py.File(inputs[2], "a") as file:
            file.attrs["run"] = value
        for options in (["--attributes", "stack"], ["--add-column", "run=@run"]):
            text = refused(raddle, tmp_path, inputs, *options)
            assert shown in text and "run2.h5" in text, text


def test_places_that_are_taken_or_unclear_are_refused(raddle, tmp_path, inputs):
    text = refused(raddle, tmp_path, inputs, "--add-column", "/hits/layer=@run")
    assert "/hits/layer" in text, text
    text = refused(raddle, tmp_path, inputs, "--add-column", "/none/run=@run")
    assert "/none/run" in text, text
    text = refused(raddle, tmp_path, inputs, "--add-column", "run=@nothing")
    assert "no nothing" in text and "all 4 inputs" in text, text
    for path in inputs:
        with h5py.File(path, "a") as file:
            file["hits/bins"] = np.arange(4)
    text = refused(raddle, tmp_path, inputs, "--add-column", "run=@run")
    assert "15 rows as /hits/energy" in text and "4 rows as /hits/bins" in text, text
    raddle("merge", *inputs, "-o", tmp_path / "kept.h5", "--add-column", "run=@run", "--keep", "/hits/bins")
    raddle("merge", *inputs, "-o", tmp_path / "some.h5", "--add-column", "/tracks/run=@run")
    for wrong in ("run", "run=run", "hits/run=@run"):
        assert "expected NAME=@ATTRIBUTE" in raddle(
            "merge", *inputs, "-o", tmp_path / "no.h5", "--add-column", wrong, expect=2
        ).stderr or wrong == "hits/run=@run"
    with h5py.File(inputs[0], "a") as file:
        file["run"] = np.arange(3)
    text = refused(raddle, tmp_path, inputs, "--attributes", "stack", "--join", "outer")
    assert "/run" in text, text


def test_plans_say_which_columns_are_added(raddle, inputs):
    plan = json.loads(raddle("plan", *inputs, "--add-column", "run=@run", "--json").stdout)
    assert any(one["path"] == "/hits/run" for one in plan["output"]["datasets"]), plan["output"]


def test_stacked_scalars_grow_as_the_file_remembers(raddle, tmp_path):
    inputs = [tmp_path / f"in{number}.h5" for number in range(4)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(4) + number, chunks=(3,), maxshape=(None,))
            file["run"], file["title"], file["same"] = np.int16(number), "t" * number, 1.5
    output = tmp_path / "all.h5"
    raddle("merge", *inputs[:2], "-o", output, "--scalars", "stack")
    refused = raddle("append", output, inputs[2], "--scalars", "first", expect=3).stderr
    assert "--scalars stack" in refused and "--scalars first" in refused, refused
    for path in inputs[2:]:
        raddle("append", output, path)
    with h5py.File(output) as file:
        assert file["run"].dtype == "i2" and file["run"][:].tolist() == [0, 1, 2, 3]
        assert file["title"].asstr()[:].tolist() == ["", "t", "tt", "ttt"] and file["same"].shape == ()
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    # An option on the command line overrides the recorded one.
    assert "same" not in raddle("verify", output, "--against", *inputs, "--scalars", "first", expect=8).stdout
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"], file["run"], file["title"], file["same"] = np.arange(2), np.int16(7), "late", 2.5
    refused = raddle("append", output, tmp_path / "other.h5", expect=3).stderr
    assert "/same" in refused and "the value of all previous inputs" in refused, refused
    assert refused.endswith("where scalars differ, choose to merge all inputs into a new file\n"), refused


def test_a_selection_is_remembered(raddle, tmp_path, inputs):
    output = tmp_path / "all.h5"
    raddle("merge", *inputs[:3], "-o", output, "--exclude", "tracks", "--include", "/hits/**", "--attributes", "stack")
    inputs[3] = write(tmp_path / "late.h5", 3, 6, code=np.bytes_("x"))
    raddle("append", output, inputs[3])
    with h5py.File(output) as file:
        assert "tracks" not in file and len(file["run"]) == 4
    raddle("verify", output, "--against", *inputs, "--order", "given")
    raddle("verify", output)


def test_a_copy_of_stacked_attributes_is_compared_with_all_of_its_input(raddle, tmp_path, inputs):
    """Stacked attributes are made after the selection, whose patterns do not match them."""
    output, again, part = (tmp_path / name for name in ["all.h5", "again.h5", "part.h5"])
    options = ["--include", "/hits/*", "--exclude", "/pressure"]
    raddle("merge", *inputs, "-o", output, *options, "--attributes", "stack")
    raddle("rechunk", output, "-o", again)
    for expected in [[output], inputs]:
        raddle("verify", again, "--against", *expected)
    with h5py.File(again, "r+") as file:
        file["pressure"][1] += 1
    for expected in [[output], inputs]:
        assert "/pressure" in raddle("verify", again, "--against", *expected, expect=8).stdout
    # The same patterns, given again, leave the stacked attributes out.
    raddle("merge", output, "-o", part, *options)
    with h5py.File(part) as file:
        assert sorted(file["hits"]) == ["energy", "energy.channel", "layer", "threshold"] and "pressure" not in file
    raddle("verify", part, "--against", output)
