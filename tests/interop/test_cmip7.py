"""Files laid out for CMIP7, judged by check_cmip7_packing and xarray."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray

CHECK = shutil.which("check_cmip7_packing", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def is_packed():
    """Returns a function that determines whether check_cmip7_packing passes a file, and prints the reason if not."""
    assert CHECK, "check_cmip7_packing, of the test requirements, is not installed"

    def check(path):
        found = subprocess.run([CHECK, str(path)], capture_output=True, text=True, timeout=120, check=False)
        print(found.stdout)
        assert found.returncode in (0, 1), found.stdout + found.stderr
        return found.returncode == 0

    return check


def write(path, shape, chunks=None, *, kind="f4", unlimited=True, variable="pr", bounds=True, seed=1, **options):
    """Writes a file like those of models: a record at a time, each its own chunk, time in small chunks."""
    random = np.random.default_rng(seed)
    times, *rest = shape
    with netCDF4.Dataset(path, "w", format=options.pop("format", "NETCDF4_CLASSIC")) as file:
        file.setncatts({"variable_id": variable, "Conventions": "CF-1.11", "mip_era": "CMIP7"})
        file.createDimension("time", None if unlimited else times)
        file.createDimension("bnds", 2)
        names = ["lev", "lat", "lon"][-len(rest) :] if rest else []
        for name, size in zip(names, rest, strict=True):
            file.createDimension(name, size)
            file.createVariable(name, "f8", (name,))[:] = np.linspace(-80, 80, size)
        # Many records take long if each is a chunk, and as dates of another calendar.
        is_long = times > 100_000
        per_chunk = 64 if is_long else 1
        time = file.createVariable("time", "f8", ("time",), chunksizes=(per_chunk,))
        if is_long:
            time.setncatts({"units": "hours since 1850-01-01", "calendar": "standard"})
        else:
            time.setncatts({"units": "days since 1850-01-01", "calendar": "noleap"})
        data = file.createVariable(
            variable, kind, ("time", *names), chunksizes=chunks or (1, *rest), fill_value=99, **{"zlib": True, **options}
        )
        data.units = "kg m-2 s-1"
        time[:] = np.arange(times) + 0.5
        if bounds:
            time.bounds = "time_bnds"
            edges = np.arange(times, dtype="f8")
            file.createVariable("time_bnds", "f8", ("time", "bnds"), chunksizes=(per_chunk, 2))[:] = np.stack([edges, edges + 1], 1)
        data[:] = np.round(random.normal(3, 1, shape), 2).astype(kind)
        data[0] = 99
    return path


def assert_same(output, source):
    """Asserts that xarray reads the same file, decoded and not."""
    for decode in (True, False):
        with xarray.open_dataset(source, decode_cf=decode) as old, xarray.open_dataset(output, decode_cf=decode) as new:
            xarray.testing.assert_identical(old.load(), new.load())
    with netCDF4.Dataset(output) as new, netCDF4.Dataset(source) as old:
        assert not new.groups and new.data_model == old.data_model
        assert {name: len(size) for name, size in new.dimensions.items()} == {
            name: len(size) for name, size in old.dimensions.items()
        }
        assert [new[name].dtype for name in new.variables] == [old[name].dtype for name in old.variables]


CASES = {
    "daily": {"shape": (400, 72, 96)},
    "hourly": {"shape": (3000, 20, 20), "chunks": (7, 20, 20)},
    "cut along the axes": {"shape": (10, 300, 700), "chunks": (1, 30, 70)},
    "few records": {"shape": (3, 700, 900), "chunks": (1, 100, 100)},
    "large chunks": {"shape": (4, 1100, 1000)},
    "levels": {"shape": (30, 5, 90, 120), "chunks": (1, 1, 90, 120)},
    "one dimension": {"shape": (600_000,), "chunks": (512,)},
    "one record": {"shape": (1, 90, 180)},
    "doubles": {"shape": (200, 60, 90), "kind": "f8", "shuffle": True, "fletcher32": True},
    "big endian shorts": {"shape": (2000, 30, 90), "kind": ">i2"},
    "fixed size": {"shape": (400, 72, 96), "unlimited": False},
    "uncompressed": {"shape": (400, 72, 96), "zlib": False},
    "no bounds": {"shape": (400, 72, 96), "bounds": False},
    "groups": {"shape": (400, 72, 96), "format": "NETCDF4"},
}


@pytest.mark.parametrize("case", CASES)
def test_files_pass_the_check(raddle, tmp_path, is_packed, case):
    source, output = write(tmp_path / "in.nc", **CASES[case]), tmp_path / "out.nc"
    raddle("rechunk", source, "-o", output, "--for", "cmip7")
    assert is_packed(output)
    assert_same(output, source)
    raddle("verify", output, "--against", source)
    raddle("rechunk", output, "-o", tmp_path / "again.nc", "--for", "cmip7", "-c", "keep")
    assert is_packed(tmp_path / "again.nc")
    assert_same(tmp_path / "again.nc", source)


def test_the_check_refuses_the_inputs(tmp_path, is_packed):
    refused = [case for case in CASES if not is_packed(write(tmp_path / f"{case}.nc", **CASES[case]))]
    assert len(refused) > len(CASES) / 2, refused


def test_many_files_in_place(raddle, tmp_path, is_packed):
    (tmp_path / "in").mkdir()
    for number in range(12):
        write(tmp_path / f"in/pr_{number}.nc", (24, 12, 18), seed=number)
    write(tmp_path / "in/large.nc", (300, 144, 192), zlib=False)
    shutil.copytree(tmp_path / "in", tmp_path / "old")
    report = raddle("rechunk", tmp_path / "in", "--in-place", "--for", "cmip7", "-j", "3")
    assert report.stdout.startswith("13 files rewritten in place")
    for path in sorted((tmp_path / "in").iterdir()):
        assert is_packed(path)
        assert_same(path, tmp_path / "old" / path.name)
    assert sorted(os.listdir(tmp_path / "in")) == sorted(os.listdir(tmp_path / "old"))


def test_a_merge_of_time_slices(raddle, tmp_path, is_packed):
    parts = [write(tmp_path / f"part{number}.nc", (300, 72, 96), seed=number) for number in range(3)]
    for number, part in enumerate(parts):
        with netCDF4.Dataset(part, "a") as file:
            file["time"][:] += 300 * number
            file["time_bnds"][:] += 300 * number
    raddle("merge", *parts, "-o", tmp_path / "all.nc", "--for", "cmip7")
    assert is_packed(tmp_path / "all.nc")
    with xarray.open_dataset(tmp_path / "all.nc") as merged:
        loaded = [xarray.open_dataset(part).load() for part in parts]
        xarray.testing.assert_equal(merged.load(), xarray.concat(loaded, "time", data_vars="minimal"))


def test_chunk_shapes_are_decided(raddle, tmp_path):
    source = write(tmp_path / "in.nc", (24, 12, 18))
    refused = raddle("rechunk", source, "-o", tmp_path / "out.nc", "--for", "cmip7", "--chunk", "9rows", expect=2)
    assert "leave out --chunk" in refused.stderr
