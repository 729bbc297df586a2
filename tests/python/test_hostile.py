"""Damaged and malicious files cause an error or return values, quickly, and the process continues."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_values
from raddle import _h5py_file, _h5py_values, errors

MIXED = np.dtype([("n", "i4"), ("text", h5py.string_dtype())])

# The limits below are CPU time, because cores may be busy.
LONGEST_S = 30


@pytest.fixture
def impatient(monkeypatch):
    """Limits h5py's process to one second for an answer, and three for a file."""
    monkeypatch.setattr(_h5py_file, "_CPU_LIMIT_S", 1.0)
    monkeypatch.setattr(_h5py_file, "_MAX_CPU_S", 1.0)
    monkeypatch.setattr(_h5py_file, "_PATIENCE_S", 1.0)


def write_all_kinds(path):
    """Writes objects for each way of reading values."""
    with h5py.File(path, "w") as file:
        mixed = np.array([(1, "a"), (2, "bc")], MIXED)
        file["mixed"] = mixed
        file.attrs["mixed"] = mixed
        file["texts"] = ["a", "b"]
        file["numbers"] = np.arange(100)
        file["numbers"].make_scale("numbers")
        file["table"] = np.arange(100.0)
        file["table"].dims[0].attach_scale(file["numbers"])
        file.create_dataset("references", data=[file["numbers"].ref], dtype=h5py.ref_dtype)
        file.create_dataset("regions", data=[file["numbers"].regionref[3:5]], dtype=h5py.regionref_dtype)
        file.create_dataset("deflated", data=np.arange(1000), chunks=(100,), compression="gzip")
        file.create_dataset("long", data=np.arange(3, dtype=np.longdouble))
        layout = h5py.VirtualLayout((100,), "i8")
        layout[:] = h5py.VirtualSource(".", "numbers", (100,))
        file.create_virtual_dataset("virtual", layout)


def with_endless_heap(path):
    """Sets the length of the free space in the file's heap to 0: libhdf5 then reads that entry forever."""
    data = bytearray(path.read_bytes())
    entry = data.index(b"GCOL") + 16
    while data[entry] or data[entry + 1]:
        entry += 16 + (int.from_bytes(data[entry + 8 : entry + 16], "little") + 7) // 8 * 8
    data[entry + 8 : entry + 16] = bytes(8)
    path.write_bytes(data)


def read_everything(path):
    """Reads everything in a file that can be read."""

    def tried(read):
        try:
            return read()
        except (errors.RaddleError, KeyError, OSError, RuntimeError, TypeError, ValueError):
            return None

    def show(found):
        for name in tried(lambda: list(found.attrs)) or ():
            tried(lambda name=name: found.attrs[name])
        for fact in ("dtype", "fillvalue", "external", "ref"):
            tried(lambda fact=fact: getattr(found, fact, None))
        # Dimensions may claim more memory than exists.
        if isinstance(found, raddle._dataset.Dataset) and (tried(lambda: found.nbytes) or 0) < 1 << 20:
            tried(lambda: found[()])
            tried(lambda: found.virtual_sources())
            for dimension in tried(lambda: list(found.dims)) or ():
                tried(dimension.items)

    def walk():
        with raddle.open(path) as file:
            show(file)
            file.visititems(lambda _, found: show(found))

    tried(walk)


def test_what_makes_libhdf5_hang_is_given_up(tmp_path, impatient):
    path, whole = tmp_path / "heap.h5", tmp_path / "whole.h5"
    for made in (path, whole):
        write_all_kinds(made)
    with_endless_heap(path)
    started = time.monotonic()
    with raddle.open(path) as file, raddle.open(whole) as other:
        # h5py reads these.
        with pytest.raises(errors.DamagedError, match=r"heap\.h5.*h5py cannot read it: its process ended"):
            file["mixed"][:]
        with pytest.raises(errors.DamagedError, match="not asked again"):
            file["mixed"][:]
        # raddle reads these itself, or checks them first.
        for read in (lambda: file["texts"][:], lambda: file.attrs["mixed"], lambda: file["table"].attrs["DIMENSION_LIST"]):
            with pytest.raises(errors.DamagedError, match="free space of 0 bytes"):
                read()
        assert list(file["numbers"][:3]) == [0, 1, 2] and list(file["deflated"][:3]) == [0, 1, 2]
        with h5py.File(whole) as theirs:
            same_values(other["mixed"][:], theirs["mixed"][:])
            same_values(other["long"][:], theirs["long"][:])
    assert time.monotonic() - started < LONGEST_S


def test_opening_is_bounded_as_well(tmp_path):
    """An object that only libhdf5 reads, in its process, from a file with such a heap."""
    path = tmp_path / "heap.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["text"] = ["a"]
        # Its extent is that of its sources, which only libhdf5 finds.
        layout = h5py.VirtualLayout((100,), "i8", maxshape=(None,))
        source = h5py.VirtualSource(".", "numbers", (100,), maxshape=(None,))
        layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
        file["numbers"] = np.arange(100)
        file.create_virtual_dataset("endless", layout)
        file["endless"].attrs["text"] = "in the heap"
    with_endless_heap(path)
    started = time.monotonic()
    with pytest.raises(OSError, match=r"heap\.h5.*CPU time"):
        raddle.open(path)
    assert time.monotonic() - started < LONGEST_S


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes(tmp_path, impatient, seed):
    draw = random.Random(seed)
    path = tmp_path / "file.h5"
    write_all_kinds(path)
    whole = path.read_bytes()
    for _ in range(12):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(data))
            data[at] = draw.choice([0, 1, 0x7F, 0xFF, data[at] ^ 1 << draw.randrange(8), draw.randrange(256)])
        path.write_bytes(data)
        started = time.monotonic()
        read_everything(path)
        elapsed_s = time.monotonic() - started
        assert elapsed_s < LONGEST_S, (elapsed_s, [at for at in range(len(whole)) if whole[at] != data[at]])


def test_h5py_s_process_may_be_killed(tmp_path):
    path = tmp_path / "file.h5"
    write_all_kinds(path)
    with raddle.open(path) as file, h5py.File(path) as theirs:
        same_values(file["mixed"][:], theirs["mixed"][:])
        os.kill(_h5py_file._server.process.pid, signal.SIGKILL)
        _h5py_file._server.process.wait()
        # The process of this file continues; another file gets another process.
        same_values(file["mixed"][:], theirs["mixed"][:])
        with raddle.open(path) as again:
            same_values(again["mixed"][:], theirs["mixed"][:])


def test_forked_processes_ask_for_themselves(tmp_path):
    path = tmp_path / "file.h5"
    write_all_kinds(path)
    with raddle.open(path) as file:
        expected = file["mixed"][:]["n"].tolist()
        child = os.fork()
        if not child:
            same = all(file["mixed"][:]["n"].tolist() == expected for _ in range(3))
            os._exit(0 if same else 1)
        for _ in range(3):
            assert file["mixed"][:]["n"].tolist() == expected
        assert os.waitpid(child, 0)[1] == 0


def test_no_input_is_opened_by_h5py_in_this_process(tmp_path, environment):
    path = tmp_path / "file.h5"
    write_all_kinds(path)
    program = f"""
import h5py, raddle
opened = []
make = h5py.File.__init__
h5py.File.__init__ = lambda self, name, *rest, **options: (opened.append(name), make(self, name, *rest, **options))[1]
with raddle.open({str(path)!r}) as file:
    file["mixed"][:], file["virtual"][:], file["virtual"].virtual_sources(), file["references"].dtype
    assert file[file["references"][0]].name == "/numbers" and file["table"].dims[0][0].name == "/numbers"
    assert file["numbers"][file["regions"][0]].tolist() == [3, 4] and file[file["regions"][0]].name == "/numbers"
    assert file[file["table"].ref] == file["table"]
assert opened == ["references"], opened
"""
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)


def messages():
    """Draws documents and bytes of values of every kind."""
    values = [
        1, True, None, "text", b"bytes", h5py.Empty("f4"), np.float16(3), np.arange(6).reshape(2, 3),
        np.array([(1, "a"), (2, "b")], MIXED), np.array(["x", "y"], h5py.string_dtype()),
        np.array([h5py.Reference(), h5py.Reference()], h5py.ref_dtype), np.array([1, 0], h5py.enum_dtype({"a": 1})),
    ]  # fmt: skip
    for value in values:
        encoder = _h5py_values.Encoder()
        document = json.dumps(encoder.value(value))
        yield value, document, b"".join(bytes(memoryview(part).cast("B")) for part in encoder.parts)


def test_values_cross_as_they_are():
    for value, document, data in messages():
        found = _h5py_values.Decoder(bytearray(data)).value(json.loads(document))
        if isinstance(value, np.ndarray) and h5py.check_ref_dtype(value.dtype):
            assert found.dtype.metadata == value.dtype.metadata and not any(found)
        else:
            same_values(found, value)


def test_a_message_of_a_taken_over_process_makes_nothing_else():
    draw = random.Random(1)
    refused = 0
    for _, document, data in messages():
        for _ in range(300):
            text, changed = list(document), bytearray(data)
            for _ in range(draw.randint(1, 3)):
                text[draw.randrange(len(text))] = draw.choice('[]{}",0123456789-truefalsn<>|iufOSV')
            if changed and draw.random() < 0.3:
                del changed[draw.randrange(len(changed)) :]
            try:
                made = _h5py_values.Decoder(changed).value(json.loads("".join(text)))
            except (_h5py_values.MessageError, json.JSONDecodeError, RecursionError):
                refused += 1
                continue
            assert getattr(made, "nbytes", 0) <= 1 << 30
    assert refused > 1000


@pytest.mark.parametrize("kind", ["O", "O,i4", "(2,)O"])
def test_bytes_of_a_file_are_never_python_objects(tmp_path, kind):
    """h5py stores numpy types under a tag, which a file may choose."""
    length = np.dtype(kind).itemsize
    path = tmp_path / "tagged.h5"
    with h5py.File(path, "w") as file:
        opaque = h5py.h5t.create(h5py.h5t.OPAQUE, length)
        opaque.set_tag(b"NUMPY:" + kind.encode())
        dataset = h5py.h5d.create(file.id, b"d", opaque, h5py.h5s.create_simple((3,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.full(3 * length, 65, "u1"), opaque)
        attribute = h5py.h5a.create(dataset, b"a", opaque, h5py.h5s.create_simple((3,)))
        attribute.write(np.full(3 * length, 65, "u1"), opaque)
    with raddle.open(path) as file:
        for values in (file["d"][:], file["d"].attrs["a"]):
            assert values.dtype == f"V{length}" and values.tobytes() == b"A" * 3 * length
        assert file["d"].fillvalue.tobytes() == bytes(length)
