"""Runs on one file as functions: `append`, `rechunk`, `verify`, `index`, `inspect`, and the references to its chunks."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
    Layout,
    Merge,
    Order,
    Overlap,
    Packing,
    Path,
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
from raddle._reports import AppendReport, IndexReport, Inspection, MergeReport, RechunkReport, VerifyReport
from raddle.errors import ObjectNotFoundError


def append(
    file: Path,
    inputs: Inputs,
    *,
    order: Order | None = None,
    duplicates: Duplicates | None = None,
    sort_by: Sequence[str] | None = None,
    again: bool = False,
    join: Literal["exact", "outer"] | None = None,
    scalars: Literal["equal", "first"] | None = None,
    attributes: Literal["first", "error"] | None = None,
    keep: Sequence[str] | None = None,
    skip_bad: bool = False,
    ignore_digests: bool = False,
    follow_foreign_files: bool = False,
    compress: str | None = None,
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> AppendReport:
    """Appends the rows of more files to a merged file, in place and atomically.

    For the other keywords, see `merge`.

    Parameters
    ----------
    file
        The file to append to. At any time it holds either the old or the new state.
    inputs
        One or several paths, as for `merge`.
    again
        Append inputs even if the file already contains their rows.
    join
        Datasets that an input lacks: ``"exact"`` (an error), or ``"outer"`` (their rows get the fill value). Default:
        as the file was merged.
    scalars
        Datasets of a single value that differ from the file's: ``"equal"`` refuses them, ``"first"`` keeps those of
        the file. Default: as the file was merged.
    attributes
        Attributes that differ from the file's: ``"first"`` keeps those of the file, ``"error"`` refuses. Default: as
        the file was merged.
    keep
        Patterns of datasets that do not grow; they must be equal in all inputs.
    skip_bad
        Leave out inputs that cannot be read; ``report.skipped`` lists them.
    ignore_digests
        Accept inputs whose values differ from the digests that raddle recorded in them.
    follow_foreign_files
        Follow virtual datasets and external storage outside of the input's folder.
    compress
        Effort for datasets that the file compresses with deflate (``"fast"``, ``"balanced"``, ``"small"``,
        ``"gzip:1"`` to ``"gzip:9"``) or Zstandard (``"zstd:1"`` to ``"zstd:22"``). ``"keep"``, and all other datasets:
        as in the file. Default: ``"balanced"``.

    Returns
    -------
    AppendReport
        Report of the append.

    Warns
    -----
    raddle.errors.DifferencesWarning
        If inputs differ from the file in ways that the keywords bridge, before anything is written.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read, do not fit, or are already in the file.
    raddle.errors.UsageError
        If a keyword has an invalid value (also a ``ValueError``).
    raddle.errors.OutputError
        If the file cannot be written (also an ``OSError``).
    raddle.errors.LockedError
        If another run is writing the file.
    KeyboardInterrupt
        On Ctrl-C. The next run that opens the file completes the append or rolls it back.

    Examples
    --------
    >>> raddle.append("run11981.h5", "today/")  # doctest: +SKIP
    """
    files, options = as_paths(inputs), options_json(locals())
    return AppendReport(run(lambda watch: _core.append(os.fsdecode(file), files, options, watch), progress))


def rechunk(
    inputs: Inputs,
    output: Path | None = None,
    *,
    dir: Path | None = None,
    in_place: bool = False,
    skip_bad: bool = False,
    follow_foreign_files: bool = False,
    force: bool = False,
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
    rank_1: bool = False,
    preview: bool | Path = False,
    preview_samples: int | None = None,
    index: bool = False,
    unordered: bool = False,
    no_resume: bool = False,
    no_provenance: bool = False,
    ignore_digests: bool = False,
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> MergeReport | RechunkReport:
    """Rewrites files with new chunks or different compression.

    One file is written to ``output``, many files to the folder ``dir`` or in place. The other keywords except ``rank_1``
    are those of `merge`, which describes them.

    Parameters
    ----------
    inputs
        The file or files to rewrite. They are not modified unless ``in_place`` is set.
    output
        The file to write, for a single input. It gets this name when it is complete.
    dir
        Write each input to a file of the same name in this folder, which is created if necessary.
    in_place
        Replace each input by its new version, which is written next to it and then renamed. Owner, group and
        permissions are kept.
    skip_bad
        With ``dir`` or ``in_place``, leave out files that cannot be rewritten; ``report.skipped`` lists them.
    follow_foreign_files
        Follow virtual datasets and external storage outside of the input's folder.
    rank_1
        Store datasets of N x 1 elements with one dimension of N elements. Datasets with dimension scales or labels
        keep both.

    Returns
    -------
    MergeReport or RechunkReport
        With ``output``, the report of a merge of a single input; otherwise that of all files.

    Raises
    ------
    raddle.errors.InputError
        If a file cannot be read, or two inputs would be written to the same file; nothing was written.
    raddle.errors.UsageError
        If a keyword has an invalid value, or two exclude each other (also a ``ValueError``).
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).
    KeyboardInterrupt
        On Ctrl-C. The same call resumes the run; files that are done are not written again.

    Examples
    --------
    >>> raddle.rechunk("old.h5", "new.h5", chunk=(128, 1024), compress="small")  # doctest: +SKIP
    >>> raddle.rechunk(["jan.nc", "feb.nc"], dir="packed", layout="cmip7")  # doctest: +SKIP
    """
    files, options = as_paths(inputs), options_json(locals())
    to = None if output is None else os.fsdecode(output)
    report = run(lambda watch: _core.rechunk(files, to, options, watch), progress)
    return RechunkReport(report) if output is None else MergeReport(report)


def verify(
    file: Path,
    against: Inputs | None = None,
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
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> VerifyReport:
    """Checks that a merged file has the values of its inputs or, without inputs, those that were written.

    All keywords are those of `merge`, which describes them. Those of the merge that affect values are stored in the
    file, and do not have to be repeated; those passed here override them.

    Parameters
    ----------
    file
        The merged file.
    against
        The inputs, as for the merge. Default: the digests in the file.

    Returns
    -------
    VerifyReport
        True as a condition if all values are equal; ``mismatches`` lists the differences.

    Raises
    ------
    raddle.errors.InputError
        If a file cannot be read, or has no digests.
    raddle.errors.UsageError
        If a keyword has an invalid value, or two exclude each other (also a ``ValueError``).

    Examples
    --------
    >>> assert raddle.verify("run11981.h5", "run11981/")  # doctest: +SKIP
    """
    inputs = None if against is None else as_paths(against)
    options = options_json(locals())
    return VerifyReport(run(lambda watch: _core.verify(os.fsdecode(file), inputs, options, watch), progress))


def inspect(file: Path) -> Inspection:
    """Reports how the bytes of an HDF5 file are used, and suggests improvements; reads metadata only.

    Parameters
    ----------
    file
        The file.

    Returns
    -------
    Inspection
        Statistics of the file, of every group and of every dataset.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.

    Examples
    --------
    >>> raddle.inspect("run11981.h5").space.metadata_len_bytes  # doctest: +SKIP
    """
    return Inspection(json.loads(_core.inspect(os.fsdecode(file))))


def references(
    file: Path, output: Path | None = None, *, group: str | None = None, url: str | None = None
) -> dict[str, Any]:
    """Returns the location of each chunk of an HDF5 file, so that Zarr readers can read the file directly; reads
    metadata only.

    Parameters
    ----------
    file
        The file.
    output
        Where to write the references, for kerchunk, fsspec and VirtualiZarr: as JSON or, if the name ends in
        ``.parquet``, as a folder in kerchunk's parquet layout, which readers load in parts. Default: they are not
        written.
    group
        Group to use as the root. Default: the whole file.
    url
        URL by which readers open the file. Default: its absolute path.

    Returns
    -------
    dict
        The references: ``{"version": 1, "refs": {...}}``. Objects that Zarr cannot represent are left out, with a
        warning each.

    Raises
    ------
    raddle.errors.InputError
        If the file cannot be read.
    raddle.errors.ObjectNotFoundError
        If the group does not exist.
    raddle.errors.UsageError
        If parquet is requested and fastparquet is not installed.
    OSError
        If ``output`` cannot be written; a folder is not replaced.

    Examples
    --------
    >>> store = fsspec.filesystem("reference", fo=raddle.references("run.h5")).get_mapper()  # doctest: +SKIP
    """
    text, left_out = _core.references(os.fsdecode(file), url or os.path.abspath(os.fsdecode(file)))
    for path, reason in left_out:
        warnings.warn(f"{path} is left out: {reason}", stacklevel=2)
    found: dict[str, Any] = json.loads(text)
    # Without a group, the root is used.
    if group is not None and group.strip("/"):
        prefix = group.strip("/") + "/"
        inside = {key.removeprefix(prefix): at for key, at in found["refs"].items() if key.startswith(prefix)}
        if ".zgroup" not in inside:
            raise ObjectNotFoundError(f"{os.fsdecode(file)} has no group {group!r}")
        found["refs"] = inside
    if output is not None and os.fsdecode(output).endswith(".parquet"):
        from raddle._parquet import write_parquet

        write_parquet(found, os.fsdecode(output))
    elif output is not None:
        with open(output, "w", encoding="utf-8") as written:
            json.dump(found, written)
    return found


def index(
    file: Path, *, output: Path | None = None, jobs: int | None = None, progress: ProgressMode = "auto"
) -> IndexReport:
    """Writes the index of a file: the limits of each block of rows, and its distinct values if they are few. With it,
    searches skip blocks.

    Parameters
    ----------
    file
        An HDF5 file. It is not changed.
    output
        The index to write. An existing index is replaced. Default: ``FILE.stats``, which `scan` finds.
    jobs
        Number of threads. Default: the cores available to this process.

    Returns
    -------
    IndexReport

    Raises
    ------
    raddle.errors.InputError
        If the file cannot be read.
    raddle.errors.OutputError
        If the index cannot be written, or would replace something else (also an ``OSError``).

    Examples
    --------
    >>> raddle.index("all.h5")  # doctest: +SKIP
    """
    options, to = options_json(locals()), None if output is None else os.fsdecode(output)
    return IndexReport(run(lambda watch: _core.write_index(os.fsdecode(file), to, options, watch), progress))
