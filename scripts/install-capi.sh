#!/bin/sh
# Installs the IDX C library: sh scripts/install-capi.sh PREFIX [FOLDER]
# The library is built, or taken from the cargo build in FOLDER. DESTDIR is prepended to PREFIX, as is usual in packaging.
set -eu

[ $# -ge 1 ] || { echo "usage: sh scripts/install-capi.sh PREFIX [FOLDER]" >&2; exit 2; }
case "$1" in
    /*) prefix=$1 ;;
    *) prefix=$PWD/$1 ;;
esac
cd "$(dirname "$0")/.."
if [ $# -ge 2 ]; then
    built=$2
else
    ${CARGO:-cargo} build --release --locked --package raddle-capi
    built=${CARGO_TARGET_DIR:-target}/release
fi
for library in libraddle_idx_c.so libraddle_idx_c.a; do
    [ -e "$built/$library" ] || { echo "error: $built/$library does not exist; build it with cargo build --package raddle-capi" >&2; exit 1; }
done
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
root=${DESTDIR:-}$prefix
fortran=$root/share/raddle-idx/fortran
mkdir -p "$root/lib/pkgconfig" "$root/include" "$fortran"
install -m 755 "$built/libraddle_idx_c.so" "$root/lib/libraddle_idx.so.$version"
# Programs load the library by the name in the middle (its soname): crates/capi/build.rs.
ln -sf "libraddle_idx.so.$version" "$root/lib/libraddle_idx.so.0"
ln -sf libraddle_idx.so.0 "$root/lib/libraddle_idx.so"
install -m 644 "$built/libraddle_idx_c.a" "$root/lib/libraddle_idx.a"
install -m 644 crates/capi/include/raddle_idx.h crates/capi/include/raddle_idx_mpi.h "$root/include"
install -m 644 crates/capi/fortran/raddle_idx.f90 crates/capi/fortran/raddle_idx_mpi_fortran.c "$fortran"
# Escape characters that are special to sed.
escaped=$(printf '%s' "$prefix" | sed 's/[&|\\]/\\&/g')
sed -e "s|@PREFIX@|$escaped|" -e "s|@VERSION@|$version|" crates/capi/raddle-idx.pc.in > "$root/lib/pkgconfig/raddle-idx.pc"
chmod 644 "$root/lib/pkgconfig/raddle-idx.pc"
echo "installed in $root: PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs raddle-idx"
