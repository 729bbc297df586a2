#!/bin/sh
# Publishes all crates, in the order of their dependencies: sh scripts/publish-crates.sh [OPTION]...
# Options are those of `cargo publish`, such as --no-verify, which does not compile the crates again.
# Crates whose version is on the registry are left out, so that the same command continues after a failure. The registry accepts
# only a few new names at once: the script then waits and tries again.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for crate in $(scripts/publish-order.py); do
    # From another folder, because here cargo would find the crate of the workspace.
    if (cd / && cargo info --registry crates-io "$crate@$version") > /dev/null 2>&1; then
        echo "$crate $version is already published"
        continue
    fi
    tries=0
    until cargo publish --locked --package "$crate" "$@" 2> "$log"; do
        cat "$log" >&2
        tries=$((tries + 1))
        if ! grep -q 429 "$log" || [ "$tries" -ge 20 ]; then exit 1; fi
        echo "the registry asks to wait: trying $crate again in 11 minutes" >&2
        sleep 660
    done
    cat "$log" >&2
done
