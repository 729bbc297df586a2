"""Measures `raddle apply --adapt` against unmodified programs.

The cases include programs where HDF5's own chunk cache thrashes, and programs that must not become slower. Each program
is a few lines of h5py, or `row_by_row.c` with Debian's libhdf5, and does not know about raddle. Runs with and without
adapting are interleaved, each first in every other pair, and the files of both must hold the same values. Whole
processes are timed. The ratio is the median over the pairs with its 95 % interval, above 1 where adapting is faster.

    python benches/adapt.py [--rounds 9] [--only NAME ...] [--raddle target/release/raddle]
    python benches/adapt.py --instructions

With `--instructions`, valgrind counts the instructions per dataset, row or write of programs that cannot gain, with and
without adapting: on a machine with other work, clocks do not resolve less than a few percent.
"""

import argparse
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from apply import HERE, SERIAL, instructions, interval
from run import RADDLE, timed

HEAD = "import sys, h5py, numpy as np\nfrom numpy.random import default_rng\n"
# The programs: `write` makes the file that is compared, `read` reads a file that `input` made.
PROGRAMS = {
    "rows": ("8 datasets written row by row, chunks of columns, not compressed", """
values = default_rng(0).random(20000)
with h5py.File(sys.argv[1], "w") as file:
    for step in range(8):
        plane = file.create_dataset(f"step{step}", (100, 20000), chunks=(100, 100), dtype="f8")
        for row in range(100): plane[row] = values + row
"""),
    "rows of one": ("1 dataset written row by row, compressed", """
values = np.round(default_rng(0).random(40000) * 100)
with h5py.File(sys.argv[1], "w") as file:
    plane = file.create_dataset("plane", (400, 40000), chunks=(50, 100), dtype="f8", compression="gzip", compression_opts=1)
    for row in range(0, 400, 5): plane[row:row + 5] = values + row
"""),
    "whole chunks": ("4 datasets written chunk by chunk, 512 KiB each", """
values = default_rng(0).random((256, 256))
with h5py.File(sys.argv[1], "w") as file:
    for step in range(4):
        plane = file.create_dataset(f"step{step}", (4096, 2048), chunks=(256, 256), dtype="f8")
        for row in range(0, 4096, 256):
            for column in range(0, 2048, 256): plane[row:row + 256, column:column + 256] = values
"""),
    "whole large chunks": ("2 datasets written chunk by chunk, 16 MiB each", """
values = default_rng(0).random((1024, 2048))
with h5py.File(sys.argv[1], "w") as file:
    for step in range(2):
        plane = file.create_dataset(f"step{step}", (8192, 2048), chunks=(1024, 2048), dtype="f8")
        for row in range(0, 8192, 1024): plane[row:row + 1024] = values
"""),
    "whole compressed chunks": ("2 datasets written chunk by chunk, gzip", """
values = np.round(default_rng(0).random((256, 256)) * 100)
with h5py.File(sys.argv[1], "w") as file:
    for step in range(2):
        plane = file.create_dataset(f"step{step}", (2048, 2048), chunks=(256, 256), dtype="f8", compression="gzip", compression_opts=1)
        for row in range(0, 2048, 256):
            for column in range(0, 2048, 256): plane[row:row + 256, column:column + 256] = values
"""),
    "append": ("1 dataset that grows by a row at a time, gzip", """
values = np.round(default_rng(0).random(1000) * 100)
with h5py.File(sys.argv[1], "w") as file:
    table = file.create_dataset("table", (0, 1000), maxshape=(None, 1000), chunks=(64, 1000), dtype="f8", compression="gzip", compression_opts=1)
    for row in range(4000):
        table.resize(row + 1, axis=0)
        table[row] = values
"""),
    "contiguous": ("1,000 contiguous datasets of 128 KiB", """
values = default_rng(0).random(16384)
with h5py.File(sys.argv[1], "w") as file:
    for number in range(1000): file[f"d{number}"] = values
"""),
    "small": ("4,000 datasets of 128 bytes with an attribute", """
values = np.arange(16.0)
with h5py.File(sys.argv[1], "w") as file:
    for number in range(4000): file.create_dataset(f"d{number}", data=values).attrs["unit"] = number
"""),
    "many pieces": ("30,000 writes of 1 KiB into chunks of 64 KiB", """
values = np.arange(128.0)
with h5py.File(sys.argv[1], "w") as file:
    line = file.create_dataset("line", (2, 1920000), chunks=(1, 8192), dtype="f8")
    for piece in range(30000): line[piece % 2, piece // 2 * 128:piece // 2 * 128 + 128] = values
"""),
}
READERS = {
    "read rows": ("the 8 datasets of `rows` read row by row", "rows", """
with h5py.File(sys.argv[1], "r") as file:
    print(sum(float(plane[row].sum()) for plane in file.values() for row in range(100)))
"""),
    "read whole": ("the 4 datasets of `whole chunks` read whole", "whole chunks", """
with h5py.File(sys.argv[1], "r") as file: print(sum(float(plane[...].sum()) for plane in file.values()))
"""),
    "open for each": ("4,000 rows read, the dataset opened for each", "append", """
with h5py.File(sys.argv[1], "r") as file: print(sum(float(file["table"][row].sum()) for row in range(4000)))
"""),
}


# The cost of one iteration is the difference between two loop lengths.
COUNTED = {
    "small": ("range(4000)", 100, 300),
    "contiguous": ("range(1000)", 50, 150),
    "append": ("range(4000)", 100, 300),
    "many pieces": ("range(30000)", 500, 1500),
    "whole chunks": ("range(4)", 1, 2),
    "open for each": ("range(4000)", 100, 300),
}


def count(raddle, folder, only):
    """Prints the instructions of one iteration of each loop, and those that adapting adds."""
    variables = subprocess.check_output(shlex.split(f"{raddle} apply --folder {folder}/objects --log none --adapt --emit env"), text=True)
    given = dict(word.split("=", 1) for word in shlex.split(variables) if "=" in word)
    print("| program | instructions, unmodified | added by adapting | ratio |\n|---|---|---|---|")
    for name, (loop, *lengths) in COUNTED.items():
        if only and name not in only:
            continue
        title, *_, code = {**PROGRAMS, **READERS}[name]
        path = folder / f"{'input' if name in READERS else 'output'}.h5"
        if name in READERS:
            subprocess.run([sys.executable, "-c", HEAD + PROGRAMS[READERS[name][1]][1], path], check=True)
        counted = {}
        for length in lengths:
            script = folder / f"{length}.py"
            script.write_text(HEAD + code.replace(loop, f"range({length})"))
            for side, variables in (("plain", {}), ("adapted", given)):
                counted[side, length] = instructions(f"{sys.executable} {script} {path}", variables, folder)
        each = {side: (counted[side, lengths[1]] - counted[side, lengths[0]]) / (lengths[1] - lengths[0]) for side in ("plain", "adapted")}
        added = each["adapted"] - each["plain"]
        print(f"| {title} | {each['plain']:,.0f} | {added:,.0f} | {each['adapted'] / each['plain']:.4f} |", flush=True)


def assert_same(left, right):
    with h5py.File(left) as plain, h5py.File(right) as adapted:
        if sorted(plain) != sorted(adapted) or not all(np.array_equal(plain[name][()], adapted[name][()]) for name in plain):
            sys.exit(f"{left} and {right} differ")


def compare(name, title, commands, rounds, after):
    """Prints one line of a table; `after` checks the outputs of a pair."""
    runs = []
    for turn in range(rounds):
        pair = [None, None]
        for side in [0, 1] if turn % 2 else [1, 0]:
            pair[side] = timed(commands[side])
        after()
        runs.append(pair)
    cells = []
    for what in ["wall_s", "cpu_s"]:
        ratios = [plain[what] / adapted[what] for plain, adapted in runs]
        low, high = interval(ratios)
        medians = [statistics.median(pair[side][what] for pair in runs) for side in (0, 1)]
        cells.append(f"{medians[0]:.3f} | {medians[1]:.3f} | {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})")
    print(f"| {name}: {title} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--raddle", type=Path, default=RADDLE)
    arguments = parser.parse_args()
    if arguments.instructions:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            return count(arguments.raddle, Path(folder).resolve(), arguments.only)
    print("| program | wall (s) | adapted | ratio | CPU (s) | adapted | ratio |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder).resolve()
        adapt = f"{arguments.raddle} apply --folder {folder}/objects --log none --adapt --"
        plain, adapted = folder / "plain.h5", folder / "adapted.h5"

        def both(command, left, right):
            return [f"{command} {left}", f"{adapt} {command} {right}"]

        def written(name, code):
            script = folder / f"{name.replace(' ', '_')}.py"
            script.write_text(HEAD + code)
            return f"{sys.executable} {script}"

        def checked():
            assert_same(plain, adapted)
            for path in [plain, adapted]:
                path.unlink()

        for name, (title, code) in PROGRAMS.items():
            if not arguments.only or name in arguments.only:
                compare(name, title, both(written(name, code), plain, adapted), arguments.rounds, checked)
        for name, (title, of, code) in READERS.items():
            if not arguments.only or name in arguments.only:
                subprocess.run([*written(of, PROGRAMS[of][1]).split(), folder / "input.h5"], check=True)
                command = written(name, code)
                printed = [subprocess.check_output(line.split()) for line in both(command, folder / "input.h5", folder / "input.h5")]
                if printed[0] != printed[1]:
                    sys.exit(f"{name}: what is read differs")
                compare(name, title, both(command, folder / "input.h5", folder / "input.h5"), arguments.rounds, lambda: None)
        if (not arguments.only or "row by row" in arguments.only) and shutil.which("cc"):
            program = folder / "row_by_row"
            subprocess.run(["cc", "-O2", HERE / "row_by_row.c", "-o", program, *SERIAL], check=True)
            title = "an ocean model's field in C, compressed, HDF5 of Debian"
            compare("row by row", title, both(program, plain, adapted), arguments.rounds, checked)


if __name__ == "__main__":
    main()
