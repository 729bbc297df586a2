#!/usr/bin/env python3
"""Writes the packages of Cargo.lock, with their checksums, to raddle.eb.

    packaging/easybuild/crates.py
    packaging/easybuild/crates.py check   exits with 1 if the file is out of date
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging/easybuild/raddle.eb"


def main() -> int:
    """Writes or checks the lists, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=["write", "check"], default="write")
    arguments = parser.parse_args()
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    packages = [package for package in lock["package"] if "source" in package]
    crates = "".join(f"    ('{package['name']}', '{package['version']}'),\n" for package in packages)
    sums = "".join(f"    {{'{package['name']}-{package['version']}.tar.gz':\n     '{package['checksum']}'}},\n" for package in packages)
    recipe = RECIPE.read_text(encoding="utf-8")
    new = re.sub(r"(?ms)^(crates = \[\n).*?^\]", lambda match: f"{match[1]}{crates}]", recipe)
    new = re.sub(r"(?ms)^(checksums = \[\n[^\n]*\n).*?^\]", lambda match: f"{match[1]}{sums}]", new)
    if arguments.action == "write":
        RECIPE.write_text(new, encoding="utf-8")
    elif new != recipe:
        print("packaging/easybuild/raddle.eb is out of date: run packaging/easybuild/crates.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
