"""Runs Python as a process."""

import subprocess
import sys


def python(environment, *arguments, **options):
    """Runs Python and returns the finished process."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False, **options
    )
