"""Makes the table of docs/howto/reproduce-the-papers.md: one row per experiment, the paper's words and the local
result.

    python benches/papers.py [occam-2005 ...] [--scale small] [--hdf5 LIBRARY] [--scratch FOLDER] [--keep FOLDER]

Each workload is measured by `raddle tune` with its usual limits (ten minutes at most), or read from
FOLDER/WORKLOAD.json if an earlier run with --keep stored it.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from run import RADDLE

WORDS = {"better": "better", "worse": "worse", "no_effect": "no effect", "cannot_tell": "cannot tell"}


def measured(workload, arguments, folder):
    kept = (arguments.keep or folder) / f"{workload}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        words = [arguments.raddle, "tune", workload, "--scale", arguments.scale, "--scratch", arguments.scratch, "-o",
                 folder / f"{workload}.toml", "--report", kept]
        words += ["--hdf5", arguments.hdf5] if arguments.hdf5 else []
        subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL)
    return json.loads(kept.read_text())


def described(finding):
    """Formats a finding, as `chunk=11x8x40 1.55 (1.43 to 1.77), worse`."""
    name = finding["arm"]["candidate"]["name"]
    fault = finding["arm"]["fault"]
    if fault:
        return f"{name}: {'; '.join(fault.values())}"
    verdict = WORDS[finding["verdict"]]
    if finding.get("alone") not in (None, finding["verdict"]):
        verdict += f" (alone: {WORDS[finding['alone']]})"
    halves = [f"; {half['phase']}{ratio(half['estimate'])}, {WORDS[half['verdict']]}" for half in finding.get("phases", [])]
    return f"{name}{ratio(finding['estimate'])}, {verdict}{''.join(halves)}"


def ratio(estimate):
    """Formats an estimate, as ` 1.55 (1.43 to 1.77)`."""
    if not estimate:
        return ""
    low, high = estimate["interval"]
    return f" {estimate['ratio']:.2f} ({low:.2f} to {high:.2f})"


def table(report):
    elapsed = f"{report['elapsed_s'] / 60:.1f} min"
    scale = "" if report["scale"] == "own" else f" at {report['scale']}"
    lines = [
        f"`{report['workload']}`{scale}, HDF5 {report['hdf5']['version']} ({report['hdf5']['library']}), {report['file_system']['kind']},"
        f" {report['machine']['processor']}, {report['machine']['cores']} cores; {elapsed}.",
        "",
        "| experiment | the paper | here: ratio (95 % interval), verdict |",
        "|---|---|---|",
    ]
    for experiment in report["experiments"]:
        sweep = experiment["sweep"]
        fault = sweep["arms"][0]["arm"]["fault"]
        cells = [f"left out: {'; '.join(fault.values())}"] if fault else [
            # Defaults of cases have no comparison.
            described(finding) for finding in sweep["arms"] if finding["verdict"] or finding["arm"]["fault"]
        ]
        metric = "; processor time" if sweep["metric"] == "cpu_s" else ""
        lines.append(f"| {experiment['name']}{metric} | {experiment['paper'] or '-'} | {'<br>'.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=["occam-2005"])
    parser.add_argument("--scale", default="small")
    parser.add_argument("--hdf5")
    parser.add_argument("--scratch", type=Path, default=Path("."))
    parser.add_argument("--keep", type=Path, help="folder for the reports")
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for workload in arguments.workloads or ["occam-2005"]:
            print(table(measured(workload, arguments, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
