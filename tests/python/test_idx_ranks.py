"""IDX and OME-Zarr on ranks: the files and values of one process, and errors that end the call on every rank."""

import numpy as np
import pytest
import raddle
from idx_files import SMALL, files_of, numbers
from raddle import errors
from ranks import Ranks, on_ranks


@pytest.mark.parametrize("downsample", ["subsample", "average"])
def test_ranks_write_the_folder_of_one_process(tmp_path, downsample):
    array = numbers((12, 10, 7))
    options = {"chunk": (4, 4, 2), "shard": (4, 8, 4), "downsample": downsample}
    raddle.idx.write(tmp_path / "one.zarr", {"a": array}, **options)

    def write(communicator):
        start, part = slab(array, communicator.rank, 3)
        return raddle.idx.write(
            tmp_path / "all.zarr", {"a": part}, start=start, shape=array.shape, communicator=communicator, **options
        )

    reports = on_ranks(3, write)
    assert all(isinstance(report, raddle.idx.WriteReport) and report.ranks == 3 for report in reports), reports
    assert files_of(tmp_path / "one.zarr") == files_of(tmp_path / "all.zarr")


@pytest.mark.parametrize("compress", ["none", "zip"])
@pytest.mark.parametrize("phases", ["two", "three"])
@pytest.mark.parametrize("bitmask", ["V210021010", "V001122010", "V2222100001111"])
def test_ranks_write_with_any_bitmask(tmp_path, bitmask, phases, compress):
    array = numbers((9, 10, 7) if "2222" in bitmask else (3, 7, 13))
    for folder in ("one", "all"):
        (tmp_path / folder).mkdir()
    options = {"bitmask": bitmask, "bits_per_block": 4, "blocks_per_file": 8, "compress": compress}
    raddle.idx.write(tmp_path / "one" / "d.idx", {"a": array}, **options)

    def write(communicator):
        start, part = slab(array, communicator.rank, 3)
        return raddle.idx.write(
            tmp_path / "all" / "d.idx", {"a": part}, start=start, shape=array.shape, communicator=communicator,
            phases=phases, **options
        )

    assert all(isinstance(report, raddle.idx.WriteReport) for report in on_ranks(3, write))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "all")
    assert np.array_equal(raddle.idx.read(tmp_path / "all" / "d.idx"), array)


def test_ranks_wait_for_the_disk_alike(tmp_path):
    array = numbers((12, 10, 4))

    def write(communicator):
        start, part = slab(array, communicator.rank, 2)
        return raddle.idx.write(
            tmp_path / "d.idx", {"a": part}, start=start, shape=array.shape, communicator=communicator,
            sync=communicator.rank == 0,
        )

    assert all(isinstance(printed, errors.UsageError) and "other options" in str(printed) for printed in on_ranks(2, write))
    assert not list(tmp_path.iterdir())


def slab(array, rank, size):
    """Returns the share of a rank: columns; the first rank has none if there are more ranks than columns."""
    bounds = [array.shape[2] * number // size for number in range(size + 1)]
    return (0, 0, bounds[rank]), array[:, :, bounds[rank] : bounds[rank + 1]]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("options", [{}, {"phases": "two"}, {"phases": "one", "compress": "none"}, {"aggregators": 1}])
def test_ranks_write_the_files_of_one_process(tmp_path, size, options):
    array = numbers((12, 10, 4))
    (tmp_path / "one").mkdir()
    (tmp_path / "all").mkdir()
    raddle.idx.write(tmp_path / "one/d.idx", {"a": array}, **SMALL, **options)

    def write(communicator):
        start, part = slab(array, communicator.rank, size)
        return raddle.idx.write(
            tmp_path / "all/d.idx", {"a": part}, start=start, shape=array.shape, communicator=communicator, **SMALL,
            **options,
        )

    reports = on_ranks(size, write)
    assert all(isinstance(report, raddle.idx.WriteReport) and report.ranks == size for report in reports), reports
    assert files_of(tmp_path / "one") == files_of(tmp_path / "all")


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("jobs", [1, 3])
def test_ranks_and_threads_read_what_one_reads(tmp_path, size, jobs):
    path, array = tmp_path / "d.idx", numbers((30, 17, 23))
    raddle.idx.write(path, {"a": array}, bits_per_block=6, blocks_per_file=16)
    assert np.array_equal(raddle.idx.read(path, jobs=jobs), array)

    def box(rank):
        """Returns columns, none for the first rank if there are more ranks than columns; all of them have the first
        row."""
        return np.s_[: 30 - rank, :, 4 * rank // size : 4 * (rank + 1) // size]

    def read(communicator):
        options = {"box": box(communicator.rank), "communicator": communicator, "jobs": jobs}
        return raddle.idx.read(path, **options), list(raddle.idx.refine(path, **options))

    outcomes = on_ranks(size, read)
    for rank, (whole, refined) in enumerate(outcomes):
        assert np.array_equal(whole, array[box(rank)])
        assert [resolution for resolution, _ in refined] == [resolution for resolution, _ in outcomes[0][1]]
        assert np.array_equal(refined[-1][1], whole)
        for resolution, got in refined:
            if got.size:
                assert np.array_equal(got, raddle.idx.read(path, box=box(rank), resolution=resolution))
    assert sum(refined[0][1].size for _, refined in outcomes) == 1, "the coarsest sample belongs to one rank"


def test_ranks_that_read_fail_together(tmp_path):
    path, array = tmp_path / "a.idx", numbers((40, 40), "u2")
    raddle.idx.write(path, {"a": array}, bits_per_block=6, blocks_per_file=4)

    def outcomes(changed):
        def read(communicator):
            rows = slice(10 * communicator.rank, 10 * communicator.rank + 10)
            options = {"box": (rows, slice(None))} | (changed if communicator.rank == 1 else {})
            return raddle.idx.read(path, communicator=communicator, **options)

        return on_ranks(3, read)

    assert np.array_equal(np.concatenate(outcomes({})), array[:30])
    for changed in [{"resolution": 5}, {"missing": "default"}, {"missing": "often"}, {"box": (slice(0, 41),) * 2}]:
        assert [type(error) for error in outcomes(changed)] == [errors.UsageError] * 3, changed
    assert [type(error) for error in outcomes({"jobs": 0})][1] is errors.UsageError
    (tmp_path / "a/0008.bin").unlink()
    raised = outcomes({})
    assert any(isinstance(error, errors.InputError) for error in raised) and "block" in str(raised[0]), raised
    assert all(error.kind == "rank_failed" or isinstance(error, errors.InputError) for error in raised), raised


def test_no_rank_waits_for_one_that_cannot(tmp_path):
    array = numbers((12, 10, 4))

    def outcomes(changed):
        """Returns the exceptions of the ranks if rank 1 gets a different argument."""

        def write(communicator):
            start, part = slab(array, communicator.rank, 3)
            given = {"samples": {"a": part}, "start": start, "shape": array.shape, "bits_per_block": 5}
            if communicator.rank == 1:
                given |= changed
            return raddle.idx.write(tmp_path / "d.idx", communicator=communicator, **given)

        raised = on_ranks(3, write)
        assert not list(tmp_path.iterdir()), raised
        return raised

    for changed in [{"samples": {"a": array.astype("c8")}}, {"bits_per_block": 4}, {"samples": {"b": array}}, {"step": 3}]:
        assert [type(error) for error in outcomes(changed)] == [errors.UsageError] * 3
    assert [type(error) for error in outcomes({"start": (0, 0, 0)})] == [errors.InputError] * 3
    raised = outcomes({"memory": "1KiB"})
    assert [error.kind for error in raised] == ["rank_failed", "limit", "rank_failed"]
    assert "rank 1" in str(raised[0]) and "memory" in str(raised[0])


def test_an_exception_of_the_communicator_is_that_of_the_call(tmp_path):
    class Broken(Ranks):
        def alltoall(self, items):
            super().alltoall(items)
            raise ConnectionResetError("cable")

    array = numbers((12, 10, 4))

    def write(communicator):
        start, part = slab(array, communicator.rank, 2)
        broken = Broken(communicator.rank, communicator.shared)
        return raddle.idx.write(
            tmp_path / "d.idx", {"a": part}, start=start, shape=array.shape, communicator=broken, bits_per_block=5
        )

    assert [type(error) for error in on_ranks(2, write)] == [ConnectionResetError] * 2
    assert not list(tmp_path.iterdir())


RANKS = """
import sys
import numpy as np, raddle
from mpi4py import MPI
world = MPI.COMM_WORLD
array = np.arange(12 * 10 * 14, dtype="f4").reshape(12, 10, 14)
first, end = (14 * number // world.size for number in (world.rank, world.rank + 1))
raddle.idx.write(sys.argv[1], {"a": array[:, :, first:end]}, start=(0, 0, first), shape=array.shape, communicator=world)
world.Barrier()
part = raddle.idx.read(sys.argv[1], box=np.s_[:, :, first:end], communicator=world)
assert np.array_equal(part, array[:, :, first:end])
if world.rank == 0:
    assert world.size == 3 and np.array_equal(raddle.idx.read(sys.argv[1]), array)
    print("equal")
"""


def test_ranks_of_mpi(on_three_ranks, tmp_path):
    on_three_ranks(RANKS, tmp_path / "d.idx")
