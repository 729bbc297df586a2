#!/bin/sh
# Builds and checks a wheel for each target, with zig as the C compiler and linker, which has the C libraries of all targets:
#   sh scripts/wheels.sh FOLDER TARGET...
# The wheels are written to FOLDER. A target without Rust's standard library is left out, and named at the end with exit status 1.
set -eu

[ $# -ge 2 ] || { echo "usage: sh scripts/wheels.sh FOLDER TARGET..." >&2; exit 2; }
folder=$1
shift
# A separate folder: zig's objects and those of other builds would replace each other.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target/wheels}"
# Wheels are smaller this way. The last step then takes minutes on one core.
export CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
# C functions need no tables for unwinding: Rust panics end where C calls it.
export CFLAGS="${CFLAGS:-} -fno-asynchronous-unwind-tables -fno-unwind-tables"
missing=
failed=
built=
for target; do
    case $target in
        *-linux-gnu) platform=manylinux_2_28 ;;
        *-linux-musl) platform=musllinux_1_2 ;;
        *) echo "$target: only targets of Linux are built here, such as x86_64-unknown-linux-gnu" >&2; exit 2 ;;
    esac
    libraries=$("${RUSTC:-rustc}" --print target-libdir --target "$target")
    if [ -z "$(find "$libraries" -name 'libstd-*.rlib' 2> /dev/null)" ]; then
        missing="$missing $target"
        continue
    fi
    rm -f "$folder"/raddle-*-"${platform}_${target%%-*}".whl
    if maturin build --release --zig --target "$target" --compatibility "$platform" \
        --compression-level 9 --out "$folder"; then
        built="$built $(ls "$folder"/raddle-*-"${platform}_${target%%-*}".whl)"
    else
        failed="$failed $target"
    fi
done
status=0
# shellcheck disable=SC2086 # The names of wheels have no spaces.
[ -z "$built" ] || { python scripts/compress-wheel.py $built && python scripts/check-wheels.py $built; } || status=1
[ -z "$failed" ] || { echo "not built:$failed" >&2; status=1; }
[ -z "$missing" ] || { echo "left out, because Rust's standard library is missing: rustup target add$missing" >&2; status=1; }
exit $status
