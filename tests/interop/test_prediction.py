"""Predictions of `plan` for a merge: the size, or that it is unknown, and the memory of buffers."""

import json
import resource

import h5py
import numpy as np
import pytest

LARGEST_SIZE_ERROR = 0.15


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """Files with a field that compresses well, one that hardly does, uncompressed numbers, and words."""
    paths = [tmp_path_factory.mktemp("fields") / f"day{day}.nc" for day in range(6)]
    for day, path in enumerate(paths):
        random = np.random.default_rng(day)
        chunked = {"compression": "gzip", "chunks": (1, 64, 128), "maxshape": (None, 64, 128)}
        with h5py.File(path, "w") as file:
            smooth = random.normal(0, 3, (16, 64, 128)).cumsum(axis=2).astype("i2")
            file.create_dataset("packed", data=smooth, shuffle=True, **chunked)
            file.create_dataset("noise", data=random.random((16, 64, 128), "f4"), **chunked)
            file.create_dataset("plain", data=np.linspace(day, day + 1, 20_000).round(4))
            words = [f"{day} {'electron' * number}" for number in random.integers(0, 9, 3000)]
            file.create_dataset("words", data=words, dtype=h5py.string_dtype(), chunks=(100,), maxshape=(None,))
    return paths


def planned_and_merged(raddle, inputs, output, *options):
    """Returns the prediction of `plan`, and the report of the merge."""
    predicted = json.loads(raddle("plan", *inputs, "--json", *options).stdout)["predicted"]
    return predicted, json.loads(raddle("merge", *inputs, "-o", output, "--json", *options).stdout)


@pytest.mark.parametrize("options", [["-j", 1], ["-j", 2], ["-j", 2, "-c", "none"], ["-j", 2, "-c", "keep"],
                                     ["-j", 4, "--memory", "64MiB"], ["-j", 1, "--memory", "256MiB"]])  # fmt: skip
def test_size_and_memory_are_as_predicted(raddle, fields, tmp_path, options):
    """Previously the saving of the largest field was assumed for all, and a third of the buffers' memory was counted."""
    output = tmp_path / "all.nc"
    planned, report = planned_and_merged(raddle, fields, output, *options)
    assert planned["memory_len_bytes"] == report["memory"]["budget_peak_bytes"]
    assert planned["size_error"] <= LARGEST_SIZE_ERROR
    for predicted in [planned, report["prediction"]]:
        size = predicted["stored_len_bytes"] + predicted["metadata_len_bytes"]
        assert abs(size / output.stat().st_size - 1) <= max(LARGEST_SIZE_ERROR, predicted["size_error"])
        assert predicted["elapsed_s"] is None or predicted["elapsed_s"] > 0


def test_long_chunks_of_variable_length_data_are_part_of_the_predicted_memory(raddle, tmp_path):
    """They are read with their objects, while the engine has its own buffers."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        rows = 1_000_000
        file.create_dataset("words", (rows,), h5py.string_dtype(), chunks=(rows,), maxshape=(None,), compression="gzip")
        file["words"][::1000] = "word"
        file["plain"] = np.arange(rows)
    planned, report = planned_and_merged(raddle, [path], tmp_path / "out.h5", "-j", 2)
    assert planned["memory_len_bytes"] == report["memory"]["budget_peak_bytes"]


@pytest.mark.parametrize("memory", ["1GiB", "48MiB"])
def test_a_transpose_is_predicted_from_whole_chunks(raddle, tmp_path, memory):
    path, output = tmp_path / "wide.h5", tmp_path / "long.h5"
    steps = np.random.default_rng(1).integers(-3, 4, (2400, 12_000), "i1").astype("i4")
    with h5py.File(path, "w") as file:
        values = np.cumsum(steps, axis=1, dtype="i4")
        file.create_dataset("x", data=values, chunks=(10, 12_000), compression="gzip", compression_opts=1)
    options = ["--chunk", "2400x100", "-c", "gzip:1", "--memory", memory, "-j", 2]
    for _ in range(6):
        planned = json.loads(raddle("plan", path, "--json", *options).stdout)
        # Interruptions by other programs make a time uncertain.
        if planned["predicted"]["cpu_s"] is not None:
            break
    regrouped, predicted = planned["output"]["regrouped"], planned["predicted"]
    assert [dataset["passes"] for dataset in regrouped] == [1 if memory == "1GiB" else 2]
    assert planned["output"]["scratch_space_len_bytes"] == (0 if memory == "1GiB" else 2400 * 12_000 * 4)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(raddle("rechunk", path, "-o", output, "--json", *options).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = predicted["stored_len_bytes"] + predicted["metadata_len_bytes"]
    assert predicted["size_error"] <= LARGEST_SIZE_ERROR
    assert abs(size / output.stat().st_size - 1) <= LARGEST_SIZE_ERROR
    # Other programs run during the tests, so that times are only compared roughly.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent / 2 < predicted["cpu_s"] < spent * 2
    assert report["regrouping"]["scratch_space_len_bytes"] == planned["output"]["scratch_space_len_bytes"]


def test_a_size_that_a_sample_does_not_determine_is_unknown(raddle, tmp_path):
    paths = [tmp_path / f"mixed{number}.h5" for number in range(2)]
    for number, path in enumerate(paths):
        random = np.random.default_rng(number)
        blocks = random.integers(0, 256, (256, 65_536), "u1") * (random.random((256, 1)) < 0.2)
        with h5py.File(path, "w") as file:
            file["mixed"] = blocks.astype("u1").reshape(-1)
    output = tmp_path / "all.h5"
    predicted, report = planned_and_merged(raddle, paths, output)
    size, error = predicted["stored_len_bytes"] + predicted["metadata_len_bytes"], predicted["size_error"]
    assert error > LARGEST_SIZE_ERROR
    assert abs(size - report["output_len_bytes"]) <= 2 * error * size
    assert "size unknown" in raddle("plan", *paths).stdout


def test_a_refused_memory_limit_is_predicted(raddle, fields, tmp_path):
    options = ["-j", 1, "--memory", "300KiB"]
    plan = raddle("plan", *fields, "--json", *options)
    needed = json.loads(plan.stdout)["predicted"]["memory_len_bytes"]
    assert needed > 300 << 10
    raddle("merge", *fields, "-o", tmp_path / "all.nc", *options, expect=6)


@pytest.mark.parametrize("options", [[], ["-c", "keep"], ["--chunk", "700rows"]])
def test_all_chunks_are_counted(raddle, fields, tmp_path, options):
    """Previously those of strings and references were left out."""
    output = tmp_path / "all.nc"
    plan = json.loads(raddle("plan", *fields, "--json", *options).stdout)
    raddle("merge", *fields, "-o", output, *options)
    with h5py.File(output) as file:
        chunked = [file[name] for name in file if name != "_raddle" and file[name].chunks]
        assert "words" in [dataset.name[1:] for dataset in chunked]
        assert plan["output"]["chunks"] == sum(dataset.id.get_num_chunks() for dataset in chunked)
