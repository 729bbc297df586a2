"""Event files are merged as by ``raddle events merge``, or refused with the name of that command."""

import awkward as ak
import h5py
import numpy as np
import pytest
import uproot
from merging import Merging, Refusal

MERGING = Merging("refused", None)


@pytest.fixture
def events(tmp_path, raddle):
    """Returns two event files of raddle."""
    paths = []
    for number, rows in enumerate([5, 3]):
        with uproot.recreate(tmp_path / f"{number}.root") as file:
            file.mktree("Events", {"run": "int32", "event": "int64", "hits": "var * float32"})
            hits = [[row + 0.5] * (row % 3) for row in range(rows)]
            ids = {"run": np.full(rows, number, np.int32), "event": np.arange(rows)}
            file["Events"].extend({**ids, "hits": ak.Array(hits)})
        paths.append(tmp_path / f"events{number}.h5")
        raddle("events", "convert", tmp_path / f"{number}.root", "-o", paths[-1])
    return paths


def test_events_of_raddle(tmp_path, raddle, events):
    """Such files are merged as by ``events merge``, or the refusal names that command."""

    def judge(output, inputs):
        raddle("events", "merge", *inputs, "-o", tmp_path / "right.h5")
        with h5py.File(output) as merged, h5py.File(tmp_path / "right.h5") as right:
            names = []
            right.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
            for name in names:
                if not name.startswith("_raddle"):
                    assert merged[name][()].tobytes() == right[name][()].tobytes(), name

    outcome = MERGING.equal_or_refused(events, output=tmp_path / "out.h5", judge=judge)
    assert not isinstance(outcome, Refusal) or "raddle events merge" in " ".join(outcome.split())


@pytest.mark.parametrize("layout", ["product", "event", "batch"])
def test_events_of_hep_cce(tmp_path, raddle, layout):
    """The product layout stores the ends of products in the file. The other layouts hold the order of the products only
    in the order of the attributes, which a merge does not keep."""
    ints = "std::vector<int>"
    paths = []
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            lumi = file.create_group("Lumi")
            lumi.attrs.update({"run": np.int32(1), "lumisec": np.int32(1)})
            if layout == "product":
                lumi["Event_IDs"] = np.arange(3, dtype="i4")
                lumi["a"], lumi["a_sz"] = np.zeros(12, "i1"), np.array([4, 8, 12], "u8")
                lumi["a"].attrs["classname"] = ints
            else:
                lumi.attrs.update({"Compression": "None", "CompressionLevel": np.int32(0), "b": ints, "a": ints})
                if layout == "batch":
                    lumi.attrs["CompressionChoice"] = np.int32(0)
                lumi["EventIDs"], lumi["Products"] = np.arange(3, dtype="i4"), np.zeros(24, "i1")
                lumi["Offsets"] = np.array([0, 4, 8, *([8] if layout == "batch" else [])] * 3, "i4")
        paths.append(tmp_path / f"{number}.h5")

    def judge(output, inputs):
        raddle("events", "merge", *inputs, "-o", tmp_path / "right.h5")
        with h5py.File(output) as merged, h5py.File(tmp_path / "right.h5") as right:
            assert all(np.array_equal(merged["Lumi"][name], right["Lumi"][name]) for name in right["Lumi"])

    assert "raddle events merge" in " ".join(MERGING.equal_or_refused(paths, output=tmp_path / "out.h5", judge=judge).split())
    raddle("events", "merge", *paths, "-o", tmp_path / "events.h5")
    for command in ("rechunk", "merge"):
        copied = raddle(command, paths[0], "-o", tmp_path / f"{command}.h5", expect=0 if layout == "product" else 3)
        assert layout == "product" or "raddle events merge" in " ".join(copied.stderr.split())
