#!/bin/sh
# Installs the system packages that tests use, if possible: h5dump as an independent reader of raddle's output, a libhdf5 and a
# browser, pkg-config and a Fortran compiler, two MPIs with their parallel HDF5, and the libclang that generates bindings of an
# MPI. Tests that need a missing tool are skipped with a message.
set -eu

missing=""
# C programs that receive settings are compiled with it.
[ -e /usr/include/hdf5/serial/hdf5.h ] || missing="libhdf5-dev"
command -v h5dump >/dev/null 2>&1 || missing="$missing hdf5-tools"
# Merges of climate data are compared with those of CDO and NCO.
command -v cdo >/dev/null 2>&1 || missing="$missing cdo"
command -v ncrcat >/dev/null 2>&1 || missing="$missing nco"
# Units are compared with the library in this package.
command -v udunits2 >/dev/null 2>&1 || missing="$missing udunits-bin"
# Pages are tested in a browser.
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
# C and Fortran programs use the IDX library.
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
command -v gfortran >/dev/null 2>&1 || missing="$missing gfortran"
# Any installed MPI suffices.
if ! command -v mpicc >/dev/null 2>&1 || ! command -v mpirun >/dev/null 2>&1; then
    missing="$missing libopenmpi-dev openmpi-bin libclang-dev libhdf5-openmpi-dev"
elif ! ls /usr/lib/llvm*/lib/* /usr/lib/*/* 2>/dev/null | grep -q 'libclang\(-[0-9.]*\)\?\.so'; then
    missing="$missing libclang-dev"
fi
# Ranks are measured through a libhdf5 of any MPI, so a second MPI is installed next to Debian's Open MPI. `mpirun` and `mpicc`
# stay Open MPI's, because its alternatives have priority 50 and those of MPICH 40.
case "$missing$(ls /usr/bin/mpirun.openmpi 2>/dev/null)" in *openmpi*)
    [ -e /usr/bin/mpiexec.mpich ] || missing="$missing mpich"
    [ -e /usr/include/hdf5/mpich/hdf5.h ] || missing="$missing libhdf5-mpich-dev"
esac
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null 2>&1 || { echo "note: apt-get is not available; install $missing to run their tests"; exit 0; }
if [ "$(id -u)" = 0 ]; then run=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then run="sudo -n"
else echo "note: neither root nor sudo is available; install $missing to run their tests"; exit 0
fi
$run apt-get update -qq
# Unquoted on purpose: each word is a package.
DEBIAN_FRONTEND=noninteractive $run apt-get install -qq --yes --no-install-recommends $missing >/dev/null
