"""Fixtures for the tests of `raddle apply`: the command, and C programs with their compilers and flags."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

RADDLE = os.environ.get("RADDLE", str(Path(__file__).parents[2] / "target/debug/raddle"))
PROGRAMS = Path(__file__).parent / "programs"
# Debian's serial HDF5.
SERIAL = ["-I/usr/include/hdf5/serial", "-L/usr/lib/x86_64-linux-gnu/hdf5/serial", "-lhdf5"]
# A folder into which Debian's packages of MPICH are unpacked (`dpkg -x`), if they cannot be installed.
MPICH_ROOT = Path(os.environ.get("MPICH_ROOT", "/"))


@dataclass
class Mpi:
    """One of Debian's MPIs and the parallel libhdf5 built with it."""

    name: str
    library: str
    launcher: str
    include: Path
    # The compiler of C programs, and its flags.
    compiler: str
    flags: list
    # Additional options of the launcher, besides `-n`, and its environment variables.
    options: list = field(default_factory=list)
    variables: dict = field(default_factory=dict)

    def start(self, size):
        """Returns the beginning of a command line."""
        return [self.launcher, *self.options, "-n", str(size)]


def open_mpi():
    """Returns Debian's Open MPI, or its replacement; it needs options to start ranks as root, and more ranks than
    cores."""
    folder, launcher = "/usr/lib/x86_64-linux-gnu/hdf5/openmpi", shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    compiler, include = shutil.which("mpicc.openmpi") or shutil.which("mpicc"), Path("/usr/include/hdf5/openmpi")
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return Mpi("openmpi", "libhdf5_openmpi.so.103", launcher, include, compiler, [f"-I{include}", f"-L{folder}", "-lhdf5"],
               ["--oversubscribe"], variables)


def mpich():
    """Returns Debian's MPICH, installed or unpacked; its compiler would search the folder where the package is to be
    installed."""
    libraries, include = MPICH_ROOT / "usr/lib/x86_64-linux-gnu", MPICH_ROOT / "usr/include/hdf5/mpich"
    launcher = shutil.which("mpiexec.mpich", path=MPICH_ROOT / "usr/bin")
    flags = [f"-I{include}", f"-I{MPICH_ROOT / 'usr/include/x86_64-linux-gnu/mpich'}", f"-L{libraries / 'hdf5/mpich'}", "-lhdf5",
             f"-L{libraries}", "-lmpich"]
    variables = {"LD_LIBRARY_PATH": str(libraries)} if MPICH_ROOT != Path("/") else {}
    return Mpi("mpich", "libhdf5_mpich.so.103", launcher, include, "cc", flags, [], variables)


MPIS = {"openmpi": open_mpi, "mpich": mpich}


def found(name):
    """Returns an MPI, or skips the test if it is missing."""
    mpi = MPIS[name]()
    if not mpi.launcher or not mpi.compiler or not (mpi.include / "hdf5.h").exists():
        pytest.skip(f"{mpi.name} or its libhdf5 is not installed")
    return mpi


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
    """Returns a program of this folder, compiled."""
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    subprocess.run([compiler, "-O1", str(source), "-o", str(program), *flags, "-lm", "-ldl", "-lpthread"], check=True)
    return program


@pytest.fixture
def serial(tmp_path):
    """Compiles a program with Debian's libhdf5."""
    if not Path("/usr/include/hdf5/serial/hdf5.h").exists():
        pytest.skip("libhdf5-dev is not installed")
    return lambda name: compiled(tmp_path, name, SERIAL)


@pytest.fixture
def serial_flags(serial):
    """Returns the flags that compile programs with Debian's libhdf5."""
    return SERIAL


@pytest.fixture(params=MPIS)
def mpi(request):
    """Each MPI, one after another."""
    return found(request.param)


@pytest.fixture
def other(mpi):
    """An MPI other than ``mpi``."""
    return found(*(MPIS.keys() - {mpi.name}))


@pytest.fixture
def parallel(mpi, tmp_path):
    """Compiles a program with the libhdf5 of an MPI."""
    return lambda name: compiled(tmp_path, name, mpi.flags, mpi.compiler)


@pytest.fixture
def bundled(tmp_path):
    """Compiles a program statically with the HDF5 from raddle's build."""
    target = Path(__file__).parents[2] / "target/debug/build"
    libraries = sorted(target.glob("hdf5-metno-src-*/out/lib/libhdf5.a"), key=lambda path: path.stat().st_mtime)
    zlib = sorted(target.glob("libz-sys-*/out/**/libz.a"))
    if not libraries or not zlib:
        pytest.skip("target/debug/build has no static HDF5")
    include = libraries[-1].parents[1] / "include"
    flags = ["-static", f"-I{include}", str(libraries[-1]), str(zlib[-1])]
    return lambda name: compiled(tmp_path, name, flags)
