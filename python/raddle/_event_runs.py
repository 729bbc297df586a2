"""Runs that write, convert, merge and describe event files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from raddle import _core
from raddle._call import as_paths, run
from raddle._event_options import ID, Choice, Differing, Layout, Serialize
from raddle._event_reports import EventsInspection, EventsReport
from raddle._forms import flattened
from raddle._keywords import Duplicates, Inputs, Order, Path, Size, options_json
from raddle._progress import ProgressMode
from raddle._ranks import Communicator
from raddle.errors import UsageError


def write(
    output: Path,
    arrays: Any,
    *,
    ids: npt.ArrayLike | None = None,
    classes: Mapping[str, str] | None = None,
    layout: Layout = "columns",
    batch: Size | None = None,
    compress: str | None = None,
    chunk: Size | None = None,
    compat: Literal["cce"] | None = None,
    codec: str | None = None,
    choice: Choice | None = None,
    profile: Path | None = None,
    force: bool = False,
    jobs: int | None = None,
    memory: Size | None = None,
    progress: ProgressMode = "auto",
) -> EventsReport:
    """Writes arrays as products of events.

    Parameters
    ----------
    output
        The file to write. It gets this name when it is complete.
    arrays
        An awkward array of records, such as uproot's ``tree.arrays()``, or an array per product; the first axis is that
        of events. Lists, records, strings, byte strings, numbers and bools are supported, and types with missing values if
        none is missing; unions are not.
    ids
        Run, subrun and event of each event: shape ``(events,)``, of type `raddle.events.ID` or of other integers that
        fit its types. Default: none.
    classes
        Names of products' C++ classes, for byte strings, which are assumed to be objects serialised by ROOT.
    layout
        As in `convert`. Layouts other than ``"columns"`` and ``"rntuple"`` take byte strings only.
    batch, compress, chunk, compat, codec, choice, profile
        As in `convert`.
    force
        Replace the output if it exists.
    jobs, memory, progress
        As in `convert`.

    Returns
    -------
    EventsReport
        Report of the write.

    Raises
    ------
    raddle.errors.UsageError
        If an array is not one of events or has an unsupported type, an id does not fit its type, or an option is not
        valid.
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).

    Examples
    --------
    >>> raddle.events.write("run1.h5", uproot.open("run1.root")["Events"].arrays())  # doctest: +SKIP
    """
    products, columns, entries = flattened(arrays, classes or {})
    rows = None if ids is None else _ids(ids, entries)
    schema = json.dumps({"products": products})
    options = options_json(
        {
            "layout": layout,
            "batch": batch,
            "compress": compress,
            "chunk": chunk,
            "compat": compat,
            "codec": codec,
            "choice": choice,
            "profile": profile,
            "force": force,
            "jobs": jobs,
            "memory": memory,
        }
    )
    path = os.fsdecode(output)
    return EventsReport(
        run(lambda watch: _core.events_write(path, options, schema, entries, columns, rows, watch), progress)
    )


def _ids(
    ids: npt.ArrayLike, entries: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Runs, subruns and events in the types that are written; values that do not fit are refused."""
    rows = np.asarray(ids)
    if rows.dtype.names is None or not {"run", "lumi", "event"} <= set(rows.dtype.names) or rows.shape != (entries,):
        raise UsageError(f"ids have type {rows.dtype} and shape {rows.shape}; expected {ID} and ({entries},)")

    def column(name: str) -> npt.NDArray[Any]:
        values, largest = rows[name], int(np.iinfo(ID[name]).max)
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise UsageError(f"ids: {name} has type {rows.dtype[name]}, not integers")
        for at in (values.argmin(), values.argmax()) if entries else ():
            if not 0 <= int(values[at]) <= largest:
                raise UsageError(f"ids: {name} {values[at]} of event {at} does not fit {ID[name]}, 0 to {largest:,}")
        return np.ascontiguousarray(values, ID[name])

    return column("run"), column("lumi"), column("event")


def convert(
    inputs: Inputs,
    output: Path,
    *,
    layout: Layout = "columns",
    products: str | Iterable[str] | None = None,
    tree: str | None = None,
    entries: str | None = None,
    raw: bool = False,
    whole: bool = False,
    differing: Differing = "refuse",
    skip_bad: bool = False,
    order: Order = "natural",
    duplicates: Duplicates = "refuse",
    batch: Size | None = None,
    compress: str | None = None,
    chunk: Size | None = None,
    compat: Literal["cce"] | None = None,
    codec: str | None = None,
    choice: Choice | None = None,
    serialize: Serialize | None = None,
    profile: Path | None = None,
    force: bool = False,
    communicator: Communicator | None = None,
    jobs: int | None = None,
    memory: Size | None = None,
    progress: ProgressMode = "auto",
) -> EventsReport:
    """Writes the events of ROOT files, packed data streams or HDF5 files in another layout.

    Parameters
    ----------
    inputs
        One or several paths: files, folders (all HDF5 files in them), globs.
    output
        The file to write. It gets this name when it is complete.
    layout
        ``"columns"`` (a flat array for each leaf), ``"product"``, ``"event"``, ``"batch"``, ``"pds"`` or ``"rntuple"`` (a ROOT
        file).
    products
        Globs of product names. Default: all.
    tree
        Tree or RNTuple of ROOT files; ``"T;1"`` is its first cycle. Default: ``Events``, or the only one.
    entries
        Range of events, counted from 0 over all inputs: ``"0..1000"``, or ``"1000.."`` for the rest. Default: all.
    raw
        Treat products as the stored bytes instead of columns.
    whole
        Read objects of ROOT trees as the bytes of whole objects, even if they are split into branches.
    differing
        Treatment of products that some inputs lack or have in a different form: ``"refuse"`` (an error names the first),
        ``"leave-out"`` (with a warning), or ``"fill"`` (events of inputs without them get zeros and empty lists).
    skip_bad
        Leave out products that cannot be read, with a warning. All inputs are then read twice.
    order
        Order of the inputs and so of their events: ``"natural"`` (``run2`` before ``run10``), or ``"given"``.
    duplicates
        Treatment of a file that is given twice: ``"refuse"``, ``"keep"`` (its events are written twice) or ``"drop"``.
    batch
        Length of a batch: a number of events, or a size of their products such as ``"4MiB"``. Default: 100 events.
    compress
        HDF5 compression: ``"fast"``, ``"balanced"`` (default), ``"small"``, ``"gzip:0"`` to ``"gzip:9"``, ``"none"``;
        ``"zstd:1"`` to ``"zstd:22"`` and ``"lz4"``, which are faster to read but need hdf5plugin in h5py.
    chunk
        Length of an HDF5 chunk before compression, in bytes, or a string such as ``"1MiB"``. Default: 1 MiB, less for
        thousands of datasets.
    compat
        ``"cce"`` writes the product, event and batch layouts in the form of the HEP-CCE framework.
    codec
        Compression of packed data streams, ``compat="cce"`` and RNTuples: ``"none"``, ``"lz4"``, ``"zstd"``, ``"zstd:1"`` to
        ``"zstd:22"``; for RNTuples also ``"zlib"``, ``"zlib:1"`` to ``"zlib:9"``. Default: ``"zstd:18"``, for RNTuples
        ``"zstd:10"``.
    choice
        Data that ``compat="cce"`` compresses in the batch layout: ``"none"``, ``"events"`` (default), ``"batch"`` or
        ``"both"``.
    serialize
        Serialisation of products: ``"root"`` or ``"unrolled"``. Default: as stored, or as ROOT does if the layout supports
        nothing else.
    profile
        Profile of ``raddle tune`` for chunk and compression, unless they are given; ``"auto"`` is the newest for this
        machine and file system. Default: none.
    force
        Replace the output if it exists.
    communicator
        The ranks that share the work: communicators of mpi4py, or objects with the same ``Get_rank``, ``Get_size``,
        ``allgather`` and ``alltoall``. All ranks must pass the same other arguments; no progress is shown.
    jobs
        Number of threads. Default: the cores available to this process.
    memory
        Size of buffers in bytes, or a string such as ``"512MiB"``. Default: 1 GiB.
    progress
        As in `raddle.merge`.

    Returns
    -------
    EventsReport
        Report of the conversion.

    Raises
    ------
    raddle.errors.UsageError
        If an option is not valid; the message names it and lists the valid words.
    raddle.errors.InputError
        If inputs cannot be read; the message names file, tree, branch and entries.
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).

    Examples
    --------
    >>> raddle.events.convert("run1.root", "run1.h5", products=["Muon_*"])  # doctest: +SKIP
    """
    if products is not None:
        products = [products] if isinstance(products, str) else list(products)
        if not products:
            raise UsageError("products=[] is empty: name products, or leave it out for all")
    options = options_json(
        {
            "layout": layout,
            "products": products,
            "tree": tree,
            "entries": entries,
            "raw": raw,
            "whole": whole,
            "differing": differing,
            "skip_bad": skip_bad,
            "order": order,
            "duplicates": duplicates,
            "batch": batch,
            "compress": compress,
            "chunk": chunk,
            "compat": compat,
            "codec": codec,
            "choice": choice,
            "serialize": serialize,
            "profile": profile,
            "force": force,
            "jobs": jobs,
            "memory": memory,
        }
    )
    paths, path = as_paths(inputs), os.fsdecode(output)

    def call(watch: Any) -> str:
        return _core.events_convert(paths, path, options, None if communicator is not None else watch, communicator)

    return EventsReport(run(call, progress))


def merge(
    inputs: Inputs,
    output: Path,
    *,
    compress: str | None = None,
    chunk: Size | None = None,
    order: Order = "natural",
    duplicates: Duplicates = "refuse",
    force: bool = False,
    jobs: int | None = None,
    memory: Size | None = None,
    progress: ProgressMode = "auto",
) -> EventsReport:
    """Merges the events of several files with the same layout into one file.

    Parameters
    ----------
    inputs, output, compress, chunk, order, duplicates, force, jobs, memory, progress
        As in `convert`. The output has the layout of the first input.

    Returns
    -------
    EventsReport
        Report of the merge.

    Raises
    ------
    raddle.errors.UsageError
        If an option is not valid; the message names it and lists the valid words.
    raddle.errors.InputError
        If inputs cannot be read, have other products than the first, or are ROOT files.
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).

    Examples
    --------
    >>> raddle.events.merge("job*.pds", "all.pds")  # doctest: +SKIP
    """
    options = options_json(
        {
            "compress": compress,
            "chunk": chunk,
            "order": order,
            "duplicates": duplicates,
            "force": force,
            "jobs": jobs,
            "memory": memory,
        }
    )
    paths, path = as_paths(inputs), os.fsdecode(output)
    return EventsReport(run(lambda watch: _core.events_merge(paths, path, options, watch), progress))


def inspect(
    file: Path,
    *,
    tree: str | None = None,
    raw: bool = False,
    whole: bool = False,
    sizes: bool = False,
    jobs: int | None = None,
    memory: Size | None = None,
) -> EventsInspection:
    """Describes an event file.

    Parameters
    ----------
    file
        The file.
    tree, raw, whole
        As in `open`.
    sizes
        Read all events to report the length of each product.
    jobs, memory
        Threads and memory for ``sizes=True``, as in `convert`.

    Returns
    -------
    EventsInspection
        Format, layout, products, and what is not read.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.

    Examples
    --------
    >>> raddle.events.inspect("run1.root").products  # doctest: +SKIP
    """
    options = options_json({"tree": tree, "raw": raw, "whole": whole, "sizes": sizes, "jobs": jobs, "memory": memory})
    path = os.fsdecode(file)
    return EventsInspection(run(lambda watch: _core.events_inspect(path, options, watch), False))
