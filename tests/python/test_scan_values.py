"""Values of netCDF variables in searches: refused without a choice, as stored, or as xarray decodes them."""

import json
import os
import pickle
import tempfile
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import raddle
from conftest import PACKAGES
from hypothesis import given
from hypothesis import strategies as st
from interpreter import python
from raddle import col, errors

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")

ROWS = 200
BOTH = ['values="decoded"', 'values="stored"']


def write(path, variables, rows=ROWS):
    """Writes a netCDF file of variables along a record dimension: each has values, a fill value and attributes."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", None)
        file.createDimension("y", 3)
        for name, (values, fill, attributes) in variables.items():
            values = np.asarray(values)
            endian = "big" if values.dtype.byteorder == ">" else "native"
            dims = ("x", "y")[: values.ndim]
            made = file.createVariable(name, values.dtype.str, dims, fill_value=fill, chunksizes=(16, 3)[: values.ndim], endian=endian)
            made.setncatts(attributes)
            made.set_auto_maskandscale(False)
            made[:rows] = values
    return str(path)


def temperature(rows=ROWS):
    """Returns temperatures as in reanalyses: packed, with missing values."""
    random = np.random.default_rng(3)
    stored = random.integers(-3000, 3000, rows).astype("i2")
    stored[::7] = -32768
    return stored, -32768, {"scale_factor": 0.01, "add_offset": 280.0}


@pytest.fixture
def packed(tmp_path):
    """Returns the path of a file with a packed variable, one with a fill value, an unsigned one, and plain ones."""
    marked = np.random.default_rng(5).normal(0, 10, ROWS)
    marked[::9] = -9999
    wave = {"_Unsigned": "true"}
    return write(
        tmp_path / "packed.nc",
        {
            "t2m": temperature(),
            "t": (marked, -9999.0, {}),
            "u": (np.arange(ROWS).astype("i1"), None, wave),
            "plain": (np.arange(ROWS) / 8, None, {"units": "m"}),
            "nan": (np.where(np.arange(ROWS) % 5, np.arange(ROWS), np.nan), np.nan, {"scale_factor": 1.0, "add_offset": 0.0}),
            "n": (np.arange(ROWS, dtype="i4"), None, {"valid_max": 9}),
        },
    )  # fmt: skip


def table(path, **options):
    return raddle.scan(path, **options)["/"]


def check_refusal(error, path, name, *attributes):
    """Checks that a message names file, dataset, attributes and both choices."""
    text = str(error)
    assert all(part in text for part in (path, f"/{name} ", *attributes, *BOTH)), text


DOORS = {
    "filter": lambda scan: scan.filter(col("t2m") > 280).select("plain").to_numpy(),
    "count": lambda scan: scan.filter("t2m > 280").count(),
    "rows": lambda scan: scan.filter("plain > 3 & t2m > 280").rows(),
    "explain": lambda scan: scan.filter("t2m > 280").select("n").explain(),
    "pair": lambda scan: scan.filter(col("plain") < col("t2m")).count(),
    "select": lambda scan: scan.select("t2m").to_numpy(),
    "all": lambda scan: scan.to_numpy(),
    "batches": lambda scan: next(scan.select("plain", "t2m").batches()),
    "pandas": lambda scan: scan.select("t2m").to_pandas(),
    "awkward": lambda scan: scan.select("t2m").to_awkward(),
    "arrow": lambda scan: scan.select("t2m").to_arrow(),
    "stream": lambda scan: scan.select("t2m").__arrow_c_stream__(),
    "dataset": lambda scan: scan.to_dataset().to_table(columns=["t2m"]),
    "sum": lambda scan: scan.sum("t2m"),
    "mean": lambda scan: scan.mean("t2m"),
    "min": lambda scan: scan.min("t2m"),
    "max": lambda scan: scan.filter("plain > 1").max("t2m"),
    "partition": lambda scan: scan.partition(0, 2).select("t2m").to_numpy(),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_search_without_a_choice_is_refused(packed, door):
    with pytest.raises(errors.InputError) as refused:
        DOORS[door](table(packed))
    assert refused.value.kind == "input_refused" and refused.value.exit_code == 3
    check_refusal(refused.value, packed, "t2m", "scale_factor = 0.01", "add_offset = 280.0", "_FillValue = -32768")
    for values in ("stored", "decoded"):
        DOORS[door](table(packed, values=values))


def test_a_fill_value_or_signedness_alone_needs_the_choice(packed):
    for name, attribute in (("t", "_FillValue = -9999.0"), ("u", '_Unsigned = "true"')):
        with pytest.raises(errors.InputError) as refused:
            table(packed).filter(col(name) < 0).count()
        check_refusal(refused.value, packed, name, attribute)


def test_a_histogram_without_a_choice_is_refused(packed):
    bh = pytest.importorskip("boost_histogram")
    axis = bh.axis.Regular(10, 250, 310)
    for draw in (
        lambda scan: scan.hist({"t2m": axis}),
        lambda scan: scan.hist({"plain": axis}, weight="t2m"),
        lambda scan: scan.filter("t2m > 280").hist({"plain": axis}),
    ):
        with pytest.raises(errors.InputError) as refused:
            draw(table(packed))
        check_refusal(refused.value, packed, "t2m", "scale_factor = 0.01")
    decoded = xr.load_dataset(packed).t2m.values
    found = table(packed, values="decoded").hist({"t2m": axis})
    assert np.array_equal(found.values(), np.histogram(decoded[~np.isnan(decoded)], 10, (250, 310))[0])


def test_a_polars_query_without_a_choice_is_refused(packed):
    pl = pytest.importorskip("polars")
    for query in (
        lambda frame: frame.filter(pl.col("t2m") > 280).select("plain"),
        lambda frame: frame.select("t2m"),
        lambda frame: frame,
    ):
        with pytest.raises(Exception, match="t2m has scale_factor") as refused:
            query(raddle.scan_polars(packed, "/")).collect()
        check_refusal(refused.value, packed, "t2m")
    assert raddle.scan_polars(packed, "/").select("plain", "n").filter(pl.col("plain") > 1).collect().height == ROWS - 9
    decoded = xr.load_dataset(packed)
    frame = raddle.scan_polars(packed, "/", values="decoded")
    assert frame.filter(pl.col("t2m") > 280).collect().height == int((decoded.t2m > 280).sum())
    assert frame.select(pl.col("t").mean()).collect().item() == pytest.approx(float(decoded.t.mean()))
    assert frame.select(pl.col("t").is_null().sum()).collect().item() == int(decoded.t.isnull().sum())
    assert raddle.scan_polars(packed, "/", values="stored").filter(pl.col("t") < -9000).collect().height == int(decoded.t.isnull().sum())


def test_a_query_of_duckdb_without_a_choice_is_refused(packed):
    duckdb = pytest.importorskip("duckdb")
    slices = table(packed).to_dataset()  # noqa: F841
    for query in ("SELECT plain FROM slices WHERE t2m > 280", "SELECT max(t2m) FROM slices", "SELECT * FROM slices"):
        with pytest.raises(Exception, match="t2m has scale_factor") as refused:
            duckdb.sql(query).fetchall()
        check_refusal(refused.value, packed, "t2m")
    assert duckdb.sql("SELECT count(plain) FROM slices WHERE n > 3").fetchall() == [(ROWS - 4,)]
    decoded = xr.load_dataset(packed)
    slices = table(packed, values="decoded").to_dataset()
    assert duckdb.sql("SELECT count(*), count(t2m) FROM slices WHERE t2m > 280 OR t2m IS NULL").fetchall() == [
        (int((~(decoded.t2m <= 280)).sum()), int((decoded.t2m > 280).sum()))
    ]


def test_a_query_in_sql_without_a_choice_is_refused(packed):
    pytest.importorskip("datafusion")
    name = f"'{packed}'.'/'"
    for query in (f"SELECT plain FROM {name} WHERE t2m > 280", f"SELECT max(t2m) FROM {name}", f"SELECT * FROM {name}"):
        with pytest.raises(Exception, match="t2m has scale_factor") as refused:
            raddle.sql(query).to_pydict()
        check_refusal(refused.value, packed, "t2m")
    assert raddle.sql(f"SELECT count(*) AS n FROM {name} WHERE plain > 1").to_pydict() == {"n": [ROWS - 9]}
    decoded = xr.load_dataset(packed)
    query = f"SELECT count(*) AS n, count(t) AS here, min(t) AS least, sum(n) AS total FROM {name} WHERE t2m < 280 GROUP BY plain < 12 ORDER BY n"
    found = raddle.sql(query, values="decoded").to_pydict()
    cold = decoded.where(decoded.t2m < 280, drop=True)
    parts = sorted([cold.where(cold.plain < 12, drop=True), cold.where(cold.plain >= 12, drop=True)], key=lambda part: part.sizes["x"])
    assert found["n"] == [part.sizes["x"] for part in parts] and found["here"] == [int(part.t.count()) for part in parts]
    assert found["least"] == [float(part.t.min()) for part in parts]
    # NaN stands for a missing value there, too.
    assert raddle.sql(f"SELECT count(nan) AS n FROM {name} WHERE nan > -1", values="decoded").to_pydict() == {"n": [ROWS - ROWS // 5]}


def test_the_sql_command_refuses_with_its_options(packed, environment, tmp_path):
    pytest.importorskip("datafusion")
    query = f"SELECT count(*) AS n FROM '{packed}'.'/' WHERE t2m > 280"
    refused = python(environment, "-m", "raddle", "sql", query)
    assert refused.returncode == 3 and "--values decoded" in refused.stderr and "--values stored" in refused.stderr
    assert packed in refused.stderr and "scale_factor = 0.01" in refused.stderr and "values=" not in refused.stderr
    assert refused.stdout == ""
    decoded = xr.load_dataset(packed)
    for values, expected in (("stored", int((temperature()[0] > 280).sum())), ("decoded", int((decoded.t2m > 280).sum()))):
        done = python(environment, "-m", "raddle", "sql", query, "--values", values)
        assert done.stdout == f'"n"\n{expected}\n', done
    wrong = python(environment, "-m", "raddle", "sql", query, "--values", "packed")
    assert wrong.returncode == 2


def test_columns_without_such_attributes_are_not_affected(packed, tmp_path):
    plain = {name: values for name, values in h5py.File(packed).items() if name in ("plain", "nan", "n")}
    for values in (None, "stored", "decoded"):
        scan = table(packed, values=values).select("plain", "n")
        found = scan.filter("plain > 3").to_numpy()
        assert found["n"].dtype == np.dtype("i4") and np.array_equal(found["n"], np.arange(25, ROWS))
        assert scan.count() == ROWS and scan.sum("n") == ROWS * (ROWS - 1) // 2
        assert scan.explain()["table_len_bytes"] == 12 * ROWS
    for values in (None, "stored"):
        stored = table(packed, values=values).select("nan").to_arrow()["nan"]
        assert stored.null_count == 0 and np.array_equal(stored.to_numpy(), plain["nan"][()], equal_nan=True)
    # Nothing is known about the attributes of other HDF5 files.
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["rec/x"] = np.array([1, -1, 3], "i2")
        file["rec/x"].attrs["_FillValue"] = np.int16(-1)
        file["rec/x"].attrs["scale_factor"] = 0.5
    for values, expected in ((None, [1, -1, 3]), ("stored", [1, -1, 3]), ("decoded", [0.5, np.nan, 1.5])):
        found = raddle.scan(tmp_path / "other.h5", values=values)["rec"].to_numpy()["x"]
        assert np.array_equal(found, expected, equal_nan=True)


def test_a_dimension_without_a_variable_is_not_a_column(packed, tmp_path):
    with raddle.scan(packed) as scan:
        assert scan["/"]._names() == ("t2m", "t", "u", "plain", "nan", "n")
    # Neither is a shorter column taken for the table.
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["rec/a"], file["rec/b"] = np.zeros(0), np.arange(5)
    for read in (lambda rows: list(rows.batches()), lambda rows: rows.to_arrow(), lambda rows: rows.to_numpy()):
        with pytest.raises(errors.UsageError, match="a has 0 rows and b has 5"):
            read(raddle.scan(tmp_path / "in.h5")["rec"].filter("b > 2"))


@pytest.mark.parametrize("mark", ["Conventions", "_NCProperties", "_Netcdf4Dimid"])
def test_files_are_recognised_as_for_a_merge(tmp_path, mark):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=[1.0, -9.0], maxshape=(None,))
        file["x"].make_scale("x")
        file["x"].attrs["missing_value"] = -9.0
        (file["x"] if mark == "_Netcdf4Dimid" else file).attrs[mark] = 0 if mark == "_Netcdf4Dimid" else "ACDD-1.3, CF-1.8"
    with pytest.raises(errors.InputError, match="missing_value = -9.0"):
        table(str(tmp_path / "in.h5")).sum("x")
    assert raddle.plan([tmp_path / "in.h5", tmp_path / "in.h5"], duplicates="keep", progress=False).convention.name == "cf"


def test_attributes_that_are_not_understood_are_refused(tmp_path):
    attributes = {
        "words": {"scale_factor": "0.1"}, "several": {"scale_factor": np.array([1.0, 2.0])}, "text": {"missing_value": "NA"},
        "flag": {"_Unsigned": 1},
    }  # fmt: skip
    with h5py.File(tmp_path / "in.nc", "w") as file:
        file.attrs["Conventions"] = "CF-1.8"
        for name, found in attributes.items():
            file[name] = np.arange(5, dtype="i2")
            file[name].attrs.update(found)
        file["station"] = np.array([b"here", b"-"])
        file["station"].attrs["_FillValue"] = np.bytes_("-")
        file["half"] = np.arange(5, dtype="f2")
        file["half"].attrs["_FillValue"] = np.float16(-1)
    for name in [*attributes, "station", "half"]:
        for values in (None, "decoded"):
            with pytest.raises(errors.InputError, match=f"/{name} has") as refused:
                table(str(tmp_path / "in.nc"), values=values).select(name).to_numpy()
            assert 'values="stored"' in str(refused.value)
        assert len(table(str(tmp_path / "in.nc"), values="stored").select(name).to_numpy()[name]) > 1
    with pytest.raises(errors.UsageError, match="not a choice"):
        raddle.scan(tmp_path / "in.nc", values="packed")


def test_values_that_only_libhdf5_can_read_are_not_decoded(packed, tmp_path):
    raddle.merge([packed, packed], tmp_path / "linked.nc", link="virtual", duplicates="keep", progress=False)
    path = str(tmp_path / "linked.nc")
    with pytest.raises(errors.InputError, match="scale_factor = 0.01"):
        table(path).select("t2m").to_numpy()
    with pytest.raises(errors.UsageError, match="stored"):
        table(path, values="decoded").select("t2m").to_numpy()
    assert np.array_equal(table(path, values="stored").select("t2m").to_numpy()["t2m"], np.tile(temperature()[0], 2))


def test_files_may_be_packed_differently(packed, tmp_path):
    other = write(tmp_path / "other.nc", {"t2m": ([1, 2, 3], 2, {"scale_factor": 2.5, "add_offset": 100.0})} | {
        "t": ([1.0, np.nan, 2.0], None, {}), "u": (np.array([255, 0, 1], "u1"), None, {}), "plain": (np.ones(3), None, {}),
        "nan": (np.ones(3), None, {}), "n": (np.ones(3, "i4"), None, {}),
    }, 3)  # fmt: skip
    with pytest.raises(errors.InputError, match="t2m is int16"):
        table([packed, other])
    with raddle.scan([packed, other], values="decoded") as scan:
        expected = np.concatenate([xr.load_dataset(path).t2m.values for path in (packed, other)])
        for scanned in (scan["/"], pickle.loads(pickle.dumps(scan["/"]))):
            assert np.array_equal(scanned.select("t2m").to_numpy()["t2m"], expected, equal_nan=True)
            assert np.array_equal(scanned.filter("t2m > 101").rows(), np.flatnonzero(expected > 101))
        # Missing in one of the files, and therefore in all.
        assert scan["/"].select("t").to_arrow()["t"].null_count == len(range(0, ROWS, 9)) + 1


def test_a_semi_join_uses_the_chosen_values(tmp_path):
    path = keyed(tmp_path / "all.nc")
    with pytest.raises(errors.InputError) as refused, raddle.scan(path) as scan:
        scan["trk"].where_event(scan["slc"].filter("e > 5")).count()
    check_refusal(refused.value, path, "slc/e", "scale_factor = 0.5")
    for values, factor in (("stored", 1), ("decoded", 0.5)):
        with raddle.scan(path, values=values) as scan:
            found = scan["trk"].where_event(scan["slc"].filter("e > 5")).select("evt").to_numpy()["evt"]
            assert np.array_equal(found, [event for event in range(20) if event * factor > 5])


def keyed(path):
    """Writes a file with two tables and keys that follows CF, one column of which is packed."""
    with h5py.File(path, "w") as file:
        file.attrs["Conventions"] = "CF-1.8"
        for name in ("slc", "trk"):
            file[f"{name}/evt"] = np.arange(20)
        file["slc/e"] = np.arange(20, dtype="i2")
        file["slc/e"].attrs["scale_factor"] = np.float32(0.5)
    added = python({**os.environ, "PYTHONPATH": str(PACKAGES)}, "-m", "raddle", "keys", "add", path, "--keys", "/slc/evt", "-q")
    assert added.returncode == 0, added.stderr
    return str(path)


def test_selected_events_satisfy_conditions_on_the_chosen_values(tmp_path, environment):
    path = keyed(tmp_path / "all.nc")
    with pytest.raises(errors.InputError) as refused:
        raddle.select(path, tmp_path / "skim.nc", where={"slc": col("e") > 5}, progress=False)
    check_refusal(refused.value, path, "slc/e", "scale_factor = 0.5")
    refused = python(environment, "-m", "raddle", "select", path, "--where", "slc: e > 5", "-o", tmp_path / "skim.nc")
    assert refused.returncode == 3 and "--values decoded" in refused.stderr and not (tmp_path / "skim.nc").exists()
    for values, factor in (("stored", 1), ("decoded", 0.5)):
        skim = tmp_path / f"{values}.nc"
        report = raddle.select(path, skim, where={"slc": col("e") > 5}, values=values, progress=False)
        expected = [event for event in range(20) if event * factor > 5]
        assert report.selected_events == len(expected)
        with h5py.File(skim) as file:
            assert np.array_equal(file["trk/evt"], expected) and np.array_equal(file["slc/e"], expected)
            assert json.loads(file["_raddle"].attrs["join"])["options"]["values"] == values
        raddle.verify(skim, against=path, progress=False)
    done = python(environment, "-m", "raddle", "select", path, "--where", "slc: e > 5", "--values", "decoded", "-o", tmp_path / "skim.nc")
    assert done.returncode == 0 and (tmp_path / "skim.nc").stat().st_size > 0


def drawn_variable(data, rows, dims=1):
    """Draws a variable as programs pack them, within the precision in which xarray recognises its fill values."""
    kind = data.draw(st.sampled_from(["i1", "u1", "i2", ">i2", "u2", "i4", "u4", "i8", "f4", ">f4", "f8"]), "type")
    dtype = np.dtype(kind)
    is_float = dtype.kind == "f"
    shape = (rows, 3)[:dims]
    random = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    spread = data.draw(st.sampled_from([2, 100, 30_000]), "spread")
    if is_float:
        values = random.normal(0, spread, shape).astype(dtype)
        values[random.random(shape) < 0.1] = np.nan
        if data.draw(st.booleans(), "is extreme"):
            values[random.random(shape) < 0.1] = np.inf
    else:
        limits = np.iinfo(dtype)
        values = random.integers(max(limits.min, -spread), min(limits.max, spread), shape, endpoint=True).astype(dtype)
    if data.draw(st.booleans(), "is sorted"):
        values = np.sort(values, axis=0)
    attributes = {}
    factor_type = data.draw(st.sampled_from(["f4", "f8"]), "type of factors")
    # xarray converts 64-bit floats to 32 bits before it compares them with a marker.
    factor_type = np.dtype("f8" if dtype.itemsize == 8 or kind in ("i4", "u4") else factor_type).type
    if data.draw(st.booleans(), "is scaled"):
        attributes["scale_factor"] = factor_type(data.draw(st.sampled_from([0.01, -0.25, 1.0, 3.7, 1e-9])))
    if data.draw(st.booleans(), "is shifted"):
        attributes["add_offset"] = factor_type(data.draw(st.sampled_from([0.0, 273.15, -1e4])))
    fill = None
    if data.draw(st.booleans(), "has a fill value"):
        fill = np.nan if is_float and data.draw(st.booleans()) else data.draw(st.sampled_from(list(values.reshape(-1)[:5])))
        fill = dtype.newbyteorder("=").type(fill)
    if fill is None and data.draw(st.booleans(), "has missing values"):
        attributes["missing_value"] = values.reshape(-1)[: data.draw(st.integers(1, 2))].astype(dtype.newbyteorder("="))
    # xarray swaps the bytes of a marker of big-endian integers of the other signedness, and rounds one of 64 bits.
    elif not is_float and kind not in (">i2", "i8") and data.draw(st.booleans(), "is of other signedness"):
        attributes["_Unsigned"] = "true" if dtype.kind == "i" else "false"
    return values, fill, attributes


@given(st.data())
def test_decoded_values_are_those_of_xarray(data):
    rows = data.draw(st.sampled_from([1, 40, 170]), "rows")
    variables = {"v": drawn_variable(data, rows), "w": drawn_variable(data, rows), "wide": drawn_variable(data, rows, 2)}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", xr.SerializationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        path = write(Path(folder) / "in.nc", variables, rows)
        if data.draw(st.booleans(), "is appended to"):
            more = write(Path(folder) / "more.nc", {name: (values[: rows // 2], *others) for name, (values, *others) in variables.items()}, rows // 2)
            path = str(Path(folder) / "all.nc")
            raddle.merge([Path(folder) / "in.nc", more], path, duplicates="keep", progress=False)
            raddle.append(path, [more], again=True, progress=False)
        if data.draw(st.booleans(), "has an index"):
            raddle.index(path, progress=False)
        with xr.open_dataset(path, decode_times=False, engine="netcdf4") as opened:
            expected = {name: opened[name].values for name in variables}
        with raddle.scan(path, values="decoded", threads=2) as scan:
            scanned = scan["/"].select(*variables)
            found = scanned.to_numpy()
            for name, values in expected.items():
                assert found[name].dtype.newbyteorder("=") == values.dtype.newbyteorder("="), name
                assert np.array_equal(found[name], values, equal_nan=True), name
            value = data.draw(st.sampled_from([*expected["v"][:3].tolist(), 0, 273.0, -1.5]), "value")
            one, other = expected["v"], expected["w"]
            for condition, rows_there in (
                (col("v") > value, one > value), (col("v") <= value, one <= value), (col("v") == value, one == value),
                (~(col("v") < value), ~(one < value)), (col("v") != value, one != value),
                ((col("v") > value) & (col("w") <= 0), (one > value) & (other <= 0)),
                (col("v") < col("w"), one.astype("f8") < other.astype("f8")),
            ):  # fmt: skip
                assert np.array_equal(scanned.filter(condition).rows(), np.flatnonzero(rows_there)), condition
                assert scanned.filter(condition).count() == rows_there.sum()
            matching = one[one > value]
            least = scanned.filter(col("v") > value).min("v")
            assert least == matching.min() if len(matching) else least is None
            total = scanned.max("v")
            assert total == one.max() or np.isnan(total) and np.isnan(one.max())
            arrow = scanned.to_arrow()
            for name, (_, fill, attributes) in variables.items():
                has_marker = fill is not None or "missing_value" in attributes
                flat = arrow[name].combine_chunks()
                flat = flat.flatten() if name == "wide" else flat
                assert flat.null_count == (np.isnan(expected[name]).sum() if has_marker and expected[name].dtype.kind == "f" else 0)


def test_an_index_excludes_blocks_of_decoded_values(tmp_path):
    stored = np.repeat(np.arange(10, dtype="i2"), 20_000)
    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", len(stored))
        for name, values, factor in (("down", stored, -0.5), ("zero", stored, 0.0), ("byte", (stored * 25).astype("u1").view("i1"), 2.0)):
            made = file.createVariable(name, values.dtype, ("x",), chunksizes=(20_000,))
            made.setncatts({"scale_factor": factor} | ({"_Unsigned": "true"} if name == "byte" else {}))
            made.set_auto_maskandscale(False)
            made[:] = values
    raddle.index(path, progress=False)
    with raddle.scan(path, values="decoded") as scan:
        for condition, excluded in (("down > -1", 8), ("byte >= 300", 6), ("zero > 1", 0)):
            explained = scan["/"].filter(condition).select("down").explain()
            assert bool(explained["pruned_blocks"]) == bool(excluded), explained
            assert explained["indexed_columns"] == ([] if excluded == 0 else [condition.split()[0]])
            assert scan["/"].filter(condition).count() == (0 if not excluded else 20_000 * (10 - excluded))
