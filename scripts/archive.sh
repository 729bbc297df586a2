#!/bin/sh
# Packs a built command with its manual pages, completions and licences:
#   sh scripts/archive.sh TARGET RADDLE FOLDER
# writes FOLDER/raddle-VERSION-TARGET.tar.gz. TARGET is the platform by Rust's name, as cargo-binstall expects it.
set -eu

[ $# -eq 3 ] || { echo "usage: sh scripts/archive.sh TARGET RADDLE FOLDER" >&2; exit 2; }
target=$1
raddle=$2
folder=$3
root=$(dirname "$0")/..
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
name=raddle-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/bin" "$folder"
cp "$raddle" "$work/$name/bin/raddle"
strip "$work/$name/bin/raddle"
sh "$root/scripts/man-and-completions.sh" "$work/$name/bin/raddle" "$work/$name"
cp "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$root/crates/cli/LICENSES-THIRD-PARTY.txt" "$root/CHANGELOG.md" "$work/$name"
tar -C "$work" -czf "$folder/$name.tar.gz" "$name"
echo "$folder/$name.tar.gz"
