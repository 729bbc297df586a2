#!/usr/bin/env python3
"""Checks that wheels for Linux run where their names promise, and are small: scripts/check-wheels.py WHEEL...

Each wheel is checked with auditwheel. Its libraries must be stripped. One line for each wheel states its sizes.
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

MAX_WHEEL_BYTES = 12_000_000
PLATFORM = re.compile(r"(?P<libc>manylinux|musllinux)_(?P<major>\d+)_(?P<minor>\d+)_(?P<cpu>\w+)")


def problems_of(wheel: Path) -> list[str]:
    """Returns what is wrong with a wheel, and prints its sizes."""
    problems = []
    wheel_bytes = wheel.stat().st_size
    if wheel_bytes > MAX_WHEEL_BYTES:
        problems.append(f"{wheel_bytes} bytes; at most {MAX_WHEEL_BYTES} are allowed")
    library_bytes = 0
    with zipfile.ZipFile(wheel) as archive:
        libraries = [entry for entry in archive.infolist() if re.search(r"\.so(\.|$)", entry.filename)]
        for entry in libraries:
            library_bytes += entry.file_size
            with archive.open(entry) as file:
                sections = [section.name for section in ELFFile(file).iter_sections()]
            unstripped = [name for name in sections if name == ".symtab" or name.startswith(".debug")]
            if unstripped:
                problems.append(f"{entry.filename} is not stripped: it has {', '.join(unstripped)}")
    if not libraries:
        problems.append("the wheel has no library")
    print(f"{wheel.name}: {wheel_bytes / 1e6:.1f} MB, libraries {library_bytes / 1e6:.1f} MB unpacked")
    return problems + problems_by_auditwheel(wheel)


def problems_by_auditwheel(wheel: Path) -> list[str]:
    """Returns why a wheel does not run on the platform in its name."""
    # Libraries of this machine do not show what users have.
    command = ["auditwheel", "show", "--json", "--ldpaths", "/nonexistent", str(wheel)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode:
        return [f"auditwheel: {shown.stderr.strip() or shown.stdout.strip()}"]
    report = json.loads(shown.stdout)
    promised = PLATFORM.search(wheel.stem)
    if not promised:
        return ["the name has no platform of the form manylinux_2_28_x86_64"]
    tag, libraries = report["overall_tag"], list(report["external_libs"])
    # The loader of musl is its C library, and regards itself as libc.so. auditwheel expects the name that Alpine gives it.
    if promised["libc"] == "musllinux" and libraries == ["libc.so"]:
        tag = report["sym_tag"]
    found = PLATFORM.fullmatch(tag)
    if not found or found["libc"] != promised["libc"] or found["cpu"] != promised["cpu"] or version(found) > version(promised):
        return [f"auditwheel finds {tag}; libraries: {libraries}; versions of symbols: {report['versioned_symbols']}"]
    print(f"    auditwheel: {tag}")
    return []


def version(platform: re.Match[str]) -> tuple[int, int]:
    """Returns the version of the C library in a platform."""
    return int(platform["major"]), int(platform["minor"])


def main() -> int:
    """Checks all wheels and returns the exit status."""
    if len(sys.argv) < 2:
        print("usage: scripts/check-wheels.py WHEEL...", file=sys.stderr)
        return 2
    status = 0
    for wheel in map(Path, sys.argv[1:]):
        for problem in problems_of(wheel):
            print(f"{wheel.name}: {problem}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
