"""Fixtures shared by the tests of the Python package.

The tested package is the one in python/, with the compiled part from `make python`.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "python"
sys.path.insert(0, str(PACKAGES))

# A background job of a shell starts with SIGINT ignored, and its processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same cases in every CI run; HYPOTHESIS_PROFILE=search draws other ones, and more of them.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def environment():
    """Returns the environment of a process that finds the package."""
    return {**os.environ, "PYTHONPATH": str(PACKAGES)}


@pytest.fixture(scope="session")
def events(tmp_path_factory):
    """Returns a file of 400 events with tables of slices and of tracks, and the rows as arrays."""
    random = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("events") / "all.h5"
    tables = {"spill": {"evt": np.arange(400) * 3}}
    for name, most in (("slc", 4), ("trk", 9), ("unsorted", 3)):
        numbers = np.repeat(np.arange(400), random.integers(0, most, 400))
        if name == "unsorted":
            random.shuffle(numbers)
        tables[name] = {"evt": numbers * 3, "e": random.random(len(numbers)), "n": random.integers(0, 9, len(numbers))}
    with h5py.File(path, "w") as file:
        for table, columns in tables.items():
            for name, values in columns.items():
                file.create_dataset(f"{table}/{name}", data=values, chunks=(50,), compression="gzip")
            file[f"{table}/id"] = [f"{table} {row}" for row in range(len(columns["evt"]))]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    command = [sys.executable, "-m", "raddle", "keys", "add", str(path), "--keys", "/spill/evt"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return path, {name: columns | {"event": columns["evt"] // 3} for name, columns in tables.items()}


@pytest.fixture
def on_three_ranks(environment):
    """Returns a function that runs code on three ranks of mpi4py and expects "equal" from it, on machines with MPI."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    if subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, check=False).returncode:
        pytest.skip("mpi4py finds no library of MPI")

    def run(code, path):
        command = ["mpirun", "-n", "3", "--oversubscribe", "--allow-run-as-root", sys.executable, "-c", code, str(path)]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert finished.stdout == "equal\n", finished.stderr

    return run


@pytest.fixture
def pair(tmp_path):
    """Opens the file that a function writes, in raddle and in h5py."""
    import raddle

    opened = []

    def make(write, **options):
        path = tmp_path / f"file{len(opened)}.h5"
        with h5py.File(path, "w", **options) as file:
            write(file)
        opened.extend([raddle.open(path), h5py.File(path)])
        return opened[-2:]

    yield make
    for file in opened:
        file.close()


@pytest.fixture
def runs(tmp_path):
    """Three files of one kind, like those of an experiment, and their rows."""
    paths = []
    for number, rows in enumerate([100, 0, 57]):
        path = tmp_path / f"run{number + 1}.h5"
        with h5py.File(path, "w") as file:
            group = file.create_group("rec")
            group.attrs["detector"] = "near"
            for name, values in columns(number, rows).items():
                group.create_dataset(
                    name, data=values, chunks=(16, *values.shape[1:]), maxshape=(None, *values.shape[1:]),
                    compression="gzip", shuffle=True,
                )
        paths.append(path)
    return paths


def columns(number, rows):
    """Returns the columns of the file `number`."""
    random = np.random.default_rng(number)
    return {
        "evt": np.arange(rows, dtype="u4") + 1000 * number,
        "energy": random.normal(size=rows).astype("f4"),
        "map": random.integers(0, 4, size=(rows, 3, 5)).astype("u1"),
    }


@pytest.fixture(scope="module", params=["tree", "ntuple"])
def tree(tmp_path_factory, request):
    """An event file, with a tree or an RNTuple."""
    from event_files import columns, write_root

    path = tmp_path_factory.mktemp("events") / f"{request.param}.root"
    return write_root(path, columns(), request.param == "ntuple")
