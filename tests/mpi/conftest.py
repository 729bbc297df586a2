"""Fixtures of the tests over MPI: files to merge, and starting, watching and killing ranks."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

RADDLE = str(Path(os.environ.get("RADDLE", Path(__file__).parents[2] / "target/debug/raddle")).resolve())
MPIRUN = os.environ.get("MPIRUN", "mpirun")
# Slurm's daemon starts the ranks, not srun, and srun reports ranks that fail.
IS_SLURM = Path(MPIRUN).name == "srun"

# Open MPI requires these to run as root and with more ranks than cores; MPICH ignores them.
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "NO_COLOR": "1",
}

GOES_ON = "resuming an interrupted run: "

# No run of these tests takes a tenth of it; a run that hangs is killed.
TIMEOUT_S = 120


def pytest_collection_modifyitems(items):
    if shutil.which(MPIRUN) is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"{MPIRUN} is not installed"))


class Ranks:
    """``raddle`` on some ranks, in a folder; with 0, as a process without a launcher. ``launcher`` replaces
    ``MPIRUN``."""

    def __init__(self, folder, size, arguments, shell=None, launcher=(MPIRUN,)):
        command = [RADDLE, *map(str, arguments)]
        if shell is not None:
            # Runs on every rank before the shell executes raddle; RANK is set.
            rank = 'RANK=${PMIX_RANK:-$PMI_RANK}; '
            command = ["sh", "-c", f'{rank}{shell}; exec "$@"', "sh", *command]
        started = [*launcher, "-n", str(size)] if size else []
        self.process = subprocess.Popen(
            [*started, *command],
            cwd=folder,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ranks(self):
        """Returns the processes of the ranks, by rank: those below mpirun, or all that run raddle."""
        found, below = {}, {self.process.pid}
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(entry.name)] = int(fields[1])
                except (OSError, IndexError):
                    continue
        while grown := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= grown
        for pid in parents if IS_SLURM else below:
            try:
                if os.readlink(f"/proc/{pid}/exe") != RADDLE:
                    continue
                lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            variables = dict(line.split(b"=", 1) for line in lines if b"=" in line)
            rank = variables.get(b"PMIX_RANK", variables.get(b"PMI_RANK"))
            # A child that runs libhdf5 has the variables of its rank: the parent is the rank.
            if rank is not None and parents[pid] not in found.values():
                found[int(rank)] = pid
        return found

    def end(self, timeout_s=TIMEOUT_S):
        """Waits for the end; returns exit code, standard output and standard error."""
        try:
            out, err = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"still running after {timeout_s} s\n{out}{err}") from None
        if IS_SLURM:
            err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("srun: "))
        return self.process.returncode, out, err


@pytest.fixture
def ranks(tmp_path):
    """Runs raddle on ranks: ``ranks(3, "merge", ..., expect=0)`` returns its output and errors."""

    def run(size, *arguments, expect=0, shell=None):
        code, out, err = Ranks(tmp_path, size, arguments, shell).end()
        assert code == expect, f"{size} ranks, {arguments}: rc {code}\n{out}{err}"
        return out, err

    return run


@pytest.fixture
def alone(tmp_path):
    """Runs raddle without a launcher."""

    def run(*arguments, expect=0):
        command = [RADDLE, *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == expect, f"{command}: rc {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    return run


def write_tables(path, seed, rows=3000, tables=5):
    """Writes tables of an index and rows of it, of several types, one of them empty; strings and an attribute."""
    random = np.random.default_rng(seed)
    chunked = {"compression": "gzip", "compression_opts": 1}
    with h5py.File(path, "w") as file:
        file.attrs["experiment"] = "loom"
        spill = file.create_group("spill")
        spill.create_dataset("run", data=np.full(rows, seed, np.int32), chunks=(128,), maxshape=(None,), **chunked)
        spill.create_dataset("evt", data=np.arange(rows, dtype=np.int32), chunks=(128,), maxshape=(None,), **chunked)
        for number in range(tables):
            group = file.create_group(f"table{number}")
            count = int(random.integers(rows, 3 * rows)) if number else 0
            evt = np.sort(random.integers(0, rows, count)).astype(np.int32)
            for name, data in [
                ("run", np.full(count, seed, np.int32)),
                ("evt", evt),
                ("energy", random.random(count, np.float32)),
                ("hits", random.integers(0, 99, (count, 3), np.int64)),
            ]:
                shape = (128, *data.shape[1:])
                maxshape = (None, *data.shape[1:])
                group.create_dataset(name, data=data, chunks=shape, maxshape=maxshape, **chunked)
            group["energy"].attrs["unit"] = "GeV"
        names = [f"module {seed}.{number}" for number in range(7)]
        file.create_dataset("names", data=names, dtype=h5py.string_dtype(), chunks=(4,), maxshape=(None,))
    return path


@pytest.fixture
def inputs(tmp_path):
    """Three files, fewer than most numbers of ranks."""
    folder = tmp_path / "in"
    folder.mkdir()
    return [write_tables(folder / f"run{seed}.h5", seed) for seed in range(1, 4)]


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """Files whose merge takes about a second, so that it can be killed before it ends."""
    folder = tmp_path_factory.mktemp("large")
    for seed in range(1, 5):
        random = np.random.default_rng(seed)
        with h5py.File(folder / f"run{seed}.h5", "w") as file:
            for number in range(8):
                data = random.integers(0, 1 << 16, 400_000).astype(np.int32)
                file.create_dataset(f"table{number}/hits", data=data, chunks=(65536,), maxshape=(None,))
    return folder


def wait_for(condition, timeout_s=30):
    """Polls until ``condition`` returns a true value."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    return None


def kill(pid, number=signal.SIGKILL):
    """Sends a signal; returns whether the process still existed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def command_of(large, output):
    """Returns the command of the merge that is killed, with one thread per rank."""
    # Little memory: many rounds, so that at most points there is something to keep.
    memory = ["--memory", "24MiB"]
    return ["merge", large, "-o", output, "-f", "-j", "1", "-c", "small", "--progress", "never", *memory]


def run_again(folder, large, output, size, right, context, launcher=(MPIRUN,), more=()):
    """Runs the same command, with further options ``more``, on this number of ranks, or in one process without a
    launcher (0). Requires the right bytes and no other files. Returns whether the run resumed."""
    code, out, err = Ranks(folder, size, [*command_of(large, output), *more], launcher=launcher).end()
    assert code == 0, f"{context}: {out}{err}"
    assert output.read_bytes() == right, f"{context}: different bytes"
    assert [path.name for path in folder.iterdir()] == ["out.h5"], context
    assert err.count(GOES_ON) <= 1, err
    return GOES_ON in err


def wait_for_records(folder, started):
    """Waits until the first batches are recorded or the run has ended; returns False on a timeout."""
    journal = folder / ".out.h5.raddle-journal"

    def is_recorded():
        try:
            # The journal's header is shorter.
            return journal.stat().st_size > 500
        except FileNotFoundError:
            return False

    return wait_for(lambda: is_recorded() or started.process.poll() is not None)


@pytest.fixture(scope="session")
def merged(large, tmp_path_factory):
    """Returns the right output of the large merge, and the time that three ranks take for it."""
    folder = tmp_path_factory.mktemp("right")
    started = time.monotonic()
    code, out, err = Ranks(folder, 3, command_of(large, folder / "out.h5")).end()
    assert code == 0, out + err
    return (folder / "out.h5").read_bytes(), time.monotonic() - started
