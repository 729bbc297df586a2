"""IDX datasets: arrays that can be read at any resolution, written and read from memory.

`raddle.idx.write` writes numpy arrays as a dataset, in one process or on the ranks of an MPI communicator that each
hold boxes of it. If the path ends in ``.zarr``, it writes an OME-Zarr folder, which zarr-python and OME-Zarr viewers
read. `raddle.idx.read` reads a box at a resolution, `raddle.idx.refine` one resolution after another, from coarse to
fine. Axes are in numpy's order: ``a[z, y, x]``.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from raddle import _core
from raddle._keywords import Path
from raddle._ranks import Communicator
from raddle._reports import Fields, _Report, size
from raddle.errors import UsageError

__all__ = ["Box", "Info", "WriteReport", "ZarrInfo", "info", "read", "refine", "write", "zarr_info"]

_T = TypeVar("_T")

# Names of axes, fastest first.
_AXES = "xyzuv"


class Box(NamedTuple):
    """Samples that a process holds: a box of the dataset."""

    start: Sequence[int]
    """First sample along each axis."""
    samples: Mapping[str, npt.ArrayLike]
    """An array per field."""


class WriteReport(_Report):
    """Report of writing a dataset or a time step."""

    __slots__ = ()

    output: str
    time: int | None
    ranks: int
    phases: str
    durability: str
    """``"synced"``, or ``"unsynced"`` if the write did not wait for the disk."""
    files: int
    blocks: int
    sample_len_bytes: int
    stored_len_bytes: int
    elapsed_s: float
    restructure_s: float
    encode_s: float
    publish_s: float
    restructure_messages: list[Fields]
    """Messages sent by each rank to move samples to power-of-two boxes: ``messages``, ``len_bytes``,
    ``by_log2_len``."""
    aggregate_messages: list[Fields]
    """Messages sent by each rank to move samples to the ranks that encode their blocks."""
    stages: list[Fields]
    """Times of each rank for restructuring, regrouping (aggregation) and publishing: ``rank``, ``stage``, ``wall_s``,
    ..."""
    rank_memory: list[Fields]
    """Peak memory of each rank: ``peak_rss_bytes``, ``budget_peak_bytes``."""

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("output", self.output if self.time is None else f"{self.output}, step {self.time:,}"),
            ("samples", size(self.sample_len_bytes)),
            ("stored", f"{size(self.stored_len_bytes)} in {self.files:,} files of {self.blocks:,} blocks"),
            ("ranks", f"{self.ranks:,}"),
            ("time", f"{self.elapsed_s:.2f} s"),
        ]


class Info(_Report):
    """Description of a dataset."""

    __slots__ = ()

    path: str
    version: int
    shape: list[int]
    """Number of samples along each axis."""
    start: list[int]
    """First sample along each axis, 0 in most datasets."""
    bitmask: str
    bits_per_block: int
    blocks_per_file: int
    files: str
    steps: list[int]
    """Time steps, if the dataset has any."""
    fields: list[Fields]
    """Fields: ``name``, ``sample`` (its type), ``compression``, ``order``, ``len_bytes``, ``is_read_by_openvisus``."""
    resolutions: list[Fields]
    """Resolutions, coarsest first: ``resolution``, ``shape``."""

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("dataset", self.path),
            ("shape", " x ".join(f"{count:,}" for count in self.shape)),
            ("fields", ", ".join(f"{field.name} ({field.sample})" for field in self.fields)),
            ("time steps", f"{len(self.steps):,}"),
            ("resolutions", f"0 to {self.resolutions[-1].resolution}"),
        ]


class ZarrInfo(_Report):
    """Description of an OME-Zarr folder."""

    __slots__ = ()

    path: str
    images: list[Fields]
    """Images: ``name``, ``folder``, ``dtype``, ``axes``, ``unit``, ``downsample`` (how levels were made) and ``levels``, the
    finest first: ``shape``, ``scale``, ``shard``, ``chunk``, ``codec``."""

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("folder", self.path)]
        for image in self.images:
            shape = " x ".join(f"{count:,}" for count in image.levels[0].shape)
            rows.append((image.name, f"{image.dtype}, {image.axes} {shape}, {len(image.levels)} levels"))
        return rows


def write(
    path: Path,
    samples: Mapping[str, npt.ArrayLike] | npt.NDArray[Any] | Sequence[Box],
    *,
    shape: Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    step: int | None = None,
    communicator: Communicator | None = None,
    format: Literal["idx", "zarr"] | None = None,
    compress: str | None = None,
    order: Literal["rows", "hz"] | None = None,
    bitmask: str | None = None,
    bits_per_block: int | None = None,
    blocks_per_file: int | None = None,
    split_vectors: Literal["never", "wide", "all"] | None = None,
    chunk: Sequence[int] | None = None,
    shard: Sequence[int] | None = None,
    levels: int | None = None,
    downsample: Literal["subsample", "average"] | None = None,
    axes: str | None = None,
    spacing: Sequence[float] | None = None,
    unit: str | None = None,
    force: bool = False,
    append: bool = False,
    sync: bool = True,
    phases: Literal["one", "two", "three"] = "three",
    box: str | Sequence[int] | None = None,
    aggregators: int | None = None,
    profile: Path | None = None,
    jobs: int | None = None,
    memory: int | str | None = None,
) -> WriteReport:
    """Writes arrays as the fields of a dataset or of a time step, atomically.

    Parameters
    ----------
    path
        The ``.idx`` file, whose blocks are stored in a folder of the same name next to it; or a folder ``NAME.zarr``.
    samples
        An array per field, or several boxes with such arrays; a numpy array alone is the only field, named after the
        output. The boxes of all ranks must be disjoint and cover the dataset. A rank without samples passes arrays with
        an axis of length 0.
    shape
        Number of samples along each axis of the whole dataset; an array with one more axis holds the components of its
        samples along it. Default: the shape of the arrays.
    start
        First sample of ``samples`` along each axis. Default: 0.
    step
        The time step, for a dataset with time steps.
    communicator
        The ranks that write together, each its own boxes: communicators of mpi4py, or objects with the same ``Get_rank``,
        ``Get_size``, ``allgather`` and ``alltoall``. All ranks must pass the same other arguments.
    format
        Format of the output. Default: OME-Zarr if the path ends in ``.zarr``, otherwise IDX.
    compress
        ``"zip"`` (default for IDX), ``"zstd"`` (default for OME-Zarr, only there) or ``"none"``. For IDX also
        ``"lz4"``, ``"zfp"`` (lossless), ``"zfp:precision=16"`` (about this many bits of each number) and
        ``"zfp:accuracy=0.001"`` (floating-point numbers to within this error). Fields that zfp does not support use zip
        if it supports another field, and are refused otherwise.
    order, bitmask, bits_per_block, blocks_per_file
        IDX layout, as the options of ``raddle idx write``.
    split_vectors
        Which vectors are written as one field per component, named ``NAME_0``, ``NAME_1``, ...: ``"never"`` (default),
        ``"all"``, or ``"wide"``: those that OpenVisus does not read, for example five or eleven ``float64``.
    chunk, shard, levels, downsample, axes, spacing, unit
        Layout of OME-Zarr, as the options of ``raddle idx write``. Components become axis c. A folder is written in one
        call, so time is an axis of the arrays: ``axes="tzyx"``.
    force
        Replace an existing dataset.
    append
        Add a time step to an existing dataset.
    sync
        Wait for the disk before files get their names, so that they survive a crash of the machine. With ``False``,
        such a crash can lose or damage the output; a crash of the program cannot.
    phases, box, aggregators
        How ranks write, as the options of ``raddle idx write``; the files are the same.
    profile
        A profile written by `raddle idx write --tune=FILE`: it sets box, blocks per file and aggregators unless they
        are passed; ``"auto"`` is the newest profile for this machine and file system.
    jobs
        Number of threads. Default: the cores available to this process, divided by the number of ranks.
    memory
        Memory for processing the samples in bytes, or a string such as ``"512MiB"``. Default: 1 GiB.

    Returns
    -------
    WriteReport
        Report of the write, on every rank.

    Raises
    ------
    raddle.errors.UsageError
        If arrays, boxes or options do not fit together.
    raddle.errors.OutputError
        If the output exists or cannot be written.
    raddle.errors.InputError
        If the dataset to append to does not exist or differs, or if boxes overlap or leave out samples.

    Examples
    --------
    >>> raddle.idx.write("flow.idx", {"rho": rho, "v": v}, shape=rho.shape)  # doctest: +SKIP
    >>> raddle.idx.write("flow.idx", {"rho": part}, start=(0, 0, 64 * rank), shape=(128, 128, 256),
    ...                  communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    >>> raddle.idx.write("rho.zarr", {"rho": rho}, downsample="average", spacing=(2, 1, 1))  # doctest: +SKIP
    """
    options = {
        "format": format,
        "compress": compress,
        "order": order,
        "bitmask": bitmask,
        "bits_per_block": bits_per_block,
        "blocks_per_file": blocks_per_file,
        "split_vectors": split_vectors,
        "chunk": _size(chunk),
        "shard": _size(shard),
        "levels": levels,
        "downsample": downsample,
        "axes": axes,
        "spacing": None if spacing is None else [float(distance) for distance in spacing],
        "unit": unit,
        "force": force,
        "append": append,
        "no_sync": not sync,
        "phases": phases,
        "box": _size(box),
        "aggregators": aggregators,
        "profile": None if profile is None else os.fsdecode(profile),
    }
    if isinstance(samples, np.ndarray):
        samples = {_plain(pathlib.PurePath(os.fsdecode(path)).stem): samples}
    alike = (os.fsdecode(path), options, step)
    local = _agreed(
        communicator, lambda: _local_boxes(samples, shape, start), lambda local: (*alike, local.shape, local.fields)
    )
    text = _json(options | {"jobs": jobs, "memory": memory})
    report = _core.idx_write(os.fsdecode(path), text, local.shape, local.fields, local.boxes, step, communicator)
    return WriteReport(json.loads(report))


def read(
    path: Path,
    field: str | None = None,
    *,
    step: int | None = None,
    box: slice | Sequence[slice] | None = None,
    resolution: int | None = None,
    missing: Literal["error", "default"] = "error",
    communicator: Communicator | None = None,
    jobs: int | None = None,
) -> npt.NDArray[Any]:
    """Reads a box of a field at a resolution.

    Parameters
    ----------
    path
        The ``.idx`` file.
    field
        Name of the field. Default: the first.
    step
        The time step. Default: the first.
    box
        A slice without step per axis, in samples at full resolution: ``np.s_[:, 10:20, 64:]``; for a dataset with one
        axis, also a single slice. Default: all.
    resolution
        The highest level to read, as listed by `info`. Default: the highest of the dataset.
    missing
        Treatment of blocks that are not stored: an error, or the field's default value. Damaged blocks are always an error.
    communicator
        The ranks that read together, as in `write`: each passes its ``box``; all other arguments are the same. Every
        block is read and decoded by one rank, which sends the others what they need.
    jobs
        Number of threads. Default: the cores available to this process, divided by the number of ranks.

    Returns
    -------
    numpy.ndarray
        The samples of the resolution in the box; components are the last axis. On ranks it may be empty, because a box
        may lie between the samples of a resolution.

    Raises
    ------
    raddle.errors.InputError
        If the dataset or a block cannot be read, or the field, step or samples do not exist.

    Examples
    --------
    >>> raddle.idx.read("flow.idx", "rho", resolution=12)  # doctest: +SKIP
    >>> raddle.idx.read("flow.idx", "rho", box=np.s_[64 * rank : 64 * (rank + 1), :, :],
    ...                 communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    """

    def prepare() -> dict[str, object]:
        ranges = None if box is None else _ranges(info(path), box, may_be_empty=communicator is not None)
        return _selection(field, step, resolution, missing, ranges)

    selection = _agreed(communicator, prepare, lambda _: (os.fsdecode(path), field, step, resolution, missing))
    return _read(path, selection, communicator, jobs)


def refine(
    path: Path,
    field: str | None = None,
    *,
    step: int | None = None,
    box: slice | Sequence[slice] | None = None,
    resolution: int | None = None,
    every: int | None = None,
    missing: Literal["error", "default"] = "error",
    communicator: Communicator | None = None,
    jobs: int | None = None,
) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Reads a box repeatedly, from the coarsest resolution at which it holds samples to the finest.

    Parameters
    ----------
    path, field, step, box, missing, communicator, jobs
        As in `read`. All ranks use the same resolutions, including those at which some of their boxes hold no samples.
    resolution
        The last resolution. Default: the highest.
    every
        Number of resolutions per step. Default: the number of axes, which doubles the samples along each axis.

    Yields
    ------
    tuple
        The resolution, and the array returned by `read`.

    Examples
    --------
    >>> for resolution, array in raddle.idx.refine("flow.idx", "rho"):  # doctest: +SKIP
    ...     show(array)
    """

    def prepare() -> tuple[Info, list[tuple[int, int]]]:
        described = info(path)
        if every is not None and every < 1:
            raise UsageError(f"every={every} must be at least 1")
        whole = [slice(None)] * len(described.shape)
        return described, _ranges(described, whole if box is None else box, may_be_empty=communicator is not None)

    def comparable(_: object) -> object:
        return os.fsdecode(path), field, step, resolution, every, missing

    described, ranges = _agreed(communicator, prepare, comparable)
    last = described.resolutions[-1].resolution if resolution is None else resolution
    for number in reversed(range(last, -1, -(every or len(ranges)))):
        if communicator is not None or number == last or _holds_samples(described.bitmask, ranges, number):
            yield number, _read(path, _selection(field, step, number, missing, ranges), communicator, jobs)


def info(path: Path) -> Info:
    """Describes a dataset: its ``.idx`` file, its time steps and the order of samples of each field.

    Parameters
    ----------
    path
        The ``.idx`` file.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.
    """
    described = json.loads(_core.idx_info(os.fsdecode(path)))
    if "images" in described:
        raise UsageError(
            f"{os.fsdecode(path)!r} is an OME-Zarr folder: use zarr_info to describe it and zarr.open to read it"
        )
    return Info(described)


def zarr_info(path: Path) -> ZarrInfo:
    """Lists the images and levels of an OME-Zarr folder of the kind that raddle writes; reads metadata only.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.
    """
    described = json.loads(_core.idx_info(os.fsdecode(path)))
    if "images" not in described:
        raise UsageError(f"{os.fsdecode(path)!r} is an IDX dataset: use info to describe it")
    return ZarrInfo(described)


def _json(options: Mapping[str, object]) -> str:
    """Options as JSON, without those that are None. All ranks together refuse an unusable value."""

    def plain(value: object) -> object:
        return value.item() if isinstance(value, np.generic) else str(value)

    return json.dumps({name: value for name, value in options.items() if value is not None}, default=plain)


def _size(counts: str | Sequence[int] | None) -> str | None:
    """A size as text: ``"64x32"``."""
    return counts if counts is None or isinstance(counts, str) else "x".join(str(int(count)) for count in counts)


class _LocalBoxes(NamedTuple):
    """The samples of this process, in the form of the compiled part."""

    shape: list[int]
    fields: list[tuple[str, str]]
    boxes: list[tuple[list[int], list[int], list[npt.NDArray[np.uint8]]]]


def _plain(name: str) -> str:
    """A name that is valid in a header."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "field"


def _local_boxes(
    samples: Mapping[str, npt.ArrayLike] | Sequence[Box], shape: Sequence[int] | None, start: Sequence[int] | None
) -> _LocalBoxes:
    if isinstance(samples, Mapping):
        local = [Box(() if start is None else start, samples)]
    elif start is not None:
        raise UsageError("start applies to a single box; each of several boxes has its own start")
    elif isinstance(samples, str | bytes) or not isinstance(samples, Sequence):
        raise UsageError(
            f"samples cannot be of type {type(samples).__name__}: pass an array per field, {{name: array}}, or boxes"
        )
    else:
        wrong = next((box for box in samples if not _is_box(box)), None)
        if wrong is not None:
            raise UsageError(f"{type(wrong).__name__} is not a box: pass Box(start, {{name: array}})")
        local = [Box(*box) for box in samples]
    if not local or not local[0].samples:
        raise UsageError("no arrays; a process without samples must pass arrays with an axis of length 0")
    fields: list[tuple[str, str]] = []
    boxes: list[tuple[list[int], list[int], list[npt.NDArray[np.uint8]]]] = []
    whole: list[int] | None = None if shape is None else [int(count) for count in shape]
    for box in local:
        arrays = {name: _values(name, array) for name, array in box.samples.items()}
        if whole is None:
            if len(local) > 1:
                raise UsageError("with several boxes, pass the shape of the whole dataset")
            whole = list(min(arrays.values(), key=np.ndim).shape)
        counts = list(next(iter(arrays.values())).shape[: len(whole)])
        described = [(name, _sample_type(name, array, counts)) for name, array in arrays.items()]
        if fields and described != fields:
            raise UsageError(f"boxes have different fields: {described} and {fields}")
        fields = described
        first = [int(at) for at in box.start] or [0] * len(whole)
        if len(first) != len(whole) or any(at < 0 for at in first):
            raise UsageError(f"a box starts at {first}; the dataset has {len(whole)} axes, starting at 0 or later")
        if 0 not in counts:
            boxes.append((first, counts, [_bytes(array) for array in arrays.values()]))
    assert whole is not None
    return _LocalBoxes(whole, fields, boxes)


def _is_box(box: object) -> bool:
    return isinstance(box, tuple) and len(box) == 2 and isinstance(box[1], Mapping)


def _sample_type(name: str, array: npt.NDArray[Any], counts: list[int]) -> str:
    """The type of samples in IDX notation: ``float32``, ``uint8[3]``."""
    if list(array.shape[: len(counts)]) != counts or array.ndim > len(counts) + 1:
        raise UsageError(
            f"field {name!r} has shape {array.shape}, which does not match {counts} samples, with or without components"
        )
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8 or array.dtype == np.float16:
        raise UsageError(f"field {name!r} has type {array.dtype}; IDX supports integers, float32 and float64")
    # The name does not include the byte order.
    number = array.dtype.newbyteorder("=").name
    return number if array.ndim == len(counts) else f"{number}[{array.shape[-1]}]"


def _values(name: str, array: npt.ArrayLike) -> npt.NDArray[Any]:
    # The values below a mask are arbitrary, and IDX and OME-Zarr have no mask.
    if np.ma.is_masked(array):
        raise UsageError(f"field {name!r} has masked elements, which cannot be stored; pass array.filled(VALUE)")
    return np.asarray(array)


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8)


def _agreed(
    communicator: Communicator | None, prepare: Callable[[], _T], comparable: Callable[[_T], object]
) -> _T:
    """The result of ``prepare``, on all ranks or on none; raises an error if ranks passed different arguments."""
    prepared: list[_T] = []
    problem: Exception | None = None
    try:
        prepared.append(prepare())
    except Exception as error:  # the other ranks wait for this one
        problem = error
    if communicator is not None:
        compared = repr(comparable(prepared[0])) if prepared else None
        all_answers = communicator.allgather((str(problem), compared))
        if problem is None:
            for rank, (words, other) in enumerate(all_answers):
                if other is None:
                    raise UsageError(f"rank {rank}: {words}")
                if other != all_answers[0][1]:
                    raise UsageError(f"rank {rank} was passed another dataset or other options than rank 0: {other}")
    if problem is not None:
        raise problem
    return prepared[0]


def _selection(
    field: str | None,
    step: int | None,
    resolution: int | None,
    missing: str,
    ranges: list[tuple[int, int]] | None,
) -> dict[str, object]:
    """Options that select what to read."""
    if missing not in ("error", "default"):
        raise UsageError(f"missing={missing!r} must be 'error' or 'default'")
    along = zip(_AXES, reversed(ranges or []), strict=False)
    return {
        "field": field,
        "step": step,
        "resolution": resolution,
        "missing_as_default": missing == "default",
        "box": [f"{axis}={first}:{end}" for axis, (first, end) in along],
    }


def _read(
    path: Path, selection: Mapping[str, object], communicator: Communicator | None, jobs: int | None
) -> npt.NDArray[Any]:
    values, shape, number = _core.idx_read(os.fsdecode(path), _json({**selection, "jobs": jobs}), communicator)
    return values.view(np.dtype(number).newbyteorder("<")).reshape(shape)


def _ranges(described: Info, box: slice | Sequence[slice], *, may_be_empty: bool) -> list[tuple[int, int]]:
    """First sample and end (exclusive) along each axis."""
    if isinstance(box, slice):
        box = (box,)
    if not isinstance(box, tuple | list):
        raise UsageError(f"box={box!r} must be a slice per axis, such as np.s_[:, 10:20]")
    if len(box) != len(described.shape):
        raise UsageError(f"the box has {len(box)} axes, but the dataset has {len(described.shape)}")
    ranges = []
    for along, first, count in zip(box, described.start, described.shape, strict=True):
        if not isinstance(along, slice) or along.step not in (None, 1):
            raise UsageError(f"{along!r} in a box must be a slice without step")
        begin = first if along.start is None else int(along.start)
        end = first + count if along.stop is None else int(along.stop)
        if not first <= begin <= end <= first + count or (begin == end and not may_be_empty):
            raise UsageError(f"{begin}:{end} in a box is out of range: the dataset has samples {first} to {first + count}")
        ranges.append((begin, end))
    return ranges


def _holds_samples(bitmask: str, ranges: list[tuple[int, int]], resolution: int) -> bool:
    """Returns whether a box holds samples of a resolution."""
    finer = bitmask[1 + resolution :]
    for axis, (first, end) in enumerate(reversed(ranges)):
        spacing = 1 << finer.count(str(axis))
        if -(-first // spacing) * spacing >= end:
            return False
    return True
