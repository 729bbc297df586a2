#!/bin/sh
# Writes the manual pages and the completions of a built command to where shells and man find them below PREFIX:
#   sh scripts/man-and-completions.sh target/release/raddle PREFIX
set -eu

[ $# -eq 2 ] || { echo "usage: sh scripts/man-and-completions.sh RADDLE PREFIX" >&2; exit 2; }
raddle=$1
share=$2/share
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$raddle" man "$share/man/man1"
"$raddle" completions bash > "$share/bash-completion/completions/raddle"
"$raddle" completions zsh > "$share/zsh/site-functions/_raddle"
"$raddle" completions fish > "$share/fish/vendor_completions.d/raddle.fish"
