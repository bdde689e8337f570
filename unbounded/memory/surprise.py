"""How surprising words were: to all experts together, and to each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbounded.evaluation.metrics import surprise
from unbounded.mixture import Online
from unbounded.model import Reading
from unbounded.types import Probs, Table


@dataclass(frozen=True)
class Surprise:
    """Words, and what the probability of each was just before it came, in all and by expert."""

    words: Sequence[str]
    prob: Probs
    experts: tuple[str, ...]
    table: Table

    @staticmethod
    def of(reading: Reading) -> "Surprise":
        """What is left of a reading once its states are let go."""
        return Surprise(reading.words, reading.prob, reading.experts, reading.table)

    @staticmethod
    def joined(parts: Sequence["Surprise"]) -> "Surprise":
        """One after another, at least one."""
        return Surprise(
            [word for part in parts for word in part.words],
            np.concatenate([part.prob for part in parts]),
            parts[0].experts,
            np.concatenate([part.table for part in parts]),
        )

    @property
    def static(self) -> Probs:
        """What the network alone would have said, with a share for OOV words that is learned."""
        columns = [self.experts.index("static"), self.experts.index("uniform")]
        return Online(2).score(np.ascontiguousarray(self.table[:, columns])).prob

    @property
    def nats(self) -> Probs:
        """The surprise of each word."""
        return surprise(self.prob)

    @property
    def perplexity(self) -> float:
        """The exponential of the mean surprise."""
        return float(np.exp(self.nats.mean()))
