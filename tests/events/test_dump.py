"""``raddle events dump``: the values that uproot reads, as JSON and as text."""

import json
import subprocess
from pathlib import Path

import awkward as ak
import ntuple_files
import numpy as np
import pytest
import tree_files
import uproot
from command import RADDLE
from converting import raddle, run_events

SAMPLES = Path(__file__).parents[2] / "crates/root/tests/samples"
NUMBERS_JSON_LACKS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


def run(*arguments, code=0):
    finished = run_events("dump", *arguments, code=code)
    return finished.stdout if code == 0 else finished.stderr


def refused(constant):
    raise AssertionError(f"{constant} is no JSON")


def rows(*arguments):
    """Parses all lines as JSON; anything else fails."""
    return [json.loads(line, parse_constant=refused) for line in run(*arguments, "--json").splitlines()]


def same(got, expected):
    if isinstance(expected, float):
        got = NUMBERS_JSON_LACKS.get(got, got) if isinstance(got, str) else got
        return isinstance(got, float) and (got == expected or (np.isnan(got) and np.isnan(expected)))
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, dict):
        return list(got) == list(expected) and all(same(got[name], value) for name, value in expected.items())
    return type(got) is type(expected) and got == expected


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A tree with every bit pattern, and an RNTuple with strings, lists of lists and records."""
    folder = tmp_path_factory.mktemp("dumped")
    tree = tree_files.write(folder / "tree.root", [tree_files.columns(1, 80), tree_files.columns(2, 21)], tree="Events")
    with uproot.recreate(folder / "ntuple.root") as file:
        file.mkrntuple("Events", ntuple_files.columns(1, 90))
    return tree, folder / "ntuple.root"


@pytest.mark.parametrize("jobs", [1, 3])
def test_json_has_the_values_of_uproot(files, jobs):
    for path in files:
        with uproot.open(path) as file:
            events = file["Events"]
            # Without members of records, which uproot also lists.
            names = [name for name in events.keys() if "." not in name]
            expected = ak.to_list(events.arrays(names)[names])
        got = rows(path, "-j", jobs)
        assert [row["entry"] for row in got] == list(range(len(expected)))
        assert all("id" not in row for row in got)
        for row, values in zip(got, expected):
            assert same(row["products"], values)


def test_objects_have_the_values_of_uproot(tmp_path):
    """Records in records, maps and lists of lists, which uproot reads from an RNTuple."""
    source, ntuple = SAMPLES / "unsplit.root", tmp_path / "unsplit.root"
    raddle("convert", source, "-o", ntuple, "--layout", "rntuple")
    with uproot.open(ntuple) as file:
        expected = ak.to_list(file["Events"].arrays())
    for path in (source, ntuple):
        got = rows(path)
        assert len(got) == len(expected) == 12
        for row, values in zip(got, expected):
            assert same(row["products"], values)


def test_entries_and_products_are_chosen(files):
    path = files[0]
    whole = rows(path)
    got = rows(path, "--entries", "77..83", "--products", "flat_*8", "--products", "jagged_float32")
    assert [row["entry"] for row in got] == list(range(77, 83))
    names = ["flat_int8", "flat_uint8", "jagged_float32"]
    for row in got:
        assert row["products"] == {name: whole[row["entry"]]["products"][name] for name in names}
    assert rows(path, "--entries", "101..") == []
    assert "101 entries" in run(path, "--entries", "50..102", code=3)
    assert "no such product" in run(path, "--products", "none*", code=3)


def test_ids_and_bytes(tmp_path):
    path = SAMPLES / "packed_events.root"
    got = rows(path)
    assert [row["id"] for row in got] == [{"run": 1, "lumi": 1, "event": event} for event in range(1, 11)]
    # Ten test products of the framework: three numbers after two headers.
    assert got[3]["products"]["product1"]["bytes"].startswith("4000")
    sizes = {len(bytes.fromhex(row["products"]["product0"]["bytes"])) for row in got}
    assert sizes == {28}


def test_text_shows_the_first_items(files):
    with uproot.open(files[1]) as file:
        events = file["Events"].arrays()
    number = int(ak.argmax(ak.num(events["jagged_int16"])))
    values = events["jagged_int16"][number].tolist()
    assert len(values) > 3
    text = run(files[1], "--entries", f"{number}..{number + 1}", "--items", 2).splitlines()
    assert text[0] == f"entry {number}"
    lines = dict(line.split(maxsplit=1) for line in text[1:])
    assert list(lines) == events.fields
    assert lines["jagged_int16"] == f"[{values[0]}, {values[1]}, … {len(values) - 2} more]"
    assert lines["flat_int64"] == str(events["flat_int64"][number])
    # 32-bit numbers with the fewest digits that distinguish them.
    assert np.float32(lines["flat_float32"]) == events["flat_float32"][number]
    assert len(lines["flat_float32"]) < len(str(float(events["flat_float32"][number])))


def test_a_reader_may_go_away(files):
    with subprocess.Popen([RADDLE, "events", "dump", str(files[0]), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b'{"entry":0')
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
