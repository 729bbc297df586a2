"""Code shared by the measurements of the package: their options, and the report that they keep."""

import argparse
import contextlib
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import HERE, machine

CORE = HERE.parent / "target/release/lib_core.so"


def arguments(description, one, where, **more):
    """Parses the options of a measurement. ``one`` names the arguments of a single run, if the program has such runs,
    ``where`` is a folder option and its help, and ``more`` maps the names of string options to their helps."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(where[0], type=Path, help=where[1])
    for name, text in more.items():
        parser.add_argument(f"--{name}", default="", help=text)
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    parser.add_argument("--core", type=Path, default=CORE, help="compiled part of the package")
    if one:
        parser.add_argument("--one", nargs=len(one), metavar=one, help="for the runs themselves")
    return parser.parse_args()


def begun():
    """Returns a report without tasks."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return {"date": datetime.date.today().isoformat(), "machine": machine(), "commit": commit.stdout.strip(), "tasks": {}}


def keep(report, shown, folder):
    """Prints the table of a report; with a folder, also stores both there."""
    print(shown)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "raw.json").write_text(json.dumps(report, indent=1) + "\n")
        (folder / "README.md").write_text(shown)


def package_with(core, folder):
    """Makes a copy of the package around the optimised compiled part."""
    if not core.exists():
        sys.exit(f"{core} is missing: make bench-python")
    shutil.copytree(HERE.parent / "python/raddle", folder / "package/raddle", ignore=shutil.ignore_patterns("*.so*"))
    shutil.copy(core, folder / "package/raddle/_core.abi3.so")
    return folder / "package"


@contextlib.contextmanager
def folder_and_package(options):
    """Yields the folder of the option ``--keep``, or a temporary one, and a copy of the package."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder, package_with(options.core, Path(temporary))


def result_of(program, words, environment):
    """Runs a measurement of this folder once, with the option ``--one``, and returns the last line that it prints."""
    finished = subprocess.run(
        [sys.executable, HERE / program, "--one", *words], env=environment, capture_output=True, text=True
    )
    if finished.returncode:
        sys.exit(f"{program} --one {' '.join(map(str, words))} failed:\n{finished.stderr}")
    return json.loads(finished.stdout.splitlines()[-1])


def environment_with(package):
    """Returns the environment of runs with the package in this folder. It disables the threads of numpy's BLAS, which
    nothing here needs and which keep the second core busy for a moment after they are started."""
    return {**os.environ, "PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1"}


def own_peak_bytes():
    """Returns the peak memory of this program: `wait4` and `getrusage` report that of the process it was forked from."""
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024


def touch_memory(len_bytes):
    """Writes to memory and frees it. Hosts of virtual machines reclaim memory freed a while ago, in large pieces:
    without this, programs that request large pages would pay for memory freed by the previous one."""
    import numpy as np

    np.ones(len_bytes, np.uint8)


def in_turns(task, writers, rounds, run):
    """Returns the results of `run(writer, "time")` of each round, by writer. Each writer is verified first; then they
    are interleaved, and each round begins with a different one."""
    for writer in writers:
        run(writer, "verify")
    runs = {writer: [] for writer in writers}
    for turn in range(rounds):
        at = turn % len(writers)
        for writer in writers[at:] + writers[:at]:
            runs[writer].append(run(writer, "time"))
            print(f"{task}: {writer}: {runs[writer][-1]['elapsed_s']:.4f} s", flush=True)
    return runs


def table(title, found):
    """Returns a table of contenders. Ratios are medians over the rounds of the first contender's time by another's."""
    walls = {name: [run["wall_s"] for run in one["runs"]] for name, one in found.items()}
    first = next(iter(walls))
    lines = [f"## {title}", "", f"| | wall (s) | min - max | CPU (s) | peak memory (MB) | inputs (MB) | output (MB) | {first} / this |"]
    lines += ["|---" * 8 + "|"]
    for name, one in found.items():
        cpu = statistics.median(run["cpu_s"] for run in one["runs"])
        peak = max(run["peak_rss_bytes"] for run in one["runs"])
        ratio = statistics.median(a / b for a, b in zip(walls[first], walls[name]))
        lines.append(
            f"| {name} | {statistics.median(walls[name]):.2f} | {min(walls[name]):.2f} - {max(walls[name]):.2f} | {cpu:.1f} "
            f"| {peak / 1e6:.0f} | {one['input_bytes'] / 1e6:.0f} | {one['output_bytes'] / 1e6:.0f} | {ratio:.2f} |"
        )
    return "\n".join([*lines, ""])
