"""The ``raddle`` command: ``raddle ...`` or ``python -m raddle ...``."""

from __future__ import annotations

import signal
import sys

from raddle import _core


def main() -> int:
    """Runs the command line of this process and returns the exit code."""
    if sys.argv[1:2] == ["sql"]:
        from raddle._sql_command import main as run_sql

        return run_sql(sys.argv[2:])
    if sys.argv[1:2] == ["doctor"]:
        import json

        from raddle._doctor import sections

        _core.declare_sections(json.dumps(sections()))
    # The command handles the first Ctrl-C itself and reports it by its exit code, so Python must not print anything.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["raddle", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
