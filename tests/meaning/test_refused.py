"""Files whose parts belong together are refused by name, with the tool that merges them; bytes are merged on
request."""

import h5py
import numpy as np
import pytest
from merging import Merging
from refused_formats import KINDS, MATLAB, hdf_eos, matlab_empty, write_all

MERGING = Merging("refused", None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_refused_by_name(tmp_path, kind):
    block, tool = KINDS[kind]
    MERGING.refused(write_all(tmp_path, kind, block), names=[tool, "--convention none"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_such_file_among_others_is_refused(tmp_path, kind):
    block, tool = KINDS[kind]
    path, other = write_all(tmp_path, kind, block)[0], tmp_path / "zz.h5"
    with h5py.File(other, "w") as file:
        file["rows"] = np.arange(3)
    MERGING.refused([other, path], "--join", "outer", names=[tool])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_bytes_are_merged_on_demand(tmp_path, raddle, kind):
    paths = write_all(tmp_path, kind, KINDS[kind][0])
    options = ["--convention", "none", "--scalars", "first", "--attributes", "first"]
    raddle("merge", *paths, "-o", tmp_path / "out.h5", *options)
    with h5py.File(paths[0]) as first, h5py.File(tmp_path / "out.h5") as merged:
        rows = {}
        first.visititems(lambda name, item: rows.update({name: item.shape}) if isinstance(item, h5py.Dataset) else None)
        for name, shape in rows.items():
            if shape:
                assert merged[name].shape == (2 * shape[0], *shape[1:]), name


def test_numbers_of_matlab_are_refused_saying_which_axis_is_the_first(tmp_path):
    """The merged file would lack the header of MATLAB, and its axes are reversed."""

    def numbers(file, number):
        file["x"] = np.full((3, 2), float(number))
        file["x"].attrs["MATLAB_class"] = np.bytes_(b"double")

    MERGING.refused(write_all(tmp_path, numbers, MATLAB), names=["/x", "MATLAB", "last axis", "--convention none"])


def test_empty_arrays_of_matlab_are_not_concatenated(tmp_path):

    def judge(output, inputs):
        with h5py.File(output) as merged:
            assert merged["e"][:].tolist() in ([0, 3], [0, 6]), "another shape"

    MERGING.equal_or_refused(write_all(tmp_path, matlab_empty, MATLAB), judge=judge)


def test_a_file_alone_is_not_refused(tmp_path, raddle):
    """Nothing is concatenated: a merge of one file writes it in another layout."""
    path = write_all(tmp_path, hdf_eos)[0]
    raddle("merge", path, "-o", tmp_path / "out.h5", "--convention", "none")

    def judge(output, inputs):
        with h5py.File(output) as merged:
            assert merged["HDFEOS/SWATHS/O3/Data Fields/O3"].shape == (4,)

    MERGING.equal_or_refused([path], output=tmp_path / "alone.h5", judge=judge)
