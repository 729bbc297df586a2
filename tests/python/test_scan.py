"""Searches of tables: the rows and values that numpy finds in arrays that h5py read."""

import operator
import os
import tempfile
from functools import reduce
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from drawn_columns import COMPARISONS, KINDS, drawn_column, drawn_condition, write
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import col, errors


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.filterwarnings("ignore:overflow")
def test_rows_and_values_are_those_of_numpy(data):
    rows = data.draw(st.sampled_from([0, 1, 7, 200]))
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    columns = {f"c{number}": drawn_column(data, kind, rows) for number, kind in enumerate(kinds)}
    extra = {"wide": np.arange(rows * 3).reshape(rows, 3), "name": np.array([f"n{row}" for row in range(rows)], dtype="S4")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.h5"
        write(path, columns | extra, data)
        with np.errstate(all="ignore"):
            condition, holds = drawn_condition(data, columns)
            wanted = np.flatnonzero(holds()) if rows else np.empty(0, np.int64)
        for indexed in (False, True):
            if indexed:
                raddle.index(path, progress=False)
            with raddle.scan(path, threads=data.draw(st.sampled_from([1, 3]))) as tables:
                found = tables["rec"].filter(condition)
                assert found.count() == len(wanted)
                np.testing.assert_array_equal(found.rows(), wanted)
                arrays = found.to_numpy()
                for name, values in (columns | extra).items():
                    assert arrays[name].dtype == values.dtype and arrays[name].shape == values[wanted].shape
                    np.testing.assert_array_equal(arrays[name], values[wanted])


@pytest.fixture
def table(tmp_path):
    """A sorted key, an unsorted value, a wide column, an enumeration and strings, in chunks of 1,000 rows."""
    path, rows = tmp_path / "all.h5", 100_000
    random = np.random.default_rng(0)
    columns = {
        "evt": np.arange(rows, dtype="i4"),
        "energy": random.normal(2, 1, rows).astype("f4"),
        "wide": random.random((rows, 2)),
        "flag": random.random(rows) > 0.5,
        "name": random.choice(np.array([b"near", b"far"]), rows),
    }
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file.create_dataset(f"rec.slc/{name}", data=values, chunks=(1000, *values.shape[1:]), compression="gzip", shuffle=True)
        kind = h5py.enum_dtype({"red": 3, "blue": -1}, "i1")
        columns["colour"] = random.choice(np.array([3, -1], "i1"), rows)
        file["rec.slc"].create_dataset("colour", data=columns["colour"], dtype=kind)
        columns["note"] = np.array([f"note {row}" for row in range(rows)], dtype=object)
        file["rec.slc"].create_dataset("note", data=columns["note"], dtype=h5py.string_dtype())
        file["other/x"] = np.arange(3)
    return path, columns


def test_an_index_excludes_blocks(table):
    path, columns = table
    condition = (col("evt") >= 40_000) & (col("evt") < 41_000) & (col("energy") > 2)
    wanted = np.flatnonzero((columns["evt"] >= 40_000) & (columns["evt"] < 41_000) & (columns["energy"] > 2))
    before = raddle.scan(path)["rec.slc"].filter(condition)
    assert before.explain()["pruned_blocks"] == 0
    report = raddle.index(path, progress=False)
    assert report.columns == 7 and report.output == f"{path}.stats" and "datasets" in repr(report)
    assert report.output_len_bytes < 0.01 * report.value_len_bytes
    found = raddle.scan(path)["rec.slc"].filter(condition).select("evt", "wide", "note")
    explained = found.explain()
    assert explained["indexed_columns"] == ["evt", "energy"]
    assert explained["pruned_blocks"] > 0 and explained["unpruned_len_bytes"] < explained["table_len_bytes"]
    for scan in (before.select("evt", "wide", "note"), found):
        arrays = scan.to_numpy()
        for name in ("evt", "wide"):
            np.testing.assert_array_equal(arrays[name], columns[name][wanted])
        assert [text.decode() for text in arrays["note"]] == list(columns["note"][wanted])
    assert raddle.scan(path, index=False)["rec.slc"].filter(condition).explain()["pruned_blocks"] == 0


def test_other_types(table):
    path, columns = table
    scan = raddle.scan(path)["rec.slc"]
    assert scan.count() == 100_000
    assert scan.filter(col("flag") == True).count() == columns["flag"].sum()  # noqa: E712
    assert scan.filter(col("name") == "near").count() == (columns["name"] == b"near").sum()
    assert scan.filter(col("name") >= b"n").count() == (columns["name"] == b"near").sum()
    assert scan.filter(col("colour") == "blue").count() == (columns["colour"] == -1).sum()
    assert scan.filter(col("evt").is_between(5, 7)).to_numpy()["evt"].tolist() == [5, 6, 7]
    assert scan.filter(col("evt").is_in([7, 5, -1])).select("evt").to_numpy()["evt"].tolist() == [5, 7]
    assert scan.filter(col("evt") == np.array(5)).rows().tolist() == scan.filter(col("evt") == np.array(5.0)).rows().tolist() == [5]
    assert scan.filter(col("energy").is_nan()).count() == 0
    both = scan.filter(col("evt") < 10).filter(col("evt") > 7, col("evt") != 8)
    assert both.rows().tolist() == [9]
    np.testing.assert_array_equal(scan.select("evt").to_numpy()["evt"], columns["evt"])
    assert scan.select("evt").rows().tolist() == list(range(100_000))
    assert [text.decode() for text in scan.select("note").to_numpy()["note"][:2]] == ["note 0", "note 1"]
    assert scan.select("evt", "note").to_numpy()["note"][-1] == b"note 99999"
    assert sorted(raddle.scan(path)) == ["other", "rec.slc"]
    nothing = scan.filter(col("evt") < 0).select("evt", "wide", "note").to_numpy()
    assert nothing["wide"].shape == (0, 2) and nothing["evt"].dtype == "i4" and len(nothing["note"]) == 0


def test_libraries_take_the_result(table):
    path, columns = table
    found = raddle.scan(path)["rec.slc"].filter(col("evt") < 4).select("evt", "energy")
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(found.to_pandas(), pandas.DataFrame({name: columns[name][:4] for name in ("evt", "energy")}))
    pyarrow = pytest.importorskip("pyarrow")
    arrow = found.select("evt", "wide").to_arrow()
    assert arrow.schema.field("wide").type == pyarrow.list_(pyarrow.float64(), 2)
    assert arrow["wide"].to_pylist() == columns["wide"][:4].tolist()
    assert pyarrow.table(found)["evt"].to_pylist() == [0, 1, 2, 3]


def test_an_index_of_another_state_is_not_used(table):
    path, columns = table
    raddle.index(path, progress=False)
    with h5py.File(path, "a") as file:
        file["rec.slc/evt"][:10] = 99_000
    os.utime(path, ns=(1, 1))
    with pytest.warns(errors.StaleIndexWarning, match="a different state"):
        tables = raddle.scan(path)
    assert tables["rec.slc"].filter(col("evt") == 99_000).count() == 11
    raddle.index(path, progress=False)
    assert raddle.scan(path)["rec.slc"].filter(col("evt") == 99_000).count() == 11
    index = Path(f"{path}.stats")
    damaged = bytearray(index.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    index.write_bytes(damaged)
    with pytest.raises(errors.InputError, match="is damaged"):
        raddle.scan(path)
    assert raddle.scan(path, index=False)["rec.slc"].count() == 100_000


def test_an_index_replaces_only_an_index(table, tmp_path):
    path, _ = table
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(errors.OutputError, match="is not an index"):
        raddle.index(path, output=other, progress=False)
    assert other.read_text() == "mine"
    raddle.index(path, output=tmp_path / "side", progress=False)
    raddle.index(path, output=tmp_path / "side", jobs=1, progress=False)
    scan = raddle.scan(path, index=tmp_path / "side")["rec.slc"].filter(col("evt") < 10)
    assert scan.explain()["pruned_blocks"] > 0 and scan.count() == 10


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda: col("energi") > 2, r"no column \"energi\"; did you mean energy"),
        (lambda: col("wide") > 2, "several values per row"),
        (lambda: col("note") == 3, "holds strings"),
        (lambda: col("energy") == "high", "holds numbers"),
        (lambda: col("name") > 3, "holds strings"),
        (lambda: col("colour") == "green", "its values are blue, red"),
    ],
)
def test_what_cannot_be_compared_is_named(table, condition, message):
    with pytest.raises(errors.UsageError, match=message):
        raddle.scan(table[0])["rec.slc"].filter(condition()).count()


def test_implausible_dimensions_are_refused(tmp_path):
    with h5py.File(tmp_path / "sparse.h5", "w") as file:
        file.create_dataset("rec/x", (2**50,), "f8", chunks=(1000,))
        file["rec/y"] = np.arange(3)
    with pytest.raises(errors.UsageError, match="claims more values"):
        raddle.scan(tmp_path / "sparse.h5")["rec"].filter(col("x") > 0).count()
    assert raddle.index(tmp_path / "sparse.h5", progress=False).columns == 1


def test_any_number_of_conditions_are_joined(table):
    path, _ = table
    scan, count = raddle.scan(path)["rec.slc"], 300
    each = [col("evt") == number for number in range(count)]
    for found in (reduce(operator.or_, each), reduce(lambda one, other: other | one, each)):
        assert scan.filter(found).count() == count
        assert scan.filter(repr(found)).count() == count
    for found in (scan.filter(reduce(operator.and_, (~one for one in each))), reduce(lambda scan, one: scan.filter(~one), each, scan)):
        assert found.count() == 100_000 - count
    assert repr(each[0] & (each[1] | each[2] | each[3]) & each[4]) == "((evt == 0) & ((evt == 1) | (evt == 2) | (evt == 3)) & (evt == 4))"


def test_mistakes_in_conditions_are_explained(table):
    path, _ = table
    scan = raddle.scan(path)["rec.slc"]
    with pytest.raises(errors.UsageError, match="in parentheses"):
        scan.filter(col("evt") > 2 and col("evt") < 3)
    with pytest.raises(errors.UsageError, match="is not a condition"):
        scan.filter((col("evt") > 2) & 3)
    for several in ([1], np.array([1]), np.array([1.5])):
        with pytest.raises(errors.UsageError, match="cannot be compared with a column"):
            scan.filter(col("evt") > several)
    for one in ("near", b"near"):
        with pytest.raises(errors.UsageError, match="is_in takes several values, not b?'near'"):
            col("name").is_in(one)
    with pytest.raises(errors.UsageError, match="5 is not the name of a column"):
        col(5)
    with pytest.raises(errors.ObjectNotFoundError):
        raddle.scan(path)["rec.trk"]
    with pytest.raises(errors.UsageError, match="columns of one table"):
        raddle.scan(path)["/"].filter(col("other/x") > 0).select("rec.slc/evt").to_numpy()
    assert repr(~(col("evt") > 2.5)) == "~(evt > 2.5)"


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_rows_by_the_events_of_other_tables(events, data):
    path, tables = events
    with raddle.scan(path, threads=2) as file:
        target = data.draw(st.sampled_from(["spill", "slc", "trk", "unsorted"]))
        scan, wanted = file[target], np.ones(len(tables[target]["event"]), bool)
        for _ in range(data.draw(st.integers(1, 2))):
            name = data.draw(st.sampled_from(["slc", "trk", "unsorted"]))
            limit = data.draw(st.sampled_from([-1, 0.5, 0.9, 0.99, 2]))
            rows = tables[name]["e"] > limit
            other = file[name].filter(col("e") > limit) if limit != -1 else file[name]
            if data.draw(st.booleans()):
                # Events that a third table selects.
                other = other.where_event(file["slc"].filter("n == 3"), key="evt")
                rows &= np.isin(tables[name]["event"], tables["slc"]["event"][tables["slc"]["n"] == 3])
            scan = scan.where_event(other)
            wanted &= np.isin(tables[target]["event"], tables[name]["event"][rows])
        if target != "spill" and data.draw(st.booleans()):
            scan, wanted = scan.filter("n < 4"), wanted & (tables[target]["n"] < 4)
        assert np.array_equal(scan.rows(), np.flatnonzero(wanted))
        assert scan.count() == wanted.sum()
        found = scan.to_numpy()
        assert np.array_equal(found["evt"], tables[target]["evt"][wanted])
        assert list(found["id"]) == [f"{target} {row}".encode() for row in np.flatnonzero(wanted)]
        if wanted.sum() == 0:
            assert scan.explain()["unpruned_len_bytes"] <= scan.explain()["table_len_bytes"]


def test_events_that_cannot_be_matched_are_refused(events, tmp_path):
    path, _ = events
    with raddle.scan(path) as file, raddle.scan(path) as again:
        with pytest.raises(errors.UsageError, match="scans of the same open file"):
            file["trk"].where_event(again["slc"])
        for condition in (col("e") > 1, "e > 1"):
            with pytest.raises(errors.UsageError, match="where_event takes scans of tables, not "):
                file["trk"].where_event(condition)
        with pytest.raises(errors.UsageError, match=r'no column "run.seq"; did you mean'):
            file["trk"].where_event(file["slc"], key="run").count()
    with h5py.File(tmp_path / "none.h5", "w") as plain:
        plain["a/x"] = np.arange(3)
    with raddle.scan(tmp_path / "none.h5") as file, pytest.raises(errors.UsageError, match=r"/a has no partition keys \(NAME.seq\)"):
        file["a"].where_event(file["a"]).count()


@pytest.mark.parametrize(
    "seq, offsets, said",
    [
        ([0, 1, 5], [0, 1, 2, 3], "knows 3 events, and there is an event 5"),
        ([0, 1, 2], [0, 2, 1, 3], "does not fit the 3 rows at event 1"),
        ([0, 1, 2], [0, 1, 2, 9], "does not fit the 3 rows at event 2"),
        ([0, -1, 2], [0, 1, 2, 3], "holds -1"),
        ([0.0, 1.0, 2.0], [0, 1, 2, 3], "does not hold integers"),
        ([0, 1, 2**62], [0, 1, 2, 3], f"knows 3 events, and there is an event {2**62}"),
        # The events between do not have rows, so that only the order of offsets is wrong.
        ([0, 2, 2], [2, 3, 0, 1], "does not fit its offsets at row 0"),
    ],
)
def test_keys_that_contradict_themselves_are_refused(tmp_path, seq, offsets, said):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["a/x"] = np.arange(3)
        file["a/evt.seq"], file["a/evt.offsets"] = np.array(seq), np.array(offsets)
    with raddle.scan(tmp_path / "odd.h5") as file, pytest.raises(errors.UsageError, match=said):
        file["a"].where_event(file["a"]).count()


def test_conditions_as_text_are_those_of_operators(events):
    path, tables = events
    with raddle.scan(path) as file:
        text = file["trk"].filter("e > 0.5 & (n == 3 | 5 < n <= 7) & ~(evt == 6)")
        built = file["trk"].filter((col("e") > 0.5) & ((col("n") == 3) | ((col("n") > 5) & (col("n") <= 7))) & ~(col("evt") == 6))
        assert np.array_equal(text.rows(), built.rows()) and len(text.rows())
        for wrong, said in (("e >", "ends where a column"), ("e = 1", "write == to compare"), ("2 > 1", "both values")):
            with pytest.raises(errors.UsageError, match=said):
                file["trk"].filter(wrong)


def blocks_of(path, index, text):
    with raddle.scan(path, index=index) as file:
        explained = file["rec"].filter(text).explain()
        rows = file["rec"].filter(text).rows()
    return explained, rows


def spaces_in(group, name, texts):
    """Writes strings that are padded with spaces in the file."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(texts.itemsize)
    kind.set_strpad(h5py.h5t.STR_SPACEPAD)
    chunked = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    chunked.set_chunk((100,))
    space = h5py.h5s.create_simple(texts.shape, (h5py.h5s.UNLIMITED,))
    h5py.Dataset(h5py.h5d.create(group.id, name, kind, space, chunked))[...] = texts


def inputs_of(data, folder, count):
    """Writes files of one kind, and returns their paths."""
    kinds, paths = ["<i4", ">f4", "<u8", "bool"], []
    for number in range(count):
        rows = data.draw(st.sampled_from([0, 1, 90, 3000]))
        random = np.random.default_rng(data.draw(st.integers(0, 99)))
        part = {kind: (random.integers(0, 50, rows) + 60 * number).astype(kind) for kind in kinds}
        part[">f4"][random.random(rows) < 0.01] = np.nan
        paths.append(Path(folder) / f"{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            for name, values in part.items():
                file.create_dataset(f"rec/{name}", data=values, chunks=(100,), maxshape=(None,))
            texts = np.array([f"run {number}, part {row // 500}" for row in range(rows)], "S20")
            file.create_dataset("rec/text", data=texts, dtype="S20", chunks=(100,), maxshape=(None,))
            file.create_dataset("rec/long", data=texts.astype(object), dtype=h5py.string_dtype(), chunks=(100,), maxshape=(None,))
            spaces_in(file["rec"], b"spaces", texts)
            file.create_dataset("rec/flat", data=part["<i4"].reshape(-1, 1), chunks=(50, 1), maxshape=(None, 1))
    return paths


OF_TEXTS = ("text > 'run 1'", "spaces == 'run 0, part 0' | text == 'run 1, part 3'", "spaces <= 'run 1, part 0'", "~(text < 'run 2')", "long == text & long > 'run 1'", "long <= 'run 1, part 0'")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_an_index_made_by_a_merge_is_that_of_its_output(data):
    with tempfile.TemporaryDirectory() as folder:
        paths = inputs_of(data, folder, data.draw(st.integers(1, 4)))
        output, count = Path(folder) / "all.h5", data.draw(st.integers(1, len(paths)))
        layout = data.draw(st.sampled_from([{}, {"chunk": "64rows"}, {"compress": "none", "contiguous": True}, {"compress": "keep"}]))
        report = raddle.merge(paths[:count], output, index=True, extendible=True, progress=False, **({} if "contiguous" in layout else layout))
        assert report.index == f"{output}.stats"
        if "contiguous" in layout:
            raddle.rechunk(output, Path(folder) / "other.h5", index=True, progress=False, **layout)
            output = Path(folder) / "other.h5"
        elif count < len(paths):
            raddle.append(output, paths[count:], again=True, progress=False)
        raddle.index(output, output=Path(folder) / "again", progress=False)
        assert not raddle.verify(output, progress=False).mismatches
        for text in ("`<i4` > 70", "`>f4` <= 100 & `<u8` != 3", "bool == true", "flat == 61", "~(`>f4` <= inf)", *OF_TEXTS):
            made, rows = blocks_of(output, True, text)
            again, _ = blocks_of(output, Path(folder) / "again", text)
            # Datasets of a few bytes are not tiled, and have no limits in a merge.
            if made["indexed_columns"] == again["indexed_columns"]:
                assert (made["pruned_blocks"], made["whole_blocks"]) == (again["pruned_blocks"], again["whole_blocks"])
            else:
                assert made["rows"] <= 1024
            _, without = blocks_of(output, False, text)
            assert np.array_equal(rows, without)


def test_verify_compares_the_index_with_the_values(tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("rec/x", data=np.arange(100_000.0), chunks=(1000,))
    raddle.merge([tmp_path / "in.h5"], path, index=True, compress="none", chunk="10000rows", progress=False)
    assert not raddle.verify(path, progress=False).mismatches
    before = path.stat()
    with h5py.File(path, "a") as file:
        file["rec/x"][54_321] = -7
    # As if the file had not been changed.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    found = [one.what for one in raddle.verify(path, progress=False).mismatches if "index" in one.what]
    assert found == ["has other limits in rows 50000 to 59999 in the index all.h5.stats"]
    os.utime(path)
    with pytest.warns(UserWarning, match="was written for a different state of the file, and is not checked"):
        raddle.verify(path, progress=False)


def test_a_merge_replaces_only_an_index(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["rec/x"] = np.arange(10)
    (tmp_path / "all.h5.stats").write_text("mine")
    with pytest.raises(errors.OutputError, match="is not an index"):
        raddle.merge([tmp_path / "in.h5"], tmp_path / "all.h5", index=True, progress=False)
    assert not (tmp_path / "all.h5").exists() and (tmp_path / "all.h5.stats").read_text() == "mine"
    with pytest.raises(errors.UsageError, match="index=True needs values that are copied"):
        raddle.merge([tmp_path / "in.h5"], tmp_path / "v.h5", index=True, link="virtual", progress=False)


@settings(max_examples=100, deadline=None)
@given(st.data())
@pytest.mark.filterwarnings("ignore:overflow")
def test_two_columns_are_compared_exactly(data):
    rows = data.draw(st.sampled_from([1, 7, 200]))
    columns = {f"c{number}": drawn_column(data, data.draw(st.sampled_from(KINDS)), rows) for number in range(2)}
    word = data.draw(st.sampled_from(sorted(COMPARISONS)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.h5"
        write(path, columns, data)
        if data.draw(st.booleans()):
            raddle.index(path, progress=False)
        pairs = zip(columns["c0"].tolist(), columns["c1"].tolist(), strict=True)
        # Python compares integers with floats exactly.
        expected = [row for row, (left, right) in enumerate(pairs) if COMPARISONS[word](left, right)]
        with raddle.scan(path, threads=2) as file:
            assert file["rec"].filter(COMPARISONS[word](col("c0"), col("c1"))).rows().tolist() == expected
            assert file["rec"].filter(f"c0 {word} c1").rows().tolist() == expected


def test_rows_are_those_of_the_selected_columns(tmp_path):
    """A dataset of another length, which comes first in the group, does not decide."""
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["t/bins"], file["t/x"] = np.arange(3.0), np.arange(10.0)
        file["t/text"] = [f"row {row}" for row in range(10)]
        file["t/evt.seq"], file["t/evt.offsets"] = np.arange(10), np.arange(11)
    with raddle.scan(tmp_path / "all.h5") as file:
        late = file["t"].filter("x > 6")
        for columns in (["x"], ["text"]):
            scan = file["t"].select(*columns).where_event(late)
            assert scan.count() == 3 and scan.rows().tolist() == [7, 8, 9]
            assert file["t"].select(*columns).partition(1, 2).rows().tolist() == [5, 6, 7, 8, 9]
        assert file["t"].select("text").where_event(late).to_numpy()["text"].tolist() == [b"row 7", b"row 8", b"row 9"]
        with pytest.raises(errors.UsageError, match="evt.seq has 10 rows and bins has 3"):
            file["t"].select("bins").where_event(late).count()
