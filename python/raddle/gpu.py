"""Columns read directly to a GPU: compressed bytes are transferred and decoded there.

Needs an NVIDIA GPU and ``pip install 'raddle[gpu]'`` (cupy for CUDA 12, and nvCOMP's library; for CUDA 13
``'raddle[gpu-cuda13]'``). The file is read through pinned memory, or by GPUDirect Storage if kvikio is installed and the
system supports it. nvCOMP inflates chunks in batches; the byte shuffle is undone and each chunk's Adler-32 is verified
on the device.

Data that the device does not decode (other filters, fletcher32 checksums, compact, virtual and external data, chunks
larger than a batch) is decoded by the CPU and copied; `decoded_by` reports which columns are decoded where. Values are
those of `raddle.Group.read_columns`, in native byte order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raddle._device import Device
from raddle.errors import UsageError

if TYPE_CHECKING:
    from raddle._group import Group

__all__ = ["MEMORY_BYTES", "decoded_by", "read_columns"]

MEMORY_BYTES = 1 << 30
"""Default device memory for batches: 1 GiB. nvCOMP inflates all chunks of a batch at once, so more memory keeps more of
the device busy."""


def read_columns(
    group: Group,
    names: Sequence[str] | None = None,
    rows: slice | None = None,
    *,
    memory: int = MEMORY_BYTES,
    device: Device | None = None,
) -> dict[str, Any]:
    """Reads many datasets of a group to cupy arrays, decoded on the device.

    Parameters
    ----------
    group
        The group whose datasets are the columns.
    names
        Paths of datasets, relative to the group. Default: all datasets of the group that have a dimension.
    rows
        Rows of the first axis, the same for all datasets. Default: all.
    memory
        Bytes of device memory for batches, in addition to the arrays and nvCOMP's own memory. At most the same amount
        of pinned host memory holds stored bytes.
    device
        The device that decodes, for tests. Default: the current cupy device.

    Returns
    -------
    dict
        cupy.ndarray by name, with the dataset's shape for the requested rows, in native byte order. Enumerations become
        numbers. All work is finished on return: arrays can be used on any stream.

    Raises
    ------
    raddle.errors.UsageError
        If cupy or nvCOMP is not installed, or cupy cannot represent the type of a column (strings, compounds, references,
        floats of 16 bytes): all such columns are named.
    raddle.errors.UnsupportedError
        If there is no CUDA device.
    raddle.errors.ObjectNotFoundError
        If a dataset does not exist (also a ``KeyError``).
    raddle.errors.DamagedError
        If a chunk does not decode to exactly its length.

    Notes
    -----
    If the length or checksum of an inflated chunk is wrong, the CPU reads its column again and decides. nvCOMP gives no
    guarantees for damaged streams: one may stop the device's work with a CUDA error. Use ``raddle verify`` to check a
    file in advance.

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
    """Reports what decodes each column, without a device: ``"device"``, or ``"cpu: "`` and the reason.

    Parameters
    ----------
    group
        Group that contains the columns.
    names
        Names of columns, as for `read_columns`.
    rows
        Rows, as for `read_columns`.
    memory
        Bytes of device memory for a batch, as for `read_columns`.
    """
    from raddle._device_columns import SLOTS
    from raddle._device_plan import plan_columns

    _check_memory(memory)
    plan = plan_columns(group._columns(names), rows, memory // SLOTS)
    return {name: f"cpu: {plan.by_cpu[name]}" if name in plan.by_cpu else "device" for name in plan.names}


def _check_memory(memory: int) -> None:
    if memory < 1:
        raise UsageError(f"memory={memory} is too small")
