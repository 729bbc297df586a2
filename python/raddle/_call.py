"""Calls of the compiled part that run a command: paths, command lines, progress and warnings."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from raddle._keywords import COMMA_SEPARATED, Inputs
from raddle._progress import Progress, ProgressMode, observer
from raddle.errors import UsageError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def as_paths(inputs: Inputs) -> list[str]:
    """Returns the paths of one input or of several."""
    if isinstance(inputs, (str, bytes, os.PathLike)):
        return [os.fsdecode(inputs)]
    if hasattr(inputs, "read"):
        # Its lines would be treated as paths.
        raise UsageError(f"{inputs!r} is a file object: pass the paths of files")
    return [os.fsdecode(path) for path in inputs]


def run(call: Callable[[Progress], str], progress: ProgressMode) -> dict[str, Any]:
    """Returns the report of a run; ``call`` starts it with a callback for its progress and warnings."""

    def warn(text: str | Warning) -> None:
        warnings.warn(text, stacklevel=_level_of_caller())

    watch, close = observer(progress, warn)
    try:
        report: dict[str, Any] = json.loads(call(watch))
    finally:
        close()
    return report


def _level_of_caller() -> int:
    """Returns the ``stacklevel`` at which a warning refers to the code that called the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _word(value: object) -> object:
    """Returns a value as a command line shows it: a path as a string."""
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else value


def command_line(files: list[str], options: Mapping[str, Any]) -> list[str]:
    """Returns the arguments of a command. Paths cannot be mistaken for options or their values."""
    line: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            line.append(flag)
        elif isinstance(value, (str, bytes, int, float, os.PathLike)):
            line.append(f"{flag}={_word(value)}")
        elif name in COMMA_SEPARATED:
            line.append(f"{flag}={','.join(str(item) for item in value)}")
        else:
            line += [f"{flag}={_word(item)}" for item in value]
    return [*line, "--", *files]
