"""OME-Zarr written by raddle, read by zarr-python and by readers of OME-Zarr, against numpy's results for the same
array."""

import itertools
import json
import shutil

import numpy as np
import ome_zarr.io
import ome_zarr.reader
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ome_zarr_models.v05 import Image
from ome_zarr_models.v05.bioformats2raw import BioFormats2Raw

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]


def numbers(shape, dtype, seed=3):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (random.standard_normal(shape) * 100).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def subsampled(array, space):
    return array[tuple(slice(None, None, 2) if halved else slice(None) for halved in space)]


def averaged(array, space):
    """Returns the mean of each cell: summed in array order, as float64 or exactly; for integers rounded to nearest,
    ties to even."""
    steps = [2 if halved and count > 1 else 1 for halved, count in zip(space, array.shape, strict=True)]
    exact = array.astype(object) if array.dtype.kind in "iu" else array.astype("f8")
    shape = [-(-count // step) for count, step in zip(array.shape, steps, strict=True)]
    sums = np.zeros(shape, exact.dtype)
    counts = np.zeros(shape, int)
    for offset in itertools.product(*(range(step) for step in steps)):
        of_cell = exact[tuple(slice(at, None, step) for at, step in zip(offset, steps, strict=True))]
        there = tuple(slice(0, count) for count in of_cell.shape)
        sums[there] += of_cell
        counts[there] += 1
    if array.dtype.kind == "f":
        return (sums / counts).astype(array.dtype)
    means = []
    for total, count in zip(sums.ravel(), counts.ravel(), strict=True):
        below, rest = divmod(int(total), int(count))
        means.append(below + (2 * rest > count or (2 * rest == count and below % 2 == 1)))
    return np.array(means, dtype=array.dtype).reshape(shape)


HALVED = {"subsample": subsampled, "average": averaged}


def levels_of(array, axes, method, count):
    made = [array]
    while len(made) < count:
        made.append(HALVED[method](made[-1], [axis in "zyx" for axis in axes]))
    return made


def assert_levels(group, array, axes, method):
    described = group.attrs["ome"]["multiscales"][0]
    assert [axis["name"] for axis in described["axes"]] == list(axes)
    assert described["type"] == method
    paths = [dataset["path"] for dataset in described["datasets"]]
    for path, want in zip(paths, levels_of(array, axes, method, len(paths)), strict=True):
        got = group[path]
        assert got.dtype == array.dtype and got.shape == want.shape
        assert got.metadata.dimension_names == tuple(axes)
        assert np.array_equal(got[...], want), path
    return paths


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("zarr")


@settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    shape=st.lists(st.integers(1, 17), min_size=2, max_size=5),
    dtype=st.sampled_from(TYPES),
    method=st.sampled_from(list(HALVED)),
    compress=st.sampled_from(["zstd", "zip", "none"]),
    data=st.data(),
)
def test_zarr_reads_what_numpy_makes(raddle, folder, shape, dtype, method, compress, data):
    array = numbers(shape, dtype)
    if data.draw(st.booleans()):  # large regions of the fill value, which are not stored
        array[tuple(slice(0, max(1, count // 2)) for count in shape)] = 0
    chunk = [data.draw(st.integers(1, 6)) for _ in shape]
    shard = [side * data.draw(st.integers(1, 4)) for side in chunk]
    axes = "tczyx"[-len(shape) :]
    most = 1 + max(count - 1 for count, axis in zip(shape, axes, strict=True) if axis in "zyx").bit_length()
    size = "x".join
    options = ["--chunk", size(map(str, chunk)), "--shard", size(map(str, shard)), "-c", compress, "--force", "-q"]
    options += ["--levels", data.draw(st.integers(1, most)), "--downsample", method]
    np.save(folder / "a.npy", array)
    raddle("idx", "write", folder / "a.npy", "-o", folder / "a.zarr", *options)
    group = zarr.open_group(folder / "a.zarr", mode="r", zarr_format=3)
    paths = assert_levels(group, array, axes, method)
    first = group[paths[0]]
    assert first.chunks == tuple(chunk) and first.shards == tuple(shard)
    Image.from_zarr(group)
    raddle("idx", "verify", folder / "a.zarr", "--against", folder / "a.npy", "-q")


def test_ome_zarr_opens_an_image(raddle, tmp_path):
    array = numbers((70, 100, 90), "f4")
    np.save(tmp_path / "rho.npy", array)
    options = ["--downsample", "average", "--spacing", "2,0.5,0.25", "--unit", "micrometer", "--chunk", "16x16x16"]
    raddle("idx", "write", tmp_path / "rho.npy", "-o", tmp_path / "rho.zarr", *options)
    (node,) = ome_zarr.reader.Reader(ome_zarr.io.parse_url(tmp_path / "rho.zarr"))()
    assert [axis["name"] for axis in node.metadata["axes"]] == ["z", "y", "x"]
    assert all(axis["unit"] == "micrometer" for axis in node.metadata["axes"])
    assert len(node.data) == 4
    for got, want in zip(node.data, levels_of(array, "zyx", "average", 4), strict=True):
        assert np.array_equal(np.asarray(got), want)
    scale, translation = node.metadata["coordinateTransformations"][2]
    assert scale["scale"] == [8, 2, 1] and translation["translation"] == [3, 0.75, 0.375]


def test_fields_become_images_and_components_an_axis(raddle, tmp_path):
    rho, velocity = numbers((20, 30, 25), "f8"), numbers((20, 30, 25, 3), "i2")
    np.save(tmp_path / "rho.npy", rho)
    np.save(tmp_path / "velocity.npy", velocity)
    out = tmp_path / "flow.zarr"
    raddle("idx", "write", tmp_path / "rho.npy", tmp_path / "rho.npy", "-o", out, "--name", "a,b", "--levels", 3)
    root = zarr.open_group(out, mode="r")
    assert root["OME"].attrs["ome"]["series"] == ["a", "b"]
    BioFormats2Raw.from_zarr(root)
    for name in ("a", "b"):
        assert_levels(root[name], rho, "zyx", "subsample")
    raddle("idx", "verify", out, "--against", tmp_path / "rho.npy", tmp_path / "rho.npy", "--name", "a,b")
    vector = tmp_path / "velocity.zarr"
    raddle("idx", "write", tmp_path / "velocity.npy", "--vector", "-o", vector, "--downsample", "average", "--levels", 3)
    group = zarr.open_group(vector, mode="r")
    assert_levels(group, np.moveaxis(velocity, -1, 0), "czyx", "average")
    Image.from_zarr(group)
    raddle("idx", "verify", vector, "--vector", "--against", tmp_path / "velocity.npy")


def test_time_steps_become_an_axis(raddle, tmp_path):
    steps = [numbers((12, 9, 10), "u2", seed) for seed in range(3)]
    names = [tmp_path / f"t{number}.npy" for number in range(3)]
    for name, array in zip(names, steps, strict=True):
        np.save(name, array)
    out = tmp_path / "t.zarr"
    raddle("idx", "write", *names, "-o", out, "--as", "steps", "--chunk", "4x4x4", "--levels", 2, "--name", "rho")
    group = zarr.open_group(out, mode="r")
    assert_levels(group, np.stack(steps), "tzyx", "subsample")
    Image.from_zarr(group)
    raddle("idx", "verify", out, "--as", "steps", "--against", *names, "--name", "rho")
    swapped = raddle("idx", "verify", out, "--as", "steps", "--against", *reversed(names), "--name", "rho", expect=8)
    assert "NOT EQUAL" in swapped.stdout


def test_time_steps_of_a_dataset_are_counted_from_0(raddle, tmp_path):
    steps = {step: numbers((6, 9, 10), "f4", step) for step in (5, 6, 9)}
    path, out = tmp_path / "s.idx", tmp_path / "s.zarr"
    for step, array in steps.items():
        np.save(tmp_path / f"{step}.npy", array)
        append = [] if step == 5 else ["--append"]
        raddle("idx", "write", tmp_path / f"{step}.npy", "-o", path, "--name", "rho", "--step", step, *append)
    raddle("idx", "write", path, "-o", out, "--chunk", "4x4x4", "--levels", 2)
    group = zarr.open_group(out, mode="r")
    assert_levels(group, np.stack(list(steps.values())), "tzyx", "subsample")
    assert group.attrs["raddle"]["steps"] == [5, 6, 9]
    Image.from_zarr(group)
    assert "equal: " in raddle("idx", "verify", out, "--against", path).stdout
    for step in steps:
        one = tmp_path / f"{step}.zarr"
        raddle("idx", "write", path, "-o", one, "--step", step)
        assert np.array_equal(zarr.open_group(one, mode="r")["0"][...], steps[step][np.newaxis])
        assert "equal: " in raddle("idx", "verify", one, "--against", path, "--step", step).stdout
        raddle("idx", "verify", one, "--against", path, expect=8)
        # The other time steps of the folder have no input.
        part = raddle("idx", "verify", out, "--against", tmp_path / f"{step}.npy", "--name", "rho", "--step", step, expect=8)
        assert "NOT COMPARED" in part.stdout and str(step) not in part.stdout.splitlines()[-1].split()
    other = raddle("idx", "verify", out, "--against", tmp_path / "5.npy", "--name", "rho", "--step", 9, expect=8)
    assert "differ" in other.stdout
    absent = raddle("idx", "verify", out, "--against", tmp_path / "5.npy", "--name", "rho", "--step", 7, expect=8)
    assert "without time step 7; available: 5 to 6, 9" in absent.stderr
    assert "no time step 7" in raddle("idx", "write", path, "-o", tmp_path / "7.zarr", "--step", 7, expect=3).stderr


def test_a_dataset_and_a_folder_have_the_same_stem(raddle, tmp_path):
    array = numbers((8, 9), "f4")
    np.save(tmp_path / "a.npy", array)
    path, out = tmp_path / "rho.idx", tmp_path / "rho.zarr"
    raddle("idx", "write", tmp_path / "a.npy", "-o", path, "--name", "f")
    for _ in range(2):
        raddle("idx", "write", path, "-o", out, "--force")
        assert np.array_equal(zarr.open_group(out, mode="r")["0"][...], array)
        raddle("idx", "verify", path, "--against", tmp_path / "a.npy", "--name", "f")
    # The blocks of this dataset lie where the folder would be.
    (tmp_path / "rho").rename(tmp_path / "blocks.zarr")
    path.write_text(path.read_text().replace("./rho/", "./blocks.zarr/"))
    refused = raddle("idx", "write", path, "-o", tmp_path / "blocks.zarr", "--force", expect=5).stderr
    assert "has its blocks" in refused
    raddle("idx", "verify", path, "--against", tmp_path / "a.npy", "--name", "f")


def test_info_and_verify_tell(raddle, tmp_path):
    np.save(tmp_path / "a.npy", numbers((40, 40), "u1"))
    out = tmp_path / "a.zarr"
    raddle("idx", "write", tmp_path / "a.npy", "-o", out, "--chunk", "8x8", "--shard", "16x16")
    message = json.loads(raddle("idx", "info", out, "--json").stdout)
    (image,) = message["images"]
    assert (image["axes"], image["dtype"], image["downsample"]) == ("yx", "uint8", "subsample")
    assert [level["shape"] for level in image["levels"]] == [[40, 40], [20, 20], [10, 10], [5, 5]]
    assert "whole" in raddle("idx", "verify", out).stdout
    shard = out / "0/c/1/1"
    bytes_before = shard.read_bytes()
    for at in (0, len(bytes_before) // 2, len(bytes_before) - 1):
        damaged = bytearray(bytes_before)
        damaged[at] ^= 8
        shard.write_bytes(damaged)
        message = raddle("idx", "verify", out, expect=8).stdout
        assert "DAMAGED" in message and "0/c/1/1" in message
    shard.unlink()
    assert "were written" in raddle("idx", "verify", out, expect=8).stdout
    assert "zarr-python" in raddle("idx", "read", out, "-o", tmp_path / "b.npy", expect=3).stderr


def test_a_folder_of_another_writer_is_read_or_refused_by_name(raddle, tmp_path):
    array = numbers((20, 30), "i4")
    ome = {"version": "0.5", "multiscales": [{"axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]}]}
    scale = [{"type": "scale", "scale": [1, 1]}]
    ome["multiscales"][0]["datasets"] = [{"path": "full", "coordinateTransformations": scale}]
    out = tmp_path / "other.zarr"
    group = zarr.create_group(out, attributes={"ome": ome})
    group.create_array("full", data=array, chunks=(5, 5), shards=(10, 10))
    assert "whole" in raddle("idx", "verify", out).stdout
    shutil.rmtree(out / "full")
    group.create_array("full", data=array, chunks=(5, 5), compressors=zarr.codecs.BloscCodec())
    refused = raddle("idx", "verify", out, expect=3).stderr
    assert "sharding_indexed" in refused and "full/zarr.json" in refused


def test_damaged_metadata_is_found(raddle, tmp_path):
    np.save(tmp_path / "a.npy", numbers((20, 30), "i4"))
    out = tmp_path / "a.zarr"
    raddle("idx", "write", tmp_path / "a.npy", "-o", out, "--chunk", "8x8")
    metadata = out / "1/zarr.json"
    written = json.loads(metadata.read_text())
    assert written["shape"] == [10, 15]
    for shape in ([10, 95], [10, 10]):
        metadata.write_text(json.dumps(written | {"shape": shape}))
        assert "levels do not follow" in raddle("idx", "verify", out, expect=8).stdout
    metadata.write_text(json.dumps(written | {"chunk_grid": written["chunk_grid"] | {"name": "rectilinear"}}))
    assert "chunk grid of" in raddle("idx", "verify", out, expect=3).stderr


INSIDE = ["codecs", 0, "configuration"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ([*INSIDE, "codecs", 1, "configuration", "levl"], 3),
        ([*INSIDE, "codecs", 1, "configuration", "level"], "fast"),
        ([*INSIDE, "codecs", 1, "configuration", "level"], 99),
        ([*INSIDE, "codecs", 1, "configuration", "checksum"], "no"),
        ([*INSIDE, "codecs", 1], {"name": "zstd"}),
        ([*INSIDE, "codecs", 0, "configuration", "endain"], "little"),
        ([*INSIDE, "index_codecs", 0, "configuration", "x"], 1),
        ([*INSIDE, "chunk_shpe"], [8, 8]),
        (["chunk_grid", "configuration", "x"], 1),
        (["chunk_key_encoding", "configuration", "x"], 1),
        (["extra"], {"must_understand": True}),
        (["extra"], 1),
        (["storage_transformers"], [{"name": "x"}]),
        (["dimension_names"], ["x"]),
        # The rest is valid.
        ([*INSIDE, "codecs", 1, "configuration", "level"], -3),
        ([*INSIDE, "codecs", 1, "configuration"], {}),
        (["extra"], {"must_understand": False}),
        (["dimension_names"], None),
    ],
)
def test_metadata_that_zarr_refuses_is_refused(raddle, tmp_path, place, value):
    array = numbers((20, 30), "i4")
    np.save(tmp_path / "a.npy", array)
    out = tmp_path / "a.zarr"
    raddle("idx", "write", tmp_path / "a.npy", "-o", out, "--chunk", "8x8", "-c", "zstd")
    metadata = out / "0/zarr.json"
    node = json.loads(metadata.read_text())
    within = node
    for step in place[:-1]:
        within = within[step]
    within[place[-1]] = value
    metadata.write_text(json.dumps(node))
    try:
        is_valid = np.array_equal(zarr.open_array(out / "0", mode="r")[:], array)
    except (TypeError, ValueError):
        is_valid = False
    verified = raddle("idx", "verify", out, expect=0 if is_valid else 3)
    shown = raddle("idx", "info", out, expect=0 if is_valid else 3)
    if not is_valid:
        named = place[-1] if isinstance(place[-1], str) else value["name"]
        assert all("0/zarr.json" in done.stderr and named in done.stderr for done in (verified, shown))


def test_a_folder_of_version_2_is_refused_by_name(raddle, tmp_path):
    out = tmp_path / "old.zarr"
    zarr.create_group(out, zarr_format=2).create_array("0", data=numbers((20, 30), "i4"))
    for command in (["info", out], ["verify", out]):
        assert "Zarr version 2" in raddle("idx", *command, expect=3).stderr


def test_what_cannot_be_written_says_why(raddle, tmp_path):
    np.save(tmp_path / "line.npy", np.arange(9.0))
    np.save(tmp_path / "a.npy", numbers((8, 8, 8), "f4"))
    write = ["idx", "write", tmp_path / "a.npy", "-o"]
    for axes in ([], ["--axes", "y"]):
        one_axis = raddle("idx", "write", tmp_path / "line.npy", "-o", tmp_path / "l.zarr", *axes, expect=2).stderr
        assert "samples on 1 axis" in one_axis and "2 to 5 axes" in one_axis and "name 1 of" not in one_axis
    zarr_option = raddle(*write, tmp_path / "a.idx", "--chunk", "4x4x4", expect=2).stderr
    assert "--chunk" in zarr_option and "OME-Zarr" in zarr_option
    assert "--append" in raddle(*write, tmp_path / "a.zarr", "--append", expect=2).stderr
    assert "whole chunks" in raddle(*write, tmp_path / "a.zarr", "--chunk", "4x4x4", "--shard", "6x8x8", expect=2).stderr
    assert "lz4" in raddle(*write, tmp_path / "a.zarr", "-c", "lz4", expect=2).stderr
    assert "single rank" in raddle(*write, tmp_path / "a.zarr", "--phases", "one", expect=2).stderr
    assert "--step" in raddle(*write, tmp_path / "a.zarr", "--step", 4, expect=2).stderr
    raddle(*write, tmp_path / "a.zarr")
    assert "exists" in raddle(*write, tmp_path / "a.zarr", expect=5).stderr
    (tmp_path / "a.zarr/notes.txt").write_text("mine")
    raddle(*write, tmp_path / "a.zarr", "--force", expect=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "a.zarr", "line.npy"]
