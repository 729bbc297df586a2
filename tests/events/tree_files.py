"""Trees written by uproot: branches of every kind, with any values."""

import awkward as ak
import numpy as np
import uproot

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
COMPRESSIONS = {
    "none": None,
    "zlib": uproot.ZLIB(1),
    "lzma": uproot.LZMA(1),
    "lz4": uproot.LZ4(1),
    "zstd": uproot.ZSTD(1),
}


def columns(seed, entries):
    """Returns a column of every kind that uproot can write."""
    random = np.random.default_rng(seed)

    def numbers(kind, shape):
        if kind.startswith("float"):
            # Every bit pattern, including NaN.
            return np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), kind).reshape(shape)
        if kind == "bool":
            return random.integers(0, 2, shape).astype(bool)
        info = np.iinfo(kind)
        return random.integers(info.min, info.max, shape, kind, endpoint=True)

    made = {}
    for kind in NUMBERS:
        made[f"flat_{kind}"] = numbers(kind, (entries,))
        made[f"fixed_{kind}"] = numbers(kind, (entries, 3))
        made[f"matrix_{kind}"] = numbers(kind, (entries, 2, 2))
        counts = random.integers(0, 5, entries)
        made[f"jagged_{kind}"] = ak.unflatten(numbers(kind, (int(counts.sum()),)), counts)
    return made


def write(path, batches, compression=None, tree="events"):
    """Writes a basket of each branch for every batch."""
    with uproot.recreate(path, compression=compression) as file:
        first = batches[0]
        kinds = {name: array.type if isinstance(array, ak.Array) else (array.dtype, array.shape[1:]) for name, array in first.items()}
        kinds = {name: kind.content if isinstance(kind, ak.types.ArrayType) else kind for name, kind in kinds.items()}
        kinds = {name: str(kind) if isinstance(kind, ak.types.ListType) else np.dtype(kind) for name, kind in kinds.items()}
        file.mktree(tree, kinds)
        for batch in batches:
            file[tree].extend(batch)
    return path


def as_bits(array):
    """Returns the bits, so that NaN equals NaN with the same bits."""
    if isinstance(array, np.ndarray):
        return ak.Array(array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array)
    return ak.transform(
        lambda layout, **_: ak.contents.NumpyArray(layout.data.view(f"u{layout.data.dtype.itemsize}"))
        if layout.is_numpy and layout.data.dtype.kind == "f"
        else None,
        array,
    )
