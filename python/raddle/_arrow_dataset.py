"""Scans as pyarrow datasets, to which DuckDB and others pass the columns and conditions of a query.

A condition arrives as a pyarrow expression. Its serialised form, which is also that of pickling, is a record batch of the
literals; the metadata of its schema lists the steps of the expression. The comparisons among these steps become a condition of
the scan, which excludes no row that Arrow would keep. Arrow then evaluates the whole expression on what was read.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from raddle._arrow import record_batches, schema
from raddle._conditions import Condition
from raddle._supersets import MIRRORED, Columns, both, either
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._scan import Scan

_COMPARISONS = {"greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<=", "equal": "=="}

# Methods of pyarrow's datasets that need a dataset of its C++ library. Those that are not listed call `scanner`.
REFUSED = ("_get_fragments", "filter", "get_fragments", "join", "join_asof", "replace_schema", "sort_by")


def dataset(scan: Scan) -> Any:
    """Returns a scan as a pyarrow dataset."""
    return _dataset_class()(scan)


@cache
def _dataset_class() -> type:
    """Returns the class of datasets. pyarrow is imported when it is needed."""
    import pyarrow.dataset  # type: ignore[import-untyped, unused-ignore]

    def refuse(*_: Any, **__: Any) -> Any:
        raise UsageError("a scan has no fragments: use filter and select of raddle.scan, or scanner, to_table and to_batches")

    class ScanDataset(pyarrow.dataset.Dataset):  # type: ignore[misc, unused-ignore]
        """A scan as a pyarrow dataset. Each scanner reads the columns and blocks of rows that it needs."""

        def __init__(self, scan: Scan) -> None:
            self._scan, self._schema = scan, schema(scan)

        @property
        def schema(self) -> Any:
            """Schema of the columns."""
            return self._schema

        @property
        def partition_expression(self) -> Any:
            """Expression that is true for all rows."""
            return pyarrow.compute.scalar(True)

        def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
            """Returns a scanner that reads some columns of the rows that satisfy an expression."""
            found = _narrowed(self._scan, self._schema.names, columns, filter)
            return _Scanner(found, {"columns": columns, "filter": filter, **options})

        def __reduce__(self) -> Any:
            refuse()

    for name in REFUSED:
        setattr(ScanDataset, name, refuse)
    return ScanDataset


class _Scanner:
    """A scan whose rows Arrow filters. Replaces pyarrow's own scanner, which would read all batches ahead."""

    def __init__(self, scan: Scan, options: dict[str, Any]) -> None:
        self._scan, self._options = scan, options
        self.dataset_schema: Any = schema(scan)
        self.projected_schema: Any = self._scanner([]).projected_schema

    def _scanner(self, batches: list[Any]) -> Any:
        import pyarrow.dataset

        return pyarrow.dataset.Scanner.from_batches(batches, schema=self.dataset_schema, **self._options)

    def to_batches(self) -> Iterator[Any]:
        """Yields the rows as record batches."""
        for batch in record_batches(self._scan, self.dataset_schema):
            yield from self._scanner([batch]).to_table().to_batches()

    def to_reader(self) -> Any:
        """Returns the rows as a reader of record batches."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> Any:
        """Returns the rows as a table."""
        return self.to_reader().read_all()

    def count_rows(self) -> int:
        """Returns the number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

    def head(self, num_rows: int) -> Any:
        """Returns the first rows as a table."""
        import pyarrow

        found, left = [], num_rows
        for batch in self.to_batches() if left > 0 else ():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if left <= 0:
                break
        return pyarrow.Table.from_batches(found, self.projected_schema)

    def take(self, indices: Any) -> Any:
        """Returns some rows, by their numbers, as a table."""
        return self.to_table().take(indices)


def _narrowed(scan: Scan, names: list[str], columns: Any, filter: Any) -> Scan:
    """Returns the scan of the columns and, at least, the rows that a scanner needs."""
    if filter is not None:
        try:
            condition = _understood(_parsed(filter), Columns(scan))
        except Exception:
            # The serialised form is not documented.
            condition = None
        if condition is not None:
            scan = scan.filter(condition)
    try:
        projected = columns.values() if isinstance(columns, Mapping) else []
        needed = {field for expression in [*projected, *([] if filter is None else [filter])] for field in _fields(expression)}
    except Exception:
        return scan
    needed.update(names if columns is None else () if isinstance(columns, Mapping) else columns)
    # A batch without columns would have no number of rows.
    return scan.select(*([name for name in names if name in needed] or names[:1]))


@dataclass
class _Call:
    """Call of an Arrow function."""

    function: str
    arguments: list[Any]
    options: Any = None


@dataclass
class _Field:
    """Reference to a column."""

    name: str


@dataclass
class _Literal:
    """A Python value."""

    value: Any


def _serialized(expression: Any) -> tuple[list[tuple[str, str]], Any]:
    """Returns the steps of an expression, and the record batch of its literals."""
    import pyarrow

    batch = pyarrow.ipc.open_file(expression.__reduce__()[1][0]).get_batch(0)
    return _metadata(batch.schema), batch


def _fields(expression: Any) -> set[str]:
    return {value for step, value in _serialized(expression)[0] if step == "field_ref"}


def _parsed(expression: Any) -> Any:
    """Returns an expression as a tree of calls, fields and literals."""
    listed, literals = _serialized(expression)
    steps = iter(listed)

    def tree(step: str, value: str) -> Any:
        if step == "literal":
            return _Literal(literals.column(int(value))[0].as_py())
        if step == "field_ref":
            return _Field(value)
        if step == "nested_field_ref":
            return _Call("", [tree(*next(steps)) for _ in range(int(value))])
        if step != "call":
            raise ValueError(step)
        call = _Call(value, [])
        while (found := next(steps))[0] != "end":
            if found[0] == "options":
                call.options = literals.column(int(found[1]))[0].as_py()
            else:
                call.arguments.append(tree(*found))
        return call

    return tree(*next(steps))


def _understood(node: Any, columns: Columns) -> Condition | None:
    """Returns a condition that holds wherever an expression does; None if nothing is known about the expression."""
    match node:
        case _Call("and_kleene" | "and", [one, other]):
            return both(_understood(one, columns), _understood(other, columns))
        case _Call("or_kleene" | "or", [one, other]):
            return either(_understood(one, columns), _understood(other, columns))
        case _Call(function, [_Field(name), _Literal(value)]) if function in _COMPARISONS:
            return columns.compare(name, _COMPARISONS[function], value)
        case _Call(function, [_Literal(value), _Field(name)]) if function in _COMPARISONS:
            return columns.compare(name, MIRRORED[_COMPARISONS[function]], value)
        case _Call("not_equal", [_Field(name), _Field(other)]) if name == other:
            return columns.is_nan(name)
        case _Call("is_in", [_Field(name)], {"value_set": [_, *_] as values}):
            return columns.is_in(name, values)
        case _Call("if_else", [_, node, _Literal(None)]):
            return _understood(node, columns)
    return None


class _ArrowSchema(ctypes.Structure):
    """First members of a schema in Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(kind: Any) -> list[tuple[str, str]]:
    """Returns the keys and values of a schema's metadata. Keys may be repeated, which the pyarrow dict would hide."""
    capsule = kind.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = ctypes.cast(pointer_of(capsule, b"arrow_schema"), ctypes.POINTER(_ArrowSchema)).contents.metadata

    def taken(len_bytes: int) -> bytes:
        nonlocal address
        address += len_bytes
        return ctypes.string_at(address - len_bytes, len_bytes)

    def number() -> int:
        return int.from_bytes(taken(4), sys.byteorder)

    return [(taken(number()).decode(), taken(number()).decode()) for _ in range(number())] if address else []
