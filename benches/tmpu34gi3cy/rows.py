import sys, h5py, numpy as np
from numpy.random import default_rng

values = default_rng(0).random(20000)
with h5py.File(sys.argv[1], "w") as file:
    for step in range(8):
        plane = file.create_dataset(f"step{step}", (100, 20000), chunks=(100, 100), dtype="f8")
        for row in range(100): plane[row] = values + row
