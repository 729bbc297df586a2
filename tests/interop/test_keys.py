"""Partition keys as numpy finds them, and a file that another program changed."""

import h5py
import numpy as np


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
            # The share of one reader of three, as the documentation says.
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
    # The record still says that they are keys: another file's do not follow them.
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
    # Of two files, one's keys do not follow the other's.
    refused = raddle("merge", *paths, "-o", tmp_path / "both.h5", "--keys", "/spill/evt", "--key-scope", "input", expect=3)
    assert "/calibration/evt.seq" in refused.stderr and "--exclude" in refused.stderr


def test_what_another_program_changed_is_found(raddle, events, tmp_path):
    output = tmp_path / "merged.h5"
    raddle("merge", *events, "-o", output)
    raddle("verify", output)
    with h5py.File(output, "r+") as file:
        file["table1/energy"][7] += 1
        file["table2/energy"].attrs["unit"] = "MeV"
    told = raddle("verify", output, expect=8).stdout
    assert "2 differences" in told and "/table1/energy" in told and "run1.h5" in told and "/table2/energy" in told
