"""Measures cuts on a table of 8 million rows: `raddle.scan` and `raddle.sql` with an index against h5py with numpy, and Polars
and DuckDB on Parquet.

The table has six columns: a sorted key, an event number, three floats and a flag. A cut returns all columns of the rows that
satisfy it: 1 % of the keys in a range, 1 % of an unsorted float, or half of the rows. Contenders run interleaved, with
warm caches, each opening its file; their results are compared first with numpy's. Prints medians; --out also writes them
to files.

    python benches/query.py --folder DATA [--rows 8000000] [--rounds 7] [--out FOLDER]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", str(os.cpu_count()))

import duckdb
import h5py
import numpy as np
import polars as pl
from run import RADDLE
from session import CORE, begun, environment_with, keep, package_with

TABLE = "rec.slc"
WITHIN = "RADDLE_BENCH_WITHIN"


def columns_of(rows):
    random = np.random.default_rng(32)
    return {
        "key": np.sort(random.integers(0, rows // 10, rows)).astype("i4"),
        "evt": np.arange(rows, dtype="i8"),
        "energy": random.exponential(2, rows).astype("f4"),
        "x": np.round(random.normal(0, 100, rows), 2).astype("f4"),
        "y": random.random(rows),
        "flag": (random.random(rows) > 0.5).astype("i1"),
    }


def write(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: folder / f"all{rows}-{kind}.h5" for kind in ("gzip", "zstd")} | {"parquet": folder / f"all{rows}.parquet"}
    if not all(path.exists() for path in files.values()):
        columns = columns_of(rows)
        plain = folder / "plain.h5"
        with h5py.File(plain, "w") as file:
            for name, values in columns.items():
                file[f"{TABLE}/{name}"] = values
        for kind in ("gzip", "zstd"):
            layout = ["--chunk", "16384rows", "-c", f"{kind}:1"]
            subprocess.run([RADDLE, "rechunk", plain, "-o", files[kind], *layout, "--force", "-q"], check=True)
            subprocess.run([RADDLE, "index", files[kind], "-q"], check=True)
        # With zstd, by default.
        pl.DataFrame(columns).write_parquet(files["parquet"])
        plain.unlink()
    return files


def cuts(rows):
    """Returns the bounds of each cut: column, lowest and highest value."""
    low = rows // 10 * 4 // 10
    return {
        "sorted key, 1 %": ("key", low, low + rows // 1000 - 1),
        "unsorted float, 1 %": ("energy", 9.21, 1e9),
        "unsorted float, 50 %": ("energy", 1.386, 1e9),
    }


def of_h5py(files, column, low, high):
    with h5py.File(files["gzip"]) as file:
        table = file[TABLE]
        tested = table[column][()]
        if column == "key":
            first, end = np.searchsorted(tested, [low, high + 1])
            return {name: tested[first:end] if name == column else table[name][first:end] for name in table}
        holds = (tested >= low) & (tested <= high)
        return {name: (tested if name == column else table[name][()])[holds] for name in table}


def of_raddle(files, column, low, high, kind="gzip"):
    import raddle

    with raddle.scan(files[kind]) as tables:
        return tables[TABLE].filter(raddle.col(column) >= low, raddle.col(column) <= high).to_numpy()


def of_raddle_zstd(files, column, low, high):
    return of_raddle(files, column, low, high, "zstd")


def of_sql(files, column, low, high):
    import raddle

    where = f"{column} >= {typed(column, low)} AND {column} <= {typed(column, high)}"
    found = raddle.sql(f"SELECT * FROM '{files['zstd']}'.'{TABLE}' WHERE {where}").to_arrow_table()
    return {name: found[name].to_numpy() for name in found.column_names}


def of_polars(files, column, low, high):
    found = pl.scan_parquet(files["parquet"]).filter((pl.col(column) >= low) & (pl.col(column) <= high)).collect()
    return {name: found[name].to_numpy() for name in found.columns}


def typed(column, value):
    """Returns an SQL literal in the precision of the column, as numpy and Polars compare."""
    return f"{value}::{'INTEGER' if column == 'key' else 'REAL'}"


def of_duckdb(files, column, low, high):
    where = f"{column} >= {typed(column, low)} AND {column} <= {typed(column, high)}"
    return duckdb.sql(f"SELECT * FROM '{files['parquet']}' WHERE {where}").fetchnumpy()


CONTENDERS = {
    "h5py": of_h5py,
    "raddle": of_raddle,
    "raddle zstd": of_raddle_zstd,
    "raddle.sql zstd": of_sql,
    "polars": of_polars,
    "duckdb": of_duckdb,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not os.environ.get(WITHIN):
        # Again, with the optimised package.
        with tempfile.TemporaryDirectory() as folder:
            environment = {**environment_with(package_with(CORE, Path(folder))), WITHIN: "1"}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    files = write(options.folder, options.rows)
    expected = columns_of(options.rows)
    report = begun()
    for cut, (column, low, high) in cuts(options.rows).items():
        kind = expected[column].dtype.type
        holds = (expected[column] >= kind(low)) & (expected[column] <= kind(high))
        runs = {name: [] for name in CONTENDERS}
        for turn in range(options.rounds + 1):
            names = list(CONTENDERS)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                started = time.perf_counter()
                found = CONTENDERS[name](files, column, low, high)
                elapsed_s = time.perf_counter() - started
                if turn == 0:
                    for wanted, values in expected.items():
                        order = np.argsort(found["evt"], kind="stable")
                        np.testing.assert_array_equal(np.asarray(found[wanted])[order], values[holds], err_msg=f"{name}: {wanted}")
                else:
                    runs[name].append(elapsed_s)
        report["tasks"][cut] = {"rows": int(holds.sum()), "runs": runs}
        print(cut, {name: f"{statistics.median(found) * 1e3:.1f} ms" for name, found in runs.items()}, flush=True)
    keep(report, shown(report, options), options.out)


def shown(report, options):
    names = list(CONTENDERS)
    machine = report["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {report['date']}, commit {report['commit']}: {options.rows:,} rows of six "
        f"columns, medians of {options.rounds} rounds. h5py and raddle read HDF5 with gzip 1, raddle also with zstd 1, and has an "
        f"index; raddle.sql runs DataFusion on it; Polars and DuckDB read Parquet with zstd.",
        "",
        f"| cut | rows | {' | '.join(names)} | h5py / raddle | polars / raddle zstd | duckdb / raddle zstd |",
        "|---" * (len(names) + 5) + "|",
    ]
    for cut, found in report["tasks"].items():
        medians = {name: statistics.median(found["runs"][name]) for name in names}
        cells = [f"{medians[name] * 1e3:.1f} ms" for name in names]
        pairs = [("h5py", "raddle"), ("polars", "raddle zstd"), ("duckdb", "raddle zstd")]
        ratios = [f"{medians[one] / medians[other]:.2f}" for one, other in pairs]
        lines.append(f"| {cut} | {found['rows']:,} | {' | '.join(cells + ratios)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
