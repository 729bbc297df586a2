"""IDX datasets: arrays that can be read at any resolution, written and read from memory.

`raddle.idx.write` makes a dataset of numpy arrays, in one process or with the ranks of an MPI communicator that each hold
boxes of it; or an OME-Zarr folder, if the path ends with ``.zarr``, which zarr-python and OME-Zarr viewers read. `raddle.idx.read` gives a box at a resolution, `raddle.idx.refine` one resolution after the other, from coarse
to fine. Axes are in numpy's order: ``a[z, y, x]``.
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
from raddle._ranks import Communicator
from raddle._reports import Fields, _Report, size
from raddle.errors import UsageError

__all__ = ["Box", "Info", "WriteReport", "ZarrInfo", "info", "read", "refine", "write", "zarr_info"]

Path = str | os.PathLike[str]
_T = TypeVar("_T")

# Names of axes, the fastest first.
_AXES = "xyzuv"


class Box(NamedTuple):
    """Samples that a process holds: a box of the dataset."""

    start: Sequence[int]
    """Its first sample along each axis."""
    samples: Mapping[str, npt.ArrayLike]
    """An array for each field."""


class WriteReport(_Report):
    """What writing a dataset, or a time step of one, took."""

    __slots__ = ()

    output: str
    time: int | None
    ranks: int
    phases: str
    durability: str
    """``"synced"``, or ``"unsynced"`` where the disk was not waited for."""
    files: int
    blocks: int
    sample_len_bytes: int
    stored_len_bytes: int
    elapsed_s: float
    restructure_s: float
    encode_s: float
    publish_s: float
    restructure_messages: list[Fields]
    """What each rank sent to bring samples into power-of-two boxes: ``messages``, ``len_bytes``, ``by_log2_len``."""
    aggregate_messages: list[Fields]
    """What each rank sent to bring samples to those that make their blocks."""
    stages: list[Fields]
    """What each rank took for restructuring, regrouping (aggregation), publishing: ``rank``, ``stage``, ``wall_s``, ..."""
    rank_memory: list[Fields]
    """What each rank held in memory, at most: ``peak_rss_bytes``, ``budget_peak_bytes``."""

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("output", self.output if self.time is None else f"{self.output}, step {self.time:,}"),
            ("samples", size(self.sample_len_bytes)),
            ("stored", f"{size(self.stored_len_bytes)} in {self.files:,} files of {self.blocks:,} blocks"),
            ("ranks", f"{self.ranks:,}"),
            ("time", f"{self.elapsed_s:.2f} s"),
        ]


class Info(_Report):
    """What a dataset holds."""

    __slots__ = ()

    path: str
    version: int
    shape: list[int]
    """Samples along each axis."""
    start: list[int]
    """The first sample along each axis, 0 in most datasets."""
    bitmask: str
    bits_per_block: int
    blocks_per_file: int
    files: str
    steps: list[int]
    """Time steps, if it has any."""
    fields: list[Fields]
    """Fields: ``name``, ``sample`` (its type), ``compression``, ``order``, ``len_bytes``, ``is_read_by_openvisus``."""
    resolutions: list[Fields]
    """Resolutions, the coarsest first: ``resolution``, ``shape``."""

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("dataset", self.path),
            ("shape", " x ".join(f"{count:,}" for count in self.shape)),
            ("fields", ", ".join(f"{field.name} ({field.sample})" for field in self.fields)),
            ("time steps", f"{len(self.steps):,}"),
            ("resolutions", f"0 to {self.resolutions[-1].resolution}"),
        ]


class ZarrInfo(_Report):
    """What an OME-Zarr folder holds."""

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
    """Write arrays as the fields of a dataset, or of a time step of one, whole or not at all.

    Parameters
    ----------
    path
        The ``.idx`` file, whose blocks lie in a folder of that name beside it; or a folder ``NAME.zarr``.
    samples
        An array for each field, or several boxes with such arrays; a numpy array alone is the only field, called as the
        output. The boxes of all ranks are disjoint and together the dataset. A rank that holds nothing gives arrays with an
        axis of length 0.
    shape
        Samples along each axis of the whole dataset; an array with an axis more holds the components of its samples
        there. Default: the shape of the arrays.
    start
        The first sample of ``samples`` along each axis. Default: 0.
    step
        The time step, for a dataset that has some.
    communicator
        The ranks that write together, each its boxes: mpi4py's communicators or what has their ``Get_rank``,
        ``Get_size``, ``allgather`` and ``alltoall``. All ranks call with the same other arguments.
    format
        Default: OME-Zarr if the path ends with ``.zarr``, else IDX.
    compress
        ``"zip"`` (default for IDX), ``"zstd"`` (default for OME-Zarr, only there) or ``"none"``. Only in IDX ``"lz4"``, ``"zfp"``
        (every bit), ``"zfp:precision=16"`` (about so many bits of each number) and ``"zfp:accuracy=0.001"`` (floating-point
        numbers to within so much); fields that zfp does not take have zip.
    order, bitmask, bits_per_block, blocks_per_file
        Layout of IDX, as the options of ``raddle idx write``.
    split_vectors
        Which vectors are written as one field per component, called ``NAME_0``, ``NAME_1``, ...: ``"never"`` (default), ``"all"``, or
        ``"wide"``: those that OpenVisus does not read, for example five or eleven ``float64``.
    chunk, shard, levels, downsample, axes, spacing, unit
        Layout of OME-Zarr, as the options of ``raddle idx write``. Components become axis c. A folder is written at once:
        time is an axis of the arrays, ``axes="tzyx"``.
    force
        Replace the dataset if there is one.
    append
        Add a time step to the dataset that is there.
    sync
        Wait for the disk before anything gets its name, so that it survives a crash of the machine. With ``False`` such a
        crash can lose or damage what was written, while one of the program does no more harm than ever.
    phases, box, aggregators
        How ranks write, as the options of ``raddle idx write``; the files are the same.
    profile
        A profile that `raddle idx write --tune=FILE` wrote: box, blocks per file and aggregators where they are not given;
        ``"auto"`` is the newest for this machine and file system.
    jobs
        Threads. Default: the cores that this process may use, by the number of ranks.
    memory
        Bytes for what is made of the samples, or a text such as ``"512MiB"``. Default: 1 GiB.

    Returns
    -------
    WriteReport
        What was done, on every rank.

    Raises
    ------
    raddle.errors.UsageError
        If arrays, boxes or options do not fit together.
    raddle.errors.OutputError
        If the output exists or cannot be written.
    raddle.errors.InputError
        If the dataset to append to is not there, is another, or boxes overlap or leave samples out.

    Examples
    --------
    >>> raddle.idx.write("flow.idx", {"rho": rho, "v": v}, shape=rho.shape)  # doctest: +SKIP
    >>> raddle.idx.write("flow.idx", {"rho": part}, start=(0, 0, 64 * rank), shape=(128, 128, 256),
    ...                  communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    >>> raddle.idx.write("rho.zarr", {"rho": rho}, downsample="average", spacing=(2, 1, 1))  # doctest: +SKIP
    """
    options = {
        "output": os.fspath(path),
        "format": format,
        "compress": compress,
        "order": order,
        "bitmask": bitmask,
        "bits-per-block": bits_per_block,
        "blocks-per-file": blocks_per_file,
        "split-vectors": split_vectors,
        "chunk": _size(chunk),
        "shard": _size(shard),
        "levels": levels,
        "downsample": downsample,
        "axes": axes,
        "spacing": None if spacing is None else ",".join(repr(float(distance)) for distance in spacing),
        "unit": unit,
        "phases": phases,
        "box": _size(box),
        "aggregators": aggregators,
        "profile": None if profile is None else os.fspath(profile),
    }
    own = {"jobs": jobs, "memory": memory}
    flags = [f"--{name}" for name, wanted in (("force", force), ("append", append), ("no-sync", not sync)) if wanted]
    line = [f"--{name}={value}" for name, value in options.items() if value is not None] + flags
    if isinstance(samples, np.ndarray):
        samples = {_plain(pathlib.PurePath(path).stem): samples}
    held = _agreed(communicator, lambda: _held(samples, shape, start), lambda held: (line, held.shape, held.fields, step))
    line += [f"--{name}={value}" for name, value in own.items() if value is not None]
    report = _core.idx_write(line, held.shape, held.fields, held.boxes, step, communicator)
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
    """Read a box of a field at a resolution.

    Parameters
    ----------
    path
        The ``.idx`` file.
    field
        Name of the field. Default: the first.
    step
        The time step. Default: the first.
    box
        A slice without step for each axis, of samples at full resolution: ``np.s_[:, 10:20, 64:]``; of a dataset with one axis
        also the slice alone. Default: all.
    resolution
        The highest level to read, as `info` lists them. Default: all of them.
    missing
        What to do about blocks that are not stored: an error, or the field's default value. Damaged blocks are an error.
    communicator
        The ranks that read together, as in `write`: each names its ``box``, all else is the same. Every block is read and
        decoded by one of them, and what others need of it is sent.
    jobs
        Threads. Default: the cores that this process may use, by the number of ranks.

    Returns
    -------
    numpy.ndarray
        Of the samples in the box those of the resolution; components are the last axis. On ranks it may be empty: a box may
        lie between the samples of a resolution.

    Raises
    ------
    raddle.errors.InputError
        If the dataset or a block cannot be read, or has no such field, step or samples.

    Examples
    --------
    >>> raddle.idx.read("flow.idx", "rho", resolution=12)  # doctest: +SKIP
    >>> raddle.idx.read("flow.idx", "rho", box=np.s_[64 * rank : 64 * (rank + 1), :, :],
    ...                 communicator=MPI.COMM_WORLD)  # doctest: +SKIP
    """

    def prepare() -> list[str]:
        ranges = None if box is None else _ranges(info(path), box, may_be_empty=communicator is not None)
        return _what(field, step, resolution, missing) + _along(ranges)

    line = _agreed(communicator, prepare, lambda _: (os.fspath(path), field, step, resolution, missing))
    return _read(path, line, communicator, jobs)


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
    """Read a box again and again, from the coarsest resolution at which it holds samples to the finest.

    Parameters
    ----------
    path, field, step, box, missing, communicator, jobs
        As in `read`. Ranks go through the same resolutions, also those at which the box of one of them holds no samples.
    resolution
        The last resolution. Default: the highest.
    every
        How many resolutions from one to the next. Default: as many as there are axes, which doubles the samples along
        each axis.

    Yields
    ------
    tuple
        Resolution, and the array as `read` gives it.

    Examples
    --------
    >>> for resolution, array in raddle.idx.refine("flow.idx", "rho"):  # doctest: +SKIP
    ...     show(array)
    """

    def prepare() -> tuple[Info, list[tuple[int, int]]]:
        described = info(path)
        if every is not None and every < 1:
            raise UsageError(f"every={every}: at least one resolution from one to the next")
        whole = [slice(None)] * len(described.shape)
        return described, _ranges(described, whole if box is None else box, may_be_empty=communicator is not None)

    def told_alike(_: object) -> object:
        return os.fspath(path), field, step, resolution, every, missing

    described, ranges = _agreed(communicator, prepare, told_alike)
    last = described.resolutions[-1].resolution if resolution is None else resolution
    for number in reversed(range(last, -1, -(every or len(ranges)))):
        if communicator is not None or number == last or _holds_samples(described.bitmask, ranges, number):
            line = _what(field, step, number, missing) + _along(ranges)
            yield number, _read(path, line, communicator, jobs)


def info(path: Path) -> Info:
    """Describe a dataset: its ``.idx`` file, its time steps and the order of samples of each field.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.
    """
    told = json.loads(_core.idx_info(os.fspath(path)))
    if "images" in told:
        raise UsageError(f"{os.fspath(path)!r} is an OME-Zarr folder: zarr_info describes it, zarr.open reads it")
    return Info(told)


def zarr_info(path: Path) -> ZarrInfo:
    """Say which images and levels an OME-Zarr folder of the kind that raddle writes holds; reads metadata alone.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.
    """
    told = json.loads(_core.idx_info(os.fspath(path)))
    if "images" not in told:
        raise UsageError(f"{os.fspath(path)!r} is an IDX dataset: info describes it")
    return ZarrInfo(told)


def _size(counts: str | Sequence[int] | None) -> str | None:
    """A size as the command takes it."""
    return counts if counts is None or isinstance(counts, str) else "x".join(str(int(count)) for count in counts)


class _Held(NamedTuple):
    """What this process holds, as the compiled part takes it."""

    shape: list[int]
    fields: list[tuple[str, str]]
    boxes: list[tuple[list[int], list[int], list[npt.NDArray[np.uint8]]]]


def _plain(name: str) -> str:
    """A name that a header can hold."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "field"


def _held(
    samples: Mapping[str, npt.ArrayLike] | Sequence[Box], shape: Sequence[int] | None, start: Sequence[int] | None
) -> _Held:
    if isinstance(samples, Mapping):
        given = [Box(() if start is None else start, samples)]
    elif start is not None:
        raise UsageError("start is that of one box; several boxes have their own")
    elif isinstance(samples, str | bytes) or not isinstance(samples, Sequence):
        raise UsageError(f"samples of type {type(samples).__name__}: an array for each field, {{name: array}}, or boxes")
    else:
        wrong = next((box for box in samples if not _is_box(box)), None)
        if wrong is not None:
            raise UsageError(f"{type(wrong).__name__} among boxes: Box(start, {{name: array}})")
        given = [Box(*box) for box in samples]
    if not given or not given[0].samples:
        raise UsageError("no arrays; a process that holds no samples gives arrays with an axis of length 0")
    fields: list[tuple[str, str]] = []
    boxes: list[tuple[list[int], list[int], list[npt.NDArray[np.uint8]]]] = []
    whole: list[int] | None = None if shape is None else [int(count) for count in shape]
    for box in given:
        arrays = {name: np.asarray(array) for name, array in box.samples.items()}
        if whole is None:
            if len(given) > 1:
                raise UsageError("several boxes: give the shape of the whole dataset")
            whole = list(min(arrays.values(), key=np.ndim).shape)
        counts = list(next(iter(arrays.values())).shape[: len(whole)])
        described = [(name, _sample_type(name, array, counts)) for name, array in arrays.items()]
        if fields and described != fields:
            raise UsageError(f"boxes have different fields: {described} and {fields}")
        fields = described
        first = [int(at) for at in box.start] or [0] * len(whole)
        if len(first) != len(whole) or any(at < 0 for at in first):
            raise UsageError(f"a box starts at {first}; the dataset has {len(whole)} axes, from 0 on")
        if 0 not in counts:
            boxes.append((first, counts, [_bytes(array) for array in arrays.values()]))
    assert whole is not None
    return _Held(whole, fields, boxes)


def _is_box(box: object) -> bool:
    return isinstance(box, tuple) and len(box) == 2 and isinstance(box[1], Mapping)


def _sample_type(name: str, array: npt.NDArray[Any], counts: list[int]) -> str:
    """The type of samples as IDX names it: ``float32``, ``uint8[3]``."""
    if list(array.shape[: len(counts)]) != counts or array.ndim > len(counts) + 1:
        raise UsageError(f"field {name!r} has shape {array.shape}, which are not {counts} samples, with components or not")
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8 or array.dtype == np.float16:
        raise UsageError(f"field {name!r} is of type {array.dtype}; IDX has integers, float32 and float64")
    # The name does not tell the byte order.
    number = array.dtype.newbyteorder("=").name
    return number if array.ndim == len(counts) else f"{number}[{array.shape[-1]}]"


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8)


def _agreed(
    communicator: Communicator | None, prepare: Callable[[], _T], told_alike: Callable[[_T], object]
) -> _T:
    """What ``prepare`` gives, on all ranks or on none; an error where they were told different things."""
    prepared: list[_T] = []
    problem: Exception | None = None
    try:
        prepared.append(prepare())
    except Exception as error:  # the other ranks wait for this one
        problem = error
    if communicator is not None:
        told = repr(told_alike(prepared[0])) if prepared else None
        all_told = communicator.allgather((str(problem), told))
        if problem is None:
            for rank, (words, other) in enumerate(all_told):
                if other is None:
                    raise UsageError(f"rank {rank}: {words}")
                if other != all_told[0][1]:
                    raise UsageError(f"rank {rank} was given another dataset or other options than rank 0: {other}")
    if problem is not None:
        raise problem
    return prepared[0]


def _what(field: str | None, step: int | None, resolution: int | None, missing: str) -> list[str]:
    """Options that say what to read, but for the box."""
    if missing not in ("error", "default"):
        raise UsageError(f"missing={missing!r}: 'error' or 'default'")
    options = {"field": field, "step": step, "resolution": resolution}
    line = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return line + (["--missing-as-default"] if missing == "default" else [])


def _along(ranges: list[tuple[int, int]] | None) -> list[str]:
    """The option that names a box."""
    if ranges is None:
        return []
    along = zip(_AXES, reversed(ranges), strict=False)
    return ["--box=" + ",".join(f"{axis}={first}:{end}" for axis, (first, end) in along)]


def _read(
    path: Path, line: list[str], communicator: Communicator | None, jobs: int | None
) -> npt.NDArray[Any]:
    own = [] if jobs is None else [f"--jobs={jobs}"]
    values, shape, number = _core.idx_read(os.fspath(path), line + own, communicator)
    return values.view(np.dtype(number).newbyteorder("<")).reshape(shape)


def _ranges(described: Info, box: slice | Sequence[slice], *, may_be_empty: bool) -> list[tuple[int, int]]:
    """First sample and one past the last along each axis."""
    if isinstance(box, slice):
        box = (box,)
    if not isinstance(box, tuple | list):
        raise UsageError(f"box={box!r}: a slice for each axis, as np.s_[:, 10:20] makes them")
    if len(box) != len(described.shape):
        raise UsageError(f"a box of {len(box)} axes; the dataset has {len(described.shape)}")
    ranges = []
    for along, first, count in zip(box, described.start, described.shape, strict=True):
        if not isinstance(along, slice) or along.step not in (None, 1):
            raise UsageError(f"{along!r} in a box: a slice without step")
        begin = first if along.start is None else int(along.start)
        end = first + count if along.stop is None else int(along.stop)
        if not first <= begin <= end <= first + count or (begin == end and not may_be_empty):
            raise UsageError(f"{begin}:{end} in a box: the dataset has samples {first} to {first + count}")
        ranges.append((begin, end))
    return ranges


def _holds_samples(bitmask: str, ranges: list[tuple[int, int]], resolution: int) -> bool:
    """Whether a box holds samples of a resolution."""
    finer = bitmask[1 + resolution :]
    for axis, (first, end) in enumerate(reversed(ranges)):
        spacing = 1 << finer.count(str(axis))
        if -(-first // spacing) * spacing >= end:
            return False
    return True
