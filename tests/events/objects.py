"""Random classes and objects, and how ROOT stores them: whole, and split into branches. For :mod:`rootfile`.

An object is its members' values; a value is the bytes that it has inside a collection, the front that it has as a member of an object
(a version, or None), and what uproot makes of it.
"""

import struct
from dataclasses import dataclass

import rootfile as r

# What collections state: the version in which :mod:`rootfile` describes classes, and a bit of those stored member by member.
VERSION, MEMBERWISE = 9, 0x4000

NUMBERS = [
    (r.CHAR, "char", "b"), (r.SHORT, "short", "h"), (r.INT, "int", "i"), (r.LONG64, "Long64_t", "q"), (r.FLOAT, "float", "f"),
    (r.DOUBLE, "double", "d"), (r.UINT, "unsigned int", "I"), (11, "unsigned char", "B"), (12, "unsigned short", "H"),
    (17, "ULong64_t", "Q"), (18, "bool", "?"),
]  # fmt: skip


@dataclass
class Value:
    bare: bytes
    front: int = None
    value: object = None

    def member(self):
        return self.bare if self.front is None else r.counted(self.front, self.bare)


def number(random, kind):
    if kind in "fd":
        return struct.unpack(">f", struct.pack(">f", random.uniform(-100, 100)))[0]
    if kind == "?":
        return bool(random.getrandbits(1))
    bits = 8 * struct.calcsize(">" + kind)
    low = -(2 ** (bits - 1)) if kind.islower() else 0
    return random.randrange(low, low + 2**bits)


def word(random):
    # Above 254 letters the length takes five bytes.
    return "".join(random.choice("abcdeäöü") for _ in range(random.choice([0, 1, 3, 9, 140])))


class Leaf:
    """A member with a branch of its own; ``make`` returns its value in an object whose members before it have ``before``."""

    def __init__(self, element, make, branch_type, length=1):
        self.element, self.make, self.branch_type, self.length = element, make, branch_type, length

    @property
    def title(self):
        return self.element.name + "".join(f"[{extent}]" for extent in self.element.extents)


@dataclass
class Thing:
    """A member that is an object (``is_base``: a base class), or with ``is_list`` a vector of them."""

    element: r.Element
    of: "Described"
    is_base: bool = False
    is_list: bool = False
    # Whether its branches are among those of the object around.
    is_in_place: bool = False


class Described:
    """A random class."""

    def __init__(self, random, name, depth=0):
        self.name, self.version = name, random.choice([1, 2, 7])
        self.checksum = random.getrandbits(32)
        self.members, self.parts = [], []
        count = random.randrange(1, 6) if depth else random.randrange(4, 9)
        if depth < 2 and random.random() < 0.5:
            self.add_object(random, f"{name}Base", depth, is_base=True)
        for at in range(count):
            kind = random.choice(["number", "array", "text", "string", "numbers", "words", "pointer", "object", "list"])
            if kind in ("object", "list") and depth >= 2:
                kind = "number"
            self.add(random, kind, f"{'abc'[depth]}{at}", depth)

    def info(self):
        return r.Class(self.name, self.version, [member.element for member in self.members], self.checksum)

    def infos(self):
        return [self.info(), *[info for part in self.parts for info in part.infos()]]

    def add_object(self, random, name, depth, is_base=False, is_list=False):
        of = Described(random, f"{self.name}_{name}", depth + 1)
        self.parts.append(of)
        is_in_place = random.random() < 0.5
        if is_base:
            element = r.base(of.name, of.version)
        elif is_list:
            element = r.Element("STL", name, 500, f"vector<{of.name}>")
        else:
            element = r.Element("ObjectAny", name, r.ANY, of.name)
        self.members.append(Thing(element, of, is_base, is_list, is_in_place))

    def add(self, random, kind, name, depth):
        streamer, type_name, letter = random.choice(NUMBERS)
        if kind in ("object", "list"):
            return self.add_object(random, name, depth, is_list=kind == "list")
        if kind == "number":
            make = lambda random, _: of_numbers([number(random, letter)], letter, None, single=True)
            return self.members.append(Leaf(r.basic(name, streamer, type_name), make, streamer))
        if kind == "array":
            make = lambda random, _: of_numbers([number(random, letter) for _ in range(6)], letter, None)
            return self.members.append(Leaf(r.basic(name, streamer, type_name, extents=(2, 3)), make, streamer + r.ARRAY, 6))
        if kind == "text":
            element = r.Element("String", name, r.TSTRING, "TString")
            return self.members.append(Leaf(element, lambda random, _: of_text(word(random), None), r.TSTRING))
        if kind == "string":
            element = r.Element("STLstring", name, 500, "string")
            return self.members.append(Leaf(element, lambda random, _: of_text(word(random), VERSION), r.STL))
        if kind == "numbers":
            element = r.Element("STL", name, 500, f"vector<{type_name}>")
            make = lambda random, _: of_numbers([number(random, letter) for _ in range(random.randrange(4))], letter, VERSION, counted=True)
            return self.members.append(Leaf(element, make, r.STL))
        if kind == "words":
            element = r.Element("STL", name, 500, "vector<string>")
            return self.members.append(Leaf(element, of_words, r.STL))
        counter = f"{name}_count"
        make_count = lambda random, _: of_numbers([random.randrange(4)], "i", None, single=True)
        self.members.append(Leaf(r.basic(counter, r.COUNTER, "int"), make_count, r.COUNTER))
        letter = "f"
        make = lambda random, before: of_pointer(random, before[counter].value, letter)
        return self.members.append(Leaf(r.pointer(name, r.FLOAT, "float", counter, self.name), make, r.FLOAT + r.POINTER))

    def make(self, random):
        """The value of each member: a value, an object or a list of objects."""
        made = {}
        for member in self.members:
            name = member.element.name
            if isinstance(member, Leaf):
                made[name] = member.make(random, made)
            elif member.is_list:
                made[name] = [member.of.make(random) for _ in range(random.randrange(3))]
            else:
                made[name] = member.of.make(random)
        return made

    def members_of(self, made):
        """The bytes of the members of an object, one after the other."""
        return b"".join(self.bytes_of(member, made[member.element.name]) for member in self.members)

    def bytes_of(self, member, value):
        if isinstance(member, Leaf):
            return value.member()
        if member.is_list:
            return r.counted(VERSION, struct.pack(">I", len(value)) + b"".join(map(member.of.whole, value)))
        return member.of.whole(value)

    def whole(self, made):
        """An object with its front, as raddle makes it: by checksum where the class has version 1."""
        content = self.members_of(made)
        return r.counted(0, content, self.checksum) if self.version == 1 else r.counted(self.version, content)

    def values(self, made):
        """What uproot makes of an object: bases before members."""
        values = {}
        for member in self.members:
            value = made[member.element.name]
            if isinstance(member, Leaf):
                values[member.element.name] = value.value
            elif member.is_base:
                values |= member.of.values(value)
            else:
                inner = [member.of.values(each) for each in value] if member.is_list else member.of.values(value)
                values[member.element.name] = inner
        return values

    def of(self, number, kind, streamer=-1, clones=""):
        return r.Of(self.name, number, kind, streamer, self.version, self.checksum, clones)

    def branches(self, objects, prefix=""):
        """The branches of the members of an object for each entry."""
        made = []
        for number, member in enumerate(self.members):
            name, values = member.element.name, [each[member.element.name] for each in objects]
            if isinstance(member, Leaf):
                entries = [value.member() for value in values]
                made.append(r.Branch(prefix + member.title, entries, element=self.of(number, 0, member.branch_type), length=member.length))
            elif member.is_list:
                counts = [struct.pack(">i", len(each)) for each in values]
                below = member.of.in_collection(values, f"{prefix}{name}.")
                made.append(r.Branch(prefix + name, counts, element=self.of(number, 4, r.STL, member.of.name), branches=below))
            elif member.is_in_place:
                made += member.of.branches(values, prefix if member.is_base else f"{prefix}{name}.")
            else:
                kind, below = (1, member.of.branches(values, prefix)) if member.is_base else (2, member.of.branches(values, f"{prefix}{name}."))
                made.append(r.Branch(prefix + name, [], element=self.of(number, kind, r.ANY), branches=below))
        return made

    def in_collection(self, lists, prefix):
        """The branches of the members of all objects of a collection for each entry: nothing below them is split further."""
        made = []
        for number, member in enumerate(self.members):
            name, values = member.element.name, [[each[member.element.name] for each in entry] for entry in lists]
            if isinstance(member, Leaf):
                entries = [self.run(entry) for entry in values]
                branch = r.Branch(prefix + member.title, entries, element=self.of(number, 41, member.branch_type), length=member.length)
                made.append(branch)
            elif member.is_list:
                # One front, and then the lists; with bit 14 set in the version, their objects member by member.
                is_memberwise = number % 2 == 0
                content = [member.of.memberwise(each) if is_memberwise else member.of.one_by_one(each) for each in sum_up(values)]
                entries = []
                for entry in values:
                    parts, content = content[: len(entry)], content[len(entry) :]
                    front = struct.pack(">H", self_version(member.of)) + checksum_of(member.of) if is_memberwise else b""
                    entries.append(r.counted(MEMBERWISE | VERSION if is_memberwise else VERSION, front + b"".join(parts)) if entry else b"")
                made.append(r.Branch(prefix + name, entries, element=self.of(number, 41, r.STL)))
            else:
                made += member.of.in_collection(values, prefix if member.is_base else f"{prefix}{name}.")
        return made

    def run(self, values):
        """Values of a member of all objects of a list."""
        front = values[0].front if values else None
        content = b"".join(value.bare for value in values)
        return r.counted(front, content) if front is not None else content

    def one_by_one(self, objects):
        return struct.pack(">I", len(objects)) + b"".join(map(self.whole, objects))

    def memberwise(self, objects):
        return struct.pack(">I", len(objects)) + (self.runs(objects) if objects else b"")

    def runs(self, objects):
        out = b""
        for member in self.members:
            values = [each[member.element.name] for each in objects]
            if isinstance(member, Leaf):
                out += self.run(values)
            elif member.is_base:
                out += member.of.runs(values)
            elif member.is_list:
                out += r.counted(VERSION, b"".join(map(member.of.one_by_one, values)))
            else:
                out += b"".join(map(member.of.whole, values))
        return out


def self_version(described):
    return 0 if described.version == 1 else described.version


def checksum_of(described):
    return struct.pack(">I", described.checksum) if described.version == 1 else b""


def sum_up(lists):
    return [each for entry in lists for each in entry]


def of_numbers(numbers, letter, front, single=False, counted=False):
    bare = struct.pack(f">{len(numbers)}{letter}", *numbers)
    return Value(struct.pack(">I", len(numbers)) + bare if counted else bare, front, numbers[0] if single else numbers)


def of_text(word, front):
    return Value(r.text(word), front, word)


def of_words(random, _before):
    words = [word(random) for _ in range(random.randrange(3))]
    return Value(struct.pack(">I", len(words)) + b"".join(map(r.text, words)), VERSION, words)


def of_pointer(random, count, letter):
    numbers = [number(random, letter) for _ in range(count)]
    return Value(bytes([count > 0]) + struct.pack(f">{count}{letter}", *numbers), None, numbers)
