"""Makes sets of input files of different kinds, for measurements that must not depend on a single one.

Each corpus is a function that writes files into a folder; CORPORA lists them. Values come from seeded generators, so that a
corpus is the same on every machine with the same versions of numpy and HDF5.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import h5py
import netCDF4
import numpy as np

RADDLE = Path(__file__).parent.parent / "target/release/raddle"


def smooth(random, shape, spread):
    """Returns a random walk along the last two axes: a field like temperatures."""
    field = random.normal(0, spread, shape).cumsum(axis=-1)
    return field + random.normal(0, spread, shape[:-1]).cumsum(axis=-1)[..., np.newaxis]


def nova(workload):
    def write(folder):
        command = [RADDLE, "demo", "--workload", workload, "--only-generate", "--keep", folder, "-q"]
        subprocess.run(command, check=True)

    return write


def netcdf_packed(folder):
    """Writes 200 files of one day each: a packed field, a float field with noise, coordinates, cell bounds, the grid's
    mask."""
    latitudes, longitudes, hours = 90, 180, 8
    for day in range(200):
        random = np.random.default_rng([1, day])
        with netCDF4.Dataset(folder / f"day{day:03}.nc", "w") as file:
            file.Conventions = "CF-1.8"
            for name, size in [("time", None), ("lat", latitudes), ("lon", longitudes), ("nv", 2)]:
                file.createDimension(name, size)
            packed = {"zlib": True, "complevel": 4, "shuffle": True}
            time = file.createVariable("time", "f8", ("time",))
            time.units = "hours since 2000-01-01"
            time.calendar = "standard"
            time[:] = day * 24 + np.arange(hours) * 3
            bounds = file.createVariable("time_bnds", "f8", ("time", "nv"))
            bounds[:] = np.stack([time[:], time[:] + 3], axis=1)
            for name, size in [("lat", latitudes), ("lon", longitudes)]:
                file.createVariable(name, "f4", (name,))[:] = np.linspace(-89, 89, size)
            axes, chunk = ("time", "lat", "lon"), (1, latitudes, longitudes)
            shape = (hours, latitudes, longitudes)
            pressure = file.createVariable("msl", "i2", axes, chunksizes=chunk, fill_value=-32767, **packed)
            pressure.set_auto_maskandscale(False)
            pressure[:] = (smooth(random, shape, 20.0)).astype("i2")
            temperature = file.createVariable("t2m", "f4", axes, chunksizes=chunk, **packed)
            temperature[:] = (280 + smooth(random, shape, 0.3)).astype("f4")
            wind = file.createVariable("u10", "f4", axes, chunksizes=chunk, least_significant_digit=1, **packed)
            wind[:] = smooth(random, shape, 0.2)
            mask = file.createVariable("snow", "f4", axes, chunksizes=chunk, fill_value=-9999.0, **packed)
            depth = smooth(random, shape, 0.1)
            mask[:] = np.ma.masked_less(depth, 1.0)


def netcdf_plain(folder):
    """Writes 12 files of uncompressed floats, contiguous except along the record dimension."""
    for month in range(12):
        random = np.random.default_rng([2, month])
        with netCDF4.Dataset(folder / f"month{month:02}.nc", "w") as file:
            for name, size in [("time", None), ("lat", 60), ("lon", 120)]:
                file.createDimension(name, size)
            file.createVariable("time", "f8", ("time",))[:] = month * 30 + np.arange(30)
            for name in ["tas", "pr", "hurs", "ps"]:
                field = file.createVariable(name, "f4", ("time", "lat", "lon"))
                values = smooth(random, (30, 60, 120), 0.5)
                field[:] = np.maximum(values, 0) if name == "pr" else values


def csr(folder):
    """Writes 6 files laid out like AnnData's: a sparse matrix in three arrays, names of cells, categories, a dense
    embedding."""
    for sample in range(6):
        random = np.random.default_rng([3, sample])
        cells, genes = 6000 + 500 * sample, 20_000
        per_cell = random.negative_binomial(3, 3 / 503, cells) + 1
        indptr = np.concatenate([[0], np.cumsum(per_cell)])
        indices = np.concatenate([np.sort(random.choice(genes, count, replace=False)) for count in per_cell])
        counts = random.geometric(0.4, indices.size)
        with h5py.File(folder / f"sample{sample}.h5", "w") as file:
            for name, values in [("data", counts.astype("f4")), ("indices", indices.astype("i4"))]:
                file.create_dataset(f"X/{name}", data=values, compression="gzip", maxshape=(None,))
            file.create_dataset("X/indptr", data=indptr[:-1], maxshape=(None,))
            barcodes = [f"{''.join(random.choice(list('ACGT'), 16))}-{sample}" for _ in range(cells)]
            file.create_dataset("obs/_index", data=barcodes, dtype=h5py.string_dtype())
            file.create_dataset("obs/cluster/codes", data=random.integers(0, 12, cells).astype("i1"))
            file.create_dataset("obs/n_counts", data=per_cell.astype("f8"), compression="lzf", chunks=(1000,))
            file.create_dataset("obsm/X_pca", data=random.normal(0, 5, (cells, 50)).astype("f4"))


def tables(folder):
    """Writes 20 files of compound tables, flat columns with offsets, and a wide map, like a framework's events."""
    hit = np.dtype([("event", "u4"), ("channel", "u2"), ("adc", "i2"), ("time", "f4"), ("charge", "f8")])
    for run in range(20):
        random = np.random.default_rng([4, run])
        events = int(random.integers(2000, 6000))
        counts = random.poisson(12, events)
        total = int(counts.sum())
        hits = np.zeros(total, hit)
        hits["event"] = np.repeat(np.arange(events), counts)
        hits["channel"] = random.integers(0, 5000, total)
        hits["adc"] = random.gamma(2, 60, total)
        hits["time"] = random.exponential(50, total)
        hits["charge"] = hits["adc"] * 0.37
        with h5py.File(folder / f"run{run:02}.h5", "w") as file:
            made = {"compression": "gzip", "maxshape": (None,)}
            file.create_dataset("hits", data=hits, chunks=(2048,), **made)
            file.create_dataset("events/id", data=np.arange(events) + run * 10_000, chunks=(512,), **made)
            file.create_dataset("events/offset", data=np.cumsum(counts), chunks=(512,), **made)
            file.create_dataset("events/energy", data=random.normal(2.0, 0.5, events), shuffle=True, **made)
            image = np.zeros((events, 40, 25), "u1")
            lit = random.integers(0, image.size, image.size // 60)
            image.reshape(-1)[lit] = random.integers(1, 255, lit.size)
            file.create_dataset("events/image", data=image, chunks=(64, 40, 25), compression="gzip",
                                maxshape=(None, 40, 25))


def texts(folder):
    """Writes 10 files of variable-length strings and lists: short names, long notes, empty ones, ragged numbers."""
    for part in range(10):
        random = np.random.default_rng([5, part])
        rows = 8000 + 400 * part
        words = np.array(["muon", "electron", "photon", "pion", "kaon", "proton", "neutron", "neutrino"])
        names = [str(word) + str(number) for word, number in zip(random.choice(words, rows), random.integers(0, 999, rows))]
        notes = [" ".join(random.choice(words, count)) if count else "" for count in random.integers(0, 40, rows)]
        ragged = np.empty(rows, object)
        for row, count in enumerate(random.poisson(6, rows)):
            ragged[row] = random.normal(0, 1, count).astype("f4")
        with h5py.File(folder / f"part{part}.h5", "w") as file:
            file.create_dataset("name", data=names, dtype=h5py.string_dtype(), chunks=(1000,), maxshape=(None,))
            file.create_dataset("note", data=notes, dtype=h5py.string_dtype(), chunks=(1000,), maxshape=(None,),
                                compression="gzip")
            file.create_dataset("ragged", data=ragged, dtype=h5py.vlen_dtype("f4"), chunks=(1000,), maxshape=(None,))
            file.create_dataset("value", data=random.normal(0, 1, rows), chunks=(1000,), maxshape=(None,))


def noise(folder):
    """Writes 4 files of incompressible numbers, deflated nevertheless."""
    for part in range(4):
        random = np.random.default_rng([6, part])
        with h5py.File(folder / f"noise{part}.h5", "w") as file:
            file.create_dataset("deflated", data=random.random(1 << 20), chunks=(65536,), compression="gzip",
                                maxshape=(None,))
            file.create_dataset("plain", data=random.integers(0, 256, 6 << 20, dtype="u1"))


def drifting(folder):
    """Writes 8 files whose values change along the rows: zeros, then a signal, then noise."""
    for part in range(8):
        random = np.random.default_rng([7, part])
        rows = 1 << 19
        signal = (np.sin(np.arange(rows) / 40) * 1000).astype("i4")
        level = np.clip((part * rows + np.arange(rows)) / (8 * rows), 0, 1)
        signal = signal * (level > 0.3) + (random.normal(0, 400, rows) * (level > 0.6)).astype("i4")
        with h5py.File(folder / f"drift{part}.h5", "w") as file:
            file.create_dataset("adc", data=signal.astype("i4"), chunks=(4096,), compression="gzip", maxshape=(None,))
            file.create_dataset("sparse", data=np.where(random.random(rows) < level / 4, signal, 0), chunks=(4096,),
                                compression="gzip", shuffle=True, maxshape=(None,))


def many_small(folder):
    """Writes 400 files of 20 datasets with about 100 rows each, dominated by opening and creating."""
    for part in range(400):
        random = np.random.default_rng([8, part])
        rows = int(random.integers(60, 140))
        with h5py.File(folder / f"small{part:03}.h5", "w") as file:
            file.attrs["run"] = 7
            for number in range(20):
                values = random.normal(number, 1 + number, rows).astype("f4" if number % 2 else "i4")
                dataset = file.create_dataset(f"group{number % 4}/column{number:02}", data=values, chunks=(128,),
                                              compression="gzip", maxshape=(None,))
                dataset.attrs["unit"] = "cm"


def one_file(folder):
    """Writes one file with large chunks, like that of an instrument: frames and a table."""
    random = np.random.default_rng(9)
    with h5py.File(folder / "instrument.h5", "w") as file:
        frames = file.create_dataset("entry/frames", (120, 512, 512), "u2", chunks=(1, 512, 512), compression="gzip",
                                     compression_opts=1, shuffle=True)
        for frame in range(120):
            frames[frame] = random.poisson(3 + 20 * np.exp(-((np.arange(512) - 256) / 90.0) ** 2), (512, 512))
        file.create_dataset("entry/time", data=np.arange(120) * 0.1 + random.normal(0, 1e-4, 120))
        file.create_dataset("entry/position", data=smooth(random, (20_000, 6), 0.01), chunks=(1000, 6))


@dataclass(frozen=True)
class Corpus:
    name: str
    write: Callable
    """Writes the files into a folder."""


CORPORA = [
    Corpus("nova-small", nova("small")),
    Corpus("nova-wide", nova("wide")),
    Corpus("netcdf-packed", netcdf_packed),
    Corpus("netcdf-plain", netcdf_plain),
    Corpus("csr", csr),
    Corpus("tables", tables),
    Corpus("texts", texts),
    Corpus("noise", noise),
    Corpus("drifting", drifting),
    Corpus("many-small", many_small),
    Corpus("one-file", one_file),
]


def inputs_of(corpus, folder):
    """Returns the files of a corpus, sorted by name; missing files are made."""
    target = folder / corpus.name
    if not target.exists():
        unfinished = folder / f"{corpus.name}.unfinished"
        unfinished.mkdir(parents=True)
        corpus.write(unfinished)
        unfinished.rename(target)
    return sorted(path for path in target.rglob("*") if path.suffix in {".h5", ".nc"})
