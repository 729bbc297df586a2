"""Numbers packed by a comment (``Double32_t``, ``Float16_t``), in leaves, members and collections: raddle's columns equal what
ROOT reads, and uproot's up to its rounding."""

import struct

import awkward as ak
import numpy as np
import pytest
import rootfile as r
import uproot
from branch_values import COUNTS, ENTRIES, RANGES, lists, stored


def check_uproot(path, name, values, tolerance=1e-6):
    """Checks that uproot reads the same up to its own rounding: it uses 2**32 steps instead of 2**32 - 1."""
    with uproot.open(path) as file:
        assert np.allclose(ak.to_numpy(file["events"][name].array()), values, rtol=tolerance, atol=0), name


@pytest.mark.parametrize("is_float16", [False, True])
def test_leaves_of_packed_numbers(tmp_path, dump, is_float16):
    leaf, letter = ("TLeafF16", "f") if is_float16 else ("TLeafD32", "d")
    made = [r.Branch("n", [struct.pack(">i", count) for count in COUNTS], "TLeafI", "n", has_offsets=False)]
    expected = {}
    for seed, (title, packed) in enumerate(RANGES.items()):
        of_leaf = f"/{letter}{title}" if title else ""
        one, values = stored(packed, seed, ENTRIES, is_float16)
        made.append(r.Branch(f"one{seed}", one, leaf, f"one{seed}{of_leaf}", has_offsets=False))
        expected[f"one{seed}"] = values
        three, values = stored(packed, seed, 3 * ENTRIES, is_float16)
        fixed = [b"".join(three[entry : entry + 3]) for entry in range(0, 3 * ENTRIES, 3)]
        made.append(r.Branch(f"three{seed}", fixed, leaf, f"three{seed}[3]{of_leaf}", length=3, has_offsets=False))
        expected[f"three{seed}"] = np.reshape(values, (-1, 3)).tolist()
        some, values = stored(packed, seed, sum(COUNTS), is_float16)
        made.append(r.Branch(f"some{seed}", list(map(b"".join, lists(some))), leaf, f"some{seed}[n]{of_leaf}", counter="n"))
        expected[f"some{seed}"] = lists(values)
    path = r.write(tmp_path / "packed.root", made)
    dumped = dump(path)
    assert dumped.notes == ""
    number = "float32" if is_float16 else "float64"
    for name, values in expected.items():
        assert dumped[name].to_list() == values, name
        assert str(dumped[name].type).endswith(number), name
    for seed, title in enumerate(RANGES):
        # uproot assumes a mantissa of 16 bits, stored in 3 bytes.
        if title != "[0,0,16]":
            check_uproot(path, f"one{seed}", expected[f"one{seed}"])


def packed_class(name="Packed"):
    """Describes members of every range, and of an array."""
    members = []
    for number, title in enumerate(RANGES):
        members.append(r.basic(f"d{number}", r.DOUBLE32, "Double32_t", title))
        members.append(r.basic(f"f{number}", r.FLOAT16, "Float16_t", title))
    members.append(r.basic("three", r.DOUBLE32, "Double32_t", "[-1,1,10]", (3,)))
    return r.Class(name, 1, members)


def packed_objects(count):
    """Returns the bytes of each member of some objects, and the values."""
    parts, values = {}, {}
    for number, packed in enumerate(RANGES.values()):
        parts[f"d{number}"], values[f"d{number}"] = stored(packed, 50 + number, count)
        parts[f"f{number}"], values[f"f{number}"] = stored(packed, 70 + number, count, True)
    three, of_three = stored(RANGES["[-1,1,10]"], 90, 3 * count)
    parts["three"] = [b"".join(three[at : at + 3]) for at in range(0, 3 * count, 3)]
    values["three"] = np.reshape(of_three, (-1, 3)).tolist()
    return parts, values


def test_members_that_are_packed_numbers(tmp_path, dump):
    """Members of whole objects, of split objects, and of split and unsplit collections of objects."""
    described = packed_class()
    parts, values = packed_objects(ENTRIES)
    names = [element.name for element in described.elements]
    whole = [b"".join(parts[name][entry] for name in names) for entry in range(ENTRIES)]
    made = [r.Branch("whole", whole, element=r.Of("Packed", -1))]
    split = []
    for number, name in enumerate(names):
        of_member = r.Of("Packed", number, 0, described.elements[number].type)
        length, title = (3, "three[3]") if name == "three" else (1, name)
        split.append(r.Branch(name, parts[name], title=title, length=length, element=of_member, has_offsets=False))
    made.append(r.Branch("one", [], element=r.Of("Packed", -2), branches=split))
    parts, of_all = packed_objects(sum(COUNTS))
    for number, name in enumerate(names):
        of_member = list(map(b"".join, lists(parts[name])))
        made.append(r.Branch(f"all.{name}", of_member, element=r.Of("Packed", number, 41, described.elements[number].type)))
    memberwise = []
    for entry, count in enumerate(COUNTS):
        content = struct.pack(">HI", 1, count) + b"".join(b"".join(lists(parts[name])[entry]) for name in names)
        memberwise.append(r.counted(0x4009, content))
    made.append(r.Branch("vector", memberwise, element=r.Of("vector<Packed>", -1)))
    path = r.write(tmp_path / "members.root", made, [described])
    dumped = dump(path)
    assert dumped.notes == ""
    for name in names:
        assert dumped["whole"][name].to_list() == values[name], name
        assert dumped[f"one.{name}"].to_list() == values[name], name
        assert dumped[f"all.{name}"].to_list() == lists(of_all[name]), name
        assert dumped["vector"][name].to_list() == lists(of_all[name]), name
        # uproot assumes a mantissa of 16 bits, stored in 3 bytes.
        if name not in ("d6", "f6"):
            check_uproot(path, f"one/{name}", values[name])


def test_collections_of_packed_numbers(tmp_path, dump):
    """The types of their elements have no range."""
    made, expected = [], {}
    for name, is_float16 in [("Double32_t", False), ("Float16_t", True)]:
        parts, values = stored(None, 5, sum(COUNTS), is_float16)
        entries = [r.counted(10, struct.pack(">I", len(part)) + b"".join(part)) for part in lists(parts)]
        made.append(r.Branch(name, entries, element=r.Of(f"vector<{name}>", -1)))
        expected[name] = lists(values)
    dumped = dump(r.write(tmp_path / "vectors.root", made))
    for name, values in expected.items():
        assert dumped[name].to_list() == values
