"""Trees written by uproot: raddle's columns and bytes equal uproot's."""

from pathlib import Path

import awkward as ak
import numpy as np
import pytest
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


def compare(dumped, path, tree):
    """Compares everything that uproot reads from the tree; returns the number of branches."""
    with uproot.open(path) as file:
        branches = file[tree].items()
        assert dumped.entries == file[tree].num_entries
        for name, branch in branches:
            expected = branch.array(library="ak")
            got = dumped[name]
            assert str(got.type) == str(ak.to_packed(expected).type), name
            assert ak.array_equal(as_bits(got), as_bits(ak.to_packed(expected))), name
        return len(branches)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_columns_of_every_kind(tmp_path, dump, compression):
    batches = [columns(seed, entries) for seed, entries in [(1, 400), (2, 1), (3, 77)]]
    path = write(tmp_path / "made.root", batches, COMPRESSIONS[compression])
    dumped = dump(path)
    # The counts of jagged columns are branches too.
    assert compare(dumped, path, "events") == 5 * len(NUMBERS)
    assert dumped.notes == ""
    for name in batches[0]:
        expected = ak.concatenate([ak.Array(batch[name]) for batch in batches])
        assert ak.array_equal(as_bits(ak.Array(dumped[name])), as_bits(expected), dtype_exact=False), name


def entry_bytes(branch):
    """Returns the bytes of each entry of a branch, as uproot sees them."""
    entries = []
    for number in range(branch.num_baskets):
        basket = branch.basket(number)
        data, offsets = bytes(basket.data), basket.byte_offsets
        if offsets is None:
            step = len(data) // basket.num_entries
            offsets = range(0, len(data) + 1, step)
        entries += [data[start:end] for start, end in zip(offsets[:-1], offsets[1:])]
    return entries


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_bytes_of_entries(tmp_path, dump, compression):
    path = write(tmp_path / "made.root", [columns(1, 100), columns(2, 30)], COMPRESSIONS[compression])
    dumped = dump(path, raw=True)
    with uproot.open(path) as file:
        for name, branch in file["events"].items():
            assert dumped.raw(name) == entry_bytes(branch), name


@pytest.mark.parametrize("name", ["unsplit", "objectwise", "split", "embedded"])
def test_bytes_of_what_root_wrote(dump, name):
    """Compares every branch with baskets, including objects and collections of all kinds, under any name."""
    path = Path(__file__).parents[2] / f"crates/root/tests/samples/{name}.root"
    dumped = dump(path, raw=True)
    with uproot.open(path) as file:
        branches = [branch for _, branch in file["events"].items(recursive=True) if branch.num_baskets > 0]
        assert sorted(map(dumped.raw, dumped.products)) == sorted(map(entry_bytes, branches))
        assert len(branches) >= 21


def test_trees_in_folders_and_cycles(tmp_path, dump):
    path = tmp_path / "folders.root"
    with uproot.recreate(path) as file:
        for tree, entries in [("top", 3), ("a/b/deep", 5), ("a/other", 7), ("a/other", 8)]:
            file.mktree(tree, {"x": np.int64})
            file[tree].extend({"x": np.arange(entries)})
        file["histogram"] = np.histogram(np.arange(10))
    for tree, entries in [("top", 3), ("a/b/deep", 5), ("a/other", 8)]:
        dumped = dump(path, tree)
        assert compare(dumped, path, tree) == 1 and dumped.entries == entries
    dump(path, "a/nothing", expect="available: a/b/deep, a/other, top")


def test_a_negative_version_of_a_file_has_short_addresses(tmp_path, dump):
    """Some files that uproot extended have such versions, and ROOT and uproot read them."""
    path = write(tmp_path / "negative.root", [{"x": np.arange(20)}])
    content = bytearray(path.read_bytes())
    content[4:8] = (int.from_bytes(content[4:8], "big") - 1_000_000).to_bytes(4, "big", signed=True)
    path.write_bytes(content)
    assert compare(dump(path), path, "events") == 1


def test_branches_of_one_name_are_all_there(tmp_path, dump):
    path = tmp_path / "twins.root"
    branches = {"sizeA": np.arange(5, dtype="i4"), "sizeB": np.arange(5, dtype="i4") + 70, "sizeC": np.linspace(0, 1, 5)}
    write(path, [branches])
    path.write_bytes(path.read_bytes().replace(b"sizeB", b"sizeA").replace(b"sizeC", b"sizeA"))
    ours = dump(path)
    assert list(ours.products) == ["sizeA", "sizeA#2", "sizeA#3"]
    with uproot.open(path) as file:
        assert ours["sizeA"].tolist() == file["events"]["sizeA"].array().tolist()
        of_all = [branch.array().tolist() for branch in file["events"].branches]
    assert [ours[name].tolist() for name in ours.products] == of_all


def test_tree_without_entries(tmp_path, dump):
    path = write(tmp_path / "empty.root", [columns(1, 0)])
    dumped = dump(path)
    assert dumped.entries == 0 and len(dumped.products) == 5 * len(NUMBERS)


def test_baskets_of_several_blocks(tmp_path, dump):
    """A compressed block holds at most 16 MiB."""
    values = np.repeat(np.random.default_rng(1).integers(0, 1 << 40, 1 << 18), 18)
    for name in ["zlib", "lz4", "zstd"]:
        path = write(tmp_path / f"{name}.root", [{"x": values}], COMPRESSIONS[name])
        with uproot.open(path) as file:
            assert file["events/x"].basket(0).uncompressed_bytes > 32 << 20
        assert np.array_equal(np.asarray(dump(path)["x"]), values)


def test_every_cut_is_refused(tmp_path, dump):
    path = write(tmp_path / "whole.root", [{"x": np.arange(20), "y": np.arange(20.0)}])
    whole = path.read_bytes()
    cut = tmp_path / "cut.root"
    for length in [0, 3, 60, 200, len(whole) // 2, len(whole) - 400]:
        cut.write_bytes(whole[:length])
        dump(cut, expect=str(cut))
