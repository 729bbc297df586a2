"""Baskets of trees, decompressed."""

import awkward as ak
import numpy as np
import pytest
import raddle
import uproot
from event_files import columns
from raddle import errors


def baskets_of(paths, name, first=0):
    """Returns entries, bytes and offsets of the baskets of a branch, as uproot reads them from consecutive files."""
    baskets = []
    for path in paths:
        with uproot.open(path) as file:
            branch = file["Events"][name]
            for number in range(branch.num_baskets):
                start, stop = branch.basket_entry_start_stop(number)
                basket = branch.basket(number)
                baskets.append((first + start, first + stop, bytes(basket.data), basket.byte_offsets))
            first += branch.num_entries
    return baskets


def same_baskets(read, expected):
    for basket, (start, stop, data, offsets) in zip(read, expected, strict=True):
        assert (basket.start, basket.stop, basket.data.tobytes()) == (start, stop, data)
        assert basket.data.dtype == np.uint8
        if offsets is None:
            assert basket.offsets is None
        else:
            assert basket.offsets.dtype == np.int32
            np.testing.assert_array_equal(basket.offsets, offsets)


@pytest.mark.parametrize("codec", [None, uproot.ZLIB(1), uproot.LZMA(1), uproot.LZ4(4), uproot.ZSTD(1)], ids=str)
def test_baskets_are_those_that_uproot_decompresses(tmp_path, codec):
    paths = [tmp_path / "one.root", tmp_path / "two.root"]
    for seed, path in enumerate(paths):
        with uproot.recreate(path, compression=codec) as file:
            file.mktree("Events", {"met": "f8", "pixels": np.dtype(("i2", (3,))), "pt": "var * float32"})
            # Baskets of unequal lengths, and one without a value.
            for number, entries in enumerate((2, 300, 1, 70)):
                made = columns(entries, 10 * seed + number)
                made["pt"] = made["pt"] if entries > 1 else ak.Array([np.empty(0, np.float32)])
                file["Events"].extend({name: made[name] for name in ("met", "pixels", "pt")})
    whole = {name: baskets_of(paths, name) for name in ("met", "pixels", "pt")}
    assert all(len(baskets) == 8 for baskets in whole.values())
    for jobs in (1, 3, 20):
        events = raddle.events.open(paths, jobs=jobs)
        read = events.baskets()
        assert set(whole) <= set(read)
        for name, baskets in whole.items():
            same_baskets(read[name], baskets)
        for start, stop in ((0, 0), (0, 1), (2, 302), (301, 304), (372, 374), (-1, None)):
            first, end, _ = slice(start, stop).indices(events.num_entries)
            wanted = [basket for basket in whole["pt"] if basket[0] < end and basket[1] > first and first < end]
            same_baskets(events.baskets("pt", start, stop)["pt"], wanted)
    # The numbers in it, read as documented.
    met = np.concatenate([basket.data.view(">f8") for basket in raddle.events.open(paths).baskets("met")["met"]])
    np.testing.assert_array_equal(met, raddle.events.open(paths).arrays("met", library="np")["met"])


def test_only_trees_have_baskets(tree, tmp_path):
    raddle.events.convert(tree, tmp_path / "columns.h5", progress=False)
    path = tmp_path / "columns.h5" if tree.stem == "tree" else tree
    with pytest.raises(errors.InputError, match="it stores no baskets; only trees"):
        raddle.events.open(path).baskets("met")
