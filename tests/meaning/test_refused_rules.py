"""Rules of the user for datasets of formats that are otherwise refused."""

import h5py
import numpy as np
import pytest
import refused_files
from merging import Merging
from refused_formats import BY_RULES, legend, scipy_sparse, write_all

MERGING = Merging("refused", None)


@pytest.mark.parametrize("kind", BY_RULES, ids=lambda kind: kind.__name__)
def test_rules_of_the_user_take_precedence(tmp_path, raddle, kind):
    positions = {
        scipy_sparse: "/X/indptr: bounds of /X/indices",
        legend: "/hits/t/cumulative_length: ends of /hits/t/flattened_data",
        refused_files.vaex: refused_files.VAEX,
    }
    rule = positions.get(kind, "/**: concatenate")
    options = ["--rule", rule, "--scalars", "first", "--attributes", "first", "--extendible"]
    raddle("merge", *write_all(tmp_path, kind), "-o", tmp_path / "out.h5", *options)
    if kind is legend:
        with h5py.File(tmp_path / "out.h5") as merged:
            assert merged["hits/t/cumulative_length"][:].tolist() == [2, 5, 7, 10]
    if kind is refused_files.vaex:
        assert refused_files.texts_of_vaex(tmp_path / "out.h5") == [b"ab", b"cde"] * 2
    if kind is scipy_sparse:
        with h5py.File(tmp_path / "out.h5") as merged:
            assert merged["X/indptr"][:].tolist() == [0, 1, 3, 4, 6]
        # The record of the merge has the rule.
        raddle("append", tmp_path / "out.h5", tmp_path / "part1.h5", "--again")
        with h5py.File(tmp_path / "out.h5") as merged:
            assert merged["X/indptr"][:].tolist() == [0, 1, 3, 4, 6, 7, 9]


@pytest.mark.parametrize("inner", ["cumulative_length", "energy"])
def test_a_vector_of_vectors_of_vectors_or_tables(tmp_path, raddle, inner):
    """The rows of such a vector are those of a dataset in a group."""

    def nested(file, number):
        hits = file.create_group("hits")
        hits["cumulative_length"], hits[f"flattened_data/{inner}"] = np.array([1, 3]), np.array([2, 3, 5])
        if inner == "cumulative_length":
            hits["flattened_data/flattened_data"] = np.full(5, float(number))

    inputs = write_all(tmp_path, nested)
    rules = [f"/hits/cumulative_length: ends of /hits/flattened_data/{inner}"]
    MERGING.refused(inputs, names=[f"--rule '{rules[0]}'"])
    if inner == "cumulative_length":
        rules.append("/hits/flattened_data/cumulative_length: ends of /hits/flattened_data/flattened_data")
        MERGING.refused(inputs, "--rule", rules[0], names=[f"--rule '{rules[1]}'"])
    options = [word for rule in rules for word in ["--rule", rule]]
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", *options)
    with h5py.File(tmp_path / "out.h5") as merged:
        assert merged["hits/cumulative_length"][:].tolist() == [1, 3, 4, 6]
        expected = [2, 3, 5, 7, 8, 10] if inner == "cumulative_length" else [2, 3, 5] * 2
        assert merged[f"hits/flattened_data/{inner}"][:].tolist() == expected


def test_the_table_of_a_madrigal_file_is_merged(tmp_path, raddle):
    inputs = write_all(tmp_path, refused_files.madrigal)
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--include", "/Data/Table Layout")
    with h5py.File(tmp_path / "out.h5") as merged:
        assert merged["Data/Table Layout"][:].tolist() == [0.0] * 3 + [1.0] * 3


def two_vectors(file, number):
    legend(file, number)
    file.copy("hits/t", file["hits"], "energy")


def two_matrices(file, number):
    scipy_sparse(file, number)
    file.copy("X", "Y")


def two_columns_of_vaex(file, number):
    refused_files.vaex(file, number)
    file.copy("table/columns/name", file["table/columns"], "place")


@pytest.mark.parametrize(
    ("kind", "first", "left", "all_of_them"),
    [
        (two_vectors, "/hits/t/cumulative_length: ends of /hits/t/flattened_data", "/hits/energy/cumulative_length",
         "cumulative_length: ends of flattened_data"),
        (two_matrices, "/X/indptr: bounds of /X/indices", "/Y/indptr", "indptr: bounds of indices"),
        (two_columns_of_vaex, refused_files.VAEX, "/table/columns/place/indices", "indices: bounds of data"),
    ],
)  # fmt: skip
def test_each_dataset_of_row_numbers_needs_a_rule(tmp_path, raddle, kind, first, left, all_of_them):
    """A rule for one of them does not leave the others as they are."""
    inputs = write_all(tmp_path, kind)
    MERGING.refused(inputs, "--rule", first, names=[left, f"--rule '{all_of_them}'"])
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--rule", all_of_them)
    with h5py.File(tmp_path / "out.h5") as merged, h5py.File(inputs[0]) as part:
        one = part[left][:]
        shifted = one + one[-1] if "ends" in all_of_them else one[1:] + one[-1]
        assert merged[left][:].tolist() == [*one, *shifted]
