"""Measures `raddle apply`: what it gains for a program that writes row by row, and what it costs one that it does not help.

The first is `row_by_row.c` with the libhdf5 that pkg-config or Debian has; both files must hold the same values. The second
makes 4,000 datasets with h5py. Runs with and without take turns; whole processes are timed.

    python benches/apply.py [--rounds 5] [--raddle target/release/raddle]
"""

import argparse
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
    for number in range(4000):
        file.create_dataset(f"d{number}", data=values).attrs["unit"] = number
"""


def compare(name, plain, applied, rounds):
    runs = [(timed(plain), timed(applied)) for _ in range(rounds)]
    for what in ["wall_s", "cpu_s"]:
        ratios = [left[what] / right[what] for left, right in runs]
        medians = [statistics.median(run[side][what] for run in runs) for side in (0, 1)]
        print(f"{name}, {what}: {medians[0]:.3f} s, with apply {medians[1]:.3f} s;"
              f" ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), {rounds} rounds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder).resolve()
        apply = f"{arguments.raddle} apply --folder {folder}/objects --log none --set sieve=64KiB --"
        program = folder / "row_by_row"
        subprocess.run(["cc", "-O2", HERE / "row_by_row.c", "-o", program, *SERIAL], check=True)
        compare("row by row", f"{program} {folder}/plain.h5", f"{apply} {program} {folder}/applied.h5", arguments.rounds)
        with h5py.File(folder / "plain.h5") as plain, h5py.File(folder / "applied.h5") as applied:
            if not np.array_equal(plain["temperature"][()], applied["temperature"][()]):
                sys.exit("the values differ")
        script = folder / "datasets.py"
        script.write_text(DATASETS)
        python = f"{sys.executable} {script}"
        compare("4,000 datasets", f"{python} {folder}/a.h5", f"{apply} {python} {folder}/b.h5", arguments.rounds)


if __name__ == "__main__":
    main()
