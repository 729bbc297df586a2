"""Groups of a convention in files that do not follow it as a whole: their row numbers are renumbered or refused."""

import h5py
import numpy as np
import pandas as pd
import pytest
from hdmf.backends.hdf5 import HDF5IO
from hdmf.common import DynamicTable, get_manager
from merging import Merging

MERGING = Merging("parts of files", None)


def with_table(path, number):
    """Writes an image, and an HDMF table with a ragged column and rows of another table in a group."""
    table = DynamicTable(name="table", description="spikes")
    table.add_column("spikes", "times", index=True)
    for count in range(1, 3 + number):
        table.add_row(spikes=[float(number)] * count)
    alone = path.with_suffix(".hdmf")
    with HDF5IO(alone, manager=get_manager(), mode="w") as io:
        io.write(table)
    with h5py.File(alone) as source, h5py.File(path, "w") as file:
        file["image"] = np.zeros((2, 3))
        group = file.create_group("lab/table")
        for name in set(source) - {"specifications"}:
            source.copy(name, group)
        group["spikes_index"].attrs["target"] = group["spikes"].ref
        group["same"] = [0, 1]
        group["same"].attrs.update({"data_type": "DynamicTableRegion", "namespace": "hdmf-common"})
        group["same"].attrs["table"] = group.ref


def with_events(path, number):
    """Writes NeXus events in an entry that is not in the root group."""
    with h5py.File(path, "w") as file:
        group = file.create_group("scan/entry/detector")
        group.attrs["NX_class"] = "NXevent_data"
        group["event_time_zero"], group["event_index"] = [0, 1], [0, 2]
        group["event_id"] = group["event_time_offset"] = np.arange(3 + number)


FILES = {
    "hdmf": (
        with_table,
        {"lab/table/spikes_index": "ends of /lab/table/spikes", "lab/table/same": "rows of /lab/table/id"},
        {"lab/table/spikes_index": [1, 3, 4, 6, 9], "lab/table/same": [0, 1, 2, 3]},
    ),
    "nexus": (
        with_events,
        {"scan/entry/detector/event_index": "starts of /scan/entry/detector/event_id"},
        {"scan/entry/detector/event_index": [0, 2, 3, 5]},
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_row_numbers_in_a_group_need_a_rule(tmp_path, raddle, kind):
    write, rules, expected = FILES[kind]
    inputs = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for number, path in enumerate(inputs):
        write(path, number)
    options = []
    for name in sorted(rules):
        rule = f"/{name}: {rules[name]}"
        MERGING.refused(inputs, *options, names=[f"--rule '{rule}'", "--convention none"])
        options += ["--rule", rule]
    raddle("merge", *inputs, "-o", tmp_path / "output.h5", *options)
    raddle("verify", tmp_path / "output.h5", "--against", *inputs)
    with h5py.File(tmp_path / "output.h5") as merged:
        for name, values in expected.items():
            assert merged[name][:].tolist() == values


@pytest.mark.parametrize("second", [["a", "b", "c"], ["c", "a"]])
def test_frames_in_a_file_that_pandas_did_not_create(tmp_path, raddle, second):
    """PyTables does not mark such a file, which holds the categories of a column in a table of their own."""
    inputs = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for path, categories in zip(inputs, [["a", "b", "c"], second]):
        with h5py.File(path, "w") as file:
            file["x"] = [1, 2]
        frame = pd.DataFrame({"kind": pd.Categorical(["a", "c"], categories)})
        with pd.HDFStore(path, "a") as store:
            store.append("group/frame", frame)
    if second == ["c", "a"]:
        MERGING.refused(inputs, names=["/group/frame/meta/values_block_0/meta/table"])
        return
    raddle("merge", *inputs, "-o", tmp_path / "output.h5")
    expected = pd.concat([pd.read_hdf(path, "group/frame") for path in inputs])
    pd.testing.assert_frame_equal(pd.read_hdf(tmp_path / "output.h5", "group/frame"), expected)
    with h5py.File(tmp_path / "output.h5") as merged:
        assert merged["x"][:].tolist() == [1, 2, 1, 2]
