"""Output layers in torch: what training, dynamic evaluation and transformers ask.

Training uses torch's own `AdaptiveLogSoftmaxWithLoss`. Who asks for probabilities only skips what
training needs, a full table of log-probabilities a cluster.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unbounded.lm.network_threads import hold_torch
from unbounded.lm.settings import NetworkConfig

hold_torch()


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
    ends = NetworkConfig(units=units, cutoffs=tuple(cutoffs)).ends(size)[:-1]
    return nn.AdaptiveLogSoftmaxWithLoss(
        units, size, list(ends), div_value=4.0 if units >= 4 else 1.0
    )


def reset_head(head: nn.AdaptiveLogSoftmaxWithLoss, generator: torch.Generator) -> None:
    """Draw all weights anew from `generator`."""
    with torch.no_grad():
        for weight in head.parameters():
            weight.uniform_(
                -(weight.shape[1] ** -0.5), weight.shape[1] ** -0.5, generator=generator
            )


def first_logits(head: Head, hidden: Tensor) -> Tensor:
    """The logits of the first softmax: a new tensor, which may be changed."""
    logits = hidden @ head.head.weight.T
    return logits if head.head.bias is None else logits.add_(head.head.bias)


def word_log_probs(head: Head, hidden: Tensor, words: Tensor) -> Tensor:
    """The log-probability of one word a step; only the clusters that hold a word are computed."""
    cutoffs = head.cutoffs
    cluster, column = _place(cutoffs, words)
    found = pick(first_logits(head, hidden), column)
    for i, tail in enumerate(head.tail):
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            found[rows] += pick(tail(hidden[rows]), words[rows] - cutoffs[i])
    return found


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
        narrow, grow_vocabulary = tail.parameters()
        rows = (cluster == i + 1).nonzero()[:, 0]
        if len(rows):
            here = hidden[rows]
            inner = here @ narrow.T
            errors = inner @ grow_vocabulary.T
            found[rows] += _errors(errors, words[rows] - cutoffs[i], share)
            grow_vocabulary.grad = errors.T @ inner
            back = errors @ grow_vocabulary
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


def pick(logits: Tensor, column: Tensor) -> Tensor:
    """One log-softmax a row; leaves odds in `logits`, which spares two passes over memory."""
    picked = logits.gather(1, column[:, None])[:, 0]
    largest = logits.amax(1, keepdim=True)
    return picked - largest[:, 0] - logits.sub_(largest).exp_().sum(1).log_()
