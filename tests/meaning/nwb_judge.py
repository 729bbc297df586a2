"""Judges merges of NWB files by the tables and series that pynwb reads from them."""

import contextlib
import warnings

import numpy as np
import pynwb
from merging import NoConcatenation


def read(path):
    """Returns the contents of a file as plain values: rows of tables by column, samples of series."""
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        file = stack.enter_context(pynwb.NWBHDF5IO(path, "r", load_namespaces=True)).read()
        series = {}
        for name, each in file.acquisition.items():
            timestamps = each.timestamps if each.timestamps is not None else (
                each.starting_time + np.arange(len(each.data)) / each.rate
            )
            electrodes = getattr(each, "electrodes", None)
            about = (each.unit, each.conversion, each.offset, type(each).__name__)
            sites = None if electrodes is None else electrodes.to_dataframe()["location"].tolist()
            assert sites is None or len(sites) == each.data.shape[1], f"{name} has {len(sites)} electrodes"
            series[name] = (about, sites, [*zip(timestamps[:], each.data[:].tolist())])
        tables = {}
        for name, table in [("units", file.units), ("trials", file.trials), ("electrodes", file.electrodes)]:
            if table is not None and len(table.colnames) and len(table):
                tables[name] = [row_of(table, index) for index in range(len(table))]
                ids = [row["id"] for row in tables[name]]
                assert len({*ids}) == len(ids), f"ids of {name} repeat: {ids}"
        about = (file.identifier, file.session_start_time, file.timestamps_reference_time, file.session_description)
        return about, series, tables, [str(date) for date in file.file_create_date], file.object_id


def row_of(table, index):
    """Returns the values of a row of a table by column."""
    row = {"id": int(table.id[index])}
    for name in table.colnames:
        value = table[name][index]
        if name == "electrodes":
            value = list(value["location"])
        elif name == "group":
            value = value.name
        row[name] = _plain(value)
    return row


def _plain(value):
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def judge(output, inputs):
    """Series and tables must be those of the inputs, one after another; electrodes are the same in all inputs."""
    about, series, tables, dates, object_id = read(output)
    parts = [read(path) for path in inputs]
    if any(part[0] != parts[0][0] for part in parts):
        raise NoConcatenation(f"sessions differ: {[part[0] for part in parts]}")
    assert about == parts[0][0]
    assert object_id == parts[0][4]
    assert {*dates} <= {date for part in parts for date in part[3]}
    assert sorted(series) == sorted(parts[0][1])
    for name, (kind, sites, samples) in series.items():
        if any(part[1][name][:2] != parts[0][1][name][:2] for part in parts):
            raise NoConcatenation(f"{name} differs")
        assert (kind, sites) == parts[0][1][name][:2], name
        assert samples == [sample for part in parts for sample in part[1][name][2]], name
    names = {name for part in parts for name in part[2]}
    assert {*tables} == names
    for name in names:
        each = [part[2].get(name, []) for part in parts]
        if name == "electrodes":
            if any(rows != each[0] for rows in each):
                raise NoConcatenation("electrodes differ")
            assert tables[name] == each[0], name
            continue
        expected = [row for rows in each for row in rows]
        assert [without_id(row) for row in tables[name]] == [without_id(row) for row in expected], name
        ids = [row["id"] for row in expected]
        # Ids that would repeat may be renumbered.
        assert [row["id"] for row in tables[name]] == ids or len({*ids}) < len(ids), f"ids of {name}"


def without_id(row):
    return {name: value for name, value in row.items() if name != "id"}
