"""Which processor a network of torch is computed on; asked before the work, not after."""

from typing import TYPE_CHECKING

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
