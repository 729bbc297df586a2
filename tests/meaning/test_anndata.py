"""Merges of ``.h5ad`` files read as ``anndata.concat`` concatenates the inputs."""

import anndata
import anndata_files
import anndata_judge
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse
from anndata_files import GENES, Schema, make, write_all
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, Refusal, case_folder, examples

MERGING = Merging("anndata", anndata_judge.judge)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("what", anndata_files.SPECIALS)
def test_random_files(what):
    @examples(2)
    @given(anndata_files.cases(what))
    def check(case):
        with case_folder() as folder:
            merge = MERGING.equal if case.must_merge else MERGING.equal_or_refused
            merge(write_all(folder, *case.objects), *anndata_judge.options(case.how), **case.how)

    check()


@pytest.mark.parametrize("what", anndata_files.SPECIALS)
def test_random_files_along_variables(what):
    """The same objects with observations and variables exchanged."""
    how = {"axis": "var"}

    @examples(2)
    @given(anndata_files.cases(what))
    def check(case):
        with case_folder() as folder:
            merge = MERGING.equal if case.must_merge else MERGING.equal_or_refused
            objects = [made.T for made in case.objects]
            merge(write_all(folder, *objects), *anndata_judge.options({**case.how, **how}), **case.how, **how)

    check()


def plain(**changes):
    """Returns a schema with one of each simple element."""
    made = {"x": ("csr", "f4"), "layers": {}, "columns": ["group", "count"], "gene_columns": ["length"], "extras": set()}
    return Schema(**{**made, "seed": 7, **changes})


def pair(schema, genes=(GENES[:5], GENES[:5]), rows=(4, 3), **special):
    return [make(schema, number, genes[number], rows[number], **special) for number in range(2)]


@pytest.mark.parametrize("kind", ["dense", *anndata_files.SPARSE])
@pytest.mark.parametrize("dtype", ["f4", "i8", "bool"])
def test_matrices(tmp_path, kind, dtype):
    MERGING.equal(write_all(tmp_path, *pair(plain(x=(kind, dtype)))))


@pytest.mark.parametrize("kind", ["dense", *anndata_files.SPARSE])
@pytest.mark.parametrize("cells", [(GENES[:5], GENES[:5]), (GENES[:5], GENES[:5][::-1]), (GENES[:4], GENES[1:5])])
def test_variables_of_the_same_cells(tmp_path, raddle, kind, cells):
    """Different measurements of the same cells, with pairs of genes and repeated names."""
    schema = plain(x=(kind, "f4"), layers={"counts": (kind, "i4")}, extras={"obsm", "varm", "obsp", "varp", "uns"})
    how = {"axis": "var", "pairwise": True, "index_unique": "-", "join": "inner"}
    inputs = write_all(tmp_path, *(made.T for made in pair(schema, cells)))
    output = MERGING.equal(inputs, *anndata_judge.options(how), **how)
    assert anndata_judge.read(output).n_vars == 7
    raddle("verify", output, "--against", *inputs, *anndata_judge.options(how))


def test_many_variables_of_the_same_cells(tmp_path, raddle):
    """More chunks than one in both directions, and types that must be promoted."""
    random = np.random.default_rng(4)
    objects = []
    for number, columns in enumerate([700, 450]):
        names = [f"gene{number}-{column}" for column in range(columns)]
        values = random.random((900, columns)).astype("f4" if number else "f8")
        obs = pd.DataFrame(index=[f"cell{cell}" for cell in random.permutation(900)])
        objects.append(anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=names), layers={
            "csr": sparse.random(900, columns, 0.3, "csr", "f4", random), "csc": sparse.random(900, columns, 0.3, "csc", "f4", random),
        }))
    inputs = write_all(tmp_path, *objects)
    for options in (["-c", "none"], ["--memory", "64MiB"]):
        output = MERGING.equal(inputs, "--axis", "var", *options, axis="var")
        raddle("verify", output, "--against", *inputs, "--axis", "var")


@pytest.mark.parametrize("axis", ["obs", "var"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_arrays_of_the_axis(tmp_path, axis, kind):
    """Rows of sparse arrays are elements of the axis, whichever axis it is."""
    objects = pair(plain(extras={"varm"}), rows=(4, 3))
    for number, made in enumerate(objects):
        made.obsm["counts"] = anndata_files.matrix(np.random.default_rng(number), (made.n_obs, 3), kind, "f4")
    inputs = write_all(tmp_path, *(made.T if axis == "var" else made for made in objects))
    MERGING.equal(inputs, "--axis", axis, axis=axis)


@pytest.mark.parametrize("axis", ["obs", "var"])
def test_names_that_repeat_are_listed(tmp_path, raddle, axis):
    objects = pair(plain(columns=[], gene_columns=[]))
    for made in objects:
        made.obs_names = [f"cell{row}" for row in range(made.n_obs)]
    inputs = write_all(tmp_path, *(made.T if axis == "var" else made for made in objects))
    output = tmp_path / "out.h5ad"
    message = raddle("merge", *inputs, "-o", output, "--axis", axis).stderr
    assert f"/{axis}/_index" in message and "3 more than once" in message and "--index-unique" in message, message
    MERGING.equal(inputs, "--axis", axis, axis=axis)
    message = raddle("merge", *inputs, "-o", output, "-f", "--axis", axis, "--index-unique", "-").stderr
    assert "more than once" not in message, message


@pytest.mark.parametrize("axis", ["obs", "var"])
def test_names_to_be_matched_must_differ(tmp_path, axis):
    """The advice names anndata's method that makes names unique."""
    objects = pair(plain(columns=[], gene_columns=[]))
    for made in objects:
        made.var_names = ["a", "b", "a", "c", "d"]
    inputs = write_all(tmp_path, *(made.T if axis == "var" else made for made in objects))
    other = "obs" if axis == "var" else "var"
    MERGING.refused(inputs, "--axis", axis, names=[f"/{other}", '"a"', f"{other}_names_make_unique"])


@pytest.mark.parametrize("kind", ["dense", *anndata_files.SPARSE])
@pytest.mark.parametrize("join", ["inner", "outer"])
@pytest.mark.parametrize("rows", [(4, 4), (4, 3), (0, 0)])
def test_raw_along_variables(tmp_path, kind, join, rows):
    """Its variables are also concatenated, with their columns and arrays."""
    schema = plain(x=(kind, "f4"), gene_columns=["symbol", "length"])
    objects = pair(schema, (GENES[:3], GENES[3:5]), rows)
    for number, made in enumerate(objects):
        made.obs_names = [f"cell{row}" for row in range(made.n_obs)]
        raw = make(plain(x=(kind, "f4"), gene_columns=["symbol"], extras={"varm"}), number, GENES[: 5 + number], made.n_obs)
        raw.obs_names = made.obs_names
        made.raw = raw
    MERGING.equal(write_all(tmp_path, *objects), "--axis", "var", "--join", join, axis="var", join=join)


def test_row_pointers_are_rebased(tmp_path, raddle):
    inputs = write_all(tmp_path, *pair(plain()))
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged, h5py.File(inputs[0]) as first, h5py.File(inputs[1]) as second:
        pointers = merged["X/indptr"][:]
        assert len(pointers) == 8 and pointers[0] == 0 and pointers[-1] == len(merged["X/data"])
        joined = np.concatenate([first["X/indptr"][:], second["X/indptr"][1:] + len(first["X/data"])])
        assert pointers.tolist() == joined.tolist()
        assert merged["X"].attrs["shape"].tolist() == [7, 5]
        assert merged["X"].attrs["encoding-type"] == "csr_matrix"
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("kind", ["dense", *anndata_files.SPARSE])
def test_another_order_of_genes_is_not_another_set(tmp_path, raddle, kind):
    schema = plain(x=(kind, "f4"), layers={"counts": (kind, "i4")}, extras={"varm", "varp", "raw"})
    inputs = write_all(tmp_path, *pair(schema, (GENES[:5], GENES[:5][::-1])))
    output = MERGING.equal(inputs)
    assert anndata_judge.read(output).var_names.tolist() == GENES[:5]
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("kind", anndata_files.SPARSE)
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_other_genes_are_joined(tmp_path, kind, join):
    genes = (["geneC", "geneA", "geneB"], ["geneD", "geneB", "geneC"])
    inputs = write_all(tmp_path, *pair(plain(x=(kind, "f4")), genes))
    output = MERGING.equal(inputs, "--join", join, join=join)
    expected = ["geneC", "geneB"] if join == "inner" else ["geneA", "geneB", "geneC", "geneD"]
    assert anndata_judge.read(output).var_names.tolist() == expected


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_other_genes_of_many_cells(tmp_path, raddle, kind, join):
    """More elements than one block in which elements of common genes are counted, and more than one chunk."""
    random = np.random.default_rng(3)
    objects = []
    for number, columns in enumerate([300, 260]):
        made = sparse.random(4000, columns, 0.15, "csr", "f4", random)
        names = [f"gene{name}" for name in random.permutation(400)[:columns]]
        obs = pd.DataFrame(index=[f"cell{number}-{row}" for row in range(4000)])
        objects.append(anndata.AnnData(made.asformat(kind), obs=obs, var=pd.DataFrame(index=names)))
    assert all(made.X.nnz > 2 * 65536 for made in objects)
    inputs = write_all(tmp_path, *objects)
    output = MERGING.equal(inputs, "--join", join, "--memory", "64MiB", join=join)
    raddle("verify", output, "--against", *inputs, "--join", join)


@pytest.mark.parametrize("kind", ["dense", *anndata_files.SPARSE])
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_no_gene_in_common(tmp_path, kind, join):
    """No element of the inputs is used, or the other input has no element there."""
    inputs = write_all(tmp_path, *pair(plain(x=(kind, "f4")), (GENES[:2], GENES[4:6])))
    MERGING.equal(inputs, "--join", join, join=join)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_an_outer_join_without_cells_keeps_the_type(tmp_path, kind):
    inputs = write_all(tmp_path, *pair(plain(x=(kind, "f4")), (GENES[:3], GENES[1:2]), rows=(4, 0)))
    MERGING.equal(inputs, "--join", "outer", join="outer")


def test_raw_without_cells_is_left_out(tmp_path):
    """anndata treats a raw without cells as absent."""
    MERGING.equal(write_all(tmp_path, *pair(plain(extras={"raw"}), rows=(0, 0))))


def test_other_genes_are_refused(tmp_path):
    inputs = write_all(tmp_path, *pair(plain(), (GENES[:3], GENES[1:4])))
    MERGING.refused(inputs, names=["/var", "geneA", "geneD", "--join"])


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (["cab", "cab"], "cab"),
        (["cab", "a"], "cab"),
        (["a", "cab"], "abc"),
        (["ca", "b"], "abc"),
        (["ba", "ab"], "ba"),
        (["", "ba"], "ab"),
    ],
)
def test_categories_are_united_as_anndata_orders_them(tmp_path, own, expected):
    inputs = write_all(
        tmp_path,
        *(
            make(plain(), number, GENES[:2], 5, replaced={"group": lambda random, rows, letters=letters: (
                anndata_files._letters(random, rows, letters)
            )})
            for number, letters in enumerate(own)
        ),
    )
    output = MERGING.equal(inputs)
    assert list(anndata_judge.read(output).obs["group"].cat.categories) == list(expected)


def test_numbers_in_categories_are_sorted_naturally(tmp_path):
    names = [["b", "a10", "a2"], ["z", "a2", "a1"]]
    columns = [lambda random, rows, own=own: pd.Categorical(random.choice(own, rows), categories=own) for own in names]
    objects = [make(plain(), number, GENES[:2], 4, replaced={"group": columns[number]}) for number in range(2)]
    output = MERGING.equal(write_all(tmp_path, *objects))
    assert list(anndata_judge.read(output).obs["group"].cat.categories) == ["a1", "a2", "a10", "b", "z"]


def test_codes_are_widened_with_the_number_of_categories(tmp_path):
    def column(number):
        own = [f"clone{index}" for index in range(100 * number, 100 * number + 100)]
        return lambda random, rows: pd.Categorical(own, categories=own)

    objects = [make(plain(), number, GENES[:2], 100, replaced={"clone": column(number)}) for number in range(3)]
    output = MERGING.equal(write_all(tmp_path, *objects))
    with h5py.File(output) as merged:
        assert merged["obs/clone/codes"].dtype == np.int16


def test_ordered_categories_must_agree(tmp_path):
    def column(own):
        return {"stage": lambda random, rows: pd.Categorical(random.choice(own, rows), categories=own, ordered=True)}

    objects = [
        make(plain(), number, GENES[:2], 3, replaced=column(own))
        for number, own in enumerate([["low", "high"], ["high", "low"]])
    ]
    MERGING.refused(write_all(tmp_path, *objects), names=["/obs/stage", "low", "high"])


@pytest.mark.parametrize("column", anndata_files.COLUMNS)
def test_columns(tmp_path, column):
    MERGING.equal(write_all(tmp_path, *pair(plain(columns=[column]), rows=(6, 5))))


@pytest.mark.parametrize("join", ["inner", "outer"])
@pytest.mark.parametrize("column", ["group", "score", "maybe", "seen", "label"])
def test_a_missing_column(tmp_path, join, column):
    schema = plain()
    objects = [make(schema, 0, GENES[:2], 3, columns=["count", column]), make(schema, 1, GENES[:2], 3, columns=["count"])]
    inputs = write_all(tmp_path, *objects)
    MERGING.refused(inputs, names=[f"/obs/{column}", "--join"])
    MERGING.equal(inputs, "--join", join, join=join)


@pytest.mark.parametrize("column", ["count", "flag", "note"])
def test_a_missing_column_that_changes_its_type(tmp_path, column):
    """In anndata, numbers become float64, booleans nullable, and strings missing."""
    objects = [make(plain(), 0, GENES[:2], 3, columns=["total", column]), make(plain(), 1, GENES[:2], 3, columns=["total"])]
    MERGING.equal_or_refused(write_all(tmp_path, *objects), "--join", "outer", join="outer")


@pytest.mark.parametrize("extra", anndata_files.EXTRAS)
def test_elements(tmp_path, raddle, extra):
    inputs = write_all(tmp_path, *pair(plain(extras={extra})))
    output = MERGING.equal(inputs)
    raddle("verify", output, "--against", *inputs)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_pairs_of_observations(tmp_path, raddle, kind):
    objects = pair(plain(extras={"obsp"}))
    if kind == "dense":
        for made in objects:
            made.obsp["neighbours"] = made.obsp["neighbours"].toarray()
    inputs = write_all(tmp_path, *objects)
    output = MERGING.equal(inputs)
    with h5py.File(output) as merged:
        assert "obsp" not in merged or "neighbours" not in merged["obsp"]
    message = raddle("merge", *inputs, "-o", tmp_path / "again.h5ad")
    assert "obsp/neighbours" in message.stdout + message.stderr
    (tmp_path / "again.h5ad").unlink()
    output.unlink()
    if kind == "dense":
        MERGING.refused(inputs, "--pairwise", names=["/obsp/neighbours", "csr_matrix"])
    else:
        MERGING.equal(inputs, "--pairwise", pairwise=True)


@pytest.mark.parametrize("policy", ["same", "unique", "first", "only"])
def test_policies_for_what_belongs_to_genes(tmp_path, policy):
    schema = plain(extras={"varm", "varp", "uns"}, gene_columns=["length", "symbol", "biotype", "differs"])
    objects = pair(schema)
    objects[0].varm["one"] = np.ones((5, 1))
    objects[1].uns["two"] = 2
    MERGING.equal(write_all(tmp_path, *objects), "--merge", policy, merge=policy, uns_merge=policy)


def test_raw_of_some_is_not_lost_silently(tmp_path):
    schema = plain()
    objects = [make(schema, 0, GENES[:2], 3, extras={"raw"}), make(schema, 1, GENES[:2], 3)]
    MERGING.refused(write_all(tmp_path, *objects), names=["/raw", "--join"])


def test_a_missing_matrix_is_refused(tmp_path):
    objects = [make(plain(), 0, GENES[:2], 3), make(plain(), 1, GENES[:2], 3, x=None)]
    MERGING.refused(write_all(tmp_path, *objects), names=["/X"])


def test_files_without_a_matrix(tmp_path):
    MERGING.equal(write_all(tmp_path, *pair(plain(x=None))))


@pytest.mark.parametrize("rows", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_files_without_observations(tmp_path, rows, kind):
    MERGING.equal(write_all(tmp_path, *pair(plain(x=(kind, "f4"), columns=["count", "group"]), rows=rows)))


def test_repeated_names_are_kept_and_reported(tmp_path, raddle):
    objects = pair(plain())
    objects[1].obs_names = objects[0].obs_names[:3]
    inputs = write_all(tmp_path, *objects)
    output = MERGING.equal(inputs)
    output.unlink()
    message = raddle("merge", *inputs, "-o", output)
    assert "cell0-0" in message.stdout + message.stderr and "--index-unique" in message.stdout + message.stderr
    output.unlink()
    merged = anndata_judge.read(MERGING.equal(inputs, "--index-unique", "-", index_unique="-"))
    assert merged.obs_names.tolist() == [*(f"cell0-{row}-0" for row in range(4)), *(f"cell0-{row}-1" for row in range(3))]


def test_repeated_genes_are_refused(tmp_path):
    objects = pair(plain(gene_columns=[]))
    for made in objects:
        made.var_names = ["a", "a", "b", "c", "d"]
    MERGING.refused(write_all(tmp_path, *objects), names=["/var", "a"])


def test_widths_that_differ_are_refused(tmp_path):
    schema = plain(extras={"obsm"})
    objects = [make(schema, 0, GENES[:2], 3), make(schema, 1, GENES[:2], 3, width=3)]
    MERGING.refused(write_all(tmp_path, *objects), names=["/obsm/pca", "2", "3"])


@pytest.mark.parametrize(("first", "second"), [("f4", "f8"), ("i4", "f4"), ("u1", "i8"), ("bool", "i4")])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_types_are_promoted_or_refused(tmp_path, first, second, kind):
    objects = [make(plain(), number, GENES[:3], 3, x=(kind, dtype)) for number, dtype in enumerate([first, second])]
    outcome = MERGING.equal_or_refused(write_all(tmp_path, *objects))
    if isinstance(outcome, Refusal):
        assert "/X" in outcome


def test_an_index_of_another_name(tmp_path):
    objects = pair(plain())
    for made in objects:
        made.obs.index.name = "barcode"
    MERGING.equal(write_all(tmp_path, *objects))


def test_compressed_inputs(tmp_path):
    inputs = [
        anndata_files.write(tmp_path / f"{number}.h5ad", made, compression="gzip")
        for number, made in enumerate(pair(plain(extras={"obsm", "raw"})))
    ]
    MERGING.equal(inputs)


def test_many_inputs(tmp_path):
    MERGING.equal(write_all(tmp_path, *(make(plain(), number, GENES[:4], number % 4) for number in range(12))))


def test_files_of_old_versions_are_refused(tmp_path):
    """Before encodings, anndata stored categories elsewhere and sparse formats in other attributes."""
    paths = [tmp_path / f"old{number}.h5ad" for number in range(2)]
    for path in paths:
        with h5py.File(path, "w") as file:
            file["X/data"], file["X/indices"], file["X/indptr"] = np.ones(2, "f4"), np.arange(2), np.array([0, 1, 2])
            file["X"].attrs["h5sparse_format"], file["X"].attrs["h5sparse_shape"] = "csr", [2, 2]
            rows = np.array([(b"a", 1), (b"b", 2)], [("index", "S1"), ("n", "i4")])
            file["obs"], file["var"] = rows, rows
    MERGING.refused(paths, names=["h5sparse_format", "anndata"])


def test_concatenated_bytes_are_only_made_on_demand(tmp_path, raddle):
    inputs = write_all(tmp_path, *pair(plain()))
    output = tmp_path / "bytes.h5ad"
    raddle("merge", *inputs, "-o", output, "--convention", "none", "--scalars", "first")
    with h5py.File(output) as merged:
        assert len(merged["X/indptr"]) == 9


def test_a_plan_names_the_convention(tmp_path, raddle):
    assert "anndata" in raddle("plan", *write_all(tmp_path, *pair(plain()))).stdout.lower()


def with_letters(letters):
    """Returns an object per entry of ``letters``: with a column of these categories, or without that column."""
    objects = []
    for number, own in enumerate(letters):
        columns = [] if own is None else ["group"]
        replaced = {} if own is None else {"group": lambda random, rows, own=own: anndata_files._letters(random, rows, own)}
        objects.append(make(plain(columns=columns), number, GENES[:2], 3, replaced=replaced))
    return objects


@pytest.mark.parametrize("axis", ["obs", "var"])
@pytest.mark.parametrize(
    "letters",
    [["ab", None, "xy"], [None, "ba", "xy"], ["q", None, "ab", "z"], [None, None, "ba", "xy"], ["ab", None, None, "b"]],
)
def test_categories_after_an_input_without_the_column(tmp_path, raddle, axis, letters):
    """The codes of each input are numbers of its own categories."""
    inputs = write_all(tmp_path, *(made.T if axis == "var" else made for made in with_letters(letters)))
    output = MERGING.equal(inputs, "--join", "outer", "--axis", axis, join="outer", axis=axis)
    raddle("verify", output, "--against", *inputs, "--join", "outer", "--axis", axis)


@st.composite
def cases_without_columns(draw):
    """Draws two to four files. Each has some of the columns, and its own categories."""
    schema = draw(anndata_files.schemas())
    schema.extras -= {"obsp", "raw"}
    objects = []
    for number in range(draw(st.integers(2, 4))):
        # anndata keeps the types of these columns if an input lacks them.
        columns = [name for name in ["group", "score", "maybe", "seen", "label"] if draw(st.booleans())]
        own = draw(st.sampled_from(["ab", "ba", "xy", "q", "cabx"]))
        replaced = {"group": lambda random, rows, own=own: anndata_files._letters(random, rows, own)}
        special = {"columns": columns, "replaced": replaced if "group" in columns else {}}
        objects.append(make(schema, number, GENES[:3], draw(st.integers(1, 4)), **special))
    return objects


@examples(12)
@given(cases_without_columns())
def test_random_files_that_lack_columns(objects):
    with case_folder() as folder:
        MERGING.equal(write_all(folder, *objects), "--join", "outer", join="outer")


@pytest.mark.parametrize("axis", ["obs", "var"])
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_names_of_a_fixed_length(tmp_path, raddle, axis, join):
    """anndata writes names of variable length, but reads both."""
    objects = pair(plain(x=("dense", "f4"), columns=[], gene_columns=[]), (GENES[:3], GENES[1:4]))
    inputs = write_all(tmp_path, *(made.T if axis == "var" else made for made in objects))
    for path in inputs:
        with h5py.File(path, "a") as file:
            for name in ["obs/_index", "var/_index"]:
                names, attributes = file[name].asstr()[:], dict(file[name].attrs)
                del file[name]
                file[name] = names.astype("S8")
                file[name].attrs.update(attributes)
    output = MERGING.equal(inputs, "--axis", axis, "--join", join, axis=axis, join=join)
    raddle("verify", output, "--against", *inputs, "--axis", axis, "--join", join)


@pytest.mark.parametrize("policy", ["same", "unique"])
def test_categories_in_another_order_are_the_same_values(tmp_path, policy):
    """For pandas, columns are equal if their categories are the same set, or the same list if these are ordered."""
    columns = {
        "permuted": [("xyz", "xy xz", False), ("zxy", "xy xz", False)],
        "more": [("xyz", "xy xy", False), ("xy", "xy xy", False)],
        "ordered": [("xy", "xy xy", True), ("yx", "xy xy", True)],
        "differs": [("xy", "xy xy", False), ("yx", "yx xy", False)],
    }
    objects = pair(plain(gene_columns=[]))
    for number, made in enumerate(objects):
        for name, files in columns.items():
            order, values, is_ordered = files[number]
            # The blank becomes a missing value.
            made.var[name] = pd.Categorical(list(values), categories=list(order), ordered=is_ordered)
    output = MERGING.equal(write_all(tmp_path, *objects), "--merge", policy, merge=policy, uns_merge=policy)
    assert list(anndata_judge.read(output).var.columns) == ["permuted"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("columns", [["obs/group"], ["obs/group", "obs/count"], ["var/length"]])
def test_columns_may_be_left_out(tmp_path, raddle, columns, count):
    """The frame then lists the other columns only."""
    objects = pair(plain())[:count]
    inputs = write_all(tmp_path, *objects)
    for parts in objects:
        for column in columns:
            frame, name = column.split("/")
            getattr(parts, frame).drop(columns=name, inplace=True)
    output = tmp_path / "output.h5ad"
    exclude = [f"--exclude={column}" for column in columns]
    raddle("merge", *inputs, "-o", output, *exclude)
    expected = tmp_path / "expected.h5ad"
    made = objects[0] if count == 1 else anndata.concat(objects, merge="same", uns_merge="same")
    anndata_files.write(expected, made)
    anndata_judge.same(anndata_judge.read(output), anndata_judge.read(expected))
    raddle("verify", output, "--against", *inputs, *exclude)


def letters(values, categories, ordered=False):
    return pd.Categorical([*values], categories=[*categories], ordered=ordered)


def of_one(values):
    return sparse.csr_matrix(np.array(values))


UNS = {
    "more categories": (letters("ab", "ab"), letters("ab", "abc")),
    "ordered otherwise": (letters("ab", "ab", True), letters("ab", "ba")),
    "other categories": (letters("ab", "ab"), letters("ba", "ab")),
    "texts": (letters("ab", "ab"), np.array(["a", "b"], object)),
    "categories of strings": (np.array(["a", "b"], object), letters("ab", "ba")),
    "missing": (letters(["a", None], "a"), letters(["a", None], "ab")),
    "types of nullable": (pd.array([1, None], dtype="Int32"), pd.array([1, None], dtype="Int64")),
    "other nullable": (pd.array([1, None], dtype="Int32"), pd.array([1, 2], dtype="Int32")),
    "nullable strings": (pd.array(["a", "b"], dtype="string"), letters("ab", "ab")),
    "numbers": (pd.Categorical([3, 4]), pd.Categorical([3, 4], categories=[4, 3])),
    "by column": (of_one([[1.0, 0], [2, 3]]), of_one([[1.0, 0], [2, 3]]).tocsc()),
    "by row": (of_one([[1.0, 0], [2, 3]]).tocsc(), of_one([[1.0, 0], [2, 3]])),
    "other by column": (of_one([[1.0, 0], [2, 3]]), of_one([[1.0, 2], [0, 3]]).tocsc()),
    "dense": (of_one([[1.0, 0], [2, np.nan]]), np.array([[1.0, 0], [2, np.nan]])),
    "dense of another type": (of_one([[1.0, 0], [2, 3]]), np.array([[1.0, 0], [2, 3]], "f4")),
    "other dense": (of_one([[1.0, 0], [2, 3]]), np.array([[1.0, 0], [3, 2]])),
    "sparse": (np.array([[1.0, 0], [2, 3]]), of_one([[1.0, 0], [2, 3]])),
    "name of an index": tuple(pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name=name)) for name in [None, "n"]),
    "categories of a column": tuple(
        pd.DataFrame({"a": letters("ab", categories)}, index=["x", "y"]) for categories in ["ab", "abc"]
    ),
}


@pytest.mark.parametrize("policy", ["same", "unique", "first"])
@pytest.mark.parametrize("case", UNS)
def test_equal_values_of_other_kinds(tmp_path, policy, case):
    """What anndata takes for equal is kept; it compares the types of columns, but not those of categoricals in ``uns``."""
    for place in ["uns", "nested"]:
        (tmp_path / place).mkdir()
        objects = pair(plain())
        for made, value in zip(objects, UNS[case]):
            made.uns = {"kept": value} if place == "uns" else {"nested": {"kept": value}}
        MERGING.equal(write_all(tmp_path / place, *objects), "--merge", policy, merge=policy, uns_merge=policy)


@pytest.mark.parametrize("policy", ["same", "unique"])
def test_strings_of_other_types_are_equal(tmp_path, policy):
    """anndata reads all of them as strings."""
    objects = pair(plain())
    for made in objects:
        made.uns = {"kept": np.array(["a", "bcd"], object)}
    inputs = write_all(tmp_path, *objects)
    with h5py.File(inputs[1], "a") as file:
        attributes = dict(file["uns/kept"].attrs)
        del file["uns/kept"]
        file["uns/kept"] = np.array([b"a", b"bcd"], "S5")
        file["uns/kept"].attrs.update(attributes)
    MERGING.equal(inputs, "--merge", policy, merge=policy, uns_merge=policy)


@pytest.mark.parametrize("name", ["first", "stack"])
def test_options_for_scalars_do_not_hide_other_genes(tmp_path, name):
    genes = GENES[:4]
    MERGING.refused(write_all(tmp_path, *pair(plain(), (genes, GENES[1:5]))), "--scalars", name, names=["/var", "--join"])
    (tmp_path / "order").mkdir()
    MERGING.equal_or_refused(write_all(tmp_path / "order", *pair(plain(), (genes, genes[::-1]))), "--scalars", name)
