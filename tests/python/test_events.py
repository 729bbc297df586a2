"""Events of ROOT files, streams and HDF5 as awkward arrays, and arrays as events."""

import io
import multiprocessing
import pickle
import struct
import warnings
from pathlib import Path

import awkward as ak
import h5py
import numpy as np
import pytest
import raddle
import uproot
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import errors
from ranks import on_ranks

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


@pytest.fixture(scope="module", params=["tree", "ntuple"])
def tree(tmp_path_factory, request):
    path = tmp_path_factory.mktemp("events") / f"{request.param}.root"
    return write_root(path, columns(), request.param == "ntuple")


def expected(path, names, **options):
    with uproot.open(path) as file:
        return file["Events"].arrays(names, **options)


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


def vector(values):
    """Returns a vector<int> as serialised by ROOT: count and values, after two headers with byte count and version."""
    inner = struct.pack(f">HI{len(values)}i", 10, len(values), *values)
    outer = struct.pack(">HI", 6, 0x40000000 | len(inner)) + inner
    return struct.pack(">I", 0x40000000 | len(outer)) + outer


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """The same lists as a tree, an RNTuple, columns, and two streams with both serialisations."""
    folder = tmp_path_factory.mktemp("formats")
    lists = ak.Array([list(range(number % 4)) for number in range(25)])
    paths = [folder / name for name in ("tree.root", "ntuple.root", "columns.h5", "root.pds", "unrolled.pds", "batch.h5")]
    write_root(paths[0], {"numbers": ak.values_astype(lists, np.int32)})
    write_root(paths[1], {"numbers": ak.values_astype(lists, np.int32)}, True)
    raddle.events.write(paths[2], {"numbers": ak.values_astype(lists, np.int32)}, progress=False)
    blobs = {"numbers": ak.from_iter([vector(values) for values in ak.to_list(lists)])}
    raddle.events.write(paths[3], blobs, classes={"numbers": "vector<int>"}, layout="pds", progress=False)
    raddle.events.convert(paths[3], paths[4], layout="pds", serialize="unrolled", progress=False)
    raddle.events.convert(paths[3], paths[5], layout="batch", batch=10, progress=False)
    return paths, ak.to_list(lists)


def test_files_of_all_formats_are_joined_as_what_they_are_read_as(formats, tmp_path):
    paths, lists = formats
    for order in (paths, paths[::-1]):
        # Only the tree has the branch that counts them.
        with pytest.warns(UserWarning, match="^nnumbers left out"):
            events = raddle.events.open(order, differing="leave-out")
        assert [product.type for product in events.products] == ["var * int32"]
        assert ak.to_list(events["numbers"]) == lists * len(paths)
    output = tmp_path / "all.h5"
    raddle.events.convert(paths, output, products=["numbers"], order="given", progress=False)
    # The others have no ids.
    assert raddle.events.open(output).ids() is None and raddle.events.open(paths[3:]).ids().shape == (75,)
    assert ak.to_list(raddle.events.open(output)["numbers"]) == lists * len(paths)
    # Bytes of both streams, with the same serialisation.
    streams = paths[3:]
    for layout, serialize in (("batch", "root"), ("event", "unrolled"), ("pds", "root")):
        output = tmp_path / f"{layout}.{serialize}"
        raddle.events.convert(streams, output, layout=layout, serialize=serialize, order="given", progress=False)
        assert raddle.events.open(output, raw=True).products[0].type == f"bytes[{serialize}]"
        assert ak.to_list(raddle.events.open(output)["numbers"]) == lists * 3
    with pytest.raises(errors.InputError, match="serialize"):
        raddle.events.convert(streams, tmp_path / "mixed", layout="batch", order="given", progress=False)


def test_leaving_out_everything_is_an_error(formats, tmp_path):
    paths, _ = formats
    with pytest.raises(errors.InputError, match=r"numbers would all be left out: .*unrolled.pds, branch numbers: its form is bytes"):
        raddle.events.open(paths[3:5], raw=True, differing="leave-out")
    with pytest.raises(errors.InputError, match="numbers would all be left out"):
        raddle.events.convert(paths[3:5], tmp_path / "none.h5", layout="batch", differing="leave-out", progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["product", "event", "batch", "pds"])
@pytest.mark.parametrize("options", [{}, {"raw": True}, {"serialize": "root"}])
def test_columns_have_no_bytes_for_layouts_of_bytes(formats, tmp_path, layout, options):
    for path in formats[0][1:3]:
        with pytest.raises(errors.InputError, match="columns, as RNTuples store them too, have none") as raised:
            raddle.events.convert(path, tmp_path / "out", layout=layout, progress=False, **options)
        assert "write columns" in raised.value.hint


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


def test_what_is_written_is_read_and_is_what_the_command_writes(tree, tmp_path):
    arrays = expected(tree, ["met", "pixels", "passed", "pt"])
    ids = raddle.events.open(tree).ids()
    report = raddle.events.write(tmp_path / "written.h5", arrays, ids=ids, progress=False)
    assert (report.events, report.products, report.layout) == (ENTRIES, 4, "columns")
    assert "257" in report._repr_html_()
    again = raddle.events.open(tmp_path / "written.h5")
    assert ak.array_equal(again.arrays(), arrays)
    assert np.array_equal(again.ids(), ids)
    raddle.events.convert(tree, tmp_path / "converted.h5", products=ak.fields(arrays), progress=False)
    with h5py.File(tmp_path / "written.h5") as one, h5py.File(tmp_path / "converted.h5") as other:
        assert set(one["events"]) == set(other["events"])
        for name in one["events"]:
            assert np.array_equal(one["events"][name][()], other["events"][name][()]), name
    with pytest.raises(errors.OutputError, match="force"):
        raddle.events.write(tmp_path / "written.h5", arrays, progress=False)
    raddle.events.write(tmp_path / "written.h5", {"met": arrays["met"]}, force=True, progress=False)
    assert list(raddle.events.open(tmp_path / "written.h5")) == ["met"]


@pytest.mark.parametrize("kind", [">i2", ">u4", ">f4", ">f8", "<f8", "?"])
def test_arrays_of_both_byte_orders_are_written(tmp_path, kind):
    values = np.arange(6).astype(kind).reshape(2, 3)
    raddle.events.write(tmp_path / "one.h5", {"x": values}, progress=False)
    rows = np.zeros(2, [("x", kind), ("y", ">i8")])
    rows["x"] = values[:, 1]
    raddle.events.write(tmp_path / "rows.h5", rows, progress=False)
    read = raddle.events.open(tmp_path / "one.h5").arrays(library="np")["x"]
    assert read.dtype == values.dtype.newbyteorder("=") and read.tolist() == values.tolist()
    assert raddle.events.open(tmp_path / "rows.h5")["x"].tolist() == values[:, 1].tolist()


ELEMENTS = st.recursive(
    st.sampled_from(["i1", "u2", "i4", "u8", "f4", "f8", "?"]).map(lambda kind: ("number", kind)),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("regular"), st.integers(1, 3), inner),
        st.tuples(st.just("record"), st.lists(inner, min_size=1, max_size=3)),
        st.sampled_from([("text",), ("bytes",)]),
    ),
    max_leaves=6,
)


def layout_of(form, length, random):
    """Returns a layout of this form with random values."""
    from awkward import contents
    from awkward.index import Index64

    match form:
        case ("number", kind):
            values = random.integers(0, 2 if kind == "?" else 100, length)
            return contents.NumpyArray(values.astype(np.dtype(kind).newbyteorder("=")))
        case ("list", inner):
            counts = random.integers(0, 4, length)
            offsets = Index64(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
            return contents.ListOffsetArray(offsets, layout_of(inner, int(counts.sum()), random))
        case ("regular", size, inner):
            return contents.RegularArray(layout_of(inner, size * length, random), size, zeros_length=length)
        case ("record", inner):
            fields = [layout_of(one, length, random) for one in inner]
            return contents.RecordArray(fields, [f"field {number}" for number in range(len(fields))], length=length)
        case ("text",):
            return ak.from_iter(["ä" * int(count) for count in random.integers(0, 4, length)] or [""]).layout[:length]
        case ("bytes",):
            return ak.from_iter([b"\0\xff" * int(count) for count in random.integers(0, 4, length)] or [b""]).layout[:length]


@settings(deadline=None)
@given(forms=st.lists(ELEMENTS, min_size=1, max_size=4), entries=st.integers(0, 40), seed=st.integers(0, 99), cut=st.booleans())
def test_any_columns_come_back(tmp_path_factory, forms, entries, seed, cut):
    random = np.random.default_rng(seed)
    whole = {f"p{number}": ak.Array(layout_of(form, entries + 5 * cut, random)) for number, form in enumerate(forms)}
    # Views of parts of arrays, and lists out of order, are written with the values that they show.
    order = random.permutation(entries + 5 * cut)[:entries]
    arrays = {name: array[order] if cut else array for name, array in whole.items()}
    path = tmp_path_factory.mktemp("any") / "any.h5"
    raddle.events.write(path, arrays, compress="none", progress=False)
    events = raddle.events.open(path, jobs=2)
    for name, array in arrays.items():
        assert ak.to_list(events[name]) == ak.to_list(array), name


def as_ntuple_values(value):
    """Returns values as they are in an RNTuple: bytes are lists of numbers there, and names have no spaces."""
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, dict):
        return {name.replace(" ", "_"): as_ntuple_values(inner) for name, inner in value.items()}
    return [as_ntuple_values(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.filterwarnings("ignore:.*replaces characters that RNTuples do not permit")
@settings(deadline=None)
@given(
    forms=st.lists(ELEMENTS, min_size=1, max_size=4),
    entries=st.integers(1, 40),
    seed=st.integers(0, 99),
    codec=st.sampled_from(["none", "zlib", "lz4", "zstd:3"]),
)
def test_uproot_reads_any_columns_from_an_ntuple(tmp_path_factory, forms, entries, seed, codec):
    random = np.random.default_rng(seed)
    arrays = {f"p{number}": ak.Array(layout_of(form, entries, random)) for number, form in enumerate(forms)}
    ids = np.zeros(entries, raddle.events.ID)
    ids["event"] = random.integers(0, 2**60, entries)
    path = tmp_path_factory.mktemp("ntuple") / "any.root"
    report = raddle.events.write(path, arrays, ids=ids, layout="rntuple", codec=codec, progress=False)
    assert (report.layout, report.events) == ("rntuple", entries)
    expected = {name: as_ntuple_values(ak.to_list(array)) for name, array in arrays.items()}
    expected |= {"run": ids["run"].tolist(), "lumi": ids["lumi"].tolist(), "event": ids["event"].tolist()}
    with uproot.open(path) as file:
        got = file["Events"].arrays()
    own = raddle.events.open(path)
    assert got.fields == list(expected)
    for name, values in expected.items():
        assert ak.to_list(got[name]) == values, name
        assert ak.to_list(own[name]) == values, name
    assert np.array_equal(own.ids(), ids)


def test_what_cannot_be_written_is_refused(tmp_path):
    path = tmp_path / "refused.h5"
    for arrays, words in [
        ({"x": ak.Array([1, None, 2])}, "missing values"),
        ({"x": ak.Array([1, "a"])}, "unions"),
        ({"x": np.array([1j])}, "complex128"),
        ({"x": np.zeros(2), "y": np.zeros(3)}, "different lengths"),
        (ak.Array([1, 2]), "no named fields"),
    ]:
        with pytest.raises(errors.UsageError, match=words):
            raddle.events.write(path, arrays, progress=False)
    with pytest.raises(errors.UsageError, match="ids"):
        raddle.events.write(path, {"x": np.zeros(2)}, ids=np.zeros(2), progress=False)
    with pytest.raises(errors.InputError, match="columns, which hold everything"):
        raddle.events.write(path, {"x": np.zeros(2)}, layout="event", progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["i8", ">i8", "u8"])
def test_ids_of_wider_types_are_written_where_they_fit(tmp_path, kind):
    path = tmp_path / "ids.h5"
    wider = [("event", kind), ("run", kind), ("lumi", kind)]
    ids = np.array([(2**40, 2**32 - 1, 0), (3, 2, 1)], wider)
    raddle.events.write(path, {"x": np.zeros(2)}, ids=ids, progress=False)
    assert raddle.events.open(path).ids().tolist() == [(2**32 - 1, 0, 2**40), (2, 1, 3)]
    raddle.events.write(path, {"x": np.zeros(0)}, ids=ids[:0], force=True, progress=False)


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        ((2**40, 2, 3), "i8", r"run 1099511627776 of event 1 does not fit uint32, 0 to 4,294,967,295"),
        ((2**32, 2, 3), "u8", r"run 4294967296 of event 1"),
        ((1, -1, 3), "i8", r"lumi -1 of event 1"),
        ((1, 2, -5), "i8", r"event -5 of event 1"),
        ((1, 2, 3), "f8", r"run has type float64, not integers"),
        ((1, 2, 3), ("i8", (2,)), r"run has type .*, not integers"),
    ],
)
def test_ids_that_do_not_fit_are_refused(tmp_path, row, kind, words):
    """Such ids used to wrap to another event's id."""
    ids = np.array([(1, 2, 3), row], [(name, kind) for name in ("run", "lumi", "event")])
    with pytest.raises(errors.UsageError, match=words):
        raddle.events.write(tmp_path / "ids.h5", {"x": np.zeros(2)}, ids=ids, progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_convert_together(tree, tmp_path, size):
    raddle.events.convert([tree] * 5, tmp_path / "one.h5", duplicates="keep", progress=False)

    def convert(communicator, inputs=(tree,) * 5, name="all.h5"):
        return raddle.events.convert(inputs, tmp_path / name, duplicates="keep", communicator=communicator)

    reports = on_ranks(size, convert)
    assert {report.events for report in reports} == {5 * ENTRIES}
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "all.h5").read_bytes()
    # Only one rank does not find its input.
    absent = tmp_path / "absent.root"
    failed = on_ranks(size, lambda ranks: convert(ranks, [absent if ranks.rank == size - 1 else tree], "none.h5"))
    assert isinstance(failed[-1], errors.InputError) and "absent.root" in str(failed[-1])
    assert all(isinstance(error, errors.RankFailedError) for error in failed[:-1])
    assert not (tmp_path / "none.h5").exists()


def test_bytes_go_through_every_layout(tmp_path):
    blobs = ak.from_iter([vector(range(number % 4)) for number in range(25)])
    classes = {"numbers": "vector<int>"}
    for layout in ("product", "event", "batch", "pds"):
        path = tmp_path / layout
        raddle.events.write(path, {"numbers": blobs}, classes=classes, layout=layout, batch=10, progress=False)
        read = raddle.events.open(path, raw=True)["numbers"]
        # Streams pad to words.
        assert raddle.events.open(path).products[0].type == "var * int32"
        assert ak.to_list(raddle.events.open(path)["numbers"]) == [list(range(number % 4)) for number in range(25)]
        assert [blob.rstrip(b"\0") for blob in ak.to_list(read)] == [blob.rstrip(b"\0") for blob in ak.to_list(blobs)]
    joined = tmp_path / "joined"
    report = raddle.events.merge([tmp_path / "event", tmp_path / "event"], joined, duplicates="keep", progress=False)
    assert report.events == 50 and raddle.events.open(joined, raw=True).num_entries == 50


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
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = raddle.events.convert(damaged, tmp_path / "rest.h5", skip_bad=True, progress=False)
    assert [left.product for left in report.left_out] == ["met"]
    assert any("met is left out" in str(warning.message) for warning in told)


def test_whole_objects(tmp_path):
    """Objects that ROOT split into branches are one product, also in another process."""
    path = Path(__file__).parents[2] / "crates/events/tests/samples/split.root"
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
