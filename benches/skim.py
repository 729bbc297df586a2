"""Measures selections of events: `raddle select` against a loop with h5py and numpy, and what `--index` adds to a merge.

The file has a million events with keys, and two tables of 20 columns. h5py reads each column, takes the rows of the
selected events, and writes them with the compression level of raddle's output; the events are found alike. Programs
are interleaved, and the values of both outputs are compared before a time counts. The merge is that of the workload
"wide". Needs the optimised command:

    make bench-skim BENCH_SKIM='--rounds 5 --keep FOLDER --out FOLDER'
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from run import RADDLE, inputs_of, measure, timed
from session import arguments, begun, keep

EVENTS = 1_000_000
COLUMNS = 20
TABLES = {"rec.slc": 4, "rec.trk": 9}
LIMITS = {"0.4 %": 6, "7 %": 3, "60 %": 0.5}
LEVEL = 4


def main():
    options = arguments(__doc__, ("INPUT", "OUTPUT", "LIMIT", "UNUSED"), ("--keep", "folder for the generated files (default: temporary)"))
    if options.one:
        source, output, limit, _ = options.one
        return by_h5py(source, output, float(limit))
    report = begun()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        source = events(folder)
        for share, limit in LIMITS.items():
            report["tasks"][share] = against_h5py(source, folder, limit, options.rounds)
        command = f"{RADDLE} merge {{inputs}} -o {{output}} -q --progress never"
        commands = {"merge": command, "merge --index": f"{command} --index"}
        merged = measure("wide", inputs_of("wide", folder), commands, options.rounds, folder)
        report["tasks"]["index"] = {name: one["runs"] for name, one in merged["contenders"].items()}
    keep(report, shown(report), options.out)
    return 0


def events(folder):
    """Writes the event file, and returns its path."""
    path, plain = folder / "events.h5", folder / "plain.h5"
    if not path.exists():
        random = np.random.default_rng(32)
        with h5py.File(plain, "w") as file:
            file["spill/run"], file["spill/evt"] = np.arange(EVENTS) // 100, np.arange(EVENTS)
            for table, most in TABLES.items():
                event = np.repeat(np.arange(EVENTS), random.integers(0, most, EVENTS))
                file[f"{table}/run"], file[f"{table}/evt"] = event // 100, event
                for column in range(COLUMNS):
                    file[f"{table}/c{column}"] = random.exponential(1, len(event)).astype("f4")
        subprocess.run([RADDLE, "rechunk", plain, "-o", path, "-q", "--progress", "never"], check=True)
        subprocess.run([RADDLE, "keys", "add", path, "--keys", "/spill/run,/spill/evt", "-q"], check=True)
        plain.unlink()
    return path


def by_h5py(source, output, limit):
    """Selects as scripts do that have the keys."""
    with h5py.File(source) as file, h5py.File(output, "w") as out:
        slices = file["rec.slc"]
        selected = np.zeros(len(file["spill/evt"]), bool)
        selected[slices["evt.seq"][()].ravel()[slices["c0"][()] > np.float32(limit)]] = True
        for table in ("spill", *TABLES):
            rows = selected[file[table]["evt.seq"][()].ravel()]
            for name, dataset in file[table].items():
                if not name.startswith("evt."):
                    out.create_dataset(f"{table}/{name}", data=dataset[()][rows], compression="gzip", compression_opts=LEVEL, shuffle=dataset.shuffle)
    return 0


def against_h5py(source, folder, limit, rounds):
    """Runs both in turns; returns the runs and the lengths of their outputs, by program."""
    outputs = {"raddle": folder / "raddle.h5", "h5py": folder / "h5py.h5"}
    commands = {
        "raddle": f"{RADDLE} select {source} --where 'rec.slc: c0 > {limit}' -o {outputs['raddle']} -q --progress never",
        "h5py": f"{sys.executable} {Path(__file__).resolve()} --one {source} {outputs['h5py']} {limit} -",
    }
    runs = {name: [] for name in commands}
    for turn in range(rounds):
        names = list(commands)
        for name in names[turn % 2 :] + names[: turn % 2]:
            outputs[name].unlink(missing_ok=True)
            runs[name].append(timed(commands[name]))
            print(f"c0 > {limit}: {name}: {runs[name][-1]['wall_s']:.2f} s", flush=True)
        if turn == 0:
            compare(outputs["raddle"], outputs["h5py"])
    return {"runs": runs, "output_len_bytes": {name: path.stat().st_size for name, path in outputs.items()}}


def compare(one, other):
    """Ends the program if a dataset of the second file differs in the first."""
    with h5py.File(one) as left, h5py.File(other) as right:
        for table in right:
            for name, dataset in right[table].items():
                if not np.array_equal(left[table][name], dataset):
                    sys.exit(f"{table}/{name} differs")


def shown(report):
    machine = report["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {report['date']}, commit {report['commit']}: {EVENTS:,} events, two tables of "
        f"{COLUMNS} columns; medians.",
        "",
        "| events selected | h5py (s) | raddle (s) | h5py / raddle | peak memory of h5py, raddle (MB) | output of h5py, raddle (MB) |",
        "|---|---|---|---|---|---|",
    ]
    for share in LIMITS:
        found = report["tasks"][share]
        walls = {name: statistics.median(run["wall_s"] for run in runs) for name, runs in found["runs"].items()}
        ratio = statistics.median(a["wall_s"] / b["wall_s"] for a, b in zip(found["runs"]["h5py"], found["runs"]["raddle"], strict=True))
        peaks = {name: max(run["peak_rss_bytes"] for run in runs) / 1e6 for name, runs in found["runs"].items()}
        sizes = {name: size / 1e6 for name, size in found["output_len_bytes"].items()}
        lines.append(
            f"| {share} | {walls['h5py']:.2f} | {walls['raddle']:.2f} | {ratio:.2f} | {peaks['h5py']:.0f}, {peaks['raddle']:.0f} "
            f"| {sizes['h5py']:.1f}, {sizes['raddle']:.1f} |"
        )
    index = report["tasks"]["index"]
    ratios = [b["wall_s"] / a["wall_s"] for a, b in zip(index["merge"], index["merge --index"], strict=True)]
    medians = [statistics.median(run["wall_s"] for run in runs) for runs in index.values()]
    lines += ["", f"Merge of `wide`: {medians[0]:.2f} s, with `--index` {medians[1]:.2f} s: {statistics.median(ratios):.3f} times."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
