"""The report about machine and installation: what Python adds to it, and its form as an object."""

import json
import pickle
import re
import sys

import pytest
import raddle
from conftest import ROOT
from interpreter import python
from raddle import _doctor
from raddle.errors import UsageError

OF_COMMAND = ["raddle", "processor", "memory", "folder", "filters", "mpi", "apply"]
OF_PYTHON = ["python", "packages", "gpu"]


def check(report, section, name):
    """Returns a check of a report as JSON."""
    checks = next(found["checks"] for found in report["sections"] if found["name"] == section)
    return next(found for found in checks if found["name"] == name)


def test_a_report_has_the_sections_of_the_command_and_of_python(tmp_path):
    report = raddle.doctor(tmp_path)
    assert [section.name for section in report.sections] == OF_COMMAND + OF_PYTHON and report.exit_code == 0
    assert repr(report).startswith("raddle\n") and "packages\n" in str(report) and "<pre>" in report._repr_html_()
    assert all(len(line) <= 80 or " /" in line for line in repr(report).splitlines())
    assert check(report.to_dict(), "packages", "numpy")["value"] == __import__("numpy").__version__
    assert not list(tmp_path.iterdir())
    again = pickle.loads(pickle.dumps(report))
    assert again == report and repr(again) == repr(report)


def test_a_folder_that_does_not_exist_is_broken(tmp_path):
    report = raddle.doctor(tmp_path / "none")
    assert report.exit_code == 5 and check(report.to_dict(), "folder", "path")["mark"] == "broken"


def test_the_command_prints_the_same(environment, tmp_path):
    printed = python(environment, "-m", "raddle", "doctor", "--json", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    report = json.loads(printed.stdout)
    assert [section["name"] for section in report["sections"]] == OF_COMMAND + OF_PYTHON
    assert check(report, "python", "version")["value"] == ".".join(map(str, sys.version_info[:3]))
    text = python(environment, "-m", "raddle", "doctor", cwd=tmp_path)
    assert text.returncode == 0 and "\npackages\n" in text.stdout
    assert python(environment, "-m", "raddle", "doctor", "--folder", "none", cwd=tmp_path).returncode == 5
    assert "--folder" in python(environment, "-m", "raddle", "doctor", "--help").stdout


def test_the_command_runs_its_self_test(environment, tmp_path):
    run = python({**environment, "TMPDIR": str(tmp_path)}, "-m", "raddle", "self-test")
    assert run.returncode == 0 and "steps succeeded" in run.stdout, run.stdout + run.stderr
    assert not list(tmp_path.iterdir())


def test_a_python_without_packages_is_told_how_to_get_them(environment, tmp_path):
    # -S: without the folder of packages, in which metadata is looked up.
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "python")!r})
from raddle import _doctor
print(__import__("json").dumps(_doctor.sections()))
"""
    run = python(environment, "-S", "-c", code, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    report = {"sections": json.loads(run.stdout)}
    assert check(report, "packages", "numpy")["mark"] == "broken"
    h5py = check(report, "packages", "h5py")
    assert (h5py["mark"], h5py["remedy"]) == ("missing", "pip install 'raddle[h5py]'") and h5py["without"]
    assert check(report, "packages", "uproot")["mark"] == "note"


@pytest.mark.parametrize(
    ("version", "mark"), [("55.0.0", "ok"), ("55", "ok"), ("55.0.0rc1", "ok"), ("100.1", "ok"), ("54.9.9", "note"), ("nonsense", "note"), (None, "missing")]
)
def test_versions_are_compared_as_numbers(version, mark):
    package = next(package for package in _doctor.PACKAGES if package.name == "datafusion")
    found = _doctor._package(package, version)
    assert found["mark"] == mark and ("without" in found) == (mark == "missing") and ("remedy" in found) == (mark != "ok")


def test_extras_and_lowest_versions_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib", reason="new in Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    required = {}
    for extra, requirements in {None: project["dependencies"], **extras}.items():
        for requirement in requirements:
            name, minimum = re.match(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?", requirement).groups()
            required[name] = (extra, minimum)
    known = {package.name: (package.extra, package.minimum) for package in _doctor.PACKAGES}
    of_gpu = {"cupy-cuda12x", "cupy-cuda13x", "nvidia-libnvcomp-cu12", "nvidia-libnvcomp-cu13"}
    assert {name: known.get(name) for name in required if name not in of_gpu} == {
        name: found for name, found in required.items() if name not in of_gpu
    }
    assert all(package.extra in extras for package in _doctor.PACKAGES if package.extra)
    assert {"gpu", "gpu-cuda13"} <= set(extras)


def test_the_page_of_the_package_names_all_extras():
    tomllib = pytest.importorskip("tomllib", reason="new in Python 3.11")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    paragraph = next(part for part in (ROOT / "python/README.md").read_text().split("\n\n") if part.startswith("Extras: "))
    assert set(re.findall(r"\[([\w-]+)\]", paragraph)) == set(extras)


def test_a_gpu_needs_a_driver_a_device_and_packages():
    def absent():
        raise UsageError("nvCOMP is not installed: pip install 'raddle[gpu]'")

    def marks(driver, try_gpu=absent):
        return [(found["name"], found["mark"]) for found in _doctor.of_gpu(driver, try_gpu)]

    assert marks(None) == [("driver", "missing")]
    assert marks(_doctor.Driver((12, 8), ())) == [("driver", "ok"), ("devices", "missing")]
    one = _doctor.Driver((12, 8), ("NVIDIA H100",))
    assert marks(one) == [("driver", "ok"), ("devices", "ok"), ("nvCOMP", "missing")]
    assert marks(one, lambda: "6.0, with cupy 14")[2] == ("nvCOMP", "ok")
    assert _doctor.of_gpu(one, absent)[2]["remedy"] == "pip install 'raddle[gpu]'"
    newer = _doctor.Driver((13, 0), ("NVIDIA H100",))
    assert _doctor.of_gpu(newer, absent)[2]["remedy"] == "pip install 'raddle[gpu-cuda13]'"
