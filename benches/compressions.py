"""Measures what each compression costs: merging, the size of the output, and reading it.

The inputs are those of the workload "wide". Each output is verified against them by the command before its times count, and
all of its columns are read with the package and with h5py. Compressions are interleaved; h5py reads each output once, on
one core, with the filters of hdf5plugin. Needs the optimised package:

    make bench-compressions BENCH_COMPRESSIONS='--rounds 3 --keep FOLDER --out FOLDER'
"""

import statistics
import subprocess
import sys

import hdf5plugin
from python import merged_workload
from run import RADDLE, timed
from session import arguments, begun, environment_with, folder_and_package, keep, result_of, touch_memory

CHOICES = ("fast", "balanced", "small", "zstd:1", "zstd", "zstd:9", "lz4", "none")
TASK = "columns of the merged file"
TOUCHED_LEN_BYTES = 2 << 30


def main():
    options = arguments(__doc__, (), ("--keep", "folder for the generated files (default: temporary)"))
    report = begun()
    with folder_and_package(options) as (folder, package):
        inputs, _ = merged_workload(folder)
        environment = environment_with(package) | {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH}
        found = {choice: {"merge": [], "read": []} for choice in CHOICES}
        for turn in range(options.rounds):
            for choice in CHOICES[turn:] + CHOICES[:turn]:
                measure(choice, found[choice], inputs, folder / "one.h5", environment)
        (folder / "one.h5").unlink()
        report["tasks"]["compressions"] = found
    keep(report, table(report), options.out)
    return 0


def measure(choice, found, inputs, output, environment):
    """Adds the times of one merge and one read; the first time also verifies, and reads with h5py."""
    output.unlink(missing_ok=True)
    words = " ".join(map(str, inputs))
    touch_memory(TOUCHED_LEN_BYTES)
    found["merge"].append(timed(f"{RADDLE} merge {words} -o {output} --compress {choice} --progress never -q"))

    def read(reader):
        touch_memory(TOUCHED_LEN_BYTES)
        return result_of("python.py", (reader, TASK, output, "dropped"), environment)

    if len(found["merge"]) == 1:
        subprocess.run([RADDLE, "verify", output, "--against", *inputs, "-q"], check=True)
        found["output_bytes"] = output.stat().st_size
        found["h5py"] = read("h5py")
    found["read"].append(read("raddle"))
    print(f"{choice}: {found['merge'][-1]['wall_s']:.2f} s, read in {found['read'][-1]['elapsed_s']:.2f} s", flush=True)


def table(report):
    machine, found = report["machine"], report["tasks"]["compressions"]
    rounds = len(found[CHOICES[0]]["merge"])
    lines = [
        f"# Compressions, {report['date']}",
        "",
        f"Commit {report['commit']}; {machine['cores']} cores, {machine['cpu']}; medians of {rounds} rounds, h5py once.",
        "",
        "| `--compress` | merge (s) | output (MB) | read with raddle.open (s) | with h5py (s) |",
        "|---|---|---|---|---|",
    ]
    for choice, one in found.items():
        merge_s = statistics.median(run["wall_s"] for run in one["merge"])
        read_s = statistics.median(run["elapsed_s"] for run in one["read"])
        name = f"`{choice}`" + (" (default)" if choice == "balanced" else "")
        lines.append(f"| {name} | {merge_s:.1f} | {one['output_bytes'] / 1e6:.0f} | {read_s:.2f} | {one['h5py']['elapsed_s']:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
