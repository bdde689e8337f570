"""How many threads the network uses: many to train, one to read."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from unbounded import _native

_training: int | None = None


def set_network_threads(threads: int) -> None:
    """Let one call of the network, and one operation of training, use so many threads.

    What torch reads with is one: a stream is a chain of small products, and with a second thread
    that waits without spinning a word took 97 µs instead of 17.
    """
    global _training
    _training = threads
    _native.set_threads(threads)
    if "torch" in sys.modules:
        hold_torch()


def hold_torch() -> None:
    """Have torch read with one thread, if it was said how many there are to be."""
    import torch

    if _training is not None:
        torch.set_num_threads(1)


@contextmanager
def training_threads() -> Iterator[None]:
    """As many threads as training was allowed."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(_training or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
