"""An output layer that goes on learning while the network below it stays frozen.

The hidden states do not change, so a memory of them stays valid. Only the first softmax of the
adaptive softmax learns (the frequent words, and how likely each cluster of the others is); inside
a cluster the frozen network has its say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from unbounded.errors import SettingError
from unbounded.lm.head import FullSoftmax, Head, Shortlist, dense_log_probs, first_logits, shortlist
from unbounded.lm.model import HeadedModel, LanguageModel
from unbounded.types import Hidden, Ids, Probs, State

LIMIT = 30.0
"""No logit is moved further than this, so that no exponential overflows."""


@dataclass(frozen=True)
class AdaptedConfig:
    """How the output layer learns; chosen on news, wiki and web (docs/log.md)."""

    every: int = 64
    """Words between two steps."""

    rank: int = 32
    """Directions of the hidden state that the change looks at: those that move the logits most.
    All 256 would gain a little more, at four times the cost."""

    learning_rate: float = 0.1

    calm: float = 1e-3
    """Added to the root of Adagrad's sums, so that the first steps are small."""

    def __post_init__(self) -> None:
        for name in ("every", "rank"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("learning_rate", "calm"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be above 0")


@dataclass(frozen=True)
class Block:
    """What the frozen network said of a block's words."""

    known: Bool[np.ndarray, " n"]
    """Which of them it knows."""
    shortlist: Shortlist
    """Of those it knows."""
    prob: Probs
    """Of all; zero for strangers."""


@final
class SharedHead(LanguageModel):
    """A frozen network that keeps what it computed for the last words it was asked about.

    The static expert and the adapted one ask for the same block one after the other; the first
    softmax is most of the work for both. It is asked with the same two arrays or not at all.
    """

    def __init__(self, lm: HeadedModel) -> None:
        self.lm = lm
        self.base_size = lm.base_size
        self.width = lm.width
        self.closed, self.key_part = lm.closed, lm.key_part
        self._asked: tuple[Hidden, Ids] = (np.empty((0, lm.width), np.float32), np.empty(0, int))
        self._block = _block(lm, *self._asked)

    def start(self) -> tuple[Hidden, State]:
        """The network's."""
        return self.lm.start()

    def advance(self, state: State, words: Ids) -> tuple[Hidden, State]:
        """The network's."""
        return self.lm.advance(state, words)

    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step; zero for strangers."""
        return self.block(hidden, words).prob

    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        return self.lm.dense(hidden)

    def block(self, hidden: Hidden, words: Ids) -> Block:
        """The first softmax and all, computed once for the same two arrays."""
        if hidden is not self._asked[0] or words is not self._asked[1]:
            self._block = _block(self.lm, hidden, words)
            self._asked = hidden, words
        return self._block


def _block(lm: HeadedModel, hidden: Hidden, words: Ids) -> Block:
    known = (words >= 0) & (words < lm.base_size)
    prob = np.zeros(len(words))
    with torch.inference_mode():
        rows, ids = torch.from_numpy(lm.outputs(hidden)[known]), torch.from_numpy(words[known])
        found = shortlist(lm.head, rows, ids)
        prob[known] = found.log_prob.double().exp().numpy()
    return Block(known, found, prob)


@final
class AdaptedHead:
    """The frozen output layer plus a change that learns: a step of Adagrad every so many words.

    The change of a column's logit is linear in a few directions of the hidden state, and zero at
    first. Slopes are added up as words come, and a step is taken at fixed places of the stream.
    """

    def __init__(self, shared: SharedHead, config: AdaptedConfig = AdaptedConfig()) -> None:
        self.config = config
        self.base_size = shared.base_size
        self._shared = shared
        self._head = shared.lm.head
        with torch.inference_mode():
            self._axes = _axes(self._head, config.rank)
            columns, directions = len(self._head.head.weight), self._axes.shape[1]
            # The last direction is always one: a bias.
            self._change = torch.zeros(columns, directions + 1)
            self._sums = torch.zeros_like(self._change)
            self._slope = torch.zeros_like(self._change)
        self._waiting = 0

    @torch.inference_mode()
    def prob(self, hidden: Hidden, words: Ids) -> Probs:
        """The probability of one word a step, as the layer is now; zero for strangers."""
        block = _block(self._shared.lm, hidden, words)
        signals = self._signals(hidden)[torch.from_numpy(block.known)]
        odds = self._moved(block.shortlist.odds, signals)
        probs = np.zeros(len(words))
        probs[block.known] = _probs(block.shortlist, slice(None), odds, odds.sum(1))
        return probs

    @torch.inference_mode()
    def dense(self, hidden: Hidden) -> Float[np.ndarray, "n v"]:
        """The probability of every word the network knows, at each step."""
        rows = torch.from_numpy(self._shared.lm.outputs(hidden))
        logits = first_logits(self._head, rows)
        moved = (logits + self._moves(self._signals(hidden))).log_softmax(1)
        found = dense_log_probs(self._head, rows)
        ends = self._head.cutoffs
        found[:, : ends[0]] = moved[:, : ends[0]]
        gain = moved - logits.log_softmax(1)
        for i, (start, end) in enumerate(pairwise(ends)):
            found[:, start:end] += gain[:, ends[0] + i, None]
        return found.double().exp().numpy()

    @torch.inference_mode()
    def read(self, hidden: Hidden, words: Ids) -> Probs:
        """Each word's probability just before it came; and learn them all."""
        block = self._shared.block(hidden, words)
        known, found = block.known, block.shortlist
        signals = self._signals(hidden)[torch.from_numpy(known)]
        kept = np.empty(len(signals))
        # Where each word is among those that are known.
        place = np.concatenate([[0], np.cumsum(known)]).tolist()
        start = 0
        while start < len(words):
            end = min(start + self.config.every - self._waiting, len(words))
            part = slice(place[start], place[end])
            odds = self._moved(found.odds[part], signals[part])
            totals = odds.sum(1)
            kept[part] = _probs(found, part, odds, totals)
            self._slope.addmm_(odds.T, signals[part] / totals[:, None])
            self._slope.index_add_(0, found.column[part], signals[part], alpha=-1)
            self._waiting += end - start
            if self._waiting == self.config.every:
                self._step()
            start = end
        probs = np.zeros(len(words))
        probs[known] = kept
        return probs

    def state(self) -> dict[str, np.ndarray]:
        """The change, what Adagrad knows, and the slopes since the last step."""
        arrays = {
            "axes": self._axes,
            "change": self._change,
            "sums": self._sums,
            "slope": self._slope,
        }
        return {
            **{name: array.numpy().copy() for name, array in arrays.items()},
            "waiting": np.array(self._waiting),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state."""
        self._axes = torch.tensor(state["axes"])
        self._change = torch.tensor(state["change"])
        self._sums = torch.tensor(state["sums"])
        self._slope = torch.tensor(state["slope"])
        self._waiting = int(state["waiting"])

    def _signals(self, hidden: Hidden) -> Tensor:
        """What the change looks at: the state along the axes, and one."""
        rows = torch.from_numpy(self._shared.lm.outputs(hidden))
        return torch.cat([rows @ self._axes, torch.ones(len(hidden), 1)], 1)

    def _moves(self, signals: Tensor) -> Tensor:
        """What is added to every logit."""
        return (signals @ self._change.T).clamp_(-LIMIT, LIMIT)

    def _moved(self, odds: Tensor, signals: Tensor) -> Tensor:
        return self._moves(signals).exp_().mul_(odds)

    def _step(self) -> None:
        slope = self._slope.div_(self.config.every)
        self._sums.addcmul_(slope, slope)
        root = self._sums.sqrt().add_(self.config.calm)
        self._change.addcdiv_(slope, root, value=-self.config.learning_rate)
        self._slope.zero_()
        self._waiting = 0


def _axes(head: Head, rank: int) -> Tensor:
    """The directions along which the layer's weights are largest, as columns."""
    weight = head.head.weight
    if isinstance(head, FullSoftmax):
        # A vocabulary's worth of rows: their squares are a hundred times as fast to take apart.
        axes = torch.linalg.eigh(weight.double().T @ weight.double())[1].flip(1)
        chosen: Tensor = axes[:, :rank].float().contiguous()
    else:
        chosen = torch.linalg.svd(weight, full_matrices=False)[2][:rank].T.contiguous()
    return chosen


def _probs(found: Shortlist, part: slice, odds: Tensor, totals: Tensor) -> Probs:
    """The frozen probabilities, each times what its column gained."""
    share = odds.gather(1, found.column[part, None])[:, 0] / totals
    gained = share.log() - found.log_share[part] + found.log_prob[part]
    return gained.double().exp().numpy()
