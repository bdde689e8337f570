"""The default datastore: exact while small, then codes of 64 bytes in lists that grow."""

from collections.abc import Sequence
from typing import final

import numpy as np

from unbounded._native import QuantizedLists
from unbounded.datastore.coded import Coded
from unbounded.errors import SettingError
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids

AXES = 120
"""Main axes a code keeps, four bits each."""

CANDIDATES = 4
"""Entries looked at for each neighbor asked for: with twice as many `full` is the same to a
thousandth, and a search takes half as long again (docs/log.md)."""

FEWEST = 1024
"""Entries looked at for however few neighbors: one list alone often misses the very nearest."""

_STRETCHES = 1024

# The step of the uniform quantizer with 16 levels that is best for a Gaussian, in deviations.
_STEP = 0.335

# No axis is finer than this share of a key's length, or what is still while the code is fitted
# could never be told apart later.
_FINEST = 1e-3

# Lists are split so often while as many keys come as were exact.
_SPLITS = 8


@final
class Auto(Coded):
    """Exact up to `exact` pairs, then 64-byte codes in lists that are split in two as they grow.

    The axes of the codes are fitted once, to the first `exact` keys of the stream, in less than a
    second; after that nothing is ever trained again. How a stream is cut into blocks changes
    nothing: codes are made key by key, products are sums of integers, and lists are split at fixed
    counts of entries, where blocks end too (`room`).

    >>> store, random = Auto(2, exact=256), np.random.default_rng(0)
    >>> store.add(random.normal(size=(1100, 2)).astype(np.float32), np.arange(1100))
    >>> store.search(np.zeros((1, 2), np.float32), k=1100).words.shape
    (1, 1100)
    >>> [event.entries for event in store.events]
    [256]
    """

    def __init__(self, width: int, exact: int = 16_384, *, candidates: int = CANDIDATES) -> None:
        if exact < 256 or exact % _SPLITS:
            raise SettingError(
                f"exact up to {exact} keys; take at least 256, a multiple of {_SPLITS}"
            )
        super().__init__(width, exact)
        self._candidates = candidates

    def _fitted(self, keys: Hidden, words: Ids) -> tuple[QuantizedLists, str]:
        lists = fitted(keys, self.exact // _SPLITS, candidates=self._candidates)
        lists.add(keys, words)
        return lists, f"switched from exact to codes in {lists.count:,} lists"

    def _restored(self, state: Arrays, deltas: Sequence[Arrays]) -> QuantizedLists:
        lists = restored(state, self.exact // _SPLITS, self._candidates)
        for delta in deltas:
            lists.grow(*(np.ascontiguousarray(delta[name]) for name in ("codes", "lists")))
        return lists


def fitted(
    sample: Hidden,
    split_every: int,
    *,
    candidates: int = CANDIDATES,
    fewest: int = FEWEST,
    stretches: int = _STRETCHES,
) -> QuantizedLists:
    """Empty lists, for codes along the axes on which the sample varies most.

    On a million real states, 256 wide, distances between a query and codes of the 120 to 128 main
    axes gave the same perplexity as exact distances (docs/log.md): what is lost is mostly noise.
    Lists are split each time `split_every` entries have come, and from `stretches` times as many
    entries on less often.
    """
    wide = sample.astype(np.float64)
    mean = wide.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov(wide.T).reshape(len(mean), len(mean)))
    kept = min(AXES, len(mean))
    main = np.zeros((len(mean), AXES), np.float32)
    main[:, :kept] = axes[:, ::-1][:, :kept]
    deviations = np.sqrt(np.maximum(variance[::-1][:kept], 0))
    finest = _FINEST * np.sqrt((wide**2).sum(axis=1).mean())
    steps = np.zeros(AXES, np.float32)
    steps[:kept] = _STEP * np.maximum(deviations, finest)
    settings = split_every, candidates, fewest, stretches
    return QuantizedLists(mean.astype(np.float32), main, steps, *settings)


def restored(state: Arrays, split_every: int, candidates: int = CANDIDATES) -> QuantizedLists:
    """The lists that wrote the state, whose codes are kept where they lie."""
    arrays = {name: np.require(array, requirements=["C", "W"]) for name, array in state.items()}
    lists = QuantizedLists(
        *(arrays["mean"], arrays["axes"], arrays["steps"]),
        *(split_every, candidates, FEWEST, _STRETCHES),
    )
    lists.load(arrays)
    return lists
