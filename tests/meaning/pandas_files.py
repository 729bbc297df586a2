"""Writes frames of pandas to HDFStore."""

import numpy as np
import pandas as pd

COLUMNS = {
    "whole": lambda random, rows: random.integers(0, 99, rows),
    "small": lambda random, rows: random.integers(0, 99, rows).astype("i2"),
    "real": lambda random, rows: random.random(rows),
    "other": lambda random, rows: random.random(rows),
    "gap": lambda random, rows: np.where(random.random(rows) < 0.4, np.nan, 1.5).astype("f4"),
    "flag": lambda random, rows: random.random(rows) < 0.5,
    "text": lambda random, rows: random.choice(["a", "bcd", "ef"], rows).astype(object),
    "grade": lambda random, rows: pd.Categorical(random.choice(["x", "y"], rows), categories=["x", "y"]),
    "when": lambda random, rows: pd.Timestamp("2024-05-01") + pd.to_timedelta(random.integers(0, 99, rows), "s"),
    "zone": lambda random, rows: pd.Series(pd.date_range("2024-05-01", periods=rows, tz="Europe/Berlin")).to_numpy(object),
    "span": lambda random, rows: pd.to_timedelta(random.integers(0, 99, rows), "s"),
}
INDEXES = {
    "default": lambda number, rows: pd.RangeIndex(rows),
    "named": lambda number, rows: pd.RangeIndex(rows, name="id"),
    "shifted": lambda number, rows: pd.RangeIndex(10 * number, 10 * number + rows),
    "numbers": lambda number, rows: pd.Index([7 - row for row in range(rows)]),
    "real": lambda number, rows: pd.Index([row + 0.5 for row in range(rows)], dtype="f8"),
    "texts": lambda number, rows: pd.Index([f"row{row}" for row in range(rows)], name="key"),
    "dates": lambda number, rows: pd.date_range("2024-05-01", periods=rows, freq="D"),
    "zoned": lambda number, rows: pd.date_range("2024-05-01", periods=rows, freq="h", tz="UTC"),
}


def frame(number, rows, columns=("whole", "text"), index="default"):
    random = np.random.default_rng(number)
    made = pd.DataFrame({name: COLUMNS[name](random, rows) for name in columns})
    if "zone" in made:
        made["zone"] = pd.to_datetime(made["zone"])
    made.index = INDEXES[index](number, rows)
    return made


def write(path, frames, **options):
    data_columns = options.get("data_columns") or []
    with pd.HDFStore(path, "w") as store:
        for key, each in frames.items():
            # Strings of all inputs are stored in the same width.
            where = "text" if data_columns is True or "text" in data_columns else "values"
            width = {"min_itemsize": {where: 8}} if "text" in each else {}
            store.append(key, each, **width | options)
    return path


def write_all(folder, *frames, **options):
    return [write(folder / f"part{number}.h5", {"data": each}, **options) for number, each in enumerate(frames)]
