"""Fields of every kind that uproot can write to an RNTuple."""

import awkward as ak
import numpy as np
from tree_files import NUMBERS


def columns(seed, entries):
    """Returns a field of every kind that uproot can write."""
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
