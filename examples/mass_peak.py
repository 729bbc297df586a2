#!/usr/bin/env python3
"""Finds a mass peak in a ROOT file, and in the same columns in HDF5.

Events with any number of muons are generated: pairs that come from one heavy particle, and other muons from no
particle. The selection is typical of an analysis: exactly two muons of opposite charge, both with sufficient transverse
momentum. The histogram is that of the mass of the pair.

* From the ROOT file with uproot and awkward-array.
* From the output of ``raddle events convert``, with h5py and numpy alone: the columns are flat arrays, and the offsets
  assign the muons to events.

    python examples/mass_peak.py --events 200000 --figure mass-peak.svg

Compares the histograms, then prints the position of the peak and the sizes of both files as JSON. Needs raddle, uproot
and h5py, and matplotlib for the figure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import awkward as ak
import h5py
import numpy as np
import raddle.events
import uproot

EDGES_GEV = np.linspace(60.0, 120.0, 121)
LEAST_PT_GEV = 15.0
# Mass and width of the particle, and the mass of a muon.
HEAVY_GEV, WIDTH_GEV, MUON_GEV = 91.19, 2.5, 0.10566


def make_file(path: Path, events: int) -> None:
    """Makes a tree of events: the number of muons, and the momentum, direction and charge of each."""
    random = np.random.default_rng(11)
    is_pair = random.random(events) < 0.4
    others = random.poisson(0.9, events)
    counts = 2 * is_pair + others
    ends = np.cumsum(counts)
    pt, eta = random.exponential(18, ends[-1]) + 3, random.normal(0, 1.1, ends[-1])
    phi, charge = random.uniform(-np.pi, np.pi, ends[-1]), random.choice([-1, 1], ends[-1])
    # The first two muons of an event with a pair fly apart, like the decay products of a particle at rest across the
    # beam.
    first = (ends - counts)[is_pair]
    # A Breit-Wigner peak, up to 12 half widths to either side.
    mass = HEAVY_GEV + WIDTH_GEV / 2 * np.tan(random.uniform(-1, 1, len(first)) * np.arctan(12))
    angle, boost, turn = (
        random.normal(0, 0.7, len(first)),
        random.normal(0, 0.8, len(first)),
        random.uniform(-np.pi, np.pi, len(first)),
    )
    for muon, sign in ((first, 1), (first + 1, -1)):
        pt[muon] = np.sqrt(mass**2 / 4 - MUON_GEV**2) / np.cosh(angle)
        eta[muon], charge[muon] = boost + sign * angle, sign
        phi[muon] = np.where(sign > 0, turn, turn - np.sign(turn) * np.pi)
    muons = {"pt": pt * random.normal(1, 0.012, len(pt)), "eta": eta, "phi": phi}
    columns = {f"Muon_{name}": ak.unflatten(values.astype("f4"), counts) for name, values in muons.items()}
    columns["Muon_charge"] = ak.unflatten(charge.astype("i4"), counts)
    columns["event"] = np.arange(events, dtype="i8")
    kinds = {name: "var * int32" if name == "Muon_charge" else "var * float32" for name in columns if name != "event"}
    with uproot.recreate(path, compression=uproot.ZSTD(5)) as file:
        file.mktree("Events", {"event": "i8", **kinds})
        file["Events"].extend(columns)


def histogram(pt: list, eta: list, phi: list) -> np.ndarray:
    """Returns the histogram of pair masses; each quantity is given as arrays of the first and of the second muons."""
    pt, eta, phi = (np.asarray(both, "f8") for both in (pt, eta, phi))
    along, across = (
        np.sum(np.sqrt(MUON_GEV**2 + (pt * np.cosh(eta)) ** 2), axis=0),
        [np.sum(pt * part, axis=0) for part in (np.cos(phi), np.sin(phi), np.sinh(eta))],
    )
    mass = np.sqrt(np.maximum(along**2 - np.sum(np.square(across), axis=0), 0))
    return np.histogram(mass, EDGES_GEV)[0]


def from_tree(path: Path) -> np.ndarray:
    """Returns the histogram with uproot and awkward-array."""
    with uproot.open(path) as file:
        muons = file["Events"].arrays(["Muon_pt", "Muon_eta", "Muon_phi", "Muon_charge"])
    pairs = muons[ak.num(muons["Muon_pt"]) == 2]
    opposite = ak.sum(pairs["Muon_charge"], axis=1) == 0
    pairs = pairs[opposite & ak.all(pairs["Muon_pt"] > LEAST_PT_GEV, axis=1)]
    return histogram(*([pairs[f"Muon_{name}"][:, muon] for muon in (0, 1)] for name in ("pt", "eta", "phi")))


def from_columns(path: Path) -> np.ndarray:
    """Returns the histogram with h5py and numpy."""
    with h5py.File(path) as file:
        events = file["events"]
        offsets = events["Muon_pt-offsets"][:]
        pt, eta, phi, charge = (events[f"Muon_{name}-data"][:] for name in ("pt", "eta", "phi", "charge"))
    first = offsets[:-1][np.diff(offsets) == 2].astype("i8")
    first = first[charge[first] + charge[first + 1] == 0]
    first = first[np.minimum(pt[first], pt[first + 1]) > LEAST_PT_GEV]
    return histogram(*([values[first], values[first + 1]] for values in (pt, eta, phi)))


def draw(path: Path, counts: np.ndarray) -> None:
    """Draws the figure."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "raddle"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.stairs(counts, EDGES_GEV, fill=True, color="tab:blue", alpha=0.35)
    axes.stairs(counts, EDGES_GEV, color="tab:blue")
    axes.set_xlabel("mass of two muons of opposite charge / GeV")
    axes.set_ylabel(f"events / {EDGES_GEV[1] - EDGES_GEV[0]:.1f} GeV")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Makes the file, converts it, makes both histograms, compares them and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: a temporary folder")
    parser.add_argument("--figure", type=Path, help="file for the figure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tree, columns = folder / "muons.root", folder / "muons.h5"
        make_file(tree, arguments.events)
        raddle.events.convert(tree, columns, products=["Muon_*"], force=True, progress=False)
        expected, counts = from_tree(tree), from_columns(columns)
        sizes = {path.suffix[1:]: path.stat().st_size for path in (tree, columns)}
    if not np.array_equal(expected, counts):
        print("the histograms differ", file=sys.stderr)
        return 1
    if arguments.figure:
        draw(arguments.figure, counts)
    highest = int(np.argmax(counts))
    peak_gev = float(EDGES_GEV[highest] + EDGES_GEV[highest + 1]) / 2
    print(json.dumps({"pairs": int(counts.sum()), "peak_gev": peak_gev, "len_bytes": sizes}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
