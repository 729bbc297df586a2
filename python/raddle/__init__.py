"""raddle: rewrites many HDF5 files into a few files laid out for reading.

* `raddle.open` reads any HDF5 file with all cores, with the interface of h5py.
* `Dataset.to_dask`, `Group.read_events`, `File.partition`, `raddle.Rows` with `raddle.Batches`, the xarray engine
  ``"raddle"`` and `raddle.references` connect to dask, awkward, MPI, PyTorch, xarray and Zarr.
* `raddle.plan`, `raddle.merge`, `raddle.append`, `raddle.rechunk`, `raddle.split`, `raddle.verify` and
  `raddle.inspect` do the same as the commands of these names and return their reports.
* `raddle.scan` finds the rows of a table that satisfy a condition; `raddle.index` writes statistics that make it fast.
* `raddle.sql` runs SQL queries on such tables.
* `raddle.idx` writes and reads arrays in IDX, which can be read at any resolution.
* `raddle.doctor` reports what the machine and the installation have and lack.
* `raddle.gpu` reads columns to a GPU and decodes them there.
* `raddle.events` reads HEP events of ROOT, packed data streams and HDF5, and converts them.

Errors are described in `raddle.errors`.
"""

from __future__ import annotations

import os as _os
import sys as _sys
from typing import TYPE_CHECKING

from raddle import _core
from raddle._core import __version__

if TYPE_CHECKING:
    from raddle import errors, events, gpu, idx
    from raddle._batches import Batches, Rows
    from raddle._conditions import Column, Condition, col
    from raddle._dataset import Dataset
    from raddle._doctor import doctor
    from raddle._file import File, open
    from raddle._file_scan import FileScan, scan
    from raddle._group import Group, read_columns
    from raddle._merge import merge, plan
    from raddle._object import AttributeManager, Datatype, Unreadable
    from raddle._partition import Share
    from raddle._polars import scan_polars
    from raddle._reports import (
        AppendReport,
        DoctorReport,
        IndexReport,
        Inspection,
        MergeReport,
        Plan,
        RechunkReport,
        SplitReport,
        VerifyReport,
    )
    from raddle._runs import append, index, inspect, rechunk, references, verify
    from raddle._scan import Scan
    from raddle._select import select
    from raddle._selection import MultiBlockSlice
    from raddle._split import split
    from raddle._sql import sql
    from raddle._values import Empty, ExternalLink, HardLink, SoftLink
    from raddle.errors import RaddleError

__all__ = [
    "AppendReport",
    "AttributeManager",
    "Batches",
    "Column",
    "Condition",
    "Dataset",
    "Datatype",
    "DoctorReport",
    "Empty",
    "ExternalLink",
    "File",
    "FileScan",
    "Group",
    "HardLink",
    "IndexReport",
    "Inspection",
    "MergeReport",
    "MultiBlockSlice",
    "Plan",
    "RaddleError",
    "RechunkReport",
    "Rows",
    "Scan",
    "Share",
    "SoftLink",
    "SplitReport",
    "Unreadable",
    "VerifyReport",
    "__version__",
    "append",
    "col",
    "doctor",
    "errors",
    "events",
    "gpu",
    "idx",
    "index",
    "inspect",
    "merge",
    "open",
    "plan",
    "read_columns",
    "rechunk",
    "references",
    "scan",
    "scan_polars",
    "select",
    "split",
    "sql",
    "verify",
]

# Module of each name; imported lazily, so that the `raddle` command starts without numpy.
_PLACES = {
    **dict.fromkeys(("Batches", "Rows"), "_batches"),
    "Dataset": "_dataset",
    "MultiBlockSlice": "_selection",
    "Share": "_partition",
    **dict.fromkeys(("File", "open"), "_file"),
    **dict.fromkeys(("Group", "read_columns"), "_group"),
    **dict.fromkeys(("AttributeManager", "Datatype", "Unreadable"), "_object"),
    **dict.fromkeys(("Empty", "ExternalLink", "HardLink", "SoftLink"), "_values"),
    **dict.fromkeys(("AppendReport", "IndexReport", "Inspection", "MergeReport", "Plan"), "_reports"),
    **dict.fromkeys(("RechunkReport", "SplitReport", "VerifyReport"), "_reports"),
    **dict.fromkeys(("merge", "plan"), "_merge"),
    **dict.fromkeys(("append", "index", "inspect", "rechunk", "references", "verify"), "_runs"),
    "DoctorReport": "_reports",
    "doctor": "_doctor",
    "scan_polars": "_polars",
    "select": "_select",
    "split": "_split",
    "sql": "_sql",
    **dict.fromkeys(("Column", "Condition", "col"), "_conditions"),
    **dict.fromkeys(("FileScan", "scan"), "_file_scan"),
    "Scan": "_scan",
    "RaddleError": "errors",
}


if not TYPE_CHECKING:
    # Type checkers would accept any name as one of the module.
    def __getattr__(name):
        from importlib import import_module

        if name in ("errors", "events", "gpu", "idx"):
            return import_module(f"raddle.{name}")
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module 'raddle' has no attribute {name!r}")
        found = getattr(import_module(f"raddle.{place}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def _declare_program() -> None:
    """Registers how the interpreter runs the command in a separate process."""
    child = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "_child.py")
    core = _os.path.abspath(_core.__file__)
    if _sys.executable:
        _core.declare_program(_sys.executable, ["-I", "-S", child, core])


_declare_program()
