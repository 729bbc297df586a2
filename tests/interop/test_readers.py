"""Common readers open the output: h5dump, h5netcdf, netCDF4, PyTables."""

import shutil
import subprocess
import zlib

import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest
import tables


@pytest.mark.skipif(not shutil.which("h5dump"), reason="h5dump (package hdf5-tools) is not installed")
def test_h5dump(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    shown = subprocess.run(["h5dump", output], capture_output=True, text=True, check=True)
    assert "GROUP \"table1\"" in shown.stdout and "h5dump error" not in shown.stderr


def fields(random):
    """Returns numbers whose shuffled bytes are noise, nearly constant, or slowly varying."""
    walk = random.normal(0, 0.3, (3, 120, 500)).cumsum(-1)
    packed = (walk * 100).astype("i2")
    made = {"f8": walk, "f4": walk.astype("f4"), "big_endian": walk.astype(">f4"), "packed": packed, "unpacked": packed * 0.01 + 273.15}
    made["masked"] = np.where(walk < 0, 1e20, walk).astype("f4")
    made["counts"] = random.poisson(3, walk.shape).astype("f4")
    made["constant"] = np.full(walk.shape, 7)
    made["ids"] = np.repeat(np.arange(walk.size // 6), 6).reshape(walk.shape).astype("u4")
    return made


@pytest.mark.parametrize("effort", ["fast", "balanced", "small", "gzip:6"])
def test_shuffled_numbers_are_inflated_by_zlib(raddle, tmp_path, effort):
    inputs, expected = [], []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.h5")
        expected.append(fields(np.random.default_rng(number)))
        with h5py.File(inputs[-1], "w") as file:
            for name, values in expected[-1].items():
                file.create_dataset(name, data=values, chunks=(1, *values.shape[1:]), shuffle=True, compression=4)
    output = tmp_path / "all.h5"
    raddle("merge", *inputs, "-o", output, "-c", effort, "--for", "keep")
    with h5py.File(output) as file:
        for name in expected[0]:
            dataset = file[name]
            assert np.array_equal(dataset[()], np.concatenate([fields[name] for fields in expected])), name
            # In pieces, as streaming readers do.
            mask, stored = dataset.id.read_direct_chunk((0, 0, 0))
            inflater = zlib.decompressobj()
            pieces = [inflater.decompress(stored[at : at + 777]) for at in range(0, len(stored), 777)]
            assert mask == 0 and inflater.eof and len(b"".join(pieces)) == dataset[:1].nbytes


def test_netcdf_with_dimension_scales(raddle, tmp_path):
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"part{number}.nc")
        with h5netcdf.File(inputs[-1], "w") as file:
            file.dimensions = {"time": None, "x": 4}
            file.resize_dimension("time", 5)
            values = np.arange(20.0).reshape(5, 4) + number
            file.create_variable("temperature", ("time", "x"), float, data=values)
            file.create_variable("time", ("time",), float, data=np.arange(5.0) + 5 * number)
    output = tmp_path / "all.nc"
    raddle("merge", *inputs, "-o", output, "--no-provenance")
    with h5netcdf.File(output) as file:
        assert file.variables["temperature"].dimensions == ("time", "x")
        assert np.array_equal(file.variables["time"][:], np.arange(15.0))
    with netCDF4.Dataset(output) as file:
        assert file.variables["temperature"].dimensions == ("time", "x")
        assert file.variables["temperature"].shape == (15, 4)
        assert file.variables["temperature"][14, 3] == 21.0


def cf_file(path, number, grows=True, transposed=False):
    """Writes a file like those of climate data: time, coordinates with bounds, areas of cells, a scalar, and nothing
    else."""
    with netCDF4.Dataset(path, "w") as file:
        if grows:
            file.createDimension("time", None)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(3) + 3 * number
        for name, length in (("lat", 4), ("lon", 5), ("bnds", 2)):
            file.createDimension(name, length)
        for name, length in (("lat", 4), ("lon", 5)):
            file.createVariable(name, "f4", (name,))[:] = np.arange(length)
            file.createVariable(f"{name}_bnds", "f4", (name, "bnds"))[:] = np.arange(2 * length).reshape(length, 2)
        if transposed:
            file.createVariable("turned", "f4", ("lon", "lat"))[:] = number
        else:
            file.createVariable("area", "f8", ("lat", "lon"))[:] = np.arange(20).reshape(4, 5)
            file.createVariable("crs", "i4", ())[...] = 7
        axes, shape = (("time", "lat", "lon"), (3, 4, 5)) if grows else (("lat", "lon"), (4, 5))
        file.createVariable("T", "f4", axes, zlib=True)[:] = np.arange(np.prod(shape)).reshape(shape) + number


def test_climate_data(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.nc" for number in range(3)]
    for number, path in enumerate(inputs):
        cf_file(path, number)
    output = tmp_path / "all.nc"
    raddle("merge", *inputs, "-o", output)
    with netCDF4.Dataset(output) as merged, netCDF4.Dataset(inputs[0]) as first:
        assert {name: len(dimension) for name, dimension in merged.dimensions.items() if not name.startswith("phony")} == {
            "time": 9, "lat": 4, "lon": 5, "bnds": 2}
        for name in ("lat", "lon", "lat_bnds", "lon_bnds", "area", "crs"):
            assert np.array_equal(merged[name][...], first[name][...])
            assert merged[name].dimensions == first[name].dimensions
        assert merged["T"].dimensions == ("time", "lat", "lon") and merged["T"].shape == (9, 4, 5)
        assert np.array_equal(merged["T"][3:6], first["T"][:] + 1) and merged["time"][:].tolist() == list(range(9))
    raddle("verify", output, "--against", *inputs)
    raddle("verify", output)
    # Variables that describe the grid must be equal in all inputs.
    with netCDF4.Dataset(inputs[2], "a") as file:
        file["area"][2, 2] = -1
    assert "/area" in raddle("merge", *inputs, "-o", output, "-f", expect=3).stderr


def test_netcdf_without_an_axis_that_grows_asks_for_one(raddle, tmp_path):
    """The files do not state along which axis a variable continues."""
    inputs = [tmp_path / f"part{number}.nc" for number in range(2)]
    for number, path in enumerate(inputs):
        cf_file(path, number, grows=False, transposed=True)
    assert "--dim" in raddle("merge", *inputs, "-o", tmp_path / "all.nc", expect=3).stderr


def test_pytables(raddle, tmp_path):
    class Particle(tables.IsDescription):
        name = tables.StringCol(8)
        energy = tables.Float64Col()

    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"part{number}.h5")
        with tables.open_file(inputs[-1], "w") as file:
            table = file.create_table("/", "particles", Particle, filters=tables.Filters(5, "zlib", shuffle=True))
            table.append([(row + 100.0 * number, f"p{row}".encode()) for row in range(50)])
    output = tmp_path / "all.h5"
    raddle("merge", *inputs, "-o", output)
    with tables.open_file(output) as file:
        particles = file.root.particles
        assert particles.nrows == 150
        assert [row["energy"] for row in particles.where("energy >= 200")] == list(np.arange(200.0, 250.0))


def test_the_default_output_is_readable_by_hdf5_1_8(raddle, events, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", *events, "-o", output)
    with h5py.File(output) as file:
        assert file.id.get_create_plist().get_version()[0] in (0, 2)
        layouts = {dataset.id.get_create_plist().get_layout() for dataset in file["table1"].values()}
        assert layouts == {h5py.h5d.CHUNKED}


def test_pytables_with_an_index(raddle, tmp_path):
    class Row(tables.IsDescription):
        a = tables.Int32Col()

    inputs = [tmp_path / f"part{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with tables.open_file(path, "w") as file:
            table = file.create_table("/", "t", Row)
            table.append([(value + 100 * number,) for value in range(50)])
            table.cols.a.create_index()
    output = tmp_path / "all.h5"
    assert "/_i_t" in raddle("merge", *inputs, "-o", output).stderr
    with tables.open_file(output) as file:
        assert [row["a"] for row in file.root.t.where("a == 110")] == [110]
        assert not file.root.t.indexed and len(file.root.t) == 100
    raddle("verify", output, "--against", *inputs)
    raddle("verify", output)
    with tables.open_file(output, "a") as file:
        file.root.t.cols.a.create_index()
        assert file.root.t.read_where("a == 110")["a"].tolist() == [110]
    # A single input keeps its rows in place.
    raddle("rechunk", inputs[0], "-o", output, "-f", "--for", "keep", "--extendible")
    with tables.open_file(output) as file:
        assert file.root.t.indexed and file.root.t.read_where("a == 10")["a"].tolist() == [10]
    assert "/_i_t" in raddle("append", output, inputs[1], expect=3).stderr
