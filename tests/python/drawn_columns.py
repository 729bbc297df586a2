"""Columns of drawn values, and conditions on them as numpy evaluates them."""

import operator

import h5py
import numpy as np
from hypothesis import strategies as st
from raddle import col

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
KINDS = ["<i1", "<u2", ">i4", "<i8", "<u8", ">u8", "<f4", ">f8", "bool"]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1, 2.5, -3.0, 1e300]
INTEGERS = [0, 1, -1, 5, 127, 255, -128, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1]


def drawn_column(data, kind, rows):
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    if kind == "bool":
        return random.random(rows) > 0.5
    kind = np.dtype(kind)
    if kind.kind == "f":
        pool = np.array([value for value in FLOATS if kind.itemsize == 8 or abs(value) < 1e38 or not np.isfinite(value)])
        values = np.where(random.random(rows) < 0.3, random.choice(pool, rows), random.normal(0, 3, rows))
    else:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        pool = np.array([value for value in INTEGERS if low <= value <= high], dtype=kind.newbyteorder("="))
        values = np.where(random.random(rows) < 0.2, random.choice(pool, rows), random.integers(0, 9, rows).astype(pool.dtype))
    if data.draw(st.booleans()):
        values = np.sort(values)
    return values.astype(kind)


def exactly(compare, values, value):
    """Compares as the documentation says: integers exactly, floats in the precision of the column."""
    if values.dtype.kind == "f":
        return compare(values, values.dtype.type(value))
    if isinstance(value, float) and np.isnan(value):
        return np.full(len(values), compare is operator.ne)
    return np.array([compare(int(one), value) for one in values], dtype=bool)


def drawn_condition(data, columns, depth=2):
    """Returns a condition of raddle with a function that evaluates it with numpy."""
    kind = data.draw(st.sampled_from(["compare"] * 3 + ["and", "or", "not"] if depth else ["compare"]))
    if kind == "compare":
        name = data.draw(st.sampled_from(sorted(columns)))
        word = data.draw(st.sampled_from(sorted(COMPARISONS)))
        value = data.draw(st.one_of(st.sampled_from(INTEGERS), st.sampled_from(FLOATS), st.integers(-2, 9)))
        return COMPARISONS[word](col(name), value), lambda: exactly(COMPARISONS[word], columns[name], value)
    first, holds = drawn_condition(data, columns, depth - 1)
    if kind == "not":
        return ~first, lambda: ~holds()
    second, also = drawn_condition(data, columns, depth - 1)
    return (first & second, lambda: holds() & also()) if kind == "and" else (first | second, lambda: holds() | also())


def write(path, columns, data=None):
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            options = {}
            if data is not None and len(values) and data.draw(st.booleans()):
                options = {"chunks": (min(len(values), data.draw(st.integers(1, 50))), *values.shape[1:]), "compression": "gzip"}
            file.create_dataset(f"rec/{name}", data=values, **options)
