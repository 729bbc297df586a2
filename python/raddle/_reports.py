"""Results of runs: the reports of the command as objects.

The fields are those of the command's JSON (``--json``, ``--report``) and are stable: fields may be added, but not
renamed. Sizes are in bytes (``..._len_bytes``), times in seconds (``..._s``).
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any


class Fields:
    """Named values; nested objects are `Fields` too."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._values:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        return _wrapped(self._values[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and self._values == other._values

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._values,))

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain dicts, lists, strings and numbers."""
        copied: dict[str, Any] = json.loads(json.dumps(self._values))
        return copied

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_short(value)}" for name, value in self._values.items())
        return f"{type(self).__name__}({values})"


class _Report(Fields):
    """A report that notebooks show as a table."""

    __slots__ = ()

    def _rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{cells}</table>"

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        lines = "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)
        return f"{type(self).__name__}\n{lines}"


class DoctorReport(Fields):
    """What a machine and an installation have and lack. Its text is that of ``raddle doctor``."""

    __slots__ = ("_text",)

    program: str
    """Name and version."""
    exit_code: int
    """0, or the exit code for what is broken: 5 for the folder, 6 for open files, 2 for the environment."""
    sections: list[Fields]
    """Sections with ``name`` and ``checks``. A check has ``name``, ``mark`` (ok, note, missing, broken) and ``found``, and
    if they apply ``value``, ``without`` (what cannot be done), ``remedy`` and ``exit_code``."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        super().__init__(values)
        self._text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._values, self._text))

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


class Plan(_Report):
    """Plan of a merge."""

    __slots__ = ()

    inputs: list[Fields]
    """Input files in the order of their rows: ``path``, ``len_bytes``."""
    skipped: list[Fields]
    """Inputs that cannot be read and would be left out: ``path``, ``reason``."""
    output: Fields
    """The output: ``datasets`` (``path``, ``datatype``, ``dims``, ``chunk_shape``, ...), ``chunks``, ..."""
    differences: list[Fields]
    """Differences between inputs that the join bridges: ``path``, ``kind``, ``expected``, ``found``, ``inputs``."""
    predicted: Fields
    """Predicted size, time and memory: ``stored_len_bytes``, ``metadata_len_bytes``, ``size_error`` (uncertainty as a
    share of their sum; above 0.15 the size is unknown), ``elapsed_s`` and ``cpu_s`` (None if the sample does not
    determine them), ``is_short`` (less than 2 s, for which no ``elapsed_s`` is predicted), ``memory_len_bytes`` (of
    buffers), ``sampled_len_bytes``, ``input_len_bytes``."""
    scan_s: float
    elapsed_s: float

    def _rows(self) -> list[tuple[str, str]]:
        predicted = self.predicted
        expected = predicted.stored_len_bytes + predicted.metadata_len_bytes
        error = predicted.size_error
        output = f"about {size(expected)}" if error <= 0.15 else "unknown"
        elapsed_s = predicted.elapsed_s
        unknown = "less than 2 s" if predicted.is_short else "unknown"
        return [
            ("inputs", f"{len(self.inputs):,} ({size(predicted.input_len_bytes)})"),
            ("left out", f"{len(self.skipped):,}"),
            ("datasets", f"{len(self.output.datasets):,}"),
            ("uncompressed", size(self.output.logical_len_bytes)),
            ("output", output),
            ("time", unknown if elapsed_s is None else f"about {elapsed_s:.2f} s"),
        ]


class MergeReport(_Report):
    """Report of a merge.

    The report of a part of a merge has the fields ``output``, ``part``, ``tiles``, ``missing`` (parts that are not
    complete), ``differences`` and ``merged`` (the report of the merge, if this part published the output).
    """

    __slots__ = ()

    output: str
    inputs: int
    skipped: list[Fields]
    differences: list[Fields]
    """Differences between inputs that were bridged: ``path``, ``kind``, ``expected``, ``found``, ``inputs``."""
    input_len_bytes: int
    output_len_bytes: int
    metadata_len_bytes: int
    logical_len_bytes: int
    datasets: int
    empty_datasets: int
    longest_rows: int
    elapsed_s: float
    resumed_tiles: int
    digest: str
    """Digest of all values; equal values have equal digests in any layout."""

    def _rows(self) -> list[tuple[str, str]]:
        if "missing" in self:
            missing = ", ".join(str(number) for number in self.missing)
            part = f"{self.part.number} of {self.part.count}"
            return [("output", self.output), ("part", part), ("missing parts", missing or "none")]
        return [
            ("output", f"{self.output} ({size(self.output_len_bytes)})"),
            ("inputs", f"{self.inputs:,} ({size(self.input_len_bytes)})"),
            ("left out", f"{len(self.skipped):,}"),
            ("differences", f"{len(self.differences):,}"),
            ("datasets", f"{self.datasets:,} ({self.empty_datasets:,} empty)"),
            ("uncompressed", size(self.logical_len_bytes)),
            ("time", f"{self.elapsed_s:.2f} s"),
            ("peak memory", size(self.memory.peak_rss_bytes or 0)),
        ]


class RechunkReport(_Report):
    """Report of a rechunk of many files, to a folder or in place."""

    __slots__ = ()

    dir: str | None
    """Folder of the outputs; None if they replaced the inputs."""
    files: list[Fields]
    """Files that were written, in the order of the inputs: ``input``, ``output``, ``input_len_bytes``,
    ``output_len_bytes``, ``logical_len_bytes``, ``datasets``, ``elapsed_s``, ``digest``."""
    skipped: list[Fields]
    """Files that were left out: ``path``, ``reason``."""
    done_before: int
    """Number of files that an interrupted run had written."""
    input_len_bytes: int
    output_len_bytes: int
    logical_len_bytes: int
    elapsed_s: float
    peak_rss_bytes: int | None

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("written", f"{len(self.files):,} ({size(self.output_len_bytes)})"),
            ("to", "their inputs" if self.dir is None else self.dir),
            ("inputs", size(self.input_len_bytes)),
            ("done before", f"{self.done_before:,}"),
            ("left out", f"{len(self.skipped):,}"),
            ("uncompressed", size(self.logical_len_bytes)),
            ("time", f"{self.elapsed_s:.2f} s"),
            ("peak memory", size(self.peak_rss_bytes or 0)),
        ]


class SplitReport(_Report):
    """Report of a merge that was written as several files."""

    __slots__ = ()

    dir: str
    files: list[Fields]
    """Files that were written: ``output``, ``variable``, ``range``, ``inputs``, ``output_len_bytes``,
    ``logical_len_bytes``, ``datasets``, ``elapsed_s``, ``digest``."""
    done_before: int
    """Number of files that an interrupted run had written."""
    input_len_bytes: int
    output_len_bytes: int
    logical_len_bytes: int
    elapsed_s: float
    peak_rss_bytes: int | None

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("written", f"{len(self.files):,} ({size(self.output_len_bytes)})"),
            ("to", self.dir),
            ("inputs", size(self.input_len_bytes)),
            ("done before", f"{self.done_before:,}"),
            ("uncompressed", size(self.logical_len_bytes)),
            ("time", f"{self.elapsed_s:.2f} s"),
            ("peak memory", size(self.peak_rss_bytes or 0)),
        ]


class IndexReport(_Report):
    """Report of a written index."""

    __slots__ = ()

    output: str
    columns: int
    """Number of datasets with statistics."""
    values: int
    value_len_bytes: int
    output_len_bytes: int
    virtual_datasets: int
    """Number of virtual datasets, which have no statistics."""
    elapsed_s: float

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("index", self.output),
            ("datasets", f"{self.columns:,}"),
            ("values", f"{self.values:,} ({size(self.value_len_bytes)})"),
            ("size", size(self.output_len_bytes)),
            ("time", f"{self.elapsed_s:.2f} s"),
        ]


class AppendReport(_Report):
    """Report of an append."""

    __slots__ = ()

    output: str
    inputs: int
    skipped: list[Fields]
    differences: list[Fields]
    """Differences from the file that were bridged; the file counts as the first input."""
    input_len_bytes: int
    old_len_bytes: int
    output_len_bytes: int
    grown_datasets: int
    most_rows: int
    elapsed_s: float

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("file", f"{self.output} ({size(self.old_len_bytes)} → {size(self.output_len_bytes)})"),
            ("inputs", f"{self.inputs:,} ({size(self.input_len_bytes)})"),
            ("left out", f"{len(self.skipped):,}"),
            ("datasets that grew", f"{self.grown_datasets:,} (by up to {self.most_rows:,} rows)"),
            ("time", f"{self.elapsed_s:.2f} s"),
        ]


class VerifyReport(_Report):
    """Report of a verification; true as a condition if the file is correct."""

    __slots__ = ()

    datasets: int
    objects: int
    compared_len_bytes: int
    mismatches: list[Fields]
    """Differences found: ``path``, ``what``, ``row``, ``input``."""
    elapsed_s: float

    @property
    def ok(self) -> bool:
        """Whether there are no differences."""
        return not self.mismatches

    def __bool__(self) -> bool:
        return self.ok

    def _rows(self) -> list[tuple[str, str]]:
        rows = [(mismatch.path, mismatch.what) for mismatch in self.mismatches[:20]]
        return [
            ("equal", "yes" if self.ok else f"no, {len(self.mismatches):,} differences"),
            ("datasets", f"{self.datasets:,}"),
            ("compared", size(self.compared_len_bytes)),
            ("time", f"{self.elapsed_s:.2f} s"),
            *rows,
        ]


class Inspection(_Report):
    """How the bytes of a file are used."""

    __slots__ = ()

    file_len_bytes: int
    superblock_version: int
    objects: Fields
    space: Fields
    logical_len_bytes: int
    stored_len_bytes: int
    chunks: Fields
    filters: list[Fields]
    groups: list[Fields]
    datasets: list[Fields]
    faults: list[Fields]
    """Unreadable objects and damaged indexes."""
    advice: list[Fields]
    """Suggestions for improvement."""

    def _rows(self) -> list[tuple[str, str]]:
        space = self.space
        return [
            ("file", size(self.file_len_bytes)),
            ("raw data", size(space.raw_len_bytes)),
            ("metadata", size(space.metadata_len_bytes)),
            ("unused", size(space.unused_len_bytes)),
            ("uncompressed", size(self.logical_len_bytes)),
            ("datasets", f"{self.objects.datasets:,} ({self.objects.empty_datasets:,} empty)"),
            ("chunks", f"{self.chunks.count:,}"),
            ("faults", f"{len(self.faults):,}"),
        ]


def size(len_bytes: int) -> str:
    """Formats a number of bytes for people."""
    value, unit = float(len_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"<{type(value).__name__} of {len(value)}>"
