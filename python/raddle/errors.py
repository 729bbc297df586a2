"""Exceptions of raddle.

Each of them is a `RaddleError` and, if a built-in class fits, also one of that class, so that ``except OSError`` or
``except KeyError`` catches it. Each has these attributes:

* ``kind``: a short identifier for programs, for example ``"damaged"``; stable, unlike the message;
* ``exit_code``: exit code of the ``raddle`` command for this error (``raddle merge --help`` lists them);
* ``details``: further lines of the message, such as the table of differences between inputs, or None;
* ``hint``: suggested action, or None;
* ``differences``: differences between inputs, if they are the cause: ``path``, ``kind``, ``expected``, ``found``,
  ``inputs``, as in reports.

Warnings are `RaddleWarning`s. ``warnings.simplefilter("error", raddle.errors.DifferencesWarning)`` refuses inputs that
differ in any way, before anything is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raddle._reports import Fields

__all__ = [
    "RaddleError",
    "InternalError",
    "UsageError",
    "SelectionError",
    "ObjectNotFoundError",
    "TooManyLinksError",
    "InputError",
    "InputNotFoundError",
    "DamagedError",
    "UnsupportedError",
    "OutputError",
    "LimitError",
    "LockedError",
    "InterruptedRunError",
    "RankFailedError",
    "RaddleWarning",
    "DifferencesWarning",
    "StaleIndexWarning",
]


class RaddleError(Exception):
    """Base class of all exceptions of raddle."""

    kind: str = "error"
    exit_code: int = 1
    details: str | None = None
    hint: str | None = None
    differences: Sequence[Fields] = ()
    _message: str | None = None

    def __str__(self) -> str:
        message = self._message
        if message is None:
            message = " ".join(str(argument) for argument in self.args)
        parts = [message]
        if self.details:
            parts.append(self.details.rstrip("\n"))
        if self.hint:
            parts.append(f"what to do: {self.hint}")
        return "\n".join(parts)


class InternalError(RaddleError, RuntimeError):
    """A bug in raddle. Please report the message and the steps that led to it."""

    kind = "internal"


class UsageError(RaddleError, ValueError):
    """Invalid arguments."""

    kind = "usage"
    exit_code = 2


class SelectionError(UsageError, IndexError):
    """A selection with more indices than the dataset has dimensions, or with two Ellipses.

    It is a ``ValueError``, as in h5py, and an ``IndexError``, as in numpy.
    """


class ObjectNotFoundError(RaddleError, KeyError):
    """An object or attribute that does not exist."""

    kind = "not_found"
    exit_code = 3


class TooManyLinksError(RaddleError, RuntimeError):
    """A path with circular soft links, or with more than 16; h5py also raises a ``RuntimeError``."""

    kind = "too_many_links"
    exit_code = 3


class InputError(RaddleError, OSError):
    """A file that cannot be read, or that does not fit the others; nothing was written.

    ``errno`` is set if the operating system reported an error.
    """

    kind = "input_refused"
    exit_code = 3


class InputNotFoundError(InputError, FileNotFoundError):
    """A file that does not exist."""

    kind = "io"


class DamagedError(InputError):
    """A file that violates the format or is inconsistent (``not_hdf5``, ``truncated``, ``damaged``)."""

    kind = "damaged"


class UnsupportedError(RaddleError, NotImplementedError):
    """Valid data that neither raddle, nor libhdf5 in its child process, nor h5py (if installed) can read."""

    kind = "unsupported"
    exit_code = 3


class OutputError(RaddleError, OSError):
    """The output cannot be written: space, permission, device, or it already exists."""

    kind = "output"
    exit_code = 5


class LimitError(RaddleError, OSError):
    """A limit was reached: memory, open files, size."""

    kind = "limit"
    exit_code = 6


class LockedError(RaddleError, BlockingIOError):
    """Another run is writing the same output, or a program has an input open for writing."""

    kind = "locked"
    exit_code = 7


class InterruptedRunError(RaddleError):
    """A run was stopped. The same call resumes it."""

    kind = "interrupted"
    exit_code = 130


class RankFailedError(RaddleError):
    """Another rank of a collective call failed, and its exception describes why; nothing was written."""

    kind = "rank_failed"


class RaddleWarning(UserWarning):
    """Base class of raddle's warnings that carry more than a message."""


class DifferencesWarning(RaddleWarning):
    """Inputs differ, and the run continues, as its options allow; ``differences`` lists all differences."""

    def __init__(self, message: str, differences: Sequence[Fields] = ()) -> None:
        super().__init__(message, differences)
        self.differences = differences

    def __str__(self) -> str:
        return str(self.args[0])


class StaleIndexWarning(RaddleWarning):
    """The index of a file was written for a different state of the file, and was not used."""


_SHOWN_DIFFERENCES = 20
"""Maximum number of differences in the text of a warning."""


def _differences(text: str) -> list[Fields]:
    from raddle._reports import Fields

    return [Fields(difference) for difference in json.loads(text)]


def _differences_warning(text: str) -> DifferencesWarning:
    """Creates the warning about differences that the compiled part reports as JSON."""
    differences = _differences(text)
    count = f"{len(differences):,} difference{'' if len(differences) == 1 else 's'}"
    lines = [f"{count} between the inputs, resolved by the options or their defaults:"]
    for difference in differences[:_SHOWN_DIFFERENCES]:
        inputs = difference.inputs
        more = f" and {len(inputs) - 3:,} more" if len(inputs) > 3 else ""
        found = f"{difference.found} instead of {difference.expected}"
        lines.append(f"  {difference.path}: {difference.kind}: {found} in {', '.join(inputs[:3])}{more}")
    if len(differences) > _SHOWN_DIFFERENCES:
        lines.append(f"  and {len(differences) - _SHOWN_DIFFERENCES:,} more")
    return DifferencesWarning("\n".join(lines), differences)


_CLASSES: dict[str, type[RaddleError]] = {
    "internal": InternalError,
    "usage": UsageError,
    "not_found": ObjectNotFoundError,
    "too_many_links": TooManyLinksError,
    "not_hdf5": DamagedError,
    "truncated": DamagedError,
    "damaged": DamagedError,
    "unsupported": UnsupportedError,
    "output": OutputError,
    "limit": LimitError,
    "locked": LockedError,
    "interrupted": InterruptedRunError,
    "rank_failed": RankFailedError,
}

_ENOENT = 2


def _make(
    kind: str,
    exit_code: int,
    message: str,
    details: str | None,
    hint: str | None,
    errno: int | None,
    differences: str = "[]",
) -> RaddleError:
    """Creates the exception for an error of the compiled part."""
    fallback = InputNotFoundError if errno == _ENOENT else InputError
    error = _CLASSES.get(kind, fallback)(message)
    error.kind, error.exit_code, error.details, error.hint = kind, exit_code, details, hint
    error._message = message
    error.differences = _differences(differences)
    if errno is not None and isinstance(error, OSError):
        error.errno = errno
        error.strerror = message
    return error
