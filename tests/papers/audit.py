"""The five papers, item by item: whether raddle implements each item, and the evidence.

Writes and checks the table in docs/reference/papers.md:

    python tests/papers/audit.py --check     check that the documentation has this table, and that the named evidence exists
    python tests/papers/audit.py --check-names  the same without the command, and so without its experiments
    python tests/papers/audit.py --write     write the table into the documentation
    python tests/papers/audit.py --run       run the commands of all items, or with --only WORDS of some

An item works (W), is missing (M) or cannot be shown (N). The evidence for an item that works is an experiment of `raddle bench`, a test
that compares with another program, or a command whose output is checked (commands.py). An item that cannot be shown, or is missing, has a
reason. The items are in rows.py.
"""

import argparse
import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import CHECKS, RADDLE, SLOW, raddle
from rows import PAPERS

__all__ = ["CHECKS", "SLOW", "faults"]

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs/reference/papers.md"
BEGIN, END = "<!-- The table of tests/papers/audit.py: begin -->", "<!-- The table of tests/papers/audit.py: end -->"


def words_of(shown):
    kind, name, *rest = shown
    if kind == "bench":
        return f"`raddle bench {name}`: " + ", ".join(f"`{one}`" for one in rest)
    if kind == "test":
        return f"`{name}`: " + ", ".join(f"`{one}`" for one in rest)
    if kind == "script":
        return f"`python {' '.join([name, *rest])}`"
    return f"`{CHECKS[name][0]}`"


def table():
    lines = []
    for paper, rows in PAPERS.items():
        lines += [f"### {paper}", "", "| item | | shown by |", "|---|---|---|"]
        for row in rows:
            shown = "; ".join(map(words_of, row.shown)) if row.shown else row.reason
            lines.append(f"| {row.item} | {row.verdict} | {shown} |")
        lines.append("")
    counts = {verdict: sum(row.verdict == verdict for rows in PAPERS.values() for row in rows) for verdict in "WNM"}
    lines.append(f"Items that work: {counts['W']}; that cannot be shown here: {counts['N']}; that are missing: {counts['M']}.")
    return "\n".join(lines)


def page_with(text):
    """Returns the page with `text` between its marks."""
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def faults(built=True):
    """Returns the errors of the table: rows without evidence, and evidence that does not exist. Experiments, which the command
    lists, are left out unless it is `built`."""
    found = []
    listed = experiments() if built else {}
    for paper, rows in PAPERS.items():
        for row in rows:
            if bool(row.shown) != (row.verdict == "W") or bool(row.reason) == (row.verdict == "W"):
                found.append(f"{paper}: {row.item}: {row.verdict} with {row.shown or row.reason}")
            for kind, name, *rest in row.shown:
                if kind == "bench":
                    absent = set(rest) - listed.get(name, set()) if built else set()
                elif kind == "test":
                    path = REPOSITORY / name
                    defined = set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)) if path.exists() else set()
                    absent = set(rest) - defined
                elif kind == "script":
                    absent = set() if (REPOSITORY / name).exists() else {name}
                else:
                    absent = {name} - CHECKS.keys()
                found += [f"{paper}: {row.item}: no {kind} {name} {one}" for one in absent]
    used = {name for rows in PAPERS.values() for row in rows for kind, name, *_ in row.shown if kind == "run"}
    found += [f"{name} shows nothing" for name in CHECKS.keys() - used]
    if page_with(table()) != PAGE.read_text():
        found.append(f"{PAGE.relative_to(REPOSITORY)} has another table: python tests/papers/audit.py --write")
    return found


@functools.cache
def experiments():
    """Returns the names of experiments and planned tables, by workload."""
    found, workload = {}, None
    for line in raddle("bench", "--list").splitlines():
        if title := re.match(r"([\w-]+): ", line):
            workload = title[1]
            found[workload] = set()
        elif name := re.match(r" ([\w-]+) ", line):
            found[workload].add(name[1])
    return found


def carry_out(only):
    """Runs all evidence: commands, experiments, tests."""
    benches, tests, failed = {}, {}, []
    for paper, rows in PAPERS.items():
        for row in rows:
            if only and not any(words.lower() in f"{paper} {row.item}".lower() for words in only):
                continue
            for kind, name, *rest in row.shown:
                if kind == "bench":
                    benches.setdefault(name, set()).update(rest)
                elif kind == "test":
                    tests.setdefault(name, set()).update(rest)
                elif kind == "script":
                    if subprocess.run([sys.executable, REPOSITORY / name, *rest], check=False).returncode:
                        failed.append(name)
                else:
                    with tempfile.TemporaryDirectory() as folder:
                        try:
                            CHECKS[name][1](Path(folder))
                            print(f"{row.item}: {CHECKS[name][0]}: passed", flush=True)
                        except (AssertionError, KeyError, ValueError) as error:
                            failed.append(f"{row.item}: {CHECKS[name][0]}: {error!r}")
    for workload, names in benches.items():
        chosen = [word for name in sorted(names) for word in ("--only", name)]
        with tempfile.TemporaryDirectory() as folder:
            print(raddle("bench", workload, "--scale", "tiny", "--blocks", "1", "--time", "600", "--scratch", folder, "-q", *chosen), flush=True)
    for path, names in tests.items():
        words = [sys.executable, "-m", "pytest", "-q", path, "-k", " or ".join(sorted(names))]
        if subprocess.run(words, cwd=REPOSITORY, env={**os.environ, "RADDLE": str(Path(RADDLE).resolve())}, check=False).returncode:
            failed.append(path)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--check-names", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.write:
        PAGE.write_text(page_with(table()))
    failed = carry_out(arguments.only) if arguments.run else []
    if arguments.check or arguments.check_names:
        failed += faults(built=arguments.check)
    with contextlib.suppress(BrokenPipeError):
        print("\n".join(failed) if failed else "no errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
