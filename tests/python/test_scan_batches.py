"""Scans in batches: their concatenation is what one read gives, and memory does not depend on the number of rows."""

import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from drawn_tables import drawn_tables, write
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import Scan, _scan_batches, errors
from raddle._arrow import arrow_array, arrow_type


def assert_batches_are(scan, wanted, rows):
    """Checks that the batches of a scan, of at most some rows, have some columns in order."""
    batches = list(scan.batches(rows))
    assert all(0 < len(next(iter(batch.values()))) <= (rows or len(next(iter(wanted.values())))) for batch in batches)
    for name, values in wanted.items():
        together = np.concatenate([batch[name] for batch in batches]) if batches else values[:0]
        np.testing.assert_array_equal(together, values)


@settings(max_examples=60)
@given(st.data())
def test_batches_together_are_the_rows(data):
    tables = drawn_tables(data, data.draw(st.integers(1, 3)))
    chunks = data.draw(st.sampled_from([None, 7, 64]))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, table in enumerate(tables):
            paths.append(Path(folder) / f"{number}.h5")
            for name, values in table.items():
                shape = None if chunks is None or not len(values) else (min(chunks, len(values)), *values.shape[1:])
                write(paths[-1], {name: values}, chunks=shape)
            write(paths[-1], {"note": np.array([f"note {row}" for row in range(len(table["key"]))], dtype=object)}, dtype=h5py.string_dtype())
        raddle.index(paths[0], progress=False)
        with raddle.scan(paths) as scanned:
            scan = scanned["rec"]
            limit = data.draw(st.sampled_from([None, -9.0, 0.5, 9.0]))
            if limit is not None:
                scan = scan.filter(f"e > {limit}")
            if data.draw(st.booleans()):
                scan = scan.select("wide", "note")
            rows = data.draw(st.one_of(st.none(), st.integers(1, 90), st.just(1000)))
            assert_batches_are(scan, scan.to_numpy(), rows)


@settings(max_examples=40)
@given(st.data())
def test_batches_of_events_are_the_rows(events, data):
    path, tables = events
    with raddle.scan(path, threads=2) as file, pytest.MonkeyPatch.context() as patch:
        # Scans of the other tables are in several batches, too.
        patch.setattr(_scan_batches, "BATCH_LEN_BYTES", data.draw(st.sampled_from([500, 1 << 26])))
        patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 1)
        target = data.draw(st.sampled_from(["spill", "slc", "trk", "unsorted"]))
        scan, wanted = file[target], np.ones(len(tables[target]["event"]), bool)
        for _ in range(data.draw(st.integers(1, 2))):
            name = data.draw(st.sampled_from(["slc", "trk", "unsorted"]))
            limit = data.draw(st.sampled_from([-1, 0.5, 0.99, 2]))
            rows = tables[name]["e"] > limit
            other = file[name] if limit == -1 else file[name].filter(f"e > {limit}")
            if data.draw(st.booleans()):
                other = other.where_event(file["slc"].filter("n == 3"), key="evt.seq")
                rows &= np.isin(tables[name]["event"], tables["slc"]["event"][tables["slc"]["n"] == 3])
            scan = scan.where_event(other)
            wanted &= np.isin(tables[target]["event"], tables[name]["event"][rows])
        if target != "spill" and data.draw(st.booleans()):
            scan = scan.filter("n > 4")
            wanted &= tables[target]["n"] > 4
        names = [name for name in tables[target] if name != "event"]
        columns = {name: tables[target][name][wanted] for name in names}
        columns["id"] = np.array([f"{target} {row}".encode() for row in np.flatnonzero(wanted)], object)
        assert_batches_are(scan.select(*names, "id"), columns, data.draw(st.sampled_from([None, 5, 37, 100])))


def test_events_are_found_once(events, monkeypatch):
    path, _ = events
    searches, run = [], Scan._run
    monkeypatch.setattr(Scan, "_run", lambda scan, *more, **named: searches.append(scan._group) or run(scan, *more, **named))
    find = Scan._find_events
    monkeypatch.setattr(Scan, "_find_events", lambda scan, number: searches.append("events") or find(scan, number))
    with raddle.scan(path) as file:
        scan = file["trk"].where_event(file["slc"].filter("e > 0.5")).select("e")
        batches = len(list(scan.batches(200)))
        assert batches > 3 and searches == ["events"] + ["trk"] * batches


def test_record_batches_are_those_of_the_scan(events):
    pyarrow = pytest.importorskip("pyarrow")
    path, tables = events
    with raddle.scan(path) as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scan_batches, "BATCH_LEN_BYTES", 1000)
        patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 0)
        scan = file["trk"].filter("e > 0.1").select("e", "id")
        wanted = tables["trk"]["e"] > 0.1
        reader = pyarrow.RecordBatchReader.from_stream(scan)
        assert reader.schema == pyarrow.schema([("e", pyarrow.float64()), ("id", pyarrow.string())])
        batches = list(reader)
        assert len(batches) > 3
        expected = pyarrow.table({"e": tables["trk"]["e"][wanted], "id": [f"trk {row}" for row in np.flatnonzero(wanted)]})
        assert pyarrow.Table.from_batches(batches) == expected
        assert scan.to_arrow() == expected
        assert file["trk"].filter("e > 2").to_arrow().num_rows == 0


@settings(max_examples=60)
@given(st.data())
def test_strings_become_strings(data):
    pyarrow = pytest.importorskip("pyarrow")
    texts = data.draw(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6), max_size=9))
    shape = data.draw(st.sampled_from([(-1,), (-1, 1), (-1, 2), (-1, 2, 1)]))
    expected = [[text, text] for text in texts] if 2 in shape else texts
    encoded = np.array(expected, dtype=object).reshape(-1)
    encoded = np.array([text.encode() for text in encoded], dtype="S32")
    array = arrow_array("text", encoded.reshape(shape), arrow_type("text", encoded.dtype, shape[1:]))
    array.validate(full=True)
    # Rows of one element are plain values; those of several are lists.
    assert array.to_pylist() == ([[[text] for text in row] for row in expected] if shape == (-1, 2, 1) else expected)
    assert array.type == {
        (-1, 2): pyarrow.list_(pyarrow.string(), 2),
        (-1, 2, 1): pyarrow.list_(pyarrow.list_(pyarrow.string(), 1), 2),
    }.get(shape, pyarrow.string())


def test_values_that_arrow_cannot_hold_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    kind = h5py.vlen_dtype("i4")
    lists = np.empty(2, object)
    lists[:] = [np.arange(3), np.arange(1)]
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["rec/pair"] = np.zeros(2, [("a", "i4"), ("b", "f4")])
        file["rec/latin"] = np.array([b"caf\xe9", b"ok"])
        file["rec/any"] = np.array([b"caf\xe9", b"ok"], dtype=h5py.string_dtype("ascii"))
        file["rec/big"] = np.arange(2, dtype=">i2").reshape(2, 1)
        file.create_dataset("rec/lists", data=lists, dtype=kind)
    with raddle.scan(tmp_path / "odd.h5") as file:
        table = file["rec"]
        not_utf_8 = "some strings are not UTF-8"
        for name, said in (("pair", "pair: Arrow has no type"), ("latin", f"latin: {not_utf_8}"), ("any", f"any: {not_utf_8}")):
            with pytest.raises(errors.UsageError, match=said):
                table.select(name).to_arrow()
        assert table.select("lists", "big").to_arrow().to_pydict() == {"lists": [[0, 1, 2], [0]], "big": [0, 1]}
        assert pyarrow.table(table.select("lists")).schema.field("lists").type == pyarrow.list_(pyarrow.int32())


def test_mistakes_are_explained(events, tmp_path):
    path, _ = events
    with raddle.scan(path) as file:
        for scan, rows, said in [
            (file["slc"], 0, "rows=0 is too small"),
            (file["slc"].select(), 10, "no columns"),
            (file["slc"].where_event(file["spill"].filter("evt > 3"), key="run"), 10, "no column \"run.seq\""),
        ]:
            with pytest.raises(errors.UsageError, match=said):
                list(scan.batches(rows))
    for seq, said in (([0, -1, 2], "/a: evt.seq holds -1; recreate the keys"), ([0.0, 1.0, 2.0], "does not hold integers")):
        odd = tmp_path / "odd.h5"
        with h5py.File(odd, "w") as file:
            file["a/x"], file["a/evt.seq"], file["b/x"] = np.arange(3), np.array(seq), np.arange(3)
        with raddle.scan(odd) as file:
            with pytest.raises(errors.UsageError, match=said):
                list(file["a"].where_event(file["a"]).batches(2))
            with pytest.raises(errors.UsageError, match="b has no partition keys"):
                list(file["b"].where_event(file["a"]).batches(2))


MEMORY = """
import sys
import raddle

def peak_kib():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1])

table = raddle.scan(sys.argv[1], threads=1)["rec"]
next(table.select("x").batches(1 << 16))
before = peak_kib()
total = sum(batch["x"].sum() for batch in table.batches(1 << 18))
print(int(total), peak_kib() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is that of Linux")
def test_memory_is_that_of_a_batch(environment, tmp_path):
    rows = 1 << 23
    with h5py.File(tmp_path / "long.h5", "w") as file:
        for name in "xyz":
            file.create_dataset(f"rec/{name}", data=np.ones(rows), chunks=(1 << 16,), compression="gzip", compression_opts=1)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "long.h5")]
    total, grown_kib = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert int(total) == rows
    # The table has 192 MiB, a batch 6 MiB.
    assert int(grown_kib) < 64 << 10
