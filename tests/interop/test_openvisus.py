"""OpenVisus, which people read IDX with, against raddle in both directions, at every resolution.

Left out where OpenVisus is not installed: there are wheels for CPython 3.11 only.
"""

import os

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
    """Distance of samples at a resolution, z first."""
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


def test_files_are_those_of_openvisus(write, tmp_path):
    """Raw blocks are byte for byte where OpenVisus puts them when it writes in block order."""
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
        # Ours begin at a multiple of 4096 bytes behind the tables.
        assert len(one) - 4096 == len(other) - 40 * (1 + 16), name
        for block in range(16):
            record = slice(40 * (1 + block), 40 * (2 + block))
            fields = [np.frombuffer(data[record], ">u4") for data in (one, other)]
            starts = [int(words[2]) + (int(words[3]) << 32) for words in fields]
            lengths = [int(words[4]) for words in fields]
            assert lengths[0] == lengths[1] and fields[0][5] == fields[1][5], (name, block)
            blocks = [data[at : at + n] for data, at, n in zip((one, other), starts, lengths, strict=True)]
            assert blocks[0] == blocks[1], (name, block)


class Drawn:
    """A dataset of drawn shape, types, layout, fields and steps; every other one has a size that people have.

    OpenVisus knows up to four components for every type, eleven for none of four bytes or more.
    """

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        known = [(34, 34, 34), (22, 36, 22), (17, 29, 66)][seed // 2 % 3]
        self.shape = known if seed % 2 else tuple(int(n) for n in random.integers(2, 40, random.integers(2, 4)))
        self.is_vector = random.random() < 0.4
        self.steps = [3, 5] if random.random() < 0.5 else [None]
        self.fields = {}
        for name in ("a", "b")[: random.integers(1, 3)]:
            dtype = random.choice(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
            full = self.shape + ((int(random.choice([2, 3, 4])),) if self.is_vector else ())
            self.fields[name] = {step: random.integers(0, 120, full).astype(dtype) for step in self.steps}
        letters = [axis for axis, n in enumerate(reversed(self.shape)) for _ in range((n - 1).bit_length())]
        self.bitmask = "V" + "".join(str(axis) for axis in random.permutation(letters))
        self.bits = int(random.integers(1, len(letters) + 1))
        self.per_file = int(random.integers(1, 40))
        self.order, self.compression = str(random.choice(["hz", "rows"])), str(random.choice(["none", "zip", "lz4"]))

    def __iter__(self):
        """Name, step, resolution, and the samples that are to be read there."""
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
            fields[-1].default_compression = drawn.compression
    time = {} if drawn.steps == [None] else {"time": (drawn.steps[0], drawn.steps[-1], "t%03d/")}
    dataset = openvisus.CreateIdx(
        url=str(path), dims=list(reversed(drawn.shape)), fields=fields, bitmask=drawn.bitmask,
        bitsperblock=drawn.bits, blocksperfile=drawn.per_file, **time,
    )
    for name, of in drawn.fields.items():
        for step, array in of.items():
            dataset.write(array, field=name, **({} if step is None else {"time": step}))
    if drawn.compression != "none":
        dataset.compressDataset([drawn.compression])
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
