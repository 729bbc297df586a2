"""Runs ``raddle events``, and reads the columns that it writes."""

import awkward as ak
import h5py
from command import run_command


def run_events(*arguments, code=0):
    """Runs ``raddle events``, which must exit with ``code``; returns the finished process."""
    finished = run_command("events", *arguments)
    assert finished.returncode == code, f"{finished.args}: {finished.stderr}"
    return finished


def raddle(*arguments, code=0):
    """Runs ``raddle events``, quietly where it can be; returns what it prints."""
    quiet = [] if arguments[0] == "inspect" else ["-q"]
    finished = run_events(*arguments, *quiet, code=code)
    return finished.stdout + finished.stderr


def read_columns(path):
    """Reads all columns of a file as one array of records, as in the how-to guide."""
    with h5py.File(path) as file:
        events = file["events"]
        buffers = {name: dataset[()] for name, dataset in events.items()}
        return ak.from_buffers(events.attrs["form"], int(events.attrs["length"]), buffers)
