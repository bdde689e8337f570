"""Adaptive softmax: one word's probability cheaply, the whole distribution dearly.

Training uses torch's own `AdaptiveLogSoftmaxWithLoss`. The frozen model asks for probabilities
only, so its paths skip what training needs (a full table of log-probabilities a cluster) and were
measured no slower than torch's for every choice of cut-offs tried (`unbounded bench train`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def build_head(units: int, size: int, cutoffs: Sequence[int]) -> nn.AdaptiveLogSoftmaxWithLoss:
    """An adaptive softmax over `size` words, with those cut-offs that lie inside the vocabulary."""
    inside = [cutoff for cutoff in cutoffs if cutoff < size]
    # Torch wants at least one cluster besides the head: a small vocabulary is halved. Each cluster
    # sees a quarter of the units of the one before, so few units have room for few clusters.
    deepest = max((units.bit_length() - 1) // 2, 1)
    return nn.AdaptiveLogSoftmaxWithLoss(
        units, size, inside[:deepest] or [max(1, size // 2)], div_value=4.0 if units >= 4 else 1.0
    )


def reset_head(head: nn.AdaptiveLogSoftmaxWithLoss, generator: torch.Generator) -> None:
    """Draw all weights anew from `generator`."""
    with torch.no_grad():
        for weight in head.parameters():
            weight.uniform_(
                -(weight.shape[1] ** -0.5), weight.shape[1] ** -0.5, generator=generator
            )


def word_log_probs(head: nn.AdaptiveLogSoftmaxWithLoss, hidden: Tensor, words: Tensor) -> Tensor:
    """The log-probability of one word a step; only the clusters that hold a word are computed."""
    cutoffs = head.cutoffs
    cluster = torch.bucketize(words, torch.tensor(cutoffs[:-1]), right=True)
    column = torch.where(cluster > 0, cutoffs[0] + cluster - 1, words)
    found = _pick(hidden @ head.head.weight.T, column)
    for i, tail in enumerate(head.tail):
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            found[rows] += _pick(tail(hidden[rows]), words[rows] - cutoffs[i])
    return found


def dense_log_probs(head: nn.AdaptiveLogSoftmaxWithLoss, hidden: Tensor) -> Tensor:
    """The log-probability of every word at each step."""
    return head.log_prob(hidden)


def _pick(logits: Tensor, column: Tensor) -> Tensor:
    """One log-softmax a row; overwrites `logits`, which spares two passes over memory."""
    picked = logits.gather(1, column[:, None])[:, 0]
    largest = logits.amax(1, keepdim=True)
    return picked - largest[:, 0] - logits.sub_(largest).exp_().sum(1).log_()
