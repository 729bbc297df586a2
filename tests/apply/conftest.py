"""What the tests of `raddle apply` share: the command, programs in C, and what they are compiled with."""

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
# A folder into which Debian's packages of MPICH are unpacked (`dpkg -x`), where they are not to be installed.
MPICH_ROOT = Path(os.environ.get("MPICH_ROOT", "/"))


@dataclass
class Mpi:
    """One of Debian's MPIs and the parallel libhdf5 that is built with it."""

    name: str
    library: str
    launcher: str
    include: Path
    # What a program in C is compiled with and by.
    compiler: str
    flags: list
    # What its launcher takes beside `-n`, and finds in the environment.
    options: list = field(default_factory=list)
    variables: dict = field(default_factory=dict)

    def start(self, size):
        """The beginning of a command line."""
        return [self.launcher, *self.options, "-n", str(size)]


def open_mpi():
    """Debian's Open MPI, or any in its place; it has to be asked to start ranks for root, and more of them than cores."""
    folder, launcher = "/usr/lib/x86_64-linux-gnu/hdf5/openmpi", shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    compiler, include = shutil.which("mpicc.openmpi") or shutil.which("mpicc"), Path("/usr/include/hdf5/openmpi")
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return Mpi("openmpi", "libhdf5_openmpi.so.103", launcher, include, compiler, [f"-I{include}", f"-L{folder}", "-lhdf5"],
               ["--oversubscribe"], variables)


def mpich():
    """Debian's MPICH, installed or unpacked; its compiler would look for it where it is to be installed."""
    libraries, include = MPICH_ROOT / "usr/lib/x86_64-linux-gnu", MPICH_ROOT / "usr/include/hdf5/mpich"
    launcher = shutil.which("mpiexec.mpich", path=MPICH_ROOT / "usr/bin")
    flags = [f"-I{include}", f"-I{MPICH_ROOT / 'usr/include/x86_64-linux-gnu/mpich'}", f"-L{libraries / 'hdf5/mpich'}", "-lhdf5",
             f"-L{libraries}", "-lmpich"]
    variables = {"LD_LIBRARY_PATH": str(libraries)} if MPICH_ROOT != Path("/") else {}
    return Mpi("mpich", "libhdf5_mpich.so.103", launcher, include, "cc", flags, [], variables)


MPIS = {"openmpi": open_mpi, "mpich": mpich}


def found(name):
    """An MPI, where it is there."""
    mpi = MPIS[name]()
    if not mpi.launcher or not mpi.compiler or not (mpi.include / "hdf5.h").exists():
        pytest.skip(f"no {mpi.name} with its libhdf5")
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


@pytest.fixture(params=MPIS)
def mpi(request):
    """Each MPI in turn."""
    return found(request.param)


@pytest.fixture
def other(mpi):
    """Another MPI than ``mpi``."""
    return found(*(MPIS.keys() - {mpi.name}))


@pytest.fixture
def parallel(mpi, tmp_path):
    """Compiles a program with the libhdf5 of an MPI."""
    return lambda name: compiled(tmp_path, name, mpi.flags, mpi.compiler)


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
