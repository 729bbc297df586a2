"""Chunks that a device refuses are read by the CPU, which judges whether they are damaged."""

import os
import zlib

import h5py
import numpy as np
import pytest
import raddle
from gpu_devices import device, library, same  # noqa: F401
from raddle import _device_plan, errors, gpu
from stand_in import StandIn


def damage(path, name, change):
    """Changes the stored bytes of the first chunk of a dataset."""
    with h5py.File(path) as file:
        place = file[name].id.get_chunk_info(0)
    with open(path, "r+b") as file:
        file.seek(place.byte_offset)
        stored = bytearray(file.read(place.size))
        change(stored)
        file.seek(place.byte_offset)
        file.write(stored)


def test_chunks_that_are_not_as_long_as_they_should_be(tmp_path):
    path = tmp_path / "lengths.h5"
    options = {"chunks": (10,), "compression": "gzip", "shuffle": True}
    with h5py.File(path, "w") as file:
        for name, stored, mask in (("short", bytes(39), 3), ("long", bytes(41), 3), ("no stream", bytes(6), 0)):
            file.create_dataset(name, (10,), "i4", **options).id.write_direct_chunk((0,), stored, mask)
    with raddle.open(path) as file:
        by = gpu.decoded_by(file)
        assert by["short"] == by["long"] == "cpu: a chunk that is not as long as it should be"
        assert by["no stream"] == "cpu: a deflated chunk that is too short"
        for name in by:
            with pytest.raises(errors.RaddleError):
                file[name][...]
            with pytest.raises(errors.RaddleError):
                gpu.read_columns(file, [name], device=StandIn())


def test_filters_in_another_order_are_for_the_cpu(tmp_path, monkeypatch):
    path = tmp_path / "order.h5"
    values = np.arange(40, dtype="i4")
    with h5py.File(path, "w") as file:
        for name, filters in (("turned", ["deflate", "shuffle"]), ("twice", ["deflate", "deflate"]), ("usual", ["shuffle", "deflate"])):
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((10,))
            for made in filters:
                # h5py's and libhdf5's own calls would reorder or refuse them.
                number, options = {"deflate": (1, (6,)), "shuffle": (2, ())}[made]
                creation.set_filter(number, h5py.h5z.FLAG_MANDATORY, options)
            space = h5py.h5s.create_simple(values.shape)
            h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, space, creation)
            file[name][...] = values
    with raddle.open(path) as file:
        by = gpu.decoded_by(file)
        assert by["usual"] == "device" and by["turned"] == "cpu: filters in an unusual order"
        assert by["twice"].startswith("cpu: ")
        for found in gpu.read_columns(file, device=StandIn()).values():
            assert np.array_equal(found, values)
        # More than a device can sum without overflow.
        monkeypatch.setattr(_device_plan, "_MAX_CHUNK_LEN_BYTES", 39)
        assert gpu.decoded_by(file)["usual"] == "cpu: deflated chunks of 40 bytes"


def test_facts_that_contradict_each_other_are_for_the_cpu():
    with pytest.raises(_device_plan._ByCpu, match="40 bytes stored instead of 48"):
        _device_plan._in_blocks((6, 2), 4, np.array([[0, 0, 100, 40, 0]]), 1 << 20)
    column = _device_plan.Column("c", (10,), np.dtype("i4"), (10,), (0, 10, 1), (10,), 4, 0, None)
    pieces = _device_plan._pieces(np.array([[0, 100, 40, 0]]), [2])
    _device_plan._check_pieces(column, pieces, [(2, "shuffle", (4,))], False)
    with pytest.raises(_device_plan._ByCpu, match=r"shuffled by \(8,\) bytes, but elements have 4"):
        _device_plan._check_pieces(column, pieces, [(2, "shuffle", (8,))], False)


def flip_sum(stored):
    stored[-1] ^= 1


def flip_header(stored):
    stored[0] ^= 7


def flip_middle(stored):
    stored[len(stored) // 2] ^= 0x55


@pytest.mark.parametrize("change", [flip_sum, flip_header, flip_middle])
def test_damage_is_for_the_cpu_to_judge(tmp_path, device, change):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        for name in "ab":
            file.create_dataset(name, data=np.arange(4000) % 37, chunks=(1000,), compression="gzip")
    damage(path, "a", change)
    with raddle.open(path) as file:
        with pytest.raises(errors.DamagedError):
            file["a"][...]
        with pytest.raises(errors.DamagedError):
            gpu.read_columns(file, device=device)
        same(device, gpu.read_columns(file, ["b"], device=device)["b"], np.arange(4000) % 37)


def test_what_is_behind_a_stream_does_not_matter(tmp_path):
    # libhdf5 and the CPU stop at the end of the stream, so its checksum need not be at the end of a chunk.
    path = tmp_path / "behind.h5"
    values = np.arange(100, dtype="i4")
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("d", values.shape, values.dtype, chunks=(100,), compression="gzip")
        dataset.id.write_direct_chunk((0,), zlib.compress(values.tobytes()) + b"behind")
    device = StandIn()
    with raddle.open(path) as file:
        assert np.array_equal(gpu.read_columns(file, device=device)["d"], file["d"][...])
    assert device.uploaded_bytes == values.nbytes


class Cutting(StandIn):
    """A device that cuts a file short before it loads anything."""

    def slot(self, path, *sizes):
        os.truncate(path, 50_000)
        return super().slot(path, *sizes)


def test_a_file_cut_short_after_it_was_opened(tmp_path):
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.arange(100_000)
    with raddle.open(path) as file:
        with pytest.raises(errors.DamagedError, match="ends before byte"):
            gpu.read_columns(file, device=Cutting())
        with pytest.raises(errors.InputError, match="open it again"):
            gpu.read_columns(file, device=StandIn())
