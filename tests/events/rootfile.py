"""A small writer of ROOT trees with content that uproot reads but cannot write: branches of objects, descriptions of
classes, baskets of any bytes. It does not interpret the bytes of entries.

Layouts are those of ROOT's own ``TTree``, ``TBranchElement``, ``TBasket`` and ``TStreamerInfo``; uproot writes the
surrounding file.
"""

import struct
from contextlib import contextmanager
from dataclasses import dataclass, field

import uproot
from uproot.models import TBranch as branches
from uproot.models import TLeaf as leaves
from uproot.models import TTree as trees
from uproot.writing._cascade import RawStreamerInfo

BYTE_COUNT = 0x4000_0000
NEW_CLASS = 0xFFFF_FFFF

# Streamer types (EReadWrite in TVirtualStreamerInfo.h).
CHAR, SHORT, INT, LONG64, FLOAT, COUNTER, DOUBLE, DOUBLE32, UINT, BITS, FLOAT16 = 1, 2, 3, 16, 5, 6, 8, 9, 13, 15, 19
ARRAY, POINTER = 20, 40
OBJECT, ANY, TSTRING, TOBJECT, TNAMED, STL = 61, 62, 65, 66, 67, 300


def text(value):
    value = value.encode()
    return (bytes([len(value)]) if len(value) < 255 else b"\xff" + struct.pack(">I", len(value))) + value


def counted(version, content, checksum=None):
    """Returns an object with its header (byte count and version)."""
    front = struct.pack(">H", version) + (struct.pack(">I", checksum) if checksum is not None else b"")
    return struct.pack(">I", BYTE_COUNT | (len(front) + len(content))) + front + content


def tobject(unique=0, bits=0x0300_0000, process=None):
    return struct.pack(">HII", 1, unique, bits) + (b"" if process is None else struct.pack(">H", process))


def tnamed(name, title, bits=0x0300_0000):
    return counted(1, tobject(bits=bits) + text(name) + text(title))


@dataclass
class Element:
    """A member of a class. ``kind`` is the class of the element, without ``TStreamer``."""

    kind: str
    name: str
    type: int
    type_name: str
    title: str = ""
    extents: tuple = ()
    base_version: int = 0
    counter: tuple = ("", "", 0)

    def bytes(self):
        length = 0
        for extent in self.extents:
            length = max(length, 1) * extent
        # kHasRange, which ROOT sets if the title of a Double32_t or Float16_t has a range.
        has_range = self.type_name.rstrip("*") in ("Double32_t", "Float16_t") and "," in self.title
        element = tnamed(self.name, self.title, 0x0300_0000 | (0x40 if has_range else 0))
        element += struct.pack(">iiii", self.type, 8, length, len(self.extents))
        element += struct.pack(">5i", *self.extents, *[0] * (5 - len(self.extents))) + text(self.type_name)
        element = counted(4, element)
        if self.kind == "Base":
            return counted(3, element + struct.pack(">i", self.base_version))
        if self.kind == "BasicPointer":
            name, of_class, version = self.counter
            return counted(2, element + struct.pack(">i", version) + text(name) + text(of_class))
        if self.kind == "STLstring":
            return counted(2, counted(3, element + struct.pack(">ii", 365, 365)))
        if self.kind == "STL":
            return counted(3, element + struct.pack(">ii", 1, 0))
        return counted(2, element)


def basic(name, kind, type_name, title="", extents=()):
    return Element("BasicType", name, kind + (ARRAY if extents else 0), type_name, title, extents)


def pointer(name, kind, type_name, counter, of_class, title="", extents=()):
    return Element("BasicPointer", name, kind + POINTER, type_name + "*", f"[{counter}]{title}", extents, 0, (counter, of_class, 1))


def base(name, version=1):
    kind = {"TObject": TOBJECT, "TNamed": TNAMED}.get(name, 0)
    return Element("Base", name, kind, "BASE", base_version=version)


@dataclass
class Class:
    """A description of a class (``TStreamerInfo``)."""

    name: str
    version: int
    elements: list
    checksum: int = 0x1234_5678

    def bytes(self):
        elements = [_pointer_to(f"TStreamer{element.kind}", element.bytes()) for element in self.elements]
        array = counted(3, tobject() + text("") + struct.pack(">ii", len(elements), 0) + b"".join(elements))
        info = tnamed(self.name, "") + struct.pack(">Ii", self.checksum, self.version) + _pointer_to("TObjArray", array)
        # Each is followed by an option of the list's link.
        return _pointer_to("TStreamerInfo", counted(9, info)) + text("")


TOBJECT_CLASS = Class("TObject", 1, [basic("fUniqueID", UINT, "unsigned int"), basic("fBits", BITS, "unsigned int")], 0x9014_1B9D)
TNAMED_CLASS = Class(
    "TNamed",
    1,
    [base("TObject"), Element("String", "fName", TSTRING, "TString"), Element("String", "fTitle", TSTRING, "TString")],
    0xDFB7_4A3C,
)

# Classes that the metadata of trees needs and uproot does not describe.
METADATA = [
    Class("TLeafElement", 1, [base("TLeaf", 2), basic("fID", INT, "int"), basic("fType", INT, "int")]),
    Class("TLeafD32", 1, [base("TLeaf", 2), basic("fMinimum", DOUBLE32, "Double32_t"), basic("fMaximum", DOUBLE32, "Double32_t")]),
    Class("TLeafF16", 1, [base("TLeaf", 2), basic("fMinimum", FLOAT16, "Float16_t"), basic("fMaximum", FLOAT16, "Float16_t")]),
    Class(
        "TBranchElement",
        10,
        [
            base("TBranch", 13),
            *[Element("String", name, TSTRING, "TString") for name in ("fClassName", "fParentName", "fClonesName")],
            basic("fCheckSum", UINT, "unsigned int"),
            basic("fClassVersion", SHORT, "short"),
            *[basic(name, INT, "int") for name in ("fID", "fType", "fStreamerType", "fMaximum")],
            Element("ObjectPointer", "fBranchCount", 64, "TBranchElement*"),
            Element("ObjectPointer", "fBranchCount2", 64, "TBranchElement*"),
        ],
    ),
]

# Bytes that leaves of a class have after the members of ``TLeaf``.
LEAF_TAILS = {"TLeafD32": bytes(8), "TLeafF16": bytes(6), "TLeafD": bytes(16), "TLeafL": bytes(16), "TLeafS": bytes(4), "TLeafB": bytes(2)}


@dataclass
class Of:
    """The description that a branch of objects has (``TBranchElement``)."""

    of_class: str
    id: int
    kind: int = 0
    streamer_type: int = -1
    version: int = 1
    checksum: int = 0x1234_5678
    # Class of the objects of a split collection.
    clones: str = ""


@dataclass
class Branch:
    """A branch with one leaf, or several (class, name and whether it is unsigned); ``entries`` are the bytes of each
    entry. ``counter`` is the branch whose leaf counts its values."""

    name: str
    entries: list
    leaf: str = "TLeafElement"
    title: str = ""
    length: int = 1
    element: Of = None
    counter: str = None
    # Whether baskets have the offsets of entries, and their IO bits (None: none).
    has_offsets: bool = True
    io_bits: int = None
    # Whether the only basket is stored in the tree.
    is_embedded: bool = False
    per_basket: int = 5
    # The number of entries that the branch states, if it is not that of the tree.
    stated_entries: int = None
    branches: list = field(default_factory=list)
    leaves: list = field(default_factory=list)


def _pointer_to(of_class, content):
    content = struct.pack(">I", NEW_CLASS) + of_class.encode() + b"\0" + content
    return struct.pack(">I", BYTE_COUNT | len(content)) + content


class _Out:
    """Collects the bytes of nested objects, whose lengths are known only at their ends."""

    def __init__(self, key_len):
        self.bytes = bytearray()
        self.key_len = key_len
        self.leaves = {}

    def add(self, *parts):
        for part in parts:
            self.bytes += part

    @contextmanager
    def object(self, version):
        start = len(self.bytes)
        self.add(bytes(4), struct.pack(">H", version))
        yield
        struct.pack_into(">I", self.bytes, start, BYTE_COUNT | (len(self.bytes) - start - 4))

    @contextmanager
    def pointer(self, of_class):
        start = len(self.bytes)
        self.add(bytes(4), struct.pack(">I", NEW_CLASS), of_class.encode(), b"\0")
        # The tag of references to it.
        yield start + self.key_len + 2
        struct.pack_into(">I", self.bytes, start, BYTE_COUNT | (len(self.bytes) - start - 4))

    @contextmanager
    def array(self, count):
        with self.object(3):
            self.add(tobject(), text(""), struct.pack(">ii", count, 0))
            yield


def write(path, made, classes=(), tree="events"):
    """Writes a file with one tree of these branches."""
    with uproot.recreate(path, compression=None) as file:
        sink = file._file.sink
        key_len = uproot.reading._key_format_big.size + 6 + 2 + 2 * len(tree)
        out = _Out(key_len)
        _add_tree(out, tree, made, lambda content: _store(file, content))
        known = [trees.Model_TTree_v20, branches.Model_TBranch_v13]
        known += [getattr(leaves, f"Model_TLeaf{kind}_v1") for kind in "BSILFDCO"]
        raw = {stored[-2:]: RawStreamerInfo(*stored) for model in known for stored in model.class_rawstreamers}
        own = {described.name for described in classes}
        raw = [info for (of_class, _), info in raw.items() if of_class not in own]
        described = [*classes, *[info for info in METADATA if info.name not in own]]
        raw += [RawStreamerInfo(None, info.bytes(), info.name, info.version) for info in described]
        file._file._cascading.streamers.update_streamers(sink, raw)
        content = bytes(out.bytes)
        file._cascading.add_object(sink, "TTree", tree, tree, content, len(content), big=True)
        sink.flush()
    return path


def _store(file, content_at):
    """Stores bytes that contain their own address; returns the address."""
    sink, free = file._file.sink, file._cascading.freesegments
    length = len(content_at(0))
    location = free.allocate(length, dry_run=False)
    sink.write(location, content_at(location))
    free.write(sink)
    sink.set_file_length(free.fileheader.end)
    return location


def _add_tree(out, name, made, store):
    entries = len(made[0].entries)
    with out.object(20):
        out.add(tnamed(name, name))
        # TAttLine, TAttFill, TAttMarker.
        out.add(counted(2, bytes(6)), counted(2, bytes(4)), counted(2, bytes(8)))
        numbers = [entries, 0, 0, 0, 0, 1.0, 0, 25, 0, 1000, 0, 10**12, 10**12, 0, 0, 0, 10**6]
        out.add(trees._ttree20_format1.pack(*numbers))
        out.add(b"\0\0", b"@\x00\x00\x07\x00\x00\x1a\xa1/\x10\x00")
        with out.array(len(made)):
            for branch in made:
                _add_branch(out, branch, entries, store)
        with out.array(len(out.leaves)):
            for tag in out.leaves.values():
                out.add(struct.pack(">I", tag))
        out.add(bytes(28))


def _add_branch(out, branch, entries, store):
    assert len(branch.entries) in (0, entries)
    of_class = "TBranchElement" if branch.element else "TBranch"
    with out.pointer(of_class):
        if branch.element is None:
            return _add_plain(out, branch, entries, store)
        element = branch.element
        with out.object(10):
            _add_plain(out, branch, entries, store)
            # Branches of members name the class that contains the member as that of their parent.
            out.add(text(element.of_class), text(element.of_class if element.id >= 0 else ""), text(element.clones))
            out.add(struct.pack(">Ihiiii", element.checksum, element.version, element.id, element.kind, element.streamer_type, 0))
            out.add(bytes(8))
    return None


def _add_plain(out, branch, entries, store):
    entries = entries if branch.stated_entries is None else branch.stated_entries
    numbers = range(0, len(branch.entries), branch.per_basket) if not branch.is_embedded else []
    baskets = [_basket(branch, branch.entries[first : first + branch.per_basket], store) for first in numbers]
    with out.object(13):
        out.add(tnamed(branch.name, branch.title or branch.name), counted(2, bytes(4)))
        offsets = 1000 if branch.has_offsets else 0
        out.add(struct.pack(">iiiiq", 0, 32000, offsets, len(baskets), entries), b"@\x00\x00\x07\x00\x00\x1a\xa1/\x10\x00")
        total = sum(map(len, branch.entries))
        out.add(struct.pack(">iIiqqqq", 0, max(10, len(baskets)), 0, entries, 0, total, total))
        with out.array(len(branch.branches)):
            for inner in branch.branches:
                _add_branch(out, inner, entries, store)
        stated = branch.leaves or [(branch.leaf, branch.name, False)]
        with out.array(len(stated)):
            for of_class, name, is_unsigned in stated:
                title = (branch.title or name) if not branch.leaves else name
                _add_leaf(out, branch, of_class, name, title, is_unsigned)
        with out.array(int(branch.is_embedded)):
            if branch.is_embedded:
                with out.pointer("TBasket"):
                    out.add(_basket(branch, branch.entries, None))
        count = max(10, len(baskets))
        filled = lambda values, last=0: [*values, last, *[0] * count][:count]
        out.add(b"\1", struct.pack(f">{count}i", *filled([length for _, length in baskets])))
        out.add(b"\1", struct.pack(f">{count}q", *filled(numbers, 0 if branch.is_embedded else len(branch.entries))))
        out.add(b"\1", struct.pack(f">{count}q", *filled([location for location, _ in baskets])))
        out.add(text(""))


def _add_leaf(out, branch, of_class, name, title, is_unsigned):
    with out.pointer(of_class) as tag:
        out.leaves[name] = tag
        with out.object(1):
            with out.object(2):
                out.add(tnamed(name, title))
                out.add(struct.pack(">iii??", branch.length, 8, 0, False, is_unsigned))
                out.add(struct.pack(">I", out.leaves[branch.counter] if branch.counter else 0))
            if branch.element:
                out.add(struct.pack(">ii", branch.element.id, branch.element.streamer_type))
            else:
                out.add(LEAF_TAILS.get(of_class, bytes(8)))


def _basket(branch, entries, store):
    """Stores a basket; returns its address and length. Without ``store``, returns its bytes as part of a tree."""
    front = text("TBasket") + text(branch.name) + text("events")
    key_len = 26 + len(front) + 18 + 1 + 8 + (branch.io_bits is not None)
    data, starts = b"".join(entries), []
    for entry in entries:
        starts.append(key_len + sum(map(len, entries[: len(starts)])))
    # With the bit of generated offsets, lengths are stored instead.
    stored = [*starts, 0] if branch.io_bits is None else [0, *map(len, entries)]
    behind = struct.pack(f">i{len(stored)}i", len(stored), *stored) if branch.has_offsets else b""
    size = len(starts) + 1 if branch.has_offsets else len(data) // max(1, len(entries))

    def at(location):
        # A basket stored in the tree has length 0.
        length = key_len + len(data + behind) if store else 0
        key = struct.pack(">ihiIhhqq", length, 1004, len(data + behind), 0, key_len, 1, location, 100)
        bits = struct.pack(">i", size) if branch.io_bits is None else struct.pack(">iB", -max(size, 1), branch.io_bits)
        last = struct.pack(">ii", len(entries), key_len + len(data))
        # The flag of offsets that readers must generate.
        flag = b"\0" if branch.io_bits is None or branch.has_offsets else b"\x50"
        fixed = key + front + struct.pack(">hi", 3, 32000) + bits + last
        if store is None:
            # TBasket::Streamer: 1 if offsets follow, 10 if data follows, 80 for offsets that readers must generate.
            is_generated = branch.io_bits is not None and not branch.has_offsets
            offsets = struct.pack(f">i{len(starts)}i", len(starts), *starts) if branch.has_offsets else b""
            return fixed + bytes([91 if is_generated else 11 if branch.has_offsets else 12]) + offsets + bytes(key_len) + data
        return fixed + flag + data + behind

    if store is None:
        return at(0)
    return store(at), key_len + len(data + behind)
