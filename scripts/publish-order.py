#!/usr/bin/env python3
"""Prints the crates to publish, one per line, each after the crates that it needs.

    scripts/publish-order.py

Crates with `publish = false` are left out. No published crate may need one of them.
"""

import graphlib
import json
import os
import subprocess
import sys


def main() -> int:
    """Prints the order, and returns the exit code."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    own = {package["name"] for package in packages}
    published = {package["name"] for package in packages if package["publish"] != []}
    needs = {}
    for package in packages:
        if package["name"] not in published:
            continue
        # Development dependencies without a version are not part of published manifests.
        needed = {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["name"] in own and (dependency["kind"] != "dev" or dependency["req"] != "*")
        }
        if needed - published:
            names = ", ".join(sorted(needed - published))
            print(f"{package['name']} is published, but needs {names}, with publish = false", file=sys.stderr)
            return 1
        needs[package["name"]] = needed
    try:
        print("\n".join(graphlib.TopologicalSorter(dict(sorted(needs.items()))).static_order()))
    except graphlib.CycleError as error:
        print(f"crates need each other: {' -> '.join(error.args[1])}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
