"""Compares writing S3D's boxes as IDX with PnetCDF, MPI-IO and a raw file per process (Kumar and others 2012, figures 10a, 11a, 12).

MPI ranks each hold one cube of doubles: pressure, temperature, velocity (3 numbers a sample) and species (11). Every
run is a separate mpirun job that makes its values before the clock starts; its time is that of the slowest rank, from a
barrier to the closed file. Writers are interleaved, and nothing counts before every rank has read each output back
equal. No writer waits for the disk. Needs mpi4py, the compiled part of the package, and Debian's libpnetcdf0d for
PnetCDF, which is left out otherwise:

    python benches/pidx.py --rounds 5 --folder FOLDER [--core target/debug/lib_core.so]
"""

import ctypes
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import HERE
from session import arguments, begun, environment_with, in_turns, keep, package_with

COMPONENTS = (1, 1, 3, 11)
# Side of a cube, ranks.
TASKS = {
    "weak scaling, 30^3 a rank, 1 rank": (30, 1),
    "weak scaling, 30^3 a rank, 2 ranks": (30, 2),
    "weak scaling, 30^3 a rank, 4 ranks": (30, 4),
    "weak scaling, 30^3 a rank, 8 ranks": (30, 8),
    "strong scaling, 60^3 samples, 1 rank": (60, 1),
    "strong scaling, 60^3 samples, 8 ranks": (30, 8),
}
PNETCDF = ("libpnetcdf.so.0d", "libpnetcdf.so.4", "libpnetcdf.so")
MPIRUN = os.environ.get("MPIRUN", "mpirun")
# Constants of pnetcdf.h.
NC_CLOBBER, NC_NOWRITE, NC_64BIT_DATA, NC_DOUBLE = 0, 0, 0x0020, 6


def main():
    options = arguments(__doc__, ("WRITER", "TASK", "FOLDER", "CHECK"), ("--folder", "folder on the file system to write to (default: temporary)"))
    if options.one:
        return one(*options.one)
    report = begun()
    writers = tuple(WRITERS)
    if pnetcdf() is None:
        print(f"note: none of {', '.join(PNETCDF)} is installed; PnetCDF is left out", file=sys.stderr)
        writers = tuple(writer for writer in writers if writer != "PnetCDF, collective")
    with tempfile.TemporaryDirectory() as temporary:
        package = package_with(options.core, Path(temporary))
        for task in TASKS:
            report["tasks"][task] = measure(task, writers, options.rounds, package, options.folder)
    keep(report, table(report), options.out)
    return 0


def measure(task, writers, rounds, package, folder):
    """Returns the seconds of every writer, after each output was read back."""

    def run(writer, check):
        environment = environment_with(package)
        environment |= {f"OMPI_ALLOW_RUN_AS_ROOT{more}": "1" for more in ("", "_CONFIRM")} | {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
        with tempfile.TemporaryDirectory(dir=folder) as written:
            command = [MPIRUN, "-n", str(TASKS[task][1]), sys.executable, HERE / "pidx.py", "--one", writer, task, written, check]
            done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode:
            sys.exit(f"{task}: {writer} failed:\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    runs = in_turns(task, writers, rounds, run)
    side, ranks = TASKS[task]
    return {"len_bytes": side**3 * ranks * sum(COMPONENTS) * 8, "runs": runs}


def one(writer, task, folder, check):
    """Runs once: makes the values of a rank, times writing them, and reads them back if they are to be verified."""
    import numpy as np
    from mpi4py import MPI

    side, ranks = TASKS[task]
    world = MPI.COMM_WORLD
    grid = MPI.Compute_dims(ranks, 3)
    place = np.unravel_index(world.rank, grid)
    start = [int(at) * side for at in place]
    whole = [along * side for along in grid]
    random = np.random.default_rng(world.rank)
    arrays = {f"v{number}": random.random((side, side, side) + ((count,) if count > 1 else ())) for number, count in enumerate(COMPONENTS)}
    box = (world, Path(folder), whole, start, arrays)
    # Imported before the clock starts, so that loading code is not measured.
    importlib.import_module("raddle.idx")
    pnetcdf()
    world.barrier()
    started_s = time.perf_counter()
    WRITERS[writer][0](*box)
    world.barrier()
    elapsed_s = world.allreduce(time.perf_counter() - started_s, MPI.MAX)
    if check == "verify":
        found = WRITERS[writer][1](*box)
        assert all(np.array_equal(found[name], array) for name, array in arrays.items()), f"{writer}: wrong values"
    if world.rank == 0:
        print(json.dumps({"elapsed_s": elapsed_s}))
    return 0


def write_idx(world, folder, whole, start, arrays):
    import raddle.idx

    box = raddle.idx.Box(start, arrays)
    raddle.idx.write(folder / "a.idx", [box], shape=whole, communicator=world, compress="none", order="hz", blocks_per_file=512, sync=False)


def read_idx(world, folder, whole, start, arrays):
    import raddle.idx

    inside = [slice(at, at + len(next(iter(arrays.values())))) for at in start]
    return {name: raddle.idx.read(folder / "a.idx", name, box=inside) for name in arrays}


def write_own(world, folder, whole, start, arrays):
    with open(folder / f"{world.rank}.raw", "wb") as file:
        for array in arrays.values():
            file.write(array.data)


def read_own(world, folder, whole, start, arrays):
    import numpy as np

    with open(folder / f"{world.rank}.raw", "rb") as file:
        return {name: np.fromfile(file, array.dtype, array.size).reshape(array.shape) for name, array in arrays.items()}


def through_mpi(world, folder, whole, start, arrays, mode, act):
    """Calls ``act`` on each array through its view of one shared file."""
    from mpi4py import MPI

    # Both Open MPI's own MPI-IO and ROMIO accept this.
    file = MPI.File.Open(world, str(folder / "shared.raw"), mode)
    offset = 0
    for name, array in arrays.items():
        more = list(array.shape[3:])
        part = MPI.DOUBLE.Create_subarray(whole + more, list(array.shape), start + [0] * len(more)).Commit()
        file.Set_view(offset, MPI.DOUBLE, part)
        act(file, name, array)
        part.Free()
        offset += whole[0] * whole[1] * whole[2] * (more[0] if more else 1) * 8
    file.Close()


def write_collectively(*box):
    from mpi4py import MPI

    through_mpi(*box, MPI.MODE_CREATE | MPI.MODE_WRONLY, lambda file, name, array: file.Write_all(array))


def write_independently(*box):
    from mpi4py import MPI

    through_mpi(*box, MPI.MODE_CREATE | MPI.MODE_WRONLY, lambda file, name, array: file.Write(array))


def read_shared(*box):
    import numpy as np
    from mpi4py import MPI

    found = {name: np.empty_like(array) for name, array in box[-1].items()}
    through_mpi(*box, MPI.MODE_RDONLY, lambda file, name, array: file.Read_all(found[name]))
    return found


def pnetcdf():
    """Returns the PnetCDF library, or None."""
    for name in PNETCDF:
        try:
            return ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return None


class Pnetcdf:
    """A PnetCDF file that all ranks opened collectively."""

    def __init__(self, world, path, whole, arrays, creates):
        from mpi4py import MPI

        self.library = pnetcdf()
        self.file = ctypes.c_int()
        # Handles are integers in MPICH and pointers in Open MPI.
        kind = ctypes.c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p
        communicator, none = (kind.from_address(MPI._addressof(handle)) for handle in (world, MPI.INFO_NULL))
        if not creates:
            self.call("ncmpi_open", communicator, str(path).encode(), NC_NOWRITE, none, ctypes.byref(self.file))
            return
        self.call("ncmpi_create", communicator, str(path).encode(), NC_CLOBBER | NC_64BIT_DATA, none, ctypes.byref(self.file))
        axes = [self.dimension(f"axis{number}", count) for number, count in enumerate(whole)]
        for name, array in arrays.items():
            more = [self.dimension(f"{name}_components", count) for count in array.shape[3:]]
            ids = (ctypes.c_int * (3 + len(more)))(*axes, *more)
            self.call("ncmpi_def_var", self.file, name.encode(), NC_DOUBLE, len(ids), ids, ctypes.byref(ctypes.c_int()))
        self.call("ncmpi_enddef", self.file)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            self.library.ncmpi_strerror.restype = ctypes.c_char_p
            raise OSError(f"{name}: {self.library.ncmpi_strerror(code).decode()}")

    def dimension(self, name, count):
        found = ctypes.c_int()
        self.call("ncmpi_def_dim", self.file, name.encode(), ctypes.c_longlong(count), ctypes.byref(found))
        return found.value

    def act(self, what, number, start, array):
        def offsets(values):
            return (ctypes.c_longlong * array.ndim)(*values)

        first = offsets([*start, *[0] * (array.ndim - 3)])
        self.call(what, self.file, ctypes.c_int(number), first, offsets(array.shape), ctypes.c_void_p(array.ctypes.data))

    def close(self):
        self.call("ncmpi_close", self.file)


def write_pnetcdf(world, folder, whole, start, arrays):
    file = Pnetcdf(world, folder / "a.nc", whole, arrays, True)
    for number, array in enumerate(arrays.values()):
        file.act("ncmpi_put_vara_double_all", number, start, array)
    file.close()


def read_pnetcdf(world, folder, whole, start, arrays):
    import numpy as np

    file = Pnetcdf(world, folder / "a.nc", whole, arrays, False)
    found = {name: np.empty_like(array) for name, array in arrays.items()}
    for number, array in enumerate(found.values()):
        file.act("ncmpi_get_vara_double_all", number, start, array)
    file.close()
    return found


# Functions that write, and that read back.
WRITERS = {
    "raddle, three phases": (write_idx, read_idx),
    "raw file per rank": (write_own, read_own),
    "PnetCDF, collective": (write_pnetcdf, read_pnetcdf),
    "MPI-IO, collective": (write_collectively, read_shared),
    "MPI-IO, independent": (write_independently, read_shared),
}


def table(report):
    machine = report["machine"]
    lines = [f"# Writing S3D's boxes, {report['date']}", "",
             f"Commit {report['commit']}; {machine['cores']} cores, {machine['cpu']}; writers interleaved, read back first; medians; "
             "no writer waits for the disk.", "", "| task | writer | s | MiB/s | raddle takes |", "|---|---|---|---|---|"]
    for task, found in report["tasks"].items():
        times = {writer: [run["elapsed_s"] for run in runs] for writer, runs in found["runs"].items()}
        own = next(iter(times))
        for writer, of_writer in times.items():
            share = statistics.median(a / b for a, b in zip(times[own], of_writer, strict=True))
            median = statistics.median(of_writer)
            lines.append(f"| {task} | {writer} | {median:.4f} | {found['len_bytes'] / median / 2**20:.0f} | {share:.2f} times that |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
