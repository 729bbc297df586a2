"""Groups and files in notebooks: completion of names, views of names, trees."""

import html.parser
import re

import h5py
import numpy as np
import pytest
import raddle
from raddle import _completion, _html


class Balance(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects their names and the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], set(), ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.elements.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


@pytest.fixture
def nested(pair):
    def write(file):
        file.attrs["title"] = "a test"
        rec = file.create_group("rec")
        rec.create_dataset("energy", data=np.zeros(100, "f4"), chunks=(10,), compression="gzip", shuffle=True)
        rec["energy"].attrs["unit"] = "GeV"
        rec.create_group("deep")["map"] = np.zeros((3, 4), "i2")
        rec["name"] = ["a", "b"]
        rec["hit"] = np.zeros(5, [("x", "f4"), ("y", "f4")])
        file["type"] = np.dtype("f8")
        file["null"] = h5py.Empty("f4")
        file["scalar"] = 1.5

    return pair(write)


def test_names_are_completed(nested):
    ours, theirs = nested
    own = theirs._ipython_key_completions_()
    completed = ours._ipython_key_completions_()
    assert set(own) <= set(completed) and completed == sorted(completed)
    assert {"rec/energy", "rec/deep/map"} <= set(completed) and all(path in theirs for path in completed)
    assert ours["rec"].attrs._ipython_key_completions_() == []
    assert ours["rec/energy"].attrs._ipython_key_completions_() == ["unit"]
    group, attributes = ours["rec"], ours.attrs
    ours.close()
    assert group._ipython_key_completions_() == attributes._ipython_key_completions_() == []


def test_levels_with_many_names_are_not_completed(pair, monkeypatch):
    monkeypatch.setattr(_completion, "_MAX_COMPLETIONS", 6)

    def write(file):
        for name in "ab":
            file.create_group(name)["x"] = 1
        for number in range(9):
            file[f"a/g/{number}"] = 1
        file["b/up"] = file["/"]

    ours, _ = pair(write)
    assert ours._ipython_key_completions_() == ["a", "a/g", "a/x", "b", "b/up", "b/x"]


def test_views_show_names(nested):
    ours, theirs = nested
    assert repr(ours.keys()) == repr(theirs.keys()).replace("<KeysViewHDF5 ", "KeysView(").replace("]>", "])")
    assert list(reversed(ours.keys())) == list(reversed(theirs.keys()))
    assert repr(ours.attrs.keys()) == "KeysView(['title'])"
    assert repr(ours.items()) == f"ItemsView({ours!r})" and repr(ours.values()) == f"ValuesView({ours!r})"
    assert ours.keys() & {"rec", "none"} == {"rec"}


def test_a_file_is_a_tree(nested):
    ours, _ = nested
    shown = Balance(ours._repr_html_())
    for text in (
        "energy float32 (100,), 400 B, chunks (10,), shuffle, deflate", "map int16 (3, 4)", "compound of x, y (5,)",
        "name text (2,)", "scalar float64, scalar", "null float32, null", "type datatype", "titlea test", "unitGeV",
        "rec 4 members", "deep 1 member", "1 attribute",
    ):  # fmt: skip
        assert text in shown.text, (text, shown.text)
    assert "script" not in shown.elements
    part = Balance(ours["rec"]._repr_html_()).text
    assert "energy" in part and "scalar" not in part
    ours.close()
    assert "closed" in ours._repr_html_()


def test_names_in_a_tree_are_escaped(pair):
    def write(file):
        evil = "<script>alert(1)</script>&\"'"
        file.create_group(evil.replace("/", "|")).attrs[evil] = evil
        file[b"\xff\xfe"] = 1
        file["soft"] = h5py.SoftLink("/<b>none</b>")
        file["external"] = h5py.ExternalLink("<i>other</i>.h5", "/there")

    ours, _ = pair(write)
    shown = Balance(ours._repr_html_())
    assert not {"script", "b", "i"} & shown.elements
    assert "<script>alert(1)</script>&\"'" in shown.text
    assert "soft link to /<b>none</b>" in shown.text and "external link to /there in <i>other</i>.h5" in shown.text
    ours._repr_html_().encode("utf-8")


def test_a_large_or_circular_tree_is_cut(pair, monkeypatch):
    monkeypatch.setattr(_html, "_MAX_MEMBERS", 10)
    monkeypatch.setattr(_html, "_MAX_OBJECTS", 25)

    def write(file):
        for group in "abcdef":
            for number in range(12):
                file[f"{group}/{number:02}"] = number
        file["a/00up"] = file["/"]
        file["a"].attrs["long"] = "x" * 1000

    ours, _ = pair(write)
    shown = ours._repr_html_()
    text = Balance(shown).text
    assert "and 3 more" in text and text.count("int64") < 25 and "x" * 201 not in text
    assert len(re.findall("f 12 members", text)) == 1


def test_what_cannot_be_read_is_shown_as_such(tmp_path):
    with h5py.File(tmp_path / "damaged.h5", "w", libver="latest") as file:
        file["good"] = 1
        file["bad"] = np.arange(10)
        place = h5py.h5o.get_info(file["bad"].id).addr
    raw = bytearray((tmp_path / "damaged.h5").read_bytes())
    raw[place + 20] ^= 0xFF
    (tmp_path / "damaged.h5").write_bytes(raw)
    with raddle.open(tmp_path / "damaged.h5") as file:
        text = Balance(file._repr_html_()).text
    assert "good int64, scalar" in text and "bad cannot be read" in text


def test_a_scan_shows_how_it_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file["rec/energy"] = np.arange(5.0)
    with raddle.scan("a.h5") as scanned:
        scan = scanned["rec"]
        assert repr(scan) == "<raddle.scan('a.h5')['rec']>"
        part = scan.filter("energy > 2").partition(0, 2).select("energy")
        assert repr(part) == "<raddle.scan('a.h5')['rec'].filter('(energy > 2)').partition(...).select('energy')>"
