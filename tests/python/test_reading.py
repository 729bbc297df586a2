"""Reading files with raddle.open, compared with h5py."""

import pickle

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_attributes, same_datasets, same_types, same_values
from foreign import FOREIGN, write_foreign

TYPES = [
    *(f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)),
    *(f"{order}f{size}" for order in "<>" for size in (2, 4, 8)),
    "<c8",
    ">c16",
    "S1",
    "S7",
    "V5",
    "?",
    h5py.opaque_dtype("<M8[us]"),
    h5py.string_dtype("utf-8", 9),
    h5py.enum_dtype({"red": 0, "green": 7, "blue": -3}, "<i2"),
    np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3"), ("d", "?")]),
    np.dtype({"names": ["x", "y"], "formats": ["<u2", "<f4"], "offsets": [6, 0], "itemsize": 12}),
    np.dtype([("vector", "<f4", (3,)), ("inner", [("k", ">i2"), ("z", "<c8")])]),
    np.dtype(("<i2", (2, 3))),
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"chunks": (7, 2)},
        {"chunks": (7, 2), "compression": "gzip", "shuffle": True, "maxshape": (None, 9)},
        {"chunks": (3, 5), "compression": "lzf", "fletcher32": True},
    ],
    ids=["contiguous", "chunked", "deflated", "lzf"],
)
def test_types_and_storage(pair, dtype, storage):
    dtype = np.dtype(dtype)
    random = np.random.default_rng(3)
    base = dtype.base if dtype.subdtype else dtype
    count = 20 * 5 * (np.prod(dtype.shape, dtype=int) if dtype.subdtype else 1)
    values = np.zeros(count, base)
    if base.kind in "iu" and h5py.check_enum_dtype(base) is None:
        values = random.integers(0, 100, count).astype(base)
    elif base.kind in "fc":
        values = random.normal(size=count).astype(base)
    elif base.kind == "b":
        values = random.random(count) > 0.5
    elif base.kind in "SV" and base.names is None:
        values = np.frombuffer(random.integers(1, 90, count * base.itemsize).astype("u1").tobytes(), base)
    elif base.names:
        for name in base.names:
            field = base[name]
            if field.base.kind in "iuf":
                shape = (count, *field.shape)
                values[name] = random.integers(0, 100, shape).astype(field.base)
    values = values.reshape(20, 5, *dtype.shape)

    def write(file):
        dataset = file.create_dataset("d", (20, 5), dtype, **storage)
        if dtype.subdtype:
            dataset[...] = values
        else:
            dataset.write_direct(np.ascontiguousarray(values.astype(dtype)))

    ours, theirs = pair(write)
    same_datasets(ours["d"], theirs["d"])
    for selection in [
        3, -1, np.s_[2:17], np.s_[1:20:3], np.s_[:, 2], np.s_[4, 1:4], np.s_[..., 0], np.s_[4, 3], np.s_[5:5],
        [1, 4, 19], np.s_[[0, 7], 1:3], np.s_[:, [0, 4]], np.arange(20) % 3 == 0, np.s_[2:, ::2],
    ]:  # fmt: skip
        same_values(ours["d"][selection], theirs["d"][selection])


@pytest.mark.parametrize("name", FOREIGN)
def test_selections_keep_their_shapes_whoever_reads(pair, name):
    ours, theirs = pair(write_foreign)
    for selection in [
        1, -1, (1, 2), (-1, -1), (1, np.s_[1:3]), np.s_[:, 1], np.s_[..., 1], np.s_[..., 1, 2], (1, 2, ...), ([0, 2], 1),
        np.s_[[0, 2], 1:], np.s_[3, [0, 3]], np.s_[3:3], np.s_[::2, ::3], [], (np.arange(5) > 2, 1),
        np.arange(20).reshape(5, 4) > 7,
    ]:  # fmt: skip
        same_values(ours[name][selection], theirs[name][selection])
        if name != "mixed":
            continue
        for fields in [("i",), ("t",), ("n", "t")]:
            chosen = (*selection, *fields) if isinstance(selection, tuple) else (selection, *fields)
            same_values(ours[name][chosen], theirs[name][chosen])
            wanted = fields[0] if len(fields) == 1 else list(fields)
            same_values(ours[name].fields(wanted)[selection], theirs[name].fields(wanted)[selection])


@pytest.mark.parametrize("name", FOREIGN)
def test_a_list_may_be_in_any_order_whoever_reads(pair, name):
    ours, theirs = pair(write_foreign)
    values = theirs[name][:]
    for rows in ([1, 0], [0, 0], [4, -1, 2, 2], [3, 1, 1, 0, 4, 4], range(4, 0, -2)):
        listed = np.asarray(list(rows))
        same_values(ours[name][rows], values[listed])
        same_values(ours[name][rows, 1], values[listed, 1])
        same_values(ours[name][2, listed % 4], values[2, listed % 4])
        target = np.empty((len(listed), 4), values.dtype)
        same_values(ours[name].read(rows, out=target), values[listed])


@pytest.mark.parametrize("name", FOREIGN)
def test_blocks_at_a_regular_distance(pair, name):
    def write(file):
        write_foreign(file)
        file.create_dataset("packed", data=np.arange(600).reshape(20, 30), chunks=(7, 4), compression="gzip")

    ours, theirs = pair(write)
    for arguments in ({}, {"start": 2}, {"stride": 2}, {"stride": 2, "block": 2}, {"start": 1, "stride": 3, "count": 1, "block": 2},
                      {"start": 1, "stride": 2, "count": 2}, {"stride": 3, "block": 2}):  # fmt: skip
        blocks, expected = raddle.MultiBlockSlice(**arguments), h5py.MultiBlockSlice(**arguments)
        assert blocks.indices(5) == expected.indices(5) and str(arguments.get("start", 0)) in repr(blocks)
        for file, whole in (("packed", True), (name, False)):
            for ours_at, theirs_at in [
                (blocks, expected), ((1, blocks), (1, expected)), ((blocks, 1), (expected, 1)),
                ((..., blocks), (..., expected)), ((blocks, np.s_[1:3]), (expected, np.s_[1:3])),
            ]:  # fmt: skip
                if whole or not (isinstance(ours_at, tuple) and ours_at[-1] is blocks):
                    same_values(ours[file][ours_at], theirs[file][theirs_at])
                    same_values(ours[file][theirs_at], theirs[file][theirs_at])
    both = raddle.MultiBlockSlice(stride=3, block=2), raddle.MultiBlockSlice(start=1, stride=3, count=1, block=2)
    for file in ("packed", name):
        values = theirs[file][:]
        rows = [row for row in range(len(values)) if row % 3 < 2 and row - row % 3 + 2 <= len(values)]
        same_values(ours[file][both], values[rows][:, [1, 2]])
        same_values(ours[file][both[0], [0, 2]], values[rows][:, [0, 2]])


def test_blocks_that_do_not_fit(pair):
    for arguments in ({"start": -1}, {"stride": 0}, {"count": 0}, {"block": 0}, {"block": 2}):
        with pytest.raises(ValueError):
            raddle.MultiBlockSlice(**arguments)
        with pytest.raises(ValueError):
            h5py.MultiBlockSlice(**arguments)
    files = pair(lambda file: file.create_dataset("d", data=np.arange(5)))
    for package, file in zip((raddle, h5py), files, strict=True):
        for arguments in ({"start": 5}, {"count": 6}, {"stride": 6, "block": 6}, {"start": 3, "count": 2, "stride": 2}):
            with pytest.raises(ValueError):
                file["d"][package.MultiBlockSlice(**arguments)]


def test_scalars_are_scalars_where_h5py_s_are(pair):
    def write(file):
        file["d"], file["line"], file["number"] = np.arange(6.0).reshape(2, 3), np.arange(4), 7.5
        file["text"], file["texts"], file["null"] = "weft", ["a", "b"], h5py.Empty("<f4")
        file["pairs"] = np.array([[(1, 2.0), (3, 4.0)]], [("x", "i4"), ("y", "f8")])
        file["pair"] = np.array((1, 2.5), [("x", "i4"), ("y", "f8")])

    ours, theirs = pair(write)
    whole = [(), ..., (...,)]
    for name, selections in {
        "d": [*whole, (1, 2), (..., 1, 2), (1, ..., 2), (1, 2, ...), (..., 2)], "line": [*whole, 2, (..., 2), (2, ...)],
        "number": whole, "text": whole, "texts": [*whole, 1, (..., 1)], "null": whole, "pair": whole,
        "pairs": [*whole, (0, 1), (..., 0, 1), (..., 1)],
    }.items():  # fmt: skip
        views = [lambda dataset: dataset]
        if name in ("d", "line", "number", "null"):
            views.append(lambda dataset: dataset.astype("f4"))
        if name.startswith("text"):
            views.append(lambda dataset: dataset.asstr())
        if name.startswith("pair"):
            views += [lambda dataset: dataset.fields("x"), lambda dataset: dataset.fields(["y"])]
        for view in views:
            for selection in selections:
                same_values(view(ours[name])[selection], view(theirs[name])[selection])
            for attribute in ("shape", "ndim", "size", "dtype"):
                assert getattr(view(ours[name]), attribute) == getattr(view(theirs[name]), attribute)
        for selection in whole if name.startswith("pair") else []:
            chosen = (*selection, "x") if isinstance(selection, tuple) else (selection, "x")
            same_values(ours[name][chosen], theirs[name][chosen])
    for file in (ours, theirs):
        for name in ("d", "pairs", "null"):
            with pytest.raises(TypeError):
                file[name].asstr()
        for names in ("none", ["x", "none"]):
            with pytest.raises(ValueError):
                file["pairs"].fields(names)
        with pytest.raises(ValueError):
            file["null"][0]


def test_views_are_pickled_like_datasets(pair):
    def write(file):
        file["d"], file["texts"] = np.arange(6.0).reshape(2, 3), ["a", "bc"]
        file["pairs"] = np.array([(1, 2.0), (3, 4.0)], [("x", "i4"), ("y", "f8")])

    ours, theirs = pair(write)
    for view, expected in [
        (ours["d"].astype("i2"), theirs["d"].astype("i2")), (ours["texts"].asstr(), theirs["texts"].asstr()),
        (ours["pairs"].fields("y"), theirs["pairs"].fields("y")),
    ]:  # fmt: skip
        again = pickle.loads(pickle.dumps(view))
        same_values(again[:], expected[:])
        same_values(np.asarray(again), np.asarray(expected))
        assert len(again) == len(expected)


@pytest.mark.parametrize("name", ["chunked", "grown", "empty"])
def test_chunks_one_by_one(pair, name):
    def write(file):
        file.create_dataset("chunked", data=np.arange(60).reshape(6, 10), chunks=(4, 3))
        file.create_dataset("grown", data=np.arange(7), chunks=(3,), maxshape=(None,))
        file.create_dataset("empty", (0, 3), "i4", chunks=(2, 2), maxshape=(None, 3))
        file["plain"] = np.arange(3)

    ours, theirs = pair(write)
    dataset = ours[name]
    if name != "empty":
        assert list(dataset.iter_chunks()) == list(theirs[name].iter_chunks())
    else:
        assert list(dataset.iter_chunks()) == []
    if name == "chunked":
        for selection in [np.s_[:, :], np.s_[1:5, 2:4], np.s_[5, 9], np.s_[0:4, 3:6], np.s_[3, :]]:
            assert list(dataset.iter_chunks(selection)) == list(theirs[name].iter_chunks(selection))
        read = np.zeros(dataset.shape, dataset.dtype)
        for part in dataset.iter_chunks():
            read[part] = dataset[part]
        assert np.array_equal(read, theirs[name][:])
        for selection in [np.s_[1:5], np.s_[1:50, :], np.s_[5:2, :], np.s_[::2, :], np.s_[-1, 0]]:
            with pytest.raises(ValueError):
                dataset.iter_chunks(selection)
    with pytest.raises(TypeError):
        ours["plain"].iter_chunks()


def test_what_datasets_say_of_their_storage(pair):
    def write(file):
        write_foreign(file)
        file.create_dataset("scaled", data=np.arange(50), chunks=(10,), scaleoffset=3)
        file.create_dataset("rounded", data=np.arange(50.0), chunks=(10,), scaleoffset=2)

    ours, theirs = pair(write, userblock_size=1024)
    assert ours.userblock_size == theirs.userblock_size == 1024
    for name in theirs:
        for fact in ("scaleoffset", "is_virtual", "external"):
            assert getattr(ours[name], fact) == getattr(theirs[name], fact), (name, fact)
    found, expected = (file["virtual plain"].virtual_sources() for file in (ours, theirs))
    assert [source[1:3] for source in found] == [source[1:3] for source in expected]
    with pytest.raises(ValueError):
        ours["plain"].virtual_sources()


def test_filters_are_named_as_in_h5py(pair):
    hdf5plugin = pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed")
    options = {
        "gzip": {"compression": "gzip", "compression_opts": 3}, "lzf": {"compression": "lzf", "shuffle": True},
        "zstd": hdf5plugin.Zstd(), "checksum": {"fletcher32": True}, "digits": {"scaleoffset": 0}, "none": {},
    }  # fmt: skip
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        options |= {f"szip {coding}": {"compression": "szip", "compression_opts": (coding, 8)} for coding in ("ec", "nn")}

    def write(file):
        for name, chosen in options.items():
            file.create_dataset(name, data=np.arange(64), chunks=(32,), **chosen)

    ours, theirs = pair(write)
    for name in options:
        assert ours[name].compression == theirs[name].compression, name
        assert ours[name].compression_opts == theirs[name].compression_opts, name
        assert ours[name].filter_ids == theirs[name].filter_ids, name
        assert ours[name].filter_names == theirs[name].filter_names, name
    assert ours["zstd"].compression == "unknown"


def test_a_list_may_be_in_any_order(pair):
    values = np.arange(1000).reshape(100, 10)
    ours, _ = pair(lambda file: file.create_dataset("d", data=values, chunks=(8, 3)))
    for selection in [[5, 3, 99, 3, 0], [-1, -100], np.array([], int), range(90, 10, -7)]:
        rows = np.asarray(list(selection), int)
        assert np.array_equal(ours["d"][selection], values[rows])
        assert np.array_equal(ours["d"][2:90:3, [9, 0, 0]], values[2:90:3][:, [9, 0, 0]])


def test_a_mask_of_the_dataset_s_shape(pair):
    values = np.arange(60).reshape(10, 6)
    ours, theirs = pair(lambda file: file.create_dataset("d", data=values, chunks=(4, 4)))
    for mask in [values % 7 == 0, values > 1000, values >= 0]:
        assert np.array_equal(ours["d"][mask], values[mask])
    same_values(ours["d"][values % 7 == 0], theirs["d"][values % 7 == 0])


def test_a_new_axis_is_refused(pair):
    for file in pair(lambda file: file.create_dataset("d", data=np.arange(5))):
        for selection in (None, (None, np.s_[:]), (1, None)):
            with pytest.raises(TypeError):
                file["d"][selection]


def test_selections_that_make_no_sense(pair):
    ours, _ = pair(lambda file: file.create_dataset("d", data=np.zeros((4, 5))))
    for selection, error in [
        (4, IndexError), (-5, IndexError), ((0, 0, 0), IndexError), (np.s_[::-1], ValueError), (1.5, TypeError),
        ([1.5], TypeError), (np.s_[..., ...], IndexError), (([0], [0]), TypeError), ([4], IndexError),
        (np.zeros(3, bool), TypeError), ((0, np.zeros(3, bool)), TypeError), ((0, 0, 0), ValueError), (np.s_[..., ...], ValueError),
        (np.zeros((4, 4), bool), TypeError), ("field", ValueError),
        (True, TypeError), ([[0]], TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            ours["d"][selection]


def test_scalars_null_and_empty(pair):
    def write(file):
        file["number"] = 7.5
        file["text"] = "weft"
        file["fixed"] = np.bytes_(b"warp")
        file["record"] = np.array((1, 2.5), dtype=[("a", "i4"), ("b", "f8")])
        file["null"] = h5py.Empty("<f4")
        file["empty"] = np.zeros((0, 3), "i2")
        file.create_dataset("chunked", (0,), "f4", maxshape=(None,), chunks=(16,))
        file.create_dataset("unwritten", (5, 2), "i4", fillvalue=-9)
        file.create_dataset("holes", (100,), "i4", fillvalue=3, chunks=(10,))[35:37] = 1

    ours, theirs = pair(write)
    for name in theirs:
        same_datasets(ours[name], theirs[name])
    same_values(ours["record"]["a"], theirs["record"]["a"])
    with pytest.raises(ValueError):
        ours["number"][0]
    with pytest.raises(TypeError):
        len(ours["number"])


def test_strings_of_every_padding(tmp_path):
    path = tmp_path / "padding.h5"
    stored = np.array([b"ab", b"ab  ", b"ab\0cd", b"     ", b"abcdef", b""], "S6")
    with h5py.File(path, "w") as file:
        for padding in (h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD):
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(6)
            kind.set_strpad(padding)
            pair = h5py.h5t.create(h5py.h5t.COMPOUND, 16)
            pair.insert(b"n", 0, h5py.h5t.STD_I32LE)
            pair.insert(b"t", 4, h5py.h5t.array_create(kind, (2,)))
            space = h5py.h5s.create_simple((6,))
            dataset = h5py.h5d.create(file.id, f"text{padding}".encode(), kind, space)
            # Written without conversion: the memory type is the file's.
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, stored, mtype=kind)
            records = np.zeros(6, {"names": ["t"], "formats": [("S6", 2)], "offsets": [4], "itemsize": 16})
            records["t"][:, 1] = stored
            dataset = h5py.h5d.create(file.id, f"record{padding}".encode(), pair, space)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, records, mtype=pair)
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for name in theirs:
            same_values(ours[name][()], theirs[name][()])


def test_values_of_variable_length(pair):
    def write(file):
        texts = ["", "warp", "weft ü", "x" * 10_000] * 25
        file.create_dataset("utf8", data=texts, dtype=h5py.string_dtype())
        file.create_dataset("never written", (4,), h5py.string_dtype())
        file.create_dataset("half written", (6,), h5py.string_dtype(), chunks=(4,))[1] = "x"
        file.create_dataset("ascii", data=["a", "bc"], dtype=h5py.string_dtype("ascii"))
        file.create_dataset("grid", data=np.array(texts, object).reshape(20, 5), dtype=h5py.string_dtype(),
                            chunks=(6, 2), compression="gzip")
        ragged = file.create_dataset("ragged", (10,), h5py.vlen_dtype(np.dtype("<f4")), chunks=(4,))
        for row in range(8):
            ragged[row] = np.arange(row)
        file.attrs["list"] = ["a", "bc"]
        file.attrs["one"] = "text"
        file.attrs.create("ragged", np.array([np.arange(3), np.arange(2)], object), dtype=h5py.vlen_dtype("i8"))

    ours, theirs = pair(write)
    same_attributes(ours, theirs)
    for name in theirs:
        same_datasets(ours[name], theirs[name])
        for selection in [1, np.s_[1:7:2], [0, 5, 7] if len(theirs[name]) > 7 else [0]]:
            same_values(ours[name][selection], theirs[name][selection])
    same_values(ours["utf8"].asstr()[:5], theirs["utf8"].asstr()[:5])
    assert ours["utf8"].asstr()[1] == "warp"


def test_sequences_of_the_other_byte_order(pair):
    def write(file):
        ragged = file.create_dataset("ragged", (3,), h5py.vlen_dtype(np.dtype(">i2")))
        ragged[1] = np.arange(3).astype(">i2")

    # h5py interprets the bytes as those of a native number (3.16: 0, 256, 512).
    ours, _ = pair(write)
    assert [list(row) for row in ours["ragged"][:]] == [[], [0, 1, 2], []]


def test_what_h5py_reads_for_us(pair):
    def write(file):
        file["values"] = np.arange(4)
        file.create_dataset("references", data=[file["values"].ref], dtype=h5py.ref_dtype)
        mixed = np.dtype([("n", "i4"), ("text", h5py.string_dtype())])
        file.create_dataset("mixed", data=np.array([(1, "a"), (2, "bc")], mixed))
        file.create_dataset("long", data=np.arange(3, dtype=np.longdouble))
        file.attrs["pointer"] = file["values"].ref

    ours, theirs = pair(write)
    for name in ("mixed", "long"):
        same_datasets(ours[name], theirs[name])
    same_values(ours["mixed"]["n"], theirs["mixed"]["n"])
    same_types(ours["references"].dtype, theirs["references"].dtype)
    assert theirs[ours["references"][0]] == theirs["values"]
    assert theirs[ours.attrs["pointer"]] == theirs["values"]


def test_the_first_request_to_h5py_may_be_a_long_one(tmp_path):
    values = np.arange(4_000_000).reshape(2, -1)
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["d"] = values
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource("source.h5", "d", values.shape)
        file.create_virtual_dataset("v", layout)
    for selection in (np.s_[1, 5], np.s_[:]):
        with raddle.open(tmp_path / "virtual.h5") as file:
            same_values(file["v"][selection], values[selection])


def test_attributes(pair):
    def write(file):
        for number, value in enumerate(
            [1, 2.5, "text", b"bytes", np.arange(6).reshape(2, 3), True, h5py.Empty("f4"), np.float16(3), "", [1 + 2j],
             np.array([], "f8"), np.array([(1, 2.0)], [("a", "i1"), ("b", ">f4")])]
        ):  # fmt: skip
            file.attrs[f"a{number}"] = value
        file.attrs["ä"] = 1
        ordered = file.create_group("ordered", track_order=True)
        for name in "zayb":
            ordered.attrs[name] = name
            ordered[name] = 1

    ours, theirs = pair(write)
    same_attributes(ours, theirs)
    same_attributes(ours["ordered"], theirs["ordered"])
    assert list(ours["ordered"]) == list(theirs["ordered"]) == list("zayb")
    assert "none" not in ours.attrs and ours.attrs.get("none", 5) == 5
    assert b"a2" in ours.attrs and ours.attrs[b"a2"] == theirs.attrs[b"a2"] and ours.attrs.get(b"none") is None
    with pytest.raises(KeyError):
        ours.attrs["none"]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_groups_and_links(pair, tmp_path, libver):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["far/away"] = [1, 2, 3]

    def write(file):
        file["a/b/c"] = np.arange(3)
        file["a/alias"] = file["a/b/c"]
        file["soft"] = h5py.SoftLink("/a/b")
        file["relative"] = h5py.SoftLink("a/./alias")
        file["broken"] = h5py.SoftLink("/nowhere")
        file["loop"] = h5py.SoftLink("/loop")
        file["external"] = h5py.ExternalLink("other.h5", "/far")
        file["lost"] = h5py.ExternalLink("lost.h5", "/far")
        file["kind"] = np.dtype("<i4")
        file["a/cycle"] = file["/"]

    ours, theirs = pair(write, libver=libver)
    assert list(ours) == list(theirs) and list(ours.keys()) == list(theirs.keys()) and len(ours) == len(theirs)
    for path in ["a", "a/b/c", "/a/b/c", "soft/c", "relative", "external/away", "a/cycle/a", "/"]:
        assert path in ours and type(ours[path]).__name__ == type(theirs[path]).__name__.replace("File", "Group")
    for path in ["broken", "loop", "lost", "x", "a/b/c/d", "soft/x", ""]:
        assert (path in ours) is (path in theirs)
    for path in ["broken", "x", "lost"]:
        with pytest.raises(KeyError):
            ours[path]
        assert ours.get(path) is None and ours.get(path, 5) == 5
    assert np.array_equal(ours["external/away"][:], [1, 2, 3])
    assert ours["a/b/c"] == ours["a/alias"] and ours["a/b"] != ours["a"]
    assert ours["a/b/c"].parent == ours["a/b"] and ours["a/b"].file is ours
    # h5py fails at the loop.
    assert [name for name, found in ours.items() if found is None] == ["broken", "loop", "lost"]
    assert ours.get("soft", getlink=True).path == "/a/b"
    assert ours.get("external", getlink=True).filename == "other.h5"
    assert ours.get("a", getclass=True) is raddle.Group
    visited, seen = [], []
    ours.visititems(lambda name, found: visited.append((name, type(found).__name__)))
    theirs.visititems(lambda name, found: seen.append((name, type(found).__name__)))
    assert visited == seen
    assert ours.visit(lambda name: name if name.endswith("b") else None) == "a/b"
    assert ours["kind"].dtype == np.dtype("<i4")


def test_reading_into_arrays(pair):
    values = np.arange(120, dtype="f4").reshape(30, 4)
    ours, theirs = pair(lambda file: file.create_dataset("d", data=values, chunks=(7, 4), compression="gzip"))
    dataset = ours["d"]
    exact = np.zeros((10, 4), "f4")
    assert dataset.read(np.s_[5:15], out=exact) is exact and np.array_equal(exact, values[5:15])
    wider = np.zeros((30, 4), "f8")
    dataset.read_direct(wider)
    assert np.array_equal(wider, values)
    spread = np.zeros((30, 8), "f4")
    dataset.read_direct(spread[:, ::2])
    assert np.array_equal(spread[:, ::2], values) and not spread[:, 1::2].any()
    target = np.zeros((50, 4), "f4")
    dataset.read_direct(target, np.s_[3:6], np.s_[40:43])
    assert np.array_equal(target[40:43], values[3:6]) and not target[:40].any()
    with pytest.raises(ValueError):
        dataset.read(np.s_[0:5], out=np.zeros((4, 4), "f4"))
    assert np.array_equal(np.asarray(dataset), values)
    assert np.asarray(dataset, dtype="i2").dtype == np.dtype("i2")
    assert np.array_equal(np.array(list(dataset)), values)
    same_values(dataset.astype("i8")[3:5], theirs["d"].astype("i8")[3:5])


@pytest.mark.parametrize("kind", ["i1", "i2", ">i2"])
def test_indices_of_a_type_smaller_than_the_axis(pair, kind):
    """Negative numbers count from the end of an axis whose length the type cannot hold."""
    values = np.arange(70_000)

    def write(file):
        file["d"], file["wide"], file["t/x"] = values, values.reshape(1, -1), values

    ours, theirs = pair(write)
    for listed in [[1, 5, 100], [5, 0, 5], [], [-1], [3, -100, -1]]:
        index = np.array(listed, kind)
        expected = values[index.astype("i8")]
        assert np.array_equal(ours["d"][index], expected)
        assert np.array_equal(ours["wide"][0, index], expected)
        assert np.array_equal(ours["t"].read_columns(["x"], index)["x"], expected)
    same_values(ours["d"][np.array([1, 5, 100], kind)], theirs["d"][np.array([1, 5, 100], kind)])


@pytest.mark.parametrize("count", [3000, 5000])
def test_single_rows_behind_a_deep_index(tmp_path, count):
    # The index of 5,000 chunks has three levels in the earliest format.
    path = tmp_path / "deep.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(1, count + 1), chunks=(1,), compression=1)
    with raddle.open(path) as file:
        assert [file["d"][row] for row in (0, count // 2, -1)] == [1, count // 2 + 1, count]
