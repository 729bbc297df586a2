#!/bin/sh
# Installs the system packages that tests use where that is possible: h5dump as an independent reader of our output.
# Tests that need a tool which is not there say so and skip.
set -eu

command -v h5dump >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "note: no apt-get; install h5dump (hdf5-tools) to run its tests"; exit 0; }
if [ "$(id -u)" = 0 ]; then run=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then run="sudo -n"
else echo "note: neither root nor sudo; install h5dump (hdf5-tools) to run its tests"; exit 0
fi
$run apt-get update -qq
DEBIAN_FRONTEND=noninteractive $run apt-get install -qq --yes --no-install-recommends hdf5-tools >/dev/null
