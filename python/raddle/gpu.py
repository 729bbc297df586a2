"""Columns read straight to a GPU: compressed bytes are moved there, and decoded there.

Needs an NVIDIA GPU and ``pip install 'raddle[gpu]'`` (cupy, and nvCOMP's library). Bytes come from the file through pinned
memory, or by GPUDirect Storage where kvikio is installed and the system has it. Chunks are inflated by nvCOMP in batches,
the byte shuffle is undone on the device, and each chunk's Adler-32 is compared there.

What the device does not decode (other filters, checksums of the filter fletcher32, compact, virtual and external data,
chunks larger than a batch) is decoded by the CPU and copied; `decoded_by` says which column goes which way. Values are those of
`raddle.Group.read_columns`, in the machine's byte order.

.. note:: Tested against a stand-in for the device, which does with numpy and zlib what the device is to do. It has not yet been
   run on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raddle._device import Device
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._file import Group

__all__ = ["MEMORY_BYTES", "decoded_by", "read_columns"]

MEMORY_BYTES = 1 << 30
"""Device memory for batches where nothing else is said: 1 GiB. nvCOMP inflates all chunks of a batch at once, so more of it
keeps more of the device busy."""


def read_columns(
    group: Group,
    names: Sequence[str] | None = None,
    rows: slice | None = None,
    *,
    memory: int = MEMORY_BYTES,
    device: Device | None = None,
) -> dict[str, Any]:
    """Read many datasets of a group to arrays of cupy, decoded on the device.

    Parameters
    ----------
    group
        The group whose datasets are the columns.
    names
        Paths of datasets, from the group. Default: all datasets of the group that have a dimension.
    rows
        Rows of the first axis, the same of every dataset. Default: all.
    memory
        Bytes of device memory for batches, beside the arrays themselves and what nvCOMP takes. As much pinned memory of the
        host, at most, holds stored bytes.
    device
        What decodes, for tests. Default: the current device of cupy.

    Returns
    -------
    dict
        cupy.ndarray by name, of the dataset's shape along the wanted rows, in the machine's byte order. Enumerations are their
        numbers. All work is done when it returns: arrays can be used on any stream.

    Raises
    ------
    raddle.errors.UsageError
        If cupy or nvCOMP is not installed, or if cupy has no arrays of a column's type (texts, compounds, references, floats
        of 16 bytes): all such columns are named.
    raddle.errors.UnsupportedError
        If there is no CUDA device.
    raddle.errors.ObjectNotFoundError
        If there is no such dataset (also a ``KeyError``).
    raddle.errors.DamagedError
        If a chunk does not decode to exactly its length.

    Notes
    -----
    A chunk whose length or checksum is not right after it was inflated is read again by the CPU, which decides. nvCOMP
    promises nothing about damaged streams: one may stop the device's work with an error of CUDA. ``raddle verify`` tells
    beforehand.

    Examples
    --------
    >>> with raddle.open("all.h5") as f:  # doctest: +SKIP
    ...     columns = raddle.gpu.read_columns(f["rec"], ["energy", "map"])
    """
    from raddle._device_columns import columns_on

    _check_memory(memory)
    if device is None:
        from raddle._cuda import Cuda

        device = Cuda()
    return columns_on(device, group, names, rows, memory)


def decoded_by(
    group: Group, names: Sequence[str] | None = None, rows: slice | None = None, *, memory: int = MEMORY_BYTES
) -> dict[str, str]:
    """Say what decodes each column, without a device: ``"device"``, or ``"cpu: "`` and why. Parameters as of `read_columns`."""
    from raddle._device_columns import SLOTS
    from raddle._device_plan import plan_columns

    _check_memory(memory)
    plan = plan_columns(group._columns(names), rows, memory // SLOTS)
    return {name: f"cpu: {plan.by_cpu[name]}" if name in plan.by_cpu else "device" for name in plan.names}


def _check_memory(memory: int) -> None:
    if memory < 1:
        raise UsageError(f"{memory} bytes of memory")
