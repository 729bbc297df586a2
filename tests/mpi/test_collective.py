"""Writing with the collective calls of a parallel libhdf5, as other programs do: the values and objects that raddle
writes."""

import json

import h5py
import pytest
from conftest import write_tables

COLLECTIVE = ["--io", "collective"]


@pytest.fixture
def library(ranks, inputs, tmp_path):
    """Skips the test unless a parallel libhdf5 of this MPI is installed."""
    try:
        ranks(1, "merge", *inputs, "-o", "probe.h5", "-q", *COLLECTIVE)
    except AssertionError as failure:
        if any(why in str(failure) for why in ("none is installed", "a different MPI")):
            pytest.skip("no parallel libhdf5 of this MPI")
        raise
    (tmp_path / "probe.h5").unlink()


@pytest.fixture
def many(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    return [write_tables(folder / f"run{seed}.h5", seed, rows=10_000, tables=3) for seed in range(1, 6)]


def objects(path):
    """Returns everything that h5py sees in a file, except for raddle's own group."""
    found = {}

    def see(name, thing):
        if name.startswith("_raddle"):
            return
        attributes = {key: str(value) for key, value in thing.attrs.items()}
        if isinstance(thing, h5py.Dataset):
            how = (thing.dtype, thing.shape, thing.maxshape, thing.chunks, thing.compression, thing.compression_opts)
            found[name] = (attributes, how, thing.shuffle, thing[()].tobytes() if thing.dtype.kind != "O" else list(thing[()]))
        else:
            found[name] = attributes

    with h5py.File(path) as file:
        see("/", file)
        file.visititems(see)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_values_and_objects_are_those_of_posix(library, ranks, alone, many, tmp_path, size):
    alone("merge", *many, "-o", "one.h5", "-q", "--report", "one.json")
    ranks(size, "merge", *many, "-o", "all.h5", "-q", "--report", "all.json", *COLLECTIVE)
    right, found = objects(tmp_path / "one.h5"), objects(tmp_path / "all.h5")
    assert found == right and len(right) > 10
    one, report = (json.loads((tmp_path / name).read_text()) for name in ("one.json", "all.json"))
    assert report["digest"] == one["digest"]
    assert report["shared_io"]["interface"].startswith("collective HDF5 1.")
    assert report["output_len_bytes"] == (tmp_path / "all.h5").stat().st_size
    alone("verify", "all.h5", "-q", "--against", *many)
    alone("verify", "all.h5", "-q")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name not in ("in", "many"))
    assert left == ["all.h5", "all.json", "one.h5", "one.json"]


def test_little_memory_makes_many_steps(library, ranks, alone, many, tmp_path):
    ranks(3, "merge", *many, "-o", "all.h5", "-q", "--memory", "24MiB", "--chunk", "1000rows", "--report", "all.json", *COLLECTIVE)
    alone("verify", "all.h5", "-q", "--against", *many)
    ranks(2, "merge", *many, "-o", "bare.h5", "-q", "--no-provenance", *COLLECTIVE)
    alone("verify", "bare.h5", "-q", "--against", *many)


def test_what_cannot_be_written_so(library, ranks, inputs, tmp_path):
    _, err = ranks(2, "merge", inputs[0], "-o", "all.h5", "--union", *COLLECTIVE, expect=3)
    assert err.count("error:") == 1 and "moved as stored" in err, err
    _, err = ranks(2, "merge", *inputs, "-o", "all.h5", "--align", "1MiB", *COLLECTIVE, expect=2)
    assert err.count("error:") == 1 and "--align" in err, err
    assert not (tmp_path / "all.h5").exists()


def test_a_write_that_fails_ends_all_ranks(library, ranks, large, tmp_path):
    """A limit on the size of files acts like a full disk; MPI has its own files, which fit."""
    command = ["merge", large, "-o", "all.h5", "-c", "gzip:1", *COLLECTIVE]
    for limit in ('if [ "$RANK" = 1 ]; then ulimit -f 30000; fi', "ulimit -f 30000"):
        _, err = ranks(2, *command, expect=5, shell=limit)
        assert err.count("error:") == 1, err
        assert not (tmp_path / "all.h5").exists()


def test_without_mpi_or_a_library(ranks, alone, inputs, tmp_path):
    merge = ["merge", *inputs, "-o", "all.h5"]
    _, err = alone(*merge, *COLLECTIVE, expect=2)
    assert "mpirun" in err and "--io collective" in err
    _, err = alone(*merge, "--hdf5", "libhdf5.so", expect=2)
    assert "--io collective" in err
    _, err = ranks(2, *merge, *COLLECTIVE, "--hdf5", tmp_path / "none.so", expect=2)
    assert err.count("error:") == 1 and "none.so" in err and "install" in err, err
    _, err = ranks(2, *merge, *COLLECTIVE, "--hdf5", "libm.so.6", expect=2)
    assert err.count("error:") == 1 and "not a parallel libhdf5" in err, err
    assert not (tmp_path / "all.h5").exists()


def test_contiguous_datasets(library, ranks, alone, many, tmp_path):
    options = ["-q", "--contiguous", "--empty", "compact"]
    alone("merge", *many, "-o", "one.h5", *options)
    ranks(3, "merge", *many, "-o", "all.h5", *options, *COLLECTIVE)
    assert objects(tmp_path / "all.h5") == objects(tmp_path / "one.h5")
    with h5py.File(tmp_path / "all.h5") as file:
        assert file["table1/energy"].chunks is None
    alone("verify", "all.h5", "--against", *many)
