"""Reports of runs on event files."""

from __future__ import annotations

from raddle._reports import Fields, _Report, size


class EventsReport(_Report):
    """Report of writing events."""

    __slots__ = ()

    output: str
    layout: str
    events: int
    products: int
    len_bytes: int
    left_out: list[Fields]
    """Products that could not be read (``skip_bad=True``) or not all inputs have (``differing="leave-out"``): ``product``, ``reason``."""
    elapsed_s: float

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("output", f"{self.output} ({size(self.len_bytes)})"),
            ("layout", self.layout),
            ("events", f"{self.events:,}"),
            ("products", f"{self.products:,}"),
            ("left out", f"{len(self.left_out):,}"),
            ("time", f"{self.elapsed_s:.2f} s"),
        ]


class EventsInspection(_Report):
    """Description of an event file."""

    __slots__ = ()

    file: str
    format: str
    """Format and layout, as text."""
    events: int
    mean_len_bytes: int
    """Mean length of an event in memory."""
    products: list[Fields]
    """Products: ``name``, ``class``, ``type``, ``len_bytes`` (with ``sizes=True``), ``as_bytes`` (why it is not decoded)."""
    unread: list[str]
    """Branches and fields that are not products, with the reason."""

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("file", self.file),
            ("format", self.format),
            ("events", f"{self.events:,}"),
            ("products", f"{len(self.products):,}"),
            ("an event", f"{size(self.mean_len_bytes)} in memory"),
        ]
