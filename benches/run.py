"""Measures raddle against an h5py loop (and any other command) on generated NOvA-like workloads.

Contenders are interleaved in one process group, so that other load slows all of them; every contender's output is
verified against the inputs before its time counts. Medians, ratios and peak memory are printed and kept under
benches/runs/DATE-machine/ as README.md and raw.json.

    python benches/run.py --workloads small wide nova [--rounds 3] [--contender 'NAME=COMMAND {inputs} {output}']
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RADDLE = HERE.parent / "target/release/raddle"
MEMORY = "512MiB"


def contenders(extra):
    merge = f"{RADDLE} merge {{inputs}} -o {{output}} --memory {MEMORY} --progress never -q"
    found = {
        "h5py loop": f"{sys.executable} {HERE / 'h5py_loop.py'} {{output}} {{inputs}}",
        "raddle balanced": f"{merge} --compress balanced --jobs 2",
        "raddle fast": f"{merge} --compress fast --jobs 2",
        "raddle zstd": f"{merge} --compress zstd --jobs 2",
        "raddle balanced, 1 job": f"{merge} --compress balanced --jobs 1",
    }
    for number, command in enumerate(extra, 1):
        name, equals, rest = command.partition("=")
        found.update({name: rest} if equals and "{" not in name else {f"contender {number}": command})
    return found


# The peak memory of a process includes that of the one that starts it, so a small process starts the command.
TIMER = """
import json, os, shlex, subprocess, sys, time
started = time.monotonic()
process = subprocess.Popen(shlex.split(sys.argv[1]), stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
elapsed_s = time.monotonic() - started
if os.waitstatus_to_exitcode(status):
    sys.exit(f"failed: {sys.argv[1]}")
found = {"wall_s": elapsed_s, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_rss_bytes": usage.ru_maxrss * 1024}
print(json.dumps(found))
"""


def timed(command):
    """Runs a command; returns wall, user and system seconds and peak resident bytes, including its children."""
    done = subprocess.run([sys.executable, "-S", "-c", TIMER, command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def inputs_of(workload, folder):
    target = folder / workload
    if not target.exists():
        subprocess.run([RADDLE, "demo", "--workload", workload, "--only-generate", "--keep", target, "-q"],
                       check=True)
    return sorted(target.rglob("*.h5"))


def measure(workload, inputs, commands, rounds, folder):
    listed = " ".join(str(path) for path in inputs)
    output = folder / "output.h5"
    results = {name: {"runs": []} for name in commands}
    names = list(commands)
    for turn in range(rounds):
        # Each round starts with a different contender, so that none always follows the same one.
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            output.unlink(missing_ok=True)
            run = timed(commands[name].format(inputs=listed, output=output))
            if "output_bytes" not in results[name]:
                results[name]["output_bytes"] = output.stat().st_size
                verify = [sys.executable, HERE / "compare.py", output, *inputs]
                results[name]["verified"] = subprocess.run(verify, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            results[name]["runs"].append(run)
            print(f"{workload}: {name}: {run['wall_s']:.2f} s", flush=True)
    return {"input_bytes": sum(path.stat().st_size for path in inputs), "inputs": len(inputs), "contenders": results}


def scan(inputs, rounds):
    """Times reading all metadata and chunk indexes: raddle against libhdf5's own calls, alternating."""
    libhdf5 = HERE.parent / "target/release/examples/scan_with_libhdf5"
    times = {"libhdf5": [], "raddle": []}
    for _ in range(rounds):
        reported = subprocess.run([libhdf5, *inputs], check=True, capture_output=True, text=True).stdout
        times["libhdf5"].append(json.loads(reported)["elapsed_s"])
        reported = subprocess.run([RADDLE, "plan", *inputs, "--json"], check=True, capture_output=True, text=True).stdout
        times["raddle"].append(json.loads(reported)["scan_s"])
    return times


def table(report):
    lines = []
    for workload, result in report["workloads"].items():
        lines += [f"## {workload}", "", f"{result['inputs']} files, {result['input_bytes'] / 1e6:.1f} MB.", ""]
        lines += ["| contender | wall median (s) | min - max | CPU (s) | peak RSS (MB) | output (MB) | h5py loop / this |"]
        lines += ["|---|---|---|---|---|---|---|"]
        walls = {name: [run["wall_s"] for run in found["runs"]] for name, found in result["contenders"].items()}
        for name, found in result["contenders"].items():
            ratio = statistics.median(a / b for a, b in zip(walls["h5py loop"], walls[name]))
            cpu = statistics.median(run["cpu_s"] for run in found["runs"])
            peak = max(run["peak_rss_bytes"] for run in found["runs"])
            lines.append(f"| {name} | {statistics.median(walls[name]):.2f} | {min(walls[name]):.2f} - {max(walls[name]):.2f} "
                         f"| {cpu:.1f} | {peak / 1e6:.0f} | {found['output_bytes'] / 1e6:.1f} | {ratio:.1f} |")
        if "scan" in result:
            medians = {name: statistics.median(times) for name, times in result["scan"].items()}
            ratio = statistics.median(a / b for a, b in zip(*result["scan"].values()))
            lines += ["", f"Scan of all metadata and chunk indexes: libhdf5 {medians['libhdf5']:.3f} s, raddle "
                      f"{medians['raddle']:.3f} s, ratio {ratio:.1f}."]
        lines.append("")
    return "\n".join(lines)


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(), "load_before": os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", default=["small"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contender", action="append", default=[])
    parser.add_argument("--keep", type=Path, help="folder for the generated inputs (default: temporary)")
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    options = parser.parse_args()
    commands = contenders(options.contender)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout
    report = {"date": datetime.date.today().isoformat(), "commit": commit.strip(), "machine": machine(),
              "commands": {name: command.replace(str(HERE.parent) + "/", "") for name, command in commands.items()},
              "workloads": {}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for workload in options.workloads:
            inputs = inputs_of(workload, folder)
            report["workloads"][workload] = measure(workload, inputs, commands, options.rounds, folder)
            if workload == "nova":
                report["workloads"][workload]["scan"] = scan(inputs, options.rounds)
    cpu = report["machine"]["cpu"].split("@")[0]
    name = "-".join("".join(letter if letter.isalnum() else " " for letter in cpu).lower().split())[:40]
    out = options.out or HERE / "runs" / f"{report['date']}-{name}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "raw.json").write_text(json.dumps(report, indent=1) + "\n")
    head = [f"# Benchmark of {report['date']}", "", f"Commit {report['commit']}; {report['machine']['cores']} cores, "
            f"{report['machine']['cpu']}; contenders interleaved, warm cache, outputs verified with h5py.", "", "Commands:", ""]
    head += [f"- {name}: `{command}`" for name, command in report["commands"].items()]
    (out / "README.md").write_text("\n".join(head) + "\n\n" + table(report))
    print(table(report))
    print(f"kept in {out}")


if __name__ == "__main__":
    main()
