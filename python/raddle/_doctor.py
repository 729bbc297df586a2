"""What Python has and lacks for raddle, and `doctor`, which reports it with everything else.

The sections made here have the form of those of the command (``raddle doctor --json``), which prints them with its own.
Packages are looked up and not imported: importing all of them takes seconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from raddle import _core
from raddle._keywords import Path
from raddle._reports import DoctorReport
from raddle.errors import RaddleError

Check = dict[str, Any]
"""A fact: ``name``, ``mark``, ``found``, and if they apply ``value``, ``without``, ``remedy``, ``exit_code``."""

_USAGE = 2
"""Exit code of a broken installation, as of an invalid command line."""


@dataclass(frozen=True)
class Package:
    """A Python package that raddle uses, or whose users read raddle's files."""

    name: str
    without: str | None
    """What the user cannot do without it; None if raddle does not use it."""
    extra: str | None = None
    """Extra of raddle that installs it."""
    minimum: str | None = None
    """Lowest version that raddle supports."""

    def command(self) -> str:
        """Returns the command that installs it."""
        return f"pip install 'raddle[{self.extra}]'" if self.extra else f"pip install {self.name}"


PACKAGES = (
    Package("numpy", "use raddle in Python at all", None, "1.24"),
    Package("h5py", "read in Python what raddle leaves to it, such as references", "h5py", "3.8"),
    Package("hdf5plugin", "read zstd and lz4 with h5py"),
    Package("xarray", "open files with xarray's engine raddle", "xarray", "2024.7"),
    Package("dask", "use datasets as dask arrays", "dask"),
    Package("pandas", "get tables as pandas data frames", "pandas", "2"),
    Package("pyarrow", "get scans as tables and datasets of Arrow"),
    Package("polars", "use raddle.scan_polars"),
    Package("datafusion", "run SQL queries (raddle.sql, raddle sql)", "sql", "55"),
    Package("boost-histogram", "fill histograms (Scan.hist)", "hist", "1.4"),
    Package("awkward", "get events and lists as awkward arrays", "awkward", "2"),
    Package("fastparquet", "write references to chunks as Parquet", "parquet", "2024.11"),
    Package("mpi4py", "share the work of Python functions among ranks"),
    Package("netCDF4", None),
    Package("anndata", None),
    Package("uproot", None),
)


def doctor(folder: Path = ".") -> DoctorReport:
    """Reports what this machine, this raddle and this Python have and lack, as ``raddle doctor`` does.

    Parameters
    ----------
    folder
        Folder in which to try what raddle does with outputs. Nothing remains in it.

    Returns
    -------
    DoctorReport
        Sections of checks. Printing it shows the text of the command.

    Examples
    --------
    >>> import raddle
    >>> report = raddle.doctor()
    >>> report.sections[0].name
    'raddle'
    """
    values, text = _core.doctor(os.fsdecode(folder), json.dumps(sections()))
    return DoctorReport(json.loads(values), text)


def sections() -> list[dict[str, Any]]:
    """Returns the sections about Python, its packages, and GPUs."""
    return [
        {"name": "python", "checks": _interpreter()},
        {"name": "packages", "checks": [_package(package, _version(package.name)) for package in PACKAGES]},
        {"name": "gpu", "checks": _gpu()},
    ]


def _interpreter() -> list[Check]:
    version, place = platform.python_version(), os.path.dirname(os.path.abspath(_core.__file__))
    found = f"{platform.python_implementation()} {version}"
    checks = [
        {"name": "version", "mark": "ok", "found": found, "value": version},
        {"name": "executable", "mark": "ok", "found": sys.executable or "unknown", "value": sys.executable},
        {"name": "raddle", "mark": "ok", "found": place, "value": place},
    ]
    installed = _version("raddle")
    if installed is not None and _numbers(installed) != _numbers(_core.__version__):
        found = f"{_core.__version__}, but pip installed {installed}: another copy comes first on the path of modules"
        remedy = f"remove {place}, or correct PYTHONPATH"
        checks.append({"name": "copies", "mark": "note", "found": found, "remedy": remedy})
    return checks


def _version(name: str) -> str | None:
    """Returns the version of an installed package; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers with which a version begins, without zeros at the end: 2.0.1rc1 gives (2, 0, 1)."""
    numbers = [int(number) for number in re.match(r"(?:\d+(?:\.\d+)*)?", version)[0].split(".") if number]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _package(package: Package, version: str | None) -> Check:
    check: Check = {"name": package.name, "mark": "ok", "found": version, "value": version}
    if version is None and package.without is None:
        return {**check, "mark": "note", "found": "not installed; raddle does not need it"}
    is_old = version is not None and package.minimum is not None and _numbers(version) < _numbers(package.minimum)
    if version is not None and not is_old:
        return check
    found = f"{version}, older than {package.minimum}" if is_old else "not installed"
    check = {**check, "found": found, "remedy": package.command()}
    if package.name == "numpy":
        # The package depends on it.
        return {**check, "mark": "broken", "exit_code": _USAGE}
    if is_old:
        return {**check, "mark": "note"}
    return {**check, "mark": "missing", "without": package.without}


@dataclass(frozen=True)
class Driver:
    """What the driver of NVIDIA reports."""

    cuda: tuple[int, int]
    """Highest version of CUDA that it supports."""
    devices: tuple[str, ...]
    """Names of the GPUs."""


def _gpu() -> list[Check]:
    return of_gpu(_driver(), _try_gpu)


def of_gpu(driver: Driver | None, try_gpu: Callable[[], str]) -> list[Check]:
    """Describes what `raddle.gpu` needs; ``try_gpu`` returns a description, or raises a `RaddleError`."""
    without = "read columns to a GPU (raddle.gpu)"
    if driver is None:
        found = "no driver of NVIDIA (libcuda.so.1)"
        remedy = "install the driver, on a machine with an NVIDIA GPU"
        return [{"name": "driver", "mark": "missing", "found": found, "without": without, "remedy": remedy}]
    version = ".".join(map(str, driver.cuda))
    checks: list[Check] = [{"name": "driver", "mark": "ok", "found": f"for CUDA up to {version}", "value": version}]
    if not driver.devices:
        remedy = "on a cluster, ask for a GPU; check CUDA_VISIBLE_DEVICES"
        return [*checks, {"name": "devices", "mark": "missing", "found": "none", "without": without, "remedy": remedy}]
    checks.append({"name": "devices", "mark": "ok", "found": ", ".join(driver.devices), "value": list(driver.devices)})
    extra = "gpu-cuda13" if driver.cuda >= (13, 0) else "gpu"
    try:
        found = try_gpu()
    except RaddleError as error:
        found, remedy = str(error).split("\n")[0], f"pip install 'raddle[{extra}]'"
        checks.append({"name": "nvCOMP", "mark": "missing", "found": found, "without": without, "remedy": remedy})
    else:
        checks.append({"name": "nvCOMP", "mark": "ok", "found": found})
    return checks


def _try_gpu() -> str:
    """Loads what `raddle.gpu` uses, and returns its versions."""
    from raddle._cuda import Cuda

    device = Cuda()
    return f"{'.'.join(map(str, device.nvcomp.version))}, with cupy {device.cupy.__version__}"


def _driver() -> Driver | None:
    """Asks the driver itself, without any package."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version, count = ctypes.c_int(), ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    cuda = (version.value // 1000, version.value % 1000 // 10)
    if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return Driver(cuda, ())
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        known = library.cuDeviceGetName(name, len(name), number) == 0
        names.append(name.value.decode(errors="replace") if known else "unnamed")
    return Driver(cuda, tuple(names))
