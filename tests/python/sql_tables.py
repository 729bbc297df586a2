"""Tables that the tests of SQL query."""

import h5py
import numpy as np
import pytest
import raddle
from raddle import _scan_batches

_sql_tables = pytest.importorskip("raddle._sql_tables")

ROWS = 40_000
CHUNK_ROWS = 500


def columns_of(random, rows):
    """Returns the columns of a table: all kinds of numbers, with NaN of both signs, zeros of both signs and extremes."""
    nan = np.where(random.random(rows) < 0.5, np.nan, -np.nan)
    return {
        "evt": np.arange(rows),
        "run": np.sort(random.integers(1000, 1100, rows)).astype("i4"),
        "energy": np.where(random.random(rows) < 0.1, nan, np.round(random.normal(0, 2, rows), 1)).astype("f4"),
        "y": np.where(random.random(rows) < 0.1, nan, random.choice([-0.0, 0.0, 0.5, -2.5, np.inf, -np.inf, 1e300], rows)),
        "big": random.integers(-9, 9, rows).astype(">i2"),
        "far": random.choice(np.array([0, 1, 2**24 + 1, 2**53 + 1, 2**63, 2**64 - 1], "u8"), rows),
        "low": random.choice(np.array([-(2**63), -(2**53) - 1, -1, 0, 2**63 - 1]), rows),
        "flag": random.random(rows) > 0.5,
        "name": random.choice(np.array([b"near", b"far", b""]), rows),
        "wide": np.round(random.random((rows, 2)), 2),
        'a "quoted" == (name)': random.integers(-5, 5, rows).astype("i1"),
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Returns the path of a file with an index, and the columns of its tables "rec.slc" and "rec/trk"."""
    path = tmp_path_factory.mktemp("sql") / "all.h5"
    random = np.random.default_rng(0)
    tables = {"rec.slc": columns_of(random, ROWS), "rec/trk": columns_of(random, ROWS // 4)}
    tables["rec/trk"]["evt"] = random.integers(0, ROWS, ROWS // 4)
    with h5py.File(path, "w") as file:
        for table, columns in tables.items():
            for name, values in columns.items():
                file.create_dataset(f"{table}/{name}", data=values, chunks=(CHUNK_ROWS, *values.shape[1:]), compression="gzip")
    raddle.index(path, progress=False)
    return path, tables


def small_batches(patch):
    """Makes batches so short that the tables have several."""
    patch.setattr(_scan_batches, "BATCH_LEN_BYTES", 50_000)
    patch.setattr(_scan_batches, "MIN_CHUNKS_PER_THREAD", 1)
    patch.setattr(_sql_tables, "MAX_BATCH_ROWS", 300)
