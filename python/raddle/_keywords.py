"""Keywords of the functions that run a command: their types, and their values as JSON.

A keyword is an option of the command with ``_`` for ``-``. None stands for the command's default.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Literal, SupportsIndex

from raddle.errors import UsageError

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""Path of a file or folder, in any form that ``os.fspath`` accepts."""
Inputs = Path | Iterable[Path]
Size = int | str
"""Number of bytes, or a string with a unit, such as ``"512MiB"`` or ``"2GB"``."""

Attributes = Literal["first", "identical", "error", "stack"]
By = Literal["variable"]
Compat = Literal["1.8", "1.10", "latest"]
Convention = Literal["cf", "anndata", "nexus", "nwb", "pandas", "none"]
Duplicates = Literal["refuse", "keep", "drop"]
Empty = Literal["contiguous", "compact", "chunked", "null"]
Extendible = Literal["likely", "all", "never"]
Join = Literal["exact", "inner", "outer", "union"]
KeyDataset = Literal["seq", "seq-cnt", "offsets"]
KeyScope = Literal["file", "input"]
Layout = Literal["events", "scan", "random", "cloud", "timeseries", "maps", "keep", "cmip7"]
Link = Literal["virtual", "external", "external-objects"]
LinkPaths = Literal["relative", "absolute"]
Merge = Literal["same", "unique", "first", "only"]
Order = Literal["natural", "given"]
Overlap = Literal["refuse", "first", "last"]
Packing = Literal["refuse", "unpack", "repack"]
Times = Literal["exact", "nearest"]
RepeatedIds = Literal["refuse", "first"]
Rules = Iterable[str] | Mapping[str, str]
Scalars = Literal["equal", "first", "stack"]
Select = Iterable[str] | Mapping[str, slice | str | int]
Shuffle = Literal["keep", "yes", "no"]
Units = Literal["refuse", "convert"]
Values = Literal["stored", "decoded"]

# Parameters that are not options.
_ARGUMENTS = {"inputs", "input", "output", "file", "against", "progress"}

# Values for True and False of options with more than two values. False of any other option is its default.
_WORDS = {"extendible": {True: "all", False: "never"}, "shuffle": {True: "yes", False: "no"}}

# Options with several values, which the command also takes as one string with commas.
COMMA_SEPARATED = {"sort_by", "require_equal", "keys", "key_datasets"}

_LISTS = {*COMMA_SEPARATED, "add_column", "include", "exclude", "keep", "rule", "key_skip", "layout_rules", "where", "select"}


def options_json(parameters: Mapping[str, object]) -> str:
    """Returns the options among the parameters of a call, without those that are None, as a JSON object."""
    options = {}
    for name, value in parameters.items():
        if isinstance(value, bool):
            value = _WORDS.get(name, {True: True, False: None})[value]
        if name not in _ARGUMENTS and value is not None:
            options[name] = _plain(name, value)
    return json.dumps(options)


def _quoted(table: str) -> str:
    """Returns the path of a table as a condition begins with it: in backticks if it has a colon."""
    if ":" not in table and not table.startswith("`") and table == table.strip():
        return table
    escaped = table.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _range(limits: slice | str | int) -> str:
    """Returns a range of a dimension in the command's notation."""
    if not isinstance(limits, slice):
        return str(limits)
    if limits.step not in (None, 1):
        raise UsageError(f"select takes all elements of a range: {limits} has a step")
    return f"{'' if limits.start is None else limits.start}:{'' if limits.stop is None else limits.stop}"


def _plain(name: str, value: object) -> object:
    """Returns a value of an option as JSON: a list for several, a string for a path or a shape."""
    if name in ("layout_rules", "rule", "where") and isinstance(value, Mapping):
        value = [f"{_quoted(pattern) if name == 'where' else pattern}: {settings}" for pattern, settings in value.items()]
    if name == "select" and isinstance(value, Mapping):
        value = [f"{dimension}={_range(limits)}" for dimension, limits in value.items()]
    if name in _LISTS:
        values = [value] if isinstance(value, str | bytes | os.PathLike) else list(value)  # type: ignore[call-overload]
        strings = (os.fsdecode(item) if isinstance(item, bytes | os.PathLike) else item for item in values)
        return [part for text in strings for part in (text.split(",") if name in COMMA_SEPARATED else [text])]
    if name == "chunk" and isinstance(value, Mapping):
        return ",".join(f"{dimension}={size}" for dimension, size in value.items())
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name}={value} is not a finite number")
    if name == "chunk" and not isinstance(value, str | SupportsIndex):
        extents = [str(extent) for extent in value]  # type: ignore[attr-defined]
        if len(extents) == 1:
            raise UsageError(f"chunk={value!r}: a shape has two extents or more; for rows, write '{extents[0]}rows'")
        return "x".join(extents)
    if name in ("axis", "align"):
        return str(value)
    if isinstance(value, bytes | os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return int(value)
    return value
