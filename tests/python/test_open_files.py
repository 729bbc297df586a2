"""Open files: threads, errors of opening, closing, pickling, other processes and replaced files, compared with h5py."""

import os
import pickle
import threading

import h5py
import numpy as np
import pytest
import raddle
from raddle import errors


def test_large_datasets_are_read_by_several_threads(pair):
    random = np.random.default_rng(1)
    tall = random.integers(0, 50, (200_000, 3)).astype("i4")
    flat = random.integers(0, 50, (4, 700_000)).astype("u2")

    def write(file):
        file.create_dataset("tall", data=tall, chunks=(1000, 3), compression="gzip", compression_opts=1)
        file.create_dataset("flat", data=flat, chunks=(4, 50_000), compression="gzip", compression_opts=1)
        file.create_dataset("plain", data=tall)

    ours, _ = pair(write)
    for _ in range(3):
        assert np.array_equal(ours["tall"][:], tall) and np.array_equal(ours["plain"][:], tall)
        assert np.array_equal(ours["flat"][:], flat) and np.array_equal(ours["flat"][1:, 7:-3], flat[1:, 7:-3])
        assert np.array_equal(ours["tall"][5:-5:7, 1], tall[5:-5:7, 1])
    rows = random.integers(0, 200_000, 5000)
    assert np.array_equal(ours["tall"][rows], tall[rows])


def test_many_threads_of_the_caller(pair):
    values = np.arange(300_000)
    ours, _ = pair(lambda file: file.create_dataset("d", data=values, chunks=(1000,), compression="gzip"))
    wrong = []

    def read(start):
        for step in range(20):
            part = np.s_[start + step : start + step + 50_000]
            if not np.array_equal(ours["d"][part], values[part]):
                wrong.append(part)

    threads = [threading.Thread(target=read, args=(10_000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        raddle.open(tmp_path / "none.h5")
    assert isinstance(missing.value, errors.RaddleError) and missing.value.exit_code == 3
    text = tmp_path / "text.h5"
    text.write_text("no HDF5 here" * 100)
    with pytest.raises(OSError) as wrong:
        raddle.open(text)
    assert wrong.value.kind == "not_hdf5" and "text.h5" in str(wrong.value)
    with pytest.raises(OSError):
        raddle.open(tmp_path)
    with pytest.raises(ValueError):
        raddle.open(text, threads=0)


def test_a_damaged_chunk_is_an_error(tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", data=np.arange(5000), chunks=(100,), compression="gzip")
        chunk = dataset.id.get_chunk_info(20)
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset + 5)
        raw.write(b"\xff" * 20)
    with raddle.open(path) as file:
        assert np.array_equal(file["d"][:2000], np.arange(2000))
        with pytest.raises(OSError) as damaged:
            file["d"][:]
        assert damaged.value.kind == "damaged" and str(chunk.byte_offset) in str(damaged.value)


def test_closed_files_and_pickles(pair, tmp_path):
    ours, _ = pair(lambda file: file.create_dataset("d", data=[1, 2]))
    copy = pickle.loads(pickle.dumps(ours))
    assert np.array_equal(copy["d"][:], [1, 2])
    with copy as same:
        assert same is copy and copy
        dataset = copy["d"]
        listed = next(iter(copy.values()))
        assert dataset.shape == listed.shape == (2,)
    assert not copy and not dataset and "losed" in repr(copy) and "losed" in repr(dataset)
    for read in (lambda: dataset[:], lambda: dataset.shape, lambda: listed.shape, lambda: listed.dtype):
        with pytest.raises(ValueError, match="closed"):
            read()


def test_a_relative_path_leads_to_the_same_file_later(tmp_path, monkeypatch):
    """h5py, copies in other processes, external links and keys reopen files, when the working folder may have
    changed."""
    mixed = np.dtype([("n", "i4"), ("text", h5py.string_dtype())])
    for folder, number in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        with h5py.File(tmp_path / folder / "other.h5", "w") as file:
            file["d"] = number
        with h5py.File(tmp_path / folder / "file.h5", "w") as file:
            file["d"] = number
            file["mixed"] = np.array([(number, "a")], mixed)
            file["other"] = h5py.ExternalLink("other.h5", "/d")
    monkeypatch.chdir(tmp_path / "one")
    opened = [raddle.open("file.h5"), raddle.open(b"file.h5"), raddle.open("../one/file.h5"), raddle.open(open("file.h5", "rb"))]
    (tmp_path / "link").symlink_to(tmp_path / "two")
    monkeypatch.chdir(tmp_path)
    opened.append(raddle.open("link/../one/file.h5"))
    monkeypatch.chdir(tmp_path / "two")
    assert [file.filename for file in opened] == ["file.h5", "file.h5", "../one/file.h5", "file.h5", "link/../one/file.h5"]
    for file in opened:
        assert file["mixed"]["n"].tolist() == [1] and file["other"][()] == 1 and file["d"][()] == 1
        assert file.userblock_size == 0
        if file is not opened[3]:
            again = pickle.loads(pickle.dumps(file))
            assert again["d"][()] == 1 and again["other"][()] == 1 and again.filename == file.filename
            again.close()
        file.close()


def test_a_copy_in_another_process_has_as_many_threads(pair):
    ours, _ = pair(lambda file: file.create_dataset("d", data=[1, 2]))
    with raddle.open(ours.filename, threads=3) as file:
        assert pickle.loads(pickle.dumps(file))._threads == 3


def test_files_are_opened_for_reading_only(pair):
    ours, _ = pair(lambda file: file.create_dataset("d", data=[1, 2]))
    for opened in (raddle.open(ours.filename, "r"), raddle.open(ours.filename, mode="r"), raddle.File(ours.filename, "r")):
        with opened as file:
            assert file.mode == "r" and file["d"][1] == 2
    for mode in ("w", "a", "r+", "x", "rb", None):
        with pytest.raises(errors.UsageError, match="reading only"):
            raddle.open(ours.filename, mode)


def test_representations(pair):
    def write(file):
        file["g/d"] = np.zeros((2, 3), "f4")

    ours, theirs = pair(write)
    assert repr(ours["g/d"]) == repr(theirs["g/d"]) and repr(ours["g"]) == repr(theirs["g"])
    assert "mode r" in repr(ours) and ours.mode == "r" and ours.name == "/"


def write_state(path, number):
    """Writes a file whose values are all the same number, with objects for each way of reading."""
    with h5py.File(path, "w") as file:
        file["plain"] = np.full(10, number)
        file["mixed"] = np.array([(number, str(number))], [("n", "i4"), ("text", h5py.string_dtype())])
        file["long"] = np.full(2, number, np.longdouble)
        layout = h5py.VirtualLayout((10,), "i8")
        layout[:] = h5py.VirtualSource(".", "plain", (10,))
        file.create_virtual_dataset("t/virtual", layout)
        file["t/x"] = np.full(10, number)


@pytest.mark.parametrize("is_read_before", [False, True])
def test_values_of_a_replacement_are_not_mixed_with_those_of_the_open_file(tmp_path, is_read_before):
    """Other processes open the file again by its path, which may lead to another file by then."""
    path = tmp_path / "a.h5"
    write_state(path, 1)
    with raddle.open(path) as file:
        names = ["mixed", "long", "t/virtual"]
        if is_read_before:
            assert file["mixed"]["n"].tolist() == [1] and file["long"][0] == 1 and file["t/virtual"][0] == 1
        write_state(tmp_path / "b.h5", 2)
        os.replace(tmp_path / "b.h5", path)
        assert file["plain"][:].tolist() == [1] * 10
        for name in names:
            with pytest.raises(errors.InputError, match=r"a\.h5: changed while it was being read \(it was replaced\)"):
                file[name][:]
    with raddle.open(path) as file:
        assert file["mixed"]["n"].tolist() == [2] and file["long"][0] == 2 and file["t/virtual"][0] == 2


def _write(path, names, **how):
    random = np.random.default_rng(len(names))
    with h5py.File(path, "w") as file:
        for group in names:
            for name in names:
                values = random.integers(0, 1000, 5000)
                file.create_dataset(f"{group}/{name}", data=values, maxshape=(None,), **how)
            file[group].attrs["words"] = [f"{name} {group}" for name in names]
            file[f"{group}/texts"] = [f"{name} {group}" for name in names]


def _age(path):
    """Makes the file older than anything written later, even within one tick of the file system's clock."""
    os.utime(path, (1e9, 1e9))


STORAGE = [{"chunks": (1000,)}, {"chunks": (1000,), "compression": "gzip"}]


@pytest.mark.parametrize("names", ["xa", "ba", "acb", "a"])
@pytest.mark.parametrize("how", STORAGE, ids=["plain", "gzip"])
def test_values_of_a_file_written_anew_are_not_taken_for_those_of_the_open_one(tmp_path, names, how):
    path = tmp_path / "a.h5"
    _write(path, "ab", **how)
    _age(path)
    ours = raddle.open(path)
    inode = path.stat().st_ino
    _write(path, names, **how)
    assert path.stat().st_ino == inode
    read = refused = 0
    with h5py.File(path) as now:
        for place in ("a/a", "a/b", "b/a", "b/b", "a/texts", "b/texts"):
            for _ in range(3):
                try:
                    values = ours[place][...]
                except errors.InputError as error:
                    assert "open it again" in str(error) and error.kind == "changed"
                    refused += 1
                else:
                    assert np.array_equal(values, now[place][...]), place
                    read += 1
        with pytest.raises(errors.InputError, match="open it again"):
            ours["b"].attrs["words"]
    assert refused > 0, read
    with raddle.open(path) as again, h5py.File(path) as now:
        place = f"{names[0]}/{names[0]}"
        assert np.array_equal(again[place][...], now[place][...])


@pytest.mark.parametrize("how", STORAGE, ids=["plain", "gzip"])
def test_an_open_file_may_grow(tmp_path, how):
    path = tmp_path / "a.h5"
    _write(path, "ab", **how)
    ours = raddle.open(path)
    with h5py.File(path, "r+") as file:
        before = {place: file[place][...] for place in ("a/a", "a/b", "b/a", "b/b", "a/texts")}
        file["a/a"].resize(9000, axis=0)
        file["a/a"][5000:] = 1
        file["b/c"] = np.arange(10)
        file["a"].attrs["unit"] = "m"
    _age(path)
    for place, values in before.items():
        assert np.array_equal(ours[place][...], values), place
    assert list(ours["a"].attrs["words"]) == ["a a", "b a"]
    with h5py.File(path, "r+") as file:
        del file["b/a"]
        file["b/a"] = np.arange(7)
    with pytest.raises(errors.InputError, match="open it again"):
        ours["b/a"][...]
    assert np.array_equal(ours["b/b"][...], before["b/b"])


def test_a_file_that_is_open_for_writing_is_refused_as_by_h5py(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", locking=True) as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(100,))
        for read in (raddle.open, lambda path: raddle.scan(path)["/"].count(), raddle.index):
            with pytest.raises(errors.LockedError, match="a.h5: is open in another program, or in this one, for writing"):
                read(path)
        monkeypatch.setenv("HDF5_USE_FILE_LOCKING", "FALSE")
        raddle.open(path).close()
    monkeypatch.delenv("HDF5_USE_FILE_LOCKING")
    with h5py.File(path, locking=True), raddle.open(path) as ours:
        assert ours["x"][-1] == 999


def test_an_open_file_may_be_appended_to(tmp_path):
    parts = [tmp_path / f"{number}.h5" for number in range(3)]
    for number, part in enumerate(parts):
        with h5py.File(part, "w") as file:
            file["t/x"] = np.arange(3000) + number
    output = tmp_path / "all.h5"
    raddle.merge(parts[:2], output)
    ours = raddle.open(output)
    values = ours["t/x"][...]
    raddle.append(output, parts[2:])
    try:
        assert np.array_equal(ours["t/x"][...], values)
    except errors.InputError as error:
        assert error.kind == "changed"
    with raddle.open(output) as again:
        assert np.array_equal(again["t/x"][:6000], values) and again["t/x"].shape == (9000,)


def test_columns_of_a_scan_come_from_one_file(tmp_path):
    path = tmp_path / "a.h5"
    write_state(path, 1)
    table = raddle.scan(path)["t"]
    write_state(tmp_path / "b.h5", 2)
    os.replace(tmp_path / "b.h5", path)
    with pytest.raises(errors.InputError, match="it was replaced"):
        table.to_numpy()
