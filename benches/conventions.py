"""Measures merges that follow conventions: netCDF against ncrcat and CDO, tiles of a grid against CDO's `collgrid`, AnnData
against `anndata.concat`.

Contenders run interleaved, each after the free memory was touched. Before its time counts, the first output of each is
read by xarray or anndata and compared with their own concatenation of the inputs. Prints medians of wall time and
processor time, and the peak memory; --out also writes them to files.

    python benches/conventions.py --folder DATA [--only netcdf tiles anndata] [--rounds 3] [--out FOLDER]
"""

import argparse
import datetime
import json
import multiprocessing
import os
import shlex
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
from corpora import RADDLE, smooth
from run import HERE, machine, timed
from session import table, touch_memory

MONTHS, LATITUDES, LONGITUDES, TIMES = 60, 180, 360, 31
FIELDS = ["tas", "psl", "uas"]
TILES, TILE_TIMES, ROWS, COLUMNS = 8, 60, 720, 1440
NONZEROS, CELLS, GENES = 100_000_000, 100_000, 20_000


def write_months(folder, own_times, own_packing):
    """Writes 60 files of one month each: two packed fields and a float one, deflated by netCDF4's defaults."""
    packed = {"zlib": True, "chunksizes": (1, LATITUDES, LONGITUDES)}
    for month in range(MONTHS):
        random = np.random.default_rng([11, month])
        with netCDF4.Dataset(folder / f"month{month:02}.nc", "w") as file:
            file.Conventions = "CF-1.11"
            for name, size in {"time": None, "lat": LATITUDES, "lon": LONGITUDES, "nv": 2}.items():
                file.createDimension(name, size)
            time = file.createVariable("time", "f8", ("time",))
            # All months have 31 days here, so that their beginnings need no calendar.
            first = np.datetime64("2000-01-01") + 31 * month
            time.units, time.calendar, time.bounds = "days since 2000-01-01", "standard", "time_bnds"
            days = 31.0 * month + np.arange(TIMES)
            if own_times:
                time.units, days = f"days since {first}", np.arange(TIMES, dtype="f8")
            time[:] = days
            file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = np.stack([days, days + 1], 1)
            for name, size in {"lat": LATITUDES, "lon": LONGITUDES}.items():
                file.createVariable(name, "f4", (name,))[:] = np.linspace(-89, 89, size)
            shape = (TIMES, LATITUDES, LONGITUDES)
            for name, spread in {"tas": 0.3, "psl": 0.2}.items():
                field = file.createVariable(name, "i2", ("time", "lat", "lon"), fill_value=-32768, **packed)
                field.scale_factor, field.add_offset = 0.01 * (1 + month % 2 if own_packing else 1), 273.15
                field.set_auto_maskandscale(False)
                field[:] = np.clip(smooth(random, shape, spread) / field.scale_factor, -32767, 32767).astype("i2")
            wind = file.createVariable("uas", "f4", ("time", "lat", "lon"), least_significant_digit=1, **packed)
            wind[:] = smooth(random, shape, 0.2)


def write_floats(folder, inputs):
    """Writes the same months with values that were never packed."""
    import xarray

    for path in inputs:
        with xarray.open_dataset(path, decode_times=False) as month:
            for variable in month.variables.values():
                variable.encoding = {}
            deflated = {"zlib": True, "complevel": 4, "chunksizes": (1, LATITUDES, LONGITUDES)}
            month.to_netcdf(folder / path.name, encoding=dict.fromkeys(FIELDS, deflated), unlimited_dims=["time"])


def write_tiles(folder):
    """Writes a grid of 720 x 1440 points and 60 time steps as 8 x 8 tiles: two float fields, deflated, a map per chunk."""
    random = np.random.default_rng(13)
    fields = {name: smooth(random, (TILE_TIMES, ROWS, COLUMNS), spread) for name, spread in {"tas": 0.3, "psl": 0.2}.items()}
    high, wide = ROWS // TILES, COLUMNS // TILES
    for row in range(TILES):
        for column in range(TILES):
            rows, columns = slice(row * high, (row + 1) * high), slice(column * wide, (column + 1) * wide)
            with netCDF4.Dataset(folder / f"tile_{row}_{column}.nc", "w") as file:
                file.Conventions = "CF-1.11"
                for name, size in {"time": None, "lat": high, "lon": wide}.items():
                    file.createDimension(name, size)
                time = file.createVariable("time", "f8", ("time",))
                time.units, time.calendar, time.standard_name = "days since 2000-01-01", "standard", "time"
                time[:] = np.arange(TILE_TIMES)
                lat, lon = (file.createVariable(name, "f8", (name,)) for name in ("lat", "lon"))
                lat.units, lat.standard_name = "degrees_north", "latitude"
                lon.units, lon.standard_name = "degrees_east", "longitude"
                lat[:], lon[:] = np.linspace(-89.875, 89.875, ROWS)[rows], np.linspace(0, 359.75, COLUMNS)[columns]
                for name, values in fields.items():
                    field = file.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(1, high, wide),
                                                least_significant_digit=2)  # fmt: skip
                    field.units = "K"
                    field[:] = values[:, rows, columns]


def write_samples(folder):
    """Writes two AnnData files of one sparse matrix each, with the same genes, uncompressed as anndata writes them."""
    import anndata
    import scipy.sparse as sp

    for number in range(2):
        random = np.random.default_rng([12, number])
        per_cell = np.full(CELLS, NONZEROS // CELLS)
        # Steps between the genes of a cell: ascending numbers without sorting each row.
        steps = random.integers(1, 2 * GENES // per_cell[0], (CELLS, per_cell[0]), dtype="i4")
        genes = np.minimum(np.cumsum(steps, axis=1, dtype="i4") - 1, GENES - per_cell[0] + np.arange(per_cell[0], dtype="i4"))
        counts = random.geometric(0.4, NONZEROS).astype("f4")
        matrix = sp.csr_matrix((counts, genes.reshape(-1), np.concatenate([[0], np.cumsum(per_cell)])), (CELLS, GENES))
        sample = anndata.AnnData(matrix)
        sample.obs_names = [f"cell{number}-{cell}" for cell in range(CELLS)]
        sample.var_names = [f"gene{gene}" for gene in range(GENES)]
        sample.write_h5ad(folder / f"sample{number}.h5ad")


def inputs_of(name, folder, write):
    target = folder / name
    if not target.exists():
        unfinished = folder / f"{name}.unfinished"
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(target)
    return sorted(target.iterdir())


def judge_months(output, inputs):
    """Compares an output with xarray's concatenation of the inputs, variable by variable."""
    import xarray

    parts = [xarray.open_dataset(path) for path in inputs]
    with xarray.open_dataset(output) as merged:
        for name in ["time", *FIELDS, "lat"]:
            if "time" not in parts[0][name].dims:
                expected = parts[0][name]
            else:
                expected = xarray.concat([part[name] for part in parts], "time")
            np.testing.assert_array_equal(merged[name].values, expected.values, err_msg=name)


def judge_months_repacked(output, inputs):
    """Compares repacked values: each may differ by half a step of the new scale and by float32 rounding."""
    import xarray

    parts = [xarray.open_dataset(path) for path in inputs]
    with xarray.open_dataset(output) as merged:
        for name in ["tas", "psl"]:
            expected = np.concatenate([part[name].values for part in parts])
            step = merged[name].encoding["scale_factor"]
            np.testing.assert_allclose(merged[name].values, expected, rtol=1e-6, atol=0.51 * step, err_msg=name)


def judge_tiles(output, inputs):
    """Compares an output with what xarray combines by coordinates."""
    import xarray

    parts = [xarray.open_dataset(path) for path in inputs]
    expected = xarray.combine_by_coords(parts, data_vars="minimal", coords="minimal", compat="override")
    with xarray.open_dataset(output) as merged:
        for name in ["tas", "psl", "time", "lat", "lon"]:
            np.testing.assert_array_equal(merged[name].values, expected[name].values, err_msg=name)


def judge_samples(output, inputs):
    import anndata

    merged, parts = anndata.read_h5ad(output), [anndata.read_h5ad(path) for path in inputs]
    expected = anndata.concat(parts)
    assert list(merged.obs_names) == list(expected.obs_names) and list(merged.var_names) == list(expected.var_names)
    for name in ["indptr", "indices", "data"]:
        np.testing.assert_array_equal(getattr(merged.X, name), getattr(expected.X, name), err_msg=name)


def anndata_concat(compression, is_synced=False):
    write = f"write_h5ad(sys.argv[1], compression={compression!r})"
    if is_synced:
        write += "; import os; os.fsync(os.open(sys.argv[1], os.O_RDONLY))"
    program = f"import sys, anndata; anndata.concat([anndata.read_h5ad(path) for path in sys.argv[2:]]).{write}"
    return f"{sys.executable} -c {shlex.quote(program)} {{output}} {{inputs}}"


def netcdf(folder):
    merge = f"{RADDLE} merge {{inputs}} -o {{output}} --progress never -q -j 2"
    same = inputs_of("months", folder, lambda to: write_months(to, False, False))
    times = inputs_of("months-own-times", folder, lambda to: write_months(to, True, False))
    packings = inputs_of("months-own-packing", folder, lambda to: write_months(to, False, True))
    floats = inputs_of("months-floats", folder, lambda to: write_floats(to, packings))
    yield "60 months", "nc", {
        "ncrcat": ("ncrcat -O {inputs} {output}", same, judge_months),
        "cdo -z zip_4 cat": ("cdo -s -f nc4 -z zip_4 cat {inputs} {output}", same, judge_months),
        "raddle": (merge, same, judge_months),
        "raddle --convention none": (f"{merge} --convention none", same, None),
        "raddle, times of 60 units": (merge, times, judge_months),
        "raddle --packing unpack, packings of 2 kinds": (f"{merge} --packing unpack", packings, judge_months),
        "raddle, the same values as floats": (merge, floats, judge_months),
        "raddle --packing repack, packings of 2 kinds": (f"{merge} --packing repack", packings, judge_months_repacked),
    }


def tiles(folder):
    merge = f"{RADDLE} merge {{inputs}} -o {{output}} --tiles --progress never -q -j 2"
    inputs = inputs_of("tiles", folder, write_tiles)
    yield "8 x 8 tiles of 60 time steps, compressed", "nc", {
        "cdo -z zip_4 collgrid": ("cdo -s -f nc4 -z zip_4 collgrid {inputs} {output}", inputs, judge_tiles),
        "raddle": (merge, inputs, judge_tiles),
    }
    yield "8 x 8 tiles of 60 time steps, not compressed", "nc", {
        "cdo collgrid": ("cdo -s -f nc4 collgrid {inputs} {output}", inputs, judge_tiles),
        "raddle -c none": (f"{merge} -c none", inputs, judge_tiles),
    }


def samples(folder):
    merge = f"{RADDLE} merge {{inputs}} -o {{output}} --progress never -q -j 2"
    inputs = inputs_of("samples", folder, write_samples)
    yield "2 samples of 100 million nonzeros, compressed", "h5ad", {
        "anndata.concat, gzip": (anndata_concat("gzip"), inputs, judge_samples),
        "raddle": (merge, inputs, judge_samples),
    }
    yield "2 samples of 100 million nonzeros, not compressed", "h5ad", {
        "anndata.concat": (anndata_concat(None), inputs, judge_samples),
        # raddle's output is on the disk when it ends.
        "anndata.concat, then fsync": (anndata_concat(None, is_synced=True), inputs, judge_samples),
        "cat, then fsync": ("sh -c 'cat \"$@\" > $0 && sync $0' {output} {inputs}", inputs, None),
        "raddle -c none": (f"{merge} -c none", inputs, judge_samples),
    }


KINDS = {"netcdf": netcdf, "tiles": tiles, "anndata": samples}


def apart(function, *arguments):
    """Calls a function in a separate process. Contenders are forked from this one, so its size would count as their peak memory."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{function.__name__} failed")


def touch_free_memory():
    """Writes what earlier runs left in memory, and touches most of the free memory. The next contender would otherwise share the
    disk with them, and pay for the first touch of a page, which is slow on a virtual machine."""
    os.sync()
    pages, page_len_bytes = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    touch_memory(pages * page_len_bytes * 3 // 4)


def measure(contenders, output, rounds):
    found = {name: {"runs": []} for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            command, inputs, judge = contenders[name]
            output.unlink(missing_ok=True)
            apart(touch_free_memory)
            run = timed(command.format(inputs=" ".join(map(str, inputs)), output=output))
            if not found[name]["runs"]:
                if judge:
                    apart(judge, output, inputs)
                found[name]["output_bytes"] = output.stat().st_size
                found[name]["input_bytes"] = sum(path.stat().st_size for path in inputs)
            found[name]["runs"].append(run)
            print(f"{name}: {run['wall_s']:.2f} s", flush=True)
    output.unlink()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="folder of outputs and of inputs, generated if missing")
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    report = {"date": datetime.date.today().isoformat(), "commit": commit, "machine": machine(), "tables": {}}
    tables = []
    for kind in arguments.only:
        for title, ending, contenders in KINDS[kind](arguments.folder):
            found = measure(contenders, arguments.folder / f"output.{ending}", arguments.rounds)
            report["tables"][title] = found
            tables.append(table(title, found))
    host = report["machine"]
    head = f"# Conventions, {report['date']}\n\nCommit {commit}; {host['cores']} cores, {host['cpu']}; {arguments.rounds} interleaved rounds.\n\n"
    print(head + "\n".join(tables))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "raw.json").write_text(json.dumps(report, indent=1) + "\n")
        (arguments.out / "README.md").write_text(head + "\n".join(tables))


if __name__ == "__main__":
    main()
