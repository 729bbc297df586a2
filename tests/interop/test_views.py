"""Outputs and inputs of virtual datasets, read by h5py."""

import json
import os
import resource
import shutil

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import pytest
import xarray as xr
from conftest import assert_concatenated, write_events, write_frames


def test_a_virtual_merge_reads_as_the_merge(raddle, events, tmp_path):
    output = tmp_path / "virtual.h5"
    raddle("merge", *events, "-o", output, "--link", "virtual")
    assert_concatenated(output, events)
    with h5py.File(output) as file:
        assert file["spill/evt"].is_virtual
        assert file["table1/energy"].attrs["unit"] == "GeV"
        assert {source.file_name for source in file["spill/evt"].virtual_sources()} == {path.name for path in events}
    raddle("verify", output)
    raddle("verify", output, "--against", *events)
    # Merged again, it equals the plain merge.
    raddle("merge", output, "-o", tmp_path / "filled.h5")
    assert_concatenated(tmp_path / "filled.h5", events)
    with h5py.File(tmp_path / "filled.h5") as file:
        assert not file["spill/evt"].is_virtual


def test_a_virtual_merge_moves_with_its_inputs_and_misses_them(raddle, tmp_path):
    old = tmp_path / "old"
    (old / "in").mkdir(parents=True)
    inputs = [write_events(old / "in" / f"run{number}.h5", number) for number in (1, 2)]
    raddle("merge", *inputs, "-o", old / "virtual.h5", "--link", "virtual")
    new = tmp_path / "new"
    shutil.move(old, new)
    moved = [new / "in" / path.name for path in inputs]
    assert_concatenated(new / "virtual.h5", moved)
    raddle("verify", new / "virtual.h5", "--against", *moved)
    os.remove(moved[1])
    damaged = raddle("verify", new / "virtual.h5", expect=8)
    assert "in/run2.h5" in damaged.stdout


def test_sources_of_virtual_inputs_must_be_there(raddle, tmp_path):
    inputs = []
    for number in range(3):
        with h5py.File(tmp_path / f"source{number}.h5", "w") as file:
            file["values"] = np.arange(5) + number
        layout = h5py.VirtualLayout((5,), int)
        layout[:] = h5py.VirtualSource(f"source{number}.h5", "values", (5,))
        inputs.append(tmp_path / f"in{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file.create_virtual_dataset("values", layout, fillvalue=-1)
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output, "--link", "virtual")
    assert_concatenated(output, inputs)
    os.remove(output)
    for number in (0, 2):
        os.remove(tmp_path / f"source{number}.h5")
    # Readers would silently see the fill value.
    for command in (["merge", *inputs, "-o", output, "--link", "virtual"], ["plan", *inputs, "--link", "virtual"]):
        message = raddle(*command, expect=3).stderr
        assert "source0.h5" in message and "source2.h5" in message and "source1.h5" not in message
    assert not output.exists()


def test_absolute_names_and_names_with_percent_signs(raddle, tmp_path):
    (tmp_path / "in 5%b").mkdir()
    inputs = [write_events(tmp_path / "in 5%b" / f"run%{number}.h5", number) for number in (1, 2)]
    for paths in ("relative", "absolute"):
        output = tmp_path / f"{paths}.h5"
        raddle("merge", *inputs, "-o", output, "--link", "virtual", "--link-paths", paths)
        assert_concatenated(output, inputs)


# Filters that raddle's libhdf5 lacks, alone and with others.


FOREIGN_FILTERS = {
    "lzf": {"compression": "lzf"},
    "lzf shuffled": {"compression": "lzf", "shuffle": True, "fletcher32": True},
    "szip": {"compression": "szip", "compression_opts": ("nn", 8)},
    "szip ec": {"compression": "szip", "compression_opts": ("ec", 32)},
    "bzip2": hdf5plugin.BZip2(),
    "lz4": hdf5plugin.LZ4(),
    "zstd": hdf5plugin.Zstd(),
    "blosc": hdf5plugin.Blosc(cname="zlib", shuffle=hdf5plugin.Blosc.SHUFFLE),
    "blosc bits": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
    "bitshuffle": hdf5plugin.Bitshuffle(),
    "bitshuffle zstd": hdf5plugin.Bitshuffle(cname="zstd"),
}


@pytest.mark.parametrize("name", FOREIGN_FILTERS)
def test_a_view_of_foreign_filters_reads_as_the_merge(raddle, tmp_path, name):
    random = np.random.default_rng(1)
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        rows = 1000 + 77 * number
        with h5py.File(path, "w") as file:
            for column, values in (
                ("numbers", np.arange(rows) // 7 + number),
                ("noise", random.integers(0, 256, rows, np.uint8)),
                ("zeros", np.zeros((rows, 300), "f4")),
            ):
                chunks = (128, *values.shape[1:])
                file.create_dataset(column, data=values, chunks=chunks, maxshape=(None, *values.shape[1:]), **FOREIGN_FILTERS[name])
    view, copy = tmp_path / "view.h5", tmp_path / "copy.h5"
    raddle("merge", *inputs, "-o", view, "--link", "virtual")
    assert_concatenated(view, inputs)
    raddle("verify", view)
    raddle("verify", view, "--against", *inputs)
    raddle("merge", view, "-o", copy)
    assert_concatenated(copy, inputs)
    raddle("verify", copy, "--against", *inputs)
    # Values that differ from the inputs', and chunks that no filter made, are reported.
    with h5py.File(inputs[1], "r+") as file:
        file["numbers"][500] += 1
    raddle("verify", copy, "--against", view, expect=8)
    with h5py.File(inputs[1], "r+") as file:
        file["numbers"].id.write_direct_chunk((512,), b"\xff" * 20, 0)
    message = raddle("verify", view, "--against", *inputs, expect=3).stderr
    assert name.split()[0] in message, message


def test_a_view_of_strings_behind_a_foreign_filter(raddle, tmp_path):
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            words = [f"wört {row} of {number}" for row in range(300)]
            file.create_dataset("words", data=words, chunks=(128,), compression="lzf")
    view, copy = tmp_path / "view.h5", tmp_path / "copy.h5"
    raddle("merge", *inputs, "-o", view, "--link", "virtual")
    raddle("verify", view, "--against", *inputs)
    raddle("merge", view, "-o", copy)
    with h5py.File(copy) as copied, h5py.File(view) as linked:
        assert list(copied["words"]) == list(linked["words"]) and len(copied["words"]) == 600


def test_keys_are_made_in_a_virtual_merge(raddle, events, tmp_path):
    keys = ("--keys", "/spill/evt", "--key-scope", "input")
    raddle("merge", *events, "-o", tmp_path / "plain.h5", *keys)
    raddle("merge", *events, "-o", tmp_path / "virtual.h5", "--link", "virtual", *keys)
    with h5py.File(tmp_path / "plain.h5") as plain, h5py.File(tmp_path / "virtual.h5") as virtual:
        assert not virtual["table1/evt.seq"].is_virtual and virtual["table1/evt"].is_virtual
        np.testing.assert_array_equal(virtual["table1/evt.seq"][()], plain["table1/evt.seq"][()])


def test_values_that_a_view_must_copy_have_the_requested_layout(raddle, tmp_path):
    """Times that count from another day are converted, so they cannot be those of the inputs."""
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        hours = ("time", np.arange(500.0), {"units": f"hours since 2001-01-{1 + 25 * number:02}"})
        tas = ("time", np.arange(500, dtype="f4") + number)
        xr.Dataset({"tas": tas}, {"time": hours}, {"Conventions": "CF-1.8"}).to_netcdf(inputs[-1], unlimited_dims=["time"])
    output = tmp_path / "view.nc"
    raddle("merge", *inputs, "-o", output, "--link", "virtual", "-c", "gzip:7", "--shuffle", "yes", "--chunk", "100rows")
    raddle("verify", output, "--against", *inputs)
    raddle("plan", *inputs, "--link", "virtual", "-c", "gzip:7")
    with h5py.File(output) as file:
        time = file["time"]
        assert file["tas"].is_virtual and not time.is_virtual
        assert (time.compression, time.compression_opts, time.shuffle, time.chunks) == ("gzip", 7, True, (100,))
        assert time[500] == 600 and file["tas"][500] == 1
    # Without converted times, nothing is stored.
    with netCDF4.Dataset(inputs[1], "a") as file:
        file["time"].units, file["time"][:] = "hours since 2001-01-01", 600.0 + np.arange(500)
    refused = raddle("merge", *inputs, "-o", output, "-f", "--link", "virtual", "-c", "gzip:7", expect=2).stderr
    assert "stores no values: leave out --compress" in refused


def test_an_endless_virtual_dataset_that_leads_elsewhere_names_the_option(raddle, tmp_path):
    """The dataset has the extent of its sources, so the object itself cannot be read without them."""
    (tmp_path / "here").mkdir()
    source = tmp_path / "source.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=np.arange(6.0), maxshape=(None,), chunks=(3,))
    path = tmp_path / "here" / "virtual.h5"
    with h5py.File(path, "w", libver="latest") as file:
        layout = h5py.VirtualLayout((6,), "f8", maxshape=(None,))
        unlimited = h5py.VirtualSource(str(source), "x", (6,), maxshape=(None,))
        layout[: h5py.h5s.UNLIMITED] = unlimited[: h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("x", layout)
    refused = raddle("merge", path, "-o", tmp_path / "out.h5", expect=3).stderr
    assert "outside of its folder" in refused and "--follow-foreign-files" in refused, refused
    raddle("merge", path, "-o", tmp_path / "out.h5", "--follow-foreign-files")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["x"][:].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_view_that_may_not_be_looked_at_is_not_damaged(raddle, tmp_path):
    inputs = [write_frames(tmp_path / f"in/run{number}.h5", number) for number in range(2)]
    (tmp_path / "out").mkdir()
    output = tmp_path / "out/view.h5"
    raddle("merge", *inputs, "-o", output, "--link", "virtual")
    for more in ([], ["--against", *inputs]):
        refused = raddle("verify", output, *more, expect=3)
        assert "outside of its folder" in refused.stderr and "--follow-foreign-files" in refused.stderr
        assert "DAMAGED" not in refused.stdout
        raddle("verify", output, *more, "--follow-foreign-files")
    refused = raddle("split", output, "--by", "variable", "--dir", tmp_path / "split", expect=3)
    assert "--follow-foreign-files" in refused.stderr
    for to in (["-o", tmp_path / "rechunked.h5"], ["--dir", tmp_path / "rechunked"]):
        refused = raddle("rechunk", output, *to, expect=3)
        assert "--follow-foreign-files" in refused.stderr, refused.stderr
        raddle("rechunk", output, *to, "--follow-foreign-files", "--force")
    for rechunked in (tmp_path / "rechunked.h5", tmp_path / "rechunked/view.h5"):
        with h5py.File(rechunked) as file:
            np.testing.assert_array_equal(file["frames"][()], [[0, 1], [2, 3], [1, 2], [3, 4]])


def test_sources_of_a_view_are_not_looked_up_for_every_input(raddle, tmp_path):
    """Texts are compared input by input. The sources of a view are checked before each read, which took a minute for
    thousands of inputs."""
    inputs = []
    for number in range(700):
        inputs.append(tmp_path / f"runs/run{number:03}.h5")
        inputs[-1].parent.mkdir(exist_ok=True)
        with h5py.File(inputs[-1], "w") as file:
            file["names"] = np.array([f"{number}", "ä" * (number % 7), ""], object)
    merged, view = tmp_path / "merged.h5", tmp_path / "view.h5"

    def seconds(*arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        raddle(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    raddle("merge", *inputs, "-o", view, "--link", "virtual")
    raddle("merge", *inputs, "-o", merged)
    of_view = seconds("verify", view, "--against", *inputs)
    of_merged = seconds("verify", merged, "--against", *inputs)
    assert of_view < 10 * of_merged + 1.5, (of_view, of_merged)
    # The difference is located in the collected rows.
    with h5py.File(merged, "r+") as file:
        file["names"][3 * 321 + 1] = "other"
    raddle("verify", merged, "--against", *inputs, "--report", tmp_path / "report.json", expect=8)
    (mismatch,) = json.loads((tmp_path / "report.json").read_text())["mismatches"]
    assert (mismatch["path"], mismatch["row"], mismatch["input"]) == ("/names", 963, str(inputs[321]))


def limited(limit):
    """Returns the options of a process that may have this number of files open."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}


@pytest.mark.parametrize("limit", [24, 32, 100])
def test_views_of_more_files_than_may_be_open_are_read_in_pieces(raddle, tmp_path, limit):
    """HDF5 shows fill values for sources that it cannot open, without an error."""
    inputs = []
    for number in range(120):
        inputs.append(tmp_path / f"run{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            file["x"] = np.arange(7) + 7 * number
            file.create_dataset("words", data=[f"{number}", "ü"], dtype=h5py.string_dtype())
            file.create_dataset("chunked", data=np.full((5, 3), number + 1.5), chunks=(2, 3), compression=4)
    view, copy = tmp_path / "view.h5", tmp_path / "copy.h5"
    warned = raddle("merge", *inputs, "-o", view, "--link", "virtual", **limited(limit))
    assert "ulimit -n" in warned.stderr
    assert "ulimit -n" not in raddle("merge", *inputs, "-o", view, "--link", "virtual", "-f").stderr
    raddle("verify", view, "--against", *inputs, **limited(limit))
    raddle("merge", view, "-o", copy, **limited(limit))
    with h5py.File(copy) as file:
        np.testing.assert_array_equal(file["x"][()], np.arange(7 * 120))
        np.testing.assert_array_equal(file["chunked"][()], np.repeat(np.arange(120) + 1.5, 15).reshape(600, 3))
        assert file["words"].asstr()[()].tolist() == [word for number in range(120) for word in (f"{number}", "ü")]


def test_sources_that_cannot_be_opened_together_are_not_left_out(raddle, tmp_path):
    """Each row of the outer view maps few files, which map many others."""
    frames = [write_frames(tmp_path / f"frames{number}.h5", number + 1) for number in range(60)]
    masters = []
    for number in range(2):
        masters.append(tmp_path / f"master{number}.h5")
        layout = h5py.VirtualLayout((60, 2), int)
        for place, path in enumerate(frames[30 * number :][:30]):
            layout[2 * place : 2 * place + 2] = h5py.VirtualSource(path.name, "frames", (2, 2))
        with h5py.File(masters[-1], "w") as file:
            file.create_virtual_dataset("frames", layout, fillvalue=-1)
    view, copy = tmp_path / "view.h5", tmp_path / "copy.h5"
    raddle("merge", *masters, "-o", view, "--link", "virtual")
    refused = raddle("merge", view, "-o", copy, expect=6, **limited(40))
    assert "Too many open files" in refused.stderr and not copy.exists()
    raddle("merge", view, "-o", copy, **limited(200))
    assert_concatenated(copy, frames)


@pytest.mark.parametrize("change", ["grown", "shrunk", "replaced"])
def test_sources_of_another_length_are_refused(raddle, tmp_path, change):
    """h5py cannot read such a view as a whole; rows of a file that has taken the place of a source are not those of the
    view."""
    for number in range(3):
        with h5py.File(tmp_path / f"in{number}.h5", "w") as file:
            values = np.arange(10.0 + number) + 100 * number
            file.create_dataset("values", data=values, chunks=(4,), maxshape=(None,))
    inputs = [tmp_path / f"in{number}.h5" for number in range(3)]
    raddle("merge", *inputs, "-o", tmp_path / "view.h5", "--link", "virtual")
    if change == "replaced":
        shutil.copy(tmp_path / "in2.h5", tmp_path / "in1.h5")
    else:
        with h5py.File(tmp_path / "in1.h5", "a") as file:
            file["values"].resize(14 if change == "grown" else 6, axis=0)
    with h5py.File(tmp_path / "view.h5") as file, pytest.raises(OSError, match="elements"):
        file["values"][...]
    verified = raddle("verify", tmp_path / "view.h5", expect=8)
    assert "in1.h5, which has" in " ".join(verified.stdout.split()), verified.stdout
    merged = raddle("merge", tmp_path / "view.h5", "-o", tmp_path / "copy.h5", expect=3)
    assert "make the view again" in merged.stderr, merged.stderr
    assert not (tmp_path / "copy.h5").exists()
