"""Memory of conversions against its budget if the baskets of a tree, or the pages of an RNTuple, are long."""

import awkward as ak
import h5py
import numpy as np
import pytest
import uproot
from peak_memory import peak

BRANCHES = 16
ENTRIES = 500_000
BASKETS_LEN_BYTES = BRANCHES * ENTRIES * 8


@pytest.fixture(scope="module", params=["tree", "ntuple"])
def source(request, tmp_path_factory):
    """Returns a file that stores each of its columns in a single basket or page, as uproot writes an array."""
    path = tmp_path_factory.mktemp("long") / "in.root"
    columns = {f"b{number}": np.arange(ENTRIES, dtype="f8") * number for number in range(BRANCHES)}
    with uproot.recreate(path, compression=None) as file:
        if request.param == "tree":
            file.mktree("Events", {name: "f8" for name in columns}).extend(columns)
        else:
            file.mkrntuple("Events", ak.Array(columns))
    return path


def test_baskets_that_threads_keep_are_counted(source, tmp_path):
    """Each thread keeps a basket of every branch, so fewer threads read."""
    budget, output = 4 * BASKETS_LEN_BYTES, tmp_path / "out.h5"
    code, text, most = peak("events", "convert", source, "-o", output, "--memory", budget, "-j", 8, "-q", "-c", "fast")
    assert code == 0, text
    # The budget counts neither the program itself nor what its allocator keeps. It is not generous.
    assert BASKETS_LEN_BYTES < most < 1.1 * budget + (48 << 20), most
    with h5py.File(output) as file:
        assert all((file[f"events/b{number}-data"][:] == np.arange(ENTRIES) * number).all() for number in range(BRANCHES))


@pytest.mark.parametrize("layout", ["columns", "rntuple"])
def test_baskets_that_do_not_fit_are_refused(source, tmp_path, layout):
    output = tmp_path / "out"
    code, text, most = peak("events", "convert", source, "-o", output, "--memory", "48MiB", "--layout", layout, "-q")
    assert code == 6, text
    assert "a basket, page or chunk of every product" in text and "--memory" in text and "free" in text, text
    assert most < 48 << 20, most
    assert not list(tmp_path.iterdir())


def test_the_text_of_a_dump_is_counted(tmp_path):
    """The text of a number of one byte or four bytes is several times as long, and a basket holds many of them."""
    entries, path = 400_000, tmp_path / "in.root"
    columns = {f"b{number}": np.random.default_rng(number).normal(size=entries).astype("f4") for number in range(8)}
    with uproot.recreate(path, compression=None) as file:
        tree = file.mktree("Events", {name: "f4" for name in columns})
        for start in range(0, entries, entries // 8):
            tree.extend({name: values[start : start + entries // 8] for name, values in columns.items()})
    budget = 48 << 20
    code, text, most = peak("events", "dump", path, "--json", "--memory", budget, "-j", 4)
    assert code == 0, text[-2000:]
    assert most < 1.1 * budget + (48 << 20), most
