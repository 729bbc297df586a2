"""Keywords of calls that concern events, compared with the options of the command."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
import raddle
from raddle import errors

# Options of the command that are no keywords, because Python has other means: lists of inputs, logs, printed reports,
# the process that reads with libhdf5.
ONLY_IN_THE_COMMAND = {
    "list", "null", "quiet", "verbose", "log_json", "report", "help", "json",
    "no_child", "child_timeout", "reader", "reader_timeout",
}  # fmt: skip

# Keywords that are no options, because the command takes them as arguments or from its launcher.
ONLY_IN_PYTHON = {"inputs", "file", "communicator"}


def options_of(command, environment):
    """Returns the long options of a command, as its help lists them."""
    line = [sys.executable, "-m", "raddle", "events", command, "--help"]
    text = subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout
    return {name.replace("-", "_") for name in re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.MULTILINE)}


@pytest.mark.parametrize("command", ["convert", "merge", "inspect"])
def test_keywords_are_the_options_of_the_command(command, environment):
    keywords = set(inspect.signature(getattr(raddle.events, command)).parameters) - ONLY_IN_PYTHON
    options = options_of(command, environment) - ONLY_IN_THE_COMMAND
    if command == "inspect":
        options.discard("progress")
    assert keywords == options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layout": "rows"}, 'layout="rows".*columns, product, event, batch, pds, rntuple'),
        ({"differing": "drop"}, 'differing="drop".*"refuse", "leave-out", "fill"'),
        ({"order": "size"}, 'order="size".*"natural" or "given"'),
        ({"compress": "best"}, 'compress="best".*gzip:0 to gzip:9'),
        ({"codec": "gzip"}, 'codec="gzip".*none, lz4, zstd'),
        ({"batch": "many"}, 'batch="many"'),
        ({"memory": "much"}, 'memory="much".*512MiB'),
        ({"entries": "5..3"}, 'entries="5..3".*not a range'),
        ({"raw": True, "whole": True}, "whole.*cannot be used with raw"),
        ({"layout": "pds", "codec": "zlib"}, "codec.*zlib is for layout"),
        ({"serialize": "basket"}, "serialize.*expected root or unrolled"),
        ({"compat": "cce"}, 'compat.*no layout columns; give layout="product"'),
        ({"products": ["[x"]}, "products"),
        ({"codec": "lz4"}, 'codec.*has no effect on layout="columns": HDF5 compresses it'),
        ({"layout": "pds", "compress": "fast"}, 'compress.*has no effect on layout="pds".*give codec'),
        ({"layout": "rntuple", "chunk": "1MiB"}, 'chunk.*has no effect on layout="rntuple": it is not HDF5'),
        ({"layout": "rntuple", "serialize": "root"}, 'serialize.*has no effect on layout="rntuple"'),
    ],
)
def test_words_that_are_not_valid_are_named(tmp_path, options, words):
    raddle.events.write(tmp_path / "in.h5", {"x": np.arange(3)}, progress=False)
    output = tmp_path / "out.h5"
    with pytest.raises(errors.UsageError, match=words) as refused:
        raddle.events.convert(tmp_path / "in.h5", output, progress=False, **options)
    assert refused.value.exit_code == 2 and not output.exists()


def test_defaults_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("RADDLE_MEMORY", "much")
    with pytest.raises(errors.UsageError, match='memory="much"'):
        raddle.events.write(tmp_path / "x.h5", {"x": np.arange(3)}, progress=False)
    monkeypatch.setenv("RADDLE_MEMORY", "64MiB")
    monkeypatch.setenv("RADDLE_JOBS", "2")
    assert raddle.events.write(tmp_path / "x.h5", {"x": np.arange(3)}, progress=False).events == 3


def test_root_files_are_not_merged(tree, tmp_path):
    with pytest.raises(errors.InputError, match="(?s)ROOT files cannot be merged.*convert"):
        raddle.events.merge(tree, tmp_path / "out.root", progress=False)
