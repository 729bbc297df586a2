"""Columns of scans: which datasets are columns, and which values of which types are compared."""

import operator

import h5py
import numpy as np
import pytest
import raddle
from raddle import col, errors

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


def test_without_columns_there_are_the_rows_of_the_table(tmp_path):
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["t/n"], file["empty/sub/n"] = np.arange(10), np.arange(10)
    with raddle.scan([path, path]) as scans:
        nothing = scans["t"].select()
        assert nothing.count() == nothing.filter("n >= 0").count() == len(nothing.rows()) == 20
        assert nothing.filter("n > 6").rows().tolist() == [7, 8, 9, 17, 18, 19]
        assert nothing.partition(0, 2).count() + nothing.partition(1, 2).count() == 20
        assert scans["empty"].count() == scans["empty"].select().count() == 0
        with pytest.raises(errors.UsageError, match="no columns"):
            nothing.to_numpy()


def test_external_links_are_not_columns(tmp_path):
    path = tmp_path / "linking.h5"
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"], file["y"] = np.arange(5), np.arange(100) + 7
    with h5py.File(path, "w") as file:
        file["t/n"] = np.arange(100)
        file["t/a"], file["t/z"] = h5py.ExternalLink("other.h5", "/x"), h5py.ExternalLink("other.h5", "/y")
        file["t/gone"], file["t/soft"] = h5py.ExternalLink("none.h5", "/x"), h5py.SoftLink("/t/n")
    table = raddle.scan(path)["t"]
    assert table.count() == len(table.rows()) == 100
    assert list(table.to_numpy()) == ["n", "soft"]
    with raddle.open(path) as file:
        read = file["t"].read_columns()
        assert list(read) == ["n", "soft"] and read["n"].tolist() == list(range(100))
        assert file["t/a"][()].tolist() == list(range(5))
    with pytest.raises(errors.UsageError, match="'z' is not a dataset of this file"):
        table.select("z").to_numpy()


def test_groups_behind_external_links_are_not_tables(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["there/x"] = np.arange(5)
    with h5py.File(tmp_path / "linking.h5", "w") as file:
        file["t/x"], file["linked"] = np.arange(5), h5py.ExternalLink("other.h5", "/there")
    scans = raddle.scan(tmp_path / "linking.h5")
    assert list(scans) == ["t"] and "linked" not in scans and "t/x" not in scans and "t" in scans
    with pytest.raises(errors.UsageError, match=r"linked is /there of .*other\.h5, by an external link: scan that file"):
        scans["linked"]


def test_rows_without_elements(tmp_path):
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["t/x"], file["t/none"], file["t/inner"] = np.arange(4), np.zeros((4, 0)), np.zeros((4, 0, 2), "i4")
    table = raddle.scan(tmp_path / "empty.h5")["t"]
    for rows, found in [(4, table), (2, table.filter("x > 1")), (0, table.filter("x > 9"))]:
        shapes = {name: values.shape for name, values in found.to_numpy().items()}
        assert shapes == {"inner": (rows, 0, 2), "none": (rows, 0), "x": (rows,)}
        assert found.select("none").to_numpy()["none"].shape == (rows, 0) and found.to_pandas().shape == (rows, 3)
    pytest.importorskip("pyarrow")
    with pytest.raises(errors.UsageError, match="none: Arrow has no lists of 0 elements"):
        table.select("x", "none").to_arrow()


def test_scalars_are_not_columns(tmp_path):
    pytest.importorskip("pyarrow")
    with h5py.File(tmp_path / "scalar.h5", "w") as file:
        file["t/x"], file["t/pot"] = np.arange(4), 1.5
    table = raddle.scan(tmp_path / "scalar.h5")["t"]
    assert list(table.to_numpy()) == ["x"]
    for read in (table.select("pot").to_numpy, table.select("pot").to_arrow, table.select("pot").count):
        with pytest.raises(errors.UsageError, match="pot is a scalar, which has no rows"):
            read()


def test_columns_without_a_type_of_numpy_do_not_hide_others(tmp_path):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        group = file.create_group("t")
        group["x"] = np.arange(4)
        kind = h5py.h5t.STD_I32LE.copy()
        kind.set_size(3)
        h5py.h5d.create(group.id, b"three", kind, h5py.h5s.create_simple((4,)))
    table = raddle.scan(tmp_path / "odd.h5")["t"]
    assert table.select("x").filter("x > 2").to_numpy()["x"].tolist() == [3]
    pytest.importorskip("datafusion")
    with pytest.warns(UserWarning, match="left out, because Arrow has no type for them: three"):
        found = raddle.sql(f"SELECT * FROM '{tmp_path / 'odd.h5'}'.t WHERE x > 2").to_pydict()
    assert found == {"x": [3]}


INTEGERS = [2**127 - 1, 2**127, -(2**127), -(2**127) - 1, 2**130, -(2**130), 10**39, 10**400, -(10**400)]


@pytest.mark.parametrize("value", INTEGERS, ids=lambda value: f"{value.bit_length()} bits")
@pytest.mark.parametrize("sign", COMPARISONS)
def test_integers_of_any_length_are_compared(tmp_path, value, sign):
    columns = {
        "i": np.array([-(2**63), 0, 2**63 - 1]), "u": np.array([0, 5, 2**64 - 1], "u8"),
        "f": np.array([-np.inf, 1, np.inf, np.nan], "f4"), "d": np.array([-np.inf, 2.0**130, 1e40, 1e300, np.inf, np.nan]),
    }  # fmt: skip
    with h5py.File(tmp_path / "integers.h5", "w") as file:
        for name, values in columns.items():
            file[f"{name}/{name}"] = values
    try:
        as_float = float(value)
    except OverflowError:
        as_float = np.inf if value > 0 else -np.inf
    scans = raddle.scan(tmp_path / "integers.h5")
    for name, values in columns.items():
        if values.dtype.kind == "f":
            with np.errstate(over="ignore"):
                expected = COMPARISONS[sign](values, values.dtype.type(as_float))
        else:
            expected = [COMPARISONS[sign](int(one), value) for one in values]
        for condition in (COMPARISONS[sign](col(name), value), f"{name} {sign} {value}"):
            assert scans[name].filter(condition).rows().tolist() == np.flatnonzero(expected).tolist(), name


@pytest.mark.parametrize("is_indexed", [False, True])
def test_names_stand_for_unsigned_integers_of_64_bits(tmp_path, is_indexed):
    # h5py makes no enumerations of such values.
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "named.nc"
    names = {"zero": 0, "small": 2**63 - 1, "half": 2**63, "most": 2**64 - 1}
    values = np.array([*names.values(), 2**63, 0] * 50, "u8")
    with netcdf.Dataset(path, "w") as file:
        group = file.createGroup("t")
        group.createDimension("n", len(values))
        group.createVariable("kind", group.createEnumType("u8", "names", names), ("n",), chunksizes=(20,))[:] = values
    if is_indexed:
        raddle.index(path, progress=False)
    table = raddle.scan(path)["t"]
    for name, value in names.items():
        for compare in COMPARISONS.values():
            expected = np.flatnonzero(compare(values, np.uint64(value))).tolist()
            assert table.filter(compare(col("kind"), name)).rows().tolist() == expected, name


def test_types_that_are_not_compared_are_named_with_those_that_are(tmp_path):
    path = tmp_path / "odd.h5"
    with h5py.File(path, "w") as file:
        file["t/half"], file["t/long"], file["t/x"] = np.arange(3, dtype="f2"), np.arange(3).astype("g"), np.arange(3)
    table = raddle.scan(path)["t"]
    for name in ("half", "long"):
        with pytest.raises(errors.UsageError, match=f"{name} holds values that are not integers .* floats of 32 or 64 bits"):
            table.filter(col(name) > 1).count()
        assert table.filter("x > 1").select(name).to_numpy()[name].tolist() == [2]
