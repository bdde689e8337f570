"""What others do with the same states: the kNN-LM's vote and the plain neural cache."""

import time

import numpy as np

from unbounded.experts.distribution import Sparse
from unbounded.lm import LanguageModel
from unbounded.shapes import Float, Int
from unbounded.types import Distances, Ids, Positions, Probs, State

KNN_SHARE = 0.25
"""λ of the kNN-LM (Khandelwal et al., 2020) on the text it was trained for."""

CACHE_SHARE, CACHE_FLATNESS = 0.1, 0.3
"""λ and θ of the neural cache (Grave et al., 2016); they do not change its speed."""


def knn_lm(words: Positions, squared: Distances, ids: Ids, size: int) -> Probs:
    """What neighbors say of each word when each weighs e to the minus of its squared distance."""
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isfinite(squared), np.exp(squared[:, :1] - squared), 0)
    return Sparse(words, weights, size).prob(ids)


def plain_cache_seconds(
    lm: LanguageModel,
    hidden: Float[np.ndarray, "1 d"],
    state: State,
    ids: Ids,
    keys: Float[np.ndarray, "w d"],
    next_words: Int[np.ndarray, " w"],
) -> float:
    """Seconds to read words one at a time beside a dense window, as the neural cache is written.

    `hidden` and `state` are those before the first word; the window slides over a ring of `keys`.
    """
    keys, next_words = keys.copy(), next_words.copy()
    began = time.perf_counter()
    for t in range(len(ids)):
        word = ids[t : t + 1]
        static = lm.prob(hidden, word)[0]
        scores = np.exp(CACHE_FLATNESS * (keys @ hidden[0]))
        cached = scores[next_words == word[0]].sum() / scores.sum()
        _ = (1 - CACHE_SHARE) * static + CACHE_SHARE * cached
        keys[t % len(keys)], next_words[t % len(keys)] = hidden[0], word[0]
        hidden, state = lm.advance(state, word)
    return time.perf_counter() - began
