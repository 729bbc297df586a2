"""User-defined rules: positions in other datasets, and datasets carried once, in formats without a convention."""

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merging import case_folder, examples
from rule_files import MERGING, ONCE, RULES, column, judge, write, write_all


@st.composite
def groups_of_rows(draw):
    """Draws the number of rows of each group of each file."""
    counts = st.lists(st.integers(0, 4), max_size=4)
    return draw(st.lists(counts, min_size=2, max_size=4))


@pytest.mark.parametrize("form", RULES)
def test_positions(form):
    @examples(10)
    @given(groups_of_rows())
    def check(files):
        with case_folder() as folder:
            MERGING.equal(write_all(folder, files, form), "--rule", RULES[form], *ONCE, form=form)

    check()


@pytest.mark.parametrize("form", RULES)
@pytest.mark.parametrize("kind", ["i4", "u8", ">i4", "u1"])
def test_types_of_positions(tmp_path, raddle, form, kind):
    inputs = write_all(tmp_path, [[1, 2], [3], [0, 2]], form, kind=kind)
    output = MERGING.equal(inputs, "--rule", RULES[form], *ONCE, form=form)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs, "--rule", RULES[form], *ONCE)


@pytest.mark.parametrize("form", RULES)
def test_rules_are_remembered(tmp_path, raddle, form):
    """The output records its rules, so that verify needs no repetition of them."""
    inputs = write_all(tmp_path, [[1, 2], [3]], form)
    output = MERGING.equal(inputs, "--rule", RULES[form], *ONCE, form=form)
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("form", RULES)
@pytest.mark.parametrize("kind", ["u1", "i1"])
def test_positions_that_their_type_cannot_hold(tmp_path, form, kind):
    """Positions are widened or refused; they do not wrap."""
    MERGING.equal_or_refused(
        write_all(tmp_path, [[100], [90, 10], [80]], form, kind=kind), "--rule", RULES[form], *ONCE, form=form
    )


def test_a_file_of_rules(tmp_path):
    inputs = write_all(tmp_path, [[1, 2], [3, 0]], "bounds")
    rules = tmp_path / "rules.toml"
    rules.write_text('[rules]\n"/run/index" = "bounds of /run/hits/energy"\n"edges" = "once"\n')
    MERGING.equal(inputs, "--rules", rules, form="bounds")


def test_a_target_in_the_same_group(tmp_path):
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            column(file, "a/hits", np.arange(3))
            column(file, "a/first", np.array([0, 2]))

    def judge_rows(output, inputs):
        with h5py.File(output) as merged:
            assert merged["a/first"][:].tolist() == [0, 2, 3, 5]

    MERGING.equal(inputs, "--rule", "first: positions of hits", judge=judge_rows)


def test_positions_of_positions(tmp_path):
    inputs = write_all(tmp_path, [[1, 2], [3], [0, 1, 1]], "ends", deep=True)
    outer = ["--rule", "/run/outer: ends of /run/index"]

    def judge_both(output, inputs):
        judge(output, inputs, "ends")
        with h5py.File(output) as merged:
            assert merged["run/outer"][:].tolist() == [2, 3, 6]

    MERGING.equal(inputs, "--rule", RULES["ends"], *outer, *ONCE, judge=judge_both)


def test_what_is_carried_once_must_be_equal(tmp_path):
    inputs = [write(tmp_path / f"{number}.h5", [1, 2], "ends", edges=(0.0, 0.5, 1.0 + number)) for number in range(2)]
    MERGING.refused(inputs, "--rule", RULES["ends"], *ONCE, names=["/run/edges", "1", "2"])


@pytest.mark.parametrize(
    "rule",
    ["/run/indx: ends of /run/hits/energy", "/run/index: ends of /run/hits/enrgy", "/run/edgs: once"],
)
def test_a_misspelt_rule_is_refused(tmp_path, rule):
    """A misspelt rule would leave positions unchanged."""
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends")
    misspelt = next(word for word in rule.replace(":", "").split() if "ind" in word or "enr" in word or "edg" in word)
    if "enrgy" in rule:
        misspelt = "enrgy"
    MERGING.refused(inputs, "--rule", rule, names=[misspelt])


@pytest.mark.parametrize("rule", ["/run/index", "/run/index: sideways", "/run/index: ends of", "[: once", ""])
def test_a_rule_that_is_none_is_an_error(tmp_path, raddle, rule):
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends")
    message = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", rule, expect=2)
    assert "once" in message.stderr or "pattern" in message.stderr or "value" in message.stderr


def test_positions_among_floats_are_refused(tmp_path):
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends", kind="f8")
    MERGING.refused(inputs, "--rule", RULES["ends"], names=["/run/index"])


@pytest.mark.parametrize(
    ("form", "values", "found"),
    [
        ("bounds", [0, 9, 5], "element 1 is 9"), ("bounds", [0, 3, 2, 5], "element 2 is 2"), ("ends", [2, -1, 5], "element 1 is -1"),
        ("starts", [0, 6, 5], "element 1 is 6"), ("rows", [0, 5, 1], "element 1 is 5"), ("rows", [0, 2**62, 1], f"element 1 is {2**62}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_each_position_is_one_of_the_rows(tmp_path, form, values, found, first):
    """Previously only the first and the last position were checked."""
    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            column(file, "hits", np.arange(5))
            right = {"bounds": [0, 5], "ends": [5], "starts": [0, 2], "rows": [4, 0]}[form]
            column(file, "index", np.array(values if first == (number == 0) else right))
    MERGING.refused(inputs, "--rule", f"index: {form} of hits", names=["/index", found, "/hits"])


def test_a_number_for_no_row_stays(tmp_path):
    inputs = []
    for number in range(3):
        inputs.append(tmp_path / f"{number}.h5")
        with h5py.File(inputs[-1], "w") as file:
            column(file, "hits", np.arange(3))
            column(file, "mate", np.array([-1, 0, 2], "i4"))

    def judge_rows(output, inputs):
        with h5py.File(output) as merged:
            assert merged["mate"][:].tolist() == [-1, 0, 2, -1, 3, 5, -1, 6, 8]

    MERGING.equal(inputs, "--rule", "mate: rows of hits", judge=judge_rows)


def test_an_axis_that_a_dataset_has_not(tmp_path):
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends")
    MERGING.refused(inputs, "--rule", "/run/index: along 2", names=["/run/index", "1 axes", "along 2"])


def test_a_rule_of_the_command_goes_before_one_of_a_file(tmp_path):
    inputs = write_all(tmp_path, [[1, 2], [3, 0]], "bounds")
    rules = tmp_path / "rules.toml"
    rules.write_text('[rules]\n"/run/index" = "once"\n"edges" = "once"\n')
    MERGING.equal(inputs, "--rules", rules, "--rule", RULES["bounds"], form="bounds")


def test_invalid_bounds_are_refused(tmp_path):
    """Bounds must begin with 0 and end with the number of rows; otherwise the rule has another form."""
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends")
    MERGING.refused(inputs, "--rule", "/run/index: bounds of /run/hits/energy", names=["/run/index", "0"])


def test_a_user_s_rule_goes_before_a_convention(tmp_path):
    import netCDF4

    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("trajectory", None)
            file.createVariable("time", "i4", ("time",))[:] = [3 * number, 3 * number + 1]
            file["time"].units = "days since 2000-01-01"
            file.createVariable("first", "i4", ("time",))[:] = [0, 1]

    def judge_rows(output, inputs):
        with netCDF4.Dataset(output) as merged:
            assert merged["first"][:].tolist() == [0, 1, 2, 3]

    MERGING.equal(inputs, "--dim", "time", "--rule", "/first: positions of /time", judge=judge_rows)


@pytest.mark.parametrize("with_coordinate", [False, True])
def test_rows_along_a_dimension_that_is_stored_once_are_refused(tmp_path, with_coordinate):
    """The netCDF library would read the rows of the first input only."""
    import netCDF4

    inputs = []
    for number in range(2):
        inputs.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(inputs[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("step", 2)
            file.createVariable("time", "i4", ("time",))[:] = [number]
            file["time"].units = "days since 2000-01-01"
            if with_coordinate:
                file.createVariable("step", "i4", ("step",))[:] = [0, 6]
            file.createVariable("lead", "i4", ("step",))[:] = [number, number + 6]
    MERGING.refused(inputs, "--rule", "/lead: concatenate", names=["/lead", "/step", "--exclude"])


def test_a_plan_shows_the_rules(tmp_path, raddle):
    inputs = write_all(tmp_path, [[1, 2], [3]], "ends")
    message = raddle("plan", *inputs, "--rule", RULES["ends"], *ONCE).stdout
    assert "/run/index" in message and "/run/hits/energy" in message and "/run/edges" in message
