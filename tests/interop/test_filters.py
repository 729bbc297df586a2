"""Filters of merged files: compression, shuffling and checksums, as readers of the output find them."""

import h5py
import hdf5plugin
import numpy as np
import pytest
from conftest import assert_concatenated, visit


@pytest.mark.parametrize("shuffle", ["keep", "yes", "no"])
@pytest.mark.parametrize("compress", ["fast", "balanced", "small", "gzip:1", "zstd", "zstd:11", "lz4", "none", "keep"])
def test_values_whatever_the_compression(raddle, events, tmp_path, compress, shuffle):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output, "--compress", compress, "--shuffle", shuffle)
    assert_concatenated(output, events)
    raddle("verify", output, "--against", *events)
    filters = {"zstd": (32015, (3,)), "zstd:11": (32015, (11,)), "lz4": (32004, ()), "gzip:1": (1, (1,))}
    named = pipeline(output, "table1/energy")
    if compress in filters:
        assert named[-1] == filters[compress]
    assert [2] * (shuffle == "yes" and compress != "none") == [number for number, _ in named if number == 2]


def pipeline(path, name):
    """Returns number and parameters of each filter of a dataset."""
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        filters = [plist.get_filter(number) for number in range(plist.get_nfilters())]
    return [(number, parameters) for number, _, parameters, _ in filters]


@pytest.mark.parametrize("compression", [hdf5plugin.Zstd(clevel=7), hdf5plugin.LZ4(), {"compression": "gzip", "shuffle": True}],
                         ids=["zstd", "lz4", "shuffle"])
def test_filters_are_kept_where_chunks_cannot_be(raddle, tmp_path, compression):
    """The rows of the first input end within a chunk, so chunks of the second begin at other positions in the
    output."""
    paths, values = [tmp_path / "a.h5", tmp_path / "b.h5"], [np.arange(1234) % 71, np.arange(4321) % 53]
    for path, numbers in zip(paths, values, strict=True):
        with h5py.File(path, "w") as file:
            file.create_dataset("d", data=numbers, chunks=(100,), maxshape=(None,), **compression)
    output = tmp_path / "out.h5"
    message = raddle("merge", *paths, "-o", output, "-c", "keep").stderr
    assert "cannot keep" not in message and "hdf5plugin" not in message, message
    kept, of_input = pipeline(output, "d"), pipeline(paths[0], "d")
    assert [number for number, _ in kept] == [number for number, _ in of_input]
    assert 32015 not in dict(kept) or dict(kept)[32015] == (7,)
    more = tmp_path / "more.h5"
    with h5py.File(more, "w") as file:
        file.create_dataset("d", data=np.arange(99), chunks=(100,), maxshape=(None,))
    raddle("append", output, more)
    with h5py.File(output) as file:
        assert np.array_equal(file["d"], np.concatenate([*values, np.arange(99)]))
        chunks = [file["d"].id.get_chunk_info(number) for number in range(file["d"].id.get_num_chunks())]
    assert all(chunk.filter_mask == 0 for chunk in chunks)
    raddle("verify", output)
    # Uncompressed data is not shuffled.
    raddle("rechunk", output, "-o", tmp_path / "plain.h5", "-c", "none")
    assert pipeline(tmp_path / "plain.h5", "d") == []


def test_what_readers_need_is_reported(raddle, events, tmp_path):
    message = raddle("merge", *events, "-o", tmp_path / "out.h5", "-c", "zstd").stderr
    assert "hdf5plugin" in message and "32015" in message
    message = raddle("merge", *events, "-o", tmp_path / "out2.h5", "-c", "lz4", "-q").stderr
    assert message == ""
    message = raddle("merge", *events, "-o", tmp_path / "out3.h5", "--shuffle", "yes").stderr
    assert "hdf5plugin" not in message


def test_filters_that_cannot_be_kept_are_reported(raddle, tmp_path):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(10), chunks=(4,), maxshape=(None,), compression="lzf")
    message = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "-c", "keep").stderr
    assert "1 dataset cannot keep lzf" in message and "deflated" in message, message
    message = raddle("merge", inputs[0], "-o", tmp_path / "one.h5", "-c", "keep", "--for", "keep").stderr
    assert "lzf" not in message, message


@pytest.mark.parametrize("settings", [{"fletcher32": True}, {"shuffle": True}, {"shuffle": True, "fletcher32": True}])
def test_datasets_without_compression_stay_so(raddle, tmp_path, settings):
    inputs = [tmp_path / f"{name}.h5" for name in "ab"]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(10), chunks=(4,), maxshape=(None,), **settings)
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "-c", "keep", "--for", "keep")
    with h5py.File(tmp_path / "out.h5") as file:
        found = file["x"]
        assert (found.compression, found.chunks) == (None, (4,))
        assert {"shuffle": found.shuffle, "fletcher32": found.fletcher32} == {
            "shuffle": settings.get("shuffle", False),
            "fletcher32": settings.get("fletcher32", False),
        }
        assert found[:].tolist() == [*range(10), *range(10)]


@pytest.mark.parametrize("rows", [0, 20])
def test_filters_that_strings_cannot_keep_are_reported(raddle, tmp_path, rows):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        settings = {"dtype": h5py.string_dtype(), "chunks": (10,), "maxshape": (None,), "shuffle": True}
        file.create_dataset("packed", data=["a"] * rows, compression="lzf", **settings)
        file.create_dataset("deflated", data=["a"] * rows, compression="gzip", **settings)
    for options in [("--for", "keep"), ()]:
        message = raddle("merge", path, "-o", tmp_path / "out.h5", "--force", "-c", "keep", *options).stderr
        assert "1 dataset of strings, sequences or references cannot keep lzf" in message, message
    with h5py.File(tmp_path / "out.h5") as file:
        assert [file[name].compression for name in ("packed", "deflated")] == [None, "gzip"]


# HDF5 cannot set the parameters of these filters for values of variable length. It skips them and marks the chunks.
WITHOUT_PARAMETERS = {
    "shuffle": {"shuffle": True},
    "shuffle and gzip": {"shuffle": True, "compression": "gzip"},
    "shuffle and lzf": {"shuffle": True, "compression": "lzf"},
    "szip": {"compression": "szip"},
}


@pytest.mark.parametrize("name", WITHOUT_PARAMETERS)
@pytest.mark.parametrize("kind", ["text", "sequence"])
def test_filters_that_hdf5_skipped(raddle, tmp_path, name, kind):
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            dtype = h5py.string_dtype() if kind == "text" else h5py.vlen_dtype("i4")
            made = file.create_dataset("d", (5,), dtype, chunks=(2,), maxshape=(None,), **WITHOUT_PARAMETERS[name])
            for row in range(5):
                made[row] = "wört" * (row + number) if kind == "text" else np.arange(row) + number
            assert made.id.get_chunk_info(0).filter_mask == 1
    expected = [[list(row) for row in visit(path)["d"]] for path in inputs]
    for number, options in enumerate([(), ("--for", "keep", "-c", "keep")]):
        merged, rechunked = tmp_path / f"merged{number}.h5", tmp_path / f"rechunked{number}.h5"
        raddle("merge", *inputs, "-o", merged, *options)
        assert [list(row) for row in visit(merged)["d"]] == expected[0] + expected[1]
        raddle("verify", merged)
        raddle("verify", merged, "--against", *inputs)
        raddle("rechunk", inputs[1], "-o", rechunked, *options)
        assert [list(row) for row in visit(rechunked)["d"]] == expected[1]
        raddle("verify", rechunked, "--against", inputs[1])
