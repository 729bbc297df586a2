#!/usr/bin/env python3
"""Prints the section of a version in CHANGELOG.md, as notes of a release.

    scripts/changelog-section.py 0.1.0
    scripts/changelog-section.py Unreleased

Links to files of the repository become absolute links to the files of that version.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def section(changelog: str, version: str) -> str | None:
    """Returns the lines between the heading of a version and the next one."""
    match = re.search(rf"(?ms)^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog)
    return match[1].strip() if match else None


def absolute_links(text: str, base: str) -> str:
    """Returns a text in which relative links begin with `base`."""
    return re.sub(r"\]\((?![a-z]+:|#)([^)]+)\)", rf"]({base}/\1)", text)


def main() -> int:
    """Prints the section, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    arguments = parser.parse_args()
    text = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), arguments.version)
    if not text:
        print(f"CHANGELOG.md has no section [{arguments.version}], or it is empty", file=sys.stderr)
        return 1
    repository = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["repository"]
    branch = "main" if arguments.version == "Unreleased" else f"v{arguments.version}"
    print(absolute_links(text, f"{repository}/blob/{branch}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
