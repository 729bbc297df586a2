"""Shares of events and rows by event, of a file with partition keys."""

import io
import os
import shutil

import h5py
import numpy as np
import pytest
import raddle
from raddle import errors

FILES = 3
EVENTS = 40


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A merged file with keys: events, and zero or more tracks of each."""
    folder = tmp_path_factory.mktemp("keyed")
    paths = []
    for number in range(FILES):
        random = np.random.default_rng(number)
        events = np.arange(EVENTS, dtype="u4")
        owners = np.repeat(events, random.integers(0, 4, EVENTS))
        with h5py.File(folder / f"run{number}.h5", "w") as file:
            for group, ids in (("spill", events), ("rec.trk", owners)):
                file[f"{group}/subrun"] = np.full_like(ids, number)
                file[f"{group}/evt"] = ids
            file["spill/pot"] = random.normal(size=EVENTS)
            file.create_dataset(
                "rec.trk/energy", data=random.normal(size=len(owners)).astype(">f4"), chunks=(16,), compression="gzip"
            )
            file["rec.trk/hits"] = random.integers(0, 9, (len(owners), 3))
            file.create_dataset("rec.trk/label", data=[f"t{owner}" for owner in owners], dtype=h5py.string_dtype())
            file["unkeyed/values"] = np.arange(5)
        paths.append(folder / f"run{number}.h5")
    raddle.merge(paths, folder / "all.h5", keys=["/spill/subrun", "/spill/evt"], progress=False)
    return folder / "all.h5"


@pytest.fixture
def opened(keyed):
    with raddle.open(keyed) as file:
        yield file


@pytest.mark.parametrize("size", [1, 2, 7, 200])
def test_shares_hold_every_row_once_and_events_whole(opened, size):
    shares = [opened.partition(rank, size) for rank in range(size)]
    assert [share.rank for share in shares] == list(range(size)) and {share.size for share in shares} == {size}
    for group, column in (("/spill", "evt.seq"), ("/rec.trk", "evt.seq")):
        seq = opened[group][column][:]
        next_row = 0
        for share in shares:
            rows = share[group]
            assert rows.start == next_row and rows.step is None
            next_row = rows.stop
            assert ((seq[rows] >= share.events.start) & (seq[rows] < share.events.stop)).all()
        assert next_row == len(seq)
    assert shares[-1].events.stop == FILES * EVENTS


def test_names_that_are_not_shown_as_they_are(keyed, tmp_path):
    shutil.copy(keyed, tmp_path / "named.h5")
    with h5py.File(tmp_path / "named.h5", "a") as file:
        file.move("rec.trk", b"rec\n\xff")
    with raddle.open(tmp_path / "named.h5") as named:
        share = named.partition(1, 2)
        group = named[b"rec\n\xff"]
        assert set(share) == {"/spill", group.name}
        assert len(share.read_columns(group.name, ["energy"])["energy"]) == len(share.read_columns(group)["evt"]) > 0


class Communicator:
    """The part of mpi4py's communicator that is used."""

    def Get_rank(self):
        return 1

    def Get_size(self):
        return 3


def test_a_communicator_says_rank_and_size(opened):
    share = opened.partition(Communicator())
    assert (share.rank, share.size) == (1, 3) and dict(share) == dict(opened.partition(1, 3))
    assert share.events == slice(FILES * EVENTS // 3, 2 * FILES * EVENTS // 3)


def test_shares_of_file_objects_and_after_a_change_of_directory(opened, keyed, monkeypatch, tmp_path):
    expected = dict(opened.partition(1, 3))
    for source in (io.BytesIO(keyed.read_bytes()), keyed.open("rb")):
        with raddle.open(source) as file:
            assert dict(file.partition(1, 3)) == expected
    monkeypatch.chdir(keyed.parent)
    with raddle.open(keyed.name) as file:
        monkeypatch.chdir(tmp_path)
        assert dict(file.partition(np.int64(1), np.uint8(3))) == expected


def test_a_share_reads_its_rows(opened):
    tracks = opened["rec.trk"]
    shares = [opened.partition(rank, 4) for rank in range(4)]
    parts = [share.read_columns(tracks, ["energy", "hits"]) for share in shares]
    for name in ("energy", "hits"):
        assert np.array_equal(np.concatenate([part[name] for part in parts]), tracks[name][:])
    # Without names: the columns of the table, without the key's datasets of other lengths.
    whole = shares[2].read_columns("rec.trk")
    assert set(whole) == {"subrun", "evt", "energy", "hits", "label"}
    assert {len(column) for column in whole.values()} == {shares[2]["rec.trk"].stop - shares[2]["rec.trk"].start}
    assert "Share 2 of 4" in repr(shares[2]) and set(shares[2]) == {"/spill", "/rec.trk"}


def test_ways_to_name_the_key(opened):
    expected = dict(opened.partition(0, 2))
    for key in ("evt", "evt.seq", "/spill/evt", "spill/evt.seq"):
        assert dict(opened.partition(0, 2, key=key)) == expected


def test_what_makes_no_sense(opened, runs, tmp_path, keyed):
    for arguments in [(2, 2), (-1, 2), (0, 0), (0,), (Communicator(), 3)]:
        with pytest.raises(errors.UsageError):
            opened.partition(*arguments)
    with pytest.raises(KeyError, match="rec.trk"):
        opened.partition(0, 2)["unkeyed"]
    with raddle.open(runs[0]) as unkeyed, pytest.raises(KeyError, match="raddle keys add"):
        unkeyed.partition(0, 2)
    with pytest.raises(errors.RaddleError, match="no/such"):
        opened.partition(0, 2, key="/no/such")
    # Without a group called spill, the caller must name the group with one row per event.
    shutil.copy(keyed, tmp_path / "moved.h5")
    with h5py.File(tmp_path / "moved.h5", "a") as file:
        file.move("spill", "events")
    with raddle.open(tmp_path / "moved.h5") as moved:
        with pytest.raises(ValueError, match="one row per event"):
            moved.partition(0, 2)
        assert moved.partition(1, 2, key="/events/evt")["events"] == slice(60, 120)


def test_rows_by_event(opened):
    awkward = pytest.importorskip("awkward", reason="awkward is not installed")
    tracks = opened["rec.trk"]
    owners, values = tracks["evt.seq"][:], {name: tracks[name][:] for name in ("energy", "hits", "label")}
    events = tracks.read_events()
    assert len(events) == FILES * EVENTS and set(events.fields) == {"subrun", "evt", "energy", "hits", "label"}
    for event in range(FILES * EVENTS):
        here = owners == event
        assert awkward.to_list(events[event].energy) == values["energy"][here].tolist()
        assert awkward.to_list(events[event].hits) == values["hits"][here].tolist()
        assert awkward.to_list(events[event].label) == values["label"][here].tolist()
    part = tracks.read_events(["energy"], slice(17, 70))
    assert part.fields == ["energy"] and awkward.to_list(part.energy) == awkward.to_list(events.energy[17:70])
    assert awkward.to_list(tracks.read_events(["energy"], slice(5, 5))) == []
    assert float(awkward.sum(events.energy)) == pytest.approx(float(values["energy"].sum()), rel=1e-4)


def test_rows_by_event_need_offsets(opened, keyed, tmp_path):
    pytest.importorskip("awkward", reason="awkward is not installed")
    with pytest.raises(KeyError, match="raddle keys add"):
        opened["unkeyed"].read_events()
    with pytest.raises(errors.UsageError):
        opened["rec.trk"].read_events(["energy"], slice(0, 9, 2))
    shutil.copy(keyed, tmp_path / "damaged.h5")
    with h5py.File(tmp_path / "damaged.h5", "a") as file:
        file["rec.trk/evt.offsets"][5] = 0
    with raddle.open(tmp_path / "damaged.h5") as damaged, pytest.raises(errors.DamagedError):
        damaged["rec.trk"].read_events()


RANKS = """
import sys
import numpy as np, raddle
from mpi4py import MPI
world = MPI.COMM_WORLD
with raddle.open(sys.argv[1]) as file:
    share = file.partition(world)
    energies = share.read_columns("rec.trk", ["energy"])["energy"]
    together = world.gather(energies)
    if world.rank == 0:
        assert world.size == 3 and np.array_equal(np.concatenate(together), file["rec.trk/energy"][:])
        print("equal")
"""


def test_ranks_of_mpi(on_three_ranks, keyed):
    on_three_ranks(RANKS, keyed)


def test_tables_without_order_have_no_rows_by_event(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        for group, ids in (("spill", [0, 1, 2, 3]), ("hits", [0, 1, 1, 3]), ("tracks", [3, 0, 2, 1])):
            file[f"{group}/evt"] = np.array(ids)
    raddle.merge(path, tmp_path / "all.h5", keys=["/spill/evt"], progress=False)
    with raddle.open(tmp_path / "all.h5") as file:
        shares = [file.partition(rank, 2) for rank in range(2)]
        assert [dict(share) for share in shares] == [
            {"/hits": slice(0, 3), "/spill": slice(0, 2)},
            {"/hits": slice(3, 4), "/spill": slice(2, 4)},
        ]
        with pytest.raises(errors.ObjectNotFoundError, match="/tracks is not divided, because its events do not ascend"):
            shares[0].read_columns("tracks")


def test_a_share_is_not_that_of_a_replacement(keyed, tmp_path):
    """Keys are read by the path of the file, and rows from the file that was opened."""
    path, replacement = tmp_path / "a.h5", tmp_path / "b.h5"
    shutil.copy(keyed, path)
    shutil.copy(keyed, replacement)
    with raddle.open(path) as file:
        assert file.partition(0, 2).size == 2
        os.replace(replacement, path)
        with pytest.raises(errors.InputError, match="it was replaced"):
            file.partition(0, 2)
