"""Objects that were split into branches and reassembled: compared with the bytes of the same objects unsplit, and with uproot's
reading of them by the descriptions in the file. What ROOT itself writes is compared in ``crates/events/tests/whole.rs``.
"""

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
import rootfile as r
import uproot
from converting import raddle
from objects import VERSION, Described

ENTRIES = 7
SAMPLES = Path(__file__).parents[2] / "crates/root/tests/samples"


def rows(path, *options):
    """The products of each event."""
    return [json.loads(line)["products"] for line in raddle("dump", path, "--json", *options).splitlines()]


def blobs(path, product, *options):
    return [bytes.fromhex(row[product]["bytes"]) for row in rows(path, "--products", product, *options)]


def plain(value):
    """What uproot made, as lists and dictionaries."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, uproot.model.Model):
        return {name: plain(member) for name, member in value.all_members.items()}
    if isinstance(value, uproot.containers.Container):
        return plain(value.tolist())
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def read_by_uproot(path, of_class, blob):
    """An object by uproot's own streamers, from bytes."""
    with uproot.open(path) as file:
        chunk = uproot.source.chunk.Chunk.wrap(file.file.source, np.frombuffer(blob, np.uint8))
        cursor = uproot.source.cursor.Cursor(0)
        # As it reads objects of branches.
        context = {"in_TBranch": True, "breadcrumbs": ()}
        read = file.file.class_named(of_class).read(chunk, cursor, context, file.file, file.file, None)
        assert cursor.index == len(blob)
        return plain(read)


def write_random(path, seed):
    """A file with objects of a random class, split and not; with the class and the objects."""
    draw = random.Random(seed)
    # uproot knows classes of all files by their names.
    described = Described(draw, f"Thing{seed}")
    objects = [described.make(draw) for _ in range(ENTRIES)]
    lists = [[described.make(draw) for _ in range(draw.randrange(4))] for _ in range(ENTRIES)]
    own = dict(version=described.version, checksum=described.checksum)
    made = [
        r.Branch("unsplit", [described.members_of(each) for each in objects], element=r.Of(described.name, -1, **own)),
        r.Branch("one", [], element=r.Of(described.name, -2, **own), branches=described.branches(objects)),
        r.Branch("dotted.", [], element=r.Of(described.name, -2, **own), branches=described.branches(objects, "dotted.")),
        r.Branch(
            "many",
            [struct.pack(">i", len(each)) for each in lists],
            element=r.Of(f"vector<{described.name}>", -1, 4, clones=described.name),
            branches=described.in_collection(lists, "many."),
        ),
    ]
    return r.write(path, made, described.infos()), described, objects, lists


@pytest.mark.parametrize("seed", range(40))
def test_random_classes(tmp_path, seed):
    path, described, objects, lists = write_random(tmp_path / "random.root", seed)
    assert raddle("inspect", path, "--whole").count("not read") == 0
    whole = [described.whole(each) for each in objects]
    for product in ("unsplit", "one", "dotted"):
        assert blobs(path, product, "--whole") == whole, product
    assert blobs(path, "many", "--whole") == [r.counted(VERSION, described.one_by_one(each)) for each in lists]
    for blob, expected in zip(blobs(path, "one", "--whole"), objects):
        assert read_by_uproot(path, described.name, blob) == described.values(expected)
    for blob, expected in zip(blobs(path, "many", "--whole"), lists):
        at, read = 10, []
        while at < len(blob):
            length = 4 + (struct.unpack_from(">I", blob, at)[0] & 0x3FFF_FFFF)
            read.append(read_by_uproot(path, described.name, blob[at : at + length]))
            at += length
        assert read == [described.values(each) for each in expected]


def test_objects_of_root_are_read_by_uproot(tmp_path):
    """Objects with bases of ROOT's own, from a ROOT file."""
    path = SAMPLES / "products.root"
    cells, names = blobs(path, "cell", "--whole"), blobs(path, "named", "--whole")
    for entry, (cell, name) in enumerate(zip(cells, names)):
        read = read_by_uproot(path, "Cell", cell)
        assert (read["@fUniqueID"], read["id"], read["size"], read["tag"]) == (1000 + entry, entry, entry / 2, "t" * (entry % 3))
        assert read_by_uproot(path, "TNamed", name)["fName"] == f"named {entry}"


LAYOUTS = [["pds"], *([layout, "--compat", "cce"] for layout in ("product", "event", "batch")), ["product"], ["event"], ["batch"]]


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
def test_products_come_back_from_every_format(tmp_path, layout):
    """Through a stream too, and on any number of threads."""
    path, *_ = write_random(tmp_path / "random.root", 3)
    products = ["--products", "one", "--products", "many", "--products", "unsplit"]
    expected = {
        product: [r.counted(6, blob) if product == "many" else blob for blob in blobs(path, product, "--whole")]
        for product in ("one", "many", "unsplit")
    }
    options = ["--serialize", "root", "--layout", *layout, *products]
    codec = ["--codec", "lz4"] if layout[0] == "pds" or "cce" in layout else []
    output, again, stream = tmp_path / "output", tmp_path / "again", tmp_path / "stream.pds"
    raddle("convert", path, "-o", output, "--whole", *options, *codec)
    raddle("convert", path, "-o", again, "--whole", *options, *codec, "-j", "3")
    assert output.read_bytes() == again.read_bytes()
    raddle("convert", output, "-o", stream, "--layout", "pds", "--codec", "none")
    for file in (output, stream):
        got = rows(file, "--raw")
        for product, blobs_of in expected.items():
            for row, blob in zip(got, blobs_of, strict=True):
                # Streams fill words up with zeros.
                padding = bytes(-len(blob) % 4) if "pds" in layout or file == stream else b""
                assert bytes.fromhex(row[product]["bytes"]) in (blob, blob + padding), product


def test_the_framework_takes_split_and_unsplit_objects_alike(tmp_path):
    """ROOT trees with the same objects, stored in four ways, become the same stream."""
    products = [option for name in ("hit", "hits", "cluster", "clusters", "tracks", "pairs", "shapes") for option in ("--products", name)]
    written = []
    for name in ("split", "unsplit", "objectwise", "embedded"):
        output = tmp_path / f"{name}.pds"
        raddle("convert", SAMPLES / f"{name}.root", "-o", output, "--whole", "--layout", "pds", "--codec", "none", *products)
        written.append(output.read_bytes())
    assert written.count(written[0]) == len(written)


POINT = r.Class("Point", 2, [r.basic("x", r.INT, "int"), r.Element("STLstring", "label", 500, "string"), r.basic("y", r.FLOAT, "float")], 77)
HIT = r.Class("Hit", 3, [r.basic("n", r.COUNTER, "int"), r.pointer("adc", r.FLOAT, "float", "n", "Hit")], 88)


def of(described, number, kind=0, streamer=-1, **changes):
    return r.Of(described.name, number, kind, streamer, **{"version": described.version, "checksum": described.checksum, **changes})


def split(**changes):
    """Branches of a ``Point``, a ``Hit`` and a ``vector<Point>``, of which ``changes`` changes one."""
    integers, words = [struct.pack(">i", entry) for entry in range(ENTRIES)], [r.counted(9, r.text("w" * entry)) for entry in range(ENTRIES)]
    arrays = [b"\1" + struct.pack(f">{entry}f", *range(entry)) if entry else b"\0" for entry in range(ENTRIES)]
    lists = [struct.pack(f">{entry}i", *range(entry)) for entry in range(ENTRIES)]
    texts = [r.counted(9, b"".join(r.text("t" * k) for k in range(entry))) for entry in range(ENTRIES)]
    below = {
        "point": [("x", integers, of(POINT, 0)), ("label", words, of(POINT, 1)), ("y", integers, of(POINT, 2))],
        "hit": [("n", integers, of(HIT, 0)), ("adc", arrays, of(HIT, 1))],
        "points": [("points.x", lists, of(POINT, 0, 41)), ("points.label", texts, of(POINT, 1, 41)), ("points.y", lists, of(POINT, 2, 41))],
    }
    made = {name: [r.Branch(own, entries, element=element) for own, entries, element in parts] for name, parts in below.items()}
    for name, change in changes.items():
        made[name] = change(made[name])
    return [
        r.Branch("points", integers, element=r.Of("vector<Point>", -1, 4, clones="Point"), branches=made["points"]),
        r.Branch("point", [], element=of(POINT, -2), branches=made["point"]),
        r.Branch("hit", [], element=of(HIT, -2), branches=made["hit"]),
    ]


def changed(number, **changes):
    """A change of one branch."""

    def change(branches):
        for name, value in changes.items():
            setattr(branches[number], name, value)
        return branches

    return change


def element(number, **changes):
    def change(branches):
        for name, value in changes.items():
            setattr(branches[number].element, name, value)
        return branches

    return change


NO_COUNT = [struct.pack(">i", 1)] * ENTRIES
BAD = {
    "a member without a branch": ("point", lambda parts: parts[:1] + parts[2:], "member label of class Point (string) has no branch below point"),
    "the last without a branch": ("point", lambda parts: parts[:2], "member y of class Point (float) has no branch below point"),
    "a member of a collection without a branch": ("points", lambda parts: parts[1:], "member x of class Point (int) has no branch below points"),
    "another order": ("point", lambda parts: [parts[1], parts[0], parts[2]], "member x of class Point (int) has no branch below point"),
    "a branch twice": ("point", lambda parts: [*parts, parts[2]], "branch point/y does not hold the expected member of class Point"),
    "another name": ("point", changed(0, name="z"), "member x of class Point (int) has no branch below point"),
    "another class": ("point", element(0, of_class="Hit"), "member x of class Point (int) has no branch below point"),
    "another version": ("point", element(2, version=9), "member y of class Point (float) has no branch below point"),
    "another checksum": ("point", element(2, checksum=5), "member y of class Point (float) has no branch below point"),
    "another number of entries": ("point", changed(2, stated_entries=5), "branch point/y has no entries, or a different number"),
    "a member of a collection by itself": ("points", element(1, kind=0), "branch points/points.label: branches of kind 0 and class Point"),
    "a member outside of a collection": ("point", element(1, kind=41), "branch point/label: branches of kind 41 and class Point"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_as_described_is_refused(tmp_path, case):
    product, change, reason = BAD[case]
    path, output = r.write(tmp_path / "bad.root", split(**{product: change}), [POINT, HIT]), tmp_path / "out.pds"
    options = ["--whole", "--layout", "pds", "--codec", "none"]
    message = raddle("convert", path, "-o", output, *options, code=3)
    assert f"branch {product}: the object cannot be reassembled" in message and reason in message
    assert not output.exists()
    assert f"not read: {product}: " in raddle("inspect", path, "--whole")
    # The others are not touched by it.
    raddle("convert", path, "-o", output, *options, "--skip-bad", code=4)
    good = r.write(tmp_path / "good.root", split(), [POINT, HIT])
    others = {name for name in ("point", "hit", "points") if name != product}
    assert set(rows(output, "--raw")[0]) == others
    for name in others:
        assert blobs(path, name, "--whole") == blobs(good, name, "--whole")


def test_versions_that_the_file_does_not_describe_are_refused(tmp_path):
    made = split()
    made[1].element.version, made[1].element.checksum = 9, 5
    path = r.write(tmp_path / "version.root", made, [POINT, HIT])
    message = raddle("dump", path, "--whole", "--products", "point", code=3)
    assert "branch point: the file does not describe version 9 of class Point" in message
    path = r.write(tmp_path / "class.root", split(), [POINT])
    message = raddle("dump", path, "--whole", "--products", "hit", code=3)
    assert "branch hit: the file does not describe version 3 of class Hit" in message
    assert len(blobs(path, "point", "--whole")) == ENTRIES


BAD_ENTRIES = {
    "fewer values than objects": ("points", changed(0, entries=[b""] * ENTRIES), "points/points.x, entries 1..2"),
    "more values than objects": ("points", changed(2, entries=[struct.pack(">2i", 0, 0)] * ENTRIES), "points/points.y, entries 0..1"),
    "fewer texts than objects": ("points", changed(1, entries=[r.counted(9, r.text("t"))] * ENTRIES), "points/points.label, entries 0..1"),
    "another count than values": ("hit", changed(0, entries=NO_COUNT), "hit/adc, entries 0..1"),
    "a negative count": ("hit", changed(0, entries=[struct.pack(">i", -1)] * ENTRIES), "hit/adc, entries 0..1"),
    "a null pointer to values": ("hit", changed(1, entries=[b"\0"] * ENTRIES), "hit/adc, entries 1..2"),
    "a byte after the value": ("point", changed(1, entries=[r.counted(9, r.text("w")) + b"\0"] * ENTRIES), "point/label, entries 0..1"),
    "an entry that is cut": ("point", changed(1, entries=[b"\x40\0\0"] * ENTRIES), "point/label, entries 0..1"),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
def test_entries_that_contradict_each_other_are_refused(tmp_path, case):
    product, change, place = BAD_ENTRIES[case]
    path, output = r.write(tmp_path / "bad.root", split(**{product: change}), [POINT, HIT]), tmp_path / "out.pds"
    message = raddle("convert", path, "-o", output, "--whole", "--layout", "pds", "--products", product, code=3)
    assert f"branch {place}" in message
    assert not output.exists()


def test_whole_objects_are_not_raw(tmp_path):
    message = raddle("dump", SAMPLES / "split.root", "--whole", "--raw", code=2)
    assert "cannot be used with" in message
