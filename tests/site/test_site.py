"""The site as readers see it: links, search, the reference of the package, and pages on a phone."""

import functools
import html
import http.server
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]

import links  # noqa: E402

MODULES = ["errors", "events", "gpu", "idx"]
# Described with the errors, and a string.
ELSEWHERE = {"RaddleError", "__version__"}
PHONE, DESK = 390, 1280

# Loads each page in a frame, and reports its width and what lies outside of the frame. Tables and code scroll by themselves.
LOOK = """<!DOCTYPE html><iframe id="frame" style="width:WIDTHpx;height:900px;border:0"></iframe><pre id="out"></pre>
<script>
const pages = PAGES, found = {};
const next = () => {
  const page = pages.shift();
  if (page === undefined) { out.textContent = "FOUND" + JSON.stringify(found) + "END"; return; }
  frame.onload = () => {
    const root = frame.contentDocument.documentElement, outside = [];
    const scrolls = element => {
      for (; element; element = element.parentElement)
        if (["auto", "scroll"].includes(frame.contentWindow.getComputedStyle(element).overflowX)) return true;
      return false;
    };
    for (const element of frame.contentDocument.querySelectorAll(".md-content__inner :is(p, li, h1, h2, h3, h4, code, a, img, td, pre)"))
      if (element.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(element)) outside.push(element.outerHTML.slice(0, 80));
    found[page] = {width: root.scrollWidth, outside: outside.slice(0, 3), letters: root.innerText.length};
    next();
  };
  frame.src = page;
};
next();
</script>"""


def build(folder, config=ROOT / "mkdocs.yml"):
    """Builds a site with warnings as errors, and returns the finished process."""
    # With `--quiet`, warnings would not count.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site") / "site"
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_no_link_is_dead(site):
    assert links.dead_links(site) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.html").write_text('<h1 id="there is">x</h1><a href="../index.html#top">up</a>')
    (tmp_path / "index.html").write_text(
        '<a name="top"></a>\n<a href="other/">right</a><a href="other/#there%20is">right</a><a href="https://example.org/x">not opened</a>'
        '\n<a href="other/#missing">no anchor</a>\n<a href="lost/">no file</a>\n<img src="lost.png">\n<a href="#lost">no anchor here</a>\n'
        '<a href="/other/">right</a>\n<a href="/lost">no file at the root</a>'
    )
    found = [line.removeprefix(f"{tmp_path}/") for line in links.dead_links(tmp_path)]
    assert found == [
        "index.html:3: other/#missing: no element has this id",
        "index.html:4: lost/: no such file",
        "index.html:5: lost.png: no such file",
        "index.html:6: #lost: no element has this id",
        "index.html:8: /lost: no such file",
    ]
    command = [sys.executable, ROOT / "scripts/links.py", tmp_path]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 1


BROKEN = ["[link](lost.md)", "[link](#lost)", "[link](../lost/file)", "[link](other.md#lost)", '--8<-- "README.md:lost"']


@pytest.mark.parametrize("text", ["[link](other.md)", *BROKEN])
def test_a_dead_link_of_a_page_ends_the_build(text, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Page\n\n{text}\n")
    (tmp_path / "docs/other.md").write_text("# Other\n")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    validation = re.search(r"^validation:\n(?: .*\n)+", settings, re.MULTILINE)[0]
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"site_name: x\nrepo_url: https://example.org\nhooks: [{ROOT}/scripts/site_hooks.py]\n{validation}")
    built = build(tmp_path / "site", config)
    assert built.returncode == (text in BROKEN) and ("lost" in built.stderr) == (text in BROKEN), built.stderr


def test_sections_of_other_pages_keep_their_links(site):
    """The links of the README are relative to the repository; here they lead to the repository, and to pages of the site."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    part = readme.split("<!-- --8<-- [start:reading] -->")[1].split("<!-- --8<-- [end:reading] -->")[0]
    run, design = re.findall(r"\]\((benches/runs/\S+|docs/design/\S+)\)", part)
    page = (site / "index.html").read_text(encoding="utf-8")
    assert f'/tree/main/{run}"' in page and f'href="{design.removeprefix("docs/").removesuffix(".md")}/"' in page
    assert "--8<--" not in page and "| every column" not in page


def test_search_finds_words_of_every_kind_of_page(site):
    documents = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    for place, word in {
        "stories/data-manager/": "inode",
        "explanation/comparison/": "kerchunk",
        "howto/search/": "where_event",
        "reference/python/#raddle.split": "rows_per_file",
    }.items():
        assert any(one["location"].startswith(place) and word in one["text"] for one in documents), (place, word)


def public():
    """Returns every public function and method with its path, as the reference names it."""
    for name in ["raddle", *(f"raddle.{module}" for module in MODULES)]:
        module = importlib.import_module(name)
        for member in module.__all__:
            value = getattr(module, member)
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    function = getattr(function, "__func__", function)
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{name}.{member}.{method}", function
            elif inspect.isfunction(value):
                yield f"{name}.{member}", value


def test_the_reference_names_everything_public():
    raddle = importlib.import_module("raddle")
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: raddle\.(\S+)$", page, re.MULTILINE)
    assert len(set(named)) == len(named)
    assert set(named) == set(raddle.__all__) - ELSEWHERE


def test_the_reference_describes_every_parameter(site):
    """Every parameter has an entry with a description, and is in the signature."""
    page = (site / "reference/python/index.html").read_text(encoding="utf-8")
    starts = [(match.start(), match[1]) for match in re.finditer(r'<h\d id="(raddle[\w.]*)"', page)]
    parts = {name: page[start : after[0]] for (start, name), after in zip(starts, [*starts[1:], (len(page), "")], strict=True)}
    lacking = []
    for path, function in public():
        part = parts.get(path)
        if part is None:
            lacking.append(path)
            continue
        for name in inspect.signature(function).parameters:
            entry = re.search(rf"<b>(?:<code>)?\**{name}(?:</code>)?</b>(.*?)</li>", part, re.DOTALL)
            described = entry and len(re.sub("<[^>]+>", "", entry[1].split("–", 1)[-1]).split()) > 1
            if name not in ("self", "cls") and not described:
                lacking.append(f"{path}: {name}")
    assert not lacking
    assert len(parts["raddle.split"].split("<li")) > 50


def browser():
    """Returns the browser's program with the options of all tests."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("chromium is not installed")
    return [program, "--headless", "--no-sandbox", "--no-zygote", "--disable-gpu"]


# Searches in a frame. The page is loaded, and printed by the browser, when there is a result, because a picture waits for it.
SEARCH = """<!DOCTYPE html><iframe id="frame" src="/?q=WORD" style="width:1200px;height:800px"></iframe><pre id="out"></pre><img src="/wait">
<script>
const look = setInterval(() => {
  const found = frame.contentDocument.querySelector(".md-search-result__list");
  if (!found || !found.innerText) return;
  clearInterval(look);
  out.textContent = "FOUND{" + found.innerText.slice(0, 200) + "}END";
  fetch("/found");
}, 100);
</script>"""


def searched(site, word):
    """Returns what the search of the site shows for a word, in a browser; empty if there is nothing after half a minute."""
    found = threading.Event()

    class Server(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path not in ("/wait", "/found", "/search"):
                super().do_GET()
                return
            if self.path == "/wait":
                found.wait(30)
            elif self.path == "/found":
                found.set()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(SEARCH.replace("WORD", word).encode() if self.path == "/search" else b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        words = [*browser(), f"--user-data-dir={site.parent}/searching", "--timeout=60000", "--dump-dom"]
        address = f"http://127.0.0.1:{server.server_port}/search"
        done = subprocess.run([*words, address], capture_output=True, text=True, timeout=120, check=False)
        server.shutdown()
    assert done.returncode == 0, f"chromium failed: {done.stderr[-300:]}"
    result = re.search(r"FOUND\{(.*?)\}END", done.stdout, re.DOTALL)
    return result[1] if result else ""


def test_search_works_in_a_browser(site):
    assert "raddle.split" in searched(site, "rows_per_file")


def widths(site, width):
    """Returns, by page, its width in a frame of this width, elements outside of the frame, and the number of letters."""
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("index.html"))
    look = site / "_look.html"
    look.write_text(LOOK.replace("WIDTH", str(width)).replace("PAGES", json.dumps(pages)))
    words = [*browser(), "--allow-file-access-from-files", "--disable-web-security"]
    words += [f"--user-data-dir={site.parent}/chromium", "--virtual-time-budget=120000", "--dump-dom"]
    done = subprocess.run([*words, f"file://{look}"], capture_output=True, text=True, timeout=300, check=False)
    look.unlink()
    assert done.returncode == 0, f"chromium failed: {done.stderr[-300:]}"
    text = re.search(r"FOUND(\{.*?\})END", done.stdout, re.DOTALL)
    assert text, done.stdout[-2000:]
    found = json.loads(html.unescape(text[1]))
    assert len(found) == len(pages)
    return found


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_page_is_wider_than_the_screen(site, width):
    found = widths(site, width)
    assert not {page: seen for page, seen in found.items() if seen["width"] > width or seen["outside"] or seen["letters"] < 100}


def test_a_page_that_is_too_wide_is_found(tmp_path):
    site = tmp_path / "site"
    for name, style in {"wide": "width:500px", "clipped": "width:500px", "scrolls": "overflow-x:auto", "fits": ""}.items():
        (site / name).mkdir(parents=True)
        text = f'<p style="{style}"><code style="display:inline-block;width:450px">{"word " * 40}</code></p>' if style else "word " * 40
        clip = "overflow:hidden" if name == "clipped" else ""
        (site / name / "index.html").write_text(f'<div class="md-content__inner" style="{clip}">{text}</div>')
    found = {page.split("/")[0]: seen for page, seen in widths(site, PHONE).items()}
    assert found["wide"]["width"] > PHONE and found["wide"]["outside"]
    assert found["clipped"]["width"] <= PHONE and found["clipped"]["outside"]
    for name in ("scrolls", "fits"):
        assert found[name]["width"] <= PHONE and not found[name]["outside"], found
