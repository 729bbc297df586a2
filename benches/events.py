"""Measures events: reading ROOT files against uproot, and writing products against a loop in h5py and against streams.

Reading: flat and jagged columns of a tree, and their decompressed baskets, with raddle on one core and on all. Writing:
the same blobs of 10,000 events x 21 products, by a loop in h5py as the framework of HEP-CCE writes (one write for each
product and batch of 100 events, with their lengths; the same filters), and by raddle in its layouts, from an
uncompressed stream; also 1,000 products in batches of 100 events, and the same in batches and as a stream with one
codec. Every run is a separate process, programs are interleaved, memory is touched before each read, and nothing counts
before the results were compared. Needs the optimised package:

    make bench-events BENCH_EVENTS='--rounds 7 --out FOLDER'
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import RADDLE
from session import arguments, begun, environment_with, keep, package_with, result_of, touch_memory

CODECS = ("zstd", "lz4", "zlib")
BATCH = 100
# The deflate level of both writers, after shuffle.
GZIP = 4
# Touched before each read: more than any program needs.
TOUCHED_LEN_BYTES = 1 << 30


def main():
    where = ("--folder", "folder on the file system to write to (default: temporary)")
    only = "only tasks whose name has this"
    options = arguments(__doc__, ("TASK", "PROGRAM", "INPUT", "OUTPUT"), where, only=only)
    if options.one:
        return one(*options.one)
    report = begun()
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        environment = environment_with(package_with(options.core, folder))
        for task, path, programs in tasks(folder, environment, options.only):
            report["tasks"][task] = measure(task, path, programs, options.rounds, environment, folder)
    keep(report, table(report), options.out)
    return 0


def tasks(folder, environment, only):
    """Yields each task whose name contains ``only``, with its input and its programs, the reference program first."""
    threads = ("1 thread", "2 threads")
    planned = []
    for codec in CODECS:
        make = ("uproot", codec, folder / f"{codec}.root")
        for what in ("flat columns", "jagged columns", "flat baskets", "jagged baskets"):
            planned.append((f"read {what}, {codec}", make, ("uproot", *(f"raddle, {number}" for number in threads))))
    for products, events in ((21, 10_000), (1000, 1000)):
        make = ("stream", f"{products}x{events}", folder / f"{products}.pds")
        task = f"write {events:,} events of {products:,} products"
        several = [f"{layout}, {number}" for layout in ("pds", "product", "event", "batch") for number in threads]
        planned.append((task, make, ("h5py", *several)))
        # Batches that HDF5 does not compress: with the framework's codecs, or with none.
        for codec, batches in (("zstd:3", "cce-batch"), ("none", "batch")):
            programs = [f"{layout}, {number}" for number in threads for layout in ("pds", batches)]
            planned.append((f"{task}, codec {codec}", make, tuple(programs)))
    for task, (kind, what, path), programs in planned:
        if only in task:
            if not path.exists():
                run("make", kind, what, path, environment)
            yield task, path, programs


def run(task, program, source, output, environment):
    return result_of("events.py", (task, program, source, output), environment)


def measure(task, path, programs, rounds, environment, folder):
    """Returns the times of all programs, after comparing their results."""
    output = folder / "output"
    kind = task if task.startswith("read") else f"write {task.partition('codec ')[2]}".strip()
    digests = {}
    for program in programs:
        digests[program] = run(f"check {kind}", program, path, output, environment)["digest"]
    if len(set(digests.values())) != 1:
        sys.exit(f"{task}: the programs differ: {digests}")
    runs = {program: [] for program in programs}
    for turn in range(rounds):
        # In some round every program runs first, and after every other one.
        order = programs[turn % len(programs) :] + programs[: turn % len(programs)]
        for program in order if turn % 2 else reversed(order):
            runs[program].append(run(kind, program, path, output, environment))
            print(f"{task}: {program}: {runs[program][-1]['elapsed_s']:.3f} s", flush=True)
    return {"runs": runs}


def one(task, program, source, output):
    """Runs once: makes an input, times a task, or prints a digest of its result."""
    checks = task.startswith("check ")
    task = task.removeprefix("check ")
    if task == "make":
        result = make_tree(source, output) if program == "uproot" else make_stream(source, output)
    elif task.startswith("write"):
        result = write(program, task.partition(" ")[2], source, output, checks)
    else:
        result = read(task, program, source, checks)
    print(json.dumps(result))
    return 0


def make_tree(codec, path):
    """Makes 10 flat and 10 jagged columns of 1,000,000 events, in baskets of 100,000: values like a detector's, few
    bits each."""
    import awkward as ak
    import numpy as np
    import uproot

    compression = {"zstd": uproot.ZSTD(5), "lz4": uproot.LZ4(4), "zlib": uproot.ZLIB(1)}[codec]
    random = np.random.default_rng(7)
    kinds = {f"flat{number}": "f4" if number % 2 else "i4" for number in range(10)}
    kinds |= {f"jagged{number}": "var * float32" for number in range(10)}
    with uproot.recreate(path, compression=compression) as file:
        file.mktree("Events", kinds)
        for _ in range(10):
            entries = 100_000
            counts = random.poisson(3, entries)
            batch = {}
            for number in range(10):
                values = random.normal(50, 20, entries)
                batch[f"flat{number}"] = np.round(values, 1).astype("f4") if number % 2 else values.astype("i4")
                content = np.round(random.exponential(30, counts.sum()), 1).astype("f4")
                batch[f"jagged{number}"] = ak.unflatten(content, counts)
            file["Events"].extend(batch)
    return {}


def make_stream(size, path):
    """Makes blobs of random products, as a stream."""
    import awkward as ak
    import numpy as np
    import raddle

    products, events = map(int, size.split("x"))
    random = np.random.default_rng(3)
    arrays = {}
    for number in range(products):
        counts = (random.exponential(286, events).astype(np.int64) + 3) // 4 * 4
        content = random.integers(0, 50, counts.sum(), np.uint8)
        characters = ak.with_parameter(ak.Array(content), "__array__", "byte")
        arrays[f"product{number}"] = ak.with_parameter(ak.unflatten(characters, counts), "__array__", "bytestring")
    classes = dict.fromkeys(arrays, "vector<unsigned char>")
    raddle.events.write(path, arrays, classes=classes, layout="pds", codec="none", progress=False)
    return {}


def read(task, program, path, checks):
    import hashlib

    import awkward as ak
    import numpy as np

    kind, form = task.split()[1:3]
    are_baskets = form == "baskets,"
    names = [f"{kind}{number}" for number in range(10)]
    touch_memory(TOUCHED_LEN_BYTES)
    if program == "uproot":
        import uproot

        start_s = time.perf_counter()
        with uproot.open(path) as file:
            tree = file["Events"]
            read = {name: baskets_of(tree[name]) for name in names} if are_baskets else tree.arrays(names)
    else:
        import raddle.events

        start_s = time.perf_counter()
        events = raddle.events.open(path, tree="Events", jobs=int(program.split()[1]))
        read = events.baskets(names) if are_baskets else events.arrays(names)
    elapsed_s = time.perf_counter() - start_s
    digest = hashlib.blake2b()
    len_bytes = 0 if are_baskets else read.nbytes
    for name in names:
        if are_baskets:
            arrays = [getattr(basket, member) for basket in read[name] for member in members_of(basket)]
            len_bytes += sum(array.nbytes for array in arrays)
        elif checks:
            counts = ak.to_numpy(ak.num(read[name])) if read[name].ndim > 1 else [len(read[name])]
            arrays = [ak.to_numpy(ak.flatten(read[name], axis=None)), counts]
        for array in arrays if checks else ():
            digest.update(np.ascontiguousarray(array).tobytes())
    return {"elapsed_s": elapsed_s, "len_bytes": len_bytes, "digest": digest.hexdigest()}


def baskets_of(branch):
    """Returns the baskets of a branch, decompressed."""
    return [branch.basket(number) for number in range(branch.num_baskets)]


def members_of(basket):
    """Returns the names of the attributes with a basket's bytes and, if present, its offsets, in uproot and raddle."""
    offsets = "offsets" if hasattr(basket, "offsets") else "byte_offsets"
    return ["data"] if getattr(basket, offsets) is None else ["data", offsets]


def write(program, codec, source, output, checks):
    import hashlib

    import awkward as ak
    import numpy as np

    Path(output).unlink(missing_ok=True)
    if program == "h5py":
        elapsed_s = write_with_h5py(source, output)
        layout = "product"
    else:
        layout, threads = program.split(", ")
        compat = ["--compat", "cce", "--choice", "batch"] if layout.startswith("cce-") else []
        is_by_hdf5 = layout in ("columns", "product", "event", "batch")
        compression = ["-c", "none" if codec == "none" else f"gzip:{GZIP}"] if is_by_hdf5 else ["--codec", codec or "zstd:3"]
        command = [RADDLE, "events", "convert", source, "-o", output, "--layout", layout.removeprefix("cce-"), *compat,
                   *compression, "--batch", str(BATCH), "-j", threads.split()[0], "-q", "--report", f"{output}.json"]
        start_s = time.perf_counter()
        subprocess.run(command, check=True)
        elapsed_s = time.perf_counter() - start_s
    result = {"elapsed_s": elapsed_s, "len_bytes": Path(output).stat().st_size}
    if program != "h5py":
        report = json.loads(Path(f"{output}.json").read_text())
        result |= {name: report[name] for name in ("read_s", "prepare_s", "encode_s", "commit_s", "metadata_s")}
        result["run_s"] = report["elapsed_s"]
    if checks:
        import h5py
        import raddle

        digest = hashlib.blake2b()
        if program == "h5py":
            with h5py.File(output) as file:
                for name in sorted(name for name in file if not name.endswith("_sz")):
                    ends = np.cumsum(file[f"{name}_sz"][()])
                    digest.update(f"{name} {ends.tolist()}".encode() + file[name][()].tobytes())
        else:
            # All at once, because a stream's products are read together.
            whole = raddle.events.open(output, raw=True).arrays()
            for name in sorted(ak.fields(whole)):
                blobs = whole[name]
                ends = np.cumsum(ak.to_numpy(ak.num(ak.without_parameters(blobs))))
                digest.update(f"{name} {ends.tolist()}".encode() + ak.to_numpy(ak.flatten(ak.without_parameters(blobs))).tobytes())
        result["digest"] = digest.hexdigest()
    return result


def write_with_h5py(source, output):
    """Writes the framework's product layout: for each batch and product its bytes and their lengths."""
    import awkward as ak
    import h5py
    import numpy as np
    import raddle

    events = raddle.events.open(source, raw=True).arrays()
    columns = {}
    for name in ak.fields(events):
        layout = ak.to_packed(ak.without_parameters(events[name])).layout
        columns[name] = (np.asarray(layout.offsets), np.asarray(layout.content.data))
    start_s = time.perf_counter()
    filters = {"shuffle": True, "compression": "gzip", "compression_opts": GZIP, "maxshape": (None,), "chunks": (1 << 20,)}
    with h5py.File(output, "w") as file:
        made = {}
        for name in columns:
            lengths = {**filters, "chunks": (1 << 17,)}
            made[name] = (file.create_dataset(name, (0,), "u1", **filters), file.create_dataset(f"{name}_sz", (0,), "u8", **lengths))
        for first in range(0, len(events), BATCH):
            end = min(first + BATCH, len(events))
            for name, (offsets, content) in columns.items():
                data, sizes = made[name]
                begin, until = offsets[first], offsets[end]
                data.resize((until,))
                data[begin:until] = content[begin:until]
                sizes.resize((end,))
                sizes[first:end] = np.diff(offsets[first : end + 1])
    with open(output, "rb") as written:
        os.fsync(written.fileno())
    return time.perf_counter() - start_s


def table(report):
    lines = [f"# Events, {report['date']}", "",
             f"Commit {report['commit']}; {report['machine']['cores']} cores, {report['machine']['cpu']}; programs interleaved, warm "
             "cache, results compared first; ratios are medians over rounds. Metadata: share of the time in which libhdf5 "
             "makes the objects.", "",
             "| task | program | s | MB | faster than the first | metadata |", "|---|---|---|---|---|---|"]
    for task, found in report["tasks"].items():
        first = next(iter(found["runs"].values()))
        for program, runs in found["runs"].items():
            times = [run["elapsed_s"] for run in runs]
            ratio = statistics.median(other["elapsed_s"] / run["elapsed_s"] for other, run in zip(first, runs, strict=True))
            metadata = [100 * run["metadata_s"] / run["run_s"] for run in runs if run.get("metadata_s")]
            share = f"{statistics.median(metadata):.1f} %" if metadata else ""
            mb = runs[0]["len_bytes"] / 1e6
            lines.append(f"| {task} | {program} | {statistics.median(times):.3f} | {mb:.1f} | {ratio:.2f} | {share} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
