"""Measures `raddle keys add` on a merged file of 100 million rows: rows per second and core, peak memory.

The file has one table of rows and its index, with ids like those of NOvA's files. The new keys are compared with
numpy's before a time counts. The whole command is timed: reading the ids, joining, compressing and writing the keys.

    python benches/keys.py [--rounds 5] [--events 5000000] [--rows-per-event 19]
"""

import argparse
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from run import RADDLE, timed

MEMORY = "256MiB"
EVENTS_PER_SUBRUN = 2500


def rows_of_events(events, rows_per_event):
    return np.random.default_rng(7).integers(0, 2 * rows_per_event + 1, events)


def generate(path, events, rows_per_event):
    """Writes /spill with ``events`` rows and /rec.hit with about ``rows_per_event`` times as many."""
    number = np.arange(events)
    subrun = number // EVENTS_PER_SUBRUN
    ids = {
        "run": 11000 + subrun // 64,
        "subrun": subrun % 64,
        # Numbers of triggers: ascending in a subrun, with gaps.
        "evt": number % EVENTS_PER_SUBRUN * 3 + 1 + subrun % 7,
    }
    counts = rows_of_events(events, rows_per_event)
    with h5py.File(path, "w") as file:
        for name, values in ids.items():
            for group, column in [("spill", values), ("rec.hit", np.repeat(values, counts))]:
                file.create_dataset(f"{group}/{name}", data=column.astype("u4").reshape(-1, 1), maxshape=(None, 1),
                                    chunks=(131072, 1), compression="gzip")


def verify(path, events, rows_per_event):
    """Exits if the keys differ from those that numpy computes from the numbers of rows per event."""
    counts = rows_of_events(events, rows_per_event)
    number = np.arange(len(counts))
    with h5py.File(path) as file:
        table = file["rec.hit"]
        there = counts > 0
        right = (
            np.array_equal(file["spill/evt.seq"][:, 0], number)
            and np.array_equal(table["evt.seq"][:, 0], np.repeat(number, counts))
            and np.array_equal(table["evt.seq_cnt"][()], np.stack([number[there], counts[there]], axis=1))
            and np.array_equal(table["evt.offsets"][()], np.concatenate([[0], np.cumsum(counts)]))
        )
    if not right:
        sys.exit(f"{path}: wrong keys")


def apart(function, *arguments):
    """Calls a function in a separate process: a command's peak memory includes that of the process it was forked
    from."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rows-per-event", type=int, default=19)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        produced, merged, keyed = (Path(folder) / name for name in ["produced.h5", "merged.h5", "keyed.h5"])
        workload = (options.events, options.rows_per_event)
        apart(generate, produced, *workload)
        subprocess.run([RADDLE, "merge", produced, "-o", merged, "-q"], check=True)
        with h5py.File(merged) as file:
            rows = len(file["spill/evt"]) + len(file["rec.hit/evt"])
        runs = {1: [], 2: []}
        for turn in range(options.rounds):
            for jobs, found in runs.items():
                shutil.copy(merged, keyed)
                found.append(timed(f"{RADDLE} keys add {keyed} --jobs {jobs} --memory {MEMORY} -q"))
                if turn == 0:
                    apart(verify, keyed, *workload)
    print(f"{rows:,} rows, {options.events:,} of them in the index; --memory {MEMORY}; median of {options.rounds} rounds\n")
    print("| jobs | wall (s) | min - max | million rows/s | of one core | peak RSS (MB) |\n|---|---|---|---|---|---|")
    for jobs, found in runs.items():
        walls = [run["wall_s"] for run in found]
        wall, cpu = statistics.median(walls), statistics.median(run["cpu_s"] for run in found)
        peak = max(run["peak_rss_bytes"] for run in found)
        print(f"| {jobs} | {wall:.2f} | {min(walls):.2f} - {max(walls):.2f} | {rows / wall / 1e6:.1f} "
              f"| {rows / cpu / 1e6:.1f} | {peak / 1e6:.0f} |")


if __name__ == "__main__":
    main()
