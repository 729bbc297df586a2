"""The commands as functions."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from raddle import _core
from raddle._progress import Shown, observer
from raddle._reports import AppendReport, Inspection, MergeReport, Plan, VerifyReport
from raddle.errors import ObjectNotFoundError, UsageError

Path = str | os.PathLike[str]
Inputs = Path | Iterable[Path]


def plan(
    inputs: Inputs,
    *,
    join: Literal["exact", "inner", "outer", "union"] | None = None,
    attributes: Literal["first", "identical", "error", "stack"] | None = None,
    add_column: Sequence[str] | None = None,
    layout: Literal["events", "scan", "random", "cloud", "keep"] | None = None,
    compress: str | None = None,
    jobs: int | None = None,
    memory: int | str | None = None,
    progress: Shown = "auto",
    **options: Any,
) -> Plan:
    """Plan a merge; reads metadata only and writes nothing.

    For the parameters, see `merge`.

    Returns
    -------
    Plan
        Datasets, shapes, differences, predicted size and time.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read or do not fit together; ``differences`` lists the differences, ``details`` shows them
        as a table.
    """
    common = {
        "join": join,
        "attributes": attributes,
        "add_column": add_column,
        "for": layout,
        "compress": compress,
        "jobs": jobs,
        "memory": memory,
    }
    return Plan(_run(_core.plan, _paths(inputs), common, options, progress))


def merge(
    inputs: Inputs,
    output: Path,
    *,
    join: Literal["exact", "inner", "outer"] | None = None,
    attributes: Literal["first", "identical", "error", "stack"] | None = None,
    add_column: Sequence[str] | None = None,
    layout: Literal["events", "scan", "random", "cloud", "keep"] | None = None,
    compress: str | None = None,
    keys: Sequence[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    memory: int | str | None = None,
    progress: Shown = "auto",
    **options: Any,
) -> MergeReport:
    """Concatenate the datasets of many HDF5 files along their first axis into one file.

    Parameters
    ----------
    inputs
        One or several paths: files, folders (all HDF5 files in them), globs. They are sorted in natural order (``run2``
        before ``run10``) unless ``order="given"``.
    output
        The file to write. It gets this name when it is complete.
    join
        Datasets of the output if not every input has all of them: ``"exact"`` (the default; differences are an error),
        ``"inner"``, ``"outer"``.
    attributes
        What to do with attributes that differ between inputs: ``"first"`` (the default) keeps those of the first input,
        ``"identical"`` keeps those that are equal everywhere, ``"stack"`` makes datasets with a row per input,
        ``"error"`` refuses.
    add_column
        Columns that repeat an attribute of each input in its rows: ``["run=@run"]`` in every group,
        ``["/hits/run=@run"]`` in one group, ``["/hits/cut=/hits@threshold"]`` for an attribute of another object than
        the root.
    layout
        How the output will be read, which determines the chunk shapes: ``"events"`` (default), ``"scan"``,
        ``"random"``, ``"cloud"``, ``"keep"``. The same as the command's ``--for``.
    compress
        ``"fast"``, ``"balanced"`` (default), ``"small"``, ``"gzip:0"`` to ``"gzip:9"``, ``"keep"``, ``"none"``;
        ``"zstd:1"`` to ``"zstd:22"`` and ``"lz4"``, which are faster to read but need hdf5plugin in h5py.
    keys
        Id columns of the group with one row per event, from which partition keys are made.
    force
        Replace the output if it exists.
    jobs
        Number of threads. Default: the cores available to this process.
    memory
        Size of buffers in bytes, or a string such as ``"512MiB"``. Default: 1 GiB.
    progress
        True, False, ``"auto"`` (in notebooks and on terminals) or a function ``(stage, done_len_bytes,
        total_len_bytes_or_None)``.
    options
        Other options of ``raddle merge``, with ``_`` for ``-``: ``sort_by=["/spill/run"]``, ``skip_bad=True``,
        ``include=["/rec/**"]``, ``preview=True`` or ``preview="folder"``.

    Returns
    -------
    MergeReport
        Report of the merge. With a preview, ``report.preview`` describes it.

    Warns
    -----
    raddle.errors.DifferencesWarning
        If inputs differ in ways that the options bridge (attributes, by default), before anything is written; a single
        warning lists all differences. They are also in ``report.differences``.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read or do not fit together; nothing was written.
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).
    raddle.errors.LockedError
        If another run is writing the output.
    KeyboardInterrupt
        On Ctrl-C. The same call resumes the merge.

    Examples
    --------
    >>> report = raddle.merge("run11981/", "run11981.h5")  # doctest: +SKIP
    >>> report.output_len_bytes  # doctest: +SKIP
    """
    common = {
        "output": os.fspath(output),
        "join": join,
        "attributes": attributes,
        "add_column": add_column,
        "for": layout,
        "compress": compress,
        "keys": keys,
        "force": force,
        "jobs": jobs,
        "memory": memory,
    }
    return MergeReport(_run(_core.merge, _paths(inputs), common, options, progress))


def append(
    file: Path,
    inputs: Inputs,
    *,
    join: Literal["exact", "outer"] | None = None,
    again: bool = False,
    compress: str | None = None,
    jobs: int | None = None,
    memory: int | str | None = None,
    progress: Shown = "auto",
    **options: Any,
) -> AppendReport:
    """Append the rows of more files to a merged file, in place and atomically.

    For all other parameters, see `merge`.

    Parameters
    ----------
    file
        The file to append to. At any time it holds either the old or the new state.
    again
        Append inputs even if the file already contains their rows.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read, do not fit, or are already in the file.
    """
    common = {"join": join, "again": again, "compress": compress, "jobs": jobs, "memory": memory}
    return AppendReport(_run(_core.append, [os.fspath(file), *_paths(inputs)], common, options, progress))


def verify(
    file: Path,
    against: Inputs | None = None,
    *,
    join: Literal["exact", "inner", "outer"] | None = None,
    jobs: int | None = None,
    progress: Shown = "auto",
    **options: Any,
) -> VerifyReport:
    """Check that a merged file has the values of its inputs or, without inputs, those that were written.

    Parameters
    ----------
    file
        The merged file.
    against
        The inputs, as for the merge. Default: the digests in the file.
    join, options
        The options of the merge are stored in the file; options passed here override them.

    Returns
    -------
    VerifyReport
        True as a condition if all values are equal; ``mismatches`` lists the differences.

    Raises
    ------
    raddle.errors.InputError
        If a file cannot be read, or has no digests.
    """
    common = {"join": join, "jobs": jobs, "against": None if against is None else _paths(against)}
    return VerifyReport(_run(_core.verify, [os.fspath(file)], common, options, progress))


def inspect(file: Path) -> Inspection:
    """Report how the bytes of an HDF5 file are used, and suggest improvements; reads metadata only.

    Raises
    ------
    raddle.errors.InputError
        If it cannot be read.
    """
    return Inspection(json.loads(_core.inspect(os.fspath(file))))


def references(
    file: Path, output: Path | None = None, *, group: str | None = None, url: str | None = None
) -> dict[str, Any]:
    """Return the location of each chunk of an HDF5 file, so that Zarr readers can read the file directly; reads
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
    text, left_out = _core.references(os.fspath(file), url or os.path.abspath(file))
    for path, reason in left_out:
        warnings.warn(f"{path} is left out: {reason}", stacklevel=2)
    found: dict[str, Any] = json.loads(text)
    # Without a group, the root is used.
    if group is not None and group.strip("/"):
        prefix = group.strip("/") + "/"
        inside = {key.removeprefix(prefix): at for key, at in found["refs"].items() if key.startswith(prefix)}
        if ".zgroup" not in inside:
            raise ObjectNotFoundError(f"{os.fspath(file)} has no group {group!r}")
        found["refs"] = inside
    if output is not None and os.fspath(output).endswith(".parquet"):
        from raddle._parquet import write_parquet

        write_parquet(found, os.fspath(output))
    elif output is not None:
        with open(output, "w", encoding="utf-8") as written:
            json.dump(found, written)
    return found


def _paths(inputs: Inputs) -> list[str]:
    if isinstance(inputs, (str, os.PathLike)):
        return [os.fspath(inputs)]
    if hasattr(inputs, "read"):
        # Its lines would be treated as paths.
        raise UsageError(f"{inputs!r} is a file object: pass the paths of files")
    return [os.fspath(path) for path in inputs]


# Options whose values the command takes as one comma-separated argument; others are repeated.
_WITH_COMMAS = {"keys", "sort-by", "key-datasets"}


def _command_line(paths: list[str], options: dict[str, Any]) -> list[str]:
    """The arguments of the command. Paths cannot be mistaken for options or their values."""
    line: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            line.append(flag)
        elif isinstance(value, (str, int, float, os.PathLike)):
            line.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        elif flag[2:] in _WITH_COMMAS:
            line.append(f"{flag}={','.join(str(item) for item in value)}")
        else:
            line += [f"{flag}={os.fspath(item) if isinstance(item, os.PathLike) else item}" for item in value]
    return [*line, "--", *paths]


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _level_of_caller() -> int:
    """The ``stacklevel`` at which a warning refers to the code that called the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


# Options of the command's output, which do not apply to a call.
_NOT_FOR_CALLS = {"json", "dry_run", "quiet", "verbose", "progress", "log_json", "report", "list", "null", "datasets"}


def _run(
    run: Callable[[Sequence[str], Any], str],
    paths: list[str],
    common: dict[str, Any],
    options: dict[str, Any],
    progress: Shown,
) -> dict[str, Any]:
    unfit = _NOT_FOR_CALLS & options.keys()
    if unfit:
        raise UsageError(f"{', '.join(sorted(unfit))}: only available as an option of the command")

    def warn(text: str | Warning) -> None:
        warnings.warn(text, stacklevel=_level_of_caller())

    told, close = observer(progress, warn)
    try:
        report: dict[str, Any] = json.loads(run(_command_line(paths, {**common, **options}), told))
    finally:
        close()
    return report
