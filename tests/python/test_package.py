"""The package around the reader: command, separate process, types, and protection against hostile files."""

import ast
import inspect
import json

import h5py
import numpy as np
import pytest
from conftest import PACKAGES, ROOT
from interpreter import python
from raddle import _core


def test_the_command_runs_in_the_interpreter(environment, runs, tmp_path):
    version = python(environment, "-m", "raddle", "--version")
    assert version.returncode == 0 and version.stdout.startswith("raddle ")
    output = tmp_path / "all.h5"
    merged = python(environment, "-m", "raddle", "merge", *runs, "-o", output)
    assert merged.returncode == 0, merged.stderr
    verified = python(environment, "-m", "raddle", "verify", output, "--against", *runs, "--report", tmp_path / "verify.json")
    assert verified.returncode == 0
    page = python(environment, "-m", "raddle", "report", tmp_path / "verify.json", "-o", tmp_path / "page.html")
    assert page.returncode == 0, page.stderr
    again = python(environment, "-m", "raddle", "merge", *runs, "-o", output)
    assert again.returncode == 5 and "error:" in again.stderr
    assert python(environment, "-m", "raddle", "nonsense").returncode == 2


def test_the_command_measures_in_the_interpreter(environment, tmp_path):
    """Runs, and the commands that predict tables, are processes of their own."""
    words = ["-m", "raddle", "bench", "--scale", "tiny", "--blocks", "1", "-q", "--scratch", tmp_path]
    measured = python(environment, *words, "tables", "--only", "concat")
    assert measured.returncode == 0 and "gzip=4" in measured.stdout, measured.stderr
    predicted = python(environment, *words, "pidx-sc12", "--only", "files")
    assert predicted.returncode == 0 and "as in the paper" in predicted.stdout, predicted.stderr


def test_the_command_starts_without_numpy(environment):
    code = "import sys; sys.argv = ['raddle', '--version']; import raddle.__main__ as m; m.main(); print('numpy' in sys.modules)"
    assert python(environment, "-c", code).stdout.endswith("False\n")


@pytest.fixture
def virtual(tmp_path):
    """A virtual dataset, which only libhdf5 reads."""
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["d"] = np.arange(100).reshape(20, 5)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout((40, 5), "i8")
        layout[:20] = h5py.VirtualSource("source.h5", "d", (20, 5))
        layout[20:] = h5py.VirtualSource("source.h5", "d", (20, 5))
        file.create_virtual_dataset("v", layout)
        file["references"] = np.array([file["v"].ref], h5py.ref_dtype)
    return tmp_path / "virtual.h5"


WITHOUT_H5PY = """
import sys
sys.modules["h5py"] = None
import numpy as np
import raddle
"""


def test_libhdf5_reads_in_a_process_of_its_own(environment, virtual):
    code = f"""{WITHOUT_H5PY}
expected = np.concatenate([np.arange(100).reshape(20, 5)] * 2)
with raddle.open({str(virtual)!r}) as file:
    dataset = file["v"]
    assert dataset.shape == (40, 5) and dataset.dtype == np.dtype("i8") and dataset.chunks is None
    for selection in [(), np.s_[3:30], np.s_[::7, 1], 5, [1, 30], np.s_[:, [0, 3]], np.s_[4, 4], np.s_[9:9]]:
        assert np.array_equal(dataset[selection], expected[selection]), selection
    try:
        file["references"][:]
    except NotImplementedError as error:
        assert error.kind == "unsupported" and "h5py" in str(error)
        print("good")
"""
    finished = python(environment, "-c", code)
    assert finished.stdout == "good\n", finished.stderr


def test_a_virtual_dataset_is_merged(environment, virtual, tmp_path):
    output = tmp_path / "all.h5"
    command = ["-m", "raddle", "merge", virtual, "-o", output, "--exclude", "references"]
    finished = python(environment, *command)
    assert finished.returncode == 0, finished.stderr
    with h5py.File(output) as file:
        assert np.array_equal(file["v"][:20], np.arange(100).reshape(20, 5))


def test_names_are_those_that_are_meant(environment):
    code = "import raddle; print(dir(raddle)); print(raddle.errors.RaddleError is raddle.RaddleError)"
    names, same = python(environment, "-c", code).stdout.splitlines()
    shown = [name for name in ast.literal_eval(names) if not name.startswith("__")]
    assert shown == sorted(name for name in __import__("raddle").__all__ if name != "__version__") and same == "True"


@pytest.mark.parametrize("module", ["errors", "events", "gpu", "idx"])
def test_a_module_of_the_package_is_an_attribute(environment, module):
    finished = python(environment, "-c", f"import raddle; print(raddle.{module}.__name__)")
    assert finished.stdout == f"raddle.{module}\n", finished.stderr


def test_types_are_sound(environment):
    pytest.importorskip("mypy", reason="mypy is not installed")
    checked = python(environment, "-m", "mypy", "--strict", "python/raddle", cwd=ROOT)
    assert checked.returncode == 0, checked.stdout


def test_every_public_name_has_a_known_type(environment):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    command = ["-m", "basedpyright", "--verifytypes", "raddle", "--ignoreexternal", "--outputjson"]
    checked = json.loads(python(environment, *command).stdout)["typeCompleteness"]
    unknown = [symbol["name"] for symbol in checked["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]
    assert checked["completenessScore"] == 1 and not unknown, unknown


MISUSES = """
import raddle
raddle.merge([], "all.h5", typo=3)
raddle.merge([], "all.h5", join="all")
raddle.verify("all.h5", join="all")
raddle.append("all.h5", [], join="inner")
raddle.none
"""

USES = """
import raddle
report = raddle.merge([], "all.h5", join="union", memory="1GiB", include=["/rec"], extendible=True, chunk=(1, 2))
raddle.plan("runs", layout="scan", contiguous=1024, rules="rules.toml")
raddle.select("all.h5", "skim.h5", where={"rec": raddle.col("run").is_in({1, 2})})
try:
    raddle.rechunk("old.h5", "new.h5", rank_1=True)
except raddle.errors.OutputError as error:
    print(error.hint)
"""


def test_misuse_is_found_by_type_checkers(environment, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    for name, code, errors in (("misuses", MISUSES, 5), ("uses", USES, 0)):
        (tmp_path / f"{name}.py").write_text(code)
        checked = python({**environment, "MYPYPATH": str(PACKAGES)}, "-m", "mypy", tmp_path / f"{name}.py", cwd=tmp_path)
        assert checked.stdout.count(": error:") == errors, checked.stdout


def parameters(function):
    """Returns the names of a stub's parameters, without self and cls."""
    names = [argument.arg for argument in function.args.args]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_the_stub_is_that_of_the_compiled_part():
    # mypy's own comparison rereads the numpy stubs at each call, which takes half a minute.
    stub = ast.parse((PACKAGES / "raddle/_core.pyi").read_text())
    functions = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    classes = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    for function in functions:
        assert list(inspect.signature(getattr(_core, function.name)).parameters) == parameters(function)
    assert {name for name in dir(_core) if not name.startswith("_")} == {node.name for node in [*functions, *classes]}
    for described in classes:
        compiled = getattr(_core, described.name)
        methods = {node.name: node for node in described.body if isinstance(node, ast.FunctionDef)}
        constructor = methods.pop("__new__", None)
        if constructor is None:
            with pytest.raises(TypeError, match="cannot create|No constructor"):
                compiled()
        else:
            assert list(inspect.signature(compiled).parameters) == parameters(constructor)
        for name, method in methods.items():
            assert list(inspect.signature(getattr(compiled, name)).parameters)[1:] == parameters(method), name
        known = {name for name in vars(compiled) if not name.startswith("_")}
        assert known == {name for name in methods if not name.startswith("_")}


def test_everything_public_is_described(environment):
    code = """
import inspect, raddle
from raddle import errors, events, gpu, idx
for module in (raddle, errors, events, gpu, idx):
    for name in module.__all__:
        found = getattr(module, name)
        assert name.startswith("_") or inspect.getdoc(found), name
        members = vars(found).items() if inspect.isclass(found) else ()
        for member, value in members:
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), (name, member)
"""
    finished = python(environment, "-c", code)
    assert finished.returncode == 0, finished.stderr
