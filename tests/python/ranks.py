"""Threads as ranks of a communicator with mpi4py's interface."""

import threading


class Ranks:
    """Threads as the ranks of a communicator; each has an instance."""

    def __init__(self, rank, shared):
        self.rank, self.shared = rank, shared

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.shared["size"]

    def allgather(self, item):
        self.shared["items"][self.rank] = item
        self.shared["barrier"].wait()
        items = list(self.shared["items"])
        self.shared["barrier"].wait()
        return items

    def alltoall(self, items):
        return [sent[self.rank] for sent in self.allgather(items)]


def on_ranks(size, work):
    """Returns the result of ``work(communicator)``, or the exception that it raises, on each rank."""
    shared = {"size": size, "items": [None] * size, "barrier": threading.Barrier(size, timeout=60)}
    outcomes = [None] * size

    def run(rank):
        try:
            outcomes[rank] = work(Ranks(rank, shared))
        except Exception as error:
            outcomes[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
