"""Codes of 64 bytes, fitted to a sample of keys, in inverted lists that are split as they grow."""

import numpy as np

from unbounded._native import QuantizedLists
from unbounded.states import Arrays
from unbounded.types import Hidden

AXES = 120
"""Main axes a code keeps, four bits each."""

CANDIDATES = 8
"""Entries looked at for each neighbor asked for: twice as many are worth no more than to ask for
an eighth as many neighbors more, and cost more."""

FEWEST = 1024
"""Entries looked at for however few neighbors: one list alone often misses the very nearest."""

# The step of the uniform quantizer with 16 levels that is best for a Gaussian, in deviations.
_STEP = 0.335

# No axis is finer than this share of a key's length, or what is still while the code is fitted
# could never be told apart later.
_FINEST = 1e-3


def fitted(
    sample: Hidden,
    split_every: int,
    *,
    candidates: int = CANDIDATES,
    fewest: int = FEWEST,
    stretches: int = 1024,
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
        arrays["mean"], arrays["axes"], arrays["steps"], split_every, candidates, FEWEST
    )
    lists.load(arrays)
    return lists
