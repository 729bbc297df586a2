"""What the tests of `raddle apply` share: the command, programs in C, and what they are compiled with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RADDLE = os.environ.get("RADDLE", str(Path(__file__).parents[2] / "target/debug/raddle"))
PROGRAMS = Path(__file__).parent / "programs"
# Debian's serial HDF5; Open MPI's parallel one.
SERIAL = ["-I/usr/include/hdf5/serial", "-L/usr/lib/x86_64-linux-gnu/hdf5/serial", "-lhdf5"]
PARALLEL = ["-I/usr/include/hdf5/openmpi", "-L/usr/lib/x86_64-linux-gnu/hdf5/openmpi", "-lhdf5"]


@pytest.fixture
def apply(tmp_path):
    """Runs a program under the command: ``apply(["--set", …], ["program", …])``; its log lines are in ``.log``."""

    def run(options, command, expect=0, **variables):
        log = tmp_path / "apply.log"
        log.unlink(missing_ok=True)
        words = [str(Path(RADDLE).resolve()), "apply", "--folder", str(tmp_path / "objects"), "--log", str(log)]
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), **variables}
        words += [*map(str, options), "--", *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment, cwd=tmp_path)
        assert done.returncode == expect, f"{words}\nrc {done.returncode}\n{done.stdout}{done.stderr}"
        done.log = log.read_text() if log.exists() else ""
        return done

    return run


def compiled(folder, name, flags, compiler="cc"):
    """A program of this folder, compiled."""
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    subprocess.run([compiler, "-O1", str(source), "-o", str(program), *flags, "-lm", "-ldl", "-lpthread"], check=True)
    return program


@pytest.fixture
def serial(tmp_path):
    """Compiles a program with Debian's libhdf5."""
    if not Path("/usr/include/hdf5/serial/hdf5.h").exists():
        pytest.skip("no libhdf5-dev")
    return lambda name: compiled(tmp_path, name, SERIAL)


@pytest.fixture
def serial_flags(serial):
    """How programs are compiled with Debian's libhdf5."""
    return SERIAL


@pytest.fixture
def parallel(tmp_path):
    """Compiles a program with Open MPI's libhdf5."""
    if not Path("/usr/include/hdf5/openmpi/hdf5.h").exists():
        pytest.skip("no libhdf5-openmpi-dev")
    mpicc = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpicc or not mpirun:
        pytest.skip("no Open MPI")
    return lambda name: (compiled(tmp_path, name, PARALLEL, mpicc), [mpirun, "--allow-run-as-root", "--oversubscribe"])


@pytest.fixture
def bundled(tmp_path):
    """Compiles a program statically with the HDF5 that raddle's build has made."""
    target = Path(__file__).parents[2] / "target/debug/build"
    libraries = sorted(target.glob("hdf5-metno-src-*/out/lib/libhdf5.a"), key=lambda path: path.stat().st_mtime)
    zlib = sorted(target.glob("libz-sys-*/out/**/libz.a"))
    if not libraries or not zlib:
        pytest.skip("no static HDF5 in target/debug/build")
    include = libraries[-1].parents[1] / "include"
    flags = ["-static", f"-I{include}", str(libraries[-1]), str(zlib[-1])]
    return lambda name: compiled(tmp_path, name, flags)
