"""SQL results as text or as a file: tables for a terminal, CSV, lines of JSON, Arrow and Parquet."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
from raddle.errors import UsageError

BINARY = ("arrow", "parquet")
"""Formats that are not text."""
MAX_CELL_CHARS = 60
"""Maximum length of a cell of a table; the rest is left out."""


def write_table(batches: Iterable[Any], kind: Any, output: IO[bytes], max_rows: int) -> tuple[int, bool]:
    """Writes the first rows as a table, in columns of equal width.

    Returns the number of rows written, and whether there are more. Raises UsageError, with the column's name, for values that have no
    text.
    """
    _check_fields(kind)
    columns = [[_printable(name)] for name in kind.names]
    rows, has_more = 0, False
    for batch in batches:
        found = batch.slice(0, max_rows - rows)
        for column, values in zip(columns, found.columns, strict=True):
            column += _cells(values)
        rows += found.num_rows
        if has_more := batch.num_rows > found.num_rows:
            break
    widths = [max(map(len, column)) for column in columns]
    is_number = [pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type) for field in kind]
    for number, row in enumerate(zip(*columns, strict=True)):
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, is_number, strict=True)]
        output.write(("  ".join(cells).rstrip() + "\n").encode())
        if not number:
            output.write(("  ".join("-" * width for width in widths) + "\n").encode())
    return rows, has_more


def write_plan(batches: Iterable[Any], output: IO[bytes]) -> None:
    """Writes the plans that EXPLAIN returns, each under its name."""
    for batch in batches:
        for name, plan in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            lines = [_printable(line, None) for line in plan.rstrip("\n").split("\n")]
            output.write("\n".join([f"{name}:", *(f"  {line}" for line in lines), ""]).encode())


def write(batches: Iterable[Any], kind: Any, output: IO[bytes], form: str, *, is_file: bool) -> int:
    """Writes all rows in a format other than a table, and returns their number.

    Raises UsageError, with the column's name, if the format cannot represent a column.
    """
    _check_columns(kind, form)
    rows = 0
    with _writer(_written_schema(kind, form), output, form, is_file) as write_batch:
        for batch in batches:
            write_batch(batch)
            rows += batch.num_rows
    return rows


def _check_columns(kind: Any, form: str) -> None:
    """Checks that a format can represent all columns."""
    if form not in BINARY:
        _check_fields(kind)
    for name in kind.names if form == "json" else []:
        if kind.names.count(name) > 1:
            error = UsageError(f"{name}: several columns of the result have this name, which a JSON object has once")
            error.hint = 'rename one of them (AS "other"), or write csv or arrow'
            raise error
    for field in _written_schema(kind, form) if form == "parquet" else []:
        import pyarrow.parquet

        try:
            pyarrow.parquet.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError as failure:
            error = UsageError(f"{field.name}: Parquet has no type for {field.type}")
            error.hint = f'convert it (CAST("{field.name}" AS VARCHAR)), leave it out, or write csv, json or arrow'
            raise error from failure


def _check_fields(kind: Any) -> None:
    """Checks that the fields of each struct have different names, as JSON objects need them."""
    for column in kind:
        if (name := _repeated_field(column.type)) is not None:
            error = UsageError(f"{column.name}: several fields of a struct are called {name}, which a JSON object has once")
            error.hint = f"give the fields different names, or write {' or '.join(BINARY)}"
            raise error


def _repeated_field(kind: Any) -> str | None:
    """Returns a name that several fields of a struct have; None if there is none."""
    if not pa.types.is_nested(kind):
        return None
    fields = [kind.field(number) for number in range(kind.num_fields)]
    names = [field.name for field in fields]
    inner = (_repeated_field(field.type) for field in fields)
    return next((name for name in [*(name for name in names if names.count(name) > 1), *inner] if name is not None), None)


@contextlib.contextmanager
def _writer(kind: Any, output: IO[bytes], form: str, is_file: bool) -> Iterator[Any]:
    """Provides a function that writes a batch."""
    if form == "json":
        yield lambda batch: output.write(_json_lines(batch))
        return
    if form == "csv":
        import pyarrow.csv

        writer = pyarrow.csv.CSVWriter(output, kind)
    elif form == "parquet":
        import pyarrow.parquet

        writer = pyarrow.parquet.ParquetWriter(output, kind)
    else:
        writer = pa.ipc.new_file(output, kind) if is_file else pa.ipc.new_stream(output, kind)
    with writer:
        yield lambda batch: writer.write_batch(_converted(batch, kind))


def _written_schema(kind: Any, form: str) -> Any:
    """Returns the schema of the written rows: types that few readers know are replaced, and CSV has strings for lists."""
    return pa.schema([(field.name, _written_type(field.type, form)) for field in kind])


def _written_type(kind: Any, form: str) -> Any:
    """Returns the type of written values. Inner values may be null, because batches and schema of a result differ in this."""
    if form == "csv" and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) and kind != pa.float16() or pa.types.is_boolean(kind)):
        return pa.string()
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _written_type(field.type, form)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_written_type(kind.key_type, form), _written_type(kind.item_type, form))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_written_type(kind.value_type, form), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (pa.list_ if pa.types.is_list(kind) else pa.large_list)(_written_type(kind.value_type, form))
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _converted(batch: Any, kind: Any) -> Any:
    """Returns a batch with the types of a schema."""
    columns = []
    for column, field in zip(batch.columns, kind, strict=True):
        is_text = pa.types.is_string(field.type) and not _is_castable(column.type)
        columns.append(pa.array(_strings(column), pa.string()) if is_text else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=kind)


def _is_castable(kind: Any) -> bool:
    """Returns whether Arrow has a string for each value, in the precision of its type."""
    is_interval = kind == pa.month_day_nano_interval()
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_binary_view(kind) or kind == pa.float16() or is_interval)


def _cells(column: Any) -> list[str]:
    """Returns the strings of a column of a table."""
    strings = column.cast(pa.string()).to_pylist() if _is_castable(column.type) else _strings(column)
    return ["NULL" if text is None else _printable(text) for text in strings]


def _strings(column: Any) -> list[str | None]:
    """Returns values for which Arrow has no text as JSON."""
    values = (_plain(value, column.type) for value in column.to_pylist())
    return [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def _printable(text: str, max_chars: int | None = MAX_CELL_CHARS) -> str:
    """Returns a string without control characters, which terminals obey, and cut where it is too long."""
    printable = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return printable if max_chars is None or len(printable) <= max_chars else printable[: max_chars - 1] + "…"


def _json_lines(batch: Any) -> bytes:
    """Returns a batch as a JSON object per row."""
    columns = [[_plain(value, column.type) for value in column.to_pylist()] for column in batch.columns]
    rows = (dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _plain(value: Any, kind: Any) -> Any:
    """Returns a value as JSON. Numbers that JSON cannot represent are strings, as in ``raddle events dump``."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        precision = {pa.float32(): np.float32, pa.float16(): np.float16}.get(kind)
        return value if precision is None else float(str(precision(value)))
    if isinstance(value, pa.MonthDayNano):
        return _duration(*value)
    if pa.types.is_map(kind):
        # Keys need not be strings, and may be repeated.
        return [{"key": _plain(key, kind.key_type), "value": _plain(item, kind.item_type)} for key, item in value]
    if isinstance(value, list):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item, kind.field(name).type) for name, item in value.items()}
    return {"bytes": value.hex()} if isinstance(value, bytes) else str(value)


def _duration(months: int, days: int, nanoseconds: int) -> str:
    """Returns an interval in the notation of ISO 8601. Each part has its own sign."""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    time = f"T{'-' if nanoseconds < 0 else ''}{seconds}{fraction}S" if nanoseconds else ""
    return "P" + (f"{months}M" if months else "") + (f"{days}D" if days else "") + time if months or days or nanoseconds else "PT0S"
