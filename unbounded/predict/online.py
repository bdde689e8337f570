"""The whole model: reads words for ever, and can be asked at any time what comes next."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.lm import LanguageModel
from unbounded.predict.distribution import Distribution, Mixed
from unbounded.predict.experts import Expert
from unbounded.predict.mixture import Mixture
from unbounded.types import Hidden, Ids, Probs, Table


@dataclass(frozen=True)
class Reading:
    """What each word's probability was just before it came: mixed, and under each expert."""

    words: Sequence[str]
    ids: Ids
    hidden: Hidden
    """The state before each word."""
    prob: Probs
    experts: tuple[str, ...]
    table: Table
    weights: Table
    seconds: Mapping[str, float]
    """Seconds spent in `network` and in each expert, and in `mixture`."""


@final
class OnlineModel:
    """A frozen network, a list of experts that learn, and a mixture that decides whom to believe.

    The vocabulary grows as words appear. `read` scores a block of words at once; where the memory
    is exact, the scores do not depend on how the stream is cut into blocks, and where its keys are
    coded, hardly (docs/log.md).
    """

    def __init__(
        self,
        lm: LanguageModel,
        vocabulary: Vocabulary,
        experts: Mapping[str, Expert],
        mixture: Mixture,
    ) -> None:
        if len(mixture.weights) != len(experts):
            raise SettingError(
                f"a mixture of {len(mixture.weights)} for {len(experts)} experts; "
                "give one weight each"
            )
        self.lm = lm
        self.vocabulary = vocabulary
        self.experts = dict(experts)
        self.mixture = mixture
        self._hidden, self._state = lm.start()

    def predict(self) -> Distribution:
        """The next word, now; changes nothing."""
        parts = [expert.predict(self._hidden) for expert in self.experts.values()]
        return Mixed(parts, self.mixture.weights_for(self._hidden[0]))

    def read(self, words: Sequence[str]) -> Reading:
        """Score each word just before it comes, and learn it."""
        clock = time.perf_counter
        seconds: dict[str, float] = {}
        began = clock()
        ids = self.vocabulary.encode(words)
        after, state = self.lm.advance(self._state, ids)
        before = np.concatenate([self._hidden, after])
        hidden, last = before[:-1], before[-1:]
        seconds["network"] = clock() - began
        table = np.empty((len(ids), len(self.experts)))
        for column, (name, expert) in enumerate(self.experts.items()):
            began = clock()
            table[:, column] = expert.score(hidden, ids)
            seconds[name] = clock() - began
        began = clock()
        scored = self.mixture.score(table, hidden)
        seconds["mixture"] = clock() - began
        self._hidden, self._state = last, state
        names = tuple(self.experts)
        return Reading(words, ids, hidden, scored.prob, names, table, scored.weights, seconds)
