"""Random AnnData objects that share a schema, written as ``.h5ad`` files by anndata.

A `Schema` holds the properties common to the files of a case; a case may be special in one respect.
"""

import dataclasses
import string

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sparse
from hypothesis import strategies as st

GENES = [f"gene{letter}" for letter in string.ascii_uppercase[:8]]
SETTINGS = {"allow_write_nullable_strings": True}


@dataclasses.dataclass
class Schema:
    """Properties common to the files of a case."""

    x: tuple
    layers: dict
    columns: list
    gene_columns: list
    extras: set
    seed: int


def matrix(random, shape, kind, dtype):
    """Returns a matrix with about half zeros."""
    values = random.integers(0, 4, shape) * (random.random(shape) < 0.6)
    if np.dtype(dtype).kind == "f":
        values = values + 0.5 * (values > 0)
    values = values.astype(dtype)
    if kind == "dense":
        return values
    made = sparse.csr_matrix(values) if kind.startswith("csr") else sparse.csc_matrix(values)
    if kind.endswith("64"):
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    if kind.endswith("unsorted") and made.nnz:
        made.data[0] = 0
        for row in range(shape[0]):
            part = slice(made.indptr[row], made.indptr[row + 1])
            made.indices[part] = made.indices[part][::-1].copy()
            made.data[part] = made.data[part][::-1].copy()
        made.has_sorted_indices = False
    return made


def _letters(random, rows, letters="cab"):
    return pd.Categorical(random.choice([*letters, None], rows), categories=list(letters))


COLUMNS = {
    "group": _letters,
    "stage": lambda random, rows: pd.Categorical(
        random.choice(["low", "high"], rows), categories=["low", "high"], ordered=True
    ),
    "plate": lambda random, rows: pd.Categorical(random.choice([30, 4], rows), categories=[30, 4]),
    "note": lambda random, rows: np.array([f"nöte {number}" for number in random.integers(0, 9, rows)], object),
    "count": lambda random, rows: random.integers(0, 99, rows).astype("i4"),
    "total": lambda random, rows: random.integers(0, 99, rows),
    "small": lambda random, rows: random.integers(0, 99, rows).astype("u1"),
    "score": lambda random, rows: np.where(random.random(rows) < 0.3, np.nan, 1.5).astype("f4"),
    "flag": lambda random, rows: random.random(rows) < 0.5,
    "maybe": lambda random, rows: pd.array(random.choice([1, 2, None], rows), dtype="Int32"),
    "seen": lambda random, rows: pd.array(random.choice([True, False, None], rows), dtype="boolean"),
    "label": lambda random, rows: pd.array(random.choice(["a", "b", None], rows), dtype="string"),
}

EXTRAS = ["obsm", "obsm sparse", "obsm frame", "varm", "varp", "obsp", "uns", "raw"]


def make(schema, number, genes, rows, **special):
    """Makes the object of a file. ``special`` replaces parts of the schema or columns."""
    random = np.random.default_rng([schema.seed, number])
    # Values that belong to genes are the same for each file.
    fixed = {gene: GENES.index(gene) + schema.seed for gene in genes}
    names = [f"cell{number}-{row}" for row in range(rows)]
    columns = special.get("columns", schema.columns)
    obs = pd.DataFrame({name: COLUMNS[name](random, rows) for name in columns}, index=names)
    for name, column in special.get("replaced", {}).items():
        obs[name] = column(random, rows)
    var = pd.DataFrame(index=list(genes))
    for name in schema.gene_columns:
        var[name] = {
            "length": lambda: np.array([fixed[gene] for gene in genes]),
            "symbol": lambda: np.array([f"symbol{fixed[gene]}" for gene in genes], object),
            "biotype": lambda: pd.Categorical(["odd" if fixed[gene] % 2 else "even" for gene in genes], ["odd", "even"]),
            "differs": lambda: np.full(len(genes), number),
        }[name]()
    shape = (rows, len(genes))
    x = special.get("x", schema.x)
    made = anndata.AnnData(None if x is None else matrix(random, shape, *x), obs=obs, var=var)
    for name, kind in special.get("layers", schema.layers).items():
        made.layers[name] = matrix(random, shape, *kind)
    extras = special.get("extras", schema.extras)
    if "obsm" in extras:
        made.obsm["pca"] = random.random((rows, special.get("width", 2))).astype("f4")
    if "obsm sparse" in extras:
        made.obsm["counts"] = matrix(random, (rows, 3), "csr", "i4")
    if "obsm frame" in extras:
        made.obsm["frame"] = pd.DataFrame({"a": random.random(rows), "b": _letters(random, rows)}, index=names)
    if "varm" in extras:
        made.varm["loadings"] = np.array([[fixed[gene], 1.0] for gene in genes]).reshape(len(genes), 2)
        made.varm["differs"] = np.full((len(genes), 1), float(number))
    if "varp" in extras:
        made.varp["pairs"] = np.array([[fixed[a] * fixed[b] for a in genes] for b in genes], "f8").reshape(len(genes), -1)
    if "obsp" in extras:
        made.obsp["neighbours"] = matrix(random, (rows, rows), "csr", "f8")
    if "uns" in extras:
        made.uns = {
            "method": "scan", "version": 3, "weights": np.arange(3.0), "number": number, "nothing": None,
            "nested": {"kept": np.array(["a", "b"]), "differs": number, "deeper": {"x": 0.5}},
            "only differs": {"number": number},
        }
    if "raw" in extras:
        made.raw = anndata.AnnData(matrix(random, shape, "csr", "f4"), obs=obs[[]], var=var)
    return made


def write(path, made, **options):
    """Writes an object; strings stay strings."""
    with anndata.settings.override(**SETTINGS):
        made.write_h5ad(path, convert_strings_to_categoricals=False, **options)
    return path


def write_all(folder, *objects):
    """Writes objects named ``part0.h5ad``, ``part1.h5ad``, ..."""
    return [write(folder / f"part{number}.h5ad", made) for number, made in enumerate(objects)]


SPARSE = ["csr", "csr 64", "csr unsorted", "csc"]
DTYPES = ["f4", "f8", "i4", "i8", "u1", "bool"]


@st.composite
def schemas(draw, kinds=("dense", *SPARSE)):
    kinds = st.tuples(st.sampled_from(kinds), st.sampled_from(DTYPES))
    return Schema(
        x=draw(kinds),
        layers={f"layer{number}": draw(kinds) for number in range(draw(st.integers(0, 2)))},
        columns=draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True, max_size=4)),
        gene_columns=draw(st.lists(st.sampled_from(["length", "symbol", "biotype", "differs"]), unique=True)),
        extras=draw(st.sets(st.sampled_from(EXTRAS), max_size=4)),
        seed=draw(st.integers(0, 99)),
    )


@dataclasses.dataclass
class Case:
    """Objects in the order in which they are merged, the arguments of anndata's ``concat``, and whether a merge must succeed."""

    objects: list
    how: dict
    must_merge: bool


@st.composite
def cases(draw, what):
    """Draws two or three files of a schema; ``what`` names their special property."""
    kinds = {"outer": SPARSE, "outer dense": ["dense"]}.get(what, ["dense", *SPARSE])
    schema = draw(schemas(kinds))
    if what == "outer dense":
        schema.x = ("dense", draw(st.sampled_from(["f4", "f8"])))
        schema.layers = {}
    count = draw(st.integers(2, 3))
    rows = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    genes = draw(st.lists(st.sampled_from(GENES), unique=True, min_size=1, max_size=6))
    every = [genes] * count
    special = {}
    how = {}
    if what == "gene order":
        every = [genes, *(draw(st.permutations(genes)) for _ in range(count - 1))]
    if what in ["inner", "outer", "outer dense", "sets"]:
        every = [draw(st.lists(st.sampled_from(GENES), unique=True, min_size=1)) for _ in range(count)]
        how = {} if what == "sets" else {"join": what.split()[0]}
    if what == "pairwise":
        how = {"pairwise": True}
        schema.extras |= {"obsp"}
    if what == "index_unique":
        how = {"index_unique": draw(st.sampled_from(["-", "_"]))}
    if what in ["unique", "first", "only"]:
        how = {"merge": what, "uns_merge": what}
        schema.extras |= {"uns", "varm"}
    if what == "categories":
        others = ["ab", "abcd", "zc", "bac", ""]
        letters = [draw(st.sampled_from(others)) for _ in range(count)]
    if what == "ordered":
        orders = [["low", "high"], ["high", "low"], ["low"], ["low", "mid", "high"]]
        stages = [draw(st.sampled_from(orders)) for _ in range(count)]
    if what in SPECIAL_LAST:
        special = SPECIAL_LAST[what](draw, schema)
    objects = []
    for number in range(count):
        mine = dict(special) if number == count - 1 else {}
        if what == "categories":
            mine["replaced"] = {"group": lambda random, rows, own=letters[number]: _letters(random, rows, own)}
        if what == "ordered":
            mine["replaced"] = {
                "stage": lambda random, rows, own=stages[number]: pd.Categorical(
                    random.choice(own, rows), categories=own, ordered=True
                )
            }
        objects.append(make(schema, number, every[number], rows[number], **mine))
    return Case(objects, how, what in MUST_MERGE)


# Special properties of the last file.
SPECIAL_LAST = {
    "kinds": lambda draw, schema: {"x": draw(st.tuples(st.sampled_from(["dense", *SPARSE]), st.just(schema.x[1])))},
    "types": lambda draw, schema: {"x": (schema.x[0], draw(st.sampled_from(DTYPES)))},
    "column types": lambda draw, schema: {
        "replaced": {name: COLUMNS[draw(st.sampled_from(list(COLUMNS)))] for name in schema.columns[:1]}
    },
    "columns": lambda draw, schema: {"columns": schema.columns[1:] or ["note"]},
    "layers": lambda draw, schema: {"layers": {"layer0": ("dense", "f4")} if not schema.layers else {}},
    "extras": lambda draw, schema: {"extras": schema.extras ^ {draw(st.sampled_from(EXTRAS))}},
    "width": lambda draw, schema: {"width": 3},
    "no X": lambda draw, schema: {"x": None},
}

MUST_MERGE = [
    "plain", "gene order", "inner", "outer", "outer dense", "pairwise", "index_unique", "categories", "unique", "first", "only",
]
SPECIALS = [*MUST_MERGE, "sets", "ordered", *SPECIAL_LAST]
