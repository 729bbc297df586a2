#!/bin/sh
# Runs unit tests for another processor under qemu-user, with Debian's cross-compiler:
#   sh scripts/test-qemu.sh TARGET [PACKAGE...]
# TARGET is a Rust target of Linux with glibc, such as s390x-unknown-linux-gnu, which is big-endian. It needs the packages
# gcc-s390x-linux-gnu, g++-s390x-linux-gnu and qemu-user, and `rustup target add`. Without PACKAGE, these are the crates that
# read and write bytes. Tests take about ten times as long as on the machine itself.
set -eu

[ $# -ge 1 ] || { echo "usage: sh scripts/test-qemu.sh TARGET [PACKAGE...]" >&2; exit 2; }
target=$1
shift
[ $# -gt 0 ] || set -- raddle-inflate raddle-codec raddle-core raddle-idx raddle-hdf5 raddle-query
processor=${target%%-*}
gnu=$processor-linux-gnu

missing=
for tool in "$gnu-gcc" "$gnu-g++"; do
    command -v "$tool" > /dev/null || missing="$missing $tool"
done
# Debian has two packages, one of static programs.
emulator=$(command -v "qemu-$processor" || command -v "qemu-$processor-static") || missing="$missing qemu-$processor"
libraries=$("${RUSTC:-rustc}" --print target-libdir --target "$target")
[ -n "$(find "$libraries" -name 'libstd-*.rlib' 2> /dev/null)" ] || missing="$missing Rust's standard library (rustup target add $target)"
[ -z "$missing" ] || { echo "missing:$missing" >&2; exit 1; }

variable=$(echo "$target" | tr a-z- A-Z_)
export "CARGO_TARGET_${variable}_LINKER=$gnu-gcc" "CARGO_TARGET_${variable}_RUNNER=$emulator -L /usr/$gnu"
suffix=$(echo "$target" | tr - _)
export "CC_$suffix=$gnu-gcc" "CXX_$suffix=$gnu-g++" "AR_$suffix=$gnu-ar"
# A separate folder, so that the build scripts of both do not replace each other's results.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target/qemu}"
for package; do
    set -- "$@" --package "$package"
    shift
done
exec "${CARGO:-cargo}" test --locked --target "$target" --lib --no-fail-fast "$@"
