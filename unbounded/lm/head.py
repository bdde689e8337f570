"""Adaptive softmax: one word's probability cheaply, the whole distribution dearly.

Training uses torch's own `AdaptiveLogSoftmaxWithLoss`. The frozen model asks for probabilities
only, so its paths skip what training needs (a full table of log-probabilities a cluster) and were
measured no slower than torch's for every choice of cut-offs tried (`unbounded bench train`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class FullSoftmax(nn.Module):
    """One softmax over all words, as an adaptive one without clusters: the head is everything."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head.float()
        self.cutoffs = [head.out_features]
        self.tail = nn.ModuleList()

    def log_prob(self, hidden: Tensor) -> Tensor:
        """The log-probability of every word at each step."""
        return first_logits(self, hidden).log_softmax(1)


Head = nn.AdaptiveLogSoftmaxWithLoss | FullSoftmax


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


@dataclass(frozen=True)
class Shortlist:
    """The first softmax, over frequent words and clusters, and each step's word under it."""

    column: Tensor
    """Where the word is: its own column, or its cluster's."""
    odds: Tensor
    """All columns, not normalized; the largest of each step is one."""
    log_share: Tensor
    """The log-probability of the word's column."""
    log_prob: Tensor
    """The log-probability of the word itself."""


def first_logits(head: Head, hidden: Tensor) -> Tensor:
    """The logits of the first softmax: a new tensor, which may be changed."""
    logits = hidden @ head.head.weight.T
    return logits if head.head.bias is None else logits.add_(head.head.bias)


def shortlist(head: Head, hidden: Tensor, words: Tensor) -> Shortlist:
    """One word a step; only the clusters that hold a word are computed."""
    cutoffs = head.cutoffs
    cluster, column = _place(cutoffs, words)
    odds = first_logits(head, hidden)
    share = _pick(odds, column)
    found = share.clone()
    for i, tail in enumerate(head.tail):
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            found[rows] += _pick(tail(hidden[rows]), words[rows] - cutoffs[i])
    return Shortlist(column, odds, share, found)


def word_log_probs(head: Head, hidden: Tensor, words: Tensor) -> Tensor:
    """The log-probability of one word a step."""
    return shortlist(head, hidden, words).log_prob


def dense_log_probs(head: Head, hidden: Tensor) -> Tensor:
    """The log-probability of every word at each step."""
    return head.log_prob(hidden)


@torch.no_grad()
def learn_words(
    head: nn.AdaptiveLogSoftmaxWithLoss, hidden: Tensor, words: Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """The log-probability of one word a step, and the slope of minus `share` times it in `hidden`.

    Sets the gradients of the weights that were used. It is what autograd gives (tested), without
    the passes over memory that a graph of logarithms needs.
    """
    cutoffs = head.cutoffs
    cluster, column = _place(cutoffs, words)
    errors = hidden @ head.head.weight.T
    found = _errors(errors, column, share)
    head.head.weight.grad = errors.T @ hidden
    slope = errors @ head.head.weight
    for i, tail in enumerate(head.tail):
        narrow, widen = tail.parameters()
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            here = hidden[rows]
            inner = here @ narrow.T
            errors = inner @ widen.T
            found[rows] += _errors(errors, words[rows] - cutoffs[i], share)
            widen.grad = errors.T @ inner
            back = errors @ widen
            narrow.grad = back.T @ here
            slope.index_add_(0, rows, back @ narrow)
    return found, slope


def _place(cutoffs: Sequence[int], words: Tensor) -> tuple[Tensor, Tensor]:
    """Each word's cluster, 0 for a frequent one, and its column in the first softmax."""
    inner = torch.tensor(cutoffs[:-1], dtype=torch.int64)
    cluster = torch.bucketize(words, inner, right=True)
    return cluster, torch.where(cluster > 0, cutoffs[0] + cluster - 1, words)


def _errors(logits: Tensor, column: Tensor, share: float) -> Tensor:
    """One log-softmax a row; makes `logits` their own slopes."""
    steps = torch.arange(len(column))
    logits -= logits.amax(1, keepdim=True)
    picked = logits[steps, column]
    totals = logits.exp_().sum(1)
    logits.mul_((share / totals)[:, None])
    logits[steps, column] -= share
    return picked - totals.log()


def _pick(logits: Tensor, column: Tensor) -> Tensor:
    """One log-softmax a row; leaves odds in `logits`, which spares two passes over memory."""
    picked = logits.gather(1, column[:, None])[:, 0]
    largest = logits.amax(1, keepdim=True)
    return picked - largest[:, 0] - logits.sub_(largest).exp_().sum(1).log_()
