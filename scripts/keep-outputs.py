#!/usr/bin/env python3
"""Writes a set of small outputs of this version to tests/kept/VERSION, which later versions must read and verify.

    scripts/keep-outputs.py [--raddle COMMAND] [--folder FOLDER]

Inputs are made by h5py, netCDF4, anndata, uproot and numpy. The expected values are computed from the inputs by numpy and
compared with what h5py reads in the outputs. `set.json` has them, with the commands; `files.tar.xz` has inputs and outputs,
of which most bytes are zeros of HDF5's tables, with their times. tests/kept/test_kept.py uses all sets. The set of a released
version (a tag vVERSION) is never replaced.
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import anndata
import h5py
import hdf5plugin  # noqa: F401  (before netCDF4, whose plugins h5py would load instead and fail with)
import netCDF4
import numpy as np
import pandas as pd
import scipy.sparse as sparse
import uproot

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/kept"))

from values import plain  # noqa: E402

# Maximum length of a set.
MAX_LEN_BYTES = 100_000
# Number of events of each input table.
EVENTS = (4, 3, 5)
# Values of the events, by product.
TREE = {"met": [0.5, 1.5, 2.5], "n": [3, 0, 1]}
INTS = [[1, -2, 3], [], [70_000]]
TABLES = [f"inputs/table{number}.h5" for number in (1, 2, 3)]
# A dataset with rows of 512 bytes, so that it has several chunks, and several blocks of digests (4 KiB).
MAPS = "maps/pixels"


def table(number: int) -> dict[str, np.ndarray]:
    """Returns the datasets of an input: ids, a column per event and per track, and one dataset of each kind of type."""
    events = EVENTS[number - 1]
    event = np.arange(events, dtype="<i4")
    of_tracks = np.repeat(event, event % 3)
    rows = np.arange(events)
    compound = np.zeros(events, np.dtype([("id", "<i2"), ("xy", ">f8", (2,)), ("name", "S3")]))
    compound["id"], compound["xy"], compound["name"] = rows - 1, np.stack([rows, rows + 0.5], 1), b"ab"
    ragged = np.empty(events, object)
    ragged[:] = [np.arange(row, dtype="<u2") for row in rows]
    return {
        "spill/run": np.full((events, 1), number, "<i4"),
        "spill/evt": event[:, None],
        "trk/run": np.full((len(of_tracks), 1), number, "<i4"),
        "trk/evt": of_tracks[:, None],
        "trk/x": (np.arange(len(of_tracks), dtype="<f4") + 100 * number)[:, None],
        "types/compound": compound,
        "types/words": np.array([f"wört {number}.{row}" * (row % 2) for row in rows], object),
        "types/ragged": ragged,
        "types/enum": (rows % 2).astype("i1"),
        "types/flags": rows % 2 == 0,
        "types/big": (rows * -1000).astype(">i8"),
        "types/half": (rows / 4).astype("<f2"),
        "types/fixed": np.array([b"a%d" % row for row in rows], "S4"),
        MAPS: np.repeat((rows + number).astype("u1"), 4)[:, None] * np.ones((1, 512), "u1"),
    }


def write_table(path: Path, number: int) -> None:
    """Writes an input with chunks, types of variable length, references, a link and attributes."""
    kinds = {
        "types/words": h5py.string_dtype(),
        "types/ragged": h5py.vlen_dtype("<u2"),
        "types/enum": h5py.enum_dtype({"red": 0, "blue": 1}, "i1"),
    }
    with h5py.File(path, "w") as file:
        file.attrs["experiment"] = "loom"
        file["exposure"] = 2.5
        for name, values in table(number).items():
            chunk = (4 if name == MAPS else 2, *values.shape[1:])
            filters = {"compression": "gzip", "shuffle": name == "trk/x", "fletcher32": name == "types/big"}
            dataset = file.create_dataset(
                name, values.shape, kinds.get(name, values.dtype), chunks=chunk, maxshape=(None, *values.shape[1:]), **filters
            )
            dataset[...] = values
        file["trk/x"].attrs["unit"] = "cm"
        file["alias"] = h5py.SoftLink("/trk/x")
        references = file.create_dataset("types/objects", (EVENTS[number - 1],), h5py.ref_dtype, maxshape=(None,))
        references[:] = file["trk"].ref


def write_grid(path: Path, day: int) -> None:
    """Writes a netCDF-4 file whose times count from its own day, with packed values."""
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.8"
        for name, length in {"time": None, "lat": 2}.items():
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = f"hours since 2001-01-0{day}", "standard"
        time[:] = [0, 12]
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        lat[:] = [-30, 30]
        tas = file.createVariable("tas", "i2", ("time", "lat"), zlib=True, fill_value=-999)
        tas.set_auto_maskandscale(False)
        tas.units, tas.scale_factor, tas.add_offset = "K", 0.5, 270.0
        tas[:] = np.array([[0, 1], [2, 3]]) + 10 * day


def write_cells(path: Path, number: int) -> None:
    """Writes an AnnData file with a sparse matrix and a categorical column."""
    matrix = sparse.csr_matrix(np.array([[0, 1, 0], [2, 0, 0]], "f4") * number)
    obs = pd.DataFrame({"batch": pd.Categorical(["a", "b"][:: 1 if number == 1 else -1])}, index=[f"{number}x", f"{number}y"])
    anndata.AnnData(matrix, obs, pd.DataFrame(index=["g1", "g2", "g3"])).write_h5ad(path)


def cube() -> np.ndarray:
    """Returns the samples of the IDX dataset."""
    return np.arange(5 * 6 * 7, dtype="<f4").reshape(5, 6, 7) / 2


def stream() -> bytes:
    """Returns a packed data stream of three events with a product of integers, as the HEP-CCE framework writes it."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    def record(head: bytes, content: bytes) -> bytes:
        words = struct.pack("<I", len(content) // 4)
        return head + words + content + words

    classes = padded(b"vector<int>\0")
    content = struct.pack("<I", 2) + b"Event\0\0\0" + struct.pack("<I", len(classes) // 4) + classes
    content += struct.pack("<III", 0, 1, 0) + padded(b"ints\0")
    records = record(struct.pack("<II", 0x2FEFD801, 0) + b"None", content)
    for event, values in enumerate(INTS, 1):
        numbers = struct.pack(f">{len(values)}i", *values)
        counted = struct.pack(">IHI", 0x4000_0000 | len(numbers) + 6, 10, len(values)) + numbers
        counted = struct.pack(">IH", 0x4000_0000 | len(counted) + 2, 6) + counted
        product = struct.pack("<II", 0, len(counted) // 4) + counted
        records += record(struct.pack("<4I", 0, 1, 1, 0) + struct.pack("<I", event), struct.pack("<I", len(product)) + product)
    return records


def write_inputs(folder: Path) -> None:
    """Writes all inputs."""
    folder.mkdir(parents=True)
    for number in (1, 2, 3):
        write_table(folder / f"table{number}.h5", number)
    for number in (1, 2):
        write_grid(folder / f"grid{number}.nc", number)
        write_cells(folder / f"cells{number}.h5ad", number)
    # Objects that only one of them has, and scalars and attributes that differ.
    for number in (1, 2):
        with h5py.File(folder / f"other{number}.h5", "w") as file:
            file.attrs["run"] = number
            file["both"] = np.arange(2) + number
            file[f"only{number}"] = np.arange(2)
            file["scalar"] = number
    np.save(folder / "cube.npy", cube())
    with uproot.recreate(folder / "events.root") as file:
        columns = {"met": np.array(TREE["met"], "f4"), "n": np.array(TREE["n"], "i4")}
        file.mktree("Events", {name: values.dtype for name, values in columns.items()}).extend(columns)
    (folder / "stream.pds").write_bytes(stream())


def tables(*numbers: int) -> dict[str, object]:
    """Returns the expected values of a merge of input tables; of the maps, which are large, one column."""
    values = {name: np.concatenate([table(number)[name] for number in numbers]) for name in table(1)}
    values[MAPS] = values[MAPS][:, -1]
    return {f"/{name}": plain(array) for name, array in values.items()}


@dataclass
class Output:
    """An HDF5 output: the commands that write it, how it is verified, and its values."""

    name: str
    commands: list[list[str]]
    # Inputs and options of `verify --against`; none, if the file is not compared with inputs.
    against: list[str] = field(default_factory=list)
    # Input that can be appended, and the values that then end the file's.
    append: str | None = None
    # Whether `/_raddle` has digests; anndata allows no other groups.
    has_digests: bool = True
    values: dict[str, object] = field(default_factory=dict)


def merge(name: str, inputs: list[str], *options: str, **rest: object) -> Output:
    """Returns the output of a merge."""
    return Output(name, [["merge", *inputs, "-o", name, *options]], **rest)


TWO = TABLES[:2]
MERGED = tables(1, 2)
# Events of the merged file 0 to 6; those with number 1 in their file have one track, those with number 2 two.
KEYS = {
    "/spill/evt.seq": [[event] for event in range(7)],
    "/trk/evt.seq": [[1], [2], [2], [5], [6], [6]],
    "/trk/evt.offsets": [0, 0, 1, 3, 3, 3, 4, 6],
    "/trk/evt.seq_cnt": [[1, 1], [2, 2], [5, 1], [6, 2]],
}
OTHERS = ["inputs/other1.h5", "inputs/other2.h5"]
DIFFERING = ["--join", "outer", "--scalars", "stack", "--attributes", "stack"]
GRIDS = ["inputs/grid1.nc", "inputs/grid2.nc"]
CELLS = ["inputs/cells1.h5ad", "inputs/cells2.h5ad"]
OUTPUTS = [
    merge("plain.h5", TWO, "--report", "plain.json", against=TWO, append=TABLES[2], values=MERGED),
    merge("keys.h5", TWO, "--keys", "/spill/run,/spill/evt", append=TABLES[2], values=MERGED | KEYS),
    Output(
        "appended.h5",
        [["merge", TABLES[0], "-o", "appended.h5"], ["append", "appended.h5", TABLES[1]]],
        against=TWO,
        append=TABLES[2],
        values=MERGED,
    ),
    Output(
        "parts.h5",
        [["merge", *TWO, "-o", "parts.h5", "--chunk", "3rows", "-c", "zstd", "--part", part] for part in ("1/2", "2/2")],
        against=TWO,
        append=TABLES[2],
        values=MERGED,
    ),
    Output(
        "rechunked.h5",
        [["rechunk", "plain.h5", "-o", "rechunked.h5", "--for", "scan", "-c", "lz4"]],
        against=["plain.h5"],
        append=TABLES[2],
        values=MERGED,
    ),
    Output(
        "selected.h5",
        [["select", "keys.h5", "-o", "selected.h5", "--where", "trk: x >= 201"]],
        # The event that is number 2 in the second input.
        values={"/spill/run": [[2]], "/spill/evt": [[2]], "/trk/x": [[201.0], [202.0]], "/trk/evt.seq": [[0], [0]]},
    ),
    merge("latest.h5", TWO, "--compat", "latest", "--contiguous=1KiB", against=TWO, values=MERGED),
    merge("linked.h5", TWO, "--link", "virtual", values=MERGED),
    merge(
        "outer.h5",
        OTHERS,
        *DIFFERING,
        against=[*OTHERS, *DIFFERING],
        values={"/both": [1, 2, 2, 3], "/only1": [0, 1, 0, 0], "/only2": [0, 0, 0, 1], "/scalar": [1, 2], "/run": [1, 2]},
    ),
    merge("union.h5", [OTHERS[0], TABLES[0]], "--union", values=tables(1) | {"/both": [1, 2], "/only1": [0, 1]}),
    merge(
        "grid.nc",
        GRIDS,
        against=GRIDS,
        values={
            "/time": [0.0, 12.0, 24.0, 36.0],
            "/lat": [-30.0, 30.0],
            "/tas": [[10, 11], [12, 13], [20, 21], [22, 23]],
        },
    ),
    merge(
        "cells.h5ad",
        CELLS,
        against=CELLS,
        has_digests=False,
        values={
            "/X/data": [1.0, 2.0, 2.0, 4.0],
            "/X/indices": [1, 0, 1, 0],
            "/X/indptr": [0, 1, 2, 3, 4],
            "/obs/batch/codes": [0, 1, 1, 0],
            "/obs/_index": ["1x", "1y", "2x", "2y"],
        },
    ),
]

# Event files: input and options of `events convert`, and the values.
FROM_STREAM = {"ints": INTS}
EVENT_FILES = {
    "columns.h5": ("inputs/events.root", [], TREE),
    "rntuple.root": ("inputs/events.root", ["--layout", "rntuple"], TREE),
    "product.h5": ("inputs/stream.pds", ["--layout", "product"], FROM_STREAM),
    "event.h5": ("inputs/stream.pds", ["--layout", "event"], FROM_STREAM),
    "batch.h5": ("inputs/stream.pds", ["--layout", "batch", "--batch", "2"], FROM_STREAM),
    "framework.h5": ("inputs/stream.pds", ["--layout", "batch", "--compat", "cce"], FROM_STREAM),
    "stream.pds": ("inputs/stream.pds", ["--layout", "pds"], FROM_STREAM),
}
OTHER_COMMANDS = [
    ["idx", "write", "inputs/cube.npy", "-o", "cube.idx", "--bits-per-block", "6", "--tune=profile.toml"],
    ["idx", "write", "inputs/cube.npy", "-o", "zfp.idx", "-c", "zfp", "--order", "hz", "--bits-per-block", "6"],
    ["idx", "write", "inputs/cube.npy", "-o", "cube.zarr"],
]


def read(path: Path, name: str) -> object:
    """Returns the values of a dataset as h5py reads them."""
    with h5py.File(path) as file:
        dataset = file[name]
        return plain(dataset[:, -1] if name == f"/{MAPS}" else dataset[()])


def write_set(command: Path, folder: Path) -> dict[str, object]:
    """Writes inputs and outputs; returns the content of `set.json`."""

    def run(*arguments: str) -> str:
        # Reports hold the name by which the command was started.
        finished = subprocess.run(
            ["raddle", *arguments], executable=command, cwd=folder, capture_output=True, text=True, check=False
        )
        if finished.returncode != 0:
            sys.exit(f"raddle {' '.join(arguments)}: exit code {finished.returncode}\n{finished.stderr}")
        return finished.stdout

    write_inputs(folder / "inputs")
    commands = [command for output in OUTPUTS for command in output.commands]
    events = EVENT_FILES.items()
    commands += [["events", "convert", source, "-o", name, *options] for name, (source, options, _) in events]
    commands += OTHER_COMMANDS
    for arguments in commands:
        run(*arguments, "-q")
    # An index belongs to a modification time, which archives hold in whole seconds.
    indexed = folder / "plain.h5"
    os.utime(indexed, (int(indexed.stat().st_mtime),) * 2)
    run("index", indexed.name, "-q")
    for output in OUTPUTS:
        for name, expected in output.values.items():
            found = read(folder / output.name, name)
            if found != expected:
                sys.exit(f"{output.name}: {name} is {found}, expected {expected}")
    return {
        "version": run("--version").split()[-1],
        "outputs": {
            output.name: {
                "digests": output.has_digests,
                "against": output.against,
                "append": output.append,
                "values": output.values,
            }
            for output in OUTPUTS
        },
        "appended_values": tables(3),
        "events": {name: values for name, (_, _, values) in events},
        "idx": {"input": "inputs/cube.npy", "datasets": ["cube.idx", "zfp.idx"], "zarr": "cube.zarr"},
        "indexed": {"file": indexed.name, "index": f"{indexed.name}.stats"},
        "report": "plain.json",
        "profile": "profile.toml",
        "commands": [" ".join(arguments) for arguments in commands],
    }


def lines(value: object, indent: int = 0) -> str:
    """Returns JSON with a line for each entry of each object, and arrays in one line."""
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    entries = [f"{' ' * (indent + 1)}{json.dumps(name)}: {lines(entry, indent + 1)}" for name, entry in value.items()]
    return "{\n" + ",\n".join(entries) + "\n" + " " * indent + "}"


def pack(folder: Path, archive: Path) -> None:
    """Packs the files of a folder without their owners."""

    def without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, path.relative_to(folder), filter=without_owner)


def main() -> None:
    """Replaces the set of the command's version, unless that version is released."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raddle", type=Path, default=ROOT / "target/release/raddle", help="command that writes the outputs")
    parser.add_argument("--folder", type=Path, default=ROOT / "tests/kept", help="folder of the sets")
    options = parser.parse_args()
    command = options.raddle.resolve()
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    folder = options.folder / version
    tags = subprocess.run(["git", "tag", "--list", f"v{version}"], cwd=ROOT, capture_output=True, text=True, check=True)
    if tags.stdout and folder.exists():
        sys.exit(f"{folder}: version {version} is released, so its set stays as it is")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as written:
        about = write_set(command, Path(written))
        pack(Path(written), folder / "files.tar.xz")
    (folder / "set.json").write_text(lines(about) + "\n", encoding="utf-8")
    len_bytes = sum(path.stat().st_size for path in folder.iterdir())
    if len_bytes > MAX_LEN_BYTES:
        sys.exit(f"{folder} has {len_bytes:,} bytes, more than {MAX_LEN_BYTES:,}")
    print(f"{folder}: {len_bytes:,} bytes")


if __name__ == "__main__":
    main()
