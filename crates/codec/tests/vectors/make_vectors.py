"""Writes vectors.txt: chunks filtered by HDF5 and its plugins, with the bytes that HDF5 decodes them to.

Run with h5py >= 3.16 and hdf5plugin >= 7 installed:  python make_vectors.py > vectors.txt
One line per chunk: name, element length, filters (id:optional:parameters joined by commas, joined by semicolons),
filter mask, stored bytes, and zlib-compressed decoded bytes, both in hexadecimal.
"""

import io
import sys
import zlib

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

rng = np.random.default_rng(7)


def emit(name, dtype_id, values, build, fill=None, chunk=None):
    """Writes `values` (an array whose bytes have the file type) through the pipeline that `build` sets up."""
    shape = values.shape if chunk is None else chunk
    with h5py.File(io.BytesIO(), "w", libver=("earliest", "v110")) as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk(shape)
        if fill is not None:
            plist.set_fill_value(np.asarray(fill))
        build(plist)
        dataset = h5d.create(file.id, b"d", dtype_id, h5s.create_simple(values.shape), plist)
        dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values), mtype=dtype_id)
        file.flush()
        mask, stored = dataset.read_direct_chunk((0,) * len(shape))
        raw = np.zeros(values.size, dtype=f"V{dtype_id.get_size()}")
        dataset.read(h5s.ALL, h5s.ALL, raw.reshape(values.shape), mtype=dtype_id)
        stored_plist = dataset.get_create_plist()
        filters = []
        for index in range(stored_plist.get_nfilters()):
            number, flags, parameters, _ = stored_plist.get_filter(index)
            filters.append(f"{number}:{flags & 1}:{','.join(map(str, parameters))}")
        line = (name, dtype_id.get_size(), ";".join(filters) or "-", mask, stored.hex(), zlib.compress(raw.tobytes(), 9).hex())
        print(*line, sep="\t")


def plain(name, values, build, **options):
    emit(name, h5t.py_create(values.dtype), values, build, **options)


def plugin(filter_, **_):
    """Returns a `build` function for a filter of hdf5plugin."""

    def build(plist):
        plist.set_filter(filter_.filter_id, h5z.FLAG_OPTIONAL, filter_.filter_options)

    return build


def walk(dtype, count, step=3):
    """Returns numbers that change little from one to the next."""
    return np.cumsum(rng.integers(-step, step + 1, count)).astype(dtype)


def sparse(dtype, count):
    values = np.zeros(count, dtype)
    values[rng.integers(0, count, count // 50 + 1)] = 7
    return values


# Filters of the library itself
for level in (1, 6, 9):
    plain(f"deflate-{level}", walk("<i4", 200), lambda p, level=level: p.set_deflate(level))
for dtype in ("<i2", "<f4", ">f8", "S3", "<c16"):
    plain(f"shuffle-{dtype}", np.frombuffer(rng.bytes(37 * np.dtype(dtype).itemsize), dtype), lambda p: p.set_shuffle())
plain("fletcher32", walk("<i4", 50), lambda p: p.set_fletcher32())
plain("fletcher32-odd", walk("u1", 51), lambda p: p.set_fletcher32())
plain("fletcher32-zero", np.zeros(9, "u1"), lambda p: p.set_fletcher32())


def three(plist):
    plist.set_shuffle()
    plist.set_deflate(4)
    plist.set_fletcher32()


def checksum_first(plist):
    plist.set_fletcher32()
    plist.set_shuffle()
    plist.set_deflate(4)


def deflate_twice(plist):
    plist.set_deflate(1)
    plist.set_filter(h5z.FILTER_SHUFFLE, h5z.FLAG_OPTIONAL, ())
    plist.set_filter(hdf5plugin.Zstd().filter_id, h5z.FLAG_OPTIONAL, (3,))


plain("shuffle-deflate-fletcher32", walk("<i4", 300), three)
plain("fletcher32-shuffle-deflate", walk("<i4", 300), checksum_first)
plain("deflate-shuffle-zstd", walk("<i4", 1000), deflate_twice)

# nbit
def number(base, precision, offset):
    kind = base.copy()
    kind.set_precision(precision)
    kind.set_offset(offset)
    return kind


nbit = lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL, ())
for base, label in ((h5t.STD_I32LE, "le"), (h5t.STD_I32BE, "be")):
    for precision, offset in ((17, 3), (8, 8), (20, 12), (24, 8)):
        kind = number(base, precision, offset)
        emit(f"nbit-{label}-{precision}-{offset}", kind, np.frombuffer(rng.bytes(80), "V4"), nbit)
emit("nbit-8", number(h5t.STD_U8LE, 5, 2), np.frombuffer(rng.bytes(21), "V1"), nbit)
emit("nbit-64", number(h5t.STD_U64LE, 45, 11), np.frombuffer(rng.bytes(104), "V8"), nbit)
emit("nbit-whole", h5t.STD_I32LE, np.frombuffer(rng.bytes(40), "V4"), nbit)
odd_float = h5t.IEEE_F32LE.copy()
odd_float.set_fields(19, 13, 6, 0, 13)
odd_float.set_precision(20)
odd_float.set_offset(7)
assert odd_float.get_size() == 4
emit("nbit-float", odd_float, np.frombuffer(rng.bytes(48), "V4"), nbit)
member = number(h5t.STD_I16LE, 10, 2)
inner = h5t.create(h5t.COMPOUND, 6)
inner.insert(b"x", 0, number(h5t.STD_U32BE, 13, 5))
inner.insert(b"y", 4, h5t.STD_U8LE)
outer = h5t.create(h5t.COMPOUND, 48)
outer.insert(b"a", 1, member)
outer.insert(b"b", 4, h5t.array_create(member, (2, 3)))
text = h5t.C_S1.copy()
text.set_size(5)
outer.insert(b"d", 28, text)
outer.insert(b"e", 33, h5t.array_create(text, (2,)))
outer.insert(b"f", 44, odd_float)
outer.insert(b"g", 3, h5t.STD_U8LE)
# HDF5 cannot read its own output if another member follows an array of compounds.
outer.insert(b"c", 16, h5t.array_create(inner, (2,)))
emit("nbit-compound", outer, np.frombuffer(rng.bytes(48 * 5), "V48"), nbit)
emit("nbit-array", h5t.array_create(h5t.array_create(member, (3,)), (2,)), np.frombuffer(rng.bytes(84), "V12"), nbit)

# scaleoffset
INTEGER, DECIMAL = 2, 0
scale = lambda kind, factor: lambda p: p.set_scaleoffset(kind, factor)
for dtype in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">i8", "<u8"):
    values = walk(dtype, 40, step=2)
    plain(f"scaleoffset-{dtype}", values, scale(INTEGER, 0))
    fill = values[3]
    plain(f"scaleoffset-fill-{dtype}", values, scale(INTEGER, 0), fill=fill)
    plain(f"scaleoffset-fixed-{dtype}", values, scale(INTEGER, 7))
plain("scaleoffset-constant", np.full(20, -5, "<i4"), scale(INTEGER, 0))
plain("scaleoffset-all-fill", np.full(20, -5, "<i4"), scale(INTEGER, 0), fill=np.int32(-5))
plain("scaleoffset-full-range", np.frombuffer(rng.bytes(80), "<i4"), scale(INTEGER, 0))
plain("scaleoffset-full-range-be", np.frombuffer(rng.bytes(80), ">i4"), scale(INTEGER, 0))
plain("scaleoffset-all-bits", walk("<i2", 20), scale(INTEGER, 16))
plain("scaleoffset-wide", (walk("<i8", 20) * 2**40), scale(INTEGER, 0))
for dtype in ("<f4", ">f4", "<f8", ">f8"):
    values = (walk("f8", 40) / 7).astype(dtype)
    for factor in (0, 2, 5):
        plain(f"scaleoffset-d{factor}-{dtype}", values, scale(DECIMAL, factor))
    plain(f"scaleoffset-d3-fill-{dtype}", np.where(np.arange(40) % 5 == 0, np.dtype(dtype).type(-99.5), values).astype(dtype),
          scale(DECIMAL, 3), fill=np.array(-99.5, dtype))

# szip
EC, NN = 4, 32
for label, option in (("ec", EC), ("nn", NN)):
    for block in (4, 8, 16, 32):
        szip = lambda p, option=option, block=block: p.set_szip(option, block)
        plain(f"szip-{label}-{block}-u1", walk("u1", 90), szip)
        plain(f"szip-{label}-{block}-i2", walk("<i2", 90, step=40), szip)
        plain(f"szip-{label}-{block}-be", walk(">i2", 90, step=2), szip)
        plain(f"szip-{label}-{block}-f4", walk("<f4", 70), szip)
        plain(f"szip-{label}-{block}-f8", walk(">f8", 40), szip)
        plain(f"szip-{label}-{block}-noise", np.frombuffer(rng.bytes(70), "u1") & 63, szip)
        plain(f"szip-{label}-{block}-lines", walk("<i2", 3 * 37).reshape(3, 37), szip)
        plain(f"szip-{label}-{block}-sparse", sparse("<u2", 32 * 140), szip)
    emit(f"szip-{label}-20-bits", number(h5t.STD_U32LE, 20, 0), walk("<u4", 70) & 0xFFFFF, lambda p, option=option: p.set_szip(option, 8))

# Registered filters
for dtype in ("<i4", "u1"):
    plain(f"lzf-{dtype}", walk(dtype, 400), lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL, ()))
plain("lzf-runs", sparse("<u4", 2000), lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL, ()))
plain("lzf-not-applied", np.frombuffer(rng.bytes(60), "u1"), lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL, ()))
for level in (1, 19):
    plain(f"zstd-{level}", walk("<i4", 300), plugin(hdf5plugin.Zstd(clevel=level)))
plain("zstd-noise", np.frombuffer(rng.bytes(60), "u1"), plugin(hdf5plugin.Zstd()))
plain("bzip2", walk("<i4", 300), plugin(hdf5plugin.BZip2(blocksize=1)))
for block in (0, 64, 200, 400):
    plain(f"lz4-{block}", walk("<i4", 300), plugin(hdf5plugin.LZ4(nbytes=block)))
plain("lz4-noise", np.frombuffer(rng.bytes(90), "u1"), plugin(hdf5plugin.LZ4(nbytes=40)))
for codec in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
    for shuffle in (hdf5plugin.Blosc.NOSHUFFLE, hdf5plugin.Blosc.SHUFFLE, hdf5plugin.Blosc.BITSHUFFLE):
        filter_ = hdf5plugin.Blosc(cname=codec, clevel=5, shuffle=shuffle)
        plain(f"blosc-{codec}-{shuffle}", walk("<i4", 302), plugin(filter_))
        plain(f"blosc-{codec}-{shuffle}-sparse", sparse("<u2", 1000), plugin(filter_))
plain("blosc-noise", np.frombuffer(rng.bytes(200), "u1"), plugin(hdf5plugin.Blosc()))
plain("blosc-zero", np.frombuffer(rng.bytes(200), "<u4"), plugin(hdf5plugin.Blosc(clevel=0)))
far = np.concatenate([np.tile(walk("u1", 250), 4), np.zeros(8500, "u1"), walk("u1", 400)])
far[:400] = far[-400:]
plain("blosc-far", far, plugin(hdf5plugin.Blosc(cname="blosclz", clevel=9, shuffle=0)))
plain("blosc-blocks", np.tile(walk("<i4", 500), 40), plugin(hdf5plugin.Blosc(cname="lz4", clevel=1)))
for codec in ("none", "lz4", "zstd"):
    for count in (300, 64, 7):
        plain(f"bitshuffle-{codec}-{count}", walk("<i4", count), plugin(hdf5plugin.Bitshuffle(nelems=64, cname=codec)))
    # The default block has 1024 of these elements.
    plain(f"bitshuffle-{codec}-default", walk("<f8", 1100) // 16, plugin(hdf5plugin.Bitshuffle(cname=codec)))
sys.stdout.flush()
