"""A cache that stops learning: the memory of a kNN-LM, filled before the first word that counts."""

from collections.abc import Sequence
from functools import partial
from math import sqrt
from typing import final

import numpy as np

from unbounded.datastore import Datastore
from unbounded.experts.cache import Cache
from unbounded.experts.distribution import Distribution, Sparse
from unbounded.experts.expert import Expert
from unbounded.experts.kernels import Kernel
from unbounded.states import Arrays, NoDelta, part, under
from unbounded.types import Hidden, Ids, Probs

SHARE = 0.25
"""How far the kNN-LM, as published, trusts its neighbors (Khandelwal et al., 2020)."""


def softmax_kernel(temperature: float = 1.0) -> Kernel:
    """Weights in proportion to exp(−d² / temperature); 1 is as published.

    >>> weights = softmax_kernel(2.0).weights(np.array([[0.0, 2.0]]))
    >>> bool(np.isclose(weights[0, 1] / weights[0, 0], np.exp(-1)))
    True
    """
    return Kernel("gaussian", sharpness=1.0, bandwidth=sqrt(temperature / 2))


@final
class Offline(Expert):
    """The neighbors' votes as a kNN-LM has them: softmax of minus squared distances.

    It learns as a cache does until it is closed, and then never again.
    """

    def __init__(
        self, datastore: Datastore, size: int, *, k: int, part: slice = slice(None)
    ) -> None:
        self._make = partial(Cache, datastore, size, k=k, part=part)
        self.closed = False
        self.temperature = 1.0
        self.cache = self._make(kernel=softmax_kernel())

    def close(self, temperature: float | None = None) -> None:
        """Learn no more; from now on with another temperature, if one is given."""
        self.closed = True
        if temperature is not None:
            self.temperature = temperature
            self.cache = self._make(kernel=softmax_kernel(temperature))

    def predict(self, hidden: Hidden) -> Distribution:
        """What followed the nearest states."""
        return self.cache.predict(hidden)

    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """As a cache while it is open, and then what the closed memory says."""
        if not self.closed:
            return self.cache.score(hidden, words)
        return self.cache.predict(hidden).prob(words)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The cache's, whether it is closed, and its temperature; whole or not at all."""
        if since is not None:
            # It may have been filled before the stream, and learns nothing of it once closed.
            raise NoDelta
        own = {"closed": np.array([self.closed]), "temperature": np.array([self.temperature])}
        return {**own, **under("cache", self.cache.state())}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the state."""
        (state,) = parts
        self.closed = bool(state["closed"][0])
        self.temperature = float(state["temperature"][0])
        self.cache = self._make(kernel=softmax_kernel(self.temperature))
        self.cache.load([part("cache", state)])


TEMPERATURES = tuple(2.0**power for power in range(-2, 15))
SHARES = tuple(step / 20 for step in range(1, 20))
"""What a kNN-LM is tuned over; the published experiments tune its share in steps as large."""


def tuned(
    offline: Offline, hidden: Hidden, words: Ids, static: Probs
) -> tuple[float, float, float]:
    """The temperature and the share of the neighbors that suit a text best, and their nats."""
    found = offline.cache.neighbors(hidden)
    kernels = map(softmax_kernel, TEMPERATURES)
    votes = np.stack(
        [Sparse(found.words, one.weights(found.squared), 1).prob(words) for one in kernels]
    )
    shares = np.array(SHARES)[:, None, None]
    with np.errstate(divide="ignore"):
        nats = -np.log(shares * votes + (1 - shares) * static).mean(axis=2)
    share, row = np.unravel_index(int(np.argmin(nats)), nats.shape)
    return TEMPERATURES[int(row)], SHARES[int(share)], float(nats[share, row])
