"""Trees written by uproot: raddle's columns and bytes equal uproot's."""

from pathlib import Path

import awkward as ak
import numpy as np
import pytest
import uproot
from tree_files import COMPRESSIONS, NUMBERS, as_bits, columns, write


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
