"""Arrays to write as IDX or OME-Zarr, and the files that are written."""

import numpy as np

# Sizes of blocks and files of small datasets.
SMALL = {"bits_per_block": 5, "blocks_per_file": 8}


def numbers(shape, dtype="f4", seed=1):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
