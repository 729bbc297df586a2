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


def test_what_another_program_changed_is_found(raddle, events, tmp_path):
    output = tmp_path / "merged.h5"
    raddle("merge", *events, "-o", output)
    raddle("verify", output)
    with h5py.File(output, "r+") as file:
        file["table1/energy"][7] += 1
        file["table2/energy"].attrs["unit"] = "MeV"
    told = raddle("verify", output, expect=8).stdout
    assert "2 differences" in told and "/table1/energy" in told and "run1.h5" in told and "/table2/energy" in told
