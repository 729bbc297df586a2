"""Measures columns decoded on a GPU against the CPU's decoding plus a copy, and against two upper bounds for the GPU.

Three tables: the one with the most bytes of the merged workload "wide", whose maps are mostly zeros, and a table of numbers
that compress little, in the chunks that `raddle rechunk` chooses and in chunks of 64 KiB, which nvCOMP advises. The upper bounds are the copy from pinned memory to the device, and nvCOMP inflating the same batch
repeatedly without other work. Times are those of the device's events, after one round that does not count. Rates are of
decoded bytes, except for the copy. Values of both ways are compared first. Needs a GPU, `pip install .[gpu]`, and the
optimised package:

    make bench-gpu BENCH_GPU='--rounds 7 --keep FOLDER --out FOLDER'
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from python import merged_workload
from run import RADDLE
from session import arguments, begun, keep, package_with

COPY_LEN_BYTES = 1 << 30
"""Of the copy that is a ceiling: long against what starting one takes."""
ROWS = 48_000_000
"""Of the table of numbers: 960 MB."""
SMALL_CHUNK = "16384rows"
"""64 KiB of the columns of 4 bytes, as nvCOMP's header recommends."""
MEMORY_BYTES = (1 << 28, 1 << 30, 1 << 32)
"""For batches: how many chunks nvCOMP inflates at once."""


def main():
    options = arguments(__doc__, ("UNUSED",) * 4, ("--keep", "folder for the generated files (default: temporary)"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sys.path.insert(0, str(package_with(options.core, Path(temporary))))
        from raddle import errors
        from raddle._cuda import Cuda

        try:
            device = Cuda()
        except errors.RaddleError as error:
            sys.exit(f"no GPU to measure:\n{error}")
        report = begun()
        report["device"] = described(device)
        report["tasks"] = {"copy": copied(device, options.rounds)}
        for title, path in {"maps": merged_workload(folder)[1], **numbers(folder)}.items():
            for what, found in table(device, path, options.rounds).items():
                report["tasks"][f"{title}: {what}"] = found
    keep(report, shown(report), options.out)
    return 0


def numbers(folder):
    """Returns files of a table of numbers that compress little, by a title that names their chunks."""
    plain = folder / "plain.h5"
    layouts = {"numbers": [], "numbers, small chunks": ["--chunk", SMALL_CHUNK]}
    paths = {title: folder / f"{title.replace(', ', '-').replace(' ', '-')}.h5" for title in layouts}
    if not all(path.exists() for path in paths.values()):
        random = np.random.default_rng(32)
        with h5py.File(plain, "w") as file:
            file["t/key"] = np.sort(random.integers(0, ROWS // 10, ROWS)).astype("i4")
            file["t/evt"] = np.arange(ROWS, dtype="i8")
            file["t/energy"] = random.exponential(2, ROWS).astype("f4")
            file["t/x"] = np.round(random.normal(0, 100, ROWS), 2).astype("f4")
        for title, path in paths.items():
            command = [RADDLE, "rechunk", plain, "-o", path, *layouts[title], "--force", "-q", "--progress", "never"]
            subprocess.run(command, check=True)
        plain.unlink()
    return paths


def described(device):
    """Describes the GPU, and the versions used."""
    runtime = device.cupy.cuda.runtime
    name = runtime.getDeviceProperties(device.cupy.cuda.Device().id)["name"].decode()
    nvcomp = ".".join(map(str, device.nvcomp.version))
    return {"name": name, "driver": runtime.driverGetVersion(), "cupy": device.cupy.__version__, "nvcomp": nvcomp}


def timed(device, rounds, work):
    """Returns the seconds of each round, by events before and after all of the device's work, after a warm-up round."""
    cuda, found = device.cupy.cuda, []
    for _ in range(rounds + 1):
        start, end = cuda.Event(), cuda.Event()
        device.finish()
        start.record()
        work()
        device.finish()
        end.record()
        end.synchronize()
        found.append(cuda.get_elapsed_time(start, end) / 1e3)
    return found[1:]


def copied(device, rounds):
    """Measures the first upper bound: copying from pinned memory to the device."""
    cupy = device.cupy
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(COPY_LEN_BYTES), np.uint8, COPY_LEN_BYTES)
    pinned[:] = 1
    memory = cupy.empty(COPY_LEN_BYTES, np.uint8)
    stream = cupy.cuda.get_current_stream()
    seconds = timed(device, rounds, lambda: memory.data.copy_from_host_async(pinned.ctypes.data, COPY_LEN_BYTES, stream))
    return {"bytes": COPY_LEN_BYTES, "elapsed_s": seconds}


def table(device, path, rounds):
    """Measures every way of reading the table of the file with the most bytes."""
    import raddle

    with raddle.open(path) as file:
        group, names = largest(raddle, file)
        found = {}
        expected = group.read_columns(names)
        decoded = sum(array.nbytes for array in expected.values())
        for name, array in raddle.gpu.read_columns(group, names, device=device).items():
            if device.fetch(array).tobytes() != expected[name].astype(expected[name].dtype.newbyteorder("=")).tobytes():
                sys.exit(f"{group.name}/{name}: the device and the CPU differ")
        del expected
        by = raddle.gpu.decoded_by(group, names)
        stored = sum(batch.packed_len_bytes for batch in plan_of(group, names, MEMORY_BYTES[-1]).batches)
        print(f"{group.name}: {len(names)} columns, {decoded / 1e6:.0f} MB, {stored / 1e6:.0f} MB stored; by the CPU: "
              f"{ {name: way for name, way in by.items() if way != 'device'} }")

        def by_cpu():
            for array in group.read_columns(names).values():
                device.upload(array.astype(array.dtype.newbyteorder("="), copy=False))

        found["CPU decode and copy"] = {"bytes": decoded, "stored_bytes": stored, "elapsed_s": timed(device, rounds, by_cpu)}
        for memory in MEMORY_BYTES:
            work = lambda: raddle.gpu.read_columns(group, names, memory=memory, device=device)  # noqa: B023, E731
            found[f"device, {memory >> 20} MiB"] = {"bytes": decoded, "elapsed_s": timed(device, rounds, work)}
            found[f"nvCOMP alone, {memory >> 20} MiB"] = inflated(device, group, names, memory, rounds)
    return found


def largest(raddle, file):
    """Returns the group whose deflated columns of numbers have the most bytes, and their names."""
    tables = {}

    def visit(name, item):
        if isinstance(item, raddle.Dataset) and item.size and item.dtype.kind in "iufb" and item.compression == "gzip":
            tables.setdefault(name.rpartition("/")[0] or "/", []).append(item)

    file.visititems(visit)
    name, items = max(tables.items(), key=lambda table: sum(item.nbytes for item in table[1]))
    return file[name], [item.name.rpartition("/")[2] for item in items]


def plan_of(group, names, memory):
    """Returns the plan by which a device decodes columns."""
    from raddle import _device_columns, _device_plan

    return _device_plan.plan_columns(group._columns(names), None, memory // _device_columns.SLOTS)


def inflated(device, group, names, memory, rounds):
    """Measures the second upper bound: inflating the largest batch in place."""
    from raddle import _device_columns

    plan = plan_of(group, names, memory)
    batch = max(plan.batches, key=lambda batch: batch.raw_len_bytes)
    spans = [span for span in batch.spans if span.is_deflated]
    streams = _device_columns.streams(spans, plan.columns, batch.packed_len_bytes)
    with device.slot(group.file._source.path, 4, batch.packed_len_bytes, batch.len_bytes) as slot:
        slot.load(_device_columns.reads(batch))
        with slot.current():
            seconds = timed(device, rounds, lambda: slot.inflate(streams))
    return {"bytes": int(streams[:, 3].sum()), "streams": len(streams), "elapsed_s": seconds}


def shown(report):
    device = report["device"]
    lines = [f"# Columns on a GPU, {report['date']}", "",
             f"Commit {report['commit']}; {device['name']}, cupy {device['cupy']}, nvCOMP {device['nvcomp']}; "
             f"{report['machine']['cores']} cores, {report['machine']['cpu']}; warm cache, values compared first.", "",
             "| what | bytes (MB) | median (ms) | GB/s |", "|---|---|---|---|"]
    for what, found in report["tasks"].items():
        median = statistics.median(found["elapsed_s"])
        lines.append(f"| {what} | {found['bytes'] / 1e6:.0f} | {median * 1e3:.2f} | {found['bytes'] / median / 1e9:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
