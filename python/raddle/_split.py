"""Merges that are written as several files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raddle import _core
from raddle._call import as_paths, run
from raddle._keywords import (
    Attributes,
    By,
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
from raddle._reports import SplitReport


def split(
    inputs: Inputs,
    dir: Path,
    *,
    by: By | None = None,
    rows_per_file: int | None = None,
    size_per_file: Size | None = None,
    name: str | None = None,
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
    unordered: bool = False,
    no_resume: bool = False,
    no_provenance: bool = False,
    ignore_digests: bool = False,
    jobs: int | None = None,
    memory: Size | None = None,
    reader_timeout: int | None = None,
    reader: Path | None = None,
    progress: ProgressMode = "auto",
) -> SplitReport:
    """Merges files into several: one file per variable, files of limited length, or both.

    The other keywords are those of `merge`, which describes them.

    Parameters
    ----------
    inputs
        The files to merge, as for `merge`.
    dir
        Folder of the outputs, which is created if necessary. The file of a variable is named after it, ``tas.nc``; files that
        follow one another are numbered, ``tas_0001.nc`` or ``part_0001.nc``.
    by
        ``"variable"``: one file per variable, with its coordinates and everything else that describes it.
    rows_per_file
        Maximum number of rows of a file, counted along the dimension of concatenation. Merges without such a dimension, such
        as those of event files, are divided only where one input ends and the next begins.
    size_per_file
        Largest size of the values of a file before compression, in bytes or such as ``"4GiB"``.
    name
        Prefix of the file names that contain no variable. Default: ``"part"``.

    Returns
    -------
    SplitReport
        Report of all files.

    Raises
    ------
    raddle.errors.InputError
        If inputs cannot be read, do not fit together, or cannot be divided as requested; nothing was written.
    raddle.errors.UsageError
        If a keyword has an invalid value, or two exclude each other (also a ``ValueError``).
    raddle.errors.OutputError
        If an output exists or cannot be written (also an ``OSError``).
    KeyboardInterrupt
        On Ctrl-C. The same call resumes the run; files that are done are not written again.

    Examples
    --------
    >>> raddle.split("model/*.nc", "series", by="variable", layout="timeseries")  # doctest: +SKIP
    >>> raddle.split("days/*.nc", "years", rows_per_file=365, name="tas")  # doctest: +SKIP
    """
    files, options = as_paths(inputs), options_json(locals())
    return SplitReport(run(lambda watch: _core.split(files, options, watch), progress))
