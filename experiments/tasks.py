"""Work that needs nothing of other work, spread over the nodes of an engine."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unbounded.cluster.address import Address
from unbounded.cluster.on_ray import connect, ray_module
from unbounded.errors import EngineError, Unavailable, UnboundedError

RETRIES = 3
"""How often work is begun again whose node was lost."""


def spread_out(
    address: str, work: Sequence[Callable[[], Any]], *, cores: float = 1
) -> Iterator[tuple[int, Any]]:
    """What each gives, with its number, as soon as it is there; `cores` are those of one.

    Functions must be importable on every node. An error ends it all; what was given is given.
    """
    connect(Address.parse(address))
    ray = ray_module()
    run = ray.remote(_run).options(num_cpus=cores, max_retries=RETRIES)
    begun = {run.remote(each): number for number, each in enumerate(work)}
    left = list(begun)
    try:
        while left:
            (done,), left = ray.wait(left, num_returns=1)
            yield begun[done], _got(ray, done)
    finally:
        for each in left:
            ray.cancel(each, force=True)


def _run(work: Callable[[], Any]) -> Any:
    return work()


def _got(ray: Any, done: Any) -> Any:
    try:
        return ray.get(done)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UnboundedError):
            raise error.cause from None
        raise EngineError(
            f"work on the engine failed ({error.cause!r}); look at the engine's logs"
        ) from error
    except ray.exceptions.RayError as error:
        raise Unavailable(
            f"work on the engine was lost {RETRIES} times ({' '.join(str(error).split())[:160]}); "
            "begin again: what is done is kept"
        ) from error
