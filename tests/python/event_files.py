"""Event files that several tests read."""

import awkward as ak
import numpy as np
import uproot

ENTRIES = 257


def columns(entries=ENTRIES, seed=1):
    """Returns columns that uproot can write: flat, regular and jagged."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 5, entries)
    jagged = ak.unflatten(random.normal(size=counts.sum()).astype(np.float32), counts)
    return {
        "met": random.normal(size=entries),
        "pixels": random.integers(0, 99, (entries, 3), np.int16),
        "passed": random.random(entries) < 0.5,
        "pt": jagged,
        "run": np.full(entries, 3, np.uint32),
        "luminosityBlock": np.full(entries, seed, np.uint32),
        "event": np.arange(entries, dtype=np.uint64) + 2**33,
    }


def write_root(path, arrays, is_ntuple=False):
    """Writes a tree or an RNTuple with one cluster or basket of each column."""
    with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
        if is_ntuple:
            file["Events"] = arrays
        else:
            kinds = {name: getattr(array, "type", None) for name, array in arrays.items()}
            plain = {name: np.dtype((array.dtype, array.shape[1:])) for name, array in arrays.items() if kinds[name] is None}
            file.mktree("Events", {name: plain.get(name, str(kind and kind.content)) for name, kind in kinds.items()})
            file["Events"].extend(arrays)
    return path


def expected(path, names, **options):
    with uproot.open(path) as file:
        return file["Events"].arrays(names, **options)
