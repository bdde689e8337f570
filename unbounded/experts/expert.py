"""The contract of experts: each turns what it has read into a distribution over the next word.

Two verbs and one law: `predict` asks and changes nothing; `score`, over a block, tells and learns,
and must equal `stepwise`: predict one word, look at it, learn it.
"""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from unbounded.experts.distribution import Distribution
from unbounded.states import Arrays, Stateful
from unbounded.types import Hidden, Ids, Probs


class Expert(Stateful):
    """One opinion about the next word, learned by reading."""

    size: int = 0
    """Words of the full vocabulary, which may grow; for those who may have nothing to go by."""

    wants_whole_block: bool = False
    """Whether a block is best scored in one, however long: the law has it that any cut will do."""

    apart: bool = False
    """Whether a block is best scored in a thread of its own, beside the others."""

    @abstractmethod
    def predict(self, hidden: Hidden) -> Distribution:
        """What would come after each hidden state, from all that was read; changes nothing."""

    @abstractmethod
    def score(self, hidden: Hidden, words: Ids) -> Probs:
        """What each word's probability was just before it came; and learn them all."""


def stepwise(expert: Expert, hidden: Hidden, words: Ids) -> Probs:
    """The definition of `score`: one word at a time."""
    probs = np.empty(len(words))
    for t in range(len(words)):
        now = slice(t, t + 1)
        probs[t] = expert.predict(hidden[now]).prob(words[now])[0]
        expert.score(hidden[now], words[now])
    return probs


def replay(expert: Expert, delta: Arrays) -> None:
    """Read the words of a delta once more, for those who look at nothing but words."""
    for words, size in _blocks(delta):
        expert.size = size or expert.size
        expert.score(np.empty((len(words), 0), np.float32), words)


def _blocks(delta: Arrays) -> Iterator[tuple[Ids, int | None]]:
    """The words of a delta as they were read, and the size of the full vocabulary for each."""
    words = delta["ids"].astype(np.int64)
    if "sizes" not in delta:
        yield words, None
        return
    blocks = np.split(words, np.cumsum(delta["blocks"])[:-1])
    yield from zip(blocks, delta["sizes"].tolist(), strict=True)
