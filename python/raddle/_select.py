"""Selections of events: files with the rows of all tables that belong to events that satisfy conditions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from raddle import _core
from raddle._call import run
from raddle._conditions import Condition
from raddle._keywords import (
    Compat,
    Empty,
    Extendible,
    KeyDataset,
    KeyScope,
    Layout,
    Path,
    RepeatedIds,
    Rules,
    Shuffle,
    Size,
    Values,
    options_json,
)
from raddle._progress import ProgressMode
from raddle._reports import MergeReport
from raddle.errors import UsageError


def select(
    file: Path,
    output: Path,
    *,
    where: str | Iterable[str] | Mapping[str, Condition | str],
    values: Values | None = None,
    key: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    key_datasets: Sequence[KeyDataset] | None = None,
    key_scope: KeyScope | None = None,
    repeated_ids: RepeatedIds | None = None,
    key_skip: Sequence[str] | None = None,
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
) -> MergeReport:
    """Writes the events of a file that satisfy conditions, with their rows in all tables.

    The file must have partition keys; the output gets new ones. A dataset belongs to the table of its group if it has
    as many rows as the key. Other datasets, and those of groups without keys, are copied whole. The other keywords are those of `merge`, which describes them.

    Parameters
    ----------
    file
        A file with partition keys (``raddle merge --keys``, ``raddle keys add``).
    output
        The file to write. It gets this name when it is complete.
    where
        Conditions by the path of the table: ``{"rec.slc": raddle.col("calE") > 2}``, or strings such as
        ``"rec.slc: calE > 2 & run == 1234"``, in which a path with a colon is in backticks. An event is selected if it has
        a row that satisfies the condition in each of these tables.
    values
        Values of netCDF variables in conditions, as for `scan`: ``"stored"`` or ``"decoded"``. The rows of the output are those of the
        file, packed or not. Default: conditions on columns for which this makes a difference are refused.
    key
        Name of the partition key: ``"evt"`` for datasets ``evt.seq``. Default: the only key of the first table.
    keys
        Id columns of the key, most significant first. Default: as recorded in the file.
    key_datasets, key_scope, repeated_ids, key_skip
        With ``keys``: how to make the key, as for `merge`.

    Returns
    -------
    MergeReport
        Report of a merge of a single input; ``selected_events`` and ``input_events`` count the events.

    Raises
    ------
    raddle.errors.InputError
        If the file cannot be read, or a condition needs ``values``; nothing was written.
    raddle.errors.UsageError
        If a table, column or key does not exist, or values cannot be compared (also a ``ValueError``).
    raddle.errors.OutputError
        If the output exists or cannot be written (also an ``OSError``).
    KeyboardInterrupt
        On Ctrl-C. The same call resumes the run.

    Examples
    --------
    >>> raddle.select("all.h5", "skim.h5", where={"rec.slc": raddle.col("calE") > 2})  # doctest: +SKIP
    """
    if where is not None and not isinstance(where, (str, Mapping, Condition)):
        where = list(where)
    if isinstance(where, Condition) or isinstance(where, list) and any(isinstance(one, Condition) for one in where):
        raise UsageError('where does not name the tables of its conditions: pass a dict, such as where={"rec.slc": raddle.col("calE") > 2}')
    options = options_json(locals())
    return MergeReport(run(lambda watch: _core.select(os.fsdecode(file), os.fsdecode(output), options, watch), progress))
