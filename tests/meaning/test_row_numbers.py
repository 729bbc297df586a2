"""Row numbers without a convention: each is recognised by the names and the shapes of datasets, and refused with the rule
that renumbers it. With that rule, readers find the rows of the inputs one after the other."""

import h5py
import numpy as np
import pytest
from merging import Merging
from scipy.sparse import csr_matrix, vstack

MERGING = Merging("refused", None)


def written(folder, write):
    paths = [folder / f"part{number}.h5" for number in range(3)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            write(file, number)
    return paths


MESHES = [
    ("vertices", "faces"),
    ("points", "triangles"),
    ("points", "cells"),
    ("nodes", "elements"),
    ("coordinates", "connectivity"),
    ("geometry", "topology"),
]


@pytest.mark.parametrize(("points", "corners"), MESHES)
@pytest.mark.parametrize("kind", ["u1", ">i4", "i8"])
def test_meshes_are_joined(tmp_path, raddle, points, corners, kind):
    """A cell has the same corners as in its input, also after an append."""

    def mesh(file, number):
        random = np.random.default_rng(number)
        count = 120 + 7 * number
        file[f"surface/{points}"] = random.random((count, 3))
        file[f"surface/{corners}"] = random.integers(0, count, (5 + number, 4)).astype(kind)

    def cells(path):
        with h5py.File(path) as file:
            surface = file["surface"]
            return surface[points][:][surface[corners][:].astype("i8")]

    inputs = written(tmp_path, mesh)
    rule = f"/surface/{corners}: rows of /surface/{points}"
    MERGING.refused(inputs, names=["points of a mesh", f"--rule '{rule}'"])
    output = tmp_path / "out.h5"
    # An append cannot widen the type of the output.
    first = inputs if kind == "u1" else inputs[:2]
    raddle("merge", *first, "-o", output, "--rule", rule, "--extendible")
    if first is not inputs:
        raddle("append", output, inputs[2])
    raddle("verify", output, "--against", *inputs)
    assert np.array_equal(cells(output), np.concatenate([cells(path) for path in inputs]))


def test_a_corner_beyond_the_points_is_named(tmp_path):

    def mesh(file, number):
        file["vertices"], file["faces"] = np.zeros((4, 3)), np.array([[0, 1, 2], [1, 2, 4 if number else 3]])

    inputs = written(tmp_path, mesh)
    MERGING.refused(inputs, "--rule", "/faces: rows of /vertices", names=["row 1 has 4", "4 rows of /vertices"])


SPARSE = [
    ("crow_indices", "col_indices"),
    ("rowptr", "col"),
    ("rowptr", "colind"),
    ("row_ptr", "col_ind"),
    ("row_ptr", "col_idx"),
]


@pytest.mark.parametrize(("bounds", "columns"), SPARSE)
def test_sparse_matrices_are_joined(tmp_path, raddle, bounds, columns):

    def matrix(number):
        dense = np.random.default_rng(number).integers(0, 3, (4 + number, 6))
        return csr_matrix(dense)

    def write(file, number):
        rows = matrix(number)
        file[bounds], file[columns], file["value"] = rows.indptr, rows.indices, rows.data

    inputs = written(tmp_path, write)
    rule = f"/{bounds}: bounds of /{columns}"
    MERGING.refused(inputs, names=["sparse matrix", f"--rule '{rule}'"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", rule)
    with h5py.File(tmp_path / "out.h5") as file:
        merged = csr_matrix((file["value"][:], file[columns][:], file[bounds][:]), (15, 6))
    assert (merged != vstack([matrix(number) for number in range(3)])).nnz == 0


@pytest.mark.parametrize("values", ["values", "flat_values"])
def test_ragged_tensors_are_joined(tmp_path, raddle, values):

    def write(file, number):
        file["row_splits"], file[values] = np.array([0, 2, 5]), np.arange(5) + number

    inputs = written(tmp_path, write)
    rule = f"/row_splits: bounds of /{values}"
    MERGING.refused(inputs, names=["ragged tensor", f"--rule '{rule}'"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", rule)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["row_splits"][:].tolist() == [0, 2, 5, 7, 10, 12, 15]


def test_bounds_of_a_dataset_with_another_name_need_its_name(tmp_path, raddle):

    def write(file, number):
        file["push_indptr"], file["tof_indices"] = np.array([0, 2, 5]), np.arange(5)

    inputs = written(tmp_path, write)
    MERGING.refused(inputs, names=["/push_indptr: bounds of TARGET"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", "/push_indptr: bounds of /tof_indices")
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["push_indptr"][:].tolist() == [0, 2, 5, 7, 10, 12, 15]


def test_bounds_are_refused_also_without_the_rows_that_they_bound(tmp_path):

    def write(file, number):
        file["X/indptr"], file["X/indices"] = np.array([0, 2, 5]), np.arange(5)

    MERGING.refused(written(tmp_path, write), "--include", "indptr", names=["/X/indptr"])


def test_edges_of_graphs(tmp_path):

    def write(file, number):
        file["g/x"], file["g/edge_index"] = np.zeros((3, 2)), np.array([[0, 1], [1, 2]])

    MERGING.refused(written(tmp_path, write), names=["/g/edge_index", "--union"])


@pytest.mark.parametrize("atoms", ["atomic_numbers", "species"])
@pytest.mark.parametrize("positions", ["coordinates", "conformations", "positions"])
def test_atoms_of_conformations_are_carried_once(tmp_path, raddle, atoms, positions):

    def write(file, number):
        file[f"C2H2/{atoms}"] = np.array([6, 6, 1, 1])
        file[f"C2H2/{positions}"] = np.full((3 + number, 4, 3), float(number))

    inputs = written(tmp_path, write)
    rule = f"/C2H2/{atoms}: once"
    MERGING.refused(inputs, names=[f"--rule '{rule}'"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", rule)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file[f"C2H2/{atoms}"][:].tolist() == [6, 6, 1, 1]
        assert file[f"C2H2/{positions}"].shape == (12, 4, 3)


def plain(file, number):
    """Writes datasets that have such names, but are not such row numbers."""
    file["a/faces"], file["a/vertices"] = np.arange(3), np.zeros((3, 3))
    file["b/cells"], file["b/points"] = np.zeros((3, 4)), np.zeros((3, 3))
    file["c/elements"], file["c/nodes"] = np.zeros((3, 4), "i4"), np.zeros((3, 3), "i4")
    file["d/topology"], file["d/geometry"] = np.zeros((3, 4), "i4"), np.zeros((3, 5))
    file["e/row_splits"], file["e/rowptr"], file["e/colptr"] = np.arange(3), np.arange(3), np.arange(3)
    file["f/edge_index"], file["f/species"] = np.zeros((3, 2), "i4"), np.arange(3)
    file["g/species"], file["g/coordinates"] = np.arange(3), np.zeros((3, 3))
    file["h/indices"], file["h/key_a"], file["h/demo_1"] = np.arange(3), np.arange(3), np.arange(3)
    file["manufacturer"], file["version"], file["time_index"] = np.arange(3), np.arange(3), np.arange(3)


def test_other_datasets_with_such_names_are_concatenated(tmp_path):

    def judge(output, inputs):
        with h5py.File(output) as merged, h5py.File(inputs[0]) as first:
            shapes = {}
            first.visititems(lambda name, item: shapes.update({name: item.shape}) if hasattr(item, "shape") else None)
            for name, (rows, *others) in shapes.items():
                assert merged[name].shape == (3 * rows, *others), name

    MERGING.equal(written(tmp_path, plain), judge=judge)
