"""What a network is computed on: which processor, and with how many threads."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unbounded import _native
from unbounded.errors import SettingError

if TYPE_CHECKING:
    import torch

DEVICES = ("cpu", "cuda", "mps")


def device_named(name: str) -> "torch.device":
    """A device that is there: cpu, cuda, cuda:1, mps; a `SettingError` in one line otherwise.

    >>> device_named("cpu")
    device(type='cpu')
    >>> device_named("tpu")
    Traceback (most recent call last):
    unbounded.errors.SettingError: device 'tpu' is unknown; use cpu, cuda or mps
    """
    kind, _, number = name.partition(":")
    if kind not in DEVICES or (number and not number.isdecimal()):
        raise SettingError(f"device {name!r} is unknown; use cpu, cuda or mps")
    import torch

    match kind:
        case "cuda":
            count = torch.cuda.device_count()
        case "mps":
            count = int(torch.backends.mps.is_available())
        case _:
            count = 1
    if int(number or 0) >= count:
        raise SettingError(
            f"device {name!r} is not there: torch {torch.__version__} sees {count} of {kind!r}; "
            "leave out --device for cpu, or install the torch that is made for it"
        )
    return torch.device(name)


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
