"""RNTuples written by uproot: raddle's columns equal uproot's."""

import struct

import awkward as ak
import numpy as np
import pytest
import uproot
from ntuple_files import columns
from uproot.writing import _cascadentuple as writing


@pytest.mark.parametrize("compression", [None, uproot.ZLIB(1), uproot.LZ4(1), uproot.ZSTD(5)])
def test_fields_are_those_of_uproot(dump, tmp_path, compression):
    path = tmp_path / "fields.root"
    batches = [columns(1, 50), columns(2, 1), columns(3, 117)]
    with uproot.recreate(path, compression=compression) as file:
        file.mkrntuple("Events", batches[0])
        for batch in batches[1:]:
            file["Events"].extend(batch)
    ours = dump(path)
    assert ours.entries == 168 and "not read" not in ours.notes
    with uproot.open(path) as file:
        expected = file["Events"].arrays()
    assert set(expected.fields) == set(ours.products)
    for name in expected.fields:
        assert ak.to_list(ours[name]) == ak.to_list(expected[name]), name


class LateFields:
    """Adds fields to an RNTuple that already has entries, as ROOT does while writing. uproot has no such feature, but
    writes the records."""

    def __init__(self, ntuple, data):
        self.ntuple, before = ntuple._cascading, len(ntuple._cascading._header._column_keys)
        fields_before = len(self.ntuple._header._field_records)
        header = writing.NTuple_Header(None, "Events", "", data.layout.form)
        # The header in the file stays unchanged; the records added to it form the footer's extension.
        header._checksum = self.ntuple._header._checksum
        self.late = header._column_keys[before:]
        self.columns = header._column_records[before:]
        self.fields = header._field_records
        self.ntuple._header = header
        self.ntuple._footer.extension_field_record_frames = self.fields[fields_before:]
        self.ntuple._footer.extension_column_record_frames = self.columns

    def per_entry(self, number):
        """Returns the number of elements of each entry in a column of a field; 0 in collections."""
        field, product = self.fields[number], 1
        parent = field.parent_field_id
        if field.repetition is not None:
            product = field.repetition
        if parent == number:
            return product
        above = self.fields[parent]
        of_parent = self.per_entry(parent)
        return None if above.struct_role == uproot.const.RNTupleFieldRole.COLLECTION or of_parent is None else product * of_parent

    def extend(self, file, data, skipped, monkeypatch):
        """Writes a cluster whose first ``skipped`` entries have none of the late fields."""
        firsts = []
        for column in self.columns:
            per_entry = self.per_entry(column.field_id)
            # A string's characters are a column of the field itself, after that of the ends.
            is_content = column is not next(other for other in self.columns if other.field_id == column.field_id)
            firsts.append(0 if per_entry is None or is_content else (self.ntuple._num_entries + skipped) * per_entry)
            column.first_element_index = firsts[-1]
        self.ntuple._column_counts = np.concatenate([self.ntuple._column_counts, firsts]).astype(int)
        to_buffers = ak.to_buffers

        def without_skipped(layout):
            form, length, buffers = to_buffers(layout)
            buffers = dict(buffers)
            for key, column, first in zip(self.late, self.columns, firsts):
                if first:
                    buffers[key] = buffers[key].reshape(-1)[skipped * (self.per_entry(column.field_id) or 1) :]
            return form, length, buffers

        with monkeypatch.context() as patch:
            patch.setattr(writing.awkward, "to_buffers", without_skipped)
            file["Events"].extend(data)


@pytest.mark.parametrize("compression", [None, uproot.ZSTD(5)])
@pytest.mark.parametrize("skipped", [0, 3])
def test_fields_that_were_added_later_begin_with_zeros(dump, tmp_path, monkeypatch, compression, skipped):
    path = tmp_path / "late.root"
    random = np.random.default_rng(5)

    def batch(entries, zeros):
        sizes = np.where(np.arange(entries) < zeros, 0, random.integers(0, 4, entries))
        lists = ak.unflatten(random.normal(size=sizes.sum()).astype("f4"), sizes)
        numbers = np.where(np.arange(entries) < zeros, 0, random.integers(1, 100, entries))
        return ak.Array(
            {
                "early": np.arange(entries),
                "early_list": ak.unflatten(np.arange(2 * entries), np.full(entries, 2)),
                "late_number": numbers.astype("i4"),
                "late_flag": numbers % 2 == 1,
                "late_list": lists,
                "late_text": ak.Array(["x" * int(number % 5) for number in numbers]),
                "late_fixed": ak.to_regular(ak.Array(np.stack([numbers, numbers + (numbers > 0)], 1).astype("i8"))),
                "late_tracks": ak.zip({"px": lists, "charge": ak.values_astype(lists, "i1")}),
            }
        )

    before, *others = [batch(7, 7), batch(5, 7), batch(9, skipped), batch(4, 0)]
    with uproot.recreate(path, compression=compression) as file:
        file.mkrntuple("Events", before[["early", "early_list"]])
        file["Events"].extend(others[0][["early", "early_list"]])
        fields = LateFields(file["Events"], others[1])
        fields.extend(file, others[1], skipped, monkeypatch)
        file["Events"].extend(others[2])
    ours = dump(path)
    assert "not read" not in ours.notes
    expected = ak.concatenate([before, *others])
    assert ours.entries == len(expected) and set(ours.products) == set(expected.fields)
    with uproot.open(path) as file:
        read = file["Events"].arrays()
    for name in expected.fields:
        assert ak.to_list(ours[name]) == ak.to_list(expected[name]), name
        assert ak.to_list(read[name]) == ak.to_list(expected[name]), name


class Suppressed:
    """A column without elements in a cluster that stores another representation of it."""

    def serialize(self):
        return writing._serialize_rntuple_list_frame([], wrap=False, extra_payload=struct.pack("<q", -(2**63)))


class SecondRepresentation:
    """Returns the record of a column that holds the elements of ``column`` from entry ``first`` on."""

    def __init__(self, column, first):
        self.column, self.first = column, first

    def serialize(self):
        deferred, column = 1, self.column
        record = (column.type_num, column.bits_on_disk, column.field_id, deferred, 1)
        return struct.pack("<HHIHHq", *record, -self.first)


@pytest.mark.parametrize("name", ["number", "list"])
def test_a_cluster_may_have_another_representation(dump, tmp_path, monkeypatch, name):
    path = tmp_path / "representations.root"
    batches = [ak.Array({"number": np.arange(n) + n, "list": ak.unflatten(np.arange(2 * n), np.full(n, 2))}) for n in (5, 7, 3)]
    with uproot.recreate(path) as file:
        file.mkrntuple("Events", batches[0])
        ntuple = file["Events"]._cascading
        # For the list, the column of its ends.
        at = {"number": 0, "list": 1}[name]
        ntuple._footer.extension_column_record_frames = [SecondRepresentation(ntuple._header._column_records[at], 5)]
        envelope = writing.NTuple_PageListEnvelope

        def exchanged(checksum, summaries, clusters):
            for columns in clusters:
                columns.append(columns[at])
                columns[at] = Suppressed()
            return envelope(checksum, summaries, clusters)

        with monkeypatch.context() as patch:
            patch.setattr(writing, "NTuple_PageListEnvelope", exchanged)
            file["Events"].extend(batches[1])
        # A cluster with the first representation again.
        with monkeypatch.context() as patch:
            patch.setattr(
                writing,
                "NTuple_PageListEnvelope",
                lambda checksum, summaries, clusters: envelope(
                    checksum, summaries, [[*columns, Suppressed()] for columns in clusters]
                ),
            )
            file["Events"].extend(batches[2])
    ours = dump(path)
    assert "not read" not in ours.notes
    for field, expected in [(field, ak.concatenate([batch[field] for batch in batches])) for field in ("number", "list")]:
        assert ak.to_list(ours[field]) == ak.to_list(expected), field


def test_ids_are_found(dump, tmp_path):
    path = tmp_path / "ids.root"
    events = np.arange(9, dtype=np.uint64) + 2**33
    with uproot.recreate(path) as file:
        kinds = {"run": np.full(9, 4, np.uint32), "luminosityBlock": np.arange(9, dtype=np.uint32), "event": events}
        file.mkrntuple("Events", ak.Array(kinds))
    ids = dump(path).ids
    assert ids == [{"run": 4, "lumi": number, "event": int(event)} for number, event in enumerate(events)]


def test_damage_is_reported(dump, tmp_path):
    path = tmp_path / "damaged.root"
    with uproot.recreate(path, compression=None) as file:
        file.mkrntuple("Events", ak.Array({"number": np.arange(1000)}))
    data = bytearray(path.read_bytes())
    # The field's name, in the header.
    data[data.index(b"number")] ^= 1
    path.write_bytes(data)
    dump(path, expect="its checksum does not match")
