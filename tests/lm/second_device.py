"""A second device on a machine that has none: tensors that lie there meet no others unnoticed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

SECOND = torch.device("meta")
"""Its name: one that torch knows and that computes nothing of its own."""


class Elsewhere(Tensor):
    """A tensor on the second device; its numbers are where nobody looks for them."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=SECOND,
            requires_grad=inner.requires_grad,
        )
        made.numbers = inner
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _computed(func, args, kwargs or {})


class _Second(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self:
            # Without gradients torch shows whole functions, `.to` among them, not their parts.
            parts = func.decompose(*args, **(kwargs or {}))
        return _computed(func, args, kwargs or {}) if parts is NotImplemented else parts


@contextmanager
def second_device() -> Iterator[torch.device]:
    """While it is there, `.to(device)` moves to it; what mixes both is an error, as on others."""
    with _Second():  # type: ignore[no-untyped-call]
        yield SECOND


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    args, kwargs = tree_map(_adopted, (args, kwargs))
    met: list[Tensor] = []
    tree_map(lambda one: met.append(one) if isinstance(one, Tensor) else None, (args, kwargs))
    there = any(isinstance(one, Elsewhere) for one in met)
    moves = func is torch.ops.aten._to_copy.default
    copies = func is torch.ops.aten.copy_.default
    # A number without dimensions is taken along by every device.
    if there and not copies and any(type(one) is not Elsewhere and one.ndim for one in met):
        raise RuntimeError(f"{func} found tensors on two devices")
    target = kwargs.get("device")
    if target is not None:
        there = torch.device(target) == SECOND
        kwargs = {**kwargs, "device": torch.device("cpu")}
        assert moves or not met or there, func
    found = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if copies or (func._schema.name.endswith("_") and isinstance(args[0], Tensor)):
        return args[0]
    if not there:
        return found
    return tree_map(lambda one: Elsewhere(one) if isinstance(one, Tensor) else one, found)


def _adopted(one: Any) -> Any:
    """`torch.tensor([], device=…)` makes nothing, and asks nobody where."""
    if isinstance(one, Tensor) and type(one) is not Elsewhere and one.device == SECOND:
        assert one.numel() == 0
        return Elsewhere(torch.empty(one.shape, dtype=one.dtype))
    return one


def _inner(one: Any) -> Any:
    return one.numbers if isinstance(one, Elsewhere) else one
