"""h5py's and xarray's own tests, which read with raddle, and why some of them fail.

Plugins in upstream/ make the tests read with raddle. A test that fails without a reason here is a defect, and so is a test
with a reason that passes.
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import PACKAGES, ROOT

FOLDER = ROOT / "tests/python"

ANY_ORDER = "a list may be in any order and repeat elements"
UNWRITTEN = "the values were never written: h5py returns what was in memory"
PREFIX = "folders of other files are properties of one opening of a file"
LINK_OPTIONS = "external links are always opened for reading, without options"

H5PY = {
    "Test1DFloat.test_indexlist_monotonic_negative": ANY_ORDER,
    "Test1DFloat.test_indexlist_nonmonotonic": ANY_ORDER,
    "Test1DFloat.test_indexlist_repeated": ANY_ORDER,
    "TestFillTime.test_fill_time_never": UNWRITTEN,
    "TestFillTime.test_resize_chunk_fill_time_never": UNWRITTEN,
    "TestExternal.test_contents_efile_prefix": PREFIX,
    "test_virtual_prefix": PREFIX,
    "test_get_elink_mode_arg": LINK_OPTIONS,
    "test_get_elink_mode_arg_exception": LINK_OPTIONS,
    "test_get_elink_swmr_arg_from_ro_file": LINK_OPTIONS,
    "test_get_elink_locking_arg": LINK_OPTIONS,
}

# Modules about reading. The others test writing, or the parts of h5py below its objects.
MODULES = [
    "attribute_create", "attrs", "attrs_data", "base", "big_endian_file", "completions", "dataset", "dataset_getitem", "datatype",
    "dimension_scales", "dims_dimensionproxy", "dtype", "filters", "group", "native_complex", "npystrings", "objects",
    "selections", "slicing", "vds",
]  # fmt: skip

NOT_PICKLED = "a file that was opened from a file object or from bytes cannot be sent to another process"

XARRAY = {
    "TestH5NetCDFFileObject.test_decode_utf8_warning": "the warning does not call the object one of h5netcdf",
    "TestH5NetCDFFileObject.test_phony_dims_warning": "axes without names have one naming, and no warning about the choice",
    "TestH5NetCDFDatatreeIO.test_phony_dims_warning": "axes without names have one naming, and no warning about the choice",
    "TestH5NetCDFFileObject.test_open_badbytes": "bytes that are not HDF5 are a DamagedError",
    "TestH5NetCDFFileObject.test_fsspec": NOT_PICKLED,
    "TestH5NetCDFInMemoryData.test_pickle_open_dataset_from_bytes": NOT_PICKLED,
    "TestH5NetCDFDatatreeIO.test_compute_false": "the tree is read from the file, which h5netcdf has not written yet",
    "test_h5netcdf_open_kwargs": "URLs are opened by fsspec, not by this engine",
}


def failures(environment, tmp_path, plugin, modules, *options):
    """Runs tests of a package with a plugin, and returns the names of those that failed, and the number of those that passed."""
    report = tmp_path / "report.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", plugin, "-p", "no:cacheprovider", f"--junitxml={report}", *options,
        "--pyargs", *modules,
    ]  # fmt: skip
    folders = f"{PACKAGES}:{FOLDER}:{FOLDER / 'upstream'}"
    subprocess.run(
        command, env={**environment, "PYTHONPATH": folders}, cwd=tmp_path, capture_output=True, timeout=900, check=False
    )
    failed, passed = {}, 0
    for case in ElementTree.parse(report).iter("testcase"):
        owner = case.get("classname").rpartition(".")[2]
        name = case.get("name").partition("[")[0]
        if case.find("failure") is not None or case.find("error") is not None:
            found = case.find("failure") if case.find("failure") is not None else case.find("error")
            failed[f"{owner}.{name}" if owner.startswith("Test") else name] = found.get("message")
        elif case.find("skipped") is None:
            passed += 1
    return failed, passed


def test_h5py_s_own_tests(environment, tmp_path):
    pytest.importorskip("h5py.tests", reason="h5py is installed without its tests")
    modules = [f"h5py.tests.test_{name}" for name in MODULES]
    failed, passed = failures(environment, tmp_path, "through_h5py", modules)
    assert failed.keys() == H5PY.keys(), {name: text for name, text in failed.items() if name not in H5PY}
    assert passed > 690


def test_xarray_s_own_tests_of_h5netcdf(environment, tmp_path):
    pytest.importorskip("xarray.tests", reason="xarray is installed without its tests")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    modules = ["xarray.tests.test_backends", "xarray.tests.test_backends_datatree"]
    # The tests with dask and those of paths are also those of file objects.
    chosen = "H5NetCDF and not ViaDask and (not H5NetCDFData or H5NetCDFDatatree)"
    failed, passed = failures(environment, tmp_path, "through_xarray", modules, "-k", chosen)
    assert failed.keys() == XARRAY.keys(), {name: text for name, text in failed.items() if name not in XARRAY}
    assert passed > 150
