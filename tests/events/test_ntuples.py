"""RNTuples that uproot writes: raddle's columns are uproot's."""

import awkward as ak
import numpy as np
import pytest
import uproot
from test_trees import NUMBERS


def columns(seed, entries):
    """A field of every kind that uproot can write."""
    random = np.random.default_rng(seed)

    def numbers(kind, count):
        if kind == "bool":
            return random.integers(0, 2, count).astype(bool)
        if kind.startswith("float"):
            return random.normal(0, 1e5, count).astype(kind)
        info = np.iinfo(kind)
        return random.integers(info.min, info.max, count, kind, endpoint=True)

    def jagged(content):
        ends = np.sort(random.integers(0, len(content) + 1, entries - 1))
        return ak.unflatten(content, np.diff(np.concatenate([[0], ends, [len(content)]])))

    made = {f"flat_{kind}": ak.Array(numbers(kind, entries)) for kind in NUMBERS}
    made |= {f"jagged_{kind}": jagged(ak.Array(numbers(kind, 3 * entries))) for kind in NUMBERS}
    made["nested"] = jagged(jagged_of(random, 2 * entries))
    made["text"] = ak.Array([("ä" if number % 7 == 0 else "ab") * (number % 5) for number in range(entries)])
    made["texts"] = jagged(ak.Array([str(number) * (number % 4) for number in range(2 * entries)]))
    tracks = ak.zip({"px": ak.Array(numbers("float32", 2 * entries)), "charge": ak.Array(numbers("int8", 2 * entries))})
    made["tracks"] = jagged(tracks)
    made["fixed"] = ak.to_regular(ak.Array(numbers("int32", 3 * entries).reshape(entries, 3)))
    return ak.Array(made)


def jagged_of(random, count):
    content = random.integers(-100, 100, 3 * count, np.int16)
    ends = np.sort(random.integers(0, len(content) + 1, count - 1))
    return ak.unflatten(content, np.diff(np.concatenate([[0], ends, [len(content)]])))


@pytest.mark.parametrize("compression", [None, uproot.ZLIB(1), uproot.LZ4(1), uproot.ZSTD(5)])
def test_fields_are_those_of_uproot(dump, tmp_path, compression):
    path = tmp_path / "fields.root"
    batches = [columns(1, 50), columns(2, 1), columns(3, 117)]
    with uproot.recreate(path, compression=compression) as file:
        file.mkrntuple("Events", batches[0])
        for batch in batches[1:]:
            file["Events"].extend(batch)
    ours = dump(path)
    assert ours.entries == 168 and "not read" not in ours.notes
    with uproot.open(path) as file:
        expected = file["Events"].arrays()
    assert set(expected.fields) == set(ours.products)
    for name in expected.fields:
        assert ak.to_list(ours[name]) == ak.to_list(expected[name]), name


def test_ids_are_found(dump, tmp_path):
    path = tmp_path / "ids.root"
    events = np.arange(9, dtype=np.uint64) + 2**33
    with uproot.recreate(path) as file:
        kinds = {"run": np.full(9, 4, np.uint32), "luminosityBlock": np.arange(9, dtype=np.uint32), "event": events}
        file.mkrntuple("Events", ak.Array(kinds))
    ids = dump(path).ids
    assert ids == [{"run": 4, "lumi": number, "event": int(event)} for number, event in enumerate(events)]


def test_damage_is_told(dump, tmp_path):
    path = tmp_path / "damaged.root"
    with uproot.recreate(path, compression=None) as file:
        file.mkrntuple("Events", ak.Array({"number": np.arange(1000)}))
    data = bytearray(path.read_bytes())
    # The field's name, in the header.
    data[data.index(b"number")] ^= 1
    path.write_bytes(data)
    dump(path, expect="its checksum is another")
