"""Measures how h5py reads maps and time series from a grid in chunks of several shapes.

A grid of (time, latitude, longitude) with gzip 4 and shuffled bytes is written in each shape. Prints the length of each file,
and the processor time of reading one map, one series, and the series of 8 x 8 places: medians of several places, each
with a new file handle, so that no chunk is cached.

    python benches/grids.py --folder DATA [--places 9]
"""

import argparse
import statistics
import time
from pathlib import Path

import h5py
import numpy as np
from corpora import smooth

SHAPE = (2920, 96, 192)
CHUNKS = [(1, 96, 192), (7, 96, 192), (14, 96, 192), (56, 96, 192), (2920, 2, 3), (2920, 4, 6), (2920, 8, 11), (2920, 16, 24)]


def timed(path, selection):
    """Returns the processor time of a read, in milliseconds."""
    with h5py.File(path) as file:
        started = time.process_time()
        file["tas"][selection]
        return (time.process_time() - started) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--places", type=int, default=9)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    values = smooth(np.random.default_rng(3), SHAPE, 0.3).astype("f4")
    print("| chunk | size | file (MB) | one map (ms) | one series (ms) | series of 8 × 8 places (ms) |")
    print("|---|---|---|---|---|---|")
    for chunk in CHUNKS:
        path = options.folder / "grid.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("tas", data=values, chunks=chunk, compression="gzip", compression_opts=4, shuffle=True)
        random = np.random.default_rng(5)
        found = {"map": [], "series": [], "places": []}
        for _ in range(options.places):
            at, row, column = (int(random.integers(0, size - 8)) for size in SHAPE)
            found["map"].append(timed(path, (at,)))
            found["series"].append(timed(path, (slice(None), row, column)))
            found["places"].append(timed(path, (slice(None), slice(row, row + 8), slice(column, column + 8))))
        medians = [statistics.median(one) for one in found.values()]
        cells = [f"{median:.1f}" if median < 100 else f"{median:.0f}" for median in medians]
        size = np.prod(chunk) * 4 / 1024
        shown = f"{size:.0f} KiB" if size < 1000 else f"{size / 1024:.1f} MiB"
        print(f"| {' × '.join(map(str, chunk))} | {shown} | {path.stat().st_size / 1e6:.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
