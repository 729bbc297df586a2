"""Judges merges of ``.h5ad`` files by ``anndata.concat``: the output must read as anndata's concatenation of the
inputs.

Both are compared as read from a file, with their types. The storage of a sparse matrix (CSR or CSC, order and width of
indices, stored zeros) does not matter, its values do. docs/internals/conventions.md describes how concat treats each
element.
"""

import tempfile
import warnings
from pathlib import Path

import anndata
import anndata_files
import numpy as np
import pandas as pd
import scipy.sparse as sparse
from merging import NoConcatenation


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anndata.read_h5ad(path)


def options(how):
    """Returns the options of the command for arguments of concat."""
    made = []
    for name, value in how.items():
        if name == "uns_merge":
            continue
        made += {
            "pairwise": lambda value: ["--pairwise"],
            "index_unique": lambda value: ["--index-unique", value],
        }.get(name, lambda value, name=name: [f"--{name}", value])(value)
    return made


def judge(output, inputs, **how):
    """Asserts that ``output`` reads as anndata concatenates ``inputs`` with arguments ``how``. Without a ``join`` all
    must have the same genes, columns and keys."""
    parts = [read(path) for path in inputs]
    if "join" not in how:
        _have_the_same(parts, how.get("axis", "obs"))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        try:
            expected = anndata.concat(parts, **{"merge": "same", "uns_merge": "same", **how})
            # As it reads after writing, for the sake of types; an object that cannot be written cannot be merged
            # either.
            path = anndata_files.write(Path(folder) / "expected.h5ad", expected)
        except Exception as error:
            raise NoConcatenation(f"anndata: {error!r}") from error
        same(read(output), read(path))


def _have_the_same(parts, axis):
    along, across = ("obs", "var") if axis == "obs" else ("var", "obs")
    for what, of in {
        f"{across}_names": lambda part: {*getattr(part, f"{across}_names")},
        f"columns of {along}": lambda part: {*getattr(part, along).columns},
        "layers": lambda part: {*part.layers},
        f"{along}m": lambda part: {*getattr(part, f"{along}m")},
        f"widths of {along}m": lambda part: {name: each.shape[1:] for name, each in getattr(part, f"{along}m").items()},
    }.items():
        if any(of(part) != of(parts[0]) for part in parts[1:]):
            raise NoConcatenation(f"{what} differ")


def same(found, expected):
    """Asserts that two objects are equal."""
    assert found.obs_names.tolist() == expected.obs_names.tolist()
    assert found.var_names.tolist() == expected.var_names.tolist()
    same_value("obs", found.obs, expected.obs)
    same_value("var", found.var, expected.var)
    assert (found.X is None) == (expected.X is None), "X"
    if expected.X is not None:
        same_value("X", found.X, expected.X)
    for name in ["layers", "obsm", "varm", "obsp", "varp", "uns"]:
        same_value(name, dict(getattr(found, name)), dict(getattr(expected, name)))
    assert (found.raw is None) == (expected.raw is None), "raw"
    if expected.raw is not None:
        assert found.raw.var_names.tolist() == expected.raw.var_names.tolist()
        same_value("raw/var", found.raw.var, expected.raw.var)
        same_value("raw/varm", dict(found.raw.varm), dict(expected.raw.varm))
        same_value("raw/X", found.raw.X, expected.raw.X)


def same_value(name, found, expected):
    """Asserts that two elements are equal."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), name
        for key in expected:
            same_value(f"{name}/{key}", found[key], expected[key])
    elif isinstance(expected, pd.DataFrame):
        # concat drops the name of an index.
        found, expected = found.rename_axis(index=None), expected.rename_axis(index=None)
        assert list(found.columns) == list(expected.columns), name
        pd.testing.assert_frame_equal(found, expected, obj=name, check_names=False, check_exact=True)
    elif sparse.issparse(expected):
        assert sparse.issparse(found), f"{name} is dense"
        same_value(name, found.toarray(), expected.toarray())
    elif isinstance(expected, pd.api.extensions.ExtensionArray):
        assert type(found) is type(expected), f"{name} is {type(found)}"
        pd.testing.assert_extension_array_equal(found, expected, obj=name)
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray), f"{name} is {type(found)}"
        assert found.dtype == expected.dtype, f"{name}: {found.dtype} is not {expected.dtype}"
        np.testing.assert_array_equal(found, expected, err_msg=name)
    else:
        assert type(found) is type(expected) and (found == expected or found != found), f"{name}: {found} is not {expected}"
