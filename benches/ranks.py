"""Measures merges by two ranks of one thread, by one rank of two threads, and without a launcher.

Needs a raddle with MPI (`cargo build --release --package raddle-cli --features mpi`). Contenders are interleaved; their
outputs must be the same bytes, and the first is compared with its inputs before a time counts.

    python benches/ranks.py [--workload wide] [--rounds 5] [--compress balanced] [--out FOLDER]
"""

import argparse
import datetime
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import HERE, MEMORY, RADDLE, inputs_of, machine, timed

# Open MPI requires these to run as root; other launchers ignore them.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="wide")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compress", default="balanced")
    parser.add_argument("--mpirun", default="mpirun --bind-to none")
    parser.add_argument("--inputs", type=Path, default=Path(tempfile.gettempdir()) / "raddle-bench")
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        inputs, output = inputs_of(options.workload, options.inputs), Path(folder) / "output.h5"
        merge = (f"{RADDLE} merge {' '.join(map(str, inputs))} -o {output} --memory {MEMORY} "
                 f"--compress {options.compress} --progress never -q")
        runs = {
            "2 threads, no launcher": (f"{merge} --jobs 2", []),
            "1 rank x 2 threads": (f"{options.mpirun} -n 1 {merge} --jobs 2", []),
            "2 ranks x 1 thread": (f"{options.mpirun} -n 2 {merge} --jobs 1", []),
        }
        digests = set()
        for turn in range(options.rounds):
            for command, found in runs.values():
                output.unlink(missing_ok=True)
                found.append(timed(command)["wall_s"])
                if turn == 0:
                    digests.add(hashlib.sha256(output.read_bytes()).hexdigest())
            if turn == 0:
                subprocess.run([sys.executable, HERE / "compare.py", output, *inputs], check=True, capture_output=True)
    if len(digests) > 1:
        sys.exit("outputs differ")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    report = {"date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(), "machine": machine(),
              "workload": options.workload, "compress": options.compress,
              "walls_s": {name: walls for name, (_, walls) in runs.items()}}
    shown = table(report)
    print(shown)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "raw.json").write_text(json.dumps(report, indent=1) + "\n")
        (options.out / "README.md").write_text(shown)


def table(report):
    walls_s = report["walls_s"]
    reference = statistics.median(walls_s["1 rank x 2 threads"])
    lines = [f"# Ranks and threads, {report['date']}", "",
             f"Commit {report['commit']}; {report['machine']['cores']} cores, {report['machine']['cpu']}; {report['workload']}, "
             f"{report['compress']}; interleaved, identical bytes from all, median of {len(walls_s['1 rank x 2 threads'])} rounds.",
             "", "| | wall (s) | min - max | against 1 rank x 2 threads |", "|---|---|---|---|"]
    for name, walls in walls_s.items():
        wall = statistics.median(walls)
        lines.append(f"| {name} | {wall:.2f} | {min(walls):.2f} - {max(walls):.2f} | {wall / reference:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
