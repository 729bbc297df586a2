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
