#!/usr/bin/env python3
"""Writes docs/internals/map.md: every module of every crate with the first sentence of its documentation.

    scripts/map.py          writes the page
    scripts/map.py --check  exits with 1 if the page is out of date (`make check`)
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

PAGE = Path("docs/internals/map.md")
INTRODUCTION = """# Map of the modules

Made by `scripts/map.py` from the documentation of the modules. Crates are in the order of their dependencies: a crate uses only
crates above it. Inside a crate, a folder is one step of its pipeline.
"""


def first_sentence(path: Path) -> str:
    """Returns the first sentence of a module's documentation."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//!"):
            break
        text = line[3:].strip()
        if not text and lines:
            break
        lines.append(text)
    text = " ".join(lines)
    text = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    match = re.match(r"(.*?[.!])(?: [A-Z`]|$)", text)
    return (match[1] if match else text).replace("|", "\\|")


def modules(folder: Path, depth: int = 0) -> list[str]:
    """Returns one line per module below `folder`, folders before their files."""
    lines = []
    for path in sorted(folder.iterdir(), key=lambda path: path.stem):
        if path.is_dir():
            head = next((head for head in (path / "mod.rs", folder / f"{path.name}.rs") if head.exists()), None)
            if head is None:
                continue
            lines.append(f"{'  ' * depth}- **{path.name}/**: {first_sentence(head)}")
            lines += modules(path, depth + 1)
        elif path.suffix == ".rs" and path.name not in ("lib.rs", "mod.rs", "main.rs", "tests.rs"):
            if not (folder / path.stem).is_dir():
                lines.append(f"{'  ' * depth}- `{path.stem}`: {first_sentence(path)}")
    return lines


def crates() -> list[Path]:
    """Returns the crates' folders, each after those that it depends on."""
    manifests = {path.parent.name: tomllib.loads(path.read_text()) for path in Path("crates").glob("*/Cargo.toml")}
    needs = {
        name: {
            key.removeprefix("raddle-")
            for key in manifest.get("dependencies", {})
            if key.startswith("raddle") and key.removeprefix("raddle-") in manifests
        }
        for name, manifest in manifests.items()
    }
    ordered: list[str] = []
    while needs:
        ready = sorted(name for name, below in needs.items() if below <= set(ordered))
        if not ready:
            sys.exit(f"crates depend on each other: {', '.join(sorted(needs))}")
        ordered += ready
        for name in ready:
            del needs[name]
    return [Path("crates") / name for name in ordered]


def page() -> str:
    """Returns the whole page."""
    parts = [INTRODUCTION]
    for crate in crates():
        package = tomllib.loads((crate / "Cargo.toml").read_text())["package"]
        root = crate / "src" / "lib.rs"
        parts.append(f"## {crate.name}\n\n{first_sentence(root) if root.exists() else package['description']}\n")
        parts.append("\n".join(modules(crate / "src")) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE} is out of date; run scripts/map.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
