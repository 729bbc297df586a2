#!/usr/bin/env python3
"""Writes docs/internals/map.md, every module of every crate, and docs/internals/glossary.md, every public type whose name
is one word. Both show the first sentence of the documentation.

    scripts/map.py          writes the pages
    scripts/map.py --check  exits with 1 if a page is out of date (`make check`)
"""

import argparse
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("docs/internals")
MAP_INTRODUCTION = """# Map of the modules

Made by `scripts/map.py` from the documentation of the modules. Crates are in the order of their dependencies: a crate uses only
crates above it. Inside a crate, a folder is one step of its pipeline.
"""
GLOSSARY_INTRODUCTION = """# Words of the code

Made by `scripts/map.py` from the documentation of the public types whose names are one word. A word may mean something else in
another crate. Aliases of `Result`, and the types of tests, fuzz targets and the demonstration, are left out.
"""
# Crates whose types are not part of raddle's interfaces.
WITHOUT_WORDS = {"testing", "fuzzing", "demo"}
WORD = re.compile(r"pub (?:struct|enum|trait|type) (?!Result\b)([A-Z][a-z0-9]+)\b")


def module_doc(path: Path) -> list[str]:
    """Returns the lines of a module's documentation."""
    lines = itertools.takewhile(lambda line: line.startswith("//!"), path.read_text(encoding="utf-8").splitlines())
    return [line[3:] for line in lines]


def first_sentence(doc: list[str]) -> str:
    """Returns the first sentence of a documentation, as one line of Markdown."""
    lines = []
    for line in doc:
        text = line.strip()
        if not text and lines:
            break
        lines.append(text)
    text = " ".join(lines)
    text = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    match = re.match(r"(.*?[.!])(?: [A-Z`]|$)", text)
    return (match[1] if match else text).replace("|", "\\|")


def holds_modules(folder: Path) -> bool:
    """Whether a folder holds Rust files. Git leaves empty folders behind, which a clone does not have."""
    return any(folder.glob("*.rs"))


def modules(folder: Path, depth: int = 0) -> list[str]:
    """Returns one line per module below `folder`, folders before their files."""
    lines = []
    for path in sorted(folder.iterdir(), key=lambda path: path.stem):
        if holds_modules(path):
            head = next((head for head in (path / "mod.rs", folder / f"{path.name}.rs") if head.exists()), None)
            if head is None:
                continue
            lines.append(f"{'  ' * depth}- **{path.name}/**: {first_sentence(module_doc(head))}")
            lines += modules(path, depth + 1)
        elif path.suffix == ".rs" and path.name not in ("lib.rs", "mod.rs", "main.rs", "tests.rs"):
            if not holds_modules(folder / path.stem):
                lines.append(f"{'  ' * depth}- `{path.stem}`: {first_sentence(module_doc(path))}")
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


def map_page() -> str:
    """Returns the map of the modules."""
    parts = [MAP_INTRODUCTION]
    for crate in crates():
        package = tomllib.loads((crate / "Cargo.toml").read_text())["package"]
        root = crate / "src" / "lib.rs"
        about = first_sentence(module_doc(root)) if root.exists() else package["description"]
        parts.append(f"## {crate.name}\n\n{about}\n")
        parts.append("\n".join(modules(crate / "src")) + "\n")
    return "\n".join(parts)


def words(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the one-word public types of a file with the first sentence of their documentation."""
    doc: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("///"):
            doc.append(line[3:])
        elif word := WORD.match(line):
            yield word[1], first_sentence(doc)
            doc = []
        elif not line or line.startswith("}"):
            doc = []


def glossary_page() -> str:
    """Returns the words of the code."""
    rows = []
    for crate in crates():
        if crate.name in WITHOUT_WORDS:
            continue
        for path in sorted((crate / "src").rglob("*.rs")):
            if path.stem == "tests":
                continue
            place = path.relative_to(crate / "src").with_suffix("")
            parts = place.parent.parts if place.name in ("mod", "lib", "main") else place.parts
            module = "::".join([crate.name, *parts])
            rows += [(word, module, text) for word, text in words(path)]
    lines = [f"| `{word}` | `{module}` | {text} |" for word, module, text in sorted(rows)]
    return "\n".join([GLOSSARY_INTRODUCTION, "| word | module | meaning |", "|---|---|---|", *lines, ""])


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    pages = {FOLDER / "map.md": map_page(), FOLDER / "glossary.md": glossary_page()}
    if parser.parse_args().check:
        outdated = [page for page, text in pages.items() if not page.exists() or page.read_text(encoding="utf-8") != text]
        for page in outdated:
            print(f"{page} is out of date; run scripts/map.py", file=sys.stderr)
        return 1 if outdated else 0
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
