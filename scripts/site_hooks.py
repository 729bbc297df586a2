"""Hooks of mkdocs for the site: sections of other pages, links to files of the repository, and the pages of the gallery.

A line `--8<-- "README.md:reading"` stands for the section of that file between the comments `--8<-- [start:reading]` and
`--8<-- [end:reading]`, so that a measurement is written once. Unlike the extension for snippets, this keeps the section's links right.

Links that leave docs/, such as `../../benches/runs/…`, work on the forge. The site has no such files, so they lead to `repo_url`.

`scripts/gallery.py` writes pages to `target/gallery`, which the site takes over. A build without them, as in `make check`,
replaces the list of the gallery by a sentence.
"""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "target/gallery"
BRANCH = "main"
SECTION = re.compile(r'^--8<-- "([^":]+):([\w-]+)"$', re.MULTILINE)
MARKER = re.compile(r"^<!-- --8<-- .* -->\n\n?", re.MULTILINE)
ANY_LINK = re.compile(r"(\]\()([^)\s]+)")
LINK = re.compile(r"(\]\()(\.\./[^)\s#]+)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
log = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the gallery, if there are any."""
    for path in sorted(GALLERY.glob("*.html")) + sorted(GALLERY.glob("*/*.svg")):
        files.append(File.generated(config, f"gallery/{path.relative_to(GALLERY)}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Writes the list of the gallery and the sections of other files, and resolves links to files of the repository."""
    if page.file.src_uri == "gallery.md":
        markdown = markdown.replace("<!-- reports -->", gallery())
    folder = (Path(config.docs_dir) / page.file.src_uri).parent
    markdown = SECTION.sub(lambda match: section(ROOT / match[1], match[2], folder), markdown)
    blocks = FENCE.split(markdown)
    return "".join(block if block.startswith("```") else repository_links(block, folder, page, config) for block in blocks)


def section(path: Path, name: str, folder: Path) -> str:
    """Returns a section of a file, with its links relative to another folder."""
    start, end = (f"<!-- --8<-- [{word}:{name}] -->\n" for word in ("start", "end"))
    text = path.read_text(encoding="utf-8")
    if text.count(start) != 1 or text.count(end) != 1:
        log.warning("%s has no section %s", path.relative_to(ROOT), name)
        return ""

    def moved(match: re.Match[str]) -> str:
        target, mark, anchor = match[2].partition("#")
        if ":" in target:
            return match[0]
        to = path.parent / target if target else path
        return f"{match[1]}{os.path.relpath(to, folder)}{mark}{anchor}"

    return ANY_LINK.sub(moved, MARKER.sub("", text.split(start)[1].split(end)[0])).strip()


def repository_links(markdown: str, folder: Path, page: Page, config: MkDocsConfig) -> str:
    """Returns the text with links that leave the folder of the documentation leading to the repository."""

    def resolved(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(config.docs_dir):
            return match[0]
        if not target.exists() or not target.is_relative_to(ROOT):
            log.warning("%s links to %s, which the repository does not have", page.file.src_uri, match[2])
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{match[1]}{str(config.repo_url).rstrip('/')}/{kind}/{BRANCH}/{target.relative_to(ROOT)}"

    return LINK.sub(resolved, markdown)


def gallery() -> str:
    """Returns the reports of the gallery, each with its description and a figure."""
    index = GALLERY / "index.json"
    if not index.exists():
        return "This build of the site has no reports: `make site` makes them."
    parts = []
    for report in json.loads(index.read_text(encoding="utf-8")):
        name, title, command, figure = report["name"], report["title"], report["command"], report["figure"]
        parts.append(
            f"## {title}\n\n{report['text']}\n\n```sh\n{command}\n```\n\n"
            f"[![A figure of this report](gallery/{figure}){{ .report }}](gallery/{name}.html)\n\n[Open the report](gallery/{name}.html)\n"
        )
    return "\n".join(parts)
