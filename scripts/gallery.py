#!/usr/bin/env python3
"""Runs the command on generated files and writes pages of its reports to a folder, for the gallery of the site.

    scripts/gallery.py COMMAND FOLDER

`make site` does so. The folder gets a page and figures for each report, and `index.json`, from which `scripts/site_hooks.py` writes
the list. Takes half a minute and 150 MB of temporary disk space.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """A page of the gallery."""

    name: str
    title: str
    text: str
    # Lines of a shell, as the gallery shows them.
    command: str
    # A figure of the page, relative to the folder.
    figure: str


REPORTS = [
    Report(
        "merge",
        "A merge and its verification",
        "Time of each stage, memory, predictions and what came true, where the bytes of the file are, the sizes of its chunks, how well "
        "its datasets compress, and that every value was compared with the inputs.",
        "raddle merge run11981 -o run11981.h5 --report merged.json\n"
        "raddle verify run11981.h5 --against run11981 --report verified.json\n"
        "raddle report merged.json verified.json -o merge.html --svg merge",
        "merge/1-sizes.svg",
    ),
    Report(
        "compared",
        "Three compressions compared",
        "Several reports on one page, with a table of them at the top.",
        "for how in balanced fast zstd; do raddle merge run11981 -o $how.h5 --compress $how --report $how.json; done\n"
        "raddle report balanced.json fast.json zstd.json -o compared.html --svg compared",
        "compared/1-ratios.svg",
    ),
    Report(
        "bench",
        "HDF5 settings on one machine",
        "`raddle bench` repeats an experiment of a paper in interleaved runs, and gives a verdict only if the interval of the ratio allows "
        "one. This is the smallest scale.",
        "raddle bench occam-2005 --only filters --scale tiny --blocks 5 --report bench.json\n"
        "raddle report bench.json -o bench.html --svg bench",
        "bench/1-sweep.svg",
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="raddle-gallery-") as work:
        # By its name, which the pages show.
        programs = Path(work) / "bin"
        programs.mkdir()
        (programs / "raddle").symlink_to(arguments.command.resolve())
        environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "XDG_CONFIG_HOME": work, "LC_ALL": "C.UTF-8"}
        generate = "raddle demo --workload small --only-generate --keep run11981"
        for commands in (generate, *(report.command for report in REPORTS)):
            subprocess.run(["sh", "-ec", commands], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
        for report in REPORTS:
            shutil.copy(Path(work) / f"{report.name}.html", arguments.folder)
            shutil.copytree(Path(work) / report.name, arguments.folder / report.name)
            if not (arguments.folder / report.figure).exists():
                raise SystemExit(f"{report.name}: has no figure {report.figure}")
    listed = json.dumps([asdict(report) for report in REPORTS], indent=1)
    (arguments.folder / "index.json").write_text(listed, encoding="utf-8")


if __name__ == "__main__":
    main()
