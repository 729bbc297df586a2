"""Conditions on variable-length strings: the rows that comparisons of bytes find in what h5py reads."""

import operator
import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given, settings
from hypothesis import strategies as st
from raddle import col, errors

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
# Many share their first 15, 16 or 17 bytes.
TEXTS = ["", "a", "ab", "b", "B", "é", "日本", "run 1", "run 10", "x" * 15, "x" * 16, "x" * 17, "x" * 16 + "y", "x" * 15 + "y", "x" * 300]


def write(path, texts, written, others, chunk):
    """Writes a column of strings of which the last rows are never written, which HDF5 stores as null strings."""
    options = {} if chunk is None else {"chunks": (chunk,), "maxshape": (None,)}
    with h5py.File(path, "w") as file:
        column = file.create_dataset("rec/text", (len(texts),), h5py.string_dtype(), **options)
        if written:
            column[:written] = texts[:written]
        file["rec/fixed"] = np.array([text.encode() for text in others], "S20")
        file["rec/row"] = np.arange(len(texts))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rows_are_those_of_comparisons_of_bytes(data):
    rows = data.draw(st.sampled_from([1, 7, 200, 20_000]))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    pool = data.draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5))
    texts = [pool[at] for at in random.integers(0, len(pool), rows)]
    if data.draw(st.booleans()):
        texts.sort()
    others = [TEXTS[at] for at in random.integers(0, 13, rows)]
    written = data.draw(st.sampled_from([rows, rows, 0, rows // 2]))
    stored = [text.encode() if row < written else b"" for row, text in enumerate(texts)]
    word, value = data.draw(st.sampled_from(sorted(COMPARISONS))), data.draw(st.sampled_from([*TEXTS, "a\0", "run"]))
    compare = COMPARISONS[word]
    conditions = [
        (compare(col("text"), value), [compare(one, value.encode()) for one in stored]),
        (
            ~compare(col("text"), value) & (col("row") >= rows // 3),
            [not compare(one, value.encode()) and row >= rows // 3 for row, one in enumerate(stored)],
        ),
        (col("text").is_in([value, "run 1"]), [one in (value.encode(), b"run 1") for one in stored]),
        (
            compare(col("text"), col("fixed")),
            [compare(one, other.encode()[:20].rstrip(b"\0")) for one, other in zip(stored, others, strict=True)],
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.h5"
        write(path, texts, written, others, data.draw(st.sampled_from([None, 1000, 50])) if rows < 20_000 else 4096)
        for indexed in (False, True):
            if indexed:
                raddle.index(path, progress=False)
            with raddle.scan(path, threads=data.draw(st.sampled_from([1, 3]))) as tables:
                for condition, holds in conditions:
                    found = tables["rec"].filter(condition)
                    wanted = np.flatnonzero(holds)
                    assert found.rows().tolist() == wanted.tolist(), condition
                    assert found.count() == len(wanted)
                if wanted.size:
                    arrays = found.select("text", "row").to_numpy()
                    assert arrays["row"].tolist() == wanted.tolist()
                    assert arrays["text"].tolist() == [stored[row] for row in wanted]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        texts = np.array([f"run {row // 1000:05}, a text longer than its prefix" for row in range(100_000)], object)
        file.create_dataset("rec/text", data=texts, dtype=h5py.string_dtype(), chunks=(1000,), compression="gzip")
        file.create_dataset("rec/x", data=np.arange(100_000), chunks=(1000,))
        ragged = h5py.vlen_dtype("i4")
        file.create_dataset("rec/ragged", (100_000,), dtype=ragged)
        file.create_dataset("rec/pair", (100_000, 2), dtype=h5py.string_dtype())
        file.create_dataset("rec/flat", data=texts.reshape(-1, 1), dtype=h5py.string_dtype(), chunks=(1000, 1))
    return path


@pytest.mark.parametrize("name", ["text", "flat"])
def test_blocks_are_skipped_by_the_first_bytes(table, name):
    assert raddle.index(table, progress=False).columns == 3
    scan = raddle.scan(table)["rec"]
    between = scan.filter(f"'run 00040' <= {name} & {name} < 'run 00042'")
    explained = between.explain()
    assert explained["indexed_columns"] == [name] and explained["pruned_blocks"] > explained["blocks"] / 2
    assert between.rows().tolist() == list(range(40_000, 42_000))
    assert scan.filter(col(name) == "run").count() == 0
    assert scan.filter(col(name) == "run").explain()["pruned_blocks"] == explained["blocks"]
    # All rows are after it, so that no text is read.
    every = scan.filter(col(name) > "a").explain()
    assert every["whole_blocks"] == every["blocks"]


def test_an_index_made_by_a_merge_has_limits_of_strings(table, tmp_path):
    output, again = tmp_path / "both.h5", tmp_path / "again"
    raddle.merge([table, table], output, chunk="1000rows", duplicates="keep", index=True, extendible=True, progress=False)
    raddle.index(output, output=again, progress=False)
    scan = raddle.scan(output)["rec"].filter("text < 'run 00002'")
    assert scan.explain() == raddle.scan(output, index=again)["rec"].filter("text < 'run 00002'").explain()
    pruned_blocks = scan.explain()["pruned_blocks"]
    assert pruned_blocks > 0 and scan.count() == 4000
    assert not raddle.verify(output, progress=False).mismatches
    raddle.append(output, [table], again=True, progress=False)
    assert not raddle.verify(output, progress=False).mismatches
    appended = raddle.scan(output)["rec"].filter("text < 'run 00002'")
    assert appended.explain()["pruned_blocks"] > pruned_blocks and appended.count() == 6000
    for text in ("text >= 'run 00098'", "text == flat"):
        found = [raddle.scan(output, index=index)["rec"].filter(text).rows() for index in (True, False)]
        assert np.array_equal(*found) and len(found[0])


def test_verify_compares_limits_of_strings_with_the_values(tmp_path):
    """A string that is replaced in its place in the heap changes neither the length nor, here, the time of the file."""
    path = tmp_path / "all.h5"
    with h5py.File(tmp_path / "in.h5", "w") as file:
        texts = [f"text {row:06}" for row in range(30_000)]
        file.create_dataset("rec/text", data=texts, dtype=h5py.string_dtype(), chunks=(10_000,))
    raddle.merge([tmp_path / "in.h5"], path, index=True, chunk="10000rows", progress=False)
    assert not raddle.verify(path, progress=False).mismatches
    stored, time = path.read_bytes(), path.stat().st_mtime_ns
    at = stored.index(b"text 012345")
    path.write_bytes(stored[:at] + b"zext" + stored[at + 4 :])
    os.utime(path, ns=(time, time))
    found = [one.what for one in raddle.verify(path, progress=False).mismatches if "index" in one.what]
    assert found == ["has other limits in rows 10000 to 19999 in the index all.h5.stats"]


def test_other_values_of_variable_length_are_refused(table):
    scan = raddle.scan(table)["rec"]
    for name in ("ragged", "pair"):
        with pytest.raises(errors.UsageError, match="variable length"):
            scan.filter(col(name) == "x").count()
    with pytest.raises(errors.UsageError, match="holds strings, which 3 is not"):
        scan.filter(col("text") == 3).count()
    with pytest.raises(errors.UsageError, match="cannot be compared with x"):
        scan.filter(col("text") == col("x")).count()


def test_damaged_strings_are_reported(table):
    stored = table.read_bytes()
    table.write_bytes(stored.replace(b"GCOL", b"GC0L"))
    with pytest.raises(errors.InputError, match="/rec/text"):
        raddle.scan(table)["rec"].filter("text == 'a'").count()
    with pytest.raises(errors.InputError, match="/rec/"):
        raddle.index(table, progress=False)


def test_bytes_that_are_not_utf_8_are_refused(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["rec/text"] = np.array([b"a\xff", b"b"])
    with raddle.scan(tmp_path / "all.h5") as tables:
        assert tables["rec"].filter(col("text") == b"b").count() == 1
        with pytest.raises(errors.UsageError, match="is not UTF-8"):
            tables["rec"].filter(col("text") == b"a\xff")
