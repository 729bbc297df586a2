"""Pages of the documentation whose blocks are run: what they print is what the page shows."""

import re
from pathlib import Path

import pages
import pytest
from conftest import ROOT

# Pages that make their own data. Blocks of other pages belong to files of the reader.
RUN = [
    "start/python",
    "stories/physicist",
    "stories/climate-scientist",
    "stories/data-manager",
    "howto/collate-model-tiles",
    "howto/merge-anndata",
    "howto/merge-netcdf",
    "howto/select-and-split",
    "howto/turn-maps-into-time-series",
]

PAGE = """
```python
print("two", 1 + 1)
```

```text
two 2
```

```console
$ printf 'a\\n7.5 MiB in 0.25 s\\nb\\n'
a
7.6 MiB in 3.0 s
…
$ echo 'error: it failed'; false
error: it failed
```

```python title="saved.py"
print("saved")
```

```console
$ python \\
  saved.py
saved
```
"""


@pytest.mark.parametrize("name", RUN)
def test_a_page_shows_what_its_blocks_print(name, tmp_path):
    path = ROOT / f"docs/{name}.md"
    page = path.read_text(encoding="utf-8")
    if " cdo " in page and not pages.shutil.which("cdo"):
        pytest.skip("cdo is not installed")
    results = pages.run(path, tmp_path)
    assert len(results) > 5
    assert not list(pages.faults(results))
    for figure in pages.figures(page):
        assert (tmp_path / figure).exists() and (path.parent / figure).exists(), figure


def test_the_readme_shows_what_its_blocks_print(tmp_path):
    page = tmp_path / "README.md"
    made = "```console\n$ raddle demo --only-generate --keep run11981\n```\n\n"
    page.write_text(made + (ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    results = pages.run(page, tmp_path)
    assert len(results) > 3
    assert not list(pages.faults(results))


def test_every_story_is_run():
    assert {f"stories/{path.stem}" for path in Path(ROOT / "docs/stories").glob("*.md")} == {
        name for name in RUN if name.startswith("stories/")
    }


@pytest.mark.parametrize(
    ("shown", "instead", "fault"),
    [
        ("two 2", "two 3", "two 3"),
        ("7.6 MiB", "9.0 MiB", "9.0 MiB"),
        ("a\n7.6", "7.6", "7.6"),
        ("false\nerror: it failed", "false\nit failed", "exit code 1"),
        ("saved\n```", "lost\n```", "lost"),
    ],
)
def test_what_a_page_shows_wrongly_is_found(shown, instead, fault, tmp_path):
    page = tmp_path / "page.md"
    for name, text in (("right", PAGE), ("wrong", PAGE.replace(shown, instead))):
        page.write_text(text, encoding="utf-8")
        folder = tmp_path / name
        folder.mkdir()
        found = list(pages.faults(pages.run(page, folder)))
        assert len(found) == (name == "wrong") and all(fault in one for one in found), found


def test_a_block_that_fails_ends_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 / 0)\n```\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pages.run(page, tmp_path)


def test_outputs_are_written_into_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n```\n\n```console\n$ echo new\nold\n```\n", encoding="utf-8")
    pages.overwrite(page, pages.run(page, tmp_path), tmp_path)
    assert re.findall("42|new\n|old", page.read_text()) == ["42", "new\n", "new\n"]
