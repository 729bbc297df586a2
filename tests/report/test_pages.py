"""Pages of `raddle report`, opened in a browser: no messages, nothing cut off or overlapping, light and dark, on a
phone."""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

RADDLE = str(Path(os.environ.get("RADDLE", Path(__file__).parents[2] / "target/debug/raddle")).resolve())

# Inspects a page from inside: widths, and labels of figures that leave them or overlap.
LOOK = """<!DOCTYPE html><iframe id="frame" src="page.html" style="width:WIDTHpx;height:900px;border:0"></iframe><pre id="out"></pre>
<script>
frame.onload = () => {
  const page = frame.contentDocument, found = {figures: 0, outside: [], overlapping: []};
  found.width = page.documentElement.scrollWidth;
  found.ink = getComputedStyle(page.body).color;
  found.paper = getComputedStyle(page.body).backgroundColor;
  for (const svg of page.querySelectorAll("svg")) {
    found.figures += 1;
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBBox()]);
    for (const [text, box] of texts)
      if (box.x < -1 || box.x + box.width > width + 1 || box.y < -3 || box.y + box.height > height + 3) found.outside.push(text);
    texts.forEach(([text, a], at) => {
      for (const [other, b] of texts.slice(at + 1))
        if (a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && a.y + 4 < b.y + b.height && b.y + 4 < a.y + a.height)
          found.overlapping.push([text, other]);
    });
  }
  out.textContent = "FOUND" + JSON.stringify(found) + "END";
};
</script>"""


def browse(folder, *options):
    """Returns the browser's standard output and error."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("chromium is not installed")
    words = [browser, "--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    words += [f"--user-data-dir={folder}/chromium", "--allow-file-access-from-files", "--disable-web-security", *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=folder)
    if done.returncode != 0:
        pytest.skip(f"chromium does not run here: {done.stderr[-300:]}")
    return done.stdout, done.stderr


def look(folder, width, *options):
    """Loads the page in a frame of this width; nothing may be logged to the console."""
    (folder / "look.html").write_text(LOOK.replace("WIDTH", str(width)))
    out, err = browse(folder, *options, "--virtual-time-budget=5000", "--dump-dom", f"file://{folder}/look.html")
    assert "CONSOLE" not in err, err
    text = re.search("FOUND(.*)END", out)
    assert text, out
    return json.loads(text[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def raddle(folder, *words):
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder), "NO_COLOR": "1"}
    done = subprocess.run([RADDLE, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """The page of a merge."""
    folder = tmp_path_factory.mktemp("merge")
    for number in range(3):
        with h5py.File(folder / f"in{number}.h5", "w") as file:
            for name in ["hits/energy", "hits/a <long> name & more of it", "spill/evt"]:
                file.create_dataset(name, data=np.arange(20000.0)[:, None] % 97, chunks=(1000, 1), compression="gzip")
    raddle(folder, "merge", "in0.h5", "in1.h5", "in2.h5", "-o", "out.h5", "-q", "--report", "run.json")
    raddle(folder, "report", "run.json", "-o", "page.html", "--svg", "figures")
    return folder


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The page of a measurement."""
    folder = tmp_path_factory.mktemp("bench")
    words = ["bench", "occam-2005", "--only", "filters", "--only", "szip", "--scale", "tiny", "--blocks", "5", "-q"]
    shown = raddle(folder, *words, "--report", "run.json")
    assert "gzip=0" in shown and "better" in shown
    raddle(folder, "report", "run.json", "-o", "page.html", "--svg", "figures")
    assert not list(folder.glob(".raddle-bench-*"))
    return folder


@pytest.fixture(scope="module")
def read_back(tmp_path_factory):
    """The page of a measurement whose runs write and read."""
    folder = tmp_path_factory.mktemp("read")
    words = ["bench", "battle-layout", "--only", "baseline-256KiB", "--only", "multi-block-16KiB", "--scale", "tiny", "--blocks", "5", "-q"]
    shown = raddle(folder, *words, "--report", "run.json")
    assert "writing alone:" in shown and re.search(r"reading back alone, .*% of the bytes came from storage", shown), shown
    raddle(folder, "report", "run.json", "-o", "page.html", "--svg", "figures")
    names = {path.stem for path in folder.glob("figures/*.svg")}
    halves = {f"{number}-{kind}-{half}" for number in (1, 2) for kind in ("sweep", "rates") for half in ("write", "read")}
    assert halves | {"1-stages", "2-stages", "speed-ups"} <= names, names
    return folder


@pytest.mark.parametrize("kind", ["merged", "measured", "read_back"])
def test_nothing_is_cut_and_nothing_overlaps(kind, request):
    folder = request.getfixturevalue(kind)
    for width in [360, 1200]:
        found = look(folder, width)
        assert found["figures"] >= 4, found
        assert found["width"] <= width and not found["outside"] and not found["overlapping"], found
    # The same figures as separate files.
    figures = list(folder.glob("figures/*.svg"))
    assert len(figures) == found["figures"]
    for figure in figures:
        assert ElementTree.parse(figure).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    out, err = browse(folder, "--dump-dom", f"file://{figures[0]}")
    assert "CONSOLE" not in err and "error on line" not in out, (figures[0], err, out[:500])


@pytest.mark.parametrize("kind", ["merged", "measured", "read_back"])
def test_a_page_needs_no_script_and_no_network(kind, request):
    page = (request.getfixturevalue(kind) / "page.html").read_text()
    assert "<script" not in page and "http" not in page.replace("http-equiv", ""), "the page loads something"
    assert "default-src 'none'" in page


def test_a_file_that_is_not_the_one_of_the_run_is_not_shown(tmp_path):
    for name, length in [("a.h5", 100), ("other.h5", 5000)]:
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = np.arange(length)
    raddle(tmp_path, "merge", "a.h5", "-o", "out.h5", "-q", "--report", "run.json")
    raddle(tmp_path, "report", "run.json", "-o", "page.html")
    assert "Where the bytes are" in (tmp_path / "page.html").read_text()
    written, found = (tmp_path / "out.h5").stat().st_size, (tmp_path / "other.h5").stat().st_size
    shutil.copy(tmp_path / "other.h5", tmp_path / "out.h5")
    raddle(tmp_path, "report", "run.json", "-o", "page.html", "--force")
    page = (tmp_path / "page.html").read_text()
    assert f"The file is not shown: the run wrote {written} bytes, but the file with this name has {found}" in page
    assert "Where the bytes are" not in page


def test_light_and_dark_differ(measured):
    light = look(measured, 800)
    dark = look(measured, 800, "--blink-settings=preferredColorScheme=0")
    if light["paper"] == dark["paper"]:
        pytest.skip("this chromium has no option to prefer dark")
    assert light["ink"] != dark["ink"]


def test_a_screenshot_shows_more_than_a_blank_page(measured):
    (measured / "blank.html").write_text("<!DOCTYPE html><title>blank</title>")
    for name in ["page", "blank"]:
        browse(measured, "--window-size=800,2000", f"--screenshot={measured}/{name}.png", f"file://{measured}/{name}.html")
    assert (measured / "page.png").stat().st_size > 5 * (measured / "blank.png").stat().st_size


def test_figures_are_pictures(measured):
    if not any(map(shutil.which, ["rsvg-convert", "chromium", "chromium-browser", "google-chrome"])):
        pytest.skip("no program for PNG output is installed")
    # Checks that an installed browser runs.
    browse(measured, "--dump-dom", "about:blank")
    raddle(measured, "report", "run.json", "-f", "--png", "pictures")
    pictures = sorted(path.stem for path in measured.glob("pictures/*.png"))
    assert pictures == sorted(path.stem for path in measured.glob("figures/*.svg"))
    for name in pictures:
        width, height = struct.unpack(">II", (measured / f"pictures/{name}.png").read_bytes()[16:24])
        box = re.search('viewBox="0 0 ([0-9.]+) ([0-9.]+)"', (measured / f"figures/{name}.svg").read_text())
        assert width == 2 * float(box[1]) and abs(height - 2 * float(box[2])) <= 2, (name, width, height)
    empty = {**os.environ, "PATH": str(measured)}
    done = subprocess.run([RADDLE, "report", "run.json", "-f", "--png", "none"], capture_output=True, text=True, cwd=measured, env=empty)
    assert done.returncode == 2 and "--svg" in done.stderr
