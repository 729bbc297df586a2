"""Judges merges of HDFStore by the frames that pandas reads from them."""

import pandas as pd
from merging import NoConcatenation


def judge(output, inputs):
    """Each frame must be the concatenation of the inputs'. Rows of a default index may be renumbered."""
    keys = _keys(output)
    for key in keys:
        found = pd.read_hdf(output, key)
        parts = []
        for path in inputs:
            try:
                parts.append(pd.read_hdf(path, key))
            except KeyError:
                raise NoConcatenation(f"{key} is missing") from None
        _agree(key, parts)
        expected = pd.concat(parts)
        is_default = all(part.index.name is None and part.index.equals(pd.RangeIndex(len(part))) for part in parts)
        if is_default and found.index.tolist() != expected.index.tolist():
            expected = expected.reset_index(drop=True)
        if isinstance(found, pd.Series):
            pd.testing.assert_series_equal(found, expected, check_freq=False, check_index_type=False)
        else:
            pd.testing.assert_frame_equal(found, expected, check_freq=False, check_index_type=False)
        _usable(output, key, len(found))
    for path in inputs:
        assert _keys(path) == keys


def _keys(path):
    """Returns the keys of frames; categories are stored as separate frames, below ``meta``."""
    with pd.HDFStore(path, "r") as store:
        return sorted(key for key in store.keys() if "/meta/" not in key)


def _agree(key, parts):
    for part in parts[1:]:
        if isinstance(part, pd.DataFrame):
            if part.columns.tolist() != parts[0].columns.tolist():
                raise NoConcatenation(f"columns of {key} differ")
            if part.dtypes.tolist() != parts[0].dtypes.tolist():
                raise NoConcatenation(f"types of {key} differ")
            for name, dtype in part.dtypes.items():
                if isinstance(dtype, pd.CategoricalDtype):
                    pair = [each[name].cat.categories.tolist() for each in [part, parts[0]]]
                    if pair[0] != pair[1]:
                        raise NoConcatenation(f"categories of {key} differ")
        if part.index.name != parts[0].index.name or part.index.dtype != parts[0].index.dtype:
            raise NoConcatenation(f"indexes of {key} differ")


def _usable(output, key, rows):
    with pd.HDFStore(output, "r") as store:
        storer = store.get_storer(key)
        assert storer.nrows == rows
        assert len(store.select(key, start=rows // 2)) == rows - rows // 2
        columns = storer.data_columns
        if "whole" in columns:
            selected = store.select(key, where="whole >= 50")
            assert len(selected) == (store[key].reset_index()["whole"] >= 50).sum()
        assert storer.table.attrs.NROWS == rows, "NROWS"
