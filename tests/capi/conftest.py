"""Installs the IDX C library for the tests, and compiles programs against it.

The files of the library are compared with those of the Python package in python/, with the compiled part from `make
python`.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
# Folder of the library built by cargo.
BUILT = Path(os.environ.get("RADDLE_CAPI", ROOT / "target/debug")).resolve()
MPICC = os.environ.get("MPICC", "mpicc")
MPIF90 = os.environ.get("MPIF90", "mpif90")
MPIRUN = os.environ.get("MPIRUN", "mpirun")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
# Much longer than any run; a run that hangs is killed.
TIMEOUT_S = 120


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


def run(command, folder, expect=0, **more):
    command = [str(word) for word in command]
    environment = {
        **os.environ,
        # Open MPI requires these to run as root and with more ranks than cores; MPICH ignores them.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        **more,
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    expected = expect if isinstance(expect, set) else {expect}
    assert done.returncode in expected, f"{shlex.join(command)}: rc {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


class Installed:
    """The library in a separate folder, and programs compiled against it."""

    def __init__(self, folder):
        # A name that unquoted shell or sed text would break.
        self.prefix = folder / "a & b"
        self.programs = folder / "programs"
        self.programs.mkdir()
        run(["sh", ROOT / "scripts/install-capi.sh", self.prefix, BUILT], folder)

    def asked(self, *wanted):
        path = str(self.prefix / "lib/pkgconfig")
        return run(["pkg-config", *wanted, "raddle-idx"], self.prefix, PKG_CONFIG_PATH=path)[0].strip()

    def flags(self, *wanted):
        return shlex.split(self.asked(*wanted))

    @property
    def fortran_folder(self):
        return Path(self.asked("--variable=fortrandir"))

    def compile(self, name, compiler, sources, flags=()):
        program = self.programs / name
        if not program.exists():
            libraries = [*self.flags("--cflags", "--libs"), f"-Wl,-rpath,{self.prefix}/lib"]
            # A separate folder, because Fortran compilers leave module files.
            folder = self.programs / f"{name}.made"
            folder.mkdir()
            run([compiler, *flags, *sources, *libraries, "-o", program], folder)
        return program

    def c(self, source):
        return self.compile(source.stem, os.environ.get("CC", "cc"), [source], ["-std=c11", *STRICT])

    def mpi(self, source):
        # MPI's own header causes warnings that are not ours.
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-DUSE_MPI"]
        return self.compile(f"{source.stem}-mpi", MPICC, [source], flags)

    def fortran(self, source):
        module = self.fortran_folder / "raddle_idx.f90"
        flags = ["-std=f2008", "-Wall", "-Wextra", "-Werror"]
        return self.compile(f"{source.stem}-fortran", "gfortran", [module, source], flags)

    def mpi_fortran(self, source):
        folder = self.fortran_folder
        made = self.programs / "raddle_idx_mpi_fortran.o"
        strict = ["-Wall", "-Wextra", "-Werror"]
        run([MPICC, "-c", *strict, folder / f"{made.stem}.c", *self.flags("--cflags"), "-o", made], self.programs)
        return self.compile(f"{source.stem}-mpi-fortran", MPIF90, [folder / "raddle_idx.f90", source, made], ["-DUSE_MPI"])


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    return Installed(tmp_path_factory.mktemp("installed"))
