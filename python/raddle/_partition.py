"""Shares of events: the rows of every table that one of several readers takes, by the file's partition keys."""

from __future__ import annotations

import json
import operator
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from raddle import _core
from raddle._events import table_columns
from raddle._ranks import Ranks
from raddle._values import encoded
from raddle.errors import ObjectNotFoundError, UsageError

if TYPE_CHECKING:
    from raddle._file import File
    from raddle._group import Group
    from raddle._tables import Library


class Share(Mapping[str, slice]):
    """The part of a file for one of several readers: a mapping from groups with keys to their rows.

    Every row of such a group is in exactly one share, and all rows of an event are in the same share. Groups
    whose events do not ascend cannot be divided in this way; they are in no share.
    """

    __slots__ = ("_file", "_key", "_rows", "_unordered", "events", "rank", "size")

    rank: int
    """Index of the reader, from 0."""
    size: int
    """Number of readers."""
    events: slice
    """Events of the share: rows of the group with one row per event."""

    def __init__(self, file: File, key: str, described: dict[str, Any], groups: list[bytes]) -> None:
        self._file = file
        self._key = key
        self.rank, self.size = described["rank"], described["size"]
        self.events = slice(described["events"]["start"], described["events"]["end"])
        rows = [slice(table["rows"]["start"], table["rows"]["end"]) for table in described["tables"]]
        # The names in the description are escaped for terminals.
        paths = [group.decode("utf-8", "surrogateescape") for group in groups]
        self._rows = dict(zip(paths, rows, strict=True))
        self._unordered: list[str] = described["unordered"]

    def __getitem__(self, group: str | Group) -> slice:
        """Rows of all datasets of a group, which is passed by name or as an object."""
        path = "/" + (group if isinstance(group, str) else group.name).strip("/")
        if path not in self._rows:
            is_unordered = path in self._unordered
            reason = "is not divided, because its events do not ascend" if is_unordered else "has no rows by event"
            error = ObjectNotFoundError(f"{path} {reason}")
            error.hint = "groups that are divided are " + ", ".join(self._rows)
            raise error
        return self._rows[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def read_columns(
        self, group: str | Group, names: Sequence[str] | None = None, *, library: Library = "dict"
    ) -> Any:
        """Reads this share's rows of datasets of a group in one parallel pass.

        Parameters
        ----------
        group
            Group that contains the datasets, or its path.
        names
            Paths of datasets, relative to the group. Default: all columns of the table.
        library
            What to return, as for `Group.read_columns`.
        """
        rows = self[group]
        found = cast("Group", self._file[group] if isinstance(group, str) else group)
        wanted = table_columns(found, self._key) if names is None else names
        return found.read_columns(wanted, rows, library=library)

    def __repr__(self) -> str:
        events = f"events {self.events.start:,} to {self.events.stop:,}"
        return f"<Share {self.rank} of {self.size}: {events}, {len(self)} groups>"


def share(file: File, reader: Ranks | SupportsIndex, size: SupportsIndex | None, key: str) -> Share:
    """The share of a rank, passed as an index or a communicator."""
    rank, count = rank_and_size(reader, size)
    path = index_key(file, key)
    name = posixpath.basename(path).removesuffix(".seq")
    described, groups = _core.partition(file._source.path, path, rank, count)
    file._open_core().check_not_replaced()
    return Share(file, name, json.loads(described), groups)


def rank_and_size(reader: Ranks | SupportsIndex, size: SupportsIndex | None) -> tuple[int, int]:
    """The rank, passed as an index or a communicator, and the number of ranks."""
    # Also accepts numpy integers.
    if isinstance(reader, SupportsIndex):
        if size is None:
            raise UsageError("call partition(rank, size) or partition(communicator)")
        rank, count = operator.index(reader), operator.index(size)
    else:
        if size is not None:
            raise UsageError("size must be omitted with a communicator")
        rank, count = reader.Get_rank(), reader.Get_size()
    if not 0 <= rank < count:
        raise UsageError(f"rank {rank} is not valid for {count} ranks")
    return rank, count


def rows_of_rank(group: Group, columns: Sequence[str], rank: int, size: int, key: str | None) -> range:
    """The rows of a table for one of several ranks: by events if the table has a key whose events ascend, otherwise equal parts
    of the rows.

    Raises UsageError if the table has several keys and none is named.
    """
    keys = [name.removesuffix(".seq") for name in columns if name.endswith(".seq")]
    keys = [name for name in keys if f"{name}.offsets" in group]
    if key is None and len(keys) > 1:
        raise UsageError(f"{group.name} has the keys {', '.join(keys)}: name one, as in partition(rank, size, key={keys[0]!r})")
    if key is None and not keys:
        rows = len(group._columns(columns[:1])[columns[0]]) if columns else 0
        return range(rows * rank // size, rows * (rank + 1) // size)
    rows_of_events = share(group._file, rank, size, key or keys[0])[group]
    return range(rows_of_events.start, rows_of_events.stop)


def index_key(file: File, key: str) -> str:
    """Path of the key of the group with one row per event."""
    named = key.removesuffix(".seq")
    if "/" in named:
        return "/" + named.strip("/") + ".seq"
    ending = encoded(f"{named}.seq")
    groups = [group for group in _groups(file) if group._core().link(group._number, ending) is not None]
    names = [group.name for group in groups]
    if not names:
        error = ObjectNotFoundError(f"{file.filename} has no key {named!r}")
        error.hint = f"make it: raddle keys add {file.filename}, or raddle.merge(..., keys=[...])"
        raise error
    if len(names) > 1 and "/spill" not in names:
        raise UsageError(
            f"several groups have the key; name the one with one row per event, for example key='{names[0]}/{named}', "
            f"of {', '.join(names)}"
        )
    chosen = names[0] if len(names) == 1 else "/spill"
    return f"{chosen.rstrip('/')}/{named}.seq"


def _groups(file: File) -> list[Group]:
    from raddle._group import Group

    found: list[Group] = [file]

    def take(_: str, member: Any) -> None:
        if isinstance(member, Group):
            found.append(member)

    file.visititems(take)
    return found
