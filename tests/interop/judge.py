"""Judges merges independently of raddle: h5py and numpy read inputs and output, and compare them.

Everything in the first input must be in the output. Datasets must have the rows of all inputs, one after another, and
region references must move with the rows that they point to. Objects that h5py cannot read from an input (because of a
filter that it lacks) are counted, not compared.
"""

import argparse
import collections
import contextlib
import ctypes
import functools
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import h5py
import numpy as np
from h5py import h5r, h5s, h5t

OPTIONS = [
    [],
    ["--for", "scan", "--compress", "fast"],
    ["--for", "random", "--compress", "gzip:1", "--compat", "1.8"],
    ["--for", "keep", "--compress", "keep"],
    ["--compress", "none", "--compat", "latest"],
    ["--for", "cloud", "--compress", "small", "--compat", "1.10", "-j", "3"],
]


# Reference types by their length in memory.
KINDS_OF_REFERENCE = {kind.get_size(): kind for kind in [h5t.STD_REF_OBJ, h5t.STD_REF_DSETREG]}


class Judge:
    """Compares one output with its inputs. ``differences`` lists the errors, ``counts`` the objects compared."""

    def __init__(self, output, inputs):
        self.differences = []
        self.counts = collections.Counter()
        # Maps addresses of the first input's objects to those of the output's.
        self._seen = {}
        with contextlib.ExitStack() as files:
            self._files = [files.enter_context(h5py.File(path)) for path in [output, *inputs]]
            roots = [file["/"] for file in self._files]
            self._object("/", roots[0], roots[1:])

    def _differ(self, path, what):
        self.differences.append(f"{path}: {what}")

    def _object(self, path, merged, parts):
        if type(merged) is not type(parts[0]):
            return self._differ(path, "another kind of object")
        address, merged_address = (h5py.h5o.get_info(item.id).addr for item in [parts[0], merged])
        # Objects with several names, and hard links back to a group.
        if address in self._seen or merged_address in self._seen.values():
            if self._seen.get(address) != merged_address:
                self._differ(path, "not the same hard links")
            return None
        self._seen[address] = merged_address
        self._attributes(path, merged, parts[0])
        if isinstance(merged, h5py.Group):
            return self._members(path, merged, parts)
        if isinstance(merged, h5py.Dataset):
            return self._dataset(path, merged, parts)
        self.counts["committed types"] += 1
        if not merged.id.equal(parts[0].id):
            self._differ(path, "another committed type")
        return None

    def _members(self, path, merged, parts):
        self.counts["groups"] += 1
        names = [name for name in merged if not (path == "/" and name == "_raddle")]
        if sorted(names) != sorted(parts[0]):
            return self._differ(path, f"members {sorted(names)}, not {sorted(parts[0])}")
        for name in names:
            here = f"{path.rstrip('/')}/{name}"
            link, expected = (group.get(name, getlink=True) for group in [merged, parts[0]])
            if type(link) is not type(expected):
                self._differ(here, "another kind of link")
            elif isinstance(link, h5py.HardLink):
                self._object(here, merged[name], [part[name] for part in parts])
            else:
                self.counts["soft and external links"] += 1
                if vars(link) != vars(expected):
                    self._differ(here, f"points to {vars(link)}, not {vars(expected)}")
        return None

    def _dataset(self, path, merged, parts):
        if not merged.id.get_type().equal(parts[0].id.get_type()):
            return self._differ(path, "another type")
        is_table = bool(parts[0].shape)
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:]) if is_table else parts[0].shape
        if merged.shape != shape:
            return self._differ(path, f"extent {merged.shape}, not {shape}")
        if is_table and parts[0].maxshape[0] is None and merged.maxshape[0] is not None:
            self._differ(path, "cannot grow as it could")
        try:
            expected = []
            for number, part in enumerate(parts if is_table else parts[:1]):
                expected += elements(part.id, part.file, self._files[1 : 1 + number])
        except OSError:
            self.counts["datasets not compared"] += 1
            return None
        self.counts["datasets"] += 1
        self.counts["values"] += len(expected)
        try:
            found = elements(merged.id, merged.file)
        except OSError as problem:
            return self._differ(path, f"unreadable: {problem}")
        if found != expected:
            position = next(number for number, pair in enumerate(zip(found, expected)) if pair[0] != pair[1])
            self._differ(path, f"element {position} is {found[position]}, not {expected[position]}")
        return None

    def _attributes(self, path, merged, first):
        if sorted(merged.attrs) != sorted(first.attrs):
            return self._differ(path, f"attributes {sorted(merged.attrs)}, not {sorted(first.attrs)}")
        for name in first.attrs:
            self.counts["attributes"] += 1
            found, expected = (item.attrs.get_id(name) for item in [merged, first])
            if not found.get_type().equal(expected.get_type()):
                self._differ(f"{path}@{name}", "another type")
            elif found.shape != expected.shape:
                self._differ(f"{path}@{name}", f"extent {found.shape}, not {expected.shape}")
            elif elements(found, merged.file) != elements(expected, first.file):
                self._differ(f"{path}@{name}", "another value")
        return None


def elements(source, file, before=()):
    """Returns the elements of a dataset or attribute of ``file``; ``==`` compares their bits and their targets.

    Rows selected by region references are counted from the first of the files ``before``. Elements are read without
    conversion, because numpy lacks some of HDF5's types.
    """
    if source.shape is None:
        return []
    kind = source.get_type()
    size, count = kind.get_size(), int(np.prod(source.shape, dtype=np.int64))
    raw = np.zeros(count * size, np.uint8)
    if count and isinstance(source, h5py.h5d.DatasetID):
        source.read(h5s.ALL, h5s.ALL, raw, kind)
    elif count:
        source.read(raw, kind)
    raw, decode = raw.tobytes(), decoder(kind, file, before)
    return [decode(raw[start : start + size]) for start in range(0, len(raw), size)]


def decoder(kind, file, before):
    """Returns a function that converts the bytes of one element in memory to a comparable value."""
    if kind.get_class() == h5t.COMPOUND:
        members = []
        for number in range(kind.get_nmembers()):
            start, member = kind.get_member_offset(number), kind.get_member_type(number)
            members.append((start, start + member.get_size(), decoder(member, file, before)))
        return lambda raw: tuple(decode(raw[start:end]) for start, end, decode in members)
    if kind.get_class() in (h5t.ARRAY, h5t.VLEN):
        base = kind.get_super()
        size, decode = base.get_size(), decoder(base, file, before)

        def sequence(raw):
            if kind.get_class() == h5t.VLEN:
                count, address = np.frombuffer(raw, np.uint64).tolist()
                raw = ctypes.string_at(address, count * size) if count else b""
            return [decode(raw[start : start + size]) for start in range(0, len(raw), size)]

        return sequence
    if kind.get_class() == h5t.STRING and kind.is_variable_str():

        def string(raw):
            address = int.from_bytes(raw, sys.byteorder)
            return ctypes.string_at(address) if address else None

        return string
    if kind.get_class() == h5t.REFERENCE:
        return lambda raw: target(raw, file, before)
    return bytes


def target(raw, file, before):
    """Returns the target of a reference: a path, and for a region its points or blocks; ``None`` for a null
    reference."""
    reference = reference_of(raw)
    if not reference:
        return None
    path = h5r.get_name(reference, file.id)
    if not isinstance(reference, h5r.RegionReference):
        return path
    rows_before = sum(part[path].shape[0] for part in before)
    region = h5r.get_region(reference, file.id)
    if region.get_select_type() == h5s.SEL_POINTS:
        shape, selected = "points", region.get_select_elem_pointlist()
    else:
        shape, selected = "blocks", region.get_select_hyper_blocklist()
    selected = np.array(selected)
    selected[..., 0] += rows_before
    return path, shape, selected.tolist()


def reference_of(raw):
    """Returns the reference stored in bytes in memory, made by h5py's own conversion."""
    # Space for 16 bytes: a region reference has 12, the pointer that replaces it 8.
    room, background = np.empty(2, object), np.empty(2, object)
    for array in (room, background):
        ctypes.memset(array.ctypes.data, 0, array.nbytes)
    ctypes.memmove(room.ctypes.data, raw, len(raw))
    h5t.convert(KINDS_OF_REFERENCE[len(raw)], h5t.PYTHON_OBJECT, 1, room, background)
    # The remaining bytes are not part of the pointer.
    ctypes.memset(room.ctypes.data + 8, 0, 8)
    return room[0]


def judge_cases(raddle, cases, first, count):
    """Makes, merges and judges ``count`` cases from number ``first``; returns the differences and the counts."""
    differences, counts = [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cases, folder, str(first), str(count)], check=True)
        for number in range(first, first + count):
            case = Path(folder, f"{number:06}")
            inputs, output = sorted(case.glob("*.h5")), case / "merged.out"
            options = OPTIONS[number % len(OPTIONS)]
            command = [raddle, "merge", *inputs, "-o", output, "--memory", "128MiB", *options]
            merge = subprocess.run(command, capture_output=True, text=True, check=False)
            counts["cases"] += 1
            if merge.returncode:
                differences.append(f"case {number}: exit code {merge.returncode}: {merge.stderr}")
                continue
            judge = Judge(output, inputs)
            differences += [f"case {number}: {difference}" for difference in judge.differences]
            counts.update(judge.counts)
    return differences, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raddle")
    parser.add_argument("cases", help="the program that generates cases: target/debug/examples/cases")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    end = arguments.first + arguments.count
    batches = [(first, min(100, end - first)) for first in range(arguments.first, end, 100)]
    judge_batch = functools.partial(judge_cases, arguments.raddle, arguments.cases)
    differ, counts = False, collections.Counter({"datasets not compared": 0})
    # A process for each batch, because variable-length values read without conversion are never freed.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=spawn, max_tasks_per_child=1) as pool:
        for differences, looked_at in pool.map(judge_batch, *zip(*batches, strict=True)):
            differ |= bool(differences)
            counts.update(looked_at)
            for difference in differences:
                print(difference, flush=True)
    print("\n".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    sys.exit(differ)


if __name__ == "__main__":
    main()
