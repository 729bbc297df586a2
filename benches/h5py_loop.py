"""The usual merge script, with h5py, one dataset at a time: the baseline of the benchmarks.

    python h5py_loop.py OUTPUT INPUT...

Chunks match raddle's default layout: 1 MiB for columns, 128 rows for wide maps; gzip 6.
"""

import sys

import h5py
import numpy as np

CHUNK_BYTES = 1 << 20
WIDE_ROW_BYTES = 1024


def chunk_shape(shape, itemsize):
    row_bytes = itemsize * int(np.prod(shape[1:]))
    rows = 128 if row_bytes >= WIDE_ROW_BYTES else CHUNK_BYTES // row_bytes
    return (min(rows, shape[0]), *shape[1:])


def main(output, inputs):
    files = [h5py.File(path) for path in inputs]
    with h5py.File(output, "w") as merged:

        def add(name, item):
            if not isinstance(item, h5py.Dataset):
                return
            parts = [file[name] for file in files]
            shape = (sum(part.shape[0] for part in parts), *item.shape[1:])
            options = {"maxshape": (None, *item.shape[1:]), "dtype": item.dtype}
            if shape[0] == 0:
                merged.create_dataset(name, shape, chunks=True, **options)
                return
            values = np.concatenate([part[()] for part in parts])
            merged.create_dataset(name, data=values, chunks=chunk_shape(shape, item.dtype.itemsize),
                                  compression="gzip", compression_opts=6, maxshape=options["maxshape"])

        files[0].visititems(add)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
