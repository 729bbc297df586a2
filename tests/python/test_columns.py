"""Many columns of a table at once: `Group.read_columns`."""

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_values
from foreign import FOREIGN, write_foreign
from raddle import errors


def test_columns(pair):
    data = {"evt": np.arange(1000), "energy": np.linspace(0, 1, 1000), "map": np.arange(6000).reshape(1000, 2, 3)}

    def write(file):
        for name, values in data.items():
            file.create_dataset(f"rec/{name}", data=values, chunks=True, compression="gzip")
        file["rec/name"] = ["n"] * 1000
        file["rec/scalar"] = 1
        file["short"] = np.arange(5)

    ours, _ = pair(write)
    table = ours["rec"].read_columns()
    assert list(table) == ["energy", "evt", "map", "name"]
    for name, values in data.items():
        same_values(table[name], values)
    part = ours["rec"].read_columns(["map", "evt"], slice(10, 500, 7))
    assert list(part) == ["map", "evt"] and np.array_equal(part["map"], data["map"][10:500:7])
    assert np.array_equal(raddle.read_columns(ours, ["rec/evt", "short"])["short"], np.arange(5))
    structured = ours["rec"].read_columns(["evt", "map"], slice(-3, None), library="numpy")
    assert structured.dtype.names == ("evt", "map") and np.array_equal(structured["map"], data["map"][-3:])
    with pytest.raises(ValueError):
        ours.read_columns(["rec/evt", "short"], library="numpy")
    with pytest.raises(KeyError):
        ours["rec"].read_columns(["none"])
    with pytest.raises(ValueError):
        ours["rec"].read_columns(["scalar"])


def test_columns_of_listed_rows(pair):
    def write(file):
        write_foreign(file)
        file.create_dataset("packed", data=np.arange(5.0), chunks=(2,), compression="gzip")

    ours, theirs = pair(write)
    names = [*FOREIGN, "packed"]
    values = {name: theirs[name][:] for name in names}
    mask = np.array([True, False, False, True, True])
    for rows, listed in [([1, 2], [1, 2]), ([4, 0, 0, -2], [4, 0, 0, -2]), (np.array([3], "u1"), [3]), (range(4), [0, 1, 2, 3]),
                         (mask, mask), (mask.tolist(), mask), ([], np.zeros(0, int)), (slice(None, -1, 2), [0, 2])]:  # fmt: skip
        table = ours.read_columns(names, rows)
        for name in names:
            same_values(table[name], values[name][listed])
        assert np.array_equal(raddle.read_columns(ours, ["packed"], rows)["packed"], values["packed"][listed])
    for rows in ((0, 3), 3, "all", 1.5, np.array(3), np.zeros((2, 2), int)):
        with pytest.raises(errors.UsageError, match="rows"):
            ours.read_columns(names, rows)
    for rows, error in (([5], IndexError), ([0.5], TypeError), (mask[:4], TypeError)):
        with pytest.raises(error):
            ours.read_columns(["packed"], rows)


def test_columns_that_share_memory(pair):
    """Many columns of medium length, with all alignments and none, next to large and empty ones: more than one
    allocation holds."""
    random = np.random.default_rng(5)
    rows = 250_001
    types = ["u1", ">i2", "f4", "S3", "f8", "c16", [("a", "i1"), ("b", "f4")]] * 6
    data = {f"c{number:02}": random.bytes(rows * np.dtype(kind).itemsize) for number, kind in enumerate(types)}
    data = {name: np.frombuffer(raw, kind) for (name, raw), kind in zip(data.items(), types)}
    data |= {"large": np.arange(rows * 6).reshape(rows, 6), "flat": np.zeros((rows, 0)), "small": np.arange(3)}

    def write(file):
        for name, values in data.items():
            file.create_dataset(name, data=values, chunks=None if 0 in values.shape else True)

    ours, theirs = pair(write)
    table = ours.read_columns(list(data))
    assert list(table) == list(data)
    for name, values in data.items():
        assert table[name].tobytes() == values.tobytes() == theirs[name][()].tobytes()
        assert table[name].dtype == theirs[name].dtype and table[name].shape == values.shape
        assert table[name].flags.writeable and table[name].flags.c_contiguous
    bases = [id(values.base) for values in table.values() if values.base is not None and values.size]
    assert 1 < len(set(bases)) < len(bases) / 4
    # Writing to one column does not change another.
    table["c02"][:] = 0
    assert table["c01"].tobytes() == data["c01"].tobytes() and table["c03"].tobytes() == data["c03"].tobytes()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("rows", [65_536, 150_000, 800_000])
def test_columns_of_long_chunks(pair, rows, shuffle):
    random = np.random.default_rng(rows)
    columns = {
        "noise": random.random(rows, "f4"),
        "few": random.choice(random.normal(size=300).astype("f4"), rows),
        "counts": random.poisson(3, rows).astype("u2"),
        "mixed": np.where(random.random(rows) < 0.5, -5, random.normal(0, 100, rows)).astype("f8"),
        "ids": np.repeat(np.arange(rows // 8), 8).astype("i8"),
    }

    def write(file):
        for number, (name, values) in enumerate(columns.items()):
            options = {"compression": "gzip", "compression_opts": 1 + 2 * number, "shuffle": shuffle}
            file.create_dataset(f"t/{name}", data=values, chunks=(65_536,), **options)

    ours, theirs = pair(write)
    read = ours["t"].read_columns()
    assert sorted(read) == sorted(columns)
    for name, values in columns.items():
        assert np.array_equal(read[name], values) and np.array_equal(theirs[f"t/{name}"][:], values)
        for part in (np.s_[:], np.s_[1:], np.s_[65_535:], np.s_[70_000:-1], np.s_[::3]):
            assert np.array_equal(ours[f"t/{name}"][part], values[part]), (name, part)


def test_a_data_frame_has_fields_and_strings(pair):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    point = np.dtype([("x", "f4"), ("y", ">f4")])

    def write(file):
        hits = np.zeros(3, [("id", "i4"), ("at", point), ("pair", "i4", 2), ("name", "S4")])
        hits["id"], hits["at"]["y"], hits["name"] = [1, 2, 3], [0.5, 1.5, 2.5], [b"a", b"", "é".encode()]
        file["hit"] = hits
        mixed = np.zeros(3, [("text", h5py.string_dtype()), ("n", "u1")])
        mixed["text"] = ["ä", "b", ""]
        file["mixed"] = mixed
        file["fixed"] = np.array([b"x", b"yy", "é".encode()])
        file["text"] = ["é", "b", ""]
        file["odd"] = np.array([b"\xff", b"b", b""])
        file["names"] = np.array([[b"a", b"b"]] * 3)
        file["map"] = np.arange(6).reshape(3, 2)
        file["swapped"] = np.arange(3, dtype=">i8")
        file["opaque"] = np.array([b"ab", b"cd", b"ef"], "V2")

    ours, _ = pair(write)
    frame = ours.read_columns(library="pandas")
    assert isinstance(frame, pandas.DataFrame) and str(frame) and frame._repr_html_()
    fields = ["hit.id", "hit.at.x", "hit.at.y", "hit.pair", "hit.name"]
    assert list(frame) == ["fixed", *fields, "map", "mixed.text", "mixed.n", "names", "odd", "opaque", "swapped", "text"]
    assert frame["hit.at.y"].tolist() == [0.5, 1.5, 2.5] and frame["hit.name"].tolist() == ["a", "", "é"]
    assert frame["text"].tolist() == ["é", "b", ""] and frame["fixed"].tolist() == ["x", "yy", "é"]
    assert frame["mixed.text"].tolist() == ["ä", "b", ""] and frame["odd"][0] == "\udcff"
    assert list(frame["names"][0]) == ["a", "b"] and frame["map"][2].tolist() == [4, 5]
    assert frame["swapped"].dtype.isnative and frame.groupby("fixed")["swapped"].sum()["yy"] == 1
    assert frame.query("text == 'b'")["hit.id"].tolist() == [2]


@pytest.mark.parametrize("library", ["numpy", "pandas"])
def test_a_table_has_no_columns_that_count_events(pair, library):
    pytest.importorskip("pandas", reason="pandas is not installed")

    def write(file):
        file["trk/evt"], file["trk/x"] = np.repeat([1, 2], [2, 1]), np.arange(3.0)
        file["trk/evt.seq"] = np.repeat([0, 1], [2, 1])
        # As long as the table.
        file["trk/evt.offsets"] = np.array([0, 2, 3])
        file["trk/evt.seq_cnt"] = np.array([[0, 2], [1, 1]])
        file["trk/other.offsets"] = np.arange(3)

    ours, _ = pair(write)
    table = ours["trk"].read_columns(library=library)
    names = list(table) if library == "pandas" else list(table.dtype.names)
    assert names == ["evt", "evt.seq", "other.offsets", "x"]
    assert "evt.offsets" in ours["trk"].read_columns()
    assert "evt.offsets" in ours["trk"].read_columns(["evt.offsets", "x"], library="pandas")


def test_two_columns_of_a_data_frame_have_different_names(pair):
    pytest.importorskip("pandas", reason="pandas is not installed")

    def write(file):
        file["hit"] = np.zeros(3, [("x", "f4")])
        file["hit.x"] = np.zeros(3)

    ours, _ = pair(write)
    with pytest.raises(errors.UsageError, match="hit.x"):
        ours.read_columns(library="pandas")
    assert list(ours.read_columns(["hit"], library="pandas")) == ["hit.x"]
