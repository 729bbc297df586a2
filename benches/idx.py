"""Measures writing IDX: boxes against one raw file per box of the same bytes, and whole arrays against OpenVisus.

Every run is a separate process that makes its arrays before the clock starts. The writers are interleaved, and nothing
counts before each output has been read back equal. Raw files are written by the same number of threads and synced, like
raddle's. OpenVisus leaves its files in the page cache: it is timed unchanged next to raddle with sync=False, and with
an fsync of each file next to raddle with its default. It is left out if it is not installed. Needs the optimised
package:

    make bench-idx BENCH_IDX='--rounds 7 --out FOLDER'
"""

import concurrent.futures
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from session import arguments, begun, environment_with, in_turns, keep, package_with, result_of

# Side of a box, boxes along each axis, fields, type; all boxes are written.
TASKS = {
    "8 boxes of 60^3, 8 fields of float32": (60, 2, 8, "float32"),
    "8 boxes of 30^3, 16 fields of float64": (30, 2, 16, "float64"),
    "8 boxes of 64^3, 1 field of float32": (64, 2, 1, "float32"),
    "8 boxes of 63^3, 1 field of float32": (63, 2, 1, "float32"),
    "8 boxes of 128^3, 1 field of float32": (128, 2, 1, "float32"),
    "8 boxes of 126^3, 1 field of float32": (126, 2, 1, "float32"),
    "256^3, 1 field of float32": (256, 1, 1, "float32"),
    "252^3, 1 field of float32": (252, 1, 1, "float32"),
}
# Writers of every task; OpenVisus also writes those with a single box.
BOXED = ("raw file per box", "raddle, rows", "raddle, HZ order")
# Writers of whole arrays, paired by whether they wait for the disk: raddle, and OpenVisus doing the same.
LIKE = {
    "raddle, rows": "OpenVisus, rows, fsync",
    "raddle, HZ order": "OpenVisus, HZ order, fsync",
    "raddle, rows, no sync": "OpenVisus, rows",
    "raddle, HZ order, no sync": "OpenVisus, HZ order",
}
WHOLE = (BOXED[0], *LIKE, *LIKE.values())


def main():
    options = arguments(__doc__, ("WRITER", "TASK", "FOLDER", "CHECK"), ("--folder", "folder on the file system to write to (default: temporary)"))
    if options.one:
        return one(*options.one)
    report = begun()
    with tempfile.TemporaryDirectory() as temporary:
        package = package_with(options.core, Path(temporary))
        for task in TASKS:
            report["tasks"][task] = measure(task, options.rounds, package, options.folder)
    keep(report, table(report), options.out)
    return 0


def writers_of(task):
    if TASKS[task][1] > 1:
        return BOXED
    return WHOLE if importlib.util.find_spec("OpenVisus") else BOXED


def measure(task, rounds, package, folder):
    """Returns the seconds of every writer, after each output was read back."""
    writers = writers_of(task)

    def run(writer, check):
        with tempfile.TemporaryDirectory(dir=folder) as written:
            return result_of("idx.py", (writer, task, written, check), environment_with(package))

    runs = in_turns(task, writers, rounds, run)
    side, along, fields, dtype = TASKS[task]
    return {"len_bytes": (side * along) ** 3 * fields * int(dtype[-2:]) // 8, "runs": runs}


def one(writer, task, folder, check):
    """Runs once: makes the boxes, times writing them, and reads them back if they are to be verified."""
    import numpy as np

    side, along, fields, dtype = TASKS[task]
    names = [f"f{number}" for number in range(fields)]
    places = [(z, y, x) for z in range(along) for y in range(along) for x in range(along)]
    random = np.random.default_rng(1)
    boxes = [(tuple(side * at for at in place), {name: random.random((side,) * 3, dtype=dtype) for name in names})
             for place in places]
    whole = side * along
    threads = min(os.cpu_count(), len(boxes))
    folder = Path(folder)
    # So that this run's fsync does not wait for pages left in the cache by earlier runs.
    os.sync()
    if writer == "raw file per box":
        def put(number):
            with open(folder / f"{number}.raw", "wb") as file:
                for array in boxes[number][1].values():
                    file.write(array.data)
                file.flush()
                os.fsync(file.fileno())

        start_s = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(put, range(len(boxes))))
        elapsed_s = time.perf_counter() - start_s
        if check == "verify":
            for number, (_, arrays) in enumerate(boxes):
                read = np.fromfile(folder / f"{number}.raw", dtype).reshape(fields, side, side, side)
                assert all(np.array_equal(one, other) for one, other in zip(read, arrays.values(), strict=True))
    elif writer.startswith("raddle"):
        import raddle.idx

        order = "hz" if "HZ order" in writer else "rows"
        sync = not writer.endswith("no sync")
        given = [raddle.idx.Box(start, arrays) for start, arrays in boxes]
        start_s = time.perf_counter()
        raddle.idx.write(folder / "a.idx", given, shape=(whole,) * 3, compress="none", order=order, sync=sync)
        elapsed_s = time.perf_counter() - start_s
        for start, arrays in boxes if check == "verify" else ():
            for name, array in arrays.items():
                inside = [slice(at, at + side) for at in start]
                assert np.array_equal(raddle.idx.read(folder / "a.idx", name, box=inside), array)
    else:
        os.environ.setdefault("VISUS_DISABLE_WRITE_LOCK", "1")
        import OpenVisus

        field = OpenVisus.Field("f0", dtype)
        field.default_layout = "hzorder" if "HZ order" in writer else ""
        ((_, arrays),) = boxes
        start_s = time.perf_counter()
        dataset = OpenVisus.CreateIdx(url=str(folder / "a.idx"), dims=[whole] * 3, fields=[field], bitsperblock=15)
        dataset.write(arrays["f0"])
        for path in folder.rglob("*.*") if writer.endswith("fsync") else ():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        elapsed_s = time.perf_counter() - start_s
        if check == "verify":
            assert np.array_equal(OpenVisus.LoadDataset(str(folder / "a.idx")).read(), arrays["f0"])
    print(json.dumps({"elapsed_s": elapsed_s}))
    return 0


def table(report):
    machine = report["machine"]
    lines = [f"# Writing IDX, {report['date']}", "",
             f"Commit {report['commit']}; {machine['cores']} cores, {machine['cpu']}; writers interleaved, raw blocks, read "
             "back first; medians. OpenVisus without fsync and raddle without sync leave files in the page cache, the others wait for the disk.", "",
             "| task | writer | s | MB/s | of raw |", "|---|---|---|---|---|"]
    for task, found in report["tasks"].items():
        times = {writer: [run["elapsed_s"] for run in runs] for writer, runs in found["runs"].items()}
        for writer, of_writer in times.items():
            share = statistics.median(a / b for a, b in zip(times[BOXED[0]], of_writer, strict=True))
            median = statistics.median(of_writer)
            lines.append(f"| {task} | {writer} | {median:.4f} | {found['len_bytes'] / median / 1e6:.0f} | {share:.0%} |")
    lines += ["", "OpenVisus's time divided by that of the equivalent raddle writer; median and range over the rounds.", "",
              "| task | writers | times | from | to |", "|---|---|---|---|---|"]
    for task, found in report["tasks"].items():
        for ours, theirs in LIKE.items() if WHOLE[-1] in found["runs"] else ():
            pairs = zip(found["runs"][ours], found["runs"][theirs], strict=True)
            times = [other["elapsed_s"] / own["elapsed_s"] for own, other in pairs]
            lines.append(f"| {task} | {ours} | {statistics.median(times):.1f} | {min(times):.1f} | {max(times):.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
