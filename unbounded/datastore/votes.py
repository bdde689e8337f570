"""Neighbors vote for the word that followed them, the nearer the more (eq. 6)."""

from dataclasses import dataclass, field

import numpy as np

from unbounded import _native
from unbounded.shapes import Float
from unbounded.types import Distances, Ids, Positions, Table

_NO_TRUST = np.empty(0)


@dataclass(frozen=True)
class Votes:
    """One kernel, or several side by side, each twice as sharp as the one before.

    Without a `bandwidth` it is each query's distance to its furthest neighbor.

    >>> near, words = np.array([[0.0, 1.0]], np.float32), np.array([[7, 8]])
    >>> Votes(gaussian=False, bandwidth=2.0).count(near, words, np.array([7])).round(3).tolist()
    [[0.571]]
    """

    gaussian: bool = True
    sharpness: float = 1.0
    bandwidth: float | None = None
    kernels: int = 1
    trust: Float[np.ndarray, " kernels"] | None = field(default=None, repr=False, compare=False)
    """In each kernel, where only what they say together is wanted: one column, in doubles."""

    @property
    def settings(self) -> tuple[bool, float, float, int, np.ndarray]:
        """As the native code takes them."""
        trust = _NO_TRUST if self.trust is None else self.trust
        return self.gaussian, self.sharpness, self.bandwidth or 0.0, self.kernels, trust

    def count(self, squared: Distances, words: Positions, targets: Ids) -> Table:
        """Each kernel's share of the votes for one word a row; NaN where there are no neighbors."""
        return _native.count_votes(
            np.ascontiguousarray(squared, np.float32),
            np.ascontiguousarray(words, np.int64),
            np.ascontiguousarray(targets, np.int64),
            *self.settings,
        )

    def weights(self, squared: Distances) -> Distances:
        """What each neighbor counts when the kernels are trusted so; a row sums to one or none."""
        return _native.mixed_weights(np.ascontiguousarray(squared, np.float32), *self.settings)
