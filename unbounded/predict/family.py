"""Kernels of several sharpnesses over the same neighbors; which to believe is learned."""

from typing import final, no_type_check

import numba
import numpy as np
from jaxtyping import Float

from unbounded.predict.distribution import Even
from unbounded.predict.kernels import Kernel
from unbounded.types import Distances, Ids, Positions, Table

FLATTEST = 4.0

DOUBLINGS = 3


@final
class Family:
    """Kernels whose votes are counted side by side: one kernel, or Gaussians from flat to sharp.

    The best sharpness depends on the text: 16 on news, 8 on web pages, and one kernel with the
    wrong one loses 5 % (docs/log.md). Each Gaussian of the family is twice as sharp as the one
    before, so its weights are the squares of the other's, and one exponential serves all.

    >>> family = Family(None)
    >>> family.sharpness
    (4.0, 8.0, 16.0, 32.0)
    """

    def __init__(self, kernel: Kernel | None) -> None:
        self._base = kernel or Kernel(sharpness=FLATTEST)
        doublings = 0 if kernel else DOUBLINGS
        self.sharpness = tuple(self._base.sharpness * 2**i for i in range(doublings + 1))

    def __len__(self) -> int:
        return len(self.sharpness)

    def shares(self, squared: Distances, words: Positions, targets: Ids, size: int) -> Table:
        """Each kernel's probability of a word a row; even over `size` words without neighbors."""
        hits = np.zeros((len(squared), len(self)))
        totals = np.zeros((len(squared), len(self)))
        if squared.shape[1]:
            base = np.ascontiguousarray(self._base.weights(squared), np.float32)
            _count(base, words, targets, hits, totals)
        even = Even(len(targets), size).prob(targets)[:, None]
        return np.where(totals > 0, hits / np.where(totals > 0, totals, 1), even)

    def weights(self, squared: Distances, trust: Float[np.ndarray, " j"]) -> Distances:
        """What each neighbor counts when the kernels are trusted so; a row sums to one or none."""
        if squared.shape[1] == 0:
            return squared
        power = self._base.weights(squared).astype(np.float64)
        mixed = np.zeros(power.shape)
        for share in trust:
            totals = power.sum(axis=1, keepdims=True)
            mixed += share * power / np.where(totals > 0, totals, 1)
            power = power * power
        return mixed


@numba.njit(cache=True, nogil=True, fastmath=True)
@no_type_check
def _count(base, words, targets, hits, totals):
    """The sum of a row's weights, and that of its neighbors that came before the target word."""
    power = np.empty(base.shape[1], np.float64)
    for t in range(len(base)):
        power[:] = base[t]
        target = targets[t]
        for j in range(hits.shape[1]):
            total, hit = 0.0, 0.0
            for i in range(len(power)):
                total += power[i]
                hit += power[i] if words[t, i] == target else 0.0
                power[i] *= power[i]
            totals[t, j] = total
            hits[t, j] = hit
