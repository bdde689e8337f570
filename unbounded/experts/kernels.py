"""Kernels of the density estimate: how much a neighbor at distance d counts (eq. 6)."""

from dataclasses import dataclass

import numpy as np

from unbounded.datastore import Votes
from unbounded.errors import SettingError
from unbounded.types import Distances

SHAPES = ("gaussian", "epanechnikov")

FLATTEST, KERNELS = 4.0, 4
"""Of the family of Gaussians that is learned from."""


@dataclass(frozen=True)
class Kernel:
    """K(√sharpness · d / θ), with θ fixed or each query's distance to its k-th neighbor.

    The paper takes θ(h) = d_k ("variable kernel density estimation") and names both shapes. With
    a Gaussian the nearest neighbor then weighs at most 1.65 times the k-th; sharpness makes it
    e^(sharpness/2) times.
    """

    shape: str = "gaussian"
    sharpness: float = 16.0
    bandwidth: float | None = None
    """None is the distance to the k-th neighbor."""

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise SettingError(f"kernel {self.shape!r} is unknown; use gaussian or epanechnikov")
        for name in ("sharpness", "bandwidth"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise SettingError(f"the kernel's {name} is {value}; it must be above 0")

    def weights(self, squared: Distances) -> Distances:
        """Unnormalized weights of neighbors in any order; infinitely far ones weigh nothing.

        Only ratios within a row mean anything. A row in which nothing would count (all at the
        very edge of the kernel, or too far for a float) counts its nearest neighbors.

        >>> kernel = Kernel("epanechnikov", sharpness=1.0, bandwidth=2.0)
        >>> kernel.weights(np.array([[0.0, 1.0, 4.0]]))
        array([[1.  , 0.75, 0.  ]])
        """
        if squared.shape[1] == 0:
            return squared
        nearest: Distances = squared.min(axis=1, keepdims=True)
        farthest = squared.max(axis=1, keepdims=True)
        # Nearly always there are enough neighbors, and then half of this need not be done.
        missing = None if np.isfinite(farthest).all() else ~np.isfinite(squared)
        if missing is not None:
            farthest = np.where(missing, 0, squared).max(axis=1, keepdims=True)
        # Where θ is zero all neighbors are at distance zero, so any scale will do.
        theta = farthest if self.bandwidth is None else np.full_like(farthest, self.bandwidth**2)
        scale = self.sharpness / np.where(theta > 0, theta, 1.0)
        with np.errstate(invalid="ignore"):
            if self.shape == "gaussian":
                # Relative to the nearest, so that no row underflows.
                weights: Distances = np.exp((nearest - squared) * (scale / 2))
            else:
                weights = np.maximum(1 - squared * scale, 0)
        if missing is not None:
            weights[missing] = 0
        if missing is not None or self.shape != "gaussian":
            empty = ~weights.any(axis=1)
            weights[empty] = np.isfinite(squared[empty]) & (squared[empty] == nearest[empty])
        return weights


def votes_by(kernel: Kernel | None) -> Votes:
    """How neighbors vote: by one kernel, or by Gaussians from flat to sharp, side by side.

    The best sharpness depends on the text: 16 on news, 8 on web pages, and one kernel with the
    wrong one loses 5 % (docs/log.md). Each Gaussian of the family is twice as sharp as the one
    before, so its weights are the squares of the other's, and one exponential serves all.

    >>> votes_by(None)
    Votes(gaussian=True, sharpness=4.0, bandwidth=None, kernels=4)
    """
    if kernel is None:
        return Votes(sharpness=FLATTEST, kernels=KERNELS)
    return Votes(kernel.shape == "gaussian", kernel.sharpness, kernel.bandwidth)
