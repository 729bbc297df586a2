"""The judge of merges: its verdicts on random files, and that it detects every error."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import RADDLE
from judge import Judge, judge_cases

CASES = os.environ.get("CASES_PROGRAM", str(Path(RADDLE).parent / "examples/cases"))


def test_merges_of_random_files_are_right():
    differences, counts = judge_cases(RADDLE, CASES, first=0, count=30)
    assert not differences
    print(dict(counts))
    assert counts["cases"] == 30
    assert min(counts[what] for what in ["datasets", "values", "attributes", "committed types"]) > 30
    assert counts["datasets not compared"] == 0


def flip(file, name):
    """Changes the last element of a dataset by one bit."""
    values = file[name][()]
    values.reshape(-1).view(np.uint8)[-1] ^= 1
    file[name].write_direct(values)


def replace(file, name, value):
    file[name][-1] = value


def point_elsewhere(file, name, target):
    del file[name]
    file[name] = h5py.SoftLink(target)


def copy_alias(file):
    del file["alias"]
    file.copy("cube", "alias")


def select_other_rows(file):
    regions = file["regions"]
    regions[2] = file["fixed/i1"].regionref[2:5]


def shorten(file):
    file["no_rows"].resize((1, 3))


EDITS = {
    "a value": ("/cube", lambda file: flip(file, "cube")),
    "a value of another byte order": ("/fixed/f4", lambda file: flip(file, "fixed/f4")),
    "a member of a compound": ("/compound", lambda file: flip(file, "compound")),
    "a scalar": ("/scalar", lambda file: file["scalar"].write_direct(np.array(43))),
    "a string": ("/words", lambda file: replace(file, "words", "another")),
    "a sequence": ("/ragged", lambda file: replace(file, "ragged", [1, 2, 3, 4, 5])),
    "a reference": ("/objects", lambda file: replace(file, "objects", file["compound"].ref)),
    "a region": ("/regions", select_other_rows),
    "an extent": ("/no_rows", shorten),
    "an attribute": ("/cube@many", lambda file: file["cube"].attrs.modify("many", np.arange(1, 5_001))),
    "a reference in an attribute": ("/cube@of", lambda file: file["cube"].attrs.modify("of", file["enum"].ref)),
    "an attribute fewer": ("/cube", lambda file: file["cube"].attrs.__delitem__("of")),
    "an attribute more": ("/flags", lambda file: file["flags"].attrs.__setitem__("new", 1)),
    "a dataset fewer": ("/", lambda file: file.__delitem__("flags")),
    "a dataset more": ("/fixed", lambda file: file["fixed"].__setitem__("new", 1)),
    "a link": ("/soft", lambda file: point_elsewhere(file, "soft", "/fixed/i2")),
    "an alias that is a copy": ("/alias", copy_alias),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_judge_sees_what_is_wrong(raddle, every_type, tmp_path, edit):
    output = tmp_path / "out.h5"
    raddle("merge", *every_type, "-o", output)
    assert Judge(output, every_type).differences == []
    path, change = EDITS[edit]
    with h5py.File(output, "r+") as file:
        change(file)
    differences = Judge(output, every_type).differences
    assert len(differences) == 1 and differences[0].startswith(f"{path}: "), differences


def test_the_judge_counts_what_h5py_cannot_read(raddle, tmp_path):
    path, output = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = np.arange(9)
        odd = file.create_dataset("odd", (8,), "i4", chunks=(8,), compression="gzip")
        odd.id.write_direct_chunk((0,), b"no deflate stream")
    # A union moves chunks as they are stored.
    raddle("merge", path, "-o", output, "--union")
    judge = Judge(output, [path])
    assert judge.differences == []
    assert (judge.counts["datasets"], judge.counts["datasets not compared"]) == (1, 1)
