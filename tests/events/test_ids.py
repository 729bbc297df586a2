"""Ids of events: what the types of ids cannot hold, ids that are only counted, and products that hold others."""

import h5py
import numpy as np
import pytest
import uproot
from converting import raddle, read_columns, run_events
from tree_files import write

LAYOUTS = ["product", "event", "batch"]


def write_ids(path, names, ids, is_ntuple, kind="i8"):
    """Writes one branch or field for each part of the ids."""
    columns = {name: np.array(part, kind) for name, part in zip(names, zip(*ids), strict=True)} | {"x": np.arange(float(len(ids)))}
    if is_ntuple:
        with uproot.recreate(path) as file:
            file["Events"] = columns
    else:
        write(path, [columns], tree="Events")
    return path


def stored_ids(path):
    """Returns the ids that h5py finds in columns."""
    with h5py.File(path) as file:
        return list(zip(*(file["ids"][part][()].tolist() for part in ("run", "lumi", "event")), strict=True))


@pytest.mark.parametrize("is_ntuple", [False, True])
@pytest.mark.parametrize(
    ("last", "branch", "value"),
    [
        ((2**40 + 1, 1, 1), "run", 2**40 + 1),
        ((-1, 1, 1), "run", -1),
        ((1, 2**32, 1), "luminosityBlock", 2**32),
        ((1, 1, -5), "event", -5),
    ],
)
def test_numbers_that_do_not_fit_an_id_are_refused(tmp_path, is_ntuple, last, branch, value):
    names = ("run", "luminosityBlock", "event")
    path = write_ids(tmp_path / "in.root", names, [(1, 2, 3), (4, 5, 6), last], is_ntuple)
    for output, layout in [("out.h5", "columns"), ("out.root", "rntuple")]:
        printed = raddle("convert", path, "-o", tmp_path / output, "--layout", layout, code=3)
        assert f"in.root, tree Events, branch {branch}, entries 2..3" in printed and str(value) in printed
        assert "leave out the ids of all events with --skip-bad" in printed and not (tmp_path / output).exists()
        raddle("convert", path, "-o", tmp_path / output, "--layout", layout, "--skip-bad", code=4)
    finished = run_events("convert", path, "-o", tmp_path / "out.h5", "-f", "--skip-bad", code=4)
    assert "the ids of events" in finished.stderr and str(value) in finished.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        assert not len(file.get("ids", ()))
    columns = read_columns(tmp_path / "out.h5")
    with uproot.open(tmp_path / "out.root") as file:
        assert set(file["Events"].keys()) == {*names, "x"}
        for name, expected in zip(names, zip((1, 2, 3), (4, 5, 6), last, strict=True), strict=True):
            assert columns[name].tolist() == file["Events"][name].array().tolist() == list(expected)
    raddle("convert", path, "-o", tmp_path / "first.h5", "--entries", "0..2")
    assert stored_ids(tmp_path / "first.h5") == [(1, 2, 3), (4, 5, 6)]


@pytest.mark.parametrize("is_ntuple", [False, True])
def test_the_largest_ids_are_kept(tmp_path, is_ntuple):
    names, ids = ("run", "lumi", "event"), [(0, 0, 0), (2**32 - 1, 2**32 - 1, 2**64 - 1)]
    path = write_ids(tmp_path / "in.root", names, ids, is_ntuple, "u8")
    raddle("convert", path, "-o", tmp_path / "out.h5")
    assert stored_ids(tmp_path / "out.h5") == ids


@pytest.mark.parametrize("names", [("runNumber", "lumiBlock", "eventNumber"), ("Run", "subrun", "Evt"), ("run", "SubRun", "evt")])
def test_all_known_names_of_ids_count_everywhere(tmp_path, names):
    ids = [(1, 2, 3), (1, 2, 4)]
    tree = write_ids(tmp_path / "tree.root", names, ids, False)
    raddle("convert", tree, "-o", tmp_path / "ntuple.root", "--layout", "rntuple")
    with uproot.open(tmp_path / "ntuple.root") as file:
        assert sorted(file["Events"].keys()) == sorted([*names, "x"])
    for path in (tree, tmp_path / "ntuple.root", write_ids(tmp_path / "other.root", names, ids, True)):
        raddle("convert", path, "-o", tmp_path / "out.h5", "-f")
        assert stored_ids(tmp_path / "out.h5") == ids


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ids_that_are_only_counted_do_not_come_back(tmp_path, layout):
    names = []
    for number in range(2):
        write(tmp_path / f"{number}.root", [{"x": np.arange(3) + 3.0 * number}], tree="Events")
        names.append(tmp_path / f"{number}.{layout}")
        raddle("convert", tmp_path / f"{number}.root", "-o", names[-1], "--layout", layout)
    with h5py.File(names[0]) as file:
        assert file["Lumi"].attrs["raddle_ids"] == "counted"
        assert file["Lumi"]["Event_IDs" if layout == "product" else "EventIDs"][()].tolist() == [1, 2, 3]
    raddle("merge", *names, "-o", tmp_path / f"all.{layout}")
    for inputs in (names, [tmp_path / f"all.{layout}"]):
        raddle("convert", *inputs, "-o", tmp_path / "all.h5", "-f")
        with h5py.File(tmp_path / "all.h5") as file:
            assert not len(file.get("ids", ()))
        raddle("convert", *inputs, "-o", tmp_path / "all.root", "--layout", "rntuple", "-f")
        with uproot.open(tmp_path / "all.root") as file:
            assert file["Events"].keys() == ["x"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ids_of_the_input_come_back(tmp_path, layout):
    ids = [(1, 2, 2**40), (1, 2, 3)]
    path = write_ids(tmp_path / "in.root", ("run", "lumi", "event"), ids, False)
    raddle("convert", path, "-o", tmp_path / "in.h5", "--layout", layout)
    with h5py.File(tmp_path / "in.h5") as file:
        assert "raddle_ids" not in file["Lumi"].attrs
    raddle("convert", tmp_path / "in.h5", "-o", tmp_path / "out.h5")
    assert stored_ids(tmp_path / "out.h5") == ids


def test_products_that_hold_other_ids_are_refused(tmp_path):
    path = write_ids(tmp_path / "in.root", ("run", "lumi", "event"), [(1, 2, 3), (4, 5, 6)], False)
    raddle("convert", path, "-o", tmp_path / "in.h5")
    raddle("convert", tmp_path / "in.h5", "-o", tmp_path / "same.root", "--layout", "rntuple")
    with uproot.open(tmp_path / "same.root") as file:
        assert file["Events"].keys() == ["run", "lumi", "event", "x"]
    with h5py.File(tmp_path / "in.h5", "r+") as file:
        file["ids/lumi"][1] = 7
    printed = raddle("convert", tmp_path / "in.h5", "-o", tmp_path / "out.root", "--layout", "rntuple", code=3)
    assert "branch lumi, entries 1..2: it holds 5, but the id of the event has 7" in printed
    assert not (tmp_path / "out.root").exists()
    raddle("convert", tmp_path / "in.h5", "-o", tmp_path / "out.root", "--layout", "rntuple", "--products", "x")
    with uproot.open(tmp_path / "out.root") as file:
        assert file["Events"]["lumi"].array().tolist() == [2, 7]
    assert read_columns(tmp_path / "in.h5").lumi.tolist() == [2, 5]
