"""Interface of a communicator of ranks."""

from __future__ import annotations

from typing import Any, Protocol


class Ranks(Protocol):
    """The methods of a communicator that divide work; those of mpi4py have them."""

    def Get_rank(self) -> int:
        """Index of this process, from 0."""

    def Get_size(self) -> int:
        """Number of processes."""


class Communicator(Ranks, Protocol):
    """The methods of a communicator that are used; those of mpi4py have them."""

    def allgather(self, sendobj: Any) -> Any:
        """Gathers an object from every process to all."""

    def alltoall(self, sendobj: Any) -> Any:
        """Sends an object from each process to each."""
