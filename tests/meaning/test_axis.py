"""Merges of plain HDF5 along any axis: by number (``--axis``), by dimension scale (``--dim``), and along a new one
(``--new-dim``). numpy and xarray judge the outputs."""

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples

MERGING = Merging("axis", None)


def axis_of(number, rank):
    """Returns the axis of a number in a dataset of some rank, or None."""
    axis = number + rank if number < 0 else number
    return axis if 0 <= axis < rank else None


def datasets(path):
    """Returns the values of all datasets of a file, by path."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return {name: value for name, value in found.items() if not name.startswith("_raddle")}


def judge_axis(output, inputs, number):
    """Every dataset with the axis is numpy's concatenation; all others are those of every input."""
    parts, merged = [datasets(path) for path in inputs], datasets(output)
    assert merged.keys() == parts[0].keys()
    for name, value in merged.items():
        axis = axis_of(number, np.ndim(parts[0][name]))
        if axis is None:
            for part in parts:
                np.testing.assert_array_equal(value, part[name], name)
        else:
            wanted = np.concatenate([part[name] for part in parts], axis)
            np.testing.assert_array_equal(value, wanted, name)
            assert (value.shape, value.dtype) == (wanted.shape, parts[0][name].dtype)


def write(path, values, **storage):
    with h5py.File(path, "w") as file:
        for name, value in values.items():
            file.create_dataset(name, data=value, **(storage if np.ndim(value) else {}))
    return path


@examples(25)
@given(st.data())
def test_any_axis_of_any_shape(data):
    number = data.draw(st.integers(-3, 2))
    count = data.draw(st.integers(1, 4))
    storage = data.draw(st.sampled_from([{}, {"chunks": True}, {"chunks": True, "compression": "gzip"}]))
    kind = data.draw(st.sampled_from(["f8", "i2", "u1", ">f4", "S3"]))
    shapes = data.draw(st.lists(st.lists(st.integers(1, 5), max_size=4), min_size=1, max_size=4))
    lengths = [data.draw(st.lists(st.integers(1, 6), min_size=count, max_size=count)) for _ in shapes]
    options = data.draw(st.sampled_from([(), ("--contiguous",), ("--for", "scan"), ("--memory", "64MiB", "--jobs", "3")]))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    parts = []
    for part in range(count):
        values = {"g/scalar": np.float64(3)}
        for at, (shape, along) in enumerate(zip(shapes, lengths)):
            axis, shape = axis_of(number, len(shape)), list(shape)
            if axis is not None:
                shape[axis] = along[part]
                values[f"g/d{at}"] = random.integers(0, 100, shape).astype(kind)
            elif shape:
                values[f"g/d{at}"] = np.ones(shape, kind)
        parts.append(values)
    with case_folder() as folder:
        inputs = [write(folder / f"{part}.h5", values, **storage) for part, values in enumerate(parts)]
        MERGING.equal(inputs, f"--axis={number}", *options, judge=judge_axis, number=number)


def test_a_file_is_verified_by_its_inputs_and_its_digests(tmp_path, raddle):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.arange(6.0).reshape(3, 2) + n, "b": np.ones(4)}) for n in range(3)]
    output = MERGING.equal(inputs, "--axis", "-1", judge=judge_axis, number=-1)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    with h5py.File(output, "a") as file:
        file["a"][2, 3] = -1
    for against in ([], ["--against", *inputs]):
        assert "/a" in raddle("verify", output, *against, expect=8).stdout


def test_parts_and_threads_write_the_same_bytes(tmp_path, raddle):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.arange(600.0).reshape(30, 20) * n, "b": np.ones(4)}) for n in range(3)]
    whole = MERGING.equal(inputs, "--axis", "1", "--chunk", "7x9", "--jobs", "1", judge=judge_axis, number=1)
    threads = MERGING.equal(inputs, "--axis", "1", "--chunk", "7x9", "--jobs", "4", judge=judge_axis, number=1)
    parts = tmp_path / "parts.h5"
    for part in ("2/2", "1/2"):
        raddle("merge", *inputs, "-o", parts, "--axis", "1", "--chunk", "7x9", "--part", part)
    assert whole.read_bytes() == threads.read_bytes() == parts.read_bytes()


def test_datasets_without_the_axis_must_be_equal(tmp_path):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.ones((2, n + 1)), "b": np.full(3, n), "c": np.ones(3)}) for n in range(2)]
    names = ["/b", "element 0 is 0", "element 0 is 1", "without an axis 1", "--rule"]
    MERGING.refused(inputs, "--axis", "1", names=names)
    output = MERGING.equal(inputs, "--axis", "1", "--rule", "/b: concatenate", judge=None)
    with h5py.File(output) as merged:
        assert merged["b"][:].tolist() == [0, 0, 0, 1, 1, 1] and merged["c"].shape == (3,)


def test_other_dimensions_must_be_equal(tmp_path):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.ones((2 + n, 3, 4))}) for n in range(2)]
    MERGING.refused(inputs, "--axis", "1", names=["/a", "(2, rows, 4)", "(3, rows, 4)"])
    ranks = [write(tmp_path / f"r{n}.h5", {"a": np.ones((2,) * (n + 2))}) for n in range(2)]
    MERGING.refused(ranks, "--axis", "1", names=["/a", "2", "3"])
    MERGING.refused(ranks, "--axis", "-1", names=["/a", "axis 1", "axis 2"])


def test_strings_of_any_length_have_one_axis(tmp_path):
    inputs = [tmp_path / f"{n}.h5" for n in range(2)]
    for path in inputs:
        with h5py.File(path, "w") as file:
            file["names"] = np.array([["a", "bc"]], object)
    MERGING.refused(inputs, "--axis", "1", names=["/names", "axis 0"])


def test_a_file_that_grew_along_another_axis_is_not_appended_to(tmp_path, raddle):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.ones((2, n + 1))}) for n in range(3)]
    output = MERGING.equal(inputs[:2], "--axis", "1", judge=judge_axis, number=1)
    before = output.read_bytes()
    finished = raddle("append", output, inputs[2], expect=3)
    assert "/a" in finished.stderr and "merge all inputs again" in finished.stderr
    assert output.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--axis", "1", "--dim", "x"], "--dim"), (["--axis", "0", "--new-dim", "x"], "--new-dim"),
        (["--axis", "1", "--keys", "/a/id"], "--keys"), (["--new-dim", "x", "--keys", "/a/id"], "--keys"),
        (["--axis", "1", "--union"], "--union"), (["--axis", "1", "--link", "external"], "external"),
        (["--axis", "first"], "number"), (["--axis", "1.5"], "number"),
    ],
)  # fmt: skip
def test_options_that_exclude_each_other(tmp_path, raddle, options, message):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.ones((2, n + 1))}) for n in range(2)]
    finished = raddle("merge", *inputs, "-o", tmp_path / "out.h5", *options, expect=2)
    assert message in finished.stderr and not (tmp_path / "out.h5").exists()


def with_scales(path, part, axes=("y", "x"), count=3, **more):
    """Writes a file with dimension scales made by h5py; x continues from file to file."""
    random = np.random.default_rng(part)
    with h5py.File(path, "w") as file:
        sizes = {"y": 2, "x": count, "z": 4}
        file["x"] = part * 10.0 + np.arange(count)
        file["y"] = np.arange(2.0)
        file["z"] = np.arange(4.0)
        for name in sizes:
            file[name].make_scale(name)
        shapes = {"field": axes, "across": axes[::-1], "deep": ("z", *axes), "of_x": ("x",), "of_y": ("y",), **more}
        for name, dims in shapes.items():
            shape = [sizes[dim] for dim in dims]
            file[name] = np.arange(2) * 1.0 if dims == ("y",) else random.random(shape)
            for axis, dim in enumerate(dims):
                file[name].dims[axis].attach_scale(file[dim])
    return path


def judge_by_xarray(output, inputs, dim="x"):
    parts = [xr.open_dataset(path) for path in inputs]
    wanted = xr.concat(parts, dim, data_vars="minimal", coords="minimal", compat="equals", join="exact")
    with xr.open_dataset(output) as merged:
        merged = merged.drop_vars([name for name in merged.variables if name.startswith("_raddle")])
        xr.testing.assert_equal(merged, wanted)
    for part in parts:
        part.close()


def judge_scales(output, inputs):
    """Every axis has the scale that it has in the first input, and both lists agree."""
    with h5py.File(output) as merged, h5py.File(inputs[0]) as first:
        for name, item in first.items():
            scales = [[scale.name for scale in axis.values()] for axis in item.dims]
            assert [[scale.name for scale in axis.values()] for axis in merged[name].dims] == scales, name
            if item.is_scale:
                for place, axis in merged[name].attrs["REFERENCE_LIST"]:
                    assert merged[name].shape[0] == merged[place].shape[axis]


@pytest.mark.parametrize("option", [("--dim", "x"), ("--dim", "/x"), ("--axis", "-1")])
def test_dimension_scales(tmp_path, raddle, option):
    """A dimension is followed wherever it is; by number, the scales of the axis and everything along them follow."""
    inputs = [with_scales(tmp_path / f"{part}.h5", part, count=3 + part) for part in range(3)]
    if "--axis" in option:
        for path in inputs:
            with h5py.File(path, "a") as file:
                for name in ["across", "of_y"]:
                    for dim, axis in zip(("x", "y") if name == "across" else ("y",), file[name].dims):
                        axis.detach_scale(file[dim])
                    del file[name]
    output = MERGING.equal(inputs, *option, judge=judge_by_xarray)
    judge_scales(output, inputs)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)


def test_a_number_that_contradicts_scales_is_refused(tmp_path):
    """``field`` has x on its last axis, ``across`` on its first."""
    inputs = [with_scales(tmp_path / f"{part}.h5", part) for part in range(2)]
    MERGING.refused(inputs, "--axis", "1", names=["/across", "/x", "/field", "axis 1", "--dim"])


def test_all_scales_of_an_axis_follow_it(tmp_path):
    inputs = [tmp_path / f"{part}.h5" for part in range(2)]
    for part, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["a"] = np.ones((2, 3)) * part
            for name in ["first", "second"]:
                file[name] = np.arange(3.0) + 3 * part
                file[name].make_scale(name)
                file["a"].dims[1].attach_scale(file[name])
    for name in ["first", "second"]:
        output = MERGING.equal(inputs, "--dim", name, judge=None)
        with h5py.File(output) as merged:
            assert merged["a"].shape == (2, 6)
            assert merged["first"][:].tolist() == merged["second"][:].tolist() == [0, 1, 2, 3, 4, 5]
    output = MERGING.equal(inputs, "--axis", "1", judge=None)
    with h5py.File(output) as merged:
        assert merged["a"].shape == (2, 6) and merged["second"].shape == (6,)


def test_a_dimension_that_is_not_there(tmp_path):
    inputs = [with_scales(tmp_path / f"{part}.h5", part) for part in range(2)]
    MERGING.refused(inputs, "--dim", "t", names=["no dimension", "--dim", "/x, /y, /z"])
    plain = [write(tmp_path / f"p{n}.h5", {"a": np.ones((2, 3))}) for n in range(2)]
    MERGING.refused(plain, "--dim", "x", names=["no dimension scales", "--dim", "--axis"])


def test_a_dimension_on_two_axes_is_refused(tmp_path):
    inputs = [with_scales(tmp_path / f"{part}.h5", part, square=("x", "x")) for part in range(2)]
    MERGING.refused(inputs, "--dim", "x", names=["/square", "two axes along /x", "--exclude"])


def judge_stack(output, inputs, name):
    parts, merged = [datasets(path) for path in inputs], datasets(output)
    assert merged.keys() == parts[0].keys()
    for path, value in merged.items():
        np.testing.assert_array_equal(value, np.stack([part[path] for part in parts]), path)
    with h5py.File(output) as file, h5py.File(inputs[0]) as first:
        for path in merged:
            labels = [axis.label for axis in file[path].dims]
            assert labels == [name, *(axis.label for axis in first[path].dims)], path


@examples(20)
@given(st.data())
def test_stacks_of_any_shape(data):
    shapes = data.draw(st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=4))
    kind = data.draw(st.sampled_from(["f8", "i2", ">u4", "S3", "texts"]))
    storage = data.draw(st.sampled_from([{}, {"compression": "gzip"}]))
    name = data.draw(st.sampled_from(["run", "größe"]))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    with case_folder() as folder:
        inputs = [folder / f"{part}.h5" for part in range(data.draw(st.integers(1, 4)))]
        for path in inputs:
            with h5py.File(path, "w") as file:
                for at, shape in enumerate(shapes):
                    values = random.integers(0, 100, shape)
                    dtype = h5py.string_dtype() if kind == "texts" else kind
                    values = np.array(values).astype(str if kind == "texts" else kind).astype(dtype)
                    chosen = storage if shape and 0 not in shape else {}
                    file.create_dataset(f"g/d{at}", data=values, dtype=dtype, **chosen)
                    if len(shape) > 1:
                        file[f"g/d{at}"].dims[1].label = "width"
        MERGING.equal(inputs, "--new-dim", name, judge=judge_stack, name=name)


def test_a_stack_is_verified_and_not_appended_to(tmp_path, raddle):
    inputs = [write(tmp_path / f"{n}.h5", {"a": np.full((2, 3), n), "s": float(n)}) for n in range(3)]
    output = MERGING.equal(inputs[:2], "--new-dim", "run", judge=judge_stack, name="run")
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs[:2])
    before = output.read_bytes()
    finished = raddle("append", output, inputs[2], expect=3)
    assert "--new-dim" in finished.stderr and "merge all inputs again" in finished.stderr, finished.stderr
    assert output.read_bytes() == before


def test_files_with_scales_are_stacked_by_a_scalar(tmp_path, raddle):
    """netCDF readers require a scale for all axes of a dataset or for none, so that the new axis needs one too."""
    inputs = [with_scales(tmp_path / f"{part}.h5", 0) for part in range(3)]
    MERGING.refused(inputs, "--new-dim", "run", names=["no scalar", "run"])
    for part, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            file["run"] = 100 + part
            file["field"][:] += part
    output = MERGING.equal(inputs, "--new-dim", "run", judge=None)
    with xr.open_dataset(output) as merged:
        assert merged["run"].values.tolist() == [100, 101, 102] and merged["run"].dims == ("run",)
        assert merged["field"].dims == ("run", "y", "x") and merged["x"].dims == ("x",)
        for part, path in enumerate(inputs):
            with xr.open_dataset(path) as one:
                np.testing.assert_array_equal(merged["field"][part], one["field"])
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("number", [0, 1])
def test_numbers_of_axes_of_anndata(tmp_path, number):
    """As ``anndata.concat(axis=0)`` and ``axis=1``."""
    anndata = pytest.importorskip("anndata")
    inputs = [tmp_path / f"{part}.h5ad" for part in range(2)]
    parts = []
    for part, path in enumerate(inputs):
        names = [[f"c{part if number == 0 else 0}{n}" for n in range(2)], [f"g{part if number else 0}{n}" for n in range(3)]]
        parts.append(anndata.AnnData(np.full((2, 3), part, "f4"), {"_index": names[0]}, {"_index": names[1]}))
        parts[-1].obs_names, parts[-1].var_names = names
        parts[-1].obs, parts[-1].var = parts[-1].obs[[]], parts[-1].var[[]]
        parts[-1].write_h5ad(path)
    output = MERGING.equal(inputs, "--axis", number, judge=None)
    wanted = anndata.concat(parts, axis=number)
    merged = anndata.read_h5ad(output)
    np.testing.assert_array_equal(merged.X, wanted.X)
    assert merged.obs_names.tolist() == wanted.obs_names.tolist() and merged.var_names.tolist() == wanted.var_names.tolist()


def test_netcdf_names_its_dimensions(tmp_path):
    inputs = [tmp_path / f"{part}.nc" for part in range(2)]
    for part, path in enumerate(inputs):
        dataset = xr.Dataset({"a": (("y", "x"), np.ones((2, 3)))}, {"x": np.arange(3.0) + 3 * part})
        dataset.to_netcdf(path, unlimited_dims=["x"])
    MERGING.refused(inputs, "--axis", "1", names=["--axis", "--dim", "--convention none"])
    MERGING.equal(inputs, "--dim", "x", judge=judge_by_xarray)


@pytest.mark.parametrize("option", ["--axis=1", "--new-dim=run"])
def test_regions_of_other_axes_are_refused(tmp_path, option):
    """Region references are only shifted along the first axis."""
    inputs = [tmp_path / f"{part}.h5" for part in range(2)]
    for part, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["a"] = np.ones((2, 3))
            file.create_dataset("of", data=np.array([[file["a"].regionref[0:1, 1:2]]], h5py.regionref_dtype))
    MERGING.refused(inputs, option, "--rule", "/of: concatenate", names=["/of", "region references", "--exclude"])


def test_a_name_with_commas_is_one_dimension(tmp_path, raddle):
    inputs = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["x,y"] = np.arange(3.0) + 3 * number
            file["x,y"].make_scale("x,y")
            file["values"] = np.arange(6).reshape(2, 3)
            file["values"].dims[1].attach_scale(file["x,y"])
    output = tmp_path / "output.h5"
    raddle("merge", *inputs, "-o", output, "--dim", "x,y")
    with h5py.File(output) as merged:
        assert merged["x,y"][:].tolist() == [0, 1, 2, 3, 4, 5]
        assert merged["values"][:].tolist() == [[0, 1, 2] * 2, [3, 4, 5] * 2]
    MERGING.refused(inputs, "--dim", "x,z", names=['"x"', "/x,y"])
