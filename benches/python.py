"""Measures reading with the Python package against h5py on the same files.

Five tasks: every column of a merged file, one after another, and again group by group with `read_columns`; every column
of one of its inputs, in chunks of 128 rows; 50 columns of a table with `read_columns`; opening a file of 16,000
datasets and listing shapes and types. Each run is a separate process that drops the arrays or keeps all of them. The
readers, h5py and raddle with all threads and with one, are interleaved, and nothing counts before all have read the same
values. Needs the optimised package:

    make bench-python BENCH_PYTHON='--rounds 5 --keep FOLDER --out FOLDER'
"""

import functools
import hashlib
import json
import statistics
import subprocess
import sys
import time

from run import RADDLE, inputs_of
from session import arguments, begun, environment_with, folder_and_package, keep, own_peak_bytes, result_of, touch_memory

READERS = ("h5py", "raddle", "raddle, 1 thread")
# What a program does with the arrays that it has read.
USES = ("dropped", "kept")
COLUMNS = 50
# Touched before each run, for both readers: more than any reader needs.
TOUCHED_LEN_BYTES = 2 << 30


def main():
    options = arguments(__doc__, ("READER", "TASK", "FILE", "CHECK"), ("--keep", "folder for the generated files (default: temporary)"))
    if options.one:
        return one(*options.one)
    report = begun()
    with folder_and_package(options) as (folder, package):
        for task, path in workload(folder).items():
            report["tasks"][task] = measure(task, path, options.rounds, package)
    keep(report, table(report), options.out)
    return 0


def merged_workload(folder):
    """Returns the inputs of the workload "wide", and the file merged from them."""
    wide, merged = inputs_of("wide", folder), folder / "wide.h5"
    if not merged.exists():
        subprocess.run([RADDLE, "merge", *wide, "-o", merged, "-q", "--progress", "never"], check=True)
    return wide, merged


def workload(folder):
    """Returns the file of each task."""
    wide, merged = merged_workload(folder)
    nova = inputs_of("nova", folder)
    return {"columns of the merged file": merged, "its groups": merged, "columns of an input": wide[0], "50 columns at once": merged,
            "open and list": nova[0]}


def measure(task, path, rounds, package):
    """Returns the times of both readers, after comparing their digests."""
    def run(reader, check):
        touch_memory(TOUCHED_LEN_BYTES)
        return result_of("python.py", (reader, task, path, check), environment_with(package))

    digests = {reader: run(reader, "digest")["digest"] for reader in READERS}
    if len(set(digests.values())) != 1:
        sys.exit(f"{task}: the readers differ: {digests}")
    uses = USES[:1] if task == "open and list" else USES
    runs = {use: {reader: [] for reader in READERS} for use in uses}
    for turn in range(rounds):
        first = turn % len(READERS)
        for use in uses:
            for reader in READERS[first:] + READERS[:first]:
                runs[use][reader].append(run(reader, use))
                print(f"{task}, {use}: {reader}: {runs[use][reader][-1]['elapsed_s']:.3f} s", flush=True)
    return {"digest": digests["h5py"], "runs": runs}


def one(reader, task, path, check):
    """Runs once: times the task, or prints a digest of the values read."""
    import numpy as np

    if reader == "h5py":
        import h5py as library

        opened = library.File
    else:
        import raddle as library

        # The package imports its parts when they are first used: before the clock starts, as h5py does.
        opened = functools.partial(library.open, threads=1 if reader.endswith("1 thread") else None)

    kept = []
    digest = hashlib.blake2b()

    def take(name, values):
        if check == "digest":
            values = np.ascontiguousarray(values)
            digest.update(f"{name} {values.shape} {values.dtype.str}".encode())
            digest.update(values.view(np.uint8).reshape(-1).data if values.size else b"")
        elif check == "kept":
            kept.append(values)

    def datasets(file):
        found = []
        file.visititems(lambda name, item: found.append((name, item)) if isinstance(item, library.Dataset) else None)
        return [(name, item) for name, item in found if item.dtype.kind in "iufb" and not name.startswith("_raddle")]

    start_s = time.perf_counter()
    with opened(path) as file:
        if task == "open and list":
            listed = []
            # h5py's own visit has no types; both readers create objects.
            file.visititems(lambda name, item: listed.append((name, str(item.shape), item.dtype.str))
                            if isinstance(item, library.Dataset) else None)
            elapsed_s = time.perf_counter() - start_s
            digest.update(repr(listed).encode())
        elif task == "50 columns at once":
            # For both readers, the columns are looked up before the clock starts.
            tables = {}
            for name, item in datasets(file):
                if item.ndim and item.shape[0] and item.nbytes < 64 << 20:
                    tables.setdefault((name.rpartition("/")[0], item.shape[0]), []).append(name.rpartition("/")[2])
            (group, _), names = max(tables.items(), key=lambda entry: min(len(entry[1]), COLUMNS) * entry[0][1])
            names = sorted(names)[:COLUMNS]
            start_s = time.perf_counter()
            if reader == "h5py":
                columns = {name: file[group][name][()] for name in names}
            else:
                columns = file[group].read_columns(names)
            elapsed_s = time.perf_counter() - start_s
            for name in names:
                take(name, columns[name])
        elif task == "its groups":
            groups = {}
            for name, item in datasets(file):
                if item.size:
                    folder, _, column = name.rpartition("/")
                    groups.setdefault(folder or "/", []).append(column)
            for folder, names in groups.items():
                group = file[folder]
                columns = {name: group[name][()] for name in names} if reader == "h5py" else group.read_columns(names)
                for name in names:
                    take(f"{folder}/{name}", columns[name])
                # Like a program that goes through the groups and holds one at a time in memory.
                del columns
            elapsed_s = time.perf_counter() - start_s
        else:
            for name, item in datasets(file):
                if item.size:
                    take(name, item[()])
            elapsed_s = time.perf_counter() - start_s
    print(json.dumps({"elapsed_s": elapsed_s, "peak_rss_bytes": own_peak_bytes(), "digest": digest.hexdigest()}))
    return 0


def table(report):
    lines = [f"# Reading in Python, {report['date']}", "",
             f"Commit {report['commit']}; {report['machine']['cores']} cores, {report['machine']['cpu']}; readers interleaved, "
             "warm cache, memory touched before, values compared first, numpy without BLAS threads.", "",
             "| task | arrays | h5py (s) | raddle (s) | 1 thread (s) | h5py / raddle | 1 thread / all | peak h5py (MB) | peak raddle (MB) |",
             "|---" * 9 + "|"]
    for task, found in report["tasks"].items():
        for use, runs in found["runs"].items():
            times = {reader: [run["elapsed_s"] for run in runs[reader]] for reader in READERS}
            peaks = {reader: max(run["peak_rss_bytes"] for run in runs[reader]) / 1e6 for reader in READERS}
            h5py, ours, alone = (times[reader] for reader in READERS)
            ratios = [statistics.median(a / b for a, b in zip(other, ours, strict=True)) for other in (h5py, alone)]
            lines.append(f"| {task} | {use} | {statistics.median(h5py):.3f} | {statistics.median(ours):.3f} | {statistics.median(alone):.3f} "
                         f"| {ratios[0]:.1f} | {ratios[1]:.2f} | {peaks['h5py']:.0f} | {peaks['raddle']:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
