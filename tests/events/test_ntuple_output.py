"""RNTuples written by raddle: uproot reads the values of the source, and raddle reads its own output."""

from pathlib import Path

import awkward as ak
import h5py
import ntuple_files
import numpy as np
import pytest
import tree_files
import uproot
from converting import raddle, read_columns
from tree_files import as_bits

SAMPLES = Path(__file__).parents[2] / "crates/root/tests/samples"
CODECS = {"none": 0, "zlib": 106, "zlib:1": 101, "lz4": 401, "zstd": 509, "zstd:3": 501}


def to_ntuple(source, tmp_path, *options):
    """Converts a file; the bytes must be the same for any number of threads."""
    outputs = [tmp_path / f"{jobs}.root" for jobs in (1, 3)]
    for jobs, output in zip((1, 3), outputs):
        raddle("convert", source, "-o", output, "--layout", "rntuple", "-f", "-j", jobs, *options)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    return outputs[0]


def check(output, expected):
    """Checks that uproot reads these fields, in this order, with these values and types."""
    with uproot.open(output) as file:
        assert file.keys(cycle=False) == ["Events"]
        # The description of the anchor's class, as ROOT stores it.
        described = file.file.streamers["ROOT::RNTuple"][2]
        assert [element.name for element in described.elements][-1] == "fMaxKeySize"
        ntuple = file["Events"]
        assert ntuple.num_entries == len(expected)
        got = ntuple.arrays()
    assert got.fields == expected.fields
    for name in expected.fields:
        packed = ak.to_packed(expected[name])
        assert str(got[name].type) == str(packed.type), name
        assert ak.array_equal(as_bits(got[name]), as_bits(packed)), name


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Scalars, arrays and jagged arrays of all numbers, in two baskets each."""
    batches = [tree_files.columns(seed, entries) for seed, entries in [(1, 300), (2, 90)]]
    return tree_files.write(tmp_path_factory.mktemp("trees") / "tree.root", batches, uproot.ZSTD(3))


@pytest.fixture(scope="module")
def ntuples(tmp_path_factory):
    """Strings, lists of lists, records, in several clusters."""
    path = tmp_path_factory.mktemp("ntuples") / "ntuple.root"
    batches = [ntuple_files.columns(1, 50), ntuple_files.columns(2, 1), ntuple_files.columns(3, 117)]
    with uproot.recreate(path) as file:
        file.mkrntuple("Events", batches[0])
        for batch in batches[1:]:
            file["Events"].extend(batch)
    return path


@pytest.mark.parametrize("codec", CODECS)
def test_trees_become_ntuples(trees, tmp_path, codec):
    output = to_ntuple(trees, tmp_path, "--codec", codec)
    with uproot.open(trees) as file:
        names = [branch.name for branch in file["events"].branches]
        expected = file["events"].arrays(names)[names]
    check(output, expected)
    with uproot.open(output) as file:
        assert file.file.fCompress == CODECS[codec]


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd:3"])
def test_ntuples_become_ntuples(ntuples, tmp_path, codec):
    output = to_ntuple(ntuples, tmp_path, "--codec", codec)
    with uproot.open(ntuples) as file:
        expected = file["Events"].arrays()
    check(output, expected)


def test_columns_are_the_same_by_way_of_an_ntuple(trees, ntuples, tmp_path):
    for source in (trees, ntuples):
        direct, by_way = tmp_path / "direct.h5", tmp_path / "by_way.h5"
        raddle("convert", source, "-o", direct, "-f")
        raddle("convert", to_ntuple(source, tmp_path), "-o", by_way, "-f")
        with h5py.File(direct) as one, h5py.File(by_way) as other:
            assert list(one["events"]) == list(other["events"])
            assert one["events"].attrs["form"] == other["events"].attrs["form"]
            for name, dataset in one["events"].items():
                assert dataset.dtype == other["events"][name].dtype
                assert dataset[()].tobytes() == other["events"][name][()].tobytes(), name
        # Also from columns into an RNTuple.
        again = tmp_path / "again.root"
        raddle("convert", by_way, "-o", again, "-f", "--layout", "rntuple")
        check(again, read_columns(by_way))


@pytest.mark.parametrize("name", ["unsplit", "objectwise", "split", "embedded"])
def test_objects_become_records(dump, tmp_path, name):
    """Maps, pairs, classes and their members, lists of lists of objects."""
    source = SAMPLES / f"{name}.root"
    output = to_ntuple(source, tmp_path)
    read = dump(source)
    with uproot.open(output) as file:
        got = file["Events"].arrays()
    names = {product: product.replace(".", "_") for product in read.products}
    assert got.fields == list(names.values())
    for product, field in names.items():
        assert ak.to_list(got[field]) == ak.to_list(read[product]), product


def test_ids_are_kept(trees, tmp_path):
    batch = {"pt": np.arange(5.0), "run": np.full(5, 7, np.uint32), "luminosityBlock": np.arange(5, dtype=np.uint32)}
    batch["event"] = np.arange(5, dtype=np.uint64) + 2**40
    source = tree_files.write(tmp_path / "ids.root", [batch], tree="Events")
    # With other products ids stay unchanged; without them they are added.
    for options, names in [
        ([], ["pt", "run", "luminosityBlock", "event"]),
        (["--products", "pt"], ["pt", "run", "lumi", "event"]),
        (["--products", "pt", "--products", "run"], ["pt", "run", "EventID"]),
    ]:
        output = to_ntuple(source, tmp_path, *options)
        with uproot.open(output) as file:
            got = file["Events"].arrays()
        assert got.fields == names
        ids = got.EventID if "EventID" in names else got
        assert ak.to_list(ids.run) == [7] * 5 and ak.to_list(ids.event) == batch["event"].tolist()
        columns = tmp_path / "columns.h5"
        raddle("convert", output, "-o", columns, "-f")
        with h5py.File(columns) as file:
            assert file["ids/event"][()].tolist() == batch["event"].tolist()
            assert file["ids/lumi"][()].tolist() == batch["luminosityBlock"].tolist()
    # A source without ids gets none.
    with uproot.open(to_ntuple(trees, tmp_path)) as file:
        assert not {"run", "lumi", "event", "EventID"} & set(file["Events"].keys())


def test_bytes_of_objects_are_lists_of_bytes(tmp_path):
    source = SAMPLES / "packed_events.root"
    output = to_ntuple(source, tmp_path, "--raw")
    columns = tmp_path / "columns.h5"
    raddle("convert", source, "-o", columns, "--raw")
    expected = read_columns(columns)
    with uproot.open(output) as file:
        got = file["Events"].arrays()
        assert file["Events"]["product0"].typename == "std::vector<std::byte>"
    for name in expected.fields:
        assert [bytes(entry) for entry in ak.to_list(got[name])] == ak.to_list(expected[name]), name
        assert sum(map(len, ak.to_list(expected[name]))) > 0


def test_arrays_of_records_are_lists(tmp_path):
    points = ak.to_regular(ak.Array([[{"x": float(3 * number + inner)} for inner in range(3)] for number in range(4)]))
    with uproot.recreate(tmp_path / "in.root") as file:
        file.mkrntuple("Events", {"points": points})
    output = to_ntuple(tmp_path / "in.root", tmp_path)
    with uproot.open(output) as file:
        got = file["Events"].arrays()
    assert str(got["points"].type) == "4 * var * {x: float64}"
    assert ak.to_list(got["points"]) == ak.to_list(points)


def test_many_clusters_and_pages(tmp_path):
    """More than one cluster, several pages, lists that cross their boundaries."""
    random = np.random.default_rng(5)
    entries = 100_000
    counts = random.integers(0, 60, entries)
    data = {"x": ak.unflatten(random.normal(size=int(counts.sum())), counts), "n": random.integers(-5, 5, entries, np.int32)}
    data["flag"] = random.integers(0, 2, entries).astype(bool)
    with uproot.recreate(tmp_path / "in.root") as file:
        file.mkrntuple("Events", ak.Array(data))
    # The source has one cluster, so only raddle's own boundaries matter.
    columns = tmp_path / "columns.h5"
    raddle("convert", tmp_path / "in.root", "-o", columns)
    for source in (tmp_path / "in.root", columns):
        output = to_ntuple(source, tmp_path)
        check(output, ak.Array(data))
    with uproot.open(output) as file:
        assert len(file["Events"].cluster_summaries) > 1


def test_names_and_codecs_that_do_not_fit_are_reported(tmp_path):
    with uproot.recreate(tmp_path / "in.root") as file:
        file.mktree("Events", {"a.b": "f8", "a_b": "f8"})
        file["Events"].extend({"a.b": np.arange(3.0), "a_b": np.arange(3.0)})
    output = tmp_path / "out.root"
    printed = raddle("convert", tmp_path / "in.root", "-o", output, "--layout", "rntuple", code=3)
    assert "a_b" in printed and "the same name" in printed
    assert not output.exists()
    raddle("convert", tmp_path / "in.root", "-o", output, "--layout", "rntuple", "--products", "a.b")
    with uproot.open(output) as file:
        assert file["Events"].keys() == ["a_b"]
    printed = raddle("convert", SAMPLES / "packed_events.root", "-o", tmp_path / "x.pds", "--layout", "pds", "--codec", "zlib", code=2)
    assert "zlib is for --layout rntuple" in printed
