"""Histograms of the columns of a scan, filled in batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from raddle import _core
from raddle._scan_files import table_row_shape
from raddle._tables import as_str, flat
from raddle.errors import UsageError

if TYPE_CHECKING:
    import boost_histogram
    from raddle._dataset import Dataset
    from raddle._scan import Scan


def filled(scan: Scan, axes: Mapping[str, Any], weight: str | None, storage: Any) -> boost_histogram.Histogram[Any]:
    """Returns the histogram of a scan, as `Scan.hist` describes it."""
    try:
        import boost_histogram as bh
    except ImportError as error:
        missing = UsageError("histograms need the package boost-histogram")
        missing.hint = "pip install boost-histogram, or raddle[hist]"
        raise missing from error
    if not isinstance(axes, Mapping) or not axes:
        raise UsageError('name the column of each axis, as in hist({"calE": boost_histogram.axis.Regular(50, 0, 5)})')
    columns = scan.select(*axes, *([] if weight is None or weight in axes else [weight]))
    for name, column in columns._columns_of(0).items():
        _check(name, column, name in axes and isinstance(axes[name], bh.axis.StrCategory), name in axes)
    if weight is not None and isinstance(axes.get(weight), bh.axis.StrCategory):
        raise UsageError(f"{weight}: strings cannot be weights")
    if storage is None:
        storage = bh.storage.Int64() if weight is None else bh.storage.Weight()
    histogram = bh.Histogram(*axes.values(), storage=storage)
    # As fast as a histogram per thread, and axes of categories may grow. boost-histogram cannot merge those of ranges that grow.
    can_merge = not any(axis.traits.growth and axis.traits.continuous for axis in histogram.axes)
    threads = (scan._source._files.threads or _core.default_threads()) if can_merge else 1
    for arrays in columns.batches():
        values = [_values(arrays[name]) for name in axes]
        histogram.fill(*values, weight=None if weight is None else _values(arrays[weight]), threads=threads)
        # Not held while the next batch is read.
        del arrays, values
    return histogram


def _check(name: str, column: Dataset, is_text: bool, has_axis: bool) -> None:
    """Checks that a column has one number per row, or one string for an axis of strings."""
    metadata: Mapping[str, Any] = column.dtype.metadata or {}
    has_strings = column.dtype.kind == "S" or metadata.get("vlen") in (str, bytes)
    shape = table_row_shape(column)
    if shape or column.dtype.kind not in ("SO" if has_strings else "biuf"):
        raise UsageError(f"{name} does not have one number or text per row: {column.dtype} of shape {shape}")
    if has_strings and not has_axis:
        raise UsageError(f"{name} has strings: a weight is a number")
    if has_strings and not is_text:
        raise UsageError(f'{name} has strings: give it an axis of strings, as in {{"{name}": boost_histogram.axis.StrCategory([], growth=True)}}')
    if is_text and not has_strings:
        raise UsageError(f"{name} has {column.dtype}, and its axis has strings: give it an axis of numbers")


def _values(values: np.ndarray[Any, Any]) -> Any:
    """Returns the values of a column in the form that boost-histogram accepts."""
    values = flat(values)
    if values.dtype.kind in "SO":
        return as_str(values).tolist()
    return values.astype(values.dtype.newbyteorder("="), copy=False)
