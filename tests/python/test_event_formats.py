"""Files of all formats read, joined and converted alike."""

import struct

import awkward as ak
import numpy as np
import pytest
import raddle
from event_files import ENTRIES, write_root
from raddle import errors
from ranks import on_ranks


def vector(values):
    """Returns a vector<int> as serialised by ROOT: count and values, after two headers with byte count and version."""
    inner = struct.pack(f">HI{len(values)}i", 10, len(values), *values)
    outer = struct.pack(">HI", 6, 0x40000000 | len(inner)) + inner
    return struct.pack(">I", 0x40000000 | len(outer)) + outer


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """The same lists as a tree, an RNTuple, columns, and two streams with both serialisations."""
    folder = tmp_path_factory.mktemp("formats")
    lists = ak.Array([list(range(number % 4)) for number in range(25)])
    paths = [folder / name for name in ("tree.root", "ntuple.root", "columns.h5", "root.pds", "unrolled.pds", "batch.h5")]
    write_root(paths[0], {"numbers": ak.values_astype(lists, np.int32)})
    write_root(paths[1], {"numbers": ak.values_astype(lists, np.int32)}, True)
    raddle.events.write(paths[2], {"numbers": ak.values_astype(lists, np.int32)}, progress=False)
    blobs = {"numbers": ak.from_iter([vector(values) for values in ak.to_list(lists)])}
    raddle.events.write(paths[3], blobs, classes={"numbers": "vector<int>"}, layout="pds", progress=False)
    raddle.events.convert(paths[3], paths[4], layout="pds", serialize="unrolled", progress=False)
    raddle.events.convert(paths[3], paths[5], layout="batch", batch=10, progress=False)
    return paths, ak.to_list(lists)


def test_files_of_all_formats_are_joined_as_what_they_are_read_as(formats, tmp_path):
    paths, lists = formats
    for order in (paths, paths[::-1]):
        # Only the tree has the branch that counts them.
        with pytest.warns(UserWarning, match="^nnumbers left out"):
            events = raddle.events.open(order, differing="leave-out")
        assert [product.type for product in events.products] == ["var * int32"]
        assert ak.to_list(events["numbers"]) == lists * len(paths)
    output = tmp_path / "all.h5"
    raddle.events.convert(paths, output, products=["numbers"], order="given", progress=False)
    # The others have no ids.
    assert raddle.events.open(output).ids() is None and raddle.events.open(paths[3:]).ids().shape == (75,)
    assert ak.to_list(raddle.events.open(output)["numbers"]) == lists * len(paths)
    # Bytes of both streams, with the same serialisation.
    streams = paths[3:]
    for layout, serialize in (("batch", "root"), ("event", "unrolled"), ("pds", "root")):
        output = tmp_path / f"{layout}.{serialize}"
        raddle.events.convert(streams, output, layout=layout, serialize=serialize, order="given", progress=False)
        assert raddle.events.open(output, raw=True).products[0].type == f"bytes[{serialize}]"
        assert ak.to_list(raddle.events.open(output)["numbers"]) == lists * 3
    with pytest.raises(errors.InputError, match="serialize"):
        raddle.events.convert(streams, tmp_path / "mixed", layout="batch", order="given", progress=False)


def test_leaving_out_everything_is_an_error(formats, tmp_path):
    paths, _ = formats
    with pytest.raises(errors.InputError, match=r"numbers would all be left out: .*unrolled.pds, branch numbers: its form is bytes"):
        raddle.events.open(paths[3:5], raw=True, differing="leave-out")
    with pytest.raises(errors.InputError, match="numbers would all be left out"):
        raddle.events.convert(paths[3:5], tmp_path / "none.h5", layout="batch", differing="leave-out", progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["product", "event", "batch", "pds"])
@pytest.mark.parametrize("options", [{}, {"raw": True}, {"serialize": "root"}])
def test_columns_have_no_bytes_for_layouts_of_bytes(formats, tmp_path, layout, options):
    for path in formats[0][1:3]:
        with pytest.raises(errors.InputError, match="columns and fields of RNTuples are not serialised") as raised:
            raddle.events.convert(path, tmp_path / "out", layout=layout, progress=False, **options)
        assert "write columns" in raised.value.hint


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_convert_together(tree, tmp_path, size):
    raddle.events.convert([tree] * 5, tmp_path / "one.h5", duplicates="keep", progress=False)

    def convert(communicator, inputs=(tree,) * 5, name="all.h5"):
        return raddle.events.convert(inputs, tmp_path / name, duplicates="keep", communicator=communicator)

    reports = on_ranks(size, convert)
    assert {report.events for report in reports} == {5 * ENTRIES}
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "all.h5").read_bytes()
    # Only one rank does not find its input.
    absent = tmp_path / "absent.root"
    failed = on_ranks(size, lambda ranks: convert(ranks, [absent if ranks.rank == size - 1 else tree], "none.h5"))
    assert isinstance(failed[-1], errors.InputError) and "absent.root" in str(failed[-1])
    assert all(isinstance(error, errors.RankFailedError) for error in failed[:-1])
    assert not (tmp_path / "none.h5").exists()


def test_bytes_go_through_every_layout(tmp_path):
    blobs = ak.from_iter([vector(range(number % 4)) for number in range(25)])
    classes = {"numbers": "vector<int>"}
    for layout in ("product", "event", "batch", "pds"):
        path = tmp_path / layout
        raddle.events.write(path, {"numbers": blobs}, classes=classes, layout=layout, batch=10, progress=False)
        read = raddle.events.open(path, raw=True)["numbers"]
        # Streams pad to words.
        assert raddle.events.open(path).products[0].type == "var * int32"
        assert ak.to_list(raddle.events.open(path)["numbers"]) == [list(range(number % 4)) for number in range(25)]
        assert [blob.rstrip(b"\0") for blob in ak.to_list(read)] == [blob.rstrip(b"\0") for blob in ak.to_list(blobs)]
    joined = tmp_path / "joined"
    report = raddle.events.merge([tmp_path / "event", tmp_path / "event"], joined, duplicates="keep", progress=False)
    assert report.events == 50 and raddle.events.open(joined, raw=True).num_entries == 50
