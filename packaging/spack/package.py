# In a Spack repository this is packages/raddle/package.py.
from spack_repo.builtin.build_systems.generic import Package
from spack_repo.builtin.build_systems.python import PythonExtension, PythonPipBuilder

from spack.package import *


class Raddle(Package, PythonExtension):
    """raddle merges thousands of small HDF5 files into one file that is laid out for how it will be read, on the ranks of an
    MPI job and all cores, within a fixed memory budget. HDF5 is built in."""

    homepage = "https://github.com/raddle-data/raddle"
    url = "https://files.pythonhosted.org/packages/source/r/raddle/raddle-0.1.0.tar.gz"
    list_url = "https://pypi.org/simple/raddle/"
    git = homepage

    license("MIT OR Apache-2.0")

    version("main", branch="main")
    # Zeros until the release: scripts/versions.py hash
    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("mpi", default=True, description="Share the work of the command among MPI ranks")
    variant("python", default=False, description="Install the Python package")
    variant("capi", default=False, description="Install the C library that writes IDX, with headers and Fortran sources")

    depends_on("c", type="build")
    depends_on("rust@1.91:", type="build")
    # HDF5, which is built in, needs at least this version.
    depends_on("cmake@3.26:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi", when="+mpi")
    # libclang, for the bindings of MPI.
    depends_on("llvm+clang", type="build", when="+mpi")

    extends("python", when="+python")
    with when("+python"):
        depends_on("python@3.10:", type=("build", "run"))
        depends_on("py-pip", type="build")
        depends_on("py-maturin@1.9.4:1", type="build")
        depends_on("py-numpy@1.24:", type=("build", "run"))

    conflicts("platform=windows")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo-home"))
        env.set("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec: Spec, prefix: Prefix) -> None:
        # First, because its `raddle`, which starts Python, is replaced by the native command, which knows ranks.
        if spec.satisfies("+python"):
            # maturin before 1.10 writes wheels, but not the metadata alone, which pip would ask it for.
            maturin = Executable("maturin")
            maturin("build", "--release", "--compatibility", "linux", "--out", "wheels")
            pip(*PythonPipBuilder.std_args(self), f"--prefix={prefix}", *find("wheels", "*.whl"))
        features = ["--features", "mpi"] if spec.satisfies("+mpi") else []
        cargo = Executable("cargo")
        cargo("install", "--locked", "--no-track", "--force", "--path", "crates/cli", "--root", prefix, *features)
        sh = Executable("sh")
        sh("scripts/man-and-completions.sh", prefix.bin.raddle, prefix)
        if spec.satisfies("+capi"):
            sh("scripts/install-capi.sh", prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self) -> None:
        raddle = Executable(self.prefix.bin.raddle)
        with working_dir("install-test", create=True):
            raddle("demo", "--only-generate", "--keep", "inputs")
            raddle("merge", "inputs", "-o", "all.h5")
            raddle("verify", "all.h5", "--against", "inputs")
