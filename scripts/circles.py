#!/usr/bin/env python3
"""Finds modules of a crate that use each other, directly or through others. Exits with 1 if any are not listed here (`make check`).

A module may use its ancestors, because a folder's own module holds what its children share. Tests and re-exports do not count.

    scripts/circles.py          checks all crates
    scripts/circles.py CRATE…   shows all circles of these crates, with the items that tie them
"""

import re
import sys
from pathlib import Path

CRATES = Path("crates")
# Pairs that are one thing in two files.
ALLOWED = [
    # A reader of values that needs the numbers of selected elements reads them with another reader of values.
    {"merge::write::picking", "merge::write::values"},
    # The work of a merge, and the part of it that reads file by file on behalf of other ranks.
    {"merge::write::reading::files", "merge::write::tiles"},
    # Tiles that are regrouped, and the scratch file that they go through.
    {"merge::write::regrouping::scratch", "merge::write::regrouping::tiles"},
]
USE = re.compile(r"^\s*use\s+([^;]+);", re.MULTILINE)
REEXPORT = re.compile(r"^\s*pub(?:\([^)]*\))?\s+use\s+([^;]+);", re.MULTILINE)
TESTS = re.compile(r"^#\[cfg\((?:all\()?test.*\n(?:#.*\n)*\s*mod\s", re.MULTILINE)
PATH = re.compile(r"\b((?:[a-z_0-9]+)(?:::[A-Za-z_0-9]+)+)")
Module = tuple[str, ...]


class Crate:
    """Modules of a crate, and the items that each uses of others."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        source = folder / "src"
        paths = {self._module(path.relative_to(source)): path for path in sorted(source.rglob("*.rs"))}
        self.texts = {module: _without_tests(path) for module, path in paths.items() if "tests" not in module}
        self.reexports = {
            (module, item): target
            for module, text in self.texts.items()
            for path in _paths_of(REEXPORT, text)
            for target, item in [self._resolve(module, path)]
            if target not in (None, module)
        }
        self.uses = {module: self._uses(module, text) for module, text in self.texts.items()}

    @staticmethod
    def _module(path: Path) -> Module:
        parts = path.with_suffix("").parts
        return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts

    def _resolve(self, module: Module, path: str) -> tuple[Module | None, str]:
        """Returns the module that a path begins with, and the item in it."""
        parts = path.split("::")
        base: Module = module
        if parts[0] in ("crate", "self", "super"):
            base = () if parts[0] == "crate" else module
            while parts and parts[0] in ("crate", "self", "super"):
                base = base[:-1] if parts[0] == "super" else base
                parts = parts[1:]
        elif (*module, parts[0]) not in self.texts:
            return None, ""
        full = (*base, *parts)
        end = next((end for end in range(len(full), -1, -1) if full[:end] in self.texts), None)
        if end is None:
            return None, ""
        return full[:end], full[end] if end < len(full) else "*"

    def _uses(self, module: Module, text: str) -> dict[Module, set[str]]:
        paths = _paths_of(USE, text)
        imported = {path.split("::")[-1]: path for path in paths}
        for match in PATH.finditer(USE.sub("", REEXPORT.sub("", text))):
            first, rest = match[1].split("::", 1)
            if first in ("crate", "self", "super") or (*module, first) in self.texts:
                paths.append(match[1])
            elif first in imported:
                paths.append(f"{imported[first]}::{rest}")
        uses: dict[Module, set[str]] = {}
        for path in paths:
            target, item = self._resolve(module, path)
            while (target, item) in self.reexports:
                target, item = self.reexports[target, item], item
            if target is not None and module[: len(target)] != target:
                uses.setdefault(target, set()).add(item)
        return uses

    def circles(self) -> list[set[Module]]:
        """Returns the sets of modules that all use each other (Tarjan's strongly connected components)."""
        numbers: dict[Module, int] = {}
        lowest: dict[Module, int] = {}
        stack: list[Module] = []
        found = []

        def visit(module: Module) -> None:
            numbers[module] = lowest[module] = len(numbers)
            stack.append(module)
            for other in self.uses[module]:
                if other not in numbers:
                    visit(other)
                if other in stack:
                    lowest[module] = min(lowest[module], lowest[other])
            if lowest[module] == numbers[module]:
                at = stack.index(module)
                if len(stack) > at + 1:
                    found.append(set(stack[at:]))
                del stack[at:]

        for module in self.uses:
            if module not in numbers:
                visit(module)
        return found


def _without_tests(path: Path) -> str:
    text = TESTS.split(path.read_text(encoding="utf-8"))[0]
    return re.sub(r"//[^\n]*", "", text)


def _paths_of(pattern: re.Pattern[str], text: str) -> list[str]:
    return [path for match in pattern.finditer(text) for path in _expand(match[1])]


def _expand(tree: str) -> list[str]:
    """Returns the paths of a tree of imports, such as `a::{b, c::{d, e}}`."""
    match = re.match(r"(.*?)\{(.*)\}$", tree.strip(), re.DOTALL)
    if not match:
        path = re.sub(r"\s+as\s+\w+$", "", tree.strip())
        return [path.removesuffix("::self")]
    front, depth, parts = match[1], 0, [""]
    for character in match[2]:
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [path for part in parts if part.strip() for path in _expand(front + part.strip())]


def main() -> int:
    asked = sys.argv[1:]
    sys.setrecursionlimit(10_000)
    code = 0
    for folder in sorted(path for path in CRATES.iterdir() if (path / "src").is_dir()):
        if asked and folder.name not in asked:
            continue
        crate = Crate(folder)
        for circle in crate.circles():
            names = {"::".join((crate.name, *module)) for module in circle}
            if not asked and names in ALLOWED:
                continue
            code = 1
            print(f"modules that use each other: {', '.join(sorted(names))}")
            for module in sorted(circle):
                for other in sorted(circle & crate.uses[module].keys()):
                    items = ", ".join(sorted(crate.uses[module][other]))
                    print(f"  {'::'.join(module)} -> {'::'.join(other)}: {items}")
    return code


if __name__ == "__main__":
    sys.exit(main())
