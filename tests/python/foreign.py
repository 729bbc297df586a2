"""Datasets that h5py reads for raddle."""

import h5py
import numpy as np

MIXED = np.dtype([("n", "i4"), ("i", "f8"), ("t", h5py.string_dtype())])


def write_foreign(file):
    """Writes datasets of two dimensions that h5py reads for raddle, and one that raddle reads itself."""
    mixed = np.array([[(10 * a + b, a + b / 10, f"{a}{b}") for b in range(4)] for a in range(5)], MIXED)
    file["mixed"] = mixed
    file["long"] = np.arange(20, dtype=np.longdouble).reshape(5, 4)
    file["plain"] = np.arange(20).reshape(5, 4)
    file["texts"] = mixed["t"].astype(h5py.string_dtype())
    for name in ("plain", "texts"):
        layout = h5py.VirtualLayout((5, 4), file[name].dtype)
        layout[:] = h5py.VirtualSource(file[name])
        file.create_virtual_dataset(f"virtual {name}", layout)
    file.create_dataset("external", (5, 4), "i8", external=[(f"{file.filename}.raw", 0, 160)])[...] = file["plain"][...]


FOREIGN = ["mixed", "long", "plain", "texts", "virtual plain", "virtual texts", "external"]
