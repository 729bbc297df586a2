"""Merges as functions: `plan` and `merge`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from raddle import _core
from raddle._call import as_paths, run
from raddle._keywords import (
    Attributes,
    Compat,
    Convention,
    Duplicates,
    Empty,
    Extendible,
    Inputs,
    Join,
    KeyDataset,
    KeyScope,
    Layout,
    Link,
    LinkPaths,
    Merge,
    Order,
    Overlap,
    Packing,
    Path,
    RepeatedIds,
    Rules,
    Scalars,
    Select,
    Shuffle,
    Size,
    Times,
    Units,
    options_json,
)
from raddle._progress import ProgressMode
from raddle._reports import MergeReport, Plan


def plan(
    inputs: Inputs,
    *,
    order: Order | None = None,
    duplicates: Duplicates | None = None,
    sort_by: Sequence[str] | None = None,
    join: Join | None = None,
    scalars: Scalars | None = None,
    attributes: Attributes | None = None,
    add_column: Sequence[str] | None = None,
    skip_bad: bool = False,
    follow_foreign_files: bool = False,
    max_output: Size | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    select: Select | None = None,
    convention: Convention | None = None,
    rule: Rules | None = None,
    rules: Path | None = None,
    dim: str | None = None,
    new_dim: str | None = None,
    tiles: bool | str = False,
    time_units: str | None = None,
    times: Times | None = None,
    packing: Packing | None = None,
    units: Units | None = None,
    overlap: Overlap | None = None,
    axis: int | str | None = None,
    pairwise: bool = False,
    merge: Merge | None = None,
    index_unique: str | None = None,
    tolerance: float | None = None,
    require_equal: Sequence[str] | None = None,
    layout: Layout | None = None,
    chunk: str | Sequence[int] | Mapping[str, int] | None = None,
    layout_rules: Rules | None = None,
    layout_file: Path | None = None,
    contiguous: bool | Size = False,
    empty: Empty | None = None,
    extendible: bool | Extendible | None = None,
    compress: str | None = None,
    shuffle: bool | Shuffle | None = None,
    fletcher32: bool = False,
    compat: Compat | None = None,
    profile: Path | None = None,
    align: Size | None = None,
    union: bool = False,
    link: Link | None = None,
    link_paths: LinkPaths | None = None,
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> Plan:
    """Plans a merge: reads metadata and a sample of the values, and writes nothing.

    All keywords are those of `merge`, which describes them.

    Parameters
    ----------
    inputs
        One or several paths, as for `merge`.

    Returns
    -------
    Plan
        Datasets, shapes, differences between inputs, predicted size, time and memory.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read or do not fit together; ``differences`` lists the differences, ``details`` shows them
        as a table.
    raddle.errors.UsageError
        If a keyword has an invalid value, or two exclude each other (also a ``ValueError``).

    Examples
    --------
    >>> plan = raddle.plan("run11981/", join="inner")  # doctest: +SKIP
    >>> plan.predicted.stored_len_bytes  # doctest: +SKIP
    """
    files, options = as_paths(inputs), options_json(locals())
    return Plan(run(lambda watch: _core.plan(files, options, watch), progress))


def merge(
    inputs: Inputs,
    output: Path,
    *,
    force: bool = False,
    order: Order | None = None,
    duplicates: Duplicates | None = None,
    sort_by: Sequence[str] | None = None,
    join: Join | None = None,
    scalars: Scalars | None = None,
    attributes: Attributes | None = None,
    add_column: Sequence[str] | None = None,
    skip_bad: bool = False,
    follow_foreign_files: bool = False,
    max_output: Size | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    select: Select | None = None,
    convention: Convention | None = None,
    rule: Rules | None = None,
    rules: Path | None = None,
    dim: str | None = None,
    new_dim: str | None = None,
    tiles: bool | str = False,
    time_units: str | None = None,
    times: Times | None = None,
    packing: Packing | None = None,
    units: Units | None = None,
    overlap: Overlap | None = None,
    axis: int | str | None = None,
    pairwise: bool = False,
    merge: Merge | None = None,
    index_unique: str | None = None,
    tolerance: float | None = None,
    require_equal: Sequence[str] | None = None,
    layout: Layout | None = None,
    chunk: str | Sequence[int] | Mapping[str, int] | None = None,
    layout_rules: Rules | None = None,
    layout_file: Path | None = None,
    contiguous: bool | Size = False,
    empty: Empty | None = None,
    extendible: bool | Extendible | None = None,
    compress: str | None = None,
    shuffle: bool | Shuffle | None = None,
    fletcher32: bool = False,
    compat: Compat | None = None,
    profile: Path | None = None,
    align: Size | None = None,
    keys: Sequence[str] | None = None,
    key_datasets: Sequence[KeyDataset] | None = None,
    key_scope: KeyScope | None = None,
    repeated_ids: RepeatedIds | None = None,
    key_skip: Sequence[str] | None = None,
    union: bool = False,
    link: Link | None = None,
    link_paths: LinkPaths | None = None,
    preview: bool | Path = False,
    preview_samples: int | None = None,
    index: bool = False,
    unordered: bool = False,
    no_resume: bool = False,
    no_provenance: bool = False,
    ignore_digests: bool = False,
    part: str | None = None,
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> MergeReport:
    """Concatenates the datasets of many HDF5 files along their first axis into one file.

    Parameters
    ----------
    inputs
        One or several paths: files, folders (all HDF5 files in them), globs (``"run*/*.h5"``, ``"**/*.h5"``), and
        ``"@list.txt"`` for a text file with a path per line. As in all functions, a path is a string, bytes or an
        ``os.PathLike`` object.
    output
        The file to write. It gets this name when it is complete.
    force
        Replace the output if it exists.
    order
        Order of the inputs, and so of the rows: ``"natural"`` (default), in which ``run2`` comes before ``run10``, or
        ``"given"``. The files of a list (``"@list.txt"``) always keep their order.
    duplicates
        What to do with a file that is given twice: ``"refuse"`` (default), ``"keep"`` its rows twice, or ``"drop"``
        the second.
    sort_by
        Datasets by whose first values the inputs are sorted, such as ``["/spill/run", "/spill/subrun"]``. Inputs with
        equal values keep their ``order``.
    join
        Datasets of the output if some inputs lack them: ``"exact"`` (default; differences are an error), ``"inner"``
        (those of all inputs), ``"outer"`` (those of any input; missing rows get the fill value), ``"union"`` (those of
        any input, each in only one of them; nothing is concatenated).
    scalars
        Datasets of a single value that differ: ``"equal"`` (default) refuses them, ``"first"`` keeps that of the first
        input, ``"stack"`` adds a dimension with one element per input.
    attributes
        Attributes that differ: ``"first"`` (default) keeps those of the first input, ``"identical"`` keeps only those
        that are equal in all inputs, ``"stack"`` makes datasets with a row per input, ``"error"`` refuses.
    add_column
        Columns that repeat an attribute of each input in its rows: ``["run=@run"]`` in every group,
        ``["/hits/run=@run"]`` in one group, ``["/hits/cut=/hits@threshold"]`` for an attribute of another object than
        the root.
    skip_bad
        Leave out inputs that cannot be read; ``report.skipped`` lists them.
    follow_foreign_files
        Follow virtual datasets and external storage outside of the input's folder.
    max_output
        Maximum uncompressed size of the output, in bytes or such as ``"10TB"``. Default: 1 TiB, or 2,000 times the
        size of the inputs.
    include
        Patterns of objects to include; all others are left out. A pattern with a slash starts at the root
        (``"/rec.*/evt"``), one without matches a name at any depth; ``*`` stays inside a name, ``**`` crosses groups.
        A matching group includes everything in it. Default: all objects.
    exclude
        Patterns of objects to exclude, with everything in them.
    keep
        Patterns of datasets that are not concatenated: one copy is kept, and they must be equal in all inputs.
    select
        Ranges of dimensions to which the output is restricted: ``{"time": slice(0, 100), "lat": "-30..30"}`` or
        ``"time=0:100, lat=-30..30"``. Slices select elements by number, counted from 0 in the merged output; strings with two
        dots select them by values of the coordinate, both ends included: numbers, or dates such as ``"2001-01..2001-12"``.
        Default: all elements.
    convention
        Convention that all inputs follow: ``"cf"`` (also netCDF-4), ``"anndata"``, ``"nexus"``, ``"nwb"`` (also HDMF),
        ``"pandas"`` (also PyTables) or ``"none"``, which concatenates datasets whatever their meaning. Default: as
        recognised.
    rule
        Rules for datasets: ``"PATTERN: once"``, ``"PATTERN: concatenate"``, ``"PATTERN: along 1"``, and for row
        numbers ``"PATTERN: rows of TARGET"``, ``"starts of"``, ``"ends of"`` and ``"bounds of"``, such as
        ``{"/events/hits": "bounds of /hits/energy"}`` or ``["/events/hits: bounds of /hits/energy"]``.
    rules
        TOML file with rules: a table ``[rules]`` of ``"PATTERN" = "RULE"``.
    dim
        Dimension along which files are concatenated, by the name of its dimension scale, whatever axis it is: for
        netCDF and other HDF5 files with dimension scales. Of several names, such as ``"station,obs"``, each dataset is
        concatenated along the dimension that it has. Default: the unlimited one.
    new_dim
        Name of a new first dimension, along which each file becomes one record. In netCDF and other files with
        dimension scales, the scalar variable of this name becomes its coordinate. In other HDF5 files the new axis of
        every dataset has this label, and scalar datasets become one-dimensional.
    tiles
        Whether each netCDF file is a tile of a larger grid. True places tiles by attributes of GFDL's FMS or of WRF, or by
        their coordinates. A pattern such as ``"tile_{y}_{x}.nc"`` places them by their names, and ``"@table.csv"`` by a
        table. Elements that no tile has get the fill value; those that several tiles have must be equal in all of them.
    time_units
        netCDF: units of times in the output, such as ``"hours since 1970-01-01"``. Default: those of the first input.
    times
        netCDF: times that have no exact counterpart in the units of the output: ``"exact"`` (default) refuses them,
        ``"nearest"`` writes the nearest floating-point number, which is at most a microsecond away.
    packing
        netCDF: values that inputs pack differently (``scale_factor``, ``add_offset``, ``_FillValue``): ``"refuse"``
        (default), ``"unpack"`` writes floats, ``"repack"`` writes them with one scale and offset and reports the
        largest error.
    units
        netCDF: units that differ: ``"refuse"`` (default), or ``"convert"`` values to those of the first input if a
        linear conversion is known.
    overlap
        netCDF: times that several inputs have: ``"refuse"`` (default), or keep the record of the ``"first"`` or ``"last"``
        input.
    axis
        Axis along which datasets are concatenated: its number, from 0 (default), or -1 for the last. Datasets that
        have no such axis are kept once, and must be equal in all inputs. AnnData: ``"obs"`` (default; cells, the rows
        of X) or ``"var"`` (genes, the columns of X). The other axis is matched by name.
    pairwise
        AnnData: keep pairwise arrays of that axis (obsp, varp) as diagonal blocks.
    merge
        AnnData: elements to keep that do not belong to the axis: those that are the ``"same"`` in all inputs
        (default), ``"unique"`` (the same in all inputs that have them), the ``"first"`` of each name, or those that
        ``"only"`` one input has.
    index_unique
        AnnData: separator. It is appended to the names along the axis, followed by the number of the input, from 0, which
        makes them unique.
    tolerance
        Tolerated absolute difference between copies of values that are kept once, such as recomputed grids. Default:
        0.
    require_equal
        Attributes of the root group that must be equal in all inputs.
    layout
        How the output will be read, which determines the chunk shapes: ``"events"`` (default; tables, by ranges of
        events), ``"scan"`` (whole datasets), ``"random"`` (single rows), ``"cloud"`` (over a network), ``"timeseries"``
        (all times at one place of a CF grid), ``"maps"`` (all places at one time), ``"keep"`` (as in the first input),
        ``"cmip7"`` (CMIP7 datasets). The command calls it ``--for``.
    chunk
        Chunk shape, which overrides that of ``layout``: ``"65536rows"`` for every dataset, a shape such as ``(128,
        1024)`` for datasets with that number of dimensions, or sizes by name such as ``{"time": 365, "lat": 90}`` for
        datasets that have one of these dimensions.
    layout_rules
        Layouts of datasets whose path matches, which take precedence over the options for all: ``{"/tas":
        "chunk=64x128, filter=zstd:3"}``, or a list of ``"PATTERN: SETTINGS"``. Settings are ``chunk``, ``filter``,
        ``shuffle``, ``fletcher32``, ``contiguous`` and ``compact``. Each setting is that of the last rule that matches.
        The command calls it ``--layout``.
    layout_file
        TOML file with such rules in a table ``[layout]``, which are applied before those of ``layout_rules``.
    contiguous
        True stores datasets without chunks and compression; a size in bytes or such as ``"1MiB"`` only those that are
        smaller. They cannot grow.
    empty
        Storage of datasets without elements: ``"contiguous"``, ``"compact"``, ``"chunked"`` or ``"null"``. Default:
        chunked if an input does so or if the dataset is extendible.
    extendible
        Datasets to which `append` can add rows later: ``"all"`` or True; ``"never"`` or False (only those that are
        extendible in an input); ``"likely"`` (default; also those with rows of several inputs, if no convention
        applies and it costs at most 1 % of their bytes).
    compress
        Compression: ``"fast"``, ``"balanced"`` (default), ``"small"``, ``"gzip:0"`` to ``"gzip:9"``, ``"keep"`` (that
        of the inputs) or ``"none"``; ``"zstd:1"`` to ``"zstd:22"`` and ``"lz4"`` are faster to read but need
        hdf5plugin in h5py.
    shuffle
        Whether to shuffle the bytes of elements before compression: True or ``"yes"``, False or ``"no"``, ``"keep"``
        (default; as in the first input).
    fletcher32
        Store a checksum with every chunk. Default: where the inputs do.
    compat
        Oldest HDF5 library that must be able to read the output: ``"1.8"`` (default), ``"1.10"``, ``"latest"``.
    profile
        Profile of ``raddle tune`` for layout options that are not given; ``"auto"`` is the newest for this machine and
        file system.
    align
        Size of the file system's stripes, in bytes or such as ``"4MiB"``, to which chunks are aligned; ``"auto"`` asks
        the file system. An interrupted run then starts over.
    keys
        Id columns of the group with one row per event, most significant first, from which partition keys are made,
        such as ``["/spill/run", "/spill/evt"]``. Default: no keys.
    key_datasets
        Key datasets to make, of ``"seq"``, ``"seq-cnt"`` and ``"offsets"``. Default: all three.
    key_scope
        Scope in which ids are unique: the whole ``"file"`` (default), or the rows of one ``"input"``.
    repeated_ids
        Several events with the same ids: ``"refuse"`` (default), or assign rows to the ``"first"``.
    key_skip
        Patterns of groups that get no keys.
    union
        Put inputs with distinct datasets into one file; chunks are copied as stored. A dataset of several inputs is
        refused unless ``keep`` names it and it is equal in all of them.
    link
        Write links to the inputs instead of their values: ``"virtual"`` datasets, which read like a merged file;
        ``"external"`` links, one per input; ``"external-objects"``, one per object in the root groups. The inputs must
        stay where they are.
    link_paths
        Paths of the inputs in links: ``"relative"`` (default) to the output's folder, or ``"absolute"``.
    preview
        Write a small IDX dataset of each array with two to five axes in the same pass. True writes to the folder
        ``OUTPUT.preview``; a path names another folder.
    preview_samples
        Maximum number of samples of each dataset of the preview, at least 1,024. Default: 4,194,304.
    index
        Write an index in the same pass, ``OUTPUT.stats``, with which `scan` skips blocks of rows. `append` keeps it up to
        date.
    unordered
        Write encoded chunks in order of completion: slightly faster, but the bytes differ between runs, and an
        interrupted run starts over.
    no_resume
        Start over instead of resuming an interrupted run of the same call.
    no_provenance
        Do not record inputs, row ranges and digests in the group ``/_raddle`` of the output. `verify` then needs the
        inputs.
    ignore_digests
        Accept inputs whose values differ from the digests that raddle recorded in them. Without it, a file that was
        damaged or changed after raddle wrote it is refused if its datasets are copied or concatenated as they are.
    part
        Write only part I of N, as ``"I/N"``: for N processes, on any machines, that share the output's folder. The
        part that finds all others done publishes the output. ``report.missing`` lists the parts that are not done, and
        ``report.merged`` is the report of the merge, or None.
    jobs
        Number of threads. Default: the cores available to this process.
    memory
        Size of buffers, in bytes or such as ``"512MiB"``. Default: 1 GiB.
    reader_timeout
        Time limit in seconds for each request to libhdf5, for files that only libhdf5 can read. A file that exceeds it is
        refused. Default: 60.
    reader
        Program that reads files with libhdf5 instead of this interpreter, such as a wrapper that runs ``raddle`` in a
        sandbox.
    progress
        True, False, ``"auto"`` (in notebooks and on terminals) or a function ``(stage, done_len_bytes,
        total_len_bytes_or_None)``, which is called several times a second.

    Returns
    -------
    MergeReport
        Report of the merge. With a preview, ``report.preview`` describes it.

    Warns
    -----
    raddle.errors.DifferencesWarning
        If inputs differ in ways that the keywords bridge (attributes, by default), before anything is written; a
        single warning lists all differences. They are also in ``report.differences``.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read or do not fit together; nothing was written.
    raddle.errors.UsageError
        If a keyword has an invalid value, or two exclude each other (also a ``ValueError``).
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).
    raddle.errors.LimitError
        If the memory, the number of open files or the size of the output reaches its limit.
    raddle.errors.LockedError
        If another run is writing the output.
    KeyboardInterrupt
        On Ctrl-C. The same call resumes the merge.

    Examples
    --------
    >>> report = raddle.merge("run11981/", "run11981.h5")  # doctest: +SKIP
    >>> report.output_len_bytes  # doctest: +SKIP

    NetCDF files whose times have different units:

    >>> raddle.merge(["jan.nc", "feb.nc"], "winter.nc", time_units="hours since 1970-01-01")  # doctest: +SKIP
    """
    files, options = as_paths(inputs), options_json(locals())
    return MergeReport(run(lambda watch: _core.merge(files, os.fsdecode(output), options, watch), progress))
