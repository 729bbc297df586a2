"""Measures `raddle rechunk --for cmip7` against `cmip7repack`, which calls h5repack: one large file and many small ones.

Contenders run interleaved, each on a fresh copy of the inputs. Before its time counts, the first output of each is checked:
`check_cmip7_packing` passes every file, and xarray reads values and attributes equal to those of the inputs. Prints
medians of wall time and processor time, and the peak memory; --out also writes them to files.

    python benches/cmip7.py --folder DATA [--files 1000] [--rounds 3] [--raddle PATH] [--tools FOLDER] [--out FOLDER]
"""

import argparse
import datetime
import json
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
from run import HERE, RADDLE, machine, timed
from session import table


def write(path, times, latitudes, longitudes, seed):
    """Writes daily precipitation as models do: a record at a time, shuffled and deflated at level 1."""
    random = np.random.default_rng(seed)
    with netCDF4.Dataset(path, "w", format="NETCDF4_CLASSIC") as file:
        file.setncatts({"variable_id": "pr", "Conventions": "CF-1.11", "mip_era": "CMIP7", "frequency": "day"})
        for name, size in {"time": None, "bnds": 2, "lat": latitudes, "lon": longitudes}.items():
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",), chunksizes=(min(512, times),))
        time.setncatts({"units": "days since 1850-01-01", "calendar": "noleap", "bounds": "time_bnds"})
        bounds = file.createVariable("time_bnds", "f8", ("time", "bnds"), chunksizes=(1, 2))
        for name, size in {"lat": latitudes, "lon": longitudes}.items():
            file.createVariable(name, "f8", (name,))[:] = np.linspace(-89, 89, size)
        deflated = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, latitudes, longitudes)}
        rain = file.createVariable("pr", "f4", ("time", "lat", "lon"), fill_value=1e20, **deflated)
        rain.units = "kg m-2 s-1"
        days = np.arange(times, dtype="f8")
        time[:], bounds[:] = days + 0.5, np.stack([days, days + 1], 1)
        y, x = np.linspace(-1, 1, latitudes)[:, None], np.linspace(0, 6.28, longitudes)
        for first in range(0, times, 60):
            day = np.arange(first, min(first + 60, times))[:, None, None]
            field = 3e-5 * (1.2 - y**2) * (1 + 0.4 * np.sin(3 * x + 0.2 * day))
            rain[first : first + len(day)] = np.maximum(field + random.normal(0, 1e-6, field.shape), 0)


def inputs_of(folder, files):
    """Returns a folder with one large file and one with small files, written if missing."""
    large, small = folder / "large", folder / f"small-{files}"
    for target, count, shape in [(large, 1, (1800, 144, 192)), (small, files, (24, 24, 36))]:
        if not target.exists():
            unfinished = folder / f"{target.name}.unfinished"
            unfinished.mkdir(parents=True)
            for number in range(count):
                write(unfinished / f"pr_day_{number:04}.nc", *shape, number)
            unfinished.rename(target)
    return {"one large file": large, f"{files} small files": small}


def judge(outputs, inputs, tools):
    """Checks every file with check_cmip7_packing and compares it with the input."""
    import xarray

    subprocess.run([tools / "check_cmip7_packing", *outputs], check=True, stdout=subprocess.DEVNULL)
    for output, source in zip(outputs, inputs, strict=True):
        with xarray.open_dataset(output, decode_cf=False) as new, xarray.open_dataset(source, decode_cf=False) as old:
            xarray.testing.assert_identical(new.load(), old.load())


def measure(source, folder, contenders, rounds, tools):
    found = {name: {"runs": []} for name in contenders}
    names = list(contenders)
    inputs = sorted(source.iterdir())
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            work = folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(source, work)
            files = sorted(work.iterdir())
            subprocess.run(["sync"], check=True)
            run = timed(contenders[name].format(folder=work, files=" ".join(map(str, files))))
            if not found[name]["runs"]:
                judge(files, inputs, tools)
                found[name]["output_bytes"] = sum(path.stat().st_size for path in files)
                found[name]["input_bytes"] = sum(path.stat().st_size for path in inputs)
            found[name]["runs"].append(run)
            print(f"{source.name}: {name}: {run['wall_s']:.2f} s", flush=True)
    shutil.rmtree(folder / "work")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="folder of inputs, generated if missing, and of outputs")
    parser.add_argument("--files", type=int, default=1000, help="number of small files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent, help="folder with cmip7repack")
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    arguments = parser.parse_args()
    rechunk = f"{arguments.raddle.resolve()} rechunk {{folder}} --in-place --for cmip7 --progress never -q"
    contenders = {
        "cmip7repack": f"{arguments.tools / 'cmip7repack'} -o {{files}}",
        "raddle": rechunk,
        "raddle, 1 job": f"{rechunk} -j 1",
        "raddle -c fast": f"{rechunk} -c fast",
    }
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    report = {"date": datetime.date.today().isoformat(), "commit": commit, "machine": machine(), "tables": {}}
    tables = []
    for title, source in inputs_of(arguments.folder, arguments.files).items():
        found = measure(source, arguments.folder, contenders, arguments.rounds, arguments.tools)
        report["tables"][title] = found
        tables.append(table(title, found))
    host = report["machine"]
    head = (
        f"# Packing for CMIP7, {report['date']}\n\nCommit {commit}; {host['cores']} cores, {host['cpu']}; "
        f"{arguments.rounds} interleaved rounds.\n\n"
    )
    print(head + "\n".join(tables))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "raw.json").write_text(json.dumps(report, indent=1) + "\n")
        (arguments.out / "README.md").write_text(head + "\n".join(tables))


if __name__ == "__main__":
    main()
