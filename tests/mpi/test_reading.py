"""Ranks that read inputs for one another: the bytes of one process, few opens, the same messages."""

import json
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
from conftest import ENVIRONMENT, write_tables

RUNS = 8


@pytest.fixture
def many(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    return [write_tables(folder / f"run{seed}.h5", seed, rows=3_000, tables=3) for seed in range(RUNS)]


def write_netcdf(path, number):
    """Writes ten days of a packed variable; the unit of time and the packing differ from file to file."""
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.8"
        file.createDimension("time", None)
        file.createDimension("x", 7)
        time = file.createVariable("time", "f8", ("time",))
        time.units = f"days since 2000-01-{1 + number:02}"
        time[:] = np.arange(10) + 9 * number
        packed = file.createVariable("t", "i2", ("time", "x"), zlib=True, fill_value=-9)
        packed.scale_factor, packed.add_offset = 0.5 + number, 273.0
        packed.set_auto_maskandscale(False)
        packed[:] = np.random.default_rng(number).integers(-9, 1000, (10, 7))
    return path


def reading_groups(size, strategy):
    return 1 if strategy == "files" else (size + 1) // 2


@pytest.mark.parametrize("size", [2, 3, 7])
def test_by_files_the_bytes_are_those_of_one_process(ranks, alone, many, tmp_path, size):
    options = ["--chunk", "512rows", "--keys", "/spill/run,/spill/evt", "-q", "-f"]
    alone("merge", *many, "-o", "one.h5", *options)
    for strategy, io in [("files", "posix"), ("files=2", "posix"), ("files", "mpiio")]:
        through = ["--strategy", strategy, "--io", io, "--report", "all.json", "-j", 1 + size % 2]
        ranks(size, "merge", *many, "-o", "all.h5", *options, *through)
        assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes(), (strategy, io)
        reading = json.loads((tmp_path / "all.json").read_text())["reading"]
        assert (reading["by"], reading["ranks_per_group"]) == ("files", size if strategy == "files" else 2)
        # The first rank also reads the strings of all inputs.
        assert RUNS < reading["opens"] <= RUNS * (1 + reading_groups(size, strategy)), reading
        assert reading["sent_len_bytes"] > 0 and reading["messages"] > 0


def test_by_tiles_nearly_every_rank_opens_every_input(ranks, many, tmp_path):
    for strategy in ("tiles", "auto"):
        ranks(4, "merge", *many, "-o", "all.h5", "-q", "-f", "--strategy", strategy, "--report", "all.json")
        reading = json.loads((tmp_path / "all.json").read_text())["reading"]
        # This machine opens files in microseconds.
        assert (reading["by"], reading["sent_len_bytes"]) == ("tiles", 0)
        assert reading["opens"] > 2 * RUNS and len(reading["compared"]) == (2 if strategy == "auto" else 0)


def test_converted_values_are_sent(ranks, alone, tmp_path):
    inputs = [write_netcdf(tmp_path / f"in{number}.nc", number) for number in range(5)]
    options = ["--packing", "unpack", "-q", "-f"]
    alone("merge", *inputs, "-o", "one.nc", *options)
    for size in (2, 3):
        ranks(size, "merge", *inputs, "-o", "all.nc", "--strategy", "files", *options)
        assert (tmp_path / "all.nc").read_bytes() == (tmp_path / "one.nc").read_bytes()
    with xarray.open_dataset(tmp_path / "all.nc") as merged:
        parts = [xarray.load_dataset(path) for path in inputs]
        xarray.testing.assert_allclose(merged.load(), xarray.concat(parts, "time"), rtol=1e-6)


def test_a_damaged_input_is_named_once(ranks, many, tmp_path):
    data = bytearray(many[3].read_bytes())
    with_chunks = slice(len(data) // 4, len(data) // 2)
    data[with_chunks] = bytes(with_chunks.stop - with_chunks.start)
    many[3].write_bytes(data)
    _, err = ranks(3, "merge", *many, "-o", "all.h5", "--strategy", "files", expect=3)
    assert err.count("error:") == 1 and "run3.h5" in err, err
    assert not (tmp_path / "all.h5").exists()


@pytest.mark.parametrize(("memory", "purpose"), [("4MiB", "reading inputs for other ranks"), ("42MiB", "one worker")])
def test_too_little_memory_for_files_names_the_strategy(ranks, many, memory, purpose):
    options = ["--memory", memory, "-j", 2, "-q", "-f"]
    _, err = ranks(3, "merge", *many, "-o", "all.h5", "--strategy", "files", *options, expect=6)
    assert f"reading by files: {purpose}" in err and "leave out --strategy files" in err, err
    ranks(3, "merge", *many, "-o", "all.h5", *options)


def test_collective_hdf5_reads_in_its_own_way(ranks, many):
    refused = ["merge", *many, "-o", "all.h5", "--io", "collective", "--strategy", "files"]
    _, err = ranks(2, *refused, expect=2)
    assert "--strategy files" in err, err


SLOW_OPEN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

/* Opens inputs as slowly as a file system that many clients ask at once. */
int open64(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    if (strstr(path, "/slow/")) nanosleep(&(struct timespec){.tv_nsec = 60000000}, 0);
    return next(path, flags, mode);
}
"""


def test_auto_reads_by_files_where_opening_is_slow(ranks, alone, tmp_path, monkeypatch):
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler is installed")
    (tmp_path / "slow.c").write_text(SLOW_OPEN)
    library = tmp_path / "slow.so"
    subprocess.run([cc, "-shared", "-fPIC", "-o", library, tmp_path / "slow.c", "-ldl"], check=True)
    folder = tmp_path / "slow"
    folder.mkdir()
    inputs = [folder / f"run{number:02}.h5" for number in range(40)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            for name in "abcdefgh":
                values = np.random.default_rng([number, ord(name)]).integers(0, 99, (500, 1))
                file.create_dataset(name, data=values, chunks=(128, 1), compression=1)
    alone("merge", *inputs, "-o", "one.h5", "-q")
    monkeypatch.setitem(ENVIRONMENT, "LD_PRELOAD", str(library))
    took = {}
    for strategy in ("tiles", "auto"):
        ranks(4, "merge", *inputs, "-o", "all.h5", "-q", "-f", "--strategy", strategy, "--report", "all.json")
        assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
        took[strategy] = json.loads((tmp_path / "all.json").read_text())
    chosen = took["auto"]["reading"]
    assert chosen["by"] == "files" and chosen["opens"] == 40, chosen
    assert chosen["open_s"] >= 0.06 and [way["ranks_per_group"] for way in chosen["compared"]] == [1, 4], chosen
    # 40 opens on each rank, or 10.
    assert took["tiles"]["reading"]["opens"] == 160
    assert took["tiles"]["elapsed_s"] - took["auto"]["elapsed_s"] > 0.5, took
