"""What reading or scoring a text gives: the probability of each word just before it came."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.evaluation.metrics import surprise
from unbounded.mixture import Online
from unbounded.model import OnlineModel
from unbounded.model import Reading as BlockReading
from unbounded.types import Probs, Table


def peeked(model: OnlineModel, blocks: Iterable[Sequence[str]]) -> Iterator[BlockReading]:
    """Score words without learning any of them, a block at a time."""
    for words in blocks:
        reading, model = model.peek(words)
        yield reading


@final
class NetworkAlone:
    """The network without a memory, with a share for OOV words that it learns as it goes."""

    def __init__(self) -> None:
        self._mixture = Online(2)

    def score(self, experts: Sequence[str], table: Table) -> Probs:
        """What it would have said of each word, from the columns of all experts."""
        # Words that it does not know are even, or spelled.
        oov = "spelling" if "spelling" in experts else "uniform"
        columns = [experts.index("static"), experts.index(oov)]
        return self._mixture.score(np.ascontiguousarray(table[:, columns])).prob


@dataclass(frozen=True)
class Reading:
    """Words, and what the probability of each was just before it came, in all and by expert."""

    words: Sequence[str]
    prob: Probs
    experts: tuple[str, ...]
    table: Table
    characters: int
    """How many characters the words stand for."""

    @staticmethod
    def joined(parts: Sequence["Reading"]) -> "Reading":
        """One after another, at least one."""
        return Reading(
            [word for part in parts for word in part.words],
            np.concatenate([part.prob for part in parts]),
            parts[0].experts,
            np.concatenate([part.table for part in parts]),
            sum(part.characters for part in parts),
        )

    @property
    def logprobs(self) -> Probs:
        """The natural logarithm of each word's probability."""
        return -self.nats

    @property
    def nats(self) -> Probs:
        """The surprise of each word: minus its log-probability."""
        return surprise(self.prob)

    @property
    def perplexity(self) -> float:
        """The exponential of the mean surprise."""
        return float(np.exp(self.nats.mean()))

    @property
    def bits_per_character(self) -> float:
        """The surprise of all words in bits, over their characters."""
        return float(self.nats.sum() / math.log(2) / self.characters)

    @property
    def by_expert(self) -> Mapping[str, Probs]:
        """The log-probability that each expert alone gave each word."""
        return {name: -surprise(self.table[:, i]) for i, name in enumerate(self.experts)}

    @property
    def static(self) -> Probs:
        """What the network alone would have said of each word."""
        return NetworkAlone().score(self.experts, self.table)
