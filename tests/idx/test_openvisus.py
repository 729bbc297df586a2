"""OpenVisus, which people read IDX with, against raddle in both directions, at every resolution.

Skipped where OpenVisus (``pip install OpenVisusNoGui``, CPython 3.11) is not installed. The program under test is
``cargo build -p raddle-idx --example idx_array``; ``IDX_ARRAY`` names another.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("VISUS_DISABLE_WRITE_LOCK", "1")
openvisus = pytest.importorskip("OpenVisus", reason="OpenVisus is not installed (pip install OpenVisusNoGui)")

PROGRAM = Path(os.environ.get("IDX_ARRAY", Path(__file__).parents[2] / "target/debug/examples/idx_array"))
if not PROGRAM.exists():
    pytest.skip(f"{PROGRAM} is not built", allow_module_level=True)

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


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, timeout=120, **options).stdout


def bits_of(path):
    lines = path.read_text().splitlines()
    return lines[lines.index("(bits)") + 1]


@pytest.mark.parametrize("compression", ["raw", "zip", "lz4"])
@pytest.mark.parametrize("layout", ["hzorder", "row"])
@pytest.mark.parametrize(("shape", "sample"), list(zip(SHAPES, TYPES, strict=True)))
def test_openvisus_reads_what_raddle_writes(tmp_path, shape, sample, layout, compression):
    array = array_of(shape, sample)
    path = tmp_path / "data.idx"
    counts = "x".join(map(str, reversed(shape)))
    run("write", path, "a", counts, sample, layout, compression, 9, 16, input=array.tobytes())
    dataset = openvisus.LoadDataset(str(path))
    bitmask = bits_of(path)
    for resolution in range(len(bitmask)):
        want = at_resolution(array, bitmask, resolution, len(shape))
        got = dataset.read(max_resolution=resolution)
        assert got is not None and got.size == want.size, resolution
        assert np.array_equal(np.asarray(got).reshape(want.shape), want), resolution


@pytest.mark.parametrize("compression", ["raw", "zip", "lz4"])
@pytest.mark.parametrize("layout", ["hzorder", "row"])
@pytest.mark.parametrize(("shape", "sample"), list(zip(SHAPES, TYPES, strict=True)))
def test_raddle_reads_what_openvisus_writes(tmp_path, shape, sample, layout, compression):
    array = array_of(shape, sample)
    path = tmp_path / "data.idx"
    field = openvisus.Field("a", sample)
    field.default_layout = "hzorder" if layout == "hzorder" else ""
    if compression != "raw":
        field.default_compression = compression
    dataset = openvisus.CreateIdx(
        url=str(path), dims=list(reversed(shape)), fields=[field], bitsperblock=9, blocksperfile=16
    )
    if compression == "raw":
        dataset.write(array)
    else:
        dataset.write(array)
        dataset.compressDataset([compression])
    bitmask = bits_of(path)
    for resolution in range(len(bitmask)):
        want = at_resolution(array, bitmask, resolution, len(shape))
        got = np.frombuffer(run("read", path, "a", resolution), array.dtype)
        assert np.array_equal(got.reshape(want.shape), want), resolution


def test_files_are_those_of_openvisus(tmp_path):
    """Raw blocks are byte for byte where OpenVisus puts them when it writes in block order."""
    shape = (22, 36, 22)
    array = array_of(shape, "float32")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    run("write", ours / "data.idx", "a", "22x36x22", "float32", "row", "raw", 9, 16, input=array.tobytes())
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
