"""What is asked of a communicator of ranks."""

from __future__ import annotations

from typing import Any, Protocol


class Communicator(Protocol):
    """What is asked of a communicator; mpi4py's have it."""

    def Get_rank(self) -> int:
        """Number of this process, from 0."""

    def Get_size(self) -> int:
        """Number of processes."""

    def allgather(self, sendobj: Any) -> Any:
        """The objects of all processes."""

    def alltoall(self, sendobj: Any) -> Any:
        """One object from each process to each."""
