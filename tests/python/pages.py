"""Runs the blocks of a page of the documentation in their order, and compares what they print with the page.

    RADDLE=target/release/raddle python tests/python/pages.py docs/stories/physicist.md

writes the outputs and the figures of a run into the page. Without RADDLE, the command is that of the package.

* A ``python`` block runs in one interpreter per page, so names stay. With ``title="NAME"`` it is saved as this file instead.
  A ``text`` block right after it is what it prints.
* A ``console`` block has commands after ``$`` and what each prints, if this is shown, without progress. A line of ``…`` stands for any lines, and
  ``…`` in a line for any text.
* All other blocks are only shown.

Times and rates may differ, and so may sizes and shares by a tenth. A command may fail if the page shows an error or damage.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^```(?P<head>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
FIGURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+\.svg)\)")
# Numbers that differ between runs: times and rates, whatever they are, and sizes and shares, within a tenth.
TIME = re.compile(r"\d[\d.,]*(?: [KMGT]?i?B/s| (?:ns|µs|ms|s|min)\b)")
MEMORY = re.compile(r"(peak memory) \d[\d.,]* [KMG]?i?B")
SIZE = re.compile(r"(\d[\d.,]*)( %| [KMGT]i?B\b| B\b)")
# Lines that a terminal shows as progress bars.
PROGRESS = re.compile(r"^[a-z]+ +(?:\d[\d.,]* .* in )?\d[\d.]* s(?: \(.*\))?\n", re.MULTILINE)
ELIDED = "…"
TOLERANCE = 0.1

# Runs the blocks in the folder of the page, and prints the output of each.
DRIVER = """
import contextlib, io, json, subprocess, sys, traceback
# Classes that the page defines can be pickled, and its functions find the names of the page.
names = {"__name__": "__main__"}
printed = []
for kind, code in json.load(sys.stdin):
    if kind == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(code, "page", "exec"), names)
            except BaseException:
                sys.stderr.write(f"{code}\\n{out.getvalue()}\\n{traceback.format_exc()}")
                sys.exit(1)
        printed.append([0, out.getvalue()])
    else:
        done = subprocess.run(["bash", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        printed.append([done.returncode, done.stdout])
json.dump(printed, sys.stdout)
"""


@dataclass(frozen=True)
class Step:
    """One thing to run, and what the page shows of its output; `None` if the page has no place for it."""

    kind: str
    code: str
    shown: str | None
    # Of the shown output in the page.
    span: tuple[int, int] | None


def blocks(page: str) -> Iterator[tuple[str, str, str, tuple[int, int], int]]:
    """Yields language, header and body of each fenced block, the span of its body, and the end of the block."""
    for match in FENCE.finditer(page):
        head = match["head"].strip()
        yield head.split(" ")[0], head, match["body"], match.span("body"), match.end()


def commands(body: str, start: int) -> Iterator[Step]:
    """Yields the commands of a ``console`` block that begins at `start` of the page."""
    at, code, shown, first = start, None, "", 0
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            if code is not None:
                yield Step("console", code, shown, (first, at))
            code, shown, first = line[2:], "", at + len(line)
        elif code is not None and not shown and code.endswith("\\\n"):
            code, first = code + line, at + len(line)
        elif code is None:
            raise ValueError(f"a console block must begin with a command: {line!r}")
        else:
            shown += line
        at += len(line)
    if code is not None:
        yield Step("console", code, shown, (first, at))


def steps(page: str) -> list[Step]:
    """Returns what the page runs, in its order."""
    found: list[Step] = []
    after_python = -1
    for language, head, body, (start, _), end in blocks(page):
        if language == "python" and (title := TITLE.search(head)):
            found.append(Step("python", f"open({title[1]!r}, 'w').write({body!r})", None, None))
        elif language == "python":
            found.append(Step("python", body, None, None))
            after_python = end
        elif language == "console":
            found.extend(commands(body, start))
        elif language == "text" and after_python >= 0 and not page[after_python : start - len("```text\n")].strip():
            found[-1] = replace(found[-1], shown=body, span=(start, start + len(body)))
    return found


def declare_engine(folder: Path) -> None:
    """Writes the entry points of the package to a folder of modules, where its installation would have them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = folder / "raddle-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: raddle\nVersion: 0\n")
    groups = project["entry-points"].items()
    points = [f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in named.items()) for group, named in groups]
    (about / "entry_points.txt").write_text("\n".join(points))


def run(page: Path, folder: Path) -> list[tuple[Step, int, str]]:
    """Runs the page in `folder` and returns each step with its exit code and its output."""
    found = steps(page.read_text(encoding="utf-8"))
    programs = folder / ".bin"
    programs.mkdir()
    command = f'"{Path(os.environ["RADDLE"]).resolve()}"' if "RADDLE" in os.environ else f'"{sys.executable}" -m raddle'
    for name, words in (("raddle", command), ("python", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o755)
    declare_engine(programs)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{programs}{os.pathsep}{ROOT / 'python'}",
        "XDG_CONFIG_HOME": str(programs),
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "MPLBACKEND": "agg",
        "SOURCE_DATE_EPOCH": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([(step.kind, step.code) for step in found]),
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{page}: a block failed:\n{done.stderr}")
    printed = json.loads(done.stdout)
    return [(step, code, PROGRESS.sub("", text)) for step, (code, text) in zip(found, printed, strict=True)]


def same_line(shown: str, printed: str) -> bool:
    """Returns whether two lines agree, apart from times, widths of columns, and sizes within the tolerance."""

    def parts(line: str) -> tuple[list[float], str]:
        line = TIME.sub("TIME", MEMORY.sub(r"\1 MEMORY", line))
        sizes = [float(number.replace(",", "")) for number, _ in SIZE.findall(line)]
        return sizes, " ".join(SIZE.sub(r"SIZE\2", line).split())

    (shown_sizes, shown_text), (sizes, text) = parts(shown), parts(printed)
    if ELIDED in shown_text:
        return re.fullmatch(".*".join(map(re.escape, shown_text.split(ELIDED))), text) is not None
    near = all(abs(a - b) <= TOLERANCE * max(a, b) for a, b in zip(shown_sizes, sizes, strict=False))
    return shown_text == text and near


def same(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Returns whether the printed lines are those shown; a line of ``…`` stands for any lines, also none."""
    if not shown:
        return not printed
    if shown[0].strip() == ELIDED:
        return any(same(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0]) and same(shown[1:], printed[1:])


def faults(results: Sequence[tuple[Step, int, str]]) -> Iterator[str]:
    """Yields what is not as the page shows it."""
    for step, code, text in results:
        shown = step.shown or ""
        if code != 0 and not re.search("^(error:|DAMAGED)", shown, re.MULTILINE):
            yield f"exit code {code}:\n$ {step.code}{text}"
        elif shown and not same(shown.splitlines(), text.splitlines()):
            yield f"{step.code}\nthe page shows\n{shown}\nand this was printed:\n{text}"


def figures(page: str) -> list[str]:
    """Returns the names of the figures next to the page."""
    return FIGURE.findall(page)


def overwrite(path: Path, results: Sequence[tuple[Step, int, str]], folder: Path) -> None:
    """Writes the outputs and the figures of a run into the page. Outputs with ``…`` stay."""
    page = path.read_text(encoding="utf-8")
    for step, _, text in reversed(results):
        if step.span and ELIDED not in (step.shown or ""):
            page = page[: step.span[0]] + text + page[step.span[1] :]
    path.write_text(page, encoding="utf-8")
    for name in figures(page):
        if (folder / name).exists():
            shutil.copyfile(folder / name, path.parent / name)
    elided = [result for result in results if ELIDED in (result[0].shown or "")]
    written = [(replace(step, shown=text), code, text) for step, code, text in results if (step, code, text) not in elided]
    for fault in faults([*elided, *written]):
        print(fault, file=sys.stderr)


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        with tempfile.TemporaryDirectory(prefix="raddle-page-") as folder:
            overwrite(path, run(path, Path(folder)), Path(folder))


if __name__ == "__main__":
    main()
