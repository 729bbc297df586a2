"""Open event files: a mapping from names of products to awkward arrays."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from raddle import _core
from raddle._call import as_paths
from raddle._event_options import ID, Differing
from raddle._keywords import Path, options_json
from raddle._reports import Fields
from raddle.errors import ObjectNotFoundError, UsageError


class Product(NamedTuple):
    """A product: a value that every event has."""

    name: str
    type: str
    """Type in the notation of awkward-array: ``var * float32``; ``bytes[root]`` for objects that are not decoded."""
    class_name: str
    """Name of its C++ class in the file; empty if unknown."""


class Basket(NamedTuple):
    """A decompressed basket: the values of a branch for consecutive events, as stored together in a file."""

    start: int
    """First event."""
    stop: int
    """End of the events (exclusive)."""
    data: npt.NDArray[np.uint8]
    """Bytes of all its events, contiguous; numbers are big-endian. Shape ``(bytes,)``."""
    offsets: npt.NDArray[np.int32] | None
    """Offset in `data` of each event's bytes, and the end of the last, shape ``(stop - start + 1,)``; None if all
    events have the same length."""


class Events(Mapping[str, Any]):
    """Events of one or several files: a mapping from names of products to awkward arrays.

    Values are read on demand. `arrays` reads several products in one parallel pass. In another process (pickled, as by
    dask and multiprocessing) the files are reopened.
    """

    def __init__(
        self,
        paths: Sequence[str],
        tree: str | None,
        raw: bool,
        whole: bool,
        differing: Differing,
        jobs: int | None,
        memory: int | str | None,
    ) -> None:
        options = {"tree": tree, "raw": raw, "whole": whole, "differing": differing}
        source = _core.Events(paths, options_json(options))
        self._source: _core.Events | None = source
        self._running = options_json({"jobs": jobs, "memory": memory})
        self._arguments = (tree, raw, whole, differing, jobs, memory)
        self._paths = source.paths()
        found = json.loads(source.describe())
        self._len: int = found["events"]
        self._form: dict[str, Any] = json.loads(found["form"])
        self._buffers: list[list[str]] = found["buffers"]
        self._products = [
            Product(product["name"], of_type, product["class"])
            for product, of_type in zip(found["schema"]["products"], found["types"], strict=True)
        ]
        self._numbers = {product.name: number for number, product in enumerate(self._products)}
        self._left_out = [Fields(left) for left in found["left_out"]]

    def close(self) -> None:
        """Closes the files. Arrays already read remain valid; nothing more can be read."""
        self._source = None

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        self._open_source()
        return (Events, (self._paths, *self._arguments))

    @property
    def paths(self) -> list[str]:
        """Absolute paths of the files, in the order of their events."""
        return list(self._paths)

    @property
    def products(self) -> list[Product]:
        """Products in the order of the file."""
        return list(self._products)

    @property
    def left_out(self) -> list[Fields]:
        """Products left out because they do not have the same form in all files (``differing="leave-out"``):
        ``product``, ``reason``."""
        return list(self._left_out)

    @property
    def num_entries(self) -> int:
        """Number of events."""
        return self._len

    def __len__(self) -> int:
        """Number of products; the number of events is `num_entries`."""
        return len(self._products)

    def __iter__(self) -> Iterator[str]:
        return (product.name for product in self._products)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __getitem__(self, name: str) -> Any:
        """A product of all events, as an awkward array."""
        return self.arrays([name])[name]

    def arrays(
        self,
        names: str | Iterable[str] | None = None,
        start: int | None = None,
        stop: int | None = None,
        library: Literal["ak", "np"] = "ak",
    ) -> Any:
        """Reads products of events in one parallel pass.

        Parameters
        ----------
        names
            Names of products, or globs such as ``"Muon_*"``. Default: all.
        start, stop
            The first event and the end (exclusive); negative numbers count from the last event. Default: all.
        library
            ``"ak"`` for an awkward array of records, ``"np"`` for a dict of numpy arrays.

        Returns
        -------
        awkward.Array or dict
            A field or an item per product. Shape ``(stop - start, ...)``.

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If a product does not exist (also a ``KeyError``).
        raddle.errors.InputError
            If the file is damaged; the message names file, tree, branch and entries.
        raddle.errors.UsageError
            If numpy arrays are requested for jagged products.
        """
        import awkward as ak

        if library not in ("ak", "np"):
            raise UsageError(f"library={library!r} must be 'ak' or 'np'")
        numbers = self._chosen(names)
        first, end = self._range(start, stop)
        _, columns = self._open_source().read(numbers, (first, end), self._running)
        buffers: dict[str, Any] = {}
        for number, column in zip(numbers, columns, strict=True):
            buffers |= zip(self._buffers[number], column, strict=True)
        fields = [self._products[number].name for number in numbers]
        form = {"class": "RecordArray", "fields": fields, "contents": [self._form["contents"][number] for number in numbers]}
        array = ak.from_buffers(form, end - first, buffers)
        if library == "np":
            return {name: self._as_numpy(name, array[name]) for name in fields}
        return array

    def iterate(
        self,
        names: str | Iterable[str] | None = None,
        step: int | None = None,
        start: int | None = None,
        stop: int | None = None,
        library: Literal["ak", "np"] = "ak",
    ) -> Iterator[Any]:
        """Reads events range by range, in order.

        Parameters
        ----------
        names, start, stop, library
            As in `arrays`.
        step
            Number of events per range. Default: 100,000.

        Yields
        ------
        awkward.Array or dict
            The results of `arrays`.
        """
        each = 100_000 if step is None else step
        if each < 1:
            raise UsageError(f"step={step} must be at least one event")
        first, end = self._range(start, stop)
        for at in range(first, end, each):
            yield self.arrays(names, at, min(at + each, end), library)

    def baskets(
        self, names: str | Iterable[str] | None = None, start: int | None = None, stop: int | None = None
    ) -> dict[str, list[Basket]]:
        """Reads and decompresses baskets of branches in one parallel pass, for callers with their own decoders.

        Parameters
        ----------
        names, start, stop
            As in `arrays`; baskets are returned whole, from the one with the first event to the one with the last.

        Returns
        -------
        dict
            The baskets of each product, in the order of events.

        Raises
        ------
        raddle.errors.ObjectNotFoundError
            If a product does not exist (also a ``KeyError``).
        raddle.errors.InputError
            If this is not a tree (TTree) of a ROOT file, or it is damaged.

        Examples
        --------
        >>> for basket in events.baskets("x")["x"]:  # doctest: +SKIP
        ...     values = basket.data.view(">f4")
        """
        numbers = self._chosen(names)
        runs_of_products = self._open_source().baskets(numbers, self._range(start, stop), self._running)
        return {
            self._products[number].name: [basket for run in runs for basket in _baskets_of(*run)]
            for number, runs in zip(numbers, runs_of_products, strict=True)
        }

    def ids(self, start: int | None = None, stop: int | None = None) -> npt.NDArray[Any] | None:
        """Run, subrun and event of each event, or None if the file does not record them.

        Parameters
        ----------
        start
            First event. Default: the first of the file.
        stop
            Number after the last event. Default: all events of the file.

        Returns
        -------
        numpy.ndarray
            Shape ``(stop - start,)``, of type `raddle.events.ID`.
        """
        first, end = self._range(start, stop)
        # An empty range does not show whether there are ids.
        some = (first, end) if first < end else (0, min(1, self._len))
        ids, _ = self._open_source().read([], some, self._running)
        if ids is None:
            return None
        if first == end:
            return np.empty(0, ID)
        rows = np.empty(end - first, ID)
        for name, column in zip(("run", "lumi", "event"), ids, strict=True):
            rows[name] = column
        return rows

    def __repr__(self) -> str:
        where = self._paths[0] if len(self._paths) == 1 else f"{len(self._paths)} files"
        return f"<raddle.events.Events of {where}: {self._len:,} events of {len(self._products):,} products>"

    def _open_source(self) -> _core.Events:
        if self._source is None:
            raise UsageError(f"{self!r} is closed")
        return self._source

    def _chosen(self, names: str | Iterable[str] | None) -> list[int]:
        if names is None:
            return list(range(len(self._products)))
        chosen: dict[int, None] = {}
        for name in [names] if isinstance(names, str) else names:
            if name in self._numbers:
                found = [self._numbers[name]]
            else:
                found = [number for known, number in self._numbers.items() if fnmatchcase(known, name)]
            if not found:
                raise ObjectNotFoundError(f"{self!r} has no product {name!r}")
            chosen.update(dict.fromkeys(found))
        return list(chosen)

    def _range(self, start: int | None, stop: int | None) -> tuple[int, int]:
        first, end, _ = slice(start, stop).indices(self._len)
        return first, max(first, end)

    @staticmethod
    def _as_numpy(name: str, array: Any) -> npt.NDArray[Any]:
        import awkward as ak

        try:
            converted: npt.NDArray[Any] = ak.to_numpy(array)
        except ValueError as error:
            raise UsageError(f"product {name!r} ({array.type.content}) cannot be a numpy array; leave out library='np'") from error
        return converted


def _baskets_of(
    places: list[_core._BasketPlace], data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.uint32]
) -> Iterator[Basket]:
    signed = offsets.view(np.int32)
    for entries, of_bytes, of_offsets in places:
        yield Basket(*entries, data[slice(*of_bytes)], None if of_offsets is None else signed[slice(*of_offsets)])


def open(
    paths: Path | Iterable[Path],
    *,
    tree: str | None = None,
    raw: bool = False,
    whole: bool = False,
    differing: Differing = "refuse",
    jobs: int | None = None,
    memory: int | str | None = None,
) -> Events:
    """Opens one or several event files of any format.

    Parameters
    ----------
    paths
        ROOT files, packed data streams, HDF5 event files: one or several paths, in this order. Globs
        (``"run*.root"``) stand for the matching files, folders for the HDF5 files in them, in natural order.
        ``"run1.root:Events"`` also names the tree.
    tree
        Tree or RNTuple of ROOT files; ``"T;1"`` is its first cycle. Default: ``Events``, or the only one.
    raw
        Return products as stored bytes instead of columns.
    whole
        Objects of ROOT trees as the bytes of whole objects, even if they are split into branches.
    differing
        Treatment of products that do not have the same form in all files: ``"refuse"`` (an error names the first),
        ``"leave-out"`` (with a warning; see `Events.left_out`), or ``"fill"`` (events of files without them get zeros
        and empty lists).
    jobs
        Number of threads. Default: the cores available to this process.
    memory
        Memory for reading in addition to the arrays, in bytes, or a string such as ``"512MiB"``. Default: 1 GiB.

    Returns
    -------
    Events
        A mapping from names of products to arrays.

    Raises
    ------
    raddle.errors.InputError
        If a file does not exist, has an unknown format, is damaged, or lacks a product of the first file and
        ``differing`` does not allow it.
    raddle.errors.UsageError
        If no file is named, or trees with several names.

    Examples
    --------
    >>> with raddle.events.open("run1.root") as events:  # doctest: +SKIP
    ...     muons = events.arrays("Muon_*")
    """
    files, of_all = _without_trees(as_paths(paths), tree)
    if not files:
        raise UsageError("no files: name files, folders or globs")
    events = Events(files, of_all, raw, whole, differing, jobs, memory)
    if names := [left.product for left in events.left_out]:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        what = f"{', '.join(names[:_MAX_NAMED])}{more}"
        warnings.warn(f"{what} left out: not every file has them in the same form; see left_out", stacklevel=2)
    return events


_MAX_NAMED = 12
"""Maximum number of products that a warning names."""


def _without_trees(paths: list[str], tree: str | None) -> tuple[list[str], str | None]:
    """Paths without the trees that some of them name in uproot's notation, and the tree of all."""
    files, trees = [], {tree} - {None}
    for path in paths:
        file, _, name = path.rpartition(":")
        is_pattern = any(letter in os.path.basename(file) for letter in "*?[{")
        if name and (os.path.isfile(file) or is_pattern) and not os.path.lexists(path):
            trees.add(name)
            path = file
        files.append(path)
    if len(trees) > 1:
        raise UsageError(
            f"trees have different names: {', '.join(sorted(str(name) for name in trees))}; open them separately"
        )
    return files, next(iter(trees), None)
