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
    before = paths[0].read_bytes()
    refused = raddle("append", *paths, "--again", expect=3)
    assert "/hits/evt.seq" in refused.stderr and "partition keys" in refused.stderr and paths[0].read_bytes() == before


def test_what_another_program_changed_is_found(raddle, events, tmp_path):
    output = tmp_path / "merged.h5"
    raddle("merge", *events, "-o", output)
    raddle("verify", output)
    with h5py.File(output, "r+") as file:
        file["table1/energy"][7] += 1
        file["table2/energy"].attrs["unit"] = "MeV"
    message = raddle("verify", output, expect=8).stdout
    assert "2 differences" in message and "/table1/energy" in message and "run1.h5" in message and "/table2/energy" in message


@pytest.mark.parametrize("command", ["keys add", "keys spill-index", "rechunk --in-place"])
def test_a_file_that_another_program_writes_is_not_replaced(raddle, events, tmp_path, command):
    """What the other program wrote later would be lost with the old file. Programs that only read keep the old file."""
    output = tmp_path / "merged.h5"
    raddle("merge", *events, "-o", output)
    more = {"keys add": ["-k", "/spill/evt", "--key-scope", "input"], "keys spill-index": ["/table1/energy"]}.get(command, [])
    with h5py.File(output, "r+") as file:
        before = output.read_bytes()
        assert "open in another program" in raddle(*command.split(), *more, output, expect=7).stderr
        assert output.read_bytes() == before and [path.name for path in tmp_path.glob(".*")] == []
        file.attrs["comment"] = "kept"
    with h5py.File(output) as file:
        assert file.attrs["comment"] == "kept"
    raddle("merge", *events, "-o", output, "--force")
    with h5py.File(output) as file:
        raddle(*command.split(), *more, output)
        assert len(file["table1/energy"]) > 0


@pytest.mark.parametrize("command", [["keys", "add", "-k", "/spill/evt", "--key-scope", "input"], ["keys", "spill-index", "/table1/energy"]])
def test_a_file_that_would_lose_something_is_not_replaced(raddle, events, tmp_path, command):
    output, other = tmp_path / "merged.h5", tmp_path / "other.h5"
    raddle("merge", *events, "-o", output)
    before = output.read_bytes()
    other.hardlink_to(output)
    assert "2 hard links" in raddle(*command, output, expect=5).stderr
    other.unlink()
    output.chmod(0o444)
    assert "is write-protected" in raddle(*command, output, expect=5).stderr
    assert output.read_bytes() == before and [path.name for path in tmp_path.glob(".*")] == []
    output.chmod(0o640)
    raddle(*command, output)
    assert output.stat().st_mode & 0o777 == 0o640


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


def write_keyed(path, events, seq=()):
    """Writes tables with two rows per event; with `seq`, also the keys that ph5concat writes."""
    events = np.array(events)
    rows = np.repeat(np.arange(len(events)), 2)
    with h5py.File(path, "w") as file:
        for group, of_group in (("spill", np.arange(len(events))), ("hits", rows), ("tracks", rows)):
            table = {"evt": events[of_group], "evt.seq": of_group}
            for name in ("evt", *seq):
                file.create_dataset(f"{group}/{name}", data=table[name][:, None], chunks=(8, 1), maxshape=(None, 1))
    return path


def test_keys_of_ph5concat_are_recognised(raddle, tmp_path):
    """They have no record, but count the events of one file as well."""
    one = write_keyed(tmp_path / "one.h5", [3, 4, 5], ["evt.seq"])
    two = write_keyed(tmp_path / "two.h5", [8, 9], ["evt.seq"])
    plain = write_keyed(tmp_path / "plain.h5", [8, 9])
    merged = tmp_path / "merged.h5"
    for command in ("merge", "plan"):
        refused = raddle(command, one, two, *(["-o", merged] if command == "merge" else []), expect=3)
        said = ("/hits/evt.seq", "partition keys", "--keys", "--exclude", "--rule")
        assert all(words in refused.stderr for words in said), refused.stderr
    raddle("merge", one, two, "-o", merged, "--keys", "/spill/evt")
    with h5py.File(merged) as file:
        assert file["hits/evt.seq"][:, 0].tolist() == np.repeat(np.arange(5), 2).tolist()
    raddle("merge", one, two, "-o", merged, "-f", "--exclude", "evt.seq")
    raddle("merge", one, two, "-o", merged, "-f", "--rule", "/spill/evt.seq: concatenate")
    raddle("rechunk", one, "-o", merged, "-f")
    before = one.read_bytes()
    for other, joined in ((two, []), (plain, ["--join", "outer"])):
        refused = raddle("append", one, other, *joined, expect=3)
        assert "keys add --force" in refused.stderr and one.read_bytes() == before
    raddle("keys", "add", one, "-k", "/spill/evt", "--force")
    raddle("append", one, plain)
    with h5py.File(one) as file:
        assert file["tracks/evt.seq"][:, 0].tolist() == np.repeat(np.arange(5), 2).tolist()


@pytest.mark.parametrize("left", ["evt", "event"])
def test_other_numbers_of_rows_are_not_keys(raddle, tmp_path, left):
    """A single dataset with such a name, and one next to other ids, are concatenated as plain numbers."""
    paths = [write_keyed(tmp_path / f"{number}.h5", [3, 4, 5], ["evt.seq"]) for number in range(2)]
    for path in paths:
        with h5py.File(path, "r+") as file:
            for group in ("spill", "hits", "tracks"):
                if left == "event":
                    file.move(f"{group}/evt", f"{group}/event")
                elif group != "hits":
                    del file[f"{group}/evt.seq"]
    raddle("merge", *paths, "-o", tmp_path / "out.h5", "--duplicates", "keep")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["hits/evt.seq"][:, 0].tolist() == [0, 0, 1, 1, 2, 2] * 2


@pytest.mark.parametrize("made", ["seq,seq-cnt,offsets", "seq,seq-cnt", "seq"])
def test_tables_without_order_are_not_divided(raddle, tmp_path, made):
    path, random = tmp_path / "all.h5", np.random.default_rng(4)
    events = np.arange(500)
    tables = {"hits": np.sort(random.integers(0, 500, 3000)), "tracks": random.integers(0, 500, 3000), "spill": events}
    with h5py.File(path, "w") as file:
        for group, ids in tables.items():
            file.create_dataset(f"{group}/evt", data=ids, chunks=(100,))
    raddle("keys", "add", path, "--keys", "/spill/evt", "--key-datasets", made)
    if made == "seq":
        # Nothing says whether a table ascends, and the search only sees a part of it.
        refused = raddle("keys", "partition", path, "-n", 3, expect=3)
        assert "/tracks/evt.seq: does not ascend" in refused.stderr
    else:
        found = raddle("keys", "partition", path, "-n", 3, "--json")
        assert "/tracks: its events do not ascend" in found.stderr
        for share in json.loads(found.stdout):
            assert share["unordered"] == ["/tracks"]
            rows = {table["group"]: range(table["rows"]["start"], table["rows"]["end"]) for table in share["tables"]}
            first, end = np.searchsorted(tables["hits"], [share["events"]["start"], share["events"]["end"]])
            assert list(rows) == ["/hits", "/spill"] and rows["/hits"] == range(first, end)
        raddle("keys", "partition", path, "-n", 3, "--chunks")
    sizes = json.loads(raddle("keys", "events", path, "--json").stdout)
    for table in sizes["tables"]:
        rows = np.bincount(tables[table["group"][1:]], minlength=500)
        assert (table["rows"], table["events"], table["most_rows"]) == (rows.sum(), np.count_nonzero(rows), rows.max())
    of_events = np.bincount(tables["hits"], minlength=500) + np.bincount(tables["tracks"], minlength=500)
    assert sizes["empty_events"] == np.count_nonzero(of_events == 0)


def test_sizes_of_many_events_in_a_table_without_order(raddle, tmp_path):
    """More events than are processed at once."""
    path, random, count = tmp_path / "all.h5", np.random.default_rng(5), 150_000
    ids = random.integers(0, count, 100_000)
    with h5py.File(path, "w") as file:
        for group, of_group in (("spill", np.arange(count)), ("tracks", ids)):
            file.create_dataset(f"{group}/evt", data=of_group, chunks=(4096,))
    raddle("keys", "add", path, "--keys", "/spill/evt")
    _, table = json.loads(raddle("keys", "events", path, "--json").stdout)["tables"]
    rows = np.bincount(ids, minlength=count)
    assert (table["rows"], table["events"], table["most_rows"]) == (100_000, np.count_nonzero(rows), rows.max())


def test_keys_that_were_left_out_and_made_again_are_verified(raddle, events, tmp_path):
    keys = ["--keys", "/spill/evt", "--key-scope", "input"]
    keyed, bare = tmp_path / "keyed.h5", tmp_path / "bare.h5"
    raddle("merge", events[0], "-o", keyed, *keys)
    raddle("merge", keyed, "-o", bare, "--exclude", "evt.seq*", "--exclude", "evt.offsets")
    raddle("verify", bare, "--against", keyed)
    raddle("keys", "add", bare, *keys)
    raddle("verify", bare, "--against", keyed)
    with h5py.File(bare, "r+") as file:
        file["spill/evt.seq"][0] += 1
    assert "/spill/evt.seq" in raddle("verify", bare, "--against", keyed, expect=8).stdout
