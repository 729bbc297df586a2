"""Events of ROOT files, streams and HDF5 as awkward arrays."""

import io
import multiprocessing
import pickle
import struct
import warnings
from pathlib import Path

import awkward as ak
import numpy as np
import pytest
import raddle
import uproot
from event_files import ENTRIES, columns, expected, write_root
from raddle import errors


def test_a_tree_is_what_uproot_reads(tree):
    events = raddle.events.open(tree)
    names = ["met", "pixels", "passed", "pt", "event"]
    assert events.num_entries == ENTRIES and set(names) <= set(events)
    assert ak.array_equal(events.arrays(names), expected(tree, names))
    assert ak.array_equal(events["pt"], expected(tree, "pt")["pt"])
    types = {product.name: product.type for product in events.products}
    assert types["pt"] == "var * float32" and types["pixels"] == "3 * int16" and types["passed"] == "bool"
    assert "257 events" in repr(events)


@pytest.mark.parametrize("range_", [(0, 0), (10, 20), (-7, None), (None, 5), (250, 9999)])
def test_ranges_are_those_of_slices(tree, range_):
    start, stop = range_
    events = raddle.events.open(tree, jobs=3, memory="64MiB")
    whole = expected(tree, ["pt", "met"])
    assert ak.array_equal(events.arrays(["pt", "met"], start, stop), whole[start:stop])
    assert len(events.ids(start, stop)) == len(whole[start:stop])


def test_files_whose_products_differ(tmp_path):
    """Like the trigger bits of two years."""
    common = {"pt": ak.Array([[1.5, 2.5], []]), "met": np.array([3.0, 4.0])}
    paths = [tmp_path / "one.root", tmp_path / "two.root"]
    write_root(paths[0], common | {"HLT_A": np.array([True, True]), "jets": ak.Array([[1], [2, 3]])}, False)
    write_root(paths[1], common | {"HLT_B": np.array([True, False])}, False)
    with pytest.raises(raddle.errors.InputError, match="two.root.*HLT_A"):
        raddle.events.open(paths)
    with pytest.warns(UserWarning, match="^HLT_A, njets, jets, HLT_B left out: not every file has them"):
        common_only = raddle.events.open(paths, differing="leave-out")
    assert "HLT_A" not in common_only and "two.root" in common_only.left_out[0].reason
    filled = raddle.events.open(paths, differing="fill").arrays()
    assert ak.to_list(filled["HLT_A"]) == [True, True, False, False]
    assert ak.to_list(filled["HLT_B"]) == [False, False, True, False]
    assert ak.to_list(filled["jets"]) == [[1], [2, 3], [], []]
    assert ak.to_list(filled["pt"]) == 2 * [[1.5, 2.5], []]

    output = tmp_path / "out.h5"
    report = raddle.events.convert(paths, output, products=["met", "pt"], progress=False)
    assert report.products == 2 and not report.left_out
    with pytest.warns(UserWarning, match="is left out"):
        report = raddle.events.convert(paths, output, force=True, differing="leave-out", progress=False)
    left_out = {left.product: left.reason for left in report.left_out}
    assert {"HLT_A", "HLT_B", "jets"} <= set(left_out) and "two.root" in left_out["jets"]
    raddle.events.convert(paths, output, force=True, differing="fill", progress=False)
    assert ak.to_list(raddle.events.open(output).arrays()) == ak.to_list(filled)


def test_several_files_are_behind_each_other(tree, tmp_path):
    more = tmp_path / "run2.root"
    write_root(more, columns(31, seed=2), tree.stem == "ntuple")
    events = raddle.events.open([tree, more])
    assert events.num_entries == ENTRIES + 31
    both = ak.concatenate([expected(tree, "pt")["pt"], expected(more, "pt")["pt"]])
    assert ak.array_equal(events["pt"], both)
    ids = events.ids()
    assert ids.dtype == raddle.events.ID and list(ids["lumi"][-2:]) == [2, 2] and ids["event"][1] == 2**33 + 1
    parts = list(events.iterate("pt", step=100))
    assert [len(part) for part in parts] == [100, 100, 88]
    assert ak.array_equal(ak.concatenate(parts)["pt"], both)


def test_files_are_named_by_globs_and_folders(tmp_path):
    runs = tmp_path / "runs [1]"
    runs.mkdir()
    for number in (2, 10, 1):
        raddle.events.write(runs / f"run{number}.h5", {"x": np.array([number])}, progress=False)
    raddle.events.write(tmp_path / "first.h5", {"x": np.array([0])}, progress=False)
    assert raddle.events.open(runs)["x"].tolist() == [1, 2, 10]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(runs)
        events = raddle.events.open(["../first.h5", "run*.h5", "run1.h5"])
    assert [path.rpartition("run")[2] for path in events.paths[1:]] == ["1.h5", "2.h5", "10.h5", "1.h5"]
    assert events["x"].tolist() == [0, 1, 2, 10, 1]
    with pytest.raises(errors.InputError, match=r"none\*.root matches no file"):
        raddle.events.open(tmp_path / "none*.root")


def test_a_folder_of_several_formats_is_refused(tree, tmp_path):
    """It would stand for its HDF5 files only."""
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "b.root").write_bytes(Path(tree).read_bytes())
    for names in (["b.root"], ["a.h5", "b.root"]):
        if "a.h5" in names:
            raddle.events.write(folder / "a.h5", {"x": np.array([1])}, progress=False)
        for read in (raddle.events.open, lambda name: raddle.events.convert(name, tmp_path / "out.h5", progress=False)):
            with pytest.raises(errors.InputError, match=r"b\.root: a folder stands only for its HDF5 files") as refused:
                read(folder)
            assert refused.value.hint == f"name the files by a pattern, such as '{folder}/*.root'"
    assert raddle.events.open(f"{folder}/*.root").num_entries == ENTRIES


def test_what_names_no_file_is_refused(tree, tmp_path):
    for nothing in ([], ()):
        with pytest.raises(errors.UsageError, match="name files"):
            raddle.events.open(nothing)
    for lines in (b"", str(tree).encode()):
        with pytest.raises(errors.UsageError, match="file object"):
            raddle.events.open(io.BytesIO(lines))
    with pytest.raises(errors.UsageError, match="products=\\[\\]"):
        raddle.events.convert(tree, tmp_path / "out.h5", products=[], progress=False)
    assert not list(tmp_path.iterdir())


def test_files_are_found_again_from_another_folder(tree, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tree.parent)
        events = raddle.events.open(tree.name)
        patch.chdir(tmp_path)
        assert ak.array_equal(events.arrays(["met", "pt"]), expected(tree, ["met", "pt"]))
        assert len(events.ids()) == ENTRIES


def test_a_path_may_name_the_tree_as_well(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    met = expected(tree, "met")["met"]
    for path in (f"{tree}:Events", f"{tree}:Events;1", f"{tree.parent}/*{tree.name}:Events"):
        assert ak.array_equal(raddle.events.open(path)["met"], met)
    assert raddle.events.open([f"{tree}:Events", tree], tree="Events").num_entries == 2 * ENTRIES
    with pytest.raises(errors.UsageError, match="trees have different names: Events, Other; open them"):
        raddle.events.open(f"{tree}:Events", tree="Other")
    with pytest.raises(errors.InputError, match="tree Other: no such tree"):
        raddle.events.open(f"{tree}:Other")
    with pytest.raises(FileNotFoundError, match="absent.root:Events"):
        raddle.events.open("absent.root:Events")
    # A file of exactly that name takes precedence.
    (tmp_path / "run1.root").write_bytes(b"")
    (tmp_path / "run1.root:Events").write_bytes(tree.read_bytes())
    assert raddle.events.open("run1.root:Events").num_entries == ENTRIES


def met_of(events):
    return events["met"].tolist()


def test_events_go_to_other_processes(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tree.parent)
    events = raddle.events.open([tree.name, tree.name], tree="Events", raw=False, jobs=2, memory="64MiB")
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(pickle.dumps(events))
    assert again.paths == events.paths == [str(tree)] * 2 and again.products == events.products
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(met_of, (events,)) == met_of(events)


def test_events_are_closed_with_their_block(tree):
    with raddle.events.open(tree) as events:
        met = events["met"]
    assert len(met) == ENTRIES and "met" in events
    for read in (events.arrays, events.ids, events.baskets, lambda: pickle.dumps(events)):
        with pytest.raises(errors.UsageError, match="is closed"):
            read()


def test_numpy_is_for_what_is_not_jagged(tree):
    events = raddle.events.open(tree)
    arrays = events.arrays(["met", "pixels"], library="np")
    assert arrays["pixels"].shape == (ENTRIES, 3) and arrays["met"].dtype == np.float64
    with pytest.raises(errors.UsageError, match="pt"):
        events.arrays("pt", library="np")
    with pytest.raises(errors.UsageError, match="pd"):
        events.arrays("pt", library="pd")


def test_names_are_chosen_by_globs_and_must_be_there(tree):
    events = raddle.events.open(tree)
    assert set(ak.fields(events.arrays(["p*", "met"]))) == {"pixels", "passed", "pt", "met"}
    with pytest.raises(KeyError, match="nothing"):
        events["nothing"]
    with pytest.raises(errors.InputError, match="no such tree; available: Events"):
        raddle.events.open(tree, tree="Other")
    with pytest.raises(FileNotFoundError):
        raddle.events.open(tree.with_name("absent.root"))


@pytest.mark.parametrize("make", ["mktree", "mkrntuple"])
def test_trees_and_ntuples_are_named_with_and_without_cycle(tmp_path, make):
    path = tmp_path / "cycles.root"
    with uproot.recreate(path) as file:
        for name, value in [("folder/T", 1), ("folder/T", 2), ("U;x", 3)]:
            getattr(file, make)(name, {"x": np.dtype("i8")} if make == "mktree" else ak.Array([{"x": 0}])[:0])
            file[name].extend({"x": np.array([value])})
    for name, value in [("folder/T", 2), ("folder/T;2", 2), ("folder/T;1", 1), ("U;x", 3), ("U;x;1", 3)]:
        assert raddle.events.open(path, tree=name)["x"].tolist() == [value], name
    for name in ("folder/T;3", "folder/T;", "T;1", "folder/T;99999"):
        with pytest.raises(errors.InputError, match=f"tree {name}: no such tree; available: U;x, folder/T"):
            raddle.events.open(path, tree=name)
    with pytest.raises(errors.InputError, match="no such tree; available: U;x, folder/T"):
        raddle.events.open(path)


def test_a_file_without_trees_has_none(tmp_path):
    with uproot.recreate(tmp_path / "hist.root") as file:
        file["h"] = np.histogram(np.arange(9.0))
    with pytest.raises(errors.InputError, match="no such tree; available: none") as raised:
        raddle.events.open(tmp_path / "hist.root")
    assert raised.value.hint is None


def test_files_are_described(tree):
    about = raddle.events.inspect(tree, sizes=True)
    assert about.format == f"ROOT file, {'RNTuple' if tree.stem == 'ntuple' else 'tree'} Events" and about.events == ENTRIES
    found = {product.name: product for product in about.products}
    assert found["met"].len_bytes == 8 * ENTRIES
    assert "ROOT file" in about._repr_html_()


def test_damage_names_its_place_and_can_be_left_out(tmp_path):
    tree = write_root(tmp_path / "whole.root", columns())
    data = bytearray(tree.read_bytes())
    with uproot.open(tree) as file:
        key = file["Events/met"].basket(0)
        position = file["Events/met"].member("fBasketSeek")[0]
        length = key.compressed_bytes
    data[position + 100 : position + length] = bytes(length - 100)
    damaged = tmp_path / "damaged.root"
    damaged.write_bytes(data)
    with pytest.raises(errors.InputError, match=r"damaged.root, tree Events, branch met, entries 0\.\."):
        raddle.events.open(damaged)["met"]
    with pytest.raises(errors.InputError, match=r"damaged.root, tree Events, branch met, entries 0\.\.257: damaged"):
        raddle.events.open(damaged).baskets()
    assert len(raddle.events.open(damaged)["pt"]) == ENTRIES
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("always")
        report = raddle.events.convert(damaged, tmp_path / "rest.h5", skip_bad=True, progress=False)
    assert [left.product for left in report.left_out] == ["met"]
    assert any("met is left out" in str(warning.message) for warning in printed)


def test_a_file_written_anew_is_not_called_damaged(tmp_path):
    path = tmp_path / "a.root"
    for start, names in (0, "ab"), (50_000, "xya"):
        with uproot.recreate(path) as file:
            file["t"] = {name: np.arange(start, start + 1000) for name in names}
        if start == 0:
            events = raddle.events.open(path)
    for name in "ab":
        with pytest.raises(errors.InputError, match="it changed while it was being read"):
            events[name]


def test_whole_objects(tmp_path):
    """Objects that ROOT split into branches are one product, also in another process."""
    path = Path(__file__).parents[2] / "crates/root/tests/samples/split.root"
    with raddle.events.open(path, whole=True) as events:
        hits = events["hit"]
        assert [product.name for product in raddle.events.inspect(path, whole=True).products] == list(events)
        again = pickle.loads(pickle.dumps(events))
        assert ak.to_list(again["hit"]) == ak.to_list(hits)
    for entry, blob in enumerate(ak.to_list(hits)):
        blob = bytes(blob)
        # Byte count, version 0 and checksum; channel, time and energy.
        assert struct.unpack_from(">IH", blob) == (0x4000_0000 | (len(blob) - 4), 0)
        assert struct.unpack_from(">ifd", blob, 10) == (entry, entry / 2, entry / 4)
    raddle.events.convert(path, tmp_path / "hits.pds", layout="pds", whole=True, products=["hit*"], progress=False)
    assert list(raddle.events.open(tmp_path / "hits.pds", raw=True)) == ["hit", "hits"]
    with pytest.raises(errors.UsageError, match="cannot be used with"):
        raddle.events.open(path, raw=True, whole=True)
