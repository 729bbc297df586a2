#!/usr/bin/env python3
"""Reads the prose of the repository: comments of Rust, Python and C sources, and Markdown.

    scripts/prose.py check            lists phrases that docs/internals/style.md rules out; exits with 1 if there are any
    scripts/prose.py sample SEED [N]  prints N (100) random doc comments of crates/*/src and N random sentences of the docs

`make check` runs the first. The second is for reviews: a reader decides which of the sample to rewrite.
"""

import argparse
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Each phrase, with its replacement. These are the mechanical ones; style.md lists the others.
PHRASES = {
    r"(?<!there )\bis no(?! (?:more|less|longer|larger|smaller|slower|faster|better|worse|later|earlier|need|way|point|room|reason|use)\b)"
    r" (?:valid |such )?\w+": "is not a …",
    r"\bthat (?:is|are) there\b": "existing",
    r"\bthat there (?:is|are)\b": "existing, available",
    r"\b(?:go|goes|gone|going|went) on (?:with|from|behind|after)\b": "continue, resume",
    r"\bmade (?:anew|again)\b": "recreated, rebuilt",
    r"\bbeside\b": "next to, in addition to",
    r"\bforetold\b": "predicted",
    r"\bso many\b": "that many, N",
    r"\b(?:tells?|told|telling) (?:of|the user|users|what|which|how|whether|that|why)\b": "report, print, warn, send",
    r"\bamong (?:all )?ranks\b": "across ranks, collectively",
    r"\bin the mean\b": "on average",
    r"\bfor ever\b": "forever, without an end",
    r"\bwhat becomes of\b": "what happens to; better: name the result",
    r"\bwhat there is of\b": "name the thing",
}
COMMENT = re.compile(r"^\s*(?://[/!]?|#(?!\[|!)|/?\*+/?)\s?(.*)$")
MARKDOWN_COMMENT = re.compile(r"^\s*<!--.*-->\s*$")
# Beginning of an item of a list.
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
# Space between two sentences. The second may begin with a name in lower case.
SENTENCE_END = re.compile(r"(?<=[.!?:]) +(?=[A-Z`*]|raddle |libhdf5 |mpirun )")
MARKDOWN_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def files(*patterns: str) -> list[Path]:
    """Returns the tracked files that match `patterns` of `git ls-files`."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], capture_output=True, text=True, check=True)
    return [path for path in map(Path, listed.stdout.splitlines()) if path.exists()]


def prose_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the lines of a file that are prose, with their numbers; code and comments of Markdown are left out."""
    in_fence = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix == ".md":
            if line.lstrip().startswith("```"):
                in_fence = not in_fence
            elif not in_fence and not MARKDOWN_COMMENT.match(line):
                yield number, line
        elif match := COMMENT.match(line):
            yield number, match[1]


def check() -> int:
    """Prints each ruled-out phrase and returns the exit code."""
    found = 0
    rules = [(re.compile(phrase, re.IGNORECASE), instead) for phrase, instead in PHRASES.items()]
    everything = files("*.rs", "*.py", "*.c", "*.h", "*.md", "Makefile")
    for path in everything:
        if path == Path("docs/internals/style.md"):
            continue  # It quotes them.
        for number, line in prose_lines(path):
            text = re.sub(r"`[^`]*`", "`x`", line)
            for rule, instead in rules:
                if match := rule.search(text):
                    found += 1
                    print(f"{path}:{number}: {match[0]!r}: write {instead}")
    if found:
        print(f"{found} phrases to rewrite; see docs/internals/style.md", file=sys.stderr)
    return 1 if found else 0


def doc_comments(path: Path) -> Iterator[str]:
    """Yields the doc comments of a Rust file, each with its first line's number."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        if match := re.match(r"^\s*//[/!] ?(.*)$", line):
            first = first if block else number
            block.append(match[1])
        elif block:
            yield f"{path}:{first}: {' '.join(block)}"
            block = []


def sentences(path: Path) -> Iterator[str]:
    """Yields the sentences of a Markdown file, without headings and tables."""
    paragraph: list[str] = []
    first = 0
    for number, line in [*prose_lines(path), (0, "")]:
        is_prose = line.strip() and not line.lstrip().startswith(("#", "|", "!"))
        if not is_prose or ITEM.match(line):
            text = MARKDOWN_LINK.sub(r"\1", " ".join(paragraph))
            for sentence in SENTENCE_END.split(text):
                if len(sentence.split()) > 3:
                    yield f"{path}:{first}: {sentence}"
            paragraph = []
        if is_prose:
            first = first if paragraph else number
            paragraph.append(ITEM.sub("", line).strip().lstrip("> "))


def sample(seed: int, count: int) -> int:
    """Prints a random sample of doc comments and sentences and returns the exit code."""
    source = random.Random(seed)
    comments = [comment for path in files("crates/*/src/*.rs") for comment in doc_comments(path)]
    said = [sentence for path in files("docs/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md") for sentence in sentences(path)]
    for title, of in (("doc comments", comments), ("sentences", said)):
        print(f"# {count} of {len(of):,} {title}, seed {seed}")
        for number, text in enumerate(source.sample(of, count), 1):
            print(f"{number:3}. {text}")
    return 0


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check")
    sampling = commands.add_parser("sample")
    sampling.add_argument("seed", type=int)
    sampling.add_argument("count", type=int, nargs="?", default=100)
    arguments = parser.parse_args()
    return check() if arguments.command == "check" else sample(arguments.seed, arguments.count)


if __name__ == "__main__":
    sys.exit(main())
