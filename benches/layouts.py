"""Fills the table of sizes and speeds of docs/reference/event-layouts.md.

The same blobs, 10,000 events of 21 products, are written in every layout and read back, with one thread each. The
layouts are interleaved over `--rounds` rounds, and the table has the medians. Needs the optimised package:

    make bench-layouts
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from events import run
from run import HERE, RADDLE, machine
from session import arguments, environment_with, package_with

PAGE = HERE.parent / "docs/reference/event-layouts.md"
MARKS = ("<!-- measured -->", "<!-- /measured -->")
EVENTS, PRODUCTS = 10_000, 21
# Options of the command for each layout.
LAYOUTS = {
    "`columns`": ["--layout", "columns"],
    "`columns -c none`": ["--layout", "columns", "-c", "none"],
    "`product`": ["--layout", "product"],
    "`event`": ["--layout", "event"],
    "`batch`": ["--layout", "batch"],
    "`batch -c none`": ["--layout", "batch", "-c", "none"],
    "`event --compat cce --codec zstd:3`": ["--layout", "event", "--compat", "cce", "--codec", "zstd:3"],
    "`batch --compat cce --codec zstd:3 --choice batch`": ["--layout", "batch", "--compat", "cce", "--codec", "zstd:3", "--choice", "batch"],
    "`pds --codec zstd:3`": ["--layout", "pds", "--codec", "zstd:3"],
    "`pds --codec none`": ["--layout", "pds", "--codec", "none"],
}


def main():
    options = arguments(__doc__, ("-",) * 4, ("--folder", "folder on the file system to write to (default: temporary)"))
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        source = folder / "source.pds"
        environment = environment_with(package_with(options.core, folder))
        run("make", "stream", f"{PRODUCTS}x{EVENTS}", source, environment)
        times = {layout: ([], []) for layout in LAYOUTS}
        for _ in range(options.rounds):
            for layout, chosen in LAYOUTS.items():
                output = folder / f"{list(LAYOUTS).index(layout)}.h5"
                output.unlink(missing_ok=True)
                writing, reading = times[layout]
                writing.append(timed("convert", source, "-o", output, "--raw", *chosen, "-j", "1", "-q"))
                reading.append(timed("inspect", output, "--sizes", "--raw", "-j", "1"))
        rows = [row(layout, folder / f"{number}.h5", times[layout], source) for number, layout in enumerate(LAYOUTS)]
    page = PAGE.read_text()
    before, rest = page.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    heading = [f"Measured with `make bench-layouts` on {machine()['cpu']}, one thread, warm cache: {EVENTS:,} events of {PRODUCTS} products.",
               "", "| layout | MB | writing, MB/s | reading, MB/s |", "|---|---|---|---|"]
    PAGE.write_text(before + "\n".join([MARKS[0], *heading, *rows, MARKS[1]]) + after)
    print("\n".join(rows))
    return 0


def timed(*command):
    start_s = time.perf_counter()
    subprocess.run([RADDLE, "events", *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start_s


def row(layout, output, times, source):
    """Formats a row of the table; rates are of the bytes of the uncompressed stream."""
    mb = source.stat().st_size / 1e6
    rates = " | ".join(f"{mb / statistics.median(each):.0f}" for each in times)
    return f"| {layout} | {output.stat().st_size / 1e6:.1f} | {rates} |"


if __name__ == "__main__":
    sys.exit(main())
