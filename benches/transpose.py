"""Measures rechunking across the chunks of the input against h5repack.

Three measurements, each on files made here: two transposes that are known to be slow, layouts drawn at random, and an
array much larger than the memory, against a copy that only compresses again. Programs are interleaved, and the first
output of each is compared with the input before a time counts. Medians, ratios and peak memory are printed; with
`--out` they are kept as README.md and raw.json.

    make bench-transpose BENCH_TRANSPOSE='--rounds 5 --drawn 50 --out FOLDER'
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from run import RADDLE, timed
from session import begun, keep

# Elements and chunks of the input, chunks of the output.
TRANSPOSES = {
    "4000 x 20000": ((4000, 20_000), (10, 20_000), (4000, 100)),
    "2000 x 20000": ((2000, 20_000), (10, 20_000), (2000, 100)),
}
MEMORY = "128MiB"
LARGE_MEMORY = "256MiB"
GZIP = 1


def values(shape, seed, first=0):
    """Returns numbers that drift slowly along the last axis, as measured ones do."""
    random = np.random.default_rng([seed, first])
    steps = random.integers(-3, 4, shape, np.int8).astype(np.int32)
    return (np.cumsum(steps, axis=-1, out=steps) + 100_000).astype(np.uint32)


def write(path, shape, chunks, seed=1):
    """Writes a dataset in bands of rows, so that a large one needs little memory."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", shape, "u4", chunks=chunks, compression="gzip", compression_opts=GZIP)
        row_len_bytes = 4 * int(np.prod(shape[1:]))
        band = max(1, (64 << 20) // row_len_bytes // chunks[0]) * chunks[0]
        for first in range(0, shape[0], band):
            rows = min(band, shape[0] - first)
            dataset[first : first + rows] = values((rows, *shape[1:]), seed, first)


def compare(one, other, chunks):
    """Ends the program if two files differ, or the second has other chunks."""
    with h5py.File(one) as left, h5py.File(other) as right:
        if right["x"].chunks != chunks:
            sys.exit(f"{other}: chunks {right['x'].chunks} instead of {chunks}")
        band = max(1, (256 << 20) // (4 * int(np.prod(left["x"].shape[1:]))))
        for first in range(0, left["x"].shape[0], band):
            if not np.array_equal(left["x"][first : first + band], right["x"][first : first + band]):
                sys.exit(f"{other}: values differ")


def rechunk(source, output, chunks, memory=MEMORY, compress=f"gzip:{GZIP}"):
    text = f"{chunks[0]}rows" if len(chunks) == 1 else "x".join(map(str, chunks))
    return f"{RADDLE} rechunk {source} -o {output} --force --chunk {text} -c {compress} --memory {memory} -j 2 -q --progress never"


def h5repack(source, output, chunks):
    return f"h5repack -l x:CHUNK={'x'.join(map(str, chunks))} -f x:GZIP={GZIP} {source} {output}"


def in_turns(commands, source, chunks, rounds):
    """Runs commands in turns; returns medians of wall and processor time and the largest peak memory, by name."""
    runs = {name: [] for name in commands}
    for number in range(rounds):
        for name, (command, output) in commands.items():
            output.unlink(missing_ok=True)
            runs[name].append({**timed(command), "output_len_bytes": output.stat().st_size})
            if number == 0 and chunks:
                compare(source, output, chunks)
    def summary(of_one):
        return {
            "wall_s": statistics.median(run["wall_s"] for run in of_one),
            "cpu_s": statistics.median(run["cpu_s"] for run in of_one),
            "peak_rss_bytes": max(run["peak_rss_bytes"] for run in of_one),
            "output_len_bytes": of_one[-1]["output_len_bytes"],
        }
    return {name: summary(of_one) for name, of_one in runs.items()}


def against_h5repack(folder, shape, before, after, rounds, seed=1):
    source, ours, fast, theirs = (folder / name for name in ["in.h5", "raddle.h5", "fast.h5", "h5repack.h5"])
    write(source, shape, before, seed)
    commands = {
        "raddle": (rechunk(source, ours, after), ours),
        "raddle fast": (rechunk(source, fast, after, compress="fast"), fast),
        "h5repack": (h5repack(source, theirs, after), theirs),
    }
    return in_turns(commands, source, after, rounds)


def drawn(count, seed=20261126):
    """Draws arrays of 2 to 4 axes and 8 to 64 MB, with chunks of 64 kB to 4 MB before and after."""
    random = np.random.default_rng(seed)
    def cut(shape, len_bytes):
        chunks = [int(np.ceil(length * random.random() ** 2)) or 1 for length in shape]
        for _ in range(1000):
            size = 4 * int(np.prod(chunks))
            if len_bytes[0] <= size <= len_bytes[1]:
                return tuple(chunks)
            axis = int(random.integers(len(shape)))
            chunks[axis] = min(shape[axis], chunks[axis] * 2) if size < len_bytes[0] else max(1, chunks[axis] // 2)
        return tuple(shape)
    for _ in range(count):
        rank, size = int(random.integers(2, 5)), random.uniform(2e6, 16e6)
        weights = random.dirichlet([2] * rank)
        shape = tuple(max(2, int(size**weight)) for weight in weights)
        yield shape, cut(shape, (64_000, 4_000_000)), cut(shape, (64_000, 4_000_000))


def large(folder, gib, rounds):
    """Returns the times of a transpose and of a copy with the same chunks, of an array of `gib` GiB."""
    source, across, copy = folder / "large.h5", folder / "across.h5", folder / "copy.h5"
    shape, before, after = (gib * 1024, 512, 512), (1, 512, 512), (1024, 16, 16)
    write(source, shape, before)
    commands = {
        "across": (rechunk(source, across, after, LARGE_MEMORY), across),
        "copy": (rechunk(source, copy, before, LARGE_MEMORY), copy),
    }
    found = in_turns(commands, source, None, rounds)
    compare(source, across, after)
    return found


def row(name, found):
    """Returns a line of the table: times, then ratios to h5repack and sizes."""
    theirs = found["h5repack"]
    cells = [f"{found[of]['wall_s']:.2f} s" for of in ("raddle", "raddle fast", "h5repack")]
    for of in ("raddle", "raddle fast"):
        cells.append(f"{theirs['wall_s'] / found[of]['wall_s']:.1f}")
        cells.append(f"{found[of]['output_len_bytes'] / theirs['output_len_bytes']:.2f}")
    peak = max(found[of]["peak_rss_bytes"] for of in ("raddle", "raddle fast"))
    return f"| {name} | {' | '.join(cells)} | {peak / 1e6:.0f} MB |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--drawn", type=int, default=50, help="number of layouts drawn at random")
    parser.add_argument("--large", type=int, default=4, help="GiB of the large array; 0 leaves it out")
    parser.add_argument("--folder", type=Path, help="folder on the file system to use (default: temporary)")
    parser.add_argument("--out", type=Path, help="folder for README.md and raw.json")
    options = parser.parse_args()
    report = begun()
    titles = ["layout", f"raddle gzip:{GZIP}", "raddle fast", "h5repack", "h5repack / gzip", "size", "h5repack / fast", "size", "peak memory"]
    heading = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    lines = [f"{report['machine']['cpu']}, {report['date']}, commit {report['commit']}: `--memory {MEMORY}`, gzip {GZIP}, medians of {options.rounds} rounds.", ""]
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        lines += heading
        for name, (shape, before, after) in TRANSPOSES.items():
            found = against_h5repack(folder, shape, before, after, options.rounds)
            report["tasks"][name] = found
            lines.append(row(f"{name}, {before} to {after}", found))
            print(lines[-1], flush=True)
        ratios = []
        for number, (shape, before, after) in enumerate(drawn(options.drawn)):
            found = against_h5repack(folder, shape, before, after, 1, number)
            name = f"{'x'.join(map(str, shape))}, {before} to {after}"
            report["tasks"][f"drawn {number}: {name}"] = found
            ratios.append(found["h5repack"]["wall_s"] / found["raddle"]["wall_s"])
            print(row(name, found), flush=True)
        if ratios:
            lines += ["", f"{len(ratios)} layouts drawn at random, one round each: h5repack takes {min(ratios):.1f} to {max(ratios):.1f} times as long, median {statistics.median(ratios):.1f}."]
        if options.large:
            found = large(folder, options.large, max(1, options.rounds // 2))
            report["tasks"]["large"] = found
            ratio = found["across"]["wall_s"] / found["copy"]["wall_s"]
            lines += ["", f"{options.large} GiB in maps, written as time series with `--memory {LARGE_MEMORY}`: {found['across']['wall_s']:.1f} s, {ratio:.2f} times the {found['copy']['wall_s']:.1f} s of a copy that only compresses again; peak {found['across']['peak_rss_bytes'] / 1e6:.0f} MB."]
    keep(report, "\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
