"""Files of hits in groups, the rules that describe their positions, and the judge of their merges."""

import h5py
import numpy as np
from merging import Merging, NoConcatenation


def write(path, counts, form, kind="i8", deep=False, edges=(0.0, 0.5, 1.0)):
    """Writes hits in groups. ``form`` of positions: ``bounds`` begin with a zero, ``ends`` are after each group,
    ``starts`` are before each, ``rows`` name a row for each hit's neighbour."""
    random = np.random.default_rng(len(counts))
    rows = sum(counts)
    with h5py.File(path, "w") as file:
        hits = file.create_group("run/hits")
        column(hits, "energy", random.random(rows))
        column(hits, "position", random.random((rows, 3), "f4"))
        ends = np.cumsum(counts, dtype=np.int64) if counts else np.zeros(0, np.int64)
        made = {
            "bounds": np.concatenate([[0], ends]).astype(np.int64),
            "ends": ends,
            "starts": ends - np.asarray(counts, np.int64) if counts else ends,
            "rows": random.integers(0, max(rows, 1), rows),
        }[form]
        column(file, "run/index", made.astype(kind))
        column(file, "run/edges", np.array(edges))
        if deep:
            # Positions of positions: groups of groups.
            column(file, "run/outer", np.array([len(made)], kind))
    return path


def column(group, name, values):
    maxshape = (None, *values.shape[1:])
    group.create_dataset(name, data=values, chunks=(4, *values.shape[1:]), maxshape=maxshape)


def write_all(folder, files, form, **options):
    return [write(folder / f"part{number}.h5", counts, form, **options) for number, counts in enumerate(files)]


def groups_of(path, form):
    """Returns the hits of each group, as a reader of the format finds them."""
    with h5py.File(path) as file:
        index = file["run/index"][:].astype(object).tolist()
        hits = [*zip(file["run/hits/energy"][:].tolist(), file["run/hits/position"][:].tolist())]
        edges = file["run/edges"][:].tolist()
    if form == "rows":
        return [(hits[row], hits[number]) for number, row in enumerate(index)], edges
    if form == "bounds":
        assert index[0] == 0 and index[-1] == len(hits), index
        bounds = index
    elif form == "ends":
        bounds = [0, *index]
    else:
        bounds = [*index, len(hits)]
    assert bounds == sorted(bounds), bounds
    return [hits[start:end] for start, end in zip(bounds, bounds[1:])], edges


def judge(output, inputs, form):
    groups, edges = groups_of(output, form)
    parts = [groups_of(path, form) for path in inputs]
    if any(part[1] != parts[0][1] for part in parts):
        raise NoConcatenation("edges differ")
    assert groups == [group for part in parts for group in part[0]]
    assert edges == parts[0][1]


MERGING = Merging("rules", judge)
ONCE = ["--rule", "/run/edges: once"]
# ``positions`` names rows; the other forms name the kind of positions.
RULES = {
    "bounds": "/run/index: bounds of /run/hits/energy",
    "ends": "/run/index: ends of /run/hits/energy",
    "starts": "/run/index: starts of /run/hits/energy",
    "rows": "/run/index: positions of /run/hits/energy",
}
