"""References written in kerchunk's parquet layout: a folder that readers load piece by piece.

``.zmetadata`` holds all strings, and ``ARRAY/refs.N.parq`` the locations of a fixed number of an array's chunks, in
row-major order of their indices. Readers find rows by number, so every file has a row for each of its chunks; the rows of
missing chunks have no values.
"""

from __future__ import annotations

import base64
import json
import math
import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from raddle.errors import UsageError

_MAX_ROWS = 10_000
"""Maximum number of chunks per file, the default of fsspec."""


def write_parquet(references: dict[str, Any], folder: str) -> None:
    """Writes references, as returned by `raddle.references`, to a folder that must not exist."""
    if find_spec("fastparquet") is None:
        raise UsageError("references as parquet need fastparquet: pip install raddle[parquet]")
    os.mkdir(folder)
    metadata: dict[str, Any] = {}
    places: dict[str, dict[str, Any]] = {}
    for key, value in references["refs"].items():
        array, _, last = key.rpartition("/")
        if last.startswith(".z"):
            metadata[key] = json.loads(value)
        else:
            places.setdefault(array, {})[last] = value
    grids = {array: _grid(metadata[f"{array}/.zarray"]) for array in places}
    rows = min(_MAX_ROWS, max(map(math.prod, grids.values()), default=1))
    for array, chunks in places.items():
        os.makedirs(os.path.join(folder, array), exist_ok=True)
        for number, values in _in_order(chunks, grids[array], rows).items():
            _write_rows(values, rows, os.path.join(folder, array, f"refs.{number}.parq"))
    # Written last, because it makes the folder a store.
    with open(os.path.join(folder, ".zmetadata"), "w", encoding="utf-8") as written:
        json.dump({"metadata": metadata, "record_size": rows}, written)


def _grid(described: dict[str, Any]) -> list[int]:
    """Number of chunks along each axis; an empty list for an array without axes, whose only chunk is 0."""
    shape, chunks = described["shape"], described["chunks"]
    return [math.ceil(dim / chunk) for dim, chunk in zip(shape, chunks, strict=True)] or [1]


def _in_order(chunks: dict[str, Any], grid: list[int], rows: int) -> dict[int, dict[int, Any]]:
    """Values of chunks by file number and row."""
    files: dict[int, dict[int, Any]] = {}
    for key, value in chunks.items():
        number = 0
        for index, count in zip(key.split("."), grid, strict=True):
            number = number * count + int(index)
        files.setdefault(number // rows, {})[number % rows] = value
    return files


def _write_rows(values: dict[int, Any], rows: int, path: str) -> None:
    import fastparquet
    import pandas

    urls, raws = _nothing(rows), _nothing(rows)
    offsets, sizes = np.zeros(rows, "i8"), np.zeros(rows, "i8")
    for row, value in values.items():
        if isinstance(value, str):
            raws[row] = base64.b64decode(value.removeprefix("base64:"))
        else:
            urls[row], offsets[row], sizes[row] = value
    columns: dict[str, Any] = {"path": urls, "offset": offsets, "size": sizes}
    if any(raw is not None for raw in raws):
        columns["raw"] = raws
    encoding = {name: kind for name, kind in (("path", "utf8"), ("raw", "bytes")) if name in columns}
    frame = pandas.DataFrame(columns, copy=False)
    if all(url is not None for url in urls):
        # Missing values must be None for readers, which a categorical column does not return.
        frame["path"] = frame["path"].astype("category")
    fastparquet.write(
        path, frame, compression="ZSTD", stats=False, object_encoding=encoding, has_nulls=list(encoding), write_index=False
    )


def _nothing(rows: int) -> npt.NDArray[np.object_]:
    return np.full(rows, None, dtype=object)
