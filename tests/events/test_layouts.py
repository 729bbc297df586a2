"""Layouts of events in HDF5 as h5py and awkward-array read them: values, and the framework's form exactly."""

import json
import struct
import subprocess
from pathlib import Path

import awkward as ak
import h5py
import hdf5plugin  # noqa: F401  (zstd and lz4)
import numpy as np
import pytest
import uproot
from command import RADDLE
from converting import raddle, read_columns
from tree_files import as_bits, columns, write


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree of two baskets for each branch, with ids."""
    batches = []
    for seed, entries in [(1, 70), (2, 41)]:
        batch = columns(seed, entries)
        batch |= {"run": np.full(entries, 7, np.uint32), "luminosityBlock": np.full(entries, seed, np.uint32)}
        batch["event"] = np.arange(entries, dtype=np.uint64) + 2**40
        batches.append(batch)
    folder = tmp_path_factory.mktemp("tree")
    return write(folder / "events.root", batches, uproot.ZSTD(3), "Events")


@pytest.mark.parametrize(
    "options", [[], ["-c", "none"], ["--chunk", "256B", "-j", "3"], ["--chunk", "256B", "-c", "zstd:5"], ["--chunk", "64B", "-c", "lz4"]]
)
def test_columns_are_what_uproot_reads(tree, tmp_path, options):
    output = tmp_path / "columns.h5"
    raddle("convert", tree, "-o", output, *options)
    array = read_columns(output)
    with uproot.open(tree) as file:
        names = [branch.name for branch in file["Events"].branches if not branch.name.startswith("njagged")]
        expected = file["Events"].arrays(names)
    for name in names:
        assert ak.array_equal(as_bits(array[name]), as_bits(expected[name])), name
    with h5py.File(output) as file:
        assert set(file["ids/run"][()]) == {7} and list(file["ids/lumi"][:2]) == [1, 1]
        assert np.array_equal(file["ids/event"][()], ak.to_numpy(expected["event"]))
        # numpy reads the type that the form states.
        assert file["events/flat_bool-data"].dtype == bool
        assert file["events/jagged_float32-offsets"].dtype == np.uint64


def test_products_are_chosen_by_name(tree, tmp_path):
    output = tmp_path / "few.h5"
    raddle("convert", tree, "-o", output, "--products", "flat_int*", "--products", "event", "--entries", "60..80")
    array = read_columns(output)
    assert set(array.fields) == {"flat_int8", "flat_int16", "flat_int32", "flat_int64", "event"}
    with uproot.open(tree) as file:
        assert ak.array_equal(array["flat_int64"], file["Events/flat_int64"].array(entry_start=60, entry_stop=80))
    assert "no such product" in raddle("convert", tree, "-o", tmp_path / "none.h5", "--products", "x*", code=3)


def vector(kind, values):
    """Returns a vector as ROOT serialises it."""
    data = struct.pack(f">{len(values)}{kind}", *values)
    entry = struct.pack(">IHI", 0x40000000 | len(data) + 6, 10, len(values)) + data
    return struct.pack(">IH", 0x40000000 | len(entry) + 2, 6) + entry


def products(event):
    return [vector("i", [event, event + 1, event + 2]), vector("f", [event, 2.0 * event, 3.0 * event])]


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A packed data stream of ten events of the framework's test products, written here."""

    def padded(data):
        return data + b"\0" * (-len(data) % 4)

    names = padded(b"vector<float>\0vector<int>\0")
    head = struct.pack("<I", 2) + b"Event\0\0\0" + struct.pack("<I", len(names) // 4) + names + struct.pack("<II", 0, 2)
    head += struct.pack("<I", 1) + padded(b"ints\0") + struct.pack("<I", 0) + padded(b"floats\0")
    words = struct.pack("<I", len(head) // 4)
    out = struct.pack("<II", 0x2FEFD801, 0) + b"None" + words + head + words
    for event in range(10):
        payload = b""
        for number, blob in enumerate(products(event)):
            payload += struct.pack("<II", number, len(blob) // 4) + blob
        record = struct.pack("<I", len(payload)) + payload
        words = struct.pack("<I", len(record) // 4)
        out += struct.pack("<5I", 0, 1, 1, 0, event + 1) + words + record + words
    path = tmp_path_factory.mktemp("stream") / "test.pds"
    path.write_bytes(out)
    return path


def test_a_stream_comes_back_through_every_layout(stream, tmp_path):
    for layout in ["product", "event", "batch"]:
        for form in [[], ["--compat", "cce", "--codec", "zstd:3"]]:
            output = tmp_path / f"{layout}{len(form)}.h5"
            raddle("convert", stream, "-o", output, "--layout", layout, "--batch", "4", *form)
            back = tmp_path / f"{layout}{len(form)}.pds"
            raddle("convert", output, "-o", back, "--layout", "pds", "--codec", "none")
            if form and layout == "product":
                # The framework's reader expects products in the order of names.
                assert back.stat().st_size == stream.stat().st_size
            else:
                assert back.read_bytes() == stream.read_bytes()


@pytest.mark.parametrize(
    "layout", [["event"], *(["batch", "--batch", "5", "--choice", choice] for choice in ("events", "batch", "both"))], ids=" ".join
)
@pytest.mark.parametrize("codec", ["none", "lz4", "zstd:3"])
def test_what_the_framework_compresses_is_merged_as_it_is(stream, tmp_path, layout, codec):
    for name, entries in [("a.h5", "0..10"), ("b.h5", "5..8")]:
        raddle("convert", stream, "-o", tmp_path / name, "--layout", *layout, "--compat", "cce", "--codec", codec, "--entries", entries)
    raddle("merge", tmp_path / "a.h5", tmp_path / "b.h5", "-o", tmp_path / "all.h5")
    with h5py.File(tmp_path / "all.h5") as file, h5py.File(tmp_path / "a.h5") as a, h5py.File(tmp_path / "b.h5") as b:
        assert list(file["Lumi"]) == list(a["Lumi"])
        assert dict(file["Lumi"].attrs) == dict(a["Lumi"].attrs)
        for name in file["Lumi"]:
            assert np.array_equal(file["Lumi"][name], np.concatenate([a["Lumi"][name], b["Lumi"][name]])), name
    raddle("convert", tmp_path / "all.h5", "-o", tmp_path / "back.pds", "--layout", "pds", "--codec", "none")
    one = stream.read_bytes()
    head = one.index(struct.pack("<5I", 0, 1, 1, 0, 1))
    record = (len(one) - head) // 10
    assert (tmp_path / "back.pds").read_bytes() == one + one[head + 5 * record : head + 8 * record]


def test_streams_are_merged_as_they_are(stream, tmp_path):
    output = tmp_path / "both.pds"
    raddle("merge", stream, stream, "-o", output, "--duplicates", "keep")
    one = stream.read_bytes()
    head = one.index(struct.pack("<5I", 0, 1, 1, 0, 1))
    assert output.read_bytes() == one + one[head:]


def test_more_files_are_joined_than_may_be_open(stream, tmp_path):
    """For each format, 100 files with 64 descriptors."""
    raddle("convert", stream, "-o", tmp_path / "one.h5", "--layout", "event")
    for number in range(100):
        (tmp_path / f"part{number}.pds").symlink_to(stream)
        (tmp_path / f"part{number}.h5").symlink_to(tmp_path / "one.h5")
    script = 'ulimit -S -n 64; exec "$0" "$@"'
    for command, ending in [("merge", "pds"), ("merge", "h5"), ("convert", "pds")]:
        output = tmp_path / f"{command}-{ending}"
        inputs = [tmp_path / f"part{number}.{ending}" for number in range(100)]
        arguments = ["events", command, *inputs, "-o", output, "--duplicates", "keep", "-q"]
        subprocess.run(["sh", "-c", script, RADDLE, *map(str, arguments)], check=True, timeout=300)
        assert json.loads(raddle("inspect", output, "--json"))["events"] == 1000


def test_blobs_of_collections_become_columns(stream, tmp_path):
    output = tmp_path / "columns.h5"
    raddle("convert", stream, "-o", output)
    array = read_columns(output)
    assert array["ints"].to_list() == [[event, event + 1, event + 2] for event in range(10)]
    assert array["floats"].to_list() == [[event, 2.0 * event, 3.0 * event] for event in range(10)]


def attributes(group):
    return {name: value if isinstance(value, str) else int(value) for name, value in group.attrs.items()}


def test_the_framework_s_product_layout(stream, tmp_path):
    output = tmp_path / "cce.h5"
    raddle("convert", stream, "-o", output, "--layout", "product", "--compat", "cce")
    with h5py.File(output) as file:
        lumi = file["Lumi"]
        assert attributes(lumi) == {"run": 1, "lumisec": 1}
        kinds = {name: (dataset.dtype.str, dataset.shape, dataset.maxshape) for name, dataset in lumi.items()}
        assert kinds == {
            "Event_IDs": ("<i4", (10,), (None,)),
            "ints": ("|i1", (280,), (None,)),
            "ints_sz": ("<u8", (10,), (None,)),
            "floats": ("|i1", (280,), (None,)),
            "floats_sz": ("<u8", (10,), (None,)),
        }
        assert all(dataset.chunks and dataset.compression is None for dataset in lumi.values())
        assert list(lumi["Event_IDs"]) == list(range(1, 11))
        assert list(lumi["ints_sz"]) == list(range(28, 281, 28))
        assert lumi["ints"][()].tobytes() == b"".join(products(event)[0] for event in range(10))
        assert lumi["floats"][()].tobytes() == b"".join(products(event)[1] for event in range(10))
        assert dict(lumi["ints"].attrs) == {"classname": "vector<int>"}


def test_the_framework_s_event_and_batch_layouts(stream, tmp_path):
    output = tmp_path / "cce.h5"
    blobs = b"".join(b"".join(products(event)) for event in range(10))
    raddle("convert", stream, "-o", output, "--layout", "event", "--compat", "cce", "--codec", "none")
    with h5py.File(output) as file:
        lumi = file["Lumi"]
        common = {"run": 1, "lumisec": 1, "ints": "vector<int>", "floats": "vector<float>"}
        assert attributes(lumi) == common | {"CompressionLevel": 18, "Compression": "None"}
        assert {name: dataset.dtype.str for name, dataset in lumi.items()} == {
            "EventIDs": "<i4",
            "Offsets": "<i4",
            "Products": "|i1",
        }
        assert list(lumi["Offsets"]) == [0, 28, 56] * 10
        assert lumi["Products"][()].tobytes() == blobs
    # In the order in which the framework makes them: readers identify products only by this order.
    data = output.read_bytes()
    names = [b"run\0", b"lumisec\0", b"CompressionLevel\0", b"Compression\0", b"ints\0", b"floats\0"]
    places = [data.index(name) for name in names]
    assert places == sorted(places)
    for number, choice in enumerate(["none", "events", "batch", "both"]):
        options = ["--layout", "batch", "--batch", "4", "--compat", "cce", "--codec", "zstd:18", "--choice", choice]
        raddle("convert", stream, "-o", output, "-f", *options)
        with h5py.File(output) as file:
            lumi = file["Lumi"]
            expected = {"CompressionLevel": 18, "CompressionChoice": number, "Compression": "ZSTD"}
            assert attributes(lumi) == common | expected
            offsets = lumi["Offsets"][()].reshape(10, 4)
            assert np.array_equal(offsets[:, :3], np.tile([0, 28, 56], (10, 1)))
            assert (offsets[:, 3] == 56).all() == (choice in ("none", "batch"))
            if choice == "none":
                assert lumi["Products"][()].tobytes() == blobs
            if choice == "events":
                assert offsets[:, 3].sum() == len(lumi["Products"])


def test_our_layouts_read_with_h5py_alone(stream, tmp_path):
    for layout in ["product", "event", "batch"]:
        raddle("convert", stream, "-o", tmp_path / f"{layout}.h5", "--layout", layout, "--batch", "4")
    expected = [products(event) for event in range(10)]
    with h5py.File(tmp_path / "product.h5") as file:
        lumi = file["Lumi"]
        assert list(lumi.attrs["ProductNames"]) == ["ints", "floats"]
        assert list(lumi.attrs["ClassNames"]) == ["vector<int>", "vector<float>"]
        assert list(lumi.attrs["Serializations"]) == ["root", "root"]
        for number, name in enumerate(lumi.attrs["ProductDatasets"]):
            ends = lumi[f"{name}_sz"][()]
            blobs = [lumi[name][end - 28 : end].tobytes() for end in ends]
            assert blobs == [event[number] for event in expected]
    with h5py.File(tmp_path / "event.h5") as file:
        offsets, data = file["Lumi/Offsets"][()], file["Lumi/Products"][()].tobytes()
        blobs = [data[start:end] for start, end in zip(offsets, offsets[1:])]
        assert blobs == [blob for event in expected for blob in event]
    with h5py.File(tmp_path / "batch.h5") as file:
        lumi = file["Lumi"]
        assert list(lumi["Batches"]) == [0, 4, 8, 10]
        offsets, data = lumi["Offsets"][()], lumi["Products"][()].tobytes()
        blobs = iter(data[start:end] for start, end in zip(offsets, offsets[1:]))
        for start, end in zip(lumi["Batches"], lumi["Batches"][1:]):
            for number in range(2):
                assert [next(blobs) for _ in range(start, end)] == [event[number] for event in expected[start:end]]
        assert list(lumi["EventIDs"]) == list(range(1, 11)) and set(lumi["RunIDs"]) == {1}


def test_bad_branches_are_left_out_when_asked(tree, tmp_path):
    broken = tmp_path / "broken.root"
    with uproot.open(tree) as file:
        # A branch of compressible numbers: others are stored uncompressed.
        branch = file["Events/njagged_float64"]
        start = branch.member("fBasketSeek")[1]
    data = bytearray(Path(tree).read_bytes())
    # The basket's compression is stated after its key.
    start = data.index(b"ZS", start)
    data[start : start + 2] = b"??"
    broken.write_bytes(data)
    output = tmp_path / "out.h5"
    message = raddle("convert", broken, "-o", output, code=3)
    assert "broken.root, tree Events, branch njagged_float64, entries 70..111" in message, message
    assert not output.exists()
    raddle("convert", broken, "-o", output, "--skip-bad", code=4)
    array = read_columns(output)
    assert "njagged_float64" not in array.fields and len(array) == 111
    with uproot.open(tree) as file:
        assert ak.array_equal(array["flat_int64"], file["Events/flat_int64"].array())


def test_inspect_reports_every_object(tree, stream, tmp_path):
    text = raddle("inspect", tree)
    assert "ROOT file, tree Events" in text and "111 events" in text and "var * float32" in text
    assert "packed data stream, compression none, serialisation root" in raddle("inspect", stream)
    output = tmp_path / "batch.h5"
    raddle("convert", stream, "-o", output, "--layout", "batch", "--batch", "4")
    assert "HDF5, batch layout, 3 batches" in raddle("inspect", output, "--sizes")
