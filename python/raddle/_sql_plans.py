"""DataFusion plans: which rows of each table a query can need, and which results would depend on the order of rows.

Invariant: what is not understood excludes nothing.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterator
from typing import Any

from datafusion import expr as expressions
from raddle._conditions import Condition
from raddle._supersets import MIRRORED, Columns, both, either

_MAX_LIMIT = (1 << 63) - 1

_COMPARISONS = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "=": "=="}

# Casts that keep the order of all values: the kind or type of the column, and the type that the name of a cast ends with.
_FROM_INTEGER = re.compile(r" AS (?:U?Int\d+|Float32|Float64|Decimal128\(\d+, \d+\))\)$")
_ORDERED_CASTS = {"i": _FROM_INTEGER, "u": _FROM_INTEGER, "f4": re.compile(r" AS Float64\)$")}


_KEEPING_NAMES = (
    expressions.Aggregate, expressions.Filter, expressions.Join, expressions.Limit, expressions.Sort, expressions.SubqueryAlias,
    expressions.TableScan,
)  # fmt: skip
"""Nodes of plans in which columns keep their names."""


def limit_of(number: int) -> int:
    """Returns the limit of the view on a table, by which plans identify the table: larger than any number of rows."""
    return _MAX_LIMIT - number


def conditions_of_scans(plan: Any, tables: list[Columns]) -> list[list[Condition | None]]:
    """Returns a condition for each scan of each table: those of filters directly above the limit of the table."""
    found: list[list[Condition | None]] = [[] for _ in tables]
    try:
        _collect(plan, None, tables, found)
    except Exception:
        # Forms of plans differ between versions of DataFusion.
        return [[] for _ in tables]
    return found


def _collect(plan: Any, predicate: Any, tables: list[Columns], found: list[list[Condition | None]]) -> None:
    """Collects the conditions of a plan below a filter, if there is a predicate."""
    node = _variant(plan)
    number = _table_number(node)
    if number is not None and number < len(tables):
        found[number].append(None if predicate is None else _understood(predicate, tables[number]))
        return
    predicate = node.predicate() if isinstance(node, expressions.Filter) else None
    for below in plan.inputs():
        _collect(below, predicate, tables, found)


def _table_number(node: Any) -> int | None:
    """Returns the number of the table that a limit identifies. An offset in the query changes the limit below it."""
    if not isinstance(node, expressions.Limit):
        return None
    skip, fetch = (None if one is None else one.python_value().as_py() for one in (node.skip(), node.fetch()))
    return _MAX_LIMIT - fetch if not skip and isinstance(fetch, int) else None


def order_dependent_columns(plan: Any, known: set[str]) -> set[str]:
    """Returns the columns whose maximum or minimum by groups is computed; all known ones if it is not certain which.

    DataFusion compares the values of a group one after the other, and a comparison with NaN is false.
    """
    names: set[str] = set()
    grouped = 0
    for below in _plans(plan):
        node = _variant(below)
        if isinstance(node, expressions.Aggregate) and node.group_by_exprs():
            grouped += 1
            compared = set(_compared_by_groups(node))
            if compared and not all(_keeps_names(other, known) for other in _plans(below)):
                return known
            names |= compared
    text = plan.display_indent()
    # Subqueries in expressions are in the text only.
    is_complete = grouped == text.count("Aggregate: groupBy=[[") - text.count("Aggregate: groupBy=[[]]")
    return names if is_complete and names <= known else known


def _plans(plan: Any) -> Iterator[Any]:
    """Yields a plan and those below it, without those of subqueries in expressions."""
    yield plan
    for below in plan.inputs():
        yield from _plans(below)


def _compared_by_groups(node: Any) -> Iterator[str]:
    """Yields the names of the columns of max and min without a filter of NaN; an empty name stands for an expression."""
    for aggregate in node.aggregate_exprs():
        if node.agg_func_name(aggregate) not in ("max", "min"):
            continue
        _, _, condition = aggregate.canonical_name().partition(" FILTER (WHERE ")
        for argument in node.aggregation_arguments(aggregate):
            column = _variant(argument)
            name = column.name() if isinstance(column, expressions.Column) else ""
            has_filter = f"NOT isnan({argument.canonical_name()})" in condition and " OR " not in condition
            # DataFusion divides aggregates with DISTINCT into two, the first of which gives its results these names.
            if not has_filter and not re.fullmatch(r"alias\d+", name):
                yield name


def _keeps_names(plan: Any, names: set[str]) -> bool:
    """Returns whether a column with one of the names passes through a node unchanged."""
    node = _variant(plan)
    if isinstance(node, expressions.Projection):
        aliases = [form for form in map(_variant, node.projections()) if isinstance(form, expressions.Alias)]
        return not any(form.alias() in names for form in aliases)
    return isinstance(node, _KEEPING_NAMES)


def _variant(node: Any) -> Any:
    """Returns the form of an expression or of a node of a plan; None for those that have none in Python."""
    try:
        return node.to_variant()
    except Exception:
        return None


def _understood(expression: Any, columns: Columns) -> Condition | None:
    """Returns a condition that holds wherever an expression does; None if nothing is known about the expression."""
    node = _variant(expression)
    match node:
        case None:
            # A call of a function.
            return _is_nan(expression, columns)
        case expressions.BinaryExpr():
            operator, left, right = node.op(), node.left(), node.right()
            if operator == "AND":
                return both(_understood(left, columns), _understood(right, columns))
            if operator == "OR":
                return either(_understood(left, columns), _understood(right, columns))
            return _compared(left, _COMPARISONS.get(operator), right, columns)
        case expressions.Column():
            return columns.compare(node.name(), "==", True)
        case expressions.Not() if (is_nan := _is_nan(node.expr(), columns)) is not None:
            return ~is_nan
        case expressions.Between() if not node.negated():
            return both(_compared(node.expr(), ">=", node.low(), columns), _compared(node.expr(), "<=", node.high(), columns))
        case expressions.InList() if not node.negated() and node.list():
            name = _column(node.expr(), columns)
            return None if name is None else columns.is_in(name, [_value(value) for value in node.list()])
    return None


def _is_nan(expression: Any, columns: Columns) -> Condition | None:
    """Returns the condition of a call of ``isnan`` on a column."""
    match = re.fullmatch(r"isnan\(\?table\?\.(.*)\)", expression.canonical_name(), re.DOTALL)
    return columns.is_nan(match[1]) if match else None


def _compared(left: Any, comparison: str | None, right: Any, columns: Columns) -> Condition | None:
    """Returns the condition that a column compares with a literal, on either side."""
    if comparison is None:
        return None
    name, value = _column(left, columns), _value(right)
    if name is None:
        name, value, comparison = _column(right, columns), _value(left), MIRRORED[comparison]
    return None if name is None or value is None else columns.compare_ordered(name, comparison, value)


def _column(expression: Any, columns: Columns) -> str | None:
    """Returns the name of a column, even if a cast that keeps the order of its numbers surrounds it."""
    node = _variant(expression)
    if isinstance(node, expressions.Column):
        return str(node.name())
    if isinstance(node, expressions.Cast):
        inner = _variant(node.expr())
        if isinstance(inner, expressions.Column) and (dtype := columns.dtypes.get(inner.name())) is not None:
            cast = _ORDERED_CASTS.get("f4" if dtype.kind == "f" and dtype.itemsize == 4 else dtype.kind)
            return str(inner.name()) if cast is not None and cast.search(expression.canonical_name()) else None
    return None


def _value(expression: Any) -> Any:
    """Returns the number or text of a literal; None for anything else."""
    if not isinstance(_variant(expression), expressions.Literal):
        return None
    value = expression.python_value().as_py()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else None
    return value
