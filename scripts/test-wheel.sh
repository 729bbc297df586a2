#!/bin/sh
# Installs the wheel in a folder that suits this machine into a new environment, and merges, verifies and reads with it:
#   sh scripts/test-wheel.sh dist
# PYTHON names the interpreter. Only numpy comes from elsewhere.
set -eu

[ $# -eq 1 ] || { echo "usage: sh scripts/test-wheel.sh FOLDER" >&2; exit 2; }
wheels=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/python" -m pip install --quiet --disable-pip-version-check numpy
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$wheels" raddle
cd "$work"
"$bin/raddle" --version
"$bin/raddle" demo --only-generate --keep inputs
"$bin/raddle" merge inputs -o all.h5
"$bin/raddle" verify all.h5 --against inputs
"$bin/python" - << 'END'
from importlib.metadata import distribution

import raddle

with raddle.open("all.h5") as merged:
    groups = list(merged)
assert groups, "the merged file is empty"
report = raddle.merge("inputs", "again.h5")
assert not raddle.verify("again.h5", "inputs").mismatches
files = [str(file) for file in distribution("raddle").files]
for name in ("licenses/LICENSE-MIT", "LICENSES-THIRD-PARTY.txt", "sboms/bundled-libraries.cdx.json"):
    assert any(name in file for file in files), f"the wheel lacks {name}"
print(f"raddle {raddle.__version__}: {len(groups)} groups")
END
