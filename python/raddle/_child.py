"""Runs the command for the parent process: it reads one file with libhdf5, measures once, or computes a plan.

Run as a script, not imported: ``python -I -S _child.py PATH_OF_CORE ARGUMENTS``. It loads the compiled part by its path,
without the package and site-packages, and may crash on a malicious file.
"""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

if __name__ == "__main__":
    loader = ExtensionFileLoader("raddle._core", sys.argv[1])
    spec = spec_from_loader("raddle._core", loader)
    assert spec is not None
    core = module_from_spec(spec)
    loader.exec_module(core)
    sys.exit(core.main(["raddle", *sys.argv[2:]]))
