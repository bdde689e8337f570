"""The whole model: reads words for ever, and can be asked at any time what comes next."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.lm import LanguageModel
from unbounded.predict.distribution import Distribution, Mixed
from unbounded.predict.experts import Expert
from unbounded.predict.mixture import Mixture
from unbounded.states import part, under
from unbounded.types import Hidden, Ids, Probs, State, Table


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

    def ahead(
        self, words: Sequence[str], advanced: tuple[Hidden, State] | None = None
    ) -> tuple[Reading, "OnlineModel"]:
        """Score words without learning them, and a model that stands behind them; changes nothing.

        Only the mixture of that model learns: it shares the experts, and is for asking. Whoever has
        let the network go on already, from `network_state` over the words' `ids`, says to where.
        """
        ids = self.ids(words)
        after, state = advanced or self.lm.advance(self._state, ids)
        before = np.concatenate([self._hidden, after])
        hidden, last = before[:-1], before[-1:]
        table = np.empty((len(ids), len(self.experts)))
        experts: dict[str, Expert] = {}
        for column, (name, expert) in enumerate(self.experts.items()):
            table[:, column], experts[name] = expert.ahead(hidden, ids)
        twin = OnlineModel(self.lm, self.vocabulary, experts, deepcopy(self.mixture))
        scored = twin.mixture.score(table, hidden)
        twin._hidden, twin._state = last, state
        names = tuple(experts)
        return Reading(words, ids, hidden, scored.prob, names, table, scored.weights, {}), twin

    def ids(self, words: Sequence[str]) -> Ids:
        """The ids of words; a stranger gets one beyond the vocabulary, and keeps it."""
        ids = self.vocabulary.lookup(words)
        strangers: dict[str, int] = {}
        for place in np.flatnonzero(ids < 0).tolist():
            next_id = len(self.vocabulary) + len(strangers)
            ids[place] = strangers.setdefault(words[place], next_id)
        return ids

    @property
    def network_state(self) -> State:
        """Where the network stands, for it to go on from."""
        return self._state

    @property
    def hidden(self) -> Hidden:
        """The state before the next word, one row."""
        return self._hidden

    def widen(self, size: int) -> None:
        """Have that many words in the full vocabulary from now on, more than before."""
        for expert in self.experts.values():
            expert.widen(size)

    def state(self) -> dict[str, np.ndarray]:
        """All that was learned, the words that came later and where the text stands, as arrays."""
        later = np.arange(self.vocabulary.base_size, len(self.vocabulary))
        words = "\n".join(self.vocabulary.decode(later)).encode()
        experts = {name: expert.state() for name, expert in self.experts.items()}
        return {
            "vocabulary": np.frombuffer(words, np.uint8),
            "network.hidden": self._hidden.copy(),
            **{f"network.{i}": part.copy() for i, part in enumerate(self._state)},
            **{k: a for name in experts for k, a in under(f"expert.{name}", experts[name]).items()},
            **under("mixture", self.mixture.state()),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state; only for a model that has read nothing yet."""
        if words := state["vocabulary"].tobytes().decode():
            self.vocabulary.restore(words.split("\n"))
        self._hidden = state["network.hidden"].copy()
        self._state = tuple(state[f"network.{i}"].copy() for i in range(len(self._state)))
        for name, expert in self.experts.items():
            expert.load(part(f"expert.{name}", state))
        self.mixture.load(part("mixture", state))

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
