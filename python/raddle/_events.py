"""Rows of a table by event: jagged arrays built from offsets and content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from raddle._selection import rows_of
from raddle._tables import awkward_column
from raddle.errors import DamagedError, ObjectNotFoundError, UsageError

if TYPE_CHECKING:
    from raddle._dataset import Dataset
    from raddle._group import Group


def read_events(group: Group, names: Sequence[str] | None, events: slice | None, key: str) -> Any:
    """Returns an awkward array with a list of records per event."""
    import awkward

    offsets, first_row = _offsets(group, events, key)
    rows = slice(first_row, first_row + int(offsets[-1]))
    columns = group.read_columns(table_columns(group, key) if names is None else names, rows)
    contents = [awkward_column(column) for column in columns.values()]
    record = awkward.contents.RecordArray(contents, list(columns), length=int(offsets[-1]))
    return awkward.Array(awkward.contents.ListOffsetArray(awkward.index.Index64(offsets), record))


def without_event_counts(columns: dict[str, Dataset]) -> dict[str, Dataset]:
    """Columns without the datasets of partition keys that have a row per event instead of per row of the table."""
    keys = [name.removesuffix(".seq") for name in columns if name.endswith(".seq")]
    counts = {f"{key}{ending}" for key in keys for ending in (".seq_cnt", ".offsets")}
    return {name: column for name, column in columns.items() if name not in counts}


def table_columns(group: Group, key: str) -> list[str]:
    """Datasets with one row per row of the table, without those of the key, which count events."""
    generated = {f"{key}{ending}" for ending in (".seq", ".seq_cnt", ".offsets")}
    counted = group.get(f"{key}.seq")
    return [
        name
        for name, column in group._columns(None).items()
        if name not in generated and (counted is None or column.shape[0] == counted.shape[0])  # type: ignore[index]
    ]


def _offsets(group: Group, events: slice | None, key: str) -> tuple[npt.NDArray[np.int64], int]:
    """Row offsets of the events, starting with 0, relative to the first row; and the first row."""
    name = f"{key}.offsets"
    found = group.get(name)
    if found is None:
        error = ObjectNotFoundError(f"{group.name} has no {name}")
        error.hint = f"make it: raddle keys add {group.file.filename}"
        raise error
    start, count, step = rows_of(events, max(0, len(found) - 1))
    if step != 1:
        raise UsageError("event slices must have a step of 1")
    offsets = np.asarray(found[start : start + count + 1], np.int64) if len(found) else np.zeros(1, np.int64)
    first = int(offsets[0])
    if first < 0 or (np.diff(offsets) < 0).any():
        raise DamagedError(f"{found.name} is not a list of ascending row numbers; recreate the keys")
    return offsets - first, first
