"""Checks with h5py that OUTPUT is the concatenation of INPUTS, one dataset at a time; exits with 1 at the first
difference.

    python compare.py OUTPUT INPUT...
"""

import sys

import h5py
import hdf5plugin  # noqa: F401  (zstd)
import numpy as np


def main(output, inputs):
    files = [h5py.File(path) for path in inputs]
    expected = []
    files[0].visititems(lambda name, item: expected.append(name) if isinstance(item, h5py.Dataset) else None)
    with h5py.File(output) as merged:
        for name in expected:
            parts = [file[name] for file in files]
            rows = sum(part.shape[0] for part in parts)
            if merged[name].shape[0] != rows or merged[name].dtype != parts[0].dtype:
                sys.exit(f"{name}: shape or type differs")
            if rows and np.concatenate([part[()] for part in parts]).tobytes() != merged[name][()].tobytes():
                sys.exit(f"{name}: values differ")
    print(f"{len(expected)} datasets equal")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
