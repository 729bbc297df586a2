#!/usr/bin/env python3
"""Keeps the version of raddle, its oldest compiler, and the address of its repository, the same in all files that state them.

    scripts/versions.py                  prints where they are
    scripts/versions.py check            exits with 1 if a file states another version, compiler or repository than Cargo.toml
    scripts/versions.py check --release  also requires a dated section in CHANGELOG.md and the same date in CITATION.cff
    scripts/versions.py set 0.2.0        writes a version to all files
    scripts/versions.py hash SDIST       writes the SHA-256 of a source distribution to the recipes in packaging/
    scripts/versions.py repository URL   writes the address of the repository to all files
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Files with patterns of the places that state the version; the group is the version. Patterns apply to lines.
VERSIONS = {
    "Cargo.toml": [r'^version = "(.+)"$', r'^raddle[a-z0-9-]* = \{ path = .*, version = "(.+)" \}$'],
    "CITATION.cff": [r"^version: (.+)$"],
    "README.md": [r"@software\{raddle, .* version = \{(.+)\}\}"],
    "packaging/conda/recipe.yaml": [r'^  version: "(.+)"$'],
    "packaging/spack/package.py": [r'^    version\("(\d.+?)",', r'^    url = ".*/raddle-(.+)\.tar\.gz"'],
    "packaging/homebrew/raddle.rb": [r"/raddle-(.+)\.tar\.gz"],
    "packaging/easybuild/raddle.eb": [r"^version = '(.+)'$"],
    "packaging/docker/Dockerfile": [r"^ARG RADDLE_VERSION=(.+)$"],
    "packaging/apptainer/raddle.def": [r"^    version=(.+)$"],
}
# The same for the address of the repository.
REPOSITORIES = {
    "Cargo.toml": [r'^repository = "(.+)"$'],
    "pyproject.toml": [r'^Repository = "(.+)"$'],
    "CITATION.cff": [r"^repository-code: (.+)$"],
    "SECURITY.md": [r"<(.+)/security/advisories/new>"],
    ".github/ISSUE_TEMPLATE/config.yml": [r"url: (.+)/security/advisories/new$"],
    "mkdocs.yml": [r"^repo_url: (.+)$"],
    "docs/reference/stability.md": [r"\((.+)/blob/main/CHANGELOG\.md\)"],
    "docs/internals/releasing.md": [r"\(([^()]+)/tree/main/packaging\)", r"All files use `(.+?)`"],
    "packaging/conda/recipe.yaml": [r"^  repository: (.+)$"],
    "packaging/spack/package.py": [r'^    homepage = "(.+)"$'],
    "packaging/homebrew/raddle.rb": [r'^  homepage "(.+)"$'],
    "packaging/easybuild/raddle.eb": [r"^homepage = '(.+)'$"],
    "packaging/docker/Dockerfile": [r'org\.opencontainers\.image\.source="(.+)"'],
    "packaging/apptainer/raddle.def": [r"^    org\.opencontainers\.image\.source (.+)$"],
}
# The same for the oldest compiler that builds raddle.
COMPILERS = {
    "Cargo.toml": [r'^rust-version = "(.+)"$'],
    "README.md": [r"^You need Rust (\S+) or newer"],
    "docs/index.md": [r"^    You need Rust (\S+) or newer"],
    "docs/start/five-minutes.md": [r"needs only Rust (\S+) or newer"],
    "docs/reference/stability.md": [r"^\| Rust, to build it \| ([^;]+); "],
    "packaging/spack/package.py": [r'"rust@(.+):"'],
    "packaging/docker/Dockerfile": [r"^ARG RUST_VERSION=(.+)$"],
    "packaging/apptainer/raddle.def": [r"^From: rust:(.+?)-"],
}
# The same for the SHA-256 of the source distribution.
HASHES = {
    "packaging/conda/recipe.yaml": [r'^      sha256: "([0-9a-f]{64})"$'],
    "packaging/spack/package.py": [r'^    version\("\d.+", sha256="([0-9a-f]{64})"\)$'],
    "packaging/homebrew/raddle.rb": [r'^  sha256 "([0-9a-f]{64})"$'],
    "packaging/easybuild/raddle.eb": [r"^    \{'raddle-%\(version\)s\.tar\.gz': '([0-9a-f]{64})'\},$"],
}


def places(patterns: dict[str, list[str]]) -> Iterator[tuple[str, int, re.Match[str]]]:
    """Yields each place as name of the file, number of the line and match. A pattern without a place is an error."""
    for name, expressions in patterns.items():
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        for expression in expressions:
            found = [(number, match) for number, line in enumerate(lines, 1) if (match := re.search(expression, line))]
            if not found:
                sys.exit(f"scripts/versions.py: {name} has no line like {expression}")
            for number, match in found:
                yield name, number, match


def replace(patterns: dict[str, list[str]], value: str) -> None:
    """Writes `value` to each place."""
    for name, number, match in list(places(patterns)):
        path = ROOT / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = lines[number - 1]
        lines[number - 1] = line[: match.start(1)] + value + line[match.end(1) :]
        path.write_text("".join(lines), encoding="utf-8")


def check(patterns: dict[str, list[str]], what: str) -> tuple[str, int]:
    """Compares the places with the first one. Returns its value, and the number of places that differ."""
    all_places = list(places(patterns))
    expected = all_places[0][2][1]
    wrong = 0
    for name, number, match in all_places:
        if match[1] != expected:
            print(f"{name}:{number}: {what} {match[1]}, but Cargo.toml has {expected}", file=sys.stderr)
            wrong += 1
    return expected, wrong


def check_dates(version: str) -> int:
    """Returns the number of findings about the date of a release."""
    changelog = re.search(
        rf"(?m)^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    )
    citation = re.search(r"(?m)^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if not changelog:
        print(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'", file=sys.stderr)
        return 1
    if not citation or citation[1] != changelog[1]:
        print(f"CITATION.cff lacks 'date-released: {changelog[1]}'", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Runs a command, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("check").add_argument("--release", action="store_true")
    commands.add_parser("set").add_argument("version")
    commands.add_parser("hash").add_argument("sdist", type=Path)
    commands.add_parser("repository").add_argument("url")
    arguments = parser.parse_args()
    if arguments.command == "check":
        version, wrong = check(VERSIONS, "version")
        wrong += check(COMPILERS, "compiler")[1]
        wrong += check(REPOSITORIES, "repository")[1]
        hashes = {match[1] for _, _, match in places(HASHES)}
        if len(hashes) > 1:
            print("the recipes in packaging/ state different SHA-256 of the source distribution", file=sys.stderr)
            wrong += 1
        if 'dynamic = ["version"]' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"):
            print("pyproject.toml states a version of its own; take it from Cargo.toml: dynamic = [\"version\"]", file=sys.stderr)
            wrong += 1
        if arguments.release:
            wrong += check_dates(version)
        return 1 if wrong else 0
    if arguments.command == "set":
        if not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", arguments.version):
            sys.exit(f"scripts/versions.py: {arguments.version} is not a version like 0.2.0")
        replace(VERSIONS, arguments.version)
        replace(HASHES, "0" * 64)
        print("next: cargo update --workspace, scripts/licenses.py, and the date in CHANGELOG.md and CITATION.cff")
    elif arguments.command == "hash":
        replace(HASHES, hashlib.sha256(arguments.sdist.read_bytes()).hexdigest())
    elif arguments.command == "repository":
        replace(REPOSITORIES, arguments.url.removesuffix("/").removesuffix(".git"))
    else:
        for name, number, match in [*places(VERSIONS), *places(COMPILERS), *places(REPOSITORIES)]:
            print(f"{name}:{number}: {match[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
