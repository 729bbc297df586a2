"""Partition keys as numpy computes them, and a file changed by another program."""

import json

import h5py
import numpy as np
import pytest


def test_keys_are_what_numpy_finds(raddle, events, tmp_path):
    output = tmp_path / "keyed.h5"
    raddle("merge", *events, "-o", output, "--keys", "/spill/evt", "--key-scope", "input")
    with h5py.File(output) as file:
        count = len(file["spill/evt"])
        assert np.array_equal(file["spill/evt.seq"][:, 0], np.arange(count))
        for name in ["table1", "table2", "table4", "table0"]:
            expected, first = [], 0
            for path in events:
                with h5py.File(path) as part:
                    # Event numbers are 0, 1, 2, ... in each file.
                    expected.append(part[name]["evt"][:, 0].astype(np.int64) + first)
                    first += len(part["spill/evt"])
            expected = np.concatenate(expected)
            seq = file[name]["evt.seq"]
            assert seq.dtype == np.dtype("<i8") and seq.shape == (len(expected), 1)
            assert np.array_equal(seq[:, 0], expected), name
            found, rows = np.unique(expected, return_counts=True)
            assert np.array_equal(file[name]["evt.seq_cnt"], np.stack([found, rows], axis=1))
            assert np.array_equal(file[name]["evt.offsets"], np.searchsorted(expected, np.arange(count + 1)))
            # The share of one of three readers, as documented.
            low, high = file[name]["evt.offsets"][[count // 3, 2 * count // 3]]
            mine = (expected >= count // 3) & (expected < 2 * count // 3)
            assert np.array_equal(file[name]["energy"][low:high, 0], file[name]["energy"][:, 0][mine])
    raddle("keys", "check", output)
    raddle("verify", output)
    raddle("verify", output, "--against", *events)


def test_keys_added_later_are_the_same(raddle, events, tmp_path):
    keyed, later = tmp_path / "keyed.h5", tmp_path / "later.h5"
    raddle("merge", *events, "-o", keyed, "--keys", "/spill/evt", "--key-scope", "input")
    raddle("merge", *events, "-o", later)
    raddle("keys", "add", later, "-k", "/spill/evt", "--key-scope", "input")
    with h5py.File(keyed) as one, h5py.File(later) as other:
        for name in ["spill/evt.seq", "table1/evt.seq", "table2/evt.seq_cnt", "table4/evt.offsets"]:
            assert np.array_equal(one[name], other[name])
        assert np.array_equal(one["_raddle/inputs/path"], other["_raddle/inputs/path"])


ENDINGS = ["seq", "seq_cnt", "offsets"]


def keys_of(path, group):
    with h5py.File(path) as file:
        return {ending: file[group][f"evt.{ending}"][()].tolist() for ending in ENDINGS}


def test_keys_of_groups_that_are_skipped_stay(raddle, events, tmp_path):
    output = tmp_path / "keyed.h5"
    raddle("merge", *events, "-o", output, "--keys", "/spill/evt", "--key-scope", "input")
    before = {group: keys_of(output, group) for group in ["spill", "table1", "table2"]}
    raddle("keys", "add", output, "-k", "/spill/evt", "--key-scope", "input", "--key-skip", "/table1", "--force")
    assert {group: keys_of(output, group) for group in before} == before
    raddle("verify", output)
    raddle("verify", output, "--against", *events)
    raddle("keys", "check", output)
    # The record still marks them as keys; another file's keys do not continue them.
    other = tmp_path / "other.h5"
    raddle("merge", events[0], "-o", other, "--keys", "/spill/evt", "--key-scope", "input")
    refused = raddle("merge", output, other, "-o", tmp_path / "both.h5", "--keys", "/spill/evt", "--key-skip", "/table1", expect=3)
    assert "/table1/evt." in refused.stderr and "--exclude" in refused.stderr
    raddle("keys", "add", output, "-k", "/spill/evt", "--key-scope", "input", "--force")
    assert {group: keys_of(output, group) for group in before} == before


def test_keys_of_another_program_stay_where_none_are_made(raddle, tmp_path):
    paths = [tmp_path / "one.h5", tmp_path / "two.h5"]
    for path in paths:
        with h5py.File(path, "w") as file:
            for group in ["spill", "hits", "tracks"]:
                file[f"{group}/evt"] = np.arange(3)
                file[f"{group}/evt.seq"] = np.arange(3) + 70
            file["calibration/evt.seq"] = [7, 8]
    raddle("keys", "add", paths[0], "-k", "/spill/evt", expect=3)
    raddle("keys", "add", paths[0], "-k", "/spill/evt", "--key-skip", "/hits", "--force")
    with h5py.File(paths[0]) as file:
        assert file["hits/evt.seq"][()].tolist() == [70, 71, 72] and file["calibration/evt.seq"][()].tolist() == [7, 8]
        assert file["tracks/evt.seq"][()].tolist() == [0, 1, 2] and "evt.offsets" not in file["hits"]
    # With two files, one's keys do not continue the other's.
    refused = raddle("merge", *paths, "-o", tmp_path / "both.h5", "--keys", "/spill/evt", "--key-scope", "input", expect=3)
    assert "/calibration/evt.seq" in refused.stderr and "--exclude" in refused.stderr


def test_what_another_program_changed_is_found(raddle, events, tmp_path):
    output = tmp_path / "merged.h5"
    raddle("merge", *events, "-o", output)
    raddle("verify", output)
    with h5py.File(output, "r+") as file:
        file["table1/energy"][7] += 1
        file["table2/energy"].attrs["unit"] = "MeV"
    message = raddle("verify", output, expect=8).stdout
    assert "2 differences" in message and "/table1/energy" in message and "run1.h5" in message and "/table2/energy" in message


def write_wide(path, run, events, *, shape=(3,), kind="<i4"):
    """Writes ids of three numbers per row, as in MicroBooNE's ``event_table/event_id``: run, subrun, event."""
    random = np.random.default_rng(run)
    ids = np.column_stack([np.full(events, run), np.arange(events) // 10, np.arange(events) % 10]).astype(kind)
    with h5py.File(path, "w") as file:
        for name, rows in [("event_table", np.ones(events, int)), ("hit_table", random.integers(0, 5, events))]:
            values = np.repeat(ids, rows, axis=0).reshape(-1, *shape)
            options = {"maxshape": (None, *shape), "chunks": (16, *shape), "compression": 1}
            file.create_dataset(f"{name}/event_id", data=values, **options)
            file.create_dataset(f"{name}/x", data=np.arange(len(values)), maxshape=(None,), chunks=(16,))
    return path


@pytest.mark.parametrize("kind", ["<i4", ">u2", "<i8", "<u8"])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3)])
def test_ids_of_several_numbers_in_a_row(raddle, tmp_path, shape, kind):
    inputs = [write_wide(tmp_path / f"{run}.h5", run, 37 + run, shape=shape, kind=kind) for run in range(4)]
    output, grown = tmp_path / "out.h5", tmp_path / "grown.h5"
    raddle("merge", *inputs, "-o", output, "--keys", "/event_table/event_id")
    raddle("keys", "check", output, "-d", "/event_table/event_id.seq")
    raddle("verify", output, "--against", *inputs)
    with h5py.File(output) as file:
        index = file["event_table/event_id"][()].reshape(-1, 3)
        hits = file["hit_table/event_id"][()].reshape(-1, 3)
        found = {name: file[f"hit_table/event_id.{name}"][()] for name in ["seq", "seq_cnt", "offsets"]}
        assert file["event_table/event_id.seq"].shape == (len(index), *(1 for _ in shape))
    row_of = {tuple(ids): row for row, ids in enumerate(index.tolist())}
    seq = np.array([row_of[tuple(ids)] for ids in hits.tolist()])
    assert np.array_equal(found["seq"].reshape(-1), seq)
    assert np.array_equal(found["seq_cnt"], np.column_stack(np.unique(seq, return_counts=True)))
    assert np.array_equal(found["offsets"], np.searchsorted(seq, np.arange(len(index) + 1)))
    raddle("merge", *inputs[:2], "-o", grown, "--keys", "/event_table/event_id")
    raddle("append", grown, *inputs[2:])
    with h5py.File(grown) as file:
        assert all(np.array_equal(file[f"hit_table/event_id.{name}"], values) for name, values in found.items())


def test_ids_that_are_refused(raddle, tmp_path):
    path = write_wide(tmp_path / "in.h5", 1, 20)
    with h5py.File(path, "r+") as file:
        file["track_table/event_id"] = np.zeros(20, "i4")
        file["image_table/event_id"] = np.zeros((20, 17), "i4")
        file["event_table/image"] = np.zeros((20, 17), "i4")
    output = tmp_path / "out.h5"
    refused = raddle("merge", path, "-o", output, "--keys", "/event_table/event_id", "--key-skip", "/image*", expect=3)
    assert "/track_table" in refused.stderr and "[1]" in refused.stderr and "[3]" in refused.stderr
    refused = raddle("merge", path, "-o", output, "--keys", "/event_table/image", expect=3)
    assert "/event_table/image" in refused.stderr and "17" in refused.stderr
    raddle("merge", path, "-o", output, "--keys", "/event_table/event_id", "--key-skip", "/{image,track}*")
    # The error for an id that the index lacks shows all of its numbers.
    with h5py.File(path, "r+") as file:
        file["hit_table/event_id"][3] = [1, 77, 8]
    refused = raddle("merge", path, "-o", output, "-f", "--keys", "/event_table/event_id", "--key-skip", "/{image,track}*", expect=3)
    assert "1, 77, 8" in refused.stderr


@pytest.mark.parametrize("lacks_offsets", [False, True])
def test_sizes_of_events_are_what_numpy_finds(raddle, events, tmp_path, lacks_offsets):
    output = tmp_path / "keyed.h5"
    which = ["--key-datasets", "seq"] if lacks_offsets else []
    raddle("merge", *events, "-o", output, "--keys", "/spill/evt", "--key-scope", "input", *which)
    sizes = json.loads(raddle("keys", "events", output, "--json").stdout)
    with h5py.File(output) as file:
        count = len(file["spill/evt"])
        total, rows_of_event = np.zeros(count, int), np.zeros(count, int)
        for name, group in file.items():
            if "evt.seq" not in group:
                continue
            seq = group["evt.seq"][:, 0]
            columns = [item for key, item in group.items() if not key.startswith("evt.") and len(item) == len(seq)]
            row_len_bytes = sum(item.dtype.itemsize * int(np.prod(item.shape[1:])) for item in columns)
            rows = np.bincount(seq, minlength=count)
            total += rows * row_len_bytes
            rows_of_event += rows * (name != "spill")
            (table,) = [table for table in sizes["tables"] if table["group"] == f"/{name}"]
            assert table["rows"] == len(seq) and table["row_len_bytes"] == row_len_bytes, table
            assert table["events"] == np.count_nonzero(rows) and table["most_rows"] == rows.max(initial=0)
    assert sizes["events"] == count and sizes["empty_events"] == np.count_nonzero(rows_of_event == 0) > 0
    assert sizes["total_len_bytes"] == total.sum()
    assert [sizes[f"{name}_len_bytes"] for name in ["least", "median", "greatest"]] == [
        total.min(),
        np.sort(total)[(count - 1) // 2],
        total.max(),
    ]
    powers, found = np.unique(2 ** np.floor(np.log2(total)).astype(int), return_counts=True)
    assert [(each["from_len_bytes"], each["events"]) for each in sizes["histogram"]] == list(zip(powers, found))
    text = raddle("keys", "events", output).stdout
    assert "events by size" in text and "█" in text and "/table1" in text
    refused = raddle("keys", "events", events[0], expect=3)
    assert "/spill/evt.seq" in refused.stderr and "keys add" in refused.stderr


def test_chunks_that_several_readers_read(raddle, events, tmp_path):
    output = tmp_path / "keyed.h5"
    raddle("merge", *events, "-o", output, "--keys", "/spill/evt", "--key-scope", "input", "--chunk", "100rows")
    for size in [1, 2, 7, 300]:
        found = json.loads(raddle("keys", "partition", output, "-n", size, "--chunks", "--json").stdout)
        shares = json.loads(raddle("keys", "partition", output, "-n", size, "--json").stdout)
        with h5py.File(output) as file:
            for number, table in enumerate(found):
                group, readers, chunks, datasets = file[table["group"]], {}, 0, 0
                rows = shares[-1]["tables"][number]["rows"]["end"]
                for key, item in group.items():
                    if len(item) != rows or item.size == 0 or item.chunks is None:
                        continue
                    datasets += 1
                    chunks += -(-rows // item.chunks[0])
                    for share in shares:
                        mine = share["tables"][number]["rows"]
                        if mine["start"] < mine["end"]:
                            for chunk in range(mine["start"] // item.chunks[0], -(-mine["end"] // item.chunks[0])):
                                readers[key, chunk] = readers.get((key, chunk), 0) + 1
                shared = sum(count > 1 for count in readers.values())
                assert (table["datasets"], table["chunks"]) == (datasets, chunks), table
                assert (table["shared"], table["reads"]) == (shared, sum(readers.values())), table
    assert "reads a chunk" in raddle("keys", "partition", output, "-n", 7, "--chunks").stdout


def test_a_first_value_has_the_rows_of_the_table(raddle, tmp_path):
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file["header/cycle"] = np.full(3, 7, "i2")
        # Neither counts the events, and both come before those that do.
        file["spill/aaa"], file["spill/at"] = np.arange(2), np.zeros((5, 3))
        for name in ["evt", "run"]:
            file[f"spill/{name}"] = np.arange(5)
    raddle("keys", "spill-index", "/header/cycle", path)
    with h5py.File(path) as file:
        assert file["spill/cycle"][:].tolist() == [7] * 5
        assert file["spill/cycle"].dtype == "i2"
    with h5py.File(path, "r+") as file:
        del file["spill/cycle"], file["spill/at"], file["spill/run"]
    refused = raddle("keys", "spill-index", "/header/cycle", path, expect=3).stderr
    assert "/spill: has 5 rows in evt and 2 in aaa" in refused, refused
