"""Compares OpenVisus, the usual IDX reader, with raddle in both directions, at every resolution.

Skipped if OpenVisus is not installed: there are wheels for CPython 3.11 only.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

os.environ.setdefault("VISUS_DISABLE_WRITE_LOCK", "1")
openvisus = pytest.importorskip("OpenVisus", reason="OpenVisus is not installed (pip install OpenVisusNoGui)")

# numpy shapes, z first.
SHAPES = [(22, 36, 22), (34, 34, 34), (45, 70), (41, 19, 90)]
TYPES = {"float32": ("f4", 1), "uint8": ("u1", 1), "float64[3]": ("f8", 3), "int16": ("i2", 1)}


def array_of(shape, sample):
    dtype, count = TYPES[sample]
    random = np.random.default_rng(7)
    full = shape + ((count,) if count > 1 else ())
    return (random.random(full) * 200).astype(dtype)


def spacing(bitmask, resolution, rank):
    """Returns the distance of samples at a resolution, z first."""
    return [2 ** bitmask[resolution + 1 :].count(str(axis)) for axis in reversed(range(rank))]


def at_resolution(array, bitmask, resolution, rank):
    return array[tuple(slice(None, None, step) for step in spacing(bitmask, resolution, rank))]


@pytest.fixture
def write(raddle, tmp_path):
    """Writes an array as field ``a`` of a dataset: ``write(path, array, "float32", "rows", "zip")``."""

    def run(path, array, sample, order, compression):
        source = tmp_path / "a.npy"
        np.save(source, array)
        vector = ["--vector"] if TYPES[sample][1] > 1 else []
        layout = ["--order", order, "-c", compression, "--bits-per-block", 9, "--blocks-per-file", 16]
        raddle("idx", "write", source, "-o", path, *vector, *layout, "--quiet")

    return run


def bits_of(path):
    lines = path.read_text().splitlines()
    return lines[lines.index("(bits)") + 1]


@pytest.mark.parametrize("compression", ["none", "zip", "lz4"])
@pytest.mark.parametrize("order", ["hz", "rows"])
@pytest.mark.parametrize(("shape", "sample"), list(zip(SHAPES, TYPES, strict=True)))
def test_openvisus_reads_what_raddle_writes(write, tmp_path, shape, sample, order, compression):
    array = array_of(shape, sample)
    path = tmp_path / "data.idx"
    write(path, array, sample, order, compression)
    dataset = openvisus.LoadDataset(str(path))
    bitmask = bits_of(path)
    for resolution in range(len(bitmask)):
        want = at_resolution(array, bitmask, resolution, len(shape))
        got = dataset.read(max_resolution=resolution)
        assert got is not None and got.size == want.size, resolution
        assert np.array_equal(np.asarray(got).reshape(want.shape), want), resolution


@pytest.mark.parametrize("compression", ["none", "zip", "lz4"])
@pytest.mark.parametrize("order", ["hz", "rows"])
@pytest.mark.parametrize(("shape", "sample"), list(zip(SHAPES, TYPES, strict=True)))
def test_raddle_reads_what_openvisus_writes(raddle, tmp_path, shape, sample, order, compression):
    array = array_of(shape, sample)
    path = tmp_path / "data.idx"
    field = openvisus.Field("a", sample)
    field.default_layout = "hzorder" if order == "hz" else ""
    if compression != "none":
        field.default_compression = compression
    dataset = openvisus.CreateIdx(
        url=str(path), dims=list(reversed(shape)), fields=[field], bitsperblock=9, blocksperfile=16
    )
    dataset.write(array)
    if compression != "none":
        dataset.compressDataset([compression])
    bitmask = bits_of(path)
    for resolution in range(len(bitmask)):
        want = at_resolution(array, bitmask, resolution, len(shape))
        back = tmp_path / "back.npy"
        raddle("idx", "read", path, "-o", back, "-f", "--field", "a", "--resolution", resolution)
        got = np.load(back)
        assert got.dtype == array.dtype and np.array_equal(got, want), resolution


# raddle's option and OpenVisus's name; the largest allowed error of values, `None` for a thousandth of the largest.
ZFP = {
    "zfp": ("zfp-reversible-reversible", 0),
    "zfp:accuracy=0.01": ("zfp-accuracy=0.01-accuracy=0.01", 0.01),
    "zfp:precision=20": ("zfp-precision=20-precision=20", None),
}


def waves(shape, dtype):
    """Returns values that zfp can compress; for integers it keeps the highest bits."""
    largest = {"int32": 2**28, "int64": 2**60}.get(dtype, 1000)
    grids = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij")
    return (largest * np.sin(sum(grid / (7 + axis) for axis, grid in enumerate(grids)))).astype(dtype)


def codings(path):
    """Counts the blocks of each coding in the files."""
    found = {}
    for file in path.with_suffix("").glob("**/*.bin"):
        for record in np.frombuffer(file.read_bytes()[40 : 40 * 17], ">u4").reshape(-1, 10):
            if record[4]:
                found[int(record[5]) & 15] = found.get(int(record[5]) & 15, 0) + 1
    return found


# zfp supports accuracies of floating-point numbers only.
TYPES_AND_MODES = [
    (dtype, mode)
    for dtype in ("float32", "float64", "int32", "int64")
    for mode in ZFP
    if "accuracy" not in mode or dtype.startswith("float")
]


@pytest.mark.parametrize("order", ["hz", "rows"])
@pytest.mark.parametrize("shape", [(22, 36, 22), (45, 70)])
@pytest.mark.parametrize(("dtype", "mode"), TYPES_AND_MODES)
def test_zfp_in_both_directions(raddle, tmp_path, dtype, shape, order, mode):
    """Both read the output of either, bit by bit the same, and within the requested error."""
    name, tolerance = ZFP[mode]
    array = waves(shape, dtype)
    np.save(tmp_path / "a.npy", array)
    ours, theirs = tmp_path / "ours.idx", tmp_path / "theirs.idx"
    layout = ["--order", order, "-c", mode, "--bits-per-block", 9, "--blocks-per-file", 16]
    raddle("idx", "write", tmp_path / "a.npy", "-o", ours, *layout, "--quiet")
    field = openvisus.Field("a", dtype)
    field.default_layout, field.default_compression = "hzorder" if order == "hz" else "", name
    dataset = openvisus.CreateIdx(
        url=str(theirs), dims=list(reversed(shape)), fields=[field], bitsperblock=9, blocksperfile=16
    )
    dataset.write(array)
    dataset.compressDataset([name])
    for path in (ours, theirs):
        assert codings(path).get(8, 0) > 0.8 * sum(codings(path).values()), codings(path)
        dataset, bitmask = openvisus.LoadDataset(str(path)), bits_of(path)
        for resolution in range(len(bitmask)):
            want = at_resolution(array, bitmask, resolution, len(shape))
            raddle("idx", "read", path, "-o", tmp_path / "back.npy", "-f", "--resolution", resolution)
            got = np.load(tmp_path / "back.npy")
            of_openvisus = np.asarray(dataset.read(max_resolution=resolution)).reshape(want.shape)
            assert got.dtype == want.dtype and np.array_equal(got, of_openvisus), (path, resolution)
            distance = np.abs(got.astype("f8") - want.astype("f8")).max()
            assert distance <= (1e-3 * np.abs(array).max() if tolerance is None else tolerance), (path, resolution, distance)


def test_plain_zfp_of_openvisus_is_read_as_it_was_written(raddle, tmp_path):
    """OpenVisus writes every bit, but reads 64 bit planes, which gives other values."""
    array, path = waves((22, 36, 22), "float32"), tmp_path / "a.idx"
    field = openvisus.Field("a", "float32")
    dataset = openvisus.CreateIdx(url=str(path), dims=[22, 36, 22], fields=[field], bitsperblock=9, blocksperfile=16)
    dataset.write(array)
    dataset.compressDataset(["zfp"])
    assert "default_compression(zfp)" in path.read_text()
    assert codings(path).get(8, 0) > 0.8 * sum(codings(path).values())
    raddle("idx", "read", path, "-o", tmp_path / "back.npy")
    assert np.array_equal(np.load(tmp_path / "back.npy"), array)


def test_files_are_those_of_openvisus(write, tmp_path):
    """Raw blocks equal those of OpenVisus byte for byte when it writes in block order."""
    shape = (22, 36, 22)
    array = array_of(shape, "float32")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    write(ours / "data.idx", array, "float32", "rows", "none")
    dataset = openvisus.CreateIdx(
        url=str(theirs / "data.idx"),
        dims=[22, 36, 22],
        fields=[openvisus.Field("a", "float32")],
        bitsperblock=9,
        blocksperfile=16,
    )
    dataset.write(array)
    names = sorted(path.name for path in (theirs / "data").glob("*.bin"))
    assert names == sorted(path.name for path in (ours / "data").glob("*.bin"))
    for name in names:
        one, other = (ours / "data" / name).read_bytes(), (theirs / "data" / name).read_bytes()
        # raddle's blocks begin at a multiple of 4096 bytes after the tables.
        assert len(one) - 4096 == len(other) - 40 * (1 + 16), name
        for block in range(16):
            record = slice(40 * (1 + block), 40 * (2 + block))
            fields = [np.frombuffer(data[record], ">u4") for data in (one, other)]
            starts = [int(words[2]) + (int(words[3]) << 32) for words in fields]
            lengths = [int(words[4]) for words in fields]
            assert lengths[0] == lengths[1] and fields[0][5] == fields[1][5], (name, block)
            blocks = [data[at : at + n] for data, at, n in zip((one, other), starts, lengths, strict=True)]
            assert blocks[0] == blocks[1], (name, block)


READS = """
import os, sys, numpy as np, OpenVisus
path, dtype, components = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    got = np.asarray(OpenVisus.LoadDataset(path).read())
except SystemError:
    os._exit(9)
want = np.load(path.replace(".idx", ".npy"))
# It ends the process where the dataset is closed after an exception.
os._exit(0 if got.dtype == want.dtype and np.array_equal(got.reshape(want.shape), want) else 7)
"""

# Components and type, around every length at which OpenVisus starts or stops being able to read.
LENGTHS = [
    *[(count, "uint8") for count in (5, 29, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 257, 512, 1024, 1025, 2048)],
    *[(count, "int16") for count in (16, 17, 32, 64)],
    *[(count, "float32") for count in (7, 8, 9, 11, 16)],
    *[(count, "float64") for count in (4, 5, 8, 9, 11, 16, 32)],
]


@pytest.mark.parametrize("order", ["hz", "rows"])
def test_openvisus_reads_the_vectors_that_info_says(raddle, tmp_path, order):
    message, found = {}, {}
    # The order does not change what OpenVisus reads, and importing it takes a second for each.
    for count, dtype in LENGTHS if order == "hz" else LENGTHS[::4]:
        path = tmp_path / f"{dtype}_{count}.idx"
        np.save(path.with_suffix(".npy"), (np.arange(4 * 5 * 6 * count) % 113).reshape(4, 5, 6, count).astype(dtype))
        line = ["-o", path, "--vector", "--order", order, "--bits-per-block", 4, "-c", "none"]
        wrote = raddle("idx", "write", path.with_suffix(".npy"), *line).stdout
        info = json.loads(raddle("idx", "info", path, "--json").stdout)
        message[dtype, count] = info["fields"][0]["is_read_by_openvisus"]
        for text in (wrote, raddle("idx", "info", path).stdout):
            assert ("OpenVisus does not read field" in text) is not message[dtype, count]
        reading = subprocess.run([sys.executable, "-c", READS, path, dtype, str(count)], capture_output=True, check=False)
        assert reading.returncode in (0, 9), reading
        found[dtype, count] = reading.returncode == 0
    assert message == found and set(found.values()) == {True, False}


@pytest.mark.parametrize(("which", "names"), [("wide", 1 + 1 + 11), ("all", 1 + 3 + 11)])
def test_openvisus_reads_the_components_of_wide_vectors(raddle, tmp_path, which, names):
    """The variables of S3D: its species are eleven doubles."""
    random, shape = np.random.default_rng(5), (15, 20, 17)
    arrays = {"pressure": random.random(shape), "velocity": random.random((*shape, 3)), "species": random.random((*shape, 11))}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array if array.ndim == 4 else array[..., None])
    sources, path = [tmp_path / f"{name}.npy" for name in arrays], tmp_path / "s3d.idx"
    line = ["--vector", "--split-vectors", which, "--bits-per-block", 9, "--step", 4]
    raddle("idx", "write", *sources, "-o", path, *line)
    raddle("idx", "write", *sources, "-o", path, *line[:-1], 5, "--append")
    dataset, bitmask = openvisus.LoadDataset(str(path)), bits_of(path)
    fields = dataset.getFields()
    assert len(fields) == names
    for field in fields:
        name, _, component = field.partition("_")
        array = arrays[name][..., int(component)] if component else arrays[name]
        for step in (4, 5):
            for resolution in range(len(bitmask)):
                want = at_resolution(array, bitmask, resolution, 3)
                got = np.asarray(dataset.read(field=field, time=step, max_resolution=resolution))
                assert np.array_equal(got.reshape(want.shape), want), (field, resolution)


@pytest.mark.parametrize("compression", ["none", "zip", "lz4"])
@pytest.mark.parametrize("order", ["hz", "rows"])
def test_a_box_is_put_into_a_dataset_of_openvisus(raddle, tmp_path, order, compression):
    """Blocks keep their order and compression; OpenVisus reads the new samples at every resolution."""
    random, path, bits = np.random.default_rng(3), tmp_path / "a.idx", 9
    arrays = {"a": (random.random((2, 22, 36, 22)) * 90).astype("f4"), "b": (random.random((2, 22, 36, 22, 3)) * 90).astype("i2")}
    fields = [openvisus.Field("a", "float32"), openvisus.Field("b", "int16[3]")]
    for field in fields:
        field.default_layout = "hzorder" if order == "hz" else ""
        field.default_compression = "" if compression == "none" else compression
    dataset = openvisus.CreateIdx(
        url=str(path), dims=[22, 36, 22], fields=fields, bitsperblock=bits, blocksperfile=16, time=(3, 4, "t%03d/")
    )
    for name, array in arrays.items():
        for step in (0, 1):
            dataset.write(array[step], field=name, time=3 + step)
    if compression != "none":
        dataset.compressDataset([compression])
    del dataset
    for name, part, place in [("a", np.s_[5:13, :, 8:9], "z=5:13,x=8:9"), ("b", np.s_[0:2, 30:36, :], "z=0:2,y=30:36")]:
        arrays[name][1][part] = 99
        np.save(tmp_path / "part.npy", arrays[name][1][part])
        vector = ["--vector"] if name == "b" else []
        raddle("idx", "write", tmp_path / "part.npy", "-o", path, "--name", name, "--into", place, "--step", 4, *vector)
    info = json.loads(raddle("idx", "info", path, "--json").stdout)
    assert [field["order"] for field in info["fields"]] == [order, order]
    dataset, bitmask = openvisus.LoadDataset(str(path)), bits_of(path)
    for name, array in arrays.items():
        for step in (0, 1):
            for resolution in range(len(bitmask)):
                want = at_resolution(array[step], bitmask, resolution, 3)
                got = np.asarray(dataset.read(field=name, time=3 + step, max_resolution=resolution))
                assert np.array_equal(got.reshape(want.shape), want), (name, step, resolution)


# Options of the output, the box of samples that they select (z, y, x) and the type that OpenVisus must find.
REWRITTEN = [
    (["-c", "zip"], np.s_[:], "f4"),
    (["-c", "lz4", "--order", "hz", "--blocks-per-file", 4], np.s_[:], "f4"),
    (["--bits-per-block", 6, "--bitmask", "V1021021021021021"], np.s_[:], "f4"),
    (["--crop", "z=3:20,x=1:22", "-c", "none"], np.s_[3:20, :, 1:22], "f4"),
    (["--crop", "y=7:8", "--cast", "float64"], np.s_[:, 7:8], "f8"),
    (["--cast", "int16", "-c", "zfp"], np.s_[:], "i2"),
    (["--cast", "int32", "-c", "zfp", "--split-vectors", "all"], np.s_[:], "i4"),
]


@pytest.mark.parametrize(("options", "part", "dtype"), REWRITTEN)
def test_a_dataset_of_openvisus_is_written_again(raddle, tmp_path, options, part, dtype):
    random, path, new = np.random.default_rng(4), tmp_path / "a.idx", tmp_path / "new.idx"
    shape = (22, 36, 22)
    arrays = {"a": random.integers(-99, 99, (2, *shape)).astype("f4"), "b": random.integers(-99, 99, (2, *shape, 3)).astype("f4")}
    fields = [openvisus.Field("a", "float32"), openvisus.Field("b", "float32[3]")]
    fields[0].default_layout, fields[1].default_compression = "hzorder", "zip"
    dataset = openvisus.CreateIdx(
        url=str(path), dims=[22, 36, 22], fields=fields, bitsperblock=9, blocksperfile=16, time=(3, 4, "t%03d/")
    )
    for name, array in arrays.items():
        for step in (0, 1):
            dataset.write(array[step], field=name, time=3 + step)
    dataset.compressDataset(["zip"])
    del dataset
    if "zfp" in options and dtype == "i2":
        raddle("idx", "write", path, "-o", new, *options, expect=2)
        options = options[:-2]
    raddle("idx", "write", path, "-o", new, *options)
    taken = [option for option in options if option in ("--crop", "--cast")]
    same = [word for option in taken for word in (option, options[options.index(option) + 1])]
    assert "equal: " in raddle("idx", "verify", new, "--against", path, *same).stdout
    dataset, bitmask = openvisus.LoadDataset(str(new)), bits_of(new)
    for name in dataset.getFields():
        name, _, component = name.partition("_")
        for step in (0, 1):
            array = arrays[name][step][part]
            array = array[..., int(component)] if component else array
            for resolution in range(len(bitmask)):
                want = at_resolution(array, bitmask, resolution, 3)
                got = np.asarray(dataset.read(field=f"{name}_{component}" if component else name, time=3 + step, max_resolution=resolution))
                assert got.dtype == dtype and np.array_equal(got.reshape(want.shape), want), (name, step, resolution)


def test_openvisus_reads_the_largest_step(raddle, tmp_path):
    array, path = np.arange(12, dtype="f4").reshape(3, 4), tmp_path / "steps.idx"
    np.save(tmp_path / "a.npy", array)
    raddle("idx", "write", tmp_path / "a.npy", "-o", path, "--step", 3)
    raddle("idx", "write", tmp_path / "a.npy", "-o", path, "--append", "--step", 2**31 - 1)
    refused = raddle("idx", "write", tmp_path / "a.npy", "-o", path, "--append", "--step", 2**31, expect=3).stderr
    assert "cannot have time step 2147483648" in refused
    dataset = openvisus.LoadDataset(str(path))
    for step in (3, 2**31 - 1):
        assert np.array_equal(dataset.read(time=step), array), step


class Drawn:
    """A dataset of random shape, types, layout, fields and steps; every other one has a realistic size.

    OpenVisus reads up to four components of every type.
    """

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        known = [(34, 34, 34), (22, 36, 22), (17, 29, 66)][seed // 2 % 3]
        self.shape = known if seed % 2 else tuple(int(n) for n in random.integers(2, 40, random.integers(2, 4)))
        # zfp supports four types, and no vectors.
        is_zfp = seed % 4 == 3
        self.is_vector = not is_zfp and random.random() < 0.4
        self.steps = [3, 5] if random.random() < 0.5 else [None]
        self.fields = {}
        for name in ("a", "b")[: random.integers(1, 3)]:
            others = [] if is_zfp else ["int8", "uint8", "int16", "uint16", "uint32", "uint64"]
            dtype = random.choice(["int32", "int64", "float32", "float64", *others])
            full = self.shape + ((int(random.choice([2, 3, 4])),) if self.is_vector else ())
            self.fields[name] = {step: random.integers(0, 120, full).astype(dtype) for step in self.steps}
        letters = [axis for axis, n in enumerate(reversed(self.shape)) for _ in range((n - 1).bit_length())]
        self.bitmask = "V" + "".join(str(axis) for axis in random.permutation(letters))
        self.bits = int(random.integers(1, len(letters) + 1))
        self.per_file = int(random.integers(1, 40))
        self.order = str(random.choice(["hz", "rows"]))
        self.compression = "zfp" if is_zfp else str(random.choice(["none", "zip", "lz4"]))

    def __iter__(self):
        """Yields name, step, resolution, and the expected samples."""
        for name, of in self.fields.items():
            for step, array in of.items():
                for resolution in range(len(self.bitmask)):
                    yield name, step, resolution, at_resolution(array, self.bitmask, resolution, len(self.shape))


@pytest.mark.parametrize("seed", range(30))
def test_openvisus_reads_any_layout(raddle, tmp_path, seed):
    drawn, path = Drawn(seed), tmp_path / "data.idx"
    layout = ["--order", drawn.order, "-c", drawn.compression, "--bits-per-block", drawn.bits, "--bitmask", drawn.bitmask]
    layout += ["--blocks-per-file", drawn.per_file, "--name", ",".join(drawn.fields), *(["--vector"] * drawn.is_vector)]
    sources = [tmp_path / f"{name}.npy" for name in drawn.fields]
    for number, step in enumerate(drawn.steps):
        for source, of in zip(sources, drawn.fields.values(), strict=True):
            np.save(source, of[step])
        which = [] if step is None else ["--step", step, *(["--append"] if number else [])]
        raddle("idx", "write", *sources, "-o", path, *layout, *which, "--quiet")
    assert bits_of(path) == drawn.bitmask
    dataset = openvisus.LoadDataset(str(path))
    for name, step, resolution, want in drawn:
        got = dataset.read(field=name, max_resolution=resolution, **({} if step is None else {"time": step}))
        assert got is not None and got.size == want.size, (name, step, resolution)
        assert np.array_equal(np.asarray(got).reshape(want.shape), want), (name, step, resolution)


@pytest.mark.parametrize("seed", range(30, 60))
def test_any_layout_of_openvisus_is_read(raddle, tmp_path, seed):
    drawn, path = Drawn(seed), tmp_path / "data.idx"
    fields = []
    for name, of in drawn.fields.items():
        array = of[drawn.steps[0]]
        fields.append(openvisus.Field(name, f"{array.dtype}[{array.shape[-1]}]" if drawn.is_vector else str(array.dtype)))
        fields[-1].default_layout = "hzorder" if drawn.order == "hz" else ""
        if drawn.compression != "none":
            fields[-1].default_compression = ZFP.get(drawn.compression, [drawn.compression])[0]
    time = {} if drawn.steps == [None] else {"time": (drawn.steps[0], drawn.steps[-1], "t%03d/")}
    dataset = openvisus.CreateIdx(
        url=str(path), dims=list(reversed(drawn.shape)), fields=fields, bitmask=drawn.bitmask,
        bitsperblock=drawn.bits, blocksperfile=drawn.per_file, **time,
    )
    for name, of in drawn.fields.items():
        for step, array in of.items():
            dataset.write(array, field=name, **({} if step is None else {"time": step}))
    if drawn.compression != "none":
        dataset.compressDataset([ZFP.get(drawn.compression, [drawn.compression])[0]])
    assert bits_of(path) == drawn.bitmask
    back = tmp_path / "back.npy"
    for name, step, resolution, want in drawn:
        which = [] if step is None else ["--step", step]
        raddle("idx", "read", path, "-o", back, "-f", "--field", name, "--resolution", resolution, *which)
        got = np.load(back)
        assert got.dtype == want.dtype and np.array_equal(got, want), (name, step, resolution)


def test_a_large_box_of_no_power_of_two(raddle, tmp_path):
    """656 x 290 x 170 samples, at every resolution, in both directions."""
    array = (np.arange(170 * 290 * 656, dtype=np.uint32) % 251).astype("u1").reshape(170, 290, 656)
    np.save(tmp_path / "a.npy", array)
    raddle("idx", "write", tmp_path / "a.npy", "-o", tmp_path / "ours.idx", "-c", "lz4", "--quiet")
    dataset = openvisus.LoadDataset(str(tmp_path / "ours.idx"))
    theirs = openvisus.CreateIdx(url=str(tmp_path / "theirs.idx"), dims=[656, 290, 170], fields=[openvisus.Field("a", "uint8")])
    theirs.write(array)
    bitmask = bits_of(tmp_path / "ours.idx")
    for resolution in range(len(bitmask)):
        want = at_resolution(array, bitmask, resolution, 3)
        assert np.array_equal(np.asarray(dataset.read(max_resolution=resolution)).reshape(want.shape), want), resolution
    bitmask = bits_of(tmp_path / "theirs.idx")
    for resolution in range(len(bitmask)):
        raddle("idx", "read", tmp_path / "theirs.idx", "-o", tmp_path / "b.npy", "-f", "--resolution", resolution)
        assert np.array_equal(np.load(tmp_path / "b.npy"), at_resolution(array, bitmask, resolution, 3)), resolution
