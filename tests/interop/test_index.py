"""The command that writes an index; raddle.scan (tests/python) uses it."""

import fcntl
import json

import h5py
import numpy as np


def write(path):
    with h5py.File(path, "w") as file:
        file["rec/evt"] = np.arange(100_000)
        file["rec/name"] = np.array([b"a"] * 100_000)
        file["wide"] = np.zeros((4, 3))
    return path


def write_more(path):
    with h5py.File(path, "w") as file:
        file["rec/evt"] = np.arange(1000, 1500)
    return path


def test_an_index_is_written_next_to_the_file(raddle, tmp_path):
    path = write(tmp_path / "all.h5")
    before = path.read_bytes()
    shown = raddle("index", path).stdout
    assert "200,000 values of 2 datasets (879 KiB)" in shown and "all.h5.stats" in shown
    report = json.loads(raddle("index", path, "-o", tmp_path / "side", "--json").stdout)
    assert (report["columns"], report["values"], report["value_len_bytes"]) == (2, 200_000, 900_000)
    assert (tmp_path / "side").read_bytes() == (tmp_path / "all.h5.stats").read_bytes()
    assert (tmp_path / "side").stat().st_size == report["output_len_bytes"]
    assert path.read_bytes() == before


def test_virtual_datasets_have_no_statistics(raddle, tmp_path):
    """Their sources may change, which the file that maps them does not show."""
    path = write(tmp_path / "all.h5")
    raddle("merge", path, "-o", tmp_path / "view.h5", "--link", "virtual")
    refused = raddle("index", tmp_path / "view.h5", expect=3).stderr
    assert "view.h5: has only virtual datasets (3)" in refused and "each file that holds them" in refused
    assert not (tmp_path / "view.h5.stats").exists()
    with h5py.File(tmp_path / "view.h5", "a") as file:
        file["more"] = np.arange(10)
    assert "10 values of 1 dataset" in (shown := raddle("index", tmp_path / "view.h5").stdout)
    assert "3 virtual datasets without statistics" in shown


def test_a_group_with_two_names_has_one_of_them_in_every_index(raddle, tmp_path):
    """A merge finds the first name, and so does the command that reads its output."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("table/e", data=np.arange(5.0), chunks=(2,), maxshape=(None,))
        file["again"] = file["table"]
    merged, index = tmp_path / "all.h5", tmp_path / "all.h5.stats"
    raddle("merge", tmp_path / "in.h5", "-o", merged, "--index")
    raddle("verify", merged)
    written = index.read_bytes()
    raddle("index", merged)
    assert index.read_bytes() == written and b"/again/e" in written


def test_an_index_is_the_same_for_any_number_of_threads(raddle, tmp_path):
    path = write(tmp_path / "all.h5")
    for jobs in (1, 3):
        raddle("index", path, "-o", tmp_path / f"{jobs}", "-j", jobs)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()


def test_nobody_reads_an_index_who_cannot_read_the_file(raddle, tmp_path):
    """It holds the lowest and the highest value of each block."""
    path = tmp_path / "all.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("rec/evt", data=np.arange(1000), chunks=(100,), maxshape=(None,))
    index = tmp_path / "all.h5.stats"
    for mode, expected in [(0o600, 0o600), (0o640, 0o640), (0o664, 0o644), (0o600, 0o600)]:
        path.chmod(mode)
        raddle("index", path, umask=0o022)
        assert index.stat().st_mode & 0o777 == expected
    raddle("append", path, write_more(tmp_path / "more.h5"), umask=0o022)
    assert index.stat().st_mode & 0o777 == 0o600


def test_one_process_at_a_time_writes_an_index(raddle, tmp_path):
    path = write(tmp_path / "all.h5")
    with open(tmp_path / ".all.h5.stats.raddle-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another raddle is writing it" in raddle("index", path, expect=7).stderr
    raddle("index", path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["all.h5", "all.h5.stats"]


def test_what_cannot_be_indexed_is_refused(raddle, tmp_path):
    (tmp_path / "text").write_text("no HDF5")
    assert "not an HDF5 file" in raddle("index", tmp_path / "text", expect=3).stderr
    path = write(tmp_path / "all.h5")
    assert "is not an index" in raddle("index", path, "-o", tmp_path / "text", expect=5).stderr
    assert "is not an index" in raddle("index", path, "-o", path, expect=5).stderr
    assert "none does not exist" in raddle("index", path, "-o", tmp_path / "none" / "x", expect=5).stderr
    path.write_bytes(path.read_bytes()[:-1000])
    raddle("index", path, expect=3)
    assert not (tmp_path / "all.h5.stats").exists()
