"""Merges whose outcome is judged: an output that reads as the concatenation of its inputs, or a refusal.

After a refusal no file may have been written, and the message must help. Any other outcome is wrong.
"""

import collections
import contextlib
import itertools
import os
import re
import tempfile
from pathlib import Path

import pytest
from command import run_command
from hypothesis import settings

COUNTS = collections.defaultdict(lambda: dict.fromkeys(["drawn", "equal", "refused", "wrong"], 0))


# Cases of each property, if set; they are then random, and differ in every run.
EXAMPLES = os.environ.get("RADDLE_MEANING_EXAMPLES")


def examples(count):
    """Returns the settings of a property: ``count`` cases, unless RADDLE_MEANING_EXAMPLES overrides it."""
    return settings(max_examples=int(EXAMPLES or count))


class NoConcatenation(Exception):
    """Raised if the convention defines no concatenation of these inputs: only a refusal is right."""


class Refusal(str):
    """The message of a merge that refused its inputs and wrote nothing."""


@contextlib.contextmanager
def case_folder():
    """Provides a folder for one drawn case; a test has many."""
    with tempfile.TemporaryDirectory(prefix="meaning-") as name:
        yield Path(name)


def merge_or_refusal(inputs, *options, output=None):
    """Merges. Returns the path of the output, or the refusal (exit code 3 and nothing written)."""
    inputs = [Path(path) for path in inputs]
    output = Path(output or _free_name(inputs[0]))
    before = sorted(output.parent.iterdir())
    finished = run_command("merge", *inputs, "-o", output, *options, "--progress", "never")
    text = finished.stdout + finished.stderr
    if finished.returncode == 0:
        return output
    assert finished.returncode == 3, f"{finished.args}\nrc {finished.returncode}\n{text}"
    assert sorted(output.parent.iterdir()) == before, f"something was written\n{text}"
    assert text.strip(), "refused without a message"
    return Refusal(text)


def _free_name(path):
    """Returns an unused name for an output next to an input."""
    names = (path.parent / f"merged{number or ''}{path.suffix}" for number in itertools.count())
    return next(name for name in names if not name.exists())


def _without_wraps(message):
    """Returns a message without blanks, followed by each column of its table, because cells are wrapped line by
    line."""
    columns, starts = [], []
    for line in message.splitlines():
        if line.startswith(" object "):
            starts = [match.start() for match in re.finditer(r"(?<=  )\S|(?<=^ )\S", line)]
            columns += [""] * (len(starts) - len(columns))
        elif not line.startswith(" "):
            starts = []
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], None])):
            columns[number] += line[start:end]
    return re.sub(r"\s", "", "\n".join([message, *columns]))


class Merging:
    """Merges of one convention, counted by their outcome. ``judge(output, inputs, **how)`` asserts that the output
    reads as the concatenation of the inputs; it raises `NoConcatenation` if there is none."""

    def __init__(self, convention, judge):
        self.counts = COUNTS[convention]
        self.judge = judge

    def equal(self, inputs, *options, **how):
        """Merges inputs that must merge; returns the output."""
        outcome = self.equal_or_refused(inputs, *options, **how)
        assert not isinstance(outcome, Refusal), f"refused\n{outcome}"
        return outcome

    def equal_or_refused(self, inputs, *options, output=None, **how):
        """Merges inputs that may be refused, but must not produce a wrong output. Returns the output or the refusal.
        ``judge`` replaces the default judge; with ``None`` the caller judges the output."""
        self.counts["drawn"] += 1
        try:
            outcome = merge_or_refusal(inputs, *options, output=output)
            if isinstance(outcome, Refusal):
                self.counts["refused"] += 1
                return outcome
            judge = how.pop("judge", self.judge)
            if judge is not None:
                judge(outcome, inputs, **how)
        except NoConcatenation as reason:
            self.counts["wrong"] += 1
            raise AssertionError(f"merged what cannot be concatenated: {reason}") from None
        except BaseException:
            self.counts["wrong"] += 1
            raise
        self.counts["equal"] += 1
        return outcome

    def refused(self, inputs, *options, names=()):
        """Merges inputs that must be refused, with ``names`` in the message; returns the message."""
        self.counts["drawn"] += 1
        outcome = merge_or_refusal(inputs, *options)
        if not isinstance(outcome, Refusal):
            self.counts["wrong"] += 1
            pytest.fail(f"merged {[str(path) for path in inputs]} with {options}")
        self.counts["refused"] += 1
        message = _without_wraps(outcome)
        missing = [str(name) for name in names if re.sub(r"\s", "", str(name)) not in message]
        assert not missing, f"the refusal does not name {missing}\n{outcome}"
        return outcome
