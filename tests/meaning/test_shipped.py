"""Files of older versions, other platforms and odd types, which PyTables and h5py ship for their own tests.

Each is merged with a copy of itself. Everything that h5py and PyTables can read from it must occur twice.
"""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import tables
from merging import Merging

FILES = sorted([*Path(tables.__file__).parent.rglob("*.h5"), *(Path(h5py.__file__).parent / "tests/data_files").glob("*.h5")])
pytestmark = pytest.mark.filterwarnings("ignore")


def read(dataset):
    """Returns all values, or ``None`` if h5py has no type or no filter for them."""
    try:
        return dataset[()]
    except (OSError, TypeError, ValueError):
        return None


def judge_datasets(output, input):
    with h5py.File(input) as one, h5py.File(output) as merged:

        def compare(name, dataset):
            # Indexes of columns are left out: they belong to the rows of one file.
            if not isinstance(dataset, h5py.Dataset) or "/_i_" in f"/{name}":
                return
            values = read(dataset)
            if values is None or isinstance(values, h5py.Empty):
                return
            found = merged[name]
            assert found.dtype == dataset.dtype, name
            values = np.asarray(values)
            if dataset.ndim:
                axis = next((axis for axis, size in enumerate(dataset.maxshape) if size is None), 0)
                values = np.concatenate([values, values], axis)
            # As strings: a NaN equals only itself, and gaps in compounds have no value.
            assert repr(np.asarray(found[()]).astype(values.dtype).tolist()) == repr(values.tolist()), name

        one.visititems(compare)


def judge_tables(output, input):
    with tables.open_file(input) as one, tables.open_file(output) as merged:
        for node in one.walk_nodes("/", "Leaf"):
            if "/_i_" not in node._v_pathname and not isinstance(node, tables.UnImplemented):
                found = merged.get_node(node._v_pathname)
                assert isinstance(found, type(node)), node
                assert found.nrows == (2 * node.nrows if node.shape else node.nrows), node


def judge(output, inputs):
    judge_datasets(output, inputs[0])
    judge_tables(output, inputs[0])


MERGING = Merging("files of other projects", judge)
UNKNOWN_FILTERS = ("lzo", "blosc2")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_with_itself(tmp_path, raddle, file):
    inputs = [tmp_path / f"{number}.h5" for number in range(2)]
    for path in inputs:
        shutil.copyfile(file, path)
    outcome = MERGING.equal_or_refused(inputs, output=tmp_path / "out.h5")
    if isinstance(outcome, str):
        assert any(name in outcome for name in UNKNOWN_FILTERS), outcome
    else:
        raddle("verify", outcome, "--against", *inputs)


def test_there_are_such_files_and_the_judge_sees_a_difference(tmp_path):
    assert len(FILES) > 40
    file = next(file for file in FILES if file.name == "python3.h5")
    with pytest.raises(AssertionError):
        judge_datasets(file, file)
    with pytest.raises(AssertionError):
        judge_tables(file, file)
