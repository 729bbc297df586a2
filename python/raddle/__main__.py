"""The ``raddle`` command: ``raddle ...`` or ``python -m raddle ...``."""

from __future__ import annotations

import signal
import sys

from raddle import _core


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    # The command stops by itself at the first Ctrl-C, and its exit code tells; Python has no more to say to it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["raddle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
