"""Compares raddle's predictions for merges with the actual sizes, memory and times, over the sets of files of
corpora.py.

Each round runs `raddle plan --json` and then `raddle merge` with the same inputs and options, and compares the size of
the output, the memory of buffers and the wall time. The table has the medians of the rounds. The exit status is 1 if a
prediction misses by more than LIMITS allows. The prediction in the report of the merge, from a smaller sample, has the
same limits.

    python benches/prediction.py --folder DATA [--corpora csr texts] [--rounds 3] [--options '-c balanced' '-c none']
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from corpora import CORPORA, RADDLE, inputs_of

LIMITS = {"size": 0.15, "buffers": 0.30, "time": 0.30}
"""How far a prediction may be from the truth, as a share of the truth."""
UNITS = {"size": 2**20, "buffers": 2**20, "time": 1.0}
SHORT_S = 2.0
"""Longest time in seconds of a merge that is predicted to be short."""


def raddle(binary, *arguments):
    """Runs raddle; returns its output and its resource usage."""
    command = [str(binary), *map(str, arguments), "--progress", "never"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"failed: {shlex.join(command)}")
    return printed, usage


def predictions(predicted):
    """Returns the predicted quantities; None for those that raddle reports as unknown."""
    size = predicted["stored_len_bytes"] + predicted["metadata_len_bytes"]
    return {
        "size": None if predicted["size_error"] > LIMITS["size"] else size,
        "buffers": predicted["memory_len_bytes"],
        "time": predicted["elapsed_s"],
        "is short": predicted["is_short"],
    }


def measured(binary, inputs, options, folder):
    """Runs one round: predictions of `plan` and of `merge`, the actual values, and the processor time of both
    commands."""
    printed, plan_usage = raddle(binary, "plan", *inputs, "--json", *options)
    output, report = folder / "merged.h5", folder / "report.json"
    output.unlink(missing_ok=True)
    _, usage = raddle(binary, "merge", *inputs, "-o", output, "-q", "--report", report, *options)
    report = json.loads(report.read_text())
    truth = {
        "size": output.stat().st_size,
        "buffers": report["memory"]["budget_peak_bytes"],
        "time": report["elapsed_s"],
    }
    spent = {"plan": plan_usage.ru_utime + plan_usage.ru_stime, "merge": usage.ru_utime + usage.ru_stime}
    return {"plan": predictions(json.loads(printed)["predicted"]), "merge": predictions(report["prediction"]),
            "truth": truth, "cpu_s": spent}


def judged(rounds, command, quantity):
    """Returns the median ratio of prediction to truth (None: unknown in half of the rounds), and whether it is
    acceptable."""
    if quantity == "time" and any(one[command]["is short"] and one["truth"]["time"] > SHORT_S for one in rounds):
        return SHORT_S, False
    given = [one for one in rounds if one[command][quantity] is not None]
    if len(given) * 2 <= len(rounds):
        return None, True
    ratio = statistics.median(one[command][quantity] / max(one["truth"][quantity], 1e-9) for one in given)
    return ratio, abs(ratio - 1) <= LIMITS[quantity]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the corpora, generated if missing")
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    parser.add_argument("--corpora", nargs="+", choices=[corpus.name for corpus in CORPORA], metavar="NAME")
    parser.add_argument("--options", nargs="+", default=["-j 2"], help="options of plan and merge, one set per argument")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    missed = []
    print("predicted / taken; from the merge's report in parentheses; '?': unknown\n")
    print("| corpus | options | " + " | ".join(LIMITS) + " | CPU plan / merge, s |")
    print("|---" * (len(LIMITS) + 3) + "|")
    for corpus in CORPORA:
        if arguments.corpora and corpus.name not in arguments.corpora:
            continue
        inputs = inputs_of(corpus, arguments.folder)
        for options in arguments.options:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                rounds = [measured(arguments.raddle, inputs, shlex.split(options), Path(folder))
                          for _ in range(arguments.rounds)]
            cells = []
            for quantity, unit in UNITS.items():
                ratios = []
                for command in ["plan", "merge"]:
                    ratio, is_right = judged(rounds, command, quantity)
                    is_short = quantity == "time" and all(one[command]["is short"] for one in rounds)
                    known = f"< {SHORT_S:.0f} s" if is_short else "?" if ratio is None else f"{ratio:.2f}"
                    ratios.append(known + ("" if is_right else " **missed**"))
                    if not is_right:
                        missed.append(f"{corpus.name} {options}: {quantity} of {command}: {ratio:.2f}")
                truth = statistics.median(found["truth"][quantity] for found in rounds) / unit
                cells.append(f"{ratios[0]} ({ratios[1]}) of {truth:.{2 if unit == 1.0 else 1}f}")
            spent = [statistics.median(found["cpu_s"][command] for found in rounds) for command in ["plan", "merge"]]
            print(f"| {corpus.name} | {options} | {' | '.join(cells)} | {spent[0]:.2f} / {spent[1]:.2f} |", flush=True)
    if missed:
        sys.exit("\npredictions that missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
