"""Measures histograms of all columns of a merged file: `Scan.hist` against h5py with numpy, and with boost-histogram.

Every column of numbers with one value per row of the merged workload "wide" is filled into a histogram of 50 bins, one
column after the other. Contenders are separate processes and run interleaved, and nothing counts before the counts
agree: with boost-histogram exactly, with numpy up to values at the edge of a bin. Needs the optimised package:

    make bench-histograms BENCH_HISTOGRAMS='--rounds 5 --keep FOLDER --out FOLDER'
"""

import json
import statistics
import sys
import time

from python import merged_workload
from session import arguments, begun, environment_with, folder_and_package, keep, own_peak_bytes, result_of, touch_memory

READERS = ("h5py, numpy", "h5py, boost-histogram", "raddle")
# Few values are at the edges. numpy compares with edges in the precision of the column, boost-histogram in double.
BINS, LOW, HIGH = 50, -5.0123, 50.0789
TOUCHED_LEN_BYTES = 1 << 30


def main():
    options = arguments(__doc__, ("READER", "FILE"), ("--keep", "folder for the generated files (default: temporary)"))
    if options.one:
        return one(*options.one)
    report = begun()
    with folder_and_package(options) as (folder, package):
        _, merged = merged_workload(folder)
        report["tasks"]["histograms"] = measure(merged, options.rounds, package)
    keep(report, table(report), options.out)
    return 0


def measure(path, rounds, package):
    """Returns the times of each contender, after comparing their counts."""
    def run(reader):
        touch_memory(TOUCHED_LEN_BYTES)
        return result_of("histograms.py", (reader, path), environment_with(package))

    found = {reader: run(reader)["counts"] for reader in READERS}
    if found["raddle"] != found["h5py, boost-histogram"]:
        sys.exit("the counts differ from those of boost-histogram")
    for name, counts in found["raddle"].items():
        others = found["h5py, numpy"][name]
        moved = sum(abs(one - other) for one, other in zip(counts, others, strict=True))
        if sum(counts) != sum(others) or moved > 0.01 * sum(counts) + 2:
            sys.exit(f"{name}: the counts differ from those of numpy: {moved} of {sum(counts)}")
    runs = {reader: [] for reader in READERS}
    for turn in range(rounds):
        first = turn % len(READERS)
        for reader in READERS[first:] + READERS[:first]:
            result = run(reader)
            del result["counts"]
            runs[reader].append(result)
            print(f"{reader}: {result['elapsed_s']:.3f} s", flush=True)
    return {"columns": len(found["raddle"]), "runs": runs}


def one(reader, path):
    """Fills the histograms once and prints the time, the peak of memory and the counts."""
    import boost_histogram as bh
    import h5py
    import numpy as np

    columns = []
    with h5py.File(path) as file:
        def note(name, item):
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "iuf" and item.shape[1:] == (1,) and item.shape[0]:
                columns.append((name, *name.rsplit("/", 1)))
        file.visititems(note)
    columns = [column for column in columns if not column[0].startswith("_raddle")]
    counts, values = {}, 0
    start_s = time.perf_counter()
    if reader == "raddle":
        import raddle

        with raddle.scan(path) as tables:
            for name, table, column in columns:
                axis = bh.axis.Regular(BINS, LOW, HIGH)
                counts[name] = tables[table].hist({column: axis}).view().tolist()
    else:
        with h5py.File(path) as file:
            for name, _, _ in columns:
                array = file[name][()].reshape(-1)
                values += len(array)
                if reader == "h5py, numpy":
                    counts[name] = np.histogram(array, BINS, (LOW, HIGH))[0].tolist()
                else:
                    histogram = bh.Histogram(bh.axis.Regular(BINS, LOW, HIGH), storage=bh.storage.Int64())
                    counts[name] = histogram.fill(array).view().tolist()
    elapsed_s = time.perf_counter() - start_s
    print(json.dumps({"elapsed_s": elapsed_s, "peak_rss_bytes": own_peak_bytes(), "values": values, "counts": counts}))
    return 0


def table(report):
    task = report["tasks"]["histograms"]
    machine, runs = report["machine"], task["runs"]
    median = {reader: statistics.median(run["elapsed_s"] for run in of_one) for reader, of_one in runs.items()}
    peak = {reader: max(run["peak_rss_bytes"] for run in of_one) for reader, of_one in runs.items()}
    lines = [
        f"# Histograms, {report['date']}",
        "",
        f"Commit {report['commit']}; {machine['cores']} cores, {machine['cpu']}: histograms of {task['columns']} columns, "
        f"{runs[READERS[0]][0]['values']:,} values; medians of {len(runs['raddle'])} interleaved rounds, counts compared first.",
        "",
        "| contender | time (s) | peak memory (MB) | time / raddle |",
        "|---|---|---|---|",
    ]
    for reader in READERS:
        lines.append(f"| {reader} | {median[reader]:.3f} | {peak[reader] / 1e6:.0f} | {median[reader] / median['raddle']:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
