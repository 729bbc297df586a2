#!/bin/sh
# Checks that no tracked file is larger than 1 MiB, because what runs leave behind is not part of the sources, that each
# published crate contains the texts of its licences, and that no test module imports from another one.
set -eu
large=$(git ls-files -z | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || find "$file" -maxdepth 0 -type f -size +1024k; done' sh)
[ -z "$large" ] || { printf 'tracked files above 1 MiB:\n%s\n' "$large" >&2; exit 1; }
for manifest in $(grep -L '^publish = false' crates/*/Cargo.toml); do
    for name in LICENSE-MIT LICENSE-APACHE; do
        [ -f "${manifest%/*}/$name" ] || { echo "${manifest%/*} lacks $name, a link to ../../$name" >&2; exit 1; }
    done
done
if git grep -nE '^[[:space:]]*(from|import) test_' -- tests; then
    echo 'a module whose name does not begin with test_ holds what tests share' >&2
    exit 1
fi
