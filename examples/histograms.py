#!/usr/bin/env python3
"""Computes the same histogram from many small files and from the merged one.

The selection is typical of an analysis: among events with a vertex inside the detector, the energy of sufficiently long
tracks. Vertices and tracks are separate tables, with different numbers of rows per event.

* Many files: one job per file with h5py, the events of the two tables matched by their ids, the histograms summed.
* One file: `raddle.merge` with partition keys, then one program with several processes; each asks `File.partition` for
  its share of the events, reads its rows, and matches tables by ``evt.seq``.

    python examples/histograms.py --files 64 --events 2000 --processes 2 --figure histograms.svg

Compares the histograms, then prints times and memory of both as JSON. Needs raddle, h5py, and matplotlib for the
figure.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import raddle

EDGES_GEV = np.linspace(0.0, 5.0, 51)
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


def is_inside(vertices: dict[str, np.ndarray]) -> np.ndarray:
    """Returns which vertices are selected."""
    return np.all([np.abs(vertices[axis]) < INSIDE_CM for axis in "xyz"], axis=0)


def histogram(tracks: dict[str, np.ndarray], of_selected_event: np.ndarray) -> np.ndarray:
    """Returns the histogram of the energies of selected tracks."""
    chosen = of_selected_event & (tracks["len"] > LONG_ENOUGH_CM)
    return np.histogram(tracks["energy"][chosen], EDGES_GEV)[0]


def of_one_file(path: Path) -> tuple[np.ndarray, int]:
    """Processes one file with h5py; returns its histogram and the peak memory of the process."""
    with h5py.File(path) as file:
        vertices = {name: file["rec.vtx"][name][:] for name in ("evt", "x", "y", "z")}
        tracks = {name: file["rec.trk"][name][:] for name in ("evt", "len", "energy")}
    selected = vertices["evt"][is_inside(vertices)]
    return histogram(tracks, np.isin(tracks["evt"], selected)), peak_rss_bytes()


def of_one_share(path: Path, rank: int, size: int) -> tuple[np.ndarray, int]:
    """Processes the share of one process of the parallel program."""
    with raddle.open(path, threads=1) as file:
        share = file.partition(rank, size, key="evt")
        vertices = share.read_columns("rec.vtx", ["evt.seq", "x", "y", "z"])
        tracks = share.read_columns("rec.trk", ["evt.seq", "len", "energy"])
    selected = np.zeros(share.events.stop - share.events.start, bool)
    selected[vertices["evt.seq"][is_inside(vertices)] - share.events.start] = True
    return histogram(tracks, selected[tracks["evt.seq"] - share.events.start]), peak_rss_bytes()


def peak_rss_bytes() -> int:
    """Returns the peak memory of this process."""
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measured(jobs: list[tuple], job, processes: int) -> dict:
    """Runs the jobs in fresh processes; returns the sum of their histograms, the time, and the memory of the largest
    process."""
    # Fresh processes: a fork would begin with the memory of this one.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(peak_rss_bytes_of_imports, range(processes))
        start_s = time.perf_counter()
        parts = pool.starmap(job, jobs, chunksize=1)
        elapsed_s = time.perf_counter() - start_s
    counts = np.sum([part[0] for part in parts], axis=0)
    return {"counts": counts, "elapsed_s": elapsed_s, "largest_process_bytes": max(part[1] for part in parts)}


def peak_rss_bytes_of_imports(_: int) -> int:
    """Does nothing, so that no measurement includes starting Python."""
    return peak_rss_bytes()


def draw(path: Path, files: int, many: dict, one: dict) -> None:
    """Draws both histograms in one plot, and their difference."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "raddle"
    import matplotlib.pyplot as plt

    figure, (upper, lower) = plt.subplots(
        2, sharex=True, figsize=(6.4, 4.8), height_ratios=[4, 1], layout="constrained"
    )
    upper.stairs(many["counts"], EDGES_GEV, fill=True, color="tab:blue", alpha=0.35, label=f"{files} files, a job each")
    upper.stairs(one["counts"], EDGES_GEV, color="tab:red", label="the merged file, one parallel program")
    upper.set_ylabel(f"tracks / {EDGES_GEV[1] - EDGES_GEV[0]:.1f} GeV")
    upper.legend(frameon=False)
    lower.stairs(one["counts"] - many["counts"], EDGES_GEV, color="black")
    lower.set_ylim(-1, 1)
    lower.set_ylabel("difference")
    lower.set_xlabel("energy of the track / GeV")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Makes the files, runs both ways, compares them and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--events", type=int, default=2000, help="events per file")
    parser.add_argument("--processes", type=int, default=2)
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
        many = measured([(path,) for path in paths], of_one_file, processes)
        one = measured([(merged, rank, processes) for rank in range(processes)], of_one_share, processes)
    if not np.array_equal(many["counts"], one["counts"]):
        print("the histograms differ", file=sys.stderr)
        return 1
    if arguments.figure:
        draw(arguments.figure, arguments.files, many, one)
    told = {"files": len(paths), "tracks": int(one["counts"].sum()), "merge_s": merging.elapsed_s}
    for name, result in (("many_files", many), ("merged_file", one)):
        told[name] = {key: value for key, value in result.items() if key != "counts"}
    print(json.dumps(told, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
