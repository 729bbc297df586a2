#!/bin/sh
# Checks that no tracked file is larger than 1 MiB: what runs leave behind is not part of the sources.
set -eu
large=$(git ls-files -z | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || find "$file" -maxdepth 0 -type f -size +1024k; done' sh)
[ -z "$large" ] || { printf 'tracked files above 1 MiB:\n%s\n' "$large" >&2; exit 1; }
