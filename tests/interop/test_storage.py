"""Storage of datasets: contiguous, compact or chunked, read by h5py and by mapping the file into memory."""

import json

import h5py
import numpy as np
import pytest
import xarray
from conftest import assert_concatenated, visit, write_events

STORED = {h5py.h5d.CONTIGUOUS: "contiguous", h5py.h5d.COMPACT: "compact", h5py.h5d.CHUNKED: "chunked"}


def storage(path):
    """Returns the storage of each dataset, without those of the provenance."""
    found = {}
    with h5py.File(path) as file:
        for name, dataset in visit_datasets(file):
            plist = dataset.id.get_create_plist()
            found[name] = STORED[plist.get_layout()]
            if found[name] != "chunked":
                assert dataset.shape == dataset.maxshape and plist.get_nfilters() == 0
    return found


def visit_datasets(file):
    found = []
    file.visititems(lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) else None)
    return [(name, item) for name, item in found if not name.startswith("_raddle")]


def sizes(path):
    with h5py.File(path) as file:
        return {name: dataset.nbytes for name, dataset in visit_datasets(file) if dataset.shape is not None}


def test_all_datasets_can_be_contiguous(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--contiguous")
    assert set(storage(output).values()) == {"contiguous"}
    assert_concatenated(output, events)
    raddle("verify", output)
    raddle("verify", output, "--against", *events)
    mapped = np.memmap(output, np.uint8, "r")
    with h5py.File(output) as file:
        looked = 0
        for _, dataset in visit_datasets(file):
            if dataset.size:
                offset = dataset.id.get_offset()
                assert bytes(mapped[offset : offset + dataset.nbytes]) == dataset[()].tobytes()
                looked += 1
        assert looked > 10


def test_a_size_decides_which_are_contiguous(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--contiguous=10KiB", "-c", "fast")
    of_bytes = sizes(output)
    assert {name: of_bytes[name] < 10240 for name in of_bytes} == {
        name: stored == "contiguous" for name, stored in storage(output).items()
    }
    assert min(of_bytes.values()) == 0 and any(4096 < size < 10240 for size in of_bytes.values())
    assert max(of_bytes.values()) > 10240
    assert_concatenated(output, events)
    raddle("verify", output)
    refused = raddle("append", output, write_events(tmp_path / "more.h5", 9), expect=3).stderr
    assert "/spill/" in refused or "/table" in refused


def check_values(found, expected):
    assert found.keys() == expected.keys()
    for name in expected.keys() - {"objects", "regions"}:
        if name == "ragged":
            assert [list(row) for row in found[name]] == [list(row) for row in expected[name]]
        else:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_every_type_can_be_contiguous(raddle, every_type, tmp_path):
    chunked, output = tmp_path / "chunked.h5", tmp_path / "out.h5"
    raddle("merge", *every_type, "-o", chunked)
    raddle("merge", *every_type, "-o", output, "--contiguous")
    assert set(storage(output).values()) == {"contiguous"}
    expected, found = visit(chunked), visit(output)
    check_values(found, expected)
    raddle("verify", output)
    raddle("verify", output, "--against", *every_type)
    # And back: contiguous datasets are chunked again.
    raddle("rechunk", output, "-o", chunked, "--force", "--extendible", "--empty", "chunked")
    check_values(visit(chunked), expected)


def write_long(path, rows, seed):
    random = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        file.create_dataset("long", data=random.integers(0, 1 << 60, rows), chunks=(1000,), compression="gzip")
        file.create_dataset("wide", data=random.random((rows // 200, 333, 3)), chunks=(7, 100, 2))
        # Rows longer than a tile.
        file.create_dataset("maps", data=random.integers(0, 99, (1 + seed, 300, 1500), np.int32), chunks=(1, 30, 1500))
        file.create_dataset("short", data=np.arange(10 * seed))
        # All elements are the fill value.
        file.create_dataset("blank", (rows,), "f4", chunks=(1000,), fillvalue=3)
    return path


@pytest.fixture
def long(tmp_path):
    return [write_long(tmp_path / f"long{seed}.h5", 200_000 + 13 * seed, seed) for seed in (1, 2, 3)]


def test_contiguous_datasets_are_the_same_for_any_threads_and_memory(raddle, long, tmp_path):
    written = []
    for options in (["-j", "1"], ["-j", "2"], ["-j", "5"], ["-j", "2", "--memory", "64MiB"]):
        output = tmp_path / "out.h5"
        raddle("merge", *long, "-o", output, "--contiguous", "--force", *options)
        written.append(output.read_bytes())
    assert written[0] == written[1] == written[2] == written[3]
    assert_concatenated(output, long)
    assert set(storage(output).values()) == {"contiguous"}
    raddle("verify", output, "--against", *long)


def test_parts_make_contiguous_datasets(raddle, long, tmp_path):
    whole, output = tmp_path / "whole.h5", tmp_path / "out.h5"
    raddle("merge", *long, "-o", whole, "--contiguous")
    for part in ("2/3", "1/3", "3/3"):
        raddle("merge", *long, "-o", output, "--contiguous", "--part", part)
    assert whole.read_bytes() == output.read_bytes()


def test_a_plan_says_what_is_contiguous(raddle, long, tmp_path):
    plan = json.loads(raddle("plan", *long, "--contiguous", "--json").stdout)
    datasets = {dataset["path"]: (dataset["storage"], dataset["route"]) for dataset in plan["output"]["datasets"]}
    assert datasets == {
        "/long": ("contiguous", "raw"),
        "/wide": ("contiguous", "raw"),
        "/maps": ("contiguous", "raw"),
        "/short": ("contiguous", "direct"),
        "/blank": ("contiguous", "raw"),
    }
    assert plan["output"]["chunks"] == 0
    output = tmp_path / "out.h5"
    raddle("merge", *long, "-o", output, "--contiguous")
    predicted = plan["predicted"]["stored_len_bytes"] + plan["predicted"]["metadata_len_bytes"]
    assert abs(predicted - output.stat().st_size) < 0.01 * predicted


@pytest.mark.parametrize("stored", ["contiguous", "compact", "chunked"])
@pytest.mark.parametrize("contiguous", [[], ["--contiguous"]])
def test_empty_datasets_are_stored_as_asked(raddle, events, every_type, tmp_path, stored, contiguous):
    for inputs in (events, every_type):
        output, again = tmp_path / "out.h5", tmp_path / "again.h5"
        raddle("merge", *inputs, "-o", output, "--empty", stored, "--force", *contiguous)
        empty = {name for name, size in sizes(output).items() if size == 0}
        assert empty and {storage(output)[name] for name in empty} == {stored}
        raddle("verify", output)
        raddle("verify", output, "--against", *inputs)
        raddle("rechunk", output, "-o", again, "--empty", "compact", "--force")
        assert {storage(again)[name] for name in empty} == {"compact"}
        raddle("verify", again, "--against", output)
        with h5py.File(output) as one, h5py.File(again) as other:
            for name in empty:
                assert one[name].shape == other[name].shape and one[name].dtype == other[name].dtype


def test_empty_datasets_of_filters_that_raddle_does_not_know(raddle, tmp_path):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(40_000, h5py.h5z.FLAG_OPTIONAL, ())
        for name, rows in (("empty", 0), ("full", 20)):
            space = h5py.h5s.create_simple((rows,), (h5py.h5s.UNLIMITED,))
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, space, plist)
        for number in range(2):
            file["full"].id.write_direct_chunk((10 * number,), b"unknown" * 3, 0)
    raddle("rechunk", path, "-o", output, "--empty", "compact")
    assert storage(output) == {"empty": "compact", "full": "chunked"}
    message = raddle("rechunk", path, "-o", output, "--force", "--contiguous", expect=3).stderr
    assert "/full" in message and "40000" in message and "--contiguous" in message
    raddle("rechunk", path, "-o", output, "--force", "--contiguous=50")
    assert storage(output) == {"empty": "contiguous", "full": "chunked"}


@pytest.mark.parametrize(
    "options",
    [
        ["--contiguous", "--unordered"],
        ["--contiguous=1KiB", "--unordered"],
        ["--contiguous", "--align", "4KiB"],
        ["--contiguous", "--extendible"],
        ["--contiguous", "-c", "fast"],
        ["--contiguous", "-c", "keep"],
        ["--contiguous", "--chunk", "10rows"],
        ["--contiguous", "--shuffle", "yes"],
        ["--contiguous", "--link", "virtual"],
        ["--contiguous", "--union"],
        ["--empty", "compact", "--extendible"],
        ["--contiguous=some"],
    ],
    ids=" ".join,
)
def test_what_contiguous_datasets_cannot_be_is_refused(raddle, events, tmp_path, options):
    message = raddle("merge", *events, "-o", tmp_path / "out.h5", *options, expect=2).stderr
    assert options[0].split("=")[0] in message
    assert not (tmp_path / "out.h5").exists()


def test_options_that_go_with_contiguous_datasets(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    for options in (["--contiguous", "-c", "none"], ["--contiguous=2KiB", "-c", "keep", "--for", "keep", "--chunk", "64rows"]):
        raddle("merge", *events, "-o", output, "--force", *options)
        assert_concatenated(output, events)
    raddle("merge", *events, "-o", output, "--force", "--contiguous", "--keys", "/spill/run,/spill/subrun,/spill/evt")
    assert set(storage(output).values()) == {"contiguous"}
    raddle("verify", output)


def test_previews_see_contiguous_datasets(raddle, tmp_path):
    paths = [tmp_path / f"in{number}.h5" for number in (1, 2)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            file["field"] = np.arange(number, number + 40 * 50 * 60, dtype="f4").reshape(40, 50, 60)
    plain, output = tmp_path / "plain.h5", tmp_path / "out.h5"
    raddle("merge", *paths, "-o", plain, f"--preview={tmp_path / 'plain'}")
    raddle("merge", *paths, "-o", output, f"--preview={tmp_path / 'contiguous'}", "--contiguous")
    blocks = sorted(path.relative_to(tmp_path / "plain") for path in (tmp_path / "plain").rglob("*.bin"))
    assert blocks
    for block in blocks:
        assert (tmp_path / "plain" / block).read_bytes() == (tmp_path / "contiguous" / block).read_bytes()


@pytest.mark.parametrize(
    "options",
    [[], ["-c", "keep", "--for", "keep"], ["--contiguous"], ["--extendible", "-c", "none"], ["--empty", "compact"], ["--chunk", "100rows"]],
    ids=" ".join,
)
def test_columns_of_rank_2_get_rank_1(raddle, events, tmp_path, options):
    path, output = events[2], tmp_path / "out.h5"
    with h5py.File(path, "r+") as file:
        # Chunks that extend beyond the second dimension, variable-length values, and datasets that keep both
        # dimensions.
        file.create_dataset("wider", data=np.arange(300)[:, None], chunks=(50, 4), maxshape=(None, None), compression="gzip")
        file.create_dataset("words", data=np.array([f"wört {n}" for n in range(70)], object)[:, None], dtype=h5py.string_dtype())
        file["labelled"] = np.arange(50)[:, None]
        file["labelled"].dims[0].label = "row"
        file["axis"] = np.arange(50.0)
        file["axis"].make_scale()
        file["scaled"] = np.arange(50)[:, None]
        file["scaled"].dims[0].attach_scale(file["axis"])
        file["row"] = np.arange(50)[None]
        file["cube"] = np.arange(50)[:, None, None]
        file["of"] = np.array([file["wider"].ref], dtype=h5py.ref_dtype)
    raddle("rechunk", path, "-o", output, "--rank-1", *options)
    raddle("verify", output)
    raddle("verify", output, "--against", path)
    both = {"labelled", "scaled", "row", "cube", "maps/pixels"}
    with h5py.File(path) as old, h5py.File(output) as new:
        flat = 0
        for name, dataset in visit_datasets(old):
            found = new[name]
            if name in both or dataset.ndim == 1:
                assert found.shape == dataset.shape, name
            else:
                assert found.shape == dataset.shape[:1] and len(found.maxshape) == 1, name
                flat += 1
            if name != "of":
                np.testing.assert_array_equal(found[()].reshape(dataset.shape), dataset[()], err_msg=name)
            assert dict(found.attrs).keys() == dict(dataset.attrs).keys()
        assert flat > 15 and new[new["of"][0]] == new["wider"]
        assert list(new["scaled"].dims[0].keys()) == list(old["scaled"].dims[0].keys())
    # Again: nothing is left to change, and both are still recognised as equal.
    again = tmp_path / "again.h5"
    raddle("rechunk", output, "-o", again)
    raddle("verify", again, "--against", output)
    raddle("verify", again, "--against", path)
    with h5py.File(output, "r+") as file:
        file["spill/evt"][17] += 1
    message = raddle("verify", output, "--against", path, expect=8).stdout
    assert "/spill/evt" in message and "row 17" in message, message
    assert "/spill/evt" in raddle("verify", output, expect=8).stdout


def test_region_references_need_both_dimensions(raddle, tmp_path):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(20)[:, None]
        regions = file.create_dataset("marks", (1,), h5py.regionref_dtype)
        regions[0] = file["x"].regionref[2:5]
    message = raddle("rechunk", path, "-o", output, "--rank-1", expect=3).stderr
    assert "/marks" in message and "--rank-1" in message and not output.exists(), message


def test_a_file_of_rank_1_takes_no_rows_of_rank_2(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("rechunk", events[0], "-o", output, "--rank-1", "--extendible")
    message = raddle("append", output, events[1], expect=3).stderr
    assert "rank" in message, message
    second = tmp_path / "second.h5"
    raddle("rechunk", events[1], "-o", second, "--rank-1")
    raddle("append", output, second)
    with h5py.File(output) as file, h5py.File(events[0]) as one, h5py.File(events[1]) as other:
        np.testing.assert_array_equal(file["spill/evt"], np.concatenate([one["spill/evt"], other["spill/evt"]])[:, 0])
    raddle("verify", output)


def test_empty_datasets_can_become_null(raddle, events, tmp_path):
    output, again = tmp_path / "out.h5", tmp_path / "again.h5"
    for path in events:
        with h5py.File(path, "r+") as file:
            file["empty/committed"] = np.dtype("<f4")
            file.create_dataset("empty/of_committed", (0, 4), file["empty/committed"], maxshape=(None, 4))
            file.create_dataset("empty/words", (0,), h5py.string_dtype())
            file.create_dataset("empty/wide", (3, 0), "i2")
            file["empty/words"].attrs["unit"] = "letters"
            file["empty/alias"] = file["empty/words"]
            file.create_dataset("empty/scale", (0,), "f4")
            file["empty/scale"].make_scale()
            file.create_dataset("empty/scaled", (0,), "f4")
            file["empty/scaled"].dims[0].attach_scale(file["empty/scale"])
    raddle("merge", *events, "-o", output, "--empty", "null")
    raddle("verify", output)
    raddle("verify", output, "--against", *events)
    raddle("rechunk", output, "-o", again, "-c", "none")
    raddle("verify", again, "--against", *events)
    nulls = 0
    with h5py.File(events[0]) as old, h5py.File(output) as new:
        for name, dataset in visit_datasets(old):
            found = new[name]
            assert found.dtype == dataset.dtype and dict(found.attrs).keys() == dict(dataset.attrs).keys()
            if found.shape is None:
                assert isinstance(found[()], h5py.Empty)
                nulls += 1
            else:
                assert found.size > 0 or name in ("empty/scale", "empty/scaled"), name
        assert nulls >= 6 and new["empty/words"].attrs["unit"] == "letters" and new["empty/alias"] == new["empty/words"]
    # Additional rows have no space.
    assert "/table0" in raddle("append", output, write_events(tmp_path / "more.h5", 11), expect=3).stderr
    message = raddle("merge", *events, "-o", again, "-f", "--empty", "null", "--keys", "/spill/evt", expect=2).stderr
    assert "--keys" in message


def test_conventions_need_dimensions(raddle, tmp_path):
    paths = [tmp_path / f"in{number}.nc" for number in range(2)]
    for number, path in enumerate(paths):
        times = ("time", np.arange(3) + 3 * number, {"units": "days since 2000-01-01"})
        file = xarray.Dataset({"x": ("none", np.arange(0.0))}, {"time": times}, {"Conventions": "CF-1.8"})
        file.to_netcdf(path, unlimited_dims=["time"])
    message = raddle("merge", *paths, "-o", tmp_path / "out.nc", "--empty", "null", expect=3).stderr
    assert "--empty null" in message and "--convention none" in message, message
