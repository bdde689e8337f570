"""Kernels of several sharpnesses over the same neighbors; which to believe is learned."""

from unbounded.datastore import Votes
from unbounded.experts.kernels import Kernel

FLATTEST, KERNELS = 4.0, 4


def family(kernel: Kernel | None) -> Votes:
    """How neighbors vote: by one kernel, or by Gaussians from flat to sharp, side by side.

    The best sharpness depends on the text: 16 on news, 8 on web pages, and one kernel with the
    wrong one loses 5 % (docs/log.md). Each Gaussian of the family is twice as sharp as the one
    before, so its weights are the squares of the other's, and one exponential serves all.

    >>> family(None)
    Votes(gaussian=True, sharpness=4.0, bandwidth=None, kernels=4)
    """
    if kernel is None:
        return Votes(sharpness=FLATTEST, kernels=KERNELS)
    return Votes(kernel.shape == "gaussian", kernel.sharpness, kernel.bandwidth)
