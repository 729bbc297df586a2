#!/usr/bin/env python3
"""Computes the same histogram from many small files and from the merged one.

The selection is typical of an analysis: among events with a vertex inside the detector, the energy of sufficiently long
tracks. Vertices and tracks are separate tables, with different numbers of rows per event.

* Many files: one job per file with h5py, the events of the two tables matched by their ids, the histograms summed.
* One file: `raddle.merge` with partition keys, then one `raddle.scan` with several threads: `where_event` selects the tracks
  of events with a vertex inside, and `hist` fills the histogram in batches.

    python examples/histograms.py --files 64 --events 2000 --processes 2 --figure histograms.svg

Compares the histograms, then prints times and memory of both as JSON. Needs raddle, h5py, boost-histogram, and matplotlib for
the figure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import boost_histogram as bh
import h5py
import numpy as np
import raddle

ENERGY_GEV = bh.axis.Regular(50, 0.0, 5.0)
LONG_ENOUGH_CM = 50.0
INSIDE_CM = 180.0


def make_files(folder: Path, files: int, events: int) -> list[Path]:
    """Makes files like those of a detector: one per subrun, tables in small chunks."""
    paths = []
    for subrun in range(files):
        random = np.random.default_rng(subrun)
        path = folder / f"run7_{subrun}.h5"
        numbers = np.arange(events, dtype="u4")
        vertices = np.repeat(numbers, random.integers(0, 2, events))
        tracks = np.repeat(numbers, random.poisson(3, events))
        with h5py.File(path, "w") as file:
            table(file, "spill", subrun, numbers, {"pot": random.normal(3, 0.2, events).astype("f4")})
            places = {axis: random.normal(0, 120, len(vertices)).astype("f4") for axis in "xyz"}
            table(file, "rec.vtx", subrun, vertices, places)
            lengths = random.exponential(120, len(tracks)).astype("f4")
            energies = (lengths * 0.012 + random.exponential(0.4, len(tracks))).astype("f4")
            table(file, "rec.trk", subrun, tracks, {"len": lengths, "energy": energies})
        paths.append(path)
    return paths


def table(file: h5py.File, name: str, subrun: int, events: np.ndarray, columns: dict[str, np.ndarray]) -> None:
    """Writes a group whose columns begin with the ids of the row's event."""
    ids = {"run": np.full_like(events, 7), "subrun": np.full_like(events, subrun), "evt": events}
    for column, values in {**ids, **columns}.items():
        file.create_dataset(
            f"{name}/{column}", data=values, chunks=(128,), maxshape=(None,), compression="gzip", shuffle=True
        )


def of_one_file(path: Path) -> tuple[bh.Histogram, int, int]:
    """Processes one file with h5py; returns its histogram, the process, and its peak memory."""
    with h5py.File(path) as file:
        vertices = {name: file["rec.vtx"][name][:] for name in ("evt", "x", "y", "z")}
        tracks = {name: file["rec.trk"][name][:] for name in ("evt", "len", "energy")}
    is_inside = np.all([np.abs(vertices[axis]) < INSIDE_CM for axis in "xyz"], axis=0)
    chosen = np.isin(tracks["evt"], vertices["evt"][is_inside]) & (tracks["len"] > LONG_ENOUGH_CM)
    histogram = bh.Histogram(ENERGY_GEV, storage=bh.storage.Int64())
    return histogram.fill(tracks["energy"][chosen]), os.getpid(), peak_rss_bytes()


def of_merged_file(path: Path, threads: int) -> tuple[bh.Histogram, int, int]:
    """Processes the merged file; returns its histogram, the process, and its peak memory."""
    with raddle.scan(path, threads=threads) as file:
        inside = file["rec.vtx"].filter(" & ".join(f"{-INSIDE_CM} < {axis} < {INSIDE_CM}" for axis in "xyz"))
        tracks = file["rec.trk"].where_event(inside).filter(f"len > {LONG_ENOUGH_CM}")
        return tracks.hist({"energy": ENERGY_GEV}), os.getpid(), peak_rss_bytes()


def peak_rss_bytes() -> int:
    """Returns the peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, the maximum of getrusage begins with the memory of the parent.
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    # macOS counts in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measured(jobs: list[tuple], job, processes: int) -> dict:
    """Runs the jobs in fresh processes; returns the sum of their histograms, the time, and the peak memory of all
    processes together."""
    # Fresh processes: a fork would begin with the memory of this one.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(after_imports, range(processes))
        start_s = time.perf_counter()
        parts = pool.starmap(job, jobs, chunksize=1)
        elapsed_s = time.perf_counter() - start_s
    counts = np.sum([histogram.values() for histogram, _, _ in parts], axis=0)
    # The last job of a process has the peak of all its jobs.
    peaks = {process: memory for _, process, memory in parts}
    return {"counts": counts, "elapsed_s": elapsed_s, "memory_bytes": sum(peaks.values())}


def after_imports(_: int) -> None:
    """Imports what jobs need, so that no measurement includes starting Python."""
    assert raddle.scan and raddle.Scan


def draw(path: Path, files: int, many: np.ndarray, one: np.ndarray) -> None:
    """Draws both histograms in one plot, and their difference."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "raddle"
    import matplotlib.pyplot as plt

    figure, (upper, lower) = plt.subplots(
        2, sharex=True, figsize=(6.4, 4.8), height_ratios=[4, 1], layout="constrained"
    )
    upper.stairs(many, ENERGY_GEV.edges, fill=True, color="tab:blue", alpha=0.35, label=f"{files} files, a job each")
    upper.stairs(one, ENERGY_GEV.edges, color="tab:red", label="the merged file, one scan")
    upper.set_ylabel(f"tracks / {ENERGY_GEV.widths[0]:.1f} GeV")
    upper.legend(frameon=False)
    lower.stairs(one - many, ENERGY_GEV.edges, color="black")
    lower.set_ylim(-1, 1)
    lower.set_ylabel("difference")
    lower.set_xlabel("energy of the track / GeV")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Makes the files, runs both ways, compares them and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--events", type=int, default=2000, help="events per file")
    parser.add_argument("--processes", type=int, default=2, help="processes for many files, threads for the merged file")
    parser.add_argument("--rounds", type=int, default=1, help="runs of both ways, interleaved; medians are printed")
    parser.add_argument("--folder", type=Path, help="where the files are made; default: a temporary folder")
    parser.add_argument("--figure", type=Path, help="file for the figure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        paths = make_files(folder, arguments.files, arguments.events)
        merged = folder / "merged.h5"
        keys = ["/spill/run", "/spill/subrun", "/spill/evt"]
        merging = raddle.merge(paths, merged, keys=keys, force=True, progress=False)
        processes = arguments.processes
        runs = {"many_files": [], "merged_file": []}
        for _ in range(arguments.rounds):
            runs["many_files"].append(measured([(path,) for path in paths], of_one_file, processes))
            runs["merged_file"].append(measured([(merged, processes)], of_merged_file, 1))
    many, one = (found[0]["counts"] for found in runs.values())
    if not np.array_equal(many, one):
        print("the histograms differ", file=sys.stderr)
        return 1
    if arguments.figure:
        draw(arguments.figure, arguments.files, many, one)
    printed = {"files": len(paths), "tracks": int(one.sum()), "merge_s": merging.elapsed_s}
    for name, found in runs.items():
        printed[name] = {key: statistics.median(run[key] for run in found) for key in ("elapsed_s", "memory_bytes")}
    print(json.dumps(printed, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
