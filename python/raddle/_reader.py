"""Reads one file with libhdf5 for the parent process.

Run as a script, not imported: ``python -I -S _reader.py PATH_OF_CORE``. It loads the compiled part by its path, without
the package and site-packages, and may crash on a malicious file.
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
    sys.exit(core.main(["raddle", core.reader_argument()]))
