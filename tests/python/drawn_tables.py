"""Tables of drawn values, one per file."""

import h5py
import numpy as np
from hypothesis import strategies as st


def write(path, columns, table="rec", **options):
    with h5py.File(path, "a") as file:
        for name, values in columns.items():
            file.create_dataset(f"{table}/{name}", data=values, **options)
    return path


def drawn_tables(data, files):
    """Returns the columns of each file; some files have no rows."""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    counts = [data.draw(st.sampled_from([0, 1, 30, 200])) for _ in range(files)]
    return [
        {
            "key": np.sort(random.integers(0, 50, rows)).astype("i4"),
            "e": np.where(random.random(rows) < 0.1, np.nan, random.normal(0, 2, rows)).astype(">f4"),
            "wide": random.random((rows, 2)),
            "name": random.choice(np.array([b"near", b"far"]), rows),
        }
        for rows in counts
    ]
