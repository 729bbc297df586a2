"""Measures `raddle apply`: its gain for a program that writes row by row, and its cost for one that it does not help.

The first is `row_by_row.c` with the libhdf5 of pkg-config or Debian; both files must hold the same values. The second
makes 4,000 datasets with h5py. Runs with and without `apply` are interleaved, each first in every other pair. Whole
processes are timed, and the ratio is the median over the pairs with its 95 % interval. The cost of the second is too
small for clocks on a machine with other work. If valgrind is installed, instructions are counted too, which are the
same in every run.

    python benches/apply.py [--rounds 5] [--pairs 40] [--raddle target/release/raddle]
"""

import argparse
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from run import RADDLE, timed

HERE = Path(__file__).parent
SERIAL = ["-I/usr/include/hdf5/serial", "-L/usr/lib/x86_64-linux-gnu/hdf5/serial", "-lhdf5", "-lm"]
DATASETS = """
import sys, h5py, numpy
values = numpy.arange(16.0)
with h5py.File(sys.argv[1], "w") as file:
    for number in range(int(sys.argv[2])):
        file.create_dataset(f"d{number}", data=values).attrs["unit"] = number
"""
MANY = 4000
# Numbers of datasets for which instructions are counted: their difference gives the cost of a dataset.
COUNTED = [200, 600]
# Disables sources of different counts in equal runs: random hashes, and numpy's threads that spin while they wait.
STEADY = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}


def interval(ratios, resamples=2000):
    """Returns the 95 % interval of the median: percentiles of the medians of resamples."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]


def compare(name, plain, applied, rounds):
    runs = []
    for turn in range(rounds):
        if turn % 2:
            runs.append((timed(plain), timed(applied)))
        else:
            runs.append((timed(applied), timed(plain))[::-1])
    for what in ["wall_s", "cpu_s"]:
        medians = [statistics.median(run[side][what] for run in runs) for side in (0, 1)]
        # A gain is reported as a speedup, a loss as a share.
        ratios = [left[what] / right[what] for left, right in runs]
        low, high = interval(ratios)
        print(f"{name}, {what}: {medians[0]:.3f} s, with apply {medians[1]:.3f} s;"
              f" ratio {statistics.median(ratios):.4f} ({low:.4f} to {high:.4f}), {rounds} pairs", flush=True)


def instructions(command, variables, folder):
    """Returns the instructions of a command, counted by callgrind; with a fixed hash seed they are the same each
    time."""
    counts = folder / "callgrind.out"
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", *shlex.split(command)]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **STEADY, **variables})
    summary = next(line for line in counts.read_text().splitlines() if line.startswith(("summary:", "totals:")))
    return int(summary.split()[1])


def count(name, plain, variables, folder):
    """Prints the instructions that `apply` costs: once, for each dataset, and in total with MANY datasets."""
    counted = {}
    for side, given in (("plain", {}), ("applied", variables)):
        counted[side] = [instructions(f"{plain} {folder}/c.h5 {number}", given, folder) for number in COUNTED]
    each = {side: (both[1] - both[0]) / (COUNTED[1] - COUNTED[0]) for side, both in counted.items()}
    whole = {side: both[0] + (MANY - COUNTED[0]) * each[side] for side, both in counted.items()}
    print(f"{name}, instructions: {each['plain']:,.0f} for a dataset, with apply {each['applied'] - each['plain']:+,.0f};"
          f" ratio of all {whole['applied'] / whole['plain']:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs of the program that writes row by row")
    parser.add_argument("--pairs", type=int, default=40, help="pairs of runs of the program that makes datasets")
    parser.add_argument("--only", choices=["rows", "datasets", "instructions"], action="append")
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    arguments = parser.parse_args()
    only = arguments.only or ["rows", "datasets", "instructions"]
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder).resolve()
        options = f"--folder {folder}/objects --log none --set sieve=64KiB"
        apply = f"{arguments.raddle} apply {options} --"
        if "rows" in only:
            program = folder / "row_by_row"
            subprocess.run(["cc", "-O2", HERE / "row_by_row.c", "-o", program, *SERIAL], check=True)
            compare("row by row", f"{program} {folder}/plain.h5", f"{apply} {program} {folder}/applied.h5", arguments.rounds)
            with h5py.File(folder / "plain.h5") as plain, h5py.File(folder / "applied.h5") as applied:
                if not np.array_equal(plain["temperature"][()], applied["temperature"][()]):
                    sys.exit("the values differ")
        script = folder / "datasets.py"
        script.write_text(DATASETS)
        python = f"{sys.executable} {script}"
        if "datasets" in only:
            compare("4,000 datasets", f"{python} {folder}/a.h5 {MANY}", f"{apply} {python} {folder}/b.h5 {MANY}", arguments.pairs)
        if "instructions" in only and shutil.which("valgrind"):
            printed = subprocess.check_output(shlex.split(f"{arguments.raddle} apply {options} --emit env"), text=True)
            variables = dict(word.split("=", 1) for word in shlex.split(printed) if "=" in word)
            count("4,000 datasets", python, variables, folder)


if __name__ == "__main__":
    main()
