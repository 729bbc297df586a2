"""The merge that a physicist writes in an afternoon: a loop over h5py, with the chunks and gzip level of raddle's output.

Usage: h5py_loop.py MERGED OUTPUT INPUT...
Writes OUTPUT, compares it with MERGED value by value, prints one JSON object:
elapsed_s and len_bytes of the loop, datasets compared, paths of those that differ.
"""
import json
import os
import sys
import time

import h5py
import numpy


def dataset_paths(file):
    paths = []
    file.visititems(lambda path, item: paths.append(path) if isinstance(item, h5py.Dataset) else None)
    return paths


def shape_of_chunks(merged, path):
    """Returns the chunk shape and creation options of the merged file, so that both files are alike."""
    dataset = merged[path]
    if dataset.chunks is None:
        return {}
    return {"chunks": dataset.chunks, "maxshape": dataset.maxshape, "compression": "gzip", "compression_opts": 6}


def concatenate(merged, output, inputs):
    files = [h5py.File(path, "r") for path in inputs]
    with h5py.File(output, "w", libver="earliest") as out:
        for path in dataset_paths(files[0]):
            if files[0][path].ndim == 0:
                out.create_dataset(path, data=files[0][path][()])
                continue
            values = numpy.concatenate([file[path][...] for file in files])
            out.create_dataset(path, data=values, **shape_of_chunks(merged, path))
    for file in files:
        file.close()


def differing(merged, output):
    """Returns the paths of datasets that are not identical bit by bit."""
    with h5py.File(output, "r") as theirs:
        paths = dataset_paths(theirs)
        return paths, [
            path
            for path in paths
            if path not in merged
            or merged[path].dtype != theirs[path].dtype
            or numpy.asarray(merged[path][()]).tobytes() != numpy.asarray(theirs[path][()]).tobytes()
        ]


def main():
    merged_path, output, inputs = sys.argv[1], sys.argv[2], sys.argv[3:]
    with h5py.File(merged_path, "r") as merged:
        start = time.perf_counter()
        concatenate(merged, output, inputs)
        elapsed_s = time.perf_counter() - start
        paths, different = differing(merged, output)
    print(json.dumps({
        "elapsed_s": elapsed_s,
        "len_bytes": os.path.getsize(output),
        "datasets": len(paths),
        "different": different,
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
    }))


main()
