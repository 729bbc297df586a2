"""Progress of a run in terminals and notebooks.

The compiled part reports the progress of every stage several times a second. The stage that processes the values is
shown, in bytes: with tqdm if it is installed, otherwise as a line that is overwritten on a terminal. Nothing is shown
during the first half second, or outside of terminals and notebooks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from raddle._reports import size
from raddle.errors import UsageError, _differences_warning

Stage = tuple[str, int, int, int | None, bool]
Progress = Callable[[list[Stage], list[tuple[str, str]]], object]
ProgressMode = bool | Literal["auto"] | Callable[[str, int, int | None], object]


# Time after which a display appears, in seconds.
_DELAY_S = 0.5


def observer(progress: ProgressMode, warn: Callable[[str | Warning], object]) -> tuple[Progress, Callable[[], None]]:
    """Returns the callback for the compiled part, and a function that ends the display."""
    display: _Display
    if callable(progress):
        display = _Called(progress)
    elif progress == "auto":
        display = _best() if _is_notebook() or _is_terminal() else _Silent()
    elif progress is True:
        display = _best()
    elif progress is False:
        display = _Silent()
    else:
        raise UsageError(f"progress must be True, False, 'auto' or a function, not {progress!r}")

    def show(stages: list[Stage], messages: list[tuple[str, str]]) -> None:
        for severity, text in messages:
            if severity == "warning":
                warn(text)
            elif severity == "differences":
                warn(_differences_warning(text))
        running = [stage for stage in stages if not stage[4]] or stages[-1:]
        if running:
            # The latest stage of the run whose length is known.
            name, done, _, total, _ = max(running, key=lambda stage: (stage[3] is not None, stage[1]))
            display.advance(name, done, total)

    return show, display.close


class _Display:
    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        """Shows the progress of a stage."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the display when the run is over."""


class _Silent(_Display):
    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        pass


class _Delayed(_Display):
    """A display that appears only if the run takes longer than a moment."""

    def __init__(self, display: _Display) -> None:
        self._display = display
        self._appears_s = time.monotonic() + _DELAY_S

    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        if time.monotonic() >= self._appears_s:
            self._display.advance(stage, done_len_bytes, total_len_bytes)

    def close(self) -> None:
        self._display.close()


class _Called(_Display):
    def __init__(self, function: Callable[[str, int, int | None], object]) -> None:
        self._function = function

    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        self._function(stage, done_len_bytes, total_len_bytes)


class _Line(_Display):
    """A display as a line on standard error."""

    def __init__(self) -> None:
        self._length = 0

    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        text = f"{stage:<8} {size(done_len_bytes)}"
        if total_len_bytes:
            text += f" of {size(total_len_bytes)} ({100 * done_len_bytes / total_len_bytes:.0f} %)"
        sys.stderr.write("\r" + text.ljust(self._length))
        sys.stderr.flush()
        self._length = len(text)

    def close(self) -> None:
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()


class _Bar(_Display):
    """A display as a tqdm bar per stage."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._stage: str | None = None
        self._bar: Any = None

    def advance(self, stage: str, done_len_bytes: int, total_len_bytes: int | None) -> None:
        if stage != self._stage:
            self.close()
            self._stage = stage
            self._bar = self._make(
                desc=stage, total=total_len_bytes, unit="B", unit_scale=True, unit_divisor=1024, leave=False
            )
        self._bar.update(done_len_bytes - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _best() -> _Display:
    if sys.stderr is None:
        return _Silent()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Delayed(_Line())
    return _Delayed(_Bar(tqdm))


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "IPKernelApp" in instance.config


def _is_terminal() -> bool:
    # Programs without a terminal, such as pythonw and daemons, may have no standard error.
    return sys.stderr is not None and sys.stderr.isatty()
