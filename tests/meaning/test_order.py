"""The order of rows: that of the paths as typed, that of numbers in sorted names, or that of times if files have
any."""

import h5py
import netCDF4
import numpy as np
import pytest
from cf_files import simple, write
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples


def write_rows(folder, names):
    paths = []
    for name in names:
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        with h5py.File(path, "w") as file:
            file["name"] = np.array([name.encode()], "S40")
        paths.append(path)
    return paths


def judge_names(output, inputs, order):
    with h5py.File(output) as merged:
        assert [name.decode() for name in merged["name"][:]] == order


MERGING = Merging("order", judge_names)


@pytest.mark.parametrize(
    ("typed", "order"),
    [
        # Not sorted: the order was chosen.
        (["jan.h5", "feb.h5", "mar.h5"], ["jan.h5", "feb.h5", "mar.h5"]),
        (["b.h5", "a.h5"], ["b.h5", "a.h5"]),
        (["run2.h5", "run1.h5", "run10.h5"], ["run2.h5", "run1.h5", "run10.h5"]),
        (["run1.h5", "run2.h5", "run10.h5"], ["run1.h5", "run2.h5", "run10.h5"]),
        # Sorted by bytes, as a shell sorts the matches of a pattern: ordered by numbers.
        (["run1.h5", "run10.h5", "run2.h5"], ["run1.h5", "run2.h5", "run10.h5"]),
        (["run10.h5", "run9.h5"], ["run9.h5", "run10.h5"]),
        (["a.h5", "b.h5"], ["a.h5", "b.h5"]),
        (["r010.h5", "r011.h5", "r1.h5", "r2.h5", "r9.h5"], ["r1.h5", "r2.h5", "r9.h5", "r010.h5", "r011.h5"]),
        (["s1/x10.h5", "s1/x2.h5", "s10/x1.h5", "s2/x1.h5"], ["s1/x2.h5", "s1/x10.h5", "s2/x1.h5", "s10/x1.h5"]),
    ],
)
def test_typed_paths(tmp_path, typed, order):
    MERGING.equal(write_rows(tmp_path, typed), output=tmp_path / "out.h5", order=order)


@examples(10)
@given(st.permutations(["1", "2", "03", "10", "x", "20a"]))
def test_any_order_that_is_typed_is_kept(names):
    typed = [f"{name}.h5" for name in names]
    with case_folder() as folder:
        # Sorted as a shell may sort, by bytes or by letters.
        if typed not in (sorted(typed), sorted(typed, key=str.casefold)):
            MERGING.equal(write_rows(folder, typed), output=folder / "out.h5", order=typed)


@pytest.mark.parametrize("shape", ["folder", "glob", "list"])
def test_folders_patterns_and_lists(tmp_path, raddle, shape):
    names = ["run10.h5", "run2.h5", "run1.h5"]
    paths = write_rows(tmp_path / "in", names)
    natural = ["run1.h5", "run2.h5", "run10.h5"]
    if shape == "list":
        (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in paths))
    given_inputs = {"folder": [tmp_path / "in"], "glob": [tmp_path / "in/*.h5"], "list": ["-i", tmp_path / "list.txt"]}
    output = tmp_path / "out.h5"
    raddle("merge", *given_inputs[shape], "-o", output)
    judge_names(output, paths, names if shape == "list" else natural)


@pytest.mark.parametrize(
    ("option", "order"), [("given", ["b1.h5", "b10.h5", "b2.h5"]), ("natural", ["b1.h5", "b2.h5", "b10.h5"])]
)
def test_the_order_can_be_asked_for(tmp_path, option, order):
    paths = write_rows(tmp_path, ["b1.h5", "b10.h5", "b2.h5"])
    MERGING.equal(paths, "--order", option, output=tmp_path / "out.h5", order=order)


def months(folder, names, firsts, days=2):
    return [write(folder / name, simple(first, days)) for name, first in zip(names, firsts)]


def judge_times(output, inputs, times, fields=None):
    """Compares times and rows of the field, which encode the first day of their file."""
    with netCDF4.Dataset(output) as merged:
        assert merged["time"][:].tolist() == times
        if fields is not None:
            assert merged["tas"][:, 0].tolist() == fields


def rows_of(inputs):
    rows = {}
    for path in inputs:
        with netCDF4.Dataset(path) as file:
            rows.setdefault(str(path), [*zip(file["time"][:].tolist(), file["tas"][:, 0].tolist())])
    return rows


TIMES = Merging("order", judge_times)


def test_times_decide(tmp_path, raddle):
    inputs = months(tmp_path, ["jan.nc", "feb.nc", "mar.nc"], [0, 2, 4])
    for typed in [inputs, inputs[::-1], [inputs[1], inputs[0], inputs[2]]]:
        output = TIMES.equal(typed, times=[0, 1, 2, 3, 4, 5], fields=[0, 2, 200, 202, 400, 402])
        output.unlink()
    message = raddle("merge", *inputs[::-1], "-o", tmp_path / "out.nc")
    assert "order" in message.stdout + message.stderr and "time" in message.stdout + message.stderr
    raddle("verify", tmp_path / "out.nc", "--against", *inputs[::-1])


def test_times_decide_in_a_folder(tmp_path, raddle):
    (tmp_path / "in").mkdir()
    inputs = months(tmp_path / "in", ["apr.nc", "feb.nc", "jan.nc"], [4, 2, 0])
    raddle("merge", tmp_path / "in", "-o", tmp_path / "out.nc")
    judge_times(tmp_path / "out.nc", inputs, [0, 1, 2, 3, 4, 5])


@examples(8)
@given(st.permutations([0, 2, 4, 6]))
def test_times_decide_in_any_order(firsts):
    with case_folder() as folder:
        inputs = months(folder, ["a.nc", "b.nc", "c.nc", "d.nc"], firsts)
        TIMES.equal(inputs, times=[0, 1, 2, 3, 4, 5, 6, 7])


def test_descending_times_stay_descending(tmp_path):
    """Each input descends: the merge must descend too, or be refused."""
    files = [simple(times=[5, 4, 3]), simple(times=[2, 1, 0])]
    inputs = [write(tmp_path / f"{number}.nc", file) for number, file in enumerate(files)]
    TIMES.equal_or_refused(inputs, times=[5, 4, 3, 2, 1, 0])


def test_times_that_interleave_are_refused(tmp_path):
    inputs = [write(tmp_path / f"{number}.nc", simple(times=times)) for number, times in enumerate([[0, 2, 4], [1, 3, 5]])]
    TIMES.refused(inputs, names=["0.nc", "1.nc", "/time", "4", "1", "--overlap"])


def test_times_that_overlap_are_refused(tmp_path):
    inputs = months(tmp_path, ["a.nc", "b.nc"], [0, 2], days=3)
    TIMES.refused(inputs, names=["a.nc", "b.nc", "/time", "2", "--overlap"])


def test_the_same_times_are_refused(tmp_path):
    inputs = months(tmp_path, ["a.nc", "b.nc"], [0, 0])
    TIMES.refused(inputs, names=["a.nc", "b.nc", "/time", "--overlap"])


@pytest.mark.parametrize("which", ["first", "last"])
@pytest.mark.parametrize("swapped", [False, True])
def test_one_of_the_repeated_times_is_taken(tmp_path, raddle, which, swapped):
    """``first`` is the file that comes first in the order of the inputs."""
    inputs = months(tmp_path, ["a.nc", "b.nc", "c.nc"], [0, 2, 4], days=3)
    own = [dict(rows) for rows in rows_of(inputs).values()]
    taken = {}
    for rows in own if which == "last" else own[::-1]:
        taken |= rows
    typed = inputs[::-1] if swapped else inputs
    output = TIMES.equal(typed, "--overlap", which, times=[*range(7)], fields=[taken[time] for time in range(7)])
    raddle("verify", output)
    raddle("verify", output, "--against", *typed, "--overlap", which)


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_file_that_lies_in_another(tmp_path, which):
    """A correction of some days in the middle of a longer file."""
    inputs = [write(tmp_path / "long.nc", simple(0, 6)), write(tmp_path / "short.nc", simple(2, 2))]
    rows = {time: 2.0 * time for time in range(6)}
    if which == "last":
        rows |= {2: 200.0, 3: 202.0}
    TIMES.equal_or_refused(inputs, "--overlap", which, times=[*range(6)], fields=[rows[time] for time in range(6)])


def test_overlaps_in_other_units(tmp_path):
    inputs = [
        write(tmp_path / "a.nc", simple(0, 3)),
        write(tmp_path / "b.nc", simple(2, 3, times=[48, 72, 96], since="hours since 2000-01-01")),
    ]
    TIMES.refused(inputs, names=["--overlap"])
    TIMES.equal(inputs, "--overlap", "first", times=[0, 1, 2, 3, 4], fields=[0, 2, 4, 202, 204])


def test_nanoseconds_are_compared_exactly(tmp_path):
    """Times that differ, but round to the same double."""
    start = 1_700_000_000_000_000_000

    def nanoseconds(name, first_day, *times):
        file = simple(first_day, times=[start + time for time in times], since="nanoseconds since 1970-01-01", kind="i8")
        return write(tmp_path / name, file)

    first, next_one = nanoseconds("a.nc", 0, 0, 10, 20), nanoseconds("b.nc", 1, 30, 40)
    for typed in ([first, next_one], [next_one, first]):
        times = [start + time for time in [0, 10, 20, 30, 40]]
        TIMES.equal(typed, times=times, fields=[0, 2, 4, 100, 102]).unlink()
    TIMES.refused([first, nanoseconds("same.nc", 2, 20, 30)], names=["/time", str(start + 20), "--overlap"])
    again, times = nanoseconds("again.nc", 2, 20, 30), [start + time for time in [0, 10, 20, 30]]
    TIMES.equal([first, again], "--overlap", "first", times=times, fields=[0, 2, 4, 202]).unlink()
    TIMES.refused([first, nanoseconds("between.nc", 2, 15, 30)], "--overlap", "first", names=["/time", str(start + 15)])


def test_files_without_a_time_keep_their_order(tmp_path):
    """A record dimension without a coordinate does not determine the order."""
    inputs = []
    for name, value in [("jan.nc", 1), ("feb.nc", 2)]:
        inputs.append(tmp_path / name)
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.createDimension("record", None)
            file.createVariable("v", "i4", ("record",))[:] = [value, value]

    def judge(output, inputs):
        with netCDF4.Dataset(output) as merged:
            assert merged["v"][:].tolist() == [1, 1, 2, 2]

    MERGING.equal(inputs, judge=judge)


def test_files_without_a_valid_time_do_not_end_the_order_of_the_others(tmp_path, raddle):
    """They stay behind the file that precedes them."""
    ends, begins, goes_on = months(tmp_path, ["ends.nc", "begins.nc", "goes_on.nc"], [4, 0, 2])
    missing = [write(tmp_path / f"missing_{number}.nc", simple(number, times=[np.nan, np.nan])) for number in (8, 9)]

    def merged(*inputs, options=()):
        raddle("merge", *inputs, "-o", tmp_path / "out.nc", "--force", *options)
        with netCDF4.Dataset(tmp_path / "out.nc") as file:
            file.set_auto_mask(False)
            return file["time"][:].tolist(), file["tas"][:, 0].tolist()

    times, fields = merged(missing[0], ends, missing[1], begins, goes_on)
    np.testing.assert_equal(times, [np.nan, np.nan, 0, 1, 2, 3, 4, 5, np.nan, np.nan])
    assert fields == [800, 802, 0, 2, 200, 202, 400, 402, 900, 902]
    times, fields = merged(begins, missing[0], goes_on)
    np.testing.assert_equal(times, [0, 1, np.nan, np.nan, 2, 3])
    again = write(tmp_path / "again.nc", simple(1))
    TIMES.refused([begins, missing[0], again], names=["begins.nc", "again.nc", "/time", "--overlap"])
    times, fields = merged(begins, missing[0], again, options=["--overlap", "first"])
    np.testing.assert_equal(times, [0, 1, np.nan, np.nan, 2, 3])
    assert fields == [0, 2, 800, 802, 102, 104]
    raddle("verify", tmp_path / "out.nc", "--against", begins, missing[0], again)


def test_append_continues_after_the_last_time(tmp_path, raddle):
    inputs = months(tmp_path, ["a.nc", "b.nc", "c.nc"], [0, 2, 4])
    output = TIMES.equal(inputs[:2], times=[0, 1, 2, 3])
    message = raddle("append", output, inputs[2])
    judge_times(output, inputs, [0, 1, 2, 3, 4, 5])
    message = raddle("append", output, write(tmp_path / "late.nc", simple(1, 2)), expect=3)
    assert "time" in message.stderr
    judge_times(output, inputs, [0, 1, 2, 3, 4, 5])
