"""Merges of pandas' HDFStore and of PyTables' files read as ``pandas.concat`` and PyTables read the inputs."""

import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import tables
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples
from pandas_files import COLUMNS, INDEXES, frame, write, write_all
from pandas_judge import judge

pytestmark = pytest.mark.filterwarnings("ignore")
MERGING = Merging("pandas", judge)


@st.composite
def cases(draw):
    columns = draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True, min_size=1, max_size=5))
    index = draw(st.sampled_from(list(INDEXES)))
    data_columns = draw(st.sampled_from([None, True, columns[:1]]))
    count = draw(st.integers(2, 3))
    rows = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    frames = [frame(number, rows[number], columns, index) for number in range(count)]
    special = draw(st.sampled_from(["plain", "plain", "order", "categories", "index", "name"]))
    if special == "order":
        frames[-1] = frames[-1][columns[::-1]]
    if special == "categories" and "grade" in columns:
        frames[-1]["grade"] = frames[-1]["grade"].cat.rename_categories({"x": "z"})
    if special == "index":
        frames[-1].index = INDEXES[draw(st.sampled_from(list(INDEXES)))](count, rows[-1])
    if special == "name":
        frames[-1].index.name = "another"
    return frames, {"data_columns": data_columns}, special == "plain"


@examples(20)
@given(cases())
def test_random_files(case):
    frames, options, must_merge = case
    with case_folder() as folder:
        (MERGING.equal if must_merge else MERGING.equal_or_refused)(write_all(folder, *frames, **options))


@pytest.mark.parametrize("index", INDEXES)
def test_indexes(tmp_path, index):
    MERGING.equal(write_all(tmp_path, *(frame(number, 3 + number, index=index) for number in range(3))))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("data_columns", [None, True])
def test_columns(tmp_path, column, data_columns):
    frames = [frame(number, 4, [column, *({"whole"} - {column})]) for number in range(2)]
    MERGING.equal(write_all(tmp_path, *frames, data_columns=data_columns))


def test_several_frames_and_series(tmp_path, raddle):
    inputs = []
    for number in range(2):
        path = write(tmp_path / f"{number}.h5", {"a": frame(number, 3), "deep/er/b": frame(number, 2, ["real", "grade"])})
        with pd.HDFStore(path) as store:
            store.append("series", pd.Series(np.arange(4.0) + number, name="value"))
        inputs.append(path)
    output = MERGING.equal(inputs)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_an_index_of_several_levels(tmp_path):
    frames = [frame(number, 4, ["whole", "real", "text"]).set_index(["whole", "text"]) for number in range(2)]
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path, each in zip(inputs, frames):
        with pd.HDFStore(path, "w") as store:
            store.append("data", each, min_itemsize={"text": 8})
    MERGING.equal(inputs)


def test_a_merged_store_can_be_appended_to(tmp_path):
    inputs = write_all(tmp_path, frame(0, 3, ["whole", "real"]), frame(1, 4, ["whole", "real"]))
    output = MERGING.equal(inputs)
    before = pd.read_hdf(output, "data")
    with pd.HDFStore(output, "a") as store:
        store.append("data", frame(2, 2, ["whole", "real"]))
    pd.testing.assert_frame_equal(pd.read_hdf(output, "data"), pd.concat([before, frame(2, 2, ["whole", "real"])]))


def grades(letters):
    names = {"x": "excellent", "y": "moderate", "z": "poor"}
    own = [names[letter] for letter in letters]
    return pd.DataFrame({"grade": pd.Categorical(own, categories=own)})


@pytest.mark.parametrize(("first", "second"), [("xy", "xz"), ("xy", "yx"), ("xyz", "xy")])
@pytest.mark.parametrize("data_columns", [None, True])
def test_other_categories_are_refused(tmp_path, first, second, data_columns):
    inputs = write_all(tmp_path, grades(first), grades(second), data_columns=data_columns)
    names = ["moderate", "poor"] if second == "xz" else ["excellent", "moderate"] if second == "yx" else ["3", "2"]
    MERGING.refused(inputs, names=["/data/meta", *names])
    # The codes of the second file would mean other categories.
    MERGING.refused(inputs, "--scalars", "first", names=["/data/meta", *names])


def test_no_tolerance_makes_categories_fit(tmp_path):
    frames = [pd.DataFrame({"level": pd.Categorical([1.0, last], categories=[1.0, last])}) for last in [2.0, 2.5]]
    MERGING.refused(write_all(tmp_path, *frames), "--tolerance", "1", names=["/data/meta", "2.5"])


def test_categories_are_not_doubled(tmp_path):
    output = MERGING.equal(write_all(tmp_path, grades("xy"), grades("xy")))
    assert pd.read_hdf(output, "data")["grade"].tolist() == ["excellent", "moderate"] * 2


def test_columns_in_another_order_are_not_exchanged(tmp_path):
    """The compound types are equal: each has a block of two reals."""
    first = frame(0, 3, ["real", "other"])
    inputs = write_all(tmp_path, first, frame(1, 3, ["real", "other"])[["other", "real"]])
    MERGING.refused(inputs, names=["/data/table", "values_block_0_kind"])


def test_other_units_of_dates_are_not_mixed(tmp_path):
    inputs = write_all(tmp_path, frame(0, 3, ["real"], "dates"), frame(1, 3, ["real"], "dates"))
    with h5py.File(inputs[1], "a") as file:
        file["data/table"].attrs["index_kind"] = np.bytes_(b"datetime64[us]")
    MERGING.refused(inputs, names=["/data/table", "index_kind", "datetime64[ns]", "datetime64[us]"])


def test_another_index_is_refused(tmp_path):
    inputs = write_all(tmp_path, frame(0, 3, ["real"], "dates"), frame(1, 3, ["real"], "shifted"))
    MERGING.refused(inputs, names=["/data/table", "index_kind", "datetime64", "integer"])


@pytest.mark.parametrize("second", ["an irregular index", "another frequency", "another name"])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_dates_of_other_frequencies(tmp_path, raddle, second, is_reversed):
    """pandas ignores a frequency that the dates of a table do not have."""
    dates = {
        "an irregular index": pd.DatetimeIndex(["2024-06-01", "2024-06-05"], tz="UTC"),
        "another frequency": pd.date_range("2024-06-01", periods=3, freq="15min", tz="UTC"),
        "another name": pd.date_range("2024-06-01", periods=3, freq="15min", tz="UTC", name="other"),
    }
    indexes = [pd.date_range("2024-05-01", periods=3, freq="D", tz="UTC"), dates[second]]
    frames = [pd.DataFrame({"x": np.arange(len(index))}, index=index) for index in indexes]
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path, each in zip(inputs, frames[::-1] if is_reversed else frames):
        each.to_hdf(path, key="frame", format="table")
    if second == "another name":
        MERGING.refused(inputs, names=["/frame", "info"])
        return
    output = MERGING.equal(inputs)
    raddle("verify", output, "--against", *inputs)


def test_another_text_for_missing_values_is_refused(tmp_path):
    inputs = [
        write(tmp_path / f"{number}.h5", {"data": pd.DataFrame({"text": ["a", None]})}, nan_rep=text)
        for number, text in enumerate(["nan", "nil"])
    ]
    MERGING.refused(inputs, names=["/data", "nan_rep", "nil"])


def test_longer_strings(tmp_path):
    inputs = [
        write(tmp_path / f"{number}.h5", {"data": frame(number, 3)}, min_itemsize={"values": width})
        for number, width in enumerate([4, 9])
    ]
    message = MERGING.refused(inputs, names=["/data/table", "string of 4 bytes", "string of 9 bytes"])
    assert message.count("\n /data/table  ") == 1, message


@pytest.mark.parametrize("kind", ["frame", "series"])
def test_the_fixed_format_is_refused(tmp_path, kind):
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        data = frame(number, 3, ["whole", "real"])
        with pd.HDFStore(path, "w") as store:
            store.put("data", data if kind == "frame" else data["real"])
    MERGING.refused(inputs, names=["/data", "fixed", "table"])


class Particle(tables.IsDescription):
    x = tables.Float64Col()
    kind = tables.Int32Col(shape=2)
    name = tables.StringCol(5)


def write_tables(path, number, rows):
    with tables.open_file(path, "w") as file:
        table = file.create_table("/run", "particles", Particle, "particles", createparents=True)
        for row in range(rows):
            table.row["x"], table.row["kind"], table.row["name"] = row / 2, [number, row], f"p{row}"
            table.row.append()
        table.flush()
        table.attrs.NROWS_OF_RUN = 99
        table.attrs.nrows = 5
        table.cols.x.create_index()
        file.create_earray("/run", "hits", obj=np.arange(rows * 2).reshape(rows, 2))
        file.create_vlarray("/run", "tracks", tables.Int32Atom())
        for row in range(rows):
            file.root.run.tracks.append(list(range(row)))
    return path


def judge_tables(output, inputs):
    with tables.open_file(output) as merged:
        parts = []
        for path in inputs:
            with tables.open_file(path) as part:
                run = part.root.run
                parts.append((run.particles[:], run.hits[:], [each.tolist() for each in run.tracks]))
        run = merged.root.run
        expected = np.concatenate([part[0] for part in parts])
        assert run.particles.nrows == len(expected) and (run.particles[:] == expected).all()
        assert run.particles.attrs.NROWS == len(expected)
        assert run.particles.attrs.NROWS_OF_RUN == 99 and run.particles.attrs.nrows == 5
        found = [row["name"] for row in run.particles.where("x > 0.4")]
        assert found == expected["name"][expected["x"] > 0.4].tolist()
        assert (run.hits[:] == np.concatenate([part[1] for part in parts])).all()
        assert [each.tolist() for each in run.tracks] == [each for part in parts for each in part[2]]
        run.particles.cols.x.index  # noqa: B018


def test_files_of_pytables(tmp_path, raddle):
    inputs = [write_tables(tmp_path / f"{number}.h5", number, 3 + number) for number in range(3)]
    output = MERGING.equal(inputs, judge=judge_tables)
    with warnings.catch_warnings(), tables.open_file(output, "a") as file:
        warnings.simplefilter("ignore")
        file.root.run.particles.cols.x.create_index()
    raddle("merge", *inputs, "-o", tmp_path / "again.h5", "-f")


def test_columns_of_a_table_in_another_order_are_refused(tmp_path):
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path, names in zip(inputs, ["xy", "yx"]):
        with tables.open_file(path, "w") as file:
            file.create_table("/", "t", np.zeros(2, [(name, "f8") for name in names]))
    MERGING.refused(inputs, names=["/t"])


@pytest.mark.parametrize("residues", ["AA", "AG"])
def test_trajectories_of_mdtraj(tmp_path, residues):
    """MDTraj reads the topology of a file from the first element of an array."""
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path, residue in zip(inputs, residues):
        with tables.open_file(path, "w") as file:
            file.root._v_attrs.conventions = np.bytes_("Pande")
            file.create_array("/", "topology", [f'{{"residues": ["{residue}"]}}'.encode()])
            file.create_earray("/", "coordinates", obj=np.ones((2, 3, 3), "f4"))

    def judge(output, inputs):
        with tables.open_file(output) as merged, tables.open_file(inputs[0]) as first:
            assert merged.root.topology[:] == first.root.topology[:]
            assert merged.root.coordinates.shape == (4, 3, 3)

    if residues == "AA":
        MERGING.equal(inputs, judge=judge)
    else:
        MERGING.refused(inputs, names=["/topology"])


def test_a_plan_names_the_convention(tmp_path, raddle):
    printed = raddle("plan", *write_all(tmp_path, frame(0, 3), frame(1, 3))).stdout
    assert "pandas" in printed


@pytest.mark.parametrize("options", [[], ["-c", "none"], ["--contiguous"], ["--for", "scan"], ["--chunk", "7rows"]])
@pytest.mark.parametrize("command", ["rechunk", "merge"])
def test_indexes_of_a_single_file_stay_right(tmp_path, raddle, command, options):
    """PyTables opens a table only if the datasets of its index have the chunks that it made."""
    path, output = tmp_path / "input.h5", tmp_path / "output.h5"
    made = frame(0, 100)
    made.to_hdf(path, key="df", format="table", data_columns=["whole"])
    raddle(command, path, "-o", output, *options)
    for query in [None, "whole > 50", "index < 7"]:
        expected = pd.read_hdf(path, "df", where=query)
        pd.testing.assert_frame_equal(pd.read_hdf(output, "df", where=query), expected)
    with tables.open_file(output) as file:
        assert file.root.df.table.cols.whole.is_indexed
    raddle("verify", output)


def test_a_table_with_an_index_is_not_appended_to(tmp_path, raddle):
    for number in range(2):
        frame(number, 20).to_hdf(tmp_path / f"{number}.h5", key="df", format="table")
    finished = raddle("append", tmp_path / "0.h5", tmp_path / "1.h5", expect=3)
    assert "an append cannot update" in " ".join(finished.stderr.split())


def test_tables_of_other_chunks_or_rows_have_no_index(tmp_path, raddle):
    path, output = tmp_path / "input.h5", tmp_path / "output.h5"
    frame(0, 20).to_hdf(path, key="df", format="table", data_columns=["whole"])
    raddle("merge", path, path, "-o", output, "--duplicates", "keep")
    with tables.open_file(output) as file:
        assert not file.root.df.table.cols.whole.is_indexed
    finished = raddle("rechunk", path, "-o", output, "-f", "--layout", "/df/table: chunk=7rows", expect=3)
    assert "/df/table" in finished.stderr and "--exclude '_i_*'" in finished.stderr
    raddle("merge", path, "-o", output, "-f", "--layout", "/df/table: chunk=7rows", "--exclude", "_i_*")
    with h5py.File(output) as file:
        assert file["df/table"].chunks == (7,)
    pd.testing.assert_frame_equal(pd.read_hdf(output, "df", where="whole > 50"), pd.read_hdf(path, "df", where="whole > 50"))


@pytest.mark.parametrize("count", [1, 2])
def test_tables_are_not_divided_by_variable(tmp_path, raddle, count):
    inputs = [tmp_path / f"{number}.h5" for number in range(count)]
    for number, path in enumerate(inputs):
        frame(number, 6, ["whole", "grade"]).to_hdf(path, key="df", format="table", index=False)
    finished = raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "parts", expect=3)
    assert "pandas" in finished.stderr and "--convention none" in finished.stderr
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "parts", "--convention", "none")
    assert (tmp_path / "parts/df.table.h5").exists()
