"""A judge of merges that shares nothing with raddle: h5py and numpy read inputs and output and compare.

Everything of the first input must be in the output, datasets with the rows of all inputs one behind the other. What h5py
cannot read of an input (a type that numpy lacks, a filter that it was built without) is counted, not compared; region
references are counted too.
"""

import argparse
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

OPTIONS = [
    [],
    ["--for", "scan", "--compress", "fast"],
    ["--for", "random", "--compress", "gzip:1", "--compat", "1.8"],
    ["--for", "keep", "--compress", "keep"],
    ["--compress", "none", "--compat", "latest"],
    ["--for", "cloud", "--compress", "small", "--compat", "1.10", "-j", "3"],
]


class Unreadable(Exception):
    """h5py cannot show this value."""


class Judge:
    """Compares one output with its inputs. ``differences`` says what is wrong, ``counts`` what was looked at."""

    def __init__(self, output, inputs):
        self.differences = []
        self.counts = collections.Counter()
        files = [h5py.File(path) for path in [output, *inputs]]
        try:
            self._seen = set()
            self._group("/", files[0]["/"], [file["/"] for file in files[1:]])
        finally:
            for file in files:
                file.close()

    def _differ(self, path, what):
        self.differences.append(f"{path}: {what}")

    def _group(self, path, merged, parts):
        self._attributes(path, merged, parts[0])
        names = [name for name in merged if not (path == "/" and name == "_raddle")]
        if sorted(names) != sorted(parts[0]):
            return self._differ(path, f"members {sorted(names)}, not {sorted(parts[0])}")
        for name in names:
            here = f"{path.rstrip('/')}/{name}"
            links = [group.get(name, getlink=True) for group in [merged, parts[0]]]
            if type(links[0]) is not type(links[1]):
                self._differ(here, "another kind of link")
            elif isinstance(links[0], h5py.HardLink):
                self._object(here, merged[name], [part[name] for part in parts])
            else:
                self.counts["links"] += 1
                targets = [(getattr(link, "filename", None), link.path) for link in links]
                if targets[0] != targets[1]:
                    self._differ(here, f"points to {targets[0]}, not {targets[1]}")

    def _object(self, path, merged, parts):
        if type(merged) is not type(parts[0]):
            return self._differ(path, "another kind of object")
        # Hard links may lead back to a group.
        address = h5py.h5o.get_info(parts[0].id).addr
        if address in self._seen:
            return None
        self._seen.add(address)
        if isinstance(merged, h5py.Group):
            return self._group(path, merged, parts)
        self._attributes(path, merged, parts[0])
        if isinstance(merged, h5py.Dataset):
            return self._dataset(path, merged, parts)
        if not merged.id.equal(parts[0].id):
            self._differ(path, "another committed type")
        return None

    def _dataset(self, path, merged, parts):
        if not merged.id.get_type().equal(parts[0].id.get_type()):
            return self._differ(path, "another type")
        is_table = parts[0].shape is not None and parts[0].shape != ()
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:]) if is_table else parts[0].shape
        if merged.shape != shape:
            return self._differ(path, f"extent {merged.shape}, not {shape}")
        if shape is None:
            return None
        try:
            expected = [value for part in (parts if is_table else parts[:1]) for value in values_of(part)]
        except Unreadable:
            self.counts["datasets not compared"] += 1
            return None
        self.counts["datasets"] += 1
        self.counts["values"] += int(np.prod(shape, dtype=np.int64))
        try:
            found = list(values_of(merged))
        except Unreadable as problem:
            return self._differ(path, f"unreadable: {problem}")
        if found != expected:
            self._differ(path, "other values")
        return None

    def _attributes(self, path, merged, first):
        if sorted(merged.attrs) != sorted(first.attrs):
            return self._differ(path, f"attributes {sorted(merged.attrs)}, not {sorted(first.attrs)}")
        for name in first.attrs:
            try:
                expected = list(values_of(first.attrs.get_id(name), first))
            except Unreadable:
                self.counts["attributes not compared"] += 1
                continue
            self.counts["attributes"] += 1
            if list(values_of(merged.attrs.get_id(name), merged)) != expected:
                self._differ(f"{path}@{name}", "another value")
        return None


def values_of(source, holder=None):
    """The elements of a dataset or attribute, bit by bit: bytes, or lists and names where there are no bytes."""
    try:
        if holder is None:
            values, holder = source[()], source
        else:
            if source.shape is None:
                return [None]
            values = np.zeros(source.shape, source.dtype)
            source.read(values)
        values = np.asarray(values, dtype=source.dtype)
    except (OSError, TypeError, ValueError, NotImplementedError, KeyError) as problem:
        raise Unreadable(problem) from problem
    # An array type gives values of more dimensions than the source has.
    rows = values.reshape((int(np.prod(source.shape, dtype=np.int64)), -1)) if values.size else []
    return [plain(value, holder) for row in rows for value in row]


def plain(value, holder):
    """One value without padding, in a form whose ``==`` means the same bits."""
    if isinstance(value, np.void) and value.dtype.names:
        return tuple(plain(value[name], holder) for name in value.dtype.names)
    if isinstance(value, np.ndarray):
        return [plain(element, holder) for element in value.reshape(-1)]
    if isinstance(value, h5py.RegionReference):
        raise Unreadable("a region reference")
    if isinstance(value, h5py.Reference):
        name = h5py.h5r.get_name(value, holder.file.id if hasattr(holder, "file") else holder.id)
        return ("reference", name) if value else None
    if isinstance(value, np.generic):
        return value.tobytes()
    return value


def judge_cases(raddle, cases, folder, first, count):
    """Makes, merges and judges ``count`` cases from number ``first``; the differences, and what was looked at."""
    differences, counts = [], collections.Counter()
    for start in range(first, first + count, 100):
        with tempfile.TemporaryDirectory(dir=folder) as batch:
            batch_count = min(100, first + count - start)
            subprocess.run([cases, batch, str(start), str(batch_count)], check=True)
            for number in range(start, start + batch_count):
                case = Path(batch, f"{number:06}")
                inputs, output = sorted(case.glob("*.h5")), case / "merged.out"
                options = OPTIONS[number % len(OPTIONS)]
                command = [raddle, "merge", *inputs, "-o", output, "--memory", "128MiB", *options]
                merge = subprocess.run(command, capture_output=True, text=True, check=False)
                if merge.returncode:
                    differences.append(f"case {number}: exit code {merge.returncode}: {merge.stderr}")
                    continue
                judge = Judge(output, inputs)
                differences += [f"case {number}: {difference}" for difference in judge.differences]
                counts.update(judge.counts)
                counts["cases"] += 1
    return differences, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raddle")
    parser.add_argument("cases", help="the program that makes them: target/debug/examples/cases")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    arguments = parser.parse_args()
    differences, counts = judge_cases(arguments.raddle, arguments.cases, None, arguments.first, arguments.count)
    print("\n".join([*differences, *(f"{what}: {count}" for what, count in sorted(counts.items()))]))
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
