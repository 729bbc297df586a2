"""Branches that uproot reads but cannot write: raddle's columns equal uproot's, or ROOT's where uproot deviates from
ROOT."""

import resource
import struct
import subprocess

import conftest
import numpy as np
import pytest
import rootfile as r
import uproot
from branch_values import COUNTS, ENTRIES, RANGES, collection, lists, stored
from command import run_command
from converting import run_events


def test_what_is_not_supported_does_not_hide_the_rest(tmp_path, dump):
    """A leaf and a branch whose own descriptions have unknown members."""
    odd = [r.Element("Artificial", "fOdd", 99, "Odd")]
    classes = [r.Class("TLeafD", 1, [r.base("TLeaf", 2), *odd])]
    numbers = [struct.pack(">d", entry / 3) for entry in range(ENTRIES)]
    branches = [r.Branch("odd", numbers, "TLeafD", has_offsets=False), r.Branch("x", numbers, "TLeafD32", "x/d[0,1]")]
    path = r.write(tmp_path / "leaf.root", [r.Branch("good", [part[:4] for part in numbers], "TLeafF", has_offsets=False), branches[0]], classes)
    dumped = dump(path)
    assert list(dumped.products) == ["good", "odd"]
    assert "odd: read as bytes: not supported" in dumped.notes and "member fOdd of class TLeafD" in dumped.notes
    assert dumped.raw("odd") == numbers
    with uproot.open(path) as file:
        assert dumped["good"].to_list() == file["events"]["good"].array().to_list()

    classes = [r.Class("TBranchElement", 10, [r.base("TBranch", 13), *odd])]
    described = r.Class("Thing", 1, [r.basic("x", r.DOUBLE, "double")])
    made = [r.Branch("thing", numbers, element=r.Of("Thing", 0)), r.Branch("good", numbers, "TLeafD", has_offsets=False)]
    path = r.write(tmp_path / "branch.root", made, [*classes, described])
    dumped = dump(path)
    assert list(dumped.products) == ["good"]
    assert "not read: thing: not supported" in dumped.notes and "member fOdd of class TBranchElement" in dumped.notes
    assert dumped["good"].to_list() == [entry / 3 for entry in range(ENTRIES)]
    converted = run_events("convert", path, "-o", tmp_path / "out.h5")
    assert "left out: thing: not supported" in converted.stderr


def test_rvec(tmp_path, dump):
    """``ROOT::VecOps::RVec`` is stored as a vector: whole, nested, as a member, of objects."""
    numbers = lists([value / 4 for value in range(sum(COUNTS))])
    floats = [collection([struct.pack(">f", number) for number in entry]) for entry in numbers]
    nested = [collection([struct.pack(">I", count) + struct.pack(">i", entry) * count for count in range(entry % 3)]) for entry in range(ENTRIES)]
    small = r.Class("Small", 1, [r.basic("id", r.INT, "int"), r.basic("x", r.FLOAT, "float")])
    holder = r.Class("Holder", 1, [r.Element("STL", "v", 500, "ROOT::VecOps::RVec<float>")])
    parts = [[struct.pack(">if", entry, index) for index in range(count)] for entry, count in enumerate(COUNTS)]
    objects = [collection([r.counted(1, part) for part in entry]) for entry in parts]
    made = [
        r.Branch("floats", floats, element=r.Of("ROOT::VecOps::RVec<float>", -1)),
        r.Branch("short", floats, element=r.Of("ROOT::RVec<float>", -1)),
        r.Branch("nested", nested, element=r.Of("ROOT::VecOps::RVec<ROOT::VecOps::RVec<int> >", -1)),
        r.Branch("objects", objects, element=r.Of("ROOT::VecOps::RVec<Small>", -1)),
        r.Branch("holder", [], element=r.Of("Holder", -2), branches=[r.Branch("v", floats, element=r.Of("Holder", 0, streamer_type=500))]),
    ]
    path = r.write(tmp_path / "rvec.root", made, [small, holder])
    dumped = dump(path)
    assert dumped.notes == ""
    assert dumped["floats"].to_list() == dumped["short"].to_list() == numbers
    with uproot.open(path) as file:
        for ours, theirs in [("floats", "floats"), ("nested", "nested"), ("holder.v", "holder/v")]:
            expected = file["events"][theirs].array()
            assert dumped[ours].to_list() == expected.to_list(), ours
    # uproot ignores the headers of these.
    assert dumped["objects"].to_list() == [[{"id": entry, "x": x} for x in range(count)] for entry, count in enumerate(COUNTS)]


def headed(parts):
    """Returns values with one header around all of them."""
    return r.counted(10, b"".join(parts))


# ROOT describes it without members.
TSTRING_CLASS = r.Class("TString", 2, [])


def test_tstrings(tmp_path, dump):
    """Whole branches, members, elements of collections, keys and values of maps, arrays of a fixed length."""
    texts = [f"text {entry}" * (60 if entry == 5 else 1) for entry in range(ENTRIES)]
    words = lists([f"word {number}" for number in range(sum(COUNTS))])
    named = r.Class("Named", 1, [r.Element("String", "name", r.TSTRING, "TString"), r.basic("n", r.INT, "int")])
    vectors = [collection([r.text(word) for word in entry]) for entry in words]
    maps = [collection([r.text(word) + r.text(word * 2) for word in entry]) for entry in words]
    # Stored member by member: all keys, then all values.
    by_member = []
    for entry in words:
        keys, values = (b"".join(r.text(word * times) for word in entry) for times in (1, 2))
        by_member.append(r.counted(0x4009, struct.pack(">HII", 0, 0x1234_5678, len(entry)) + keys + values))
    whole = [r.text(text) + struct.pack(">i", entry) for entry, text in enumerate(texts)]
    made = [
        r.Branch("whole", list(map(r.text, texts)), element=r.Of("TString", -1, -1, version=2)),
        r.Branch("words", vectors, element=r.Of("vector<TString>", -1)),
        r.Branch("map", maps, element=r.Of("map<TString,TString>", -1)),
        r.Branch("members", by_member, element=r.Of("map<TString,TString>", -1)),
        r.Branch("named", whole, element=r.Of("Named", -1)),
        r.Branch("split", [], element=r.Of("Named", -2), branches=[r.Branch("name", list(map(r.text, texts)), element=r.Of("Named", 0, 0, r.TSTRING))]),
        r.Branch("all.name", [b"".join(map(r.text, entry)) for entry in words], element=r.Of("Named", 0, 41, r.TSTRING)),
    ]
    path = r.write(tmp_path / "texts.root", made, [TSTRING_CLASS, named])
    dumped = dump(path)
    assert dumped.notes == ""
    assert dumped["whole"].to_list() == dumped["split.name"].to_list() == texts
    assert dumped["named"].to_list() == [{"name": text, "n": entry} for entry, text in enumerate(texts)]
    assert dumped["words"].to_list() == dumped["all.name"].to_list() == words
    pairs = [[{"first": word, "second": word * 2} for word in entry] for entry in words]
    assert dumped["map"].to_list() == dumped["members"].to_list() == pairs
    with uproot.open(path) as file:
        tree = file["events"]
        assert tree["whole"].array().to_list() == tree["split/name"].array().to_list() == texts
        assert tree["words"].array().to_list() == words
        assert tree["named"].array().to_list() == dumped["named"].to_list()


def test_arrays_of_a_fixed_length(tmp_path, dump):
    """Arrays of both kinds of strings, of lists, and of objects. Strings and lists have one header for the whole array,
    even if they have none otherwise; objects have one each. As ROOT 6.40 writes them; uproot reads few of them."""
    small = r.Class("Small", 1, [r.basic("id", r.INT, "int"), r.basic("x", r.FLOAT, "float")])
    described = r.Class(
        "Arrays",
        1,
        [
            r.Element("ObjectAny", "fixed", r.ANY + r.ARRAY, "Small", extents=(2,)),
            r.Element("String", "names", r.TSTRING + r.ARRAY, "TString", extents=(2,)),
            r.Element("STLstring", "words", 365 + r.ARRAY, "string", extents=(2, 2)),
            r.Element("STL", "lists", r.STL, "vector<int>", extents=(2,)),
            r.Element("STL", "smalls", r.STL, "vector<Small>", extents=(2,)),
        ],
    )

    def parts_and_values(seed):
        fixed = [{"id": 10 * seed + k, "x": seed + k / 2} for k in range(2)]
        names = ["n" * (k + seed % 3) for k in range(2)]
        words = [[f"w{seed}{k}{j}" for j in range(2)] for k in range(2)]
        numbers = [[seed] * (k + seed % 3) for k in range(2)]
        smalls = [[{"id": seed, "x": float(j)} for j in range((seed + k) % 3)] for k in range(2)]
        parts = {
            "fixed": b"".join(r.counted(1, struct.pack(">if", part["id"], part["x"])) for part in fixed),
            "names": b"".join(map(r.text, names)),
            "words": b"".join(map(r.text, sum(words, []))),
            "lists": b"".join(struct.pack(f">I{len(part)}i", len(part), *part) for part in numbers),
            # Member by member.
            "smalls": b"".join(
                struct.pack(f">I{len(part)}i{len(part)}f", len(part), *[one["id"] for one in part], *[one["x"] for one in part])
                for part in smalls
            ),
        }
        return parts, {"fixed": fixed, "names": names, "words": words, "lists": numbers, "smalls": smalls}

    def front(name, parts):
        if name == "fixed":
            return b"".join(parts)
        if name == "smalls":
            return r.counted(0x4009, struct.pack(">H", 1) + b"".join(parts))
        return headed(parts)

    made = [parts_and_values(entry) for entry in range(ENTRIES)]
    names = [element.name for element in described.elements]
    whole = [b"".join(front(name, [parts[name]]) for name in names) for parts, _ in made]
    branches = [r.Branch("whole", whole, element=r.Of("Arrays", -1))]
    of_all = lists([parts_and_values(20 + number) for number in range(sum(COUNTS))])
    for number, name in enumerate(names):
        split = [front(name, [parts[name]]) for parts, _ in made]
        branches.append(r.Branch(f"one.{name}", split, element=r.Of("Arrays", number)))
        split = [front(name, [parts[name] for parts, _ in entry]) if entry else b"" for entry in of_all]
        branches.append(r.Branch(f"all.{name}", split, element=r.Of("Arrays", number, 41)))
    dumped = dump(r.write(tmp_path / "arrays.root", branches, [small, described, TSTRING_CLASS]))
    assert dumped.notes == ""
    assert dumped["whole"].to_list() == [values for _, values in made]
    for name in names:
        assert dumped[f"one.{name}"].to_list() == [values[name] for _, values in made], name
        assert dumped[f"all.{name}"].to_list() == [[values[name] for _, values in entry] for entry in of_all], name


GENERATED = {"has_offsets": False, "io_bits": 1}


def test_baskets_without_offsets(tmp_path, dump):
    """Counts are in another branch. ROOT marks this with a bit (as in NanoAOD), older files do not."""
    # The number of values of every basket is a multiple of its entries, as if all entries had one length.
    counts = [0, 1, 2, 3, 4] * 2 + [1, 0]
    entries = range(len(counts))
    values = [[entry + value / 8 for value in range(count)] for entry, count in enumerate(counts)]
    numbers = [b"".join(struct.pack(">f", value) for value in entry) for entry in values]
    pairs = [b"".join(struct.pack(">dd", value, -value) for value in entry) for entry in values]
    words = [f"word {entry}" * (60 if entry == 5 else 1) for entry in entries]
    made = [
        r.Branch("n", [struct.pack(">i", count) for count in counts], "TLeafI", has_offsets=False),
        r.Branch("small", [struct.pack(">h", count) for count in counts], "TLeafS", has_offsets=False),
        r.Branch("plain", numbers, "TLeafF", "plain[n]", counter="n", has_offsets=False),
        r.Branch("generated", numbers, "TLeafF", "generated[n]", counter="n", **GENERATED),
        r.Branch("short", numbers, "TLeafF", "short[small]", counter="small", **GENERATED),
        r.Branch("pairs", pairs, "TLeafD", "pairs[n][2]", length=2, counter="n", **GENERATED),
        r.Branch("packed", numbers, "TLeafD32", "packed[n]", counter="n", **GENERATED),
        # Baskets that end at other entries than those of the counts.
        r.Branch("other", numbers, "TLeafF", "other[n]", counter="n", per_basket=7, **GENERATED),
        r.Branch("words", list(map(r.text, words)), "TLeafC", io_bits=1),
        # Baskets stored in their tree.
        r.Branch("inside", numbers, "TLeafF", "inside[n]", counter="n", is_embedded=True, **GENERATED),
        r.Branch("texts", list(map(r.text, words)), "TLeafC", io_bits=1, is_embedded=True),
        r.Branch("usual", numbers, "TLeafF", "usual[n]", counter="n", is_embedded=True),
    ]
    path = r.write(tmp_path / "counted.root", made)
    dumped, raw = dump(path), dump(path, raw=True)
    assert dumped.notes == ""
    for name in ["plain", "generated", "short", "packed", "other", "inside", "usual"]:
        assert dumped[name].to_list() == values, name
        assert raw.raw(name) == numbers, name
    assert dumped["pairs"].to_list() == [[[value, -value] for value in entry] for entry in values]
    assert raw.raw("pairs") == pairs
    # uproot interprets lengths as offsets.
    assert dumped["words"].to_list() == dumped["texts"].to_list() == words
    with uproot.open(path) as file:
        for name in ["plain", "generated", "short", "usual"]:
            assert dumped[name].to_list() == file["events"][name].array().to_list(), name


def test_baskets_without_offsets_that_cannot_be_read(tmp_path, dump):
    counts, numbers = [struct.pack(">i", 1)] * ENTRIES, [struct.pack(">ff", 1, 2)] * ENTRIES
    n = r.Branch("n", counts, "TLeafI", has_offsets=False)
    path = r.write(tmp_path / "more.root", [n, r.Branch("x", numbers, "TLeafF", "x[n]", counter="n", **GENERATED)])
    dump(path, expect="branch x, entries 0..5: damaged (at byte 0): basket: 20 bytes of entries according to their counts, but 40 stored bytes")
    n = r.Branch("n", [struct.pack(">i", -1)] * ENTRIES, "TLeafI", has_offsets=False)
    path = r.write(tmp_path / "negative.root", [n, r.Branch("x", numbers, "TLeafF", "x[n]", counter="n", **GENERATED)])
    dump(path, expect="a count that no basket could hold")
    n = r.Branch("n", counts, "TLeafF", has_offsets=False)
    path = r.write(tmp_path / "float.root", [n, r.Branch("x", numbers, "TLeafF", "x[n]", counter="n", **GENERATED)])
    dump(path, expect="branch x, entries 0..5: not supported (at byte 0): basket: neither offsets nor counts")
    path = r.write(tmp_path / "bits.root", [r.Branch("x", numbers, "TLeafF", length=2, title="x[2]", has_offsets=False, io_bits=6)])
    dump(path, expect="not supported (at byte")


def test_arrays_behind_pointers(tmp_path, dump):
    """``float *pt; //[n]`` in whole objects, in objects member by member, and alone; arrays of pointers; packed
    numbers."""
    described = r.Class(
        "Pointers",
        1,
        [
            r.basic("n", r.COUNTER, "int"),
            r.pointer("pt", r.FLOAT, "float", "n", "Pointers"),
            r.basic("other", r.INT, "int"),
            r.pointer("pairs", r.INT, "int", "n", "Pointers", extents=(2,)),
            r.pointer("packed", r.DOUBLE32, "Double32_t", "n", "Pointers", "[-1,1,10]"),
        ],
    )

    def parts_and_values(seed):
        n = seed % 3
        pt = [seed + k / 2 for k in range(n)]
        pairs = [[100 * seed + 10 * j + k for k in range(n)] for j in range(2)]
        packed, values = stored(RANGES["[-1,1,10]"], seed, n)
        # A byte states whether there are values; null pointers have none, whatever the count is.
        flag, is_null = bytes([n > 0]), seed == 5
        parts = {
            "n": struct.pack(">i", n),
            "pt": b"\0" if is_null else flag + struct.pack(f">{n}f", *pt),
            "other": struct.pack(">i", 7),
            "pairs": flag + struct.pack(f">{2 * n}i", *sum(pairs, [])),
            "packed": flag + b"".join(packed),
        }
        return parts, {"n": n, "pt": [] if is_null else pt, "other": 7, "pairs": pairs, "packed": values}

    names = [element.name for element in described.elements]
    made = [parts_and_values(entry) for entry in range(ENTRIES)]
    of_all = lists([parts_and_values(number) for number in range(sum(COUNTS))])
    by_member = []
    for entry in of_all:
        content = b"".join(parts[name] for name in names for parts, _ in entry)
        by_member.append(r.counted(0x4009, struct.pack(">HI", 1, len(entry)) + content))
    branches = [
        r.Branch("whole", [b"".join(parts.values()) for parts, _ in made], element=r.Of("Pointers", -1)),
        r.Branch("objects", [collection([r.counted(1, b"".join(parts.values())) for parts, _ in entry]) for entry in of_all], element=r.Of("vector<Pointers>", -1)),
        r.Branch("members", by_member, element=r.Of("vector<Pointers>", -1)),
    ]
    split = []
    for number, (name, element) in enumerate(zip(names, described.elements)):
        title = f"{name}[n]" if element.kind == "BasicPointer" else name
        counter = "n" if element.kind == "BasicPointer" else None
        split.append(r.Branch(name, [parts[name] for parts, _ in made], title=title, element=r.Of("Pointers", number, 0, element.type), counter=counter))
    branches.append(r.Branch("split", [], element=r.Of("Pointers", -2), branches=split))
    counts = [struct.pack(">i", count) for count in COUNTS]
    of_members = {name: [b"".join(parts[name] for parts, _ in entry) for entry in of_all] for name in names}
    split = [
        # Baskets that differ from those of the counts.
        r.Branch(f"all.{name}", of_members[name], element=r.Of("Pointers", number, 41, element.type), per_basket=5 if name == "n" else 4)
        for number, (name, element) in enumerate(zip(names, described.elements))
    ]
    branches.append(r.Branch("all", counts, title="all_", element=r.Of("vector<Pointers>", -1, 4), branches=split))
    branches.append(r.Branch("lone.pt", of_members["pt"], element=r.Of("Pointers", 1, 41, 45)))
    path = r.write(tmp_path / "pointers.root", branches, [described])
    dumped = dump(path)
    # The counts of objects of a split collection are in another branch, which is missing here.
    assert dumped.notes.startswith("lone.pt: read as bytes: arrays of type float*[] whose lengths are not in a branch")
    assert dumped.notes.count("\n") == 1
    expected = [values for _, values in made]
    assert dumped["whole"].to_list() == expected
    for name in names:
        assert dumped[f"split.{name}"].to_list() == [values[name] for values in expected], name
        assert dumped[f"all.{name}"].to_list() == [[values[name] for _, values in entry] for entry in of_all], name
    assert dumped["objects"].to_list() == dumped["members"].to_list() == [[values for _, values in entry] for entry in of_all]
    with uproot.open(path) as file:
        assert file["events"]["split/pt"].array().to_list() == dumped["split.pt"].to_list()


def test_an_array_behind_a_pointer_that_is_damaged(tmp_path, dump):
    described = r.Class("Pointers", 1, [r.basic("n", r.COUNTER, "int"), r.pointer("pt", r.FLOAT, "float", "n", "Pointers")])
    for count, stored_count in [(3, 2), (1, 2), (-1, 1)]:
        entry = struct.pack(">i", count) + b"\1" + bytes(4 * stored_count)
        path = r.write(tmp_path / f"damaged{count}.root", [r.Branch("whole", [entry] * ENTRIES, element=r.Of("Pointers", -1))], [described])
        dump(path, expect="branch whole, entries 0..1: damaged")
        counts, arrays = ([part] * ENTRIES for part in (entry[:4], entry[4:]))
        split = [r.Branch("n", counts, element=r.Of("Pointers", 0, 41, 6)), r.Branch("pt", arrays, element=r.Of("Pointers", 1, 41, 45))]
        of_all = r.Branch("all", counts, element=r.Of("vector<Pointers>", -1, 4), branches=split)
        dump(r.write(tmp_path / f"split{count}.root", [of_all], [described]), expect="branch all/pt, entries 0..1: damaged")


def test_objects_that_are_referred_to(tmp_path, dump):
    """The bits of referenced objects are followed by the number of a process."""
    thing = r.Class("Thing", 2, [r.base("TObject"), r.basic("id", r.INT, "int")])
    bits = [0x0300_0010 if entry % 3 == 1 else 0x0300_0000 for entry in range(ENTRIES)]
    of_all = lists(bits * 2)

    def bits_of(value):
        return struct.pack(">I", value) + (struct.pack(">H", 9) if value & 0x10 else b"")

    def whole(value):
        return struct.pack(">HI", 1, 5) + bits_of(value)

    by_member = []
    for entry in of_all:
        # Base classes of this class stay whole.
        content = b"".join(map(whole, entry)) + struct.pack(f">{len(entry)}i", *range(len(entry)))
        by_member.append(r.counted(0x4009, struct.pack(">HI", 2, len(entry)) + content))
    made = [
        r.Branch("whole", [whole(value) + struct.pack(">i", entry) for entry, value in enumerate(bits)], element=r.Of("Thing", -1, version=2)),
        r.Branch("fBits", list(map(bits_of, bits)), element=r.Of("TObject", 1, 0, r.BITS, checksum=r.TOBJECT_CLASS.checksum)),
        r.Branch("all.fBits", [b"".join(map(bits_of, entry)) for entry in of_all], element=r.Of("TObject", 1, 31, r.BITS, checksum=r.TOBJECT_CLASS.checksum)),
        r.Branch("members", by_member, element=r.Of("vector<Thing>", -1)),
        # Split one level deep: the base class alone.
        r.Branch("base", list(map(whole, bits)), element=r.Of("Thing", 0, 0, r.TOBJECT, version=2)),
    ]
    dumped = dump(r.write(tmp_path / "bits.root", made, [r.TOBJECT_CLASS, thing]))
    assert dumped.notes == ""
    assert dumped["whole"].to_list() == [{"fUniqueID": 5, "fBits": value, "id": entry} for entry, value in enumerate(bits)]
    assert dumped.products["base"]["class"] == "TObject"
    assert dumped["base"].to_list() == [{"fUniqueID": 5, "fBits": value} for value in bits]
    assert dumped["fBits"].to_list() == bits
    assert dumped["all.fBits"].to_list() == of_all
    assert dumped["members"].to_list() == [[{"fUniqueID": 5, "fBits": value, "id": number} for number, value in enumerate(entry)] for entry in of_all]


# ROOT describes their layout in memory.
TREF_CLASS = r.Class("TRef", 1, [r.base("TObject")])
TREFARRAY_CLASS = r.Class("TRefArray", 1, [r.base("TSeqCollection"), r.basic("fLast", r.INT, "int")])


def test_references(tmp_path, dump):
    """``TRef`` and ``TRefArray``, whole, as members, and as members of objects of a split collection."""

    def reference(number):
        return r.tobject(number, 0) + struct.pack(">H", 1)

    def references(name, numbers):
        return r.counted(1, r.tobject(0, 0) + r.text(name) + struct.pack(">iiH", len(numbers), 0, 1) + struct.pack(f">{len(numbers)}I", *numbers))

    holder = r.Class("Holder", 1, [r.Element("Object", "ref", r.OBJECT, "TRef"), r.Element("Object", "refs", r.OBJECT, "TRefArray")])
    one = [reference(entry) for entry in range(ENTRIES)]
    many = [references("r" * (entry % 2), list(range(entry % 4))) for entry in range(ENTRIES)]
    some = [b"".join(reference(number) for number in range(count)) for count in COUNTS]
    made = [
        r.Branch("ref", one, element=r.Of("TRef", -1, -1)),
        r.Branch("refs", many, element=r.Of("TRefArray", -1, -1)),
        r.Branch("whole", [left + right for left, right in zip(one, many)], element=r.Of("Holder", -1)),
        r.Branch("holder", [], element=r.Of("Holder", -2), branches=[
            r.Branch("ref", one, element=r.Of("Holder", 0, 0, r.OBJECT)),
            r.Branch("refs", many, element=r.Of("Holder", 1, 0, r.OBJECT)),
        ]),
        r.Branch("all.ref", some, element=r.Of("Holder", 0, 41, r.OBJECT)),
    ]
    path = r.write(tmp_path / "references.root", made, [r.TOBJECT_CLASS, TREF_CLASS, TREFARRAY_CLASS, holder])
    dumped = dump(path)
    assert dumped.notes == ""
    with uproot.open(path) as file:
        for ours, theirs in [("ref", "ref"), ("refs", "refs"), ("holder.ref", "holder/ref"), ("holder.refs", "holder/refs")]:
            expected = file["events"][theirs].array()
            assert dumped[ours].to_list() == expected.to_list(), ours
            assert str(dumped[ours].type).replace("{", "[").replace("}", "]").replace('"', "") == str(expected.type).replace("TRefArray", "").replace("TRef", "")
    assert dumped["whole"].to_list() == [{"ref": left, "refs": right} for left, right in zip(dumped["ref"].to_list(), dumped["refs"].to_list())]
    assert dumped["all.ref"].to_list() == [[{"ref": number} for number in range(count)] for count in COUNTS]
    assert dumped["refs"].to_list()[3] == {"fName": "r", "fSize": 3, "refs": [0, 1, 2]}


def test_whole_objects_with_a_streamer_of_their_own(tmp_path, dump):
    """Objects of such classes have a header, unlike other whole objects."""
    vector = r.Class("TVector2", 3, [r.base("TObject"), r.basic("fX", r.DOUBLE, "double"), r.basic("fY", r.DOUBLE, "double")])
    members = [r.tobject(0, 0) + struct.pack(">dd", entry, -entry) for entry in range(ENTRIES)]
    made = [
        r.Branch("own", [r.counted(3, part) for part in members], element=r.Of("TVector2", -1, -1, version=3)),
        r.Branch("plain", members, element=r.Of("TVector2", -1, 0, version=3)),
    ]
    path = r.write(tmp_path / "vectors.root", made, [r.TOBJECT_CLASS, vector])
    dumped = dump(path)
    assert dumped.notes == ""
    expected = [{"fUniqueID": 0, "fBits": 0, "fX": float(entry), "fY": -float(entry)} for entry in range(ENTRIES)]
    assert dumped["own"].to_list() == dumped["plain"].to_list() == expected
    with uproot.open(path) as file:
        assert file["events"]["own"].array().to_list() == [{"fX": value["fX"], "fY": value["fY"]} for value in expected]


def test_classes_that_are_stored_otherwise_than_described(tmp_path, dump):
    """ROOT's own arrays and dates have no headers; lists of objects are unsupported, and do not prevent reading the
    rest."""
    arrays = [struct.pack(f">i{count}f", count, *[entry / 2] * count) for entry, count in enumerate(COUNTS)]
    dates = [struct.pack(">I", 0x6444_0000 + entry) for entry in range(ENTRIES)]
    bits = [r.counted(1, r.tobject(0, 0) + struct.pack(">IIBB", 8, 1, 1, entry)) for entry in range(ENTRIES)]
    described = [
        r.TOBJECT_CLASS,
        r.Class("TArray", 1, [r.basic("fN", r.INT, "int")]),
        r.Class("TArrayF", 1, [r.base("TArray"), r.pointer("fArray", r.FLOAT, "float", "fN", "TArray")]),
        r.Class("TDatime", 1, [r.basic("fDatime", r.UINT, "unsigned int")]),
        # The only counts that are not of type Int_t.
        r.Class("TBits", 1, [r.base("TObject"), r.basic("fNbits", r.UINT, "unsigned int"), r.basic("fNbytes", r.UINT, "unsigned int"), r.pointer("fAllBits", 11, "unsigned char", "fNbytes", "TBits")]),
        r.Class("TCollection", 3, [r.base("TObject"), r.basic("fSize", r.INT, "int")]),
        r.Class("TList", 5, [r.base("TCollection", 3)]),
        r.Class("Derived", 1, [r.base("TArrayF")]),
        r.Class("Holder", 1, [r.Element("ObjectAny", "a", r.ANY, "TArrayF"), r.Element("ObjectAny", "t", r.ANY, "TDatime"), r.Element("Object", "b", r.OBJECT, "TBits")]),
    ]
    split = [
        r.Branch("a", arrays, element=r.Of("Holder", 0, 0, r.ANY)),
        r.Branch("t", dates, element=r.Of("Holder", 1, 0, r.ANY), has_offsets=False),
        r.Branch("b", bits, element=r.Of("Holder", 2, 0, r.OBJECT)),
    ]
    made = [
        r.Branch("array", arrays, element=r.Of("TArrayF", -1, -1)),
        r.Branch("whole", list(map(b"".join, zip(arrays, dates, bits))), element=r.Of("Holder", -1)),
        r.Branch("split", [], element=r.Of("Holder", -2), branches=split),
        r.Branch("list", bits, element=r.Of("TList", -1, -1, version=5)),
        r.Branch("derived", bits, element=r.Of("Derived", -1)),
    ]
    path = r.write(tmp_path / "own.root", made, described)
    dumped = dump(path)
    of_own = "read as bytes: class {} has a custom streamer, which is not supported"
    assert dumped.notes.splitlines() == ["list: " + of_own.format("TList"), "derived: " + of_own.format("TArrayF")]
    assert dumped.raw("list") == bits
    values = {"a": [[entry / 2] * count for entry, count in enumerate(COUNTS)], "t": [{"fDatime": 0x6444_0000 + entry} for entry in range(ENTRIES)]}
    values["b"] = [{"fUniqueID": 0, "fBits": 0, "fNbits": 8, "fNbytes": 1, "fAllBits": [entry]} for entry in range(ENTRIES)]
    assert dumped["array"].to_list() == values["a"]
    for name, expected in values.items():
        assert dumped[f"split.{name}"].to_list() == dumped["whole"][name].to_list() == expected, name
    with uproot.open(path) as file:
        for name in ["array", "split/a", "split/t"]:
            assert file["events"][name].array().to_list() == dumped[name.replace("/", ".")].to_list(), name


def test_classes_that_are_described_twice(tmp_path, dump):
    """Merged files may repeat descriptions. Classes whose objects state no version were then read as bytes."""
    described = [
        r.Class("Base", 1, [r.basic("key", r.UINT, "unsigned int")]),
        r.Class("Link", 1, [r.base("Base"), r.basic("index", r.INT, "int")]),
    ]
    links = [struct.pack(">Ii", 7, entry) for entry in range(ENTRIES)]
    links = [r.counted(1, r.counted(1, link[:4]) + link[4:]) for link in links]
    lists_of_links = [collection([struct.pack(">I", count) + link * count]) for link, count in zip(links, COUNTS)]
    made = [r.Branch("links", lists_of_links, element=r.Of("vector<vector<Link> >", -1))]
    path = r.write(tmp_path / "twice.root", made, [*described, *described])
    dumped = dump(path)
    assert dumped.notes == ""
    assert dumped["links"].to_list() == [[[{"key": 7, "index": entry}] * count] for entry, count in enumerate(COUNTS)]
    with uproot.open(path) as file:
        assert file["events"]["links"].array().to_list() == dumped["links"].to_list()
    # A class that is described in two ways may have either form.
    other = r.Class("Base", 2, [r.basic("key", r.INT, "int")])
    assert "Base" in dump(r.write(tmp_path / "otherwise.root", made, [*described, other])).notes


@pytest.mark.parametrize("options", [["--layout", "pds"], ["--layout", "event", "--compat", "cce"], ["--layout", "product", "--compat", "cce"]])
def test_ids_are_no_product_of_formats_that_store_them(tmp_path, dump, options):
    """The framework's branch ``EventID`` has the ids of its trees. Such a tree was refused because this product has no
    bytes."""
    leaves = [("TLeafI", "run", True), ("TLeafI", "lumi", True), ("TLeafL", "event", True)]
    ids = [struct.pack(">IIQ", 1, entry % 2, 7 + entry) for entry in range(ENTRIES)]
    numbers = [collection([struct.pack(">i", entry)] * count) for entry, count in enumerate(COUNTS)]
    made = [
        r.Branch("ints", numbers, element=r.Of("vector<int>", -1)),
        r.Branch("EventID", ids, title="run/i:lumi/i:event/l", leaves=leaves, has_offsets=False),
    ]
    path = r.write(tmp_path / "events.root", made)
    assert list(dump(path).products) == ["ints", "EventID"]
    with uproot.open(path) as file:
        assert file["events/EventID"].array().to_list() == dump(path)["EventID"].to_list()
    out = tmp_path / ("out.pds" if "pds" in options else "out.h5")

    def convert(*more):
        return run_command("events", "convert", path, "-o", out, *options, *more)

    assert (finished := convert()).returncode == 0, finished.stderr
    written = dump(out)
    assert list(written.products) == ["ints"]
    assert [id["event"] for id in written.ids] == list(range(7, 7 + ENTRIES))
    asked = convert("--products", "EventID", "--force")
    assert asked.returncode != 0 and "product EventID (bytes[basket]) cannot be written" in asked.stderr


def test_changed_bytes_are_read_or_refused(tmp_path, dump):
    """Trees of most of the above with modified bytes: raddle reads or refuses them, and needs no more memory than they
    could fill."""
    described = r.Class(
        "Mixed",
        1,
        [
            r.base("TObject"),
            r.basic("n", r.COUNTER, "int"),
            r.pointer("pt", r.FLOAT, "float", "n", "Mixed"),
            r.pointer("pairs", r.DOUBLE32, "Double32_t", "n", "Mixed", "[0,0,8]", extents=(2,)),
            r.Element("String", "names", r.TSTRING + r.ARRAY, "TString", extents=(2,)),
            r.Element("Object", "refs", r.OBJECT, "TRefArray"),
            r.Element("STL", "words", r.STL, "vector<TString>", extents=(2,)),
        ],
    )
    parts = {
        "n": struct.pack(">i", 2),
        "pt": b"\1" + struct.pack(">2f", 1, 2),
        "pairs": b"\1" + bytes(12),
        "names": headed([r.text("a"), r.text("bc")]),
        "refs": r.counted(1, r.tobject(0, 0) + r.text("r") + struct.pack(">iiHI", 1, 0, 1, 7)),
        "words": headed([struct.pack(">I", 1) + r.text("w")] * 2),
    }
    whole = r.tobject(1, 0x10, 9) + b"".join(parts.values())
    counts = [struct.pack(">i", 1)] * ENTRIES
    split = [r.Branch(f"all.{name}", [part] * ENTRIES, element=r.Of("Mixed", number + 1, 41, 3)) for number, (name, part) in enumerate(parts.items())]
    made = [
        r.Branch("whole", [whole] * ENTRIES, element=r.Of("Mixed", -1)),
        r.Branch("members", [r.counted(0x4009, struct.pack(">HI", 1, 1) + whole)] * ENTRIES, element=r.Of("vector<Mixed>", -1)),
        r.Branch("all", counts, element=r.Of("vector<Mixed>", -1, 4), branches=split),
        r.Branch("m", counts, "TLeafI", has_offsets=False),
        r.Branch("x", [bytes(3)] * ENTRIES, "TLeafD32", "x[m]/d[0,0,8]", counter="m", **GENERATED),
    ]
    path = r.write(tmp_path / "whole.root", made, [r.TOBJECT_CLASS, TSTRING_CLASS, TREF_CLASS, described])
    assert dump(path).notes == ""
    stored = path.read_bytes()
    random = np.random.default_rng(1)
    changed, outcomes = tmp_path / "changed.root", {0: 0, 1: 0}
    for _ in range(100):
        content = bytearray(stored)
        for _ in range(random.integers(1, 4)):
            at = random.integers(100, len(content))
            content[at] = random.choice([0, 1, 0x40, 0x7F, 0xFF, random.integers(256)])
        changed.write_bytes(content)
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        finished = subprocess.run([conftest.DUMP, changed, tmp_path / "out"], capture_output=True, preexec_fn=limit, timeout=60, check=False)
        assert finished.returncode in outcomes, finished.stderr
        outcomes[finished.returncode] += 1
    assert min(outcomes.values()) > 10, outcomes
