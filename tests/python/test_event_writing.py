"""Arrays written as events."""

import awkward as ak
import h5py
import numpy as np
import pytest
import raddle
import uproot
from event_files import ENTRIES, expected
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import errors


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


def test_types_with_missing_values_are_written_if_none_is_missing(tmp_path):
    """Columns of Arrow, and numpy's masked arrays, have such types."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "written.root"
    records = [{"x": 1, "y": [True]}, {"x": 2, "y": []}, {"x": 3, "y": [False, True]}]
    table = {"n": [1.5, 2.5, 3.5], "t": ["a", "", "öß"], "l": [[1], [], [2, 3]], "r": records}
    raddle.events.write(path, ak.from_arrow(pyarrow.table(table)), layout="rntuple", progress=False)
    with uproot.open(path) as file:
        got = file["Events"].arrays(list(table))
    assert {name: ak.to_list(got[name]) for name in table} == table
    masked = np.ma.masked_array(np.arange(3.0), mask=[False, True, False])
    raddle.events.write(path, {"n": masked[::2]}, layout="rntuple", force=True, progress=False)
    with uproot.open(path) as file:
        assert file["Events"]["n"].array().tolist() == [0.0, 2.0]
    with pytest.raises(errors.UsageError, match="missing values"):
        raddle.events.write(path, {"n": masked}, layout="rntuple", force=True, progress=False)
