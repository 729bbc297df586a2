#!/usr/bin/env python3
"""Finds dead links inside a built site: files that do not exist, and anchors that no element of the page has.

    scripts/links.py site

mkdocs checks the links of Markdown. This checks every `href` and `src` of the result, also those of raw HTML, of the theme and of
generated pages. Addresses of other sites are not opened. Exits with 1 if a link is dead.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """Anchors and links of a page, with the lines of the links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[int, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            # `href` of a `link` may be only a hint, such as `preconnect`, but then it has a scheme.
            elif name in ("href", "src", "xlink:href", "poster", "data") and value is not None:
                self.links.append((self.getpos()[0], value))


def dead_links(site: Path) -> list[str]:
    """Returns a line for each dead link of the pages below `site`."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: has no pages"]
    found = []
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            # The root of addresses is that of the site, as for the page of status 404.
            base = site if parts.path.startswith("/") else path.parent
            target = Path(base / unquote(parts.path).lstrip("/")) if parts.path else path
            target = (target / "index.html" if target.is_dir() else target).resolve()
            anchor = unquote(parts.fragment)
            if not target.is_file():
                found.append(f"{path}:{line}: {link}: no such file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{path}:{line}: {link}: no element has this id")
    return found


def main() -> int:
    """Prints dead links and returns the exit code."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = dead_links(Path(sys.argv[1]).resolve())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
