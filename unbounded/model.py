"""The whole model: reads words for ever, and can be asked at any time what comes next."""

import time
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import final

import numpy as np

from unbounded.corpus import Vocabulary
from unbounded.errors import SettingError
from unbounded.experts.distribution import Distribution, Mixed
from unbounded.experts.expert import Expert
from unbounded.lm import LanguageModel
from unbounded.mixture.mixture import Mixture
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


# Words at a time for all but those experts that want a block whole: what a softmax writes for them
# then stays in the processor's cache. µs a word, static row: 34 with 2,048, 44 with 8,192.
_PIECE = 2048


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

    def peek(
        self, words: Sequence[str], advanced: tuple[Hidden, State] | None = None
    ) -> tuple[Reading, "OnlineModel"]:
        """Score words without learning them, and a model that stands behind them; changes nothing.

        Only the mixture of that model learns: it shares the experts, and is for asking. Whoever has
        let the network go on already, from `network_state` over the words' `ids`, says to where.
        """
        ids = self.ids(words)
        after, state = advanced or self.lm.advance(self._state, ids)
        reading, fork = self.resume(words, ids, after)
        fork._state = state
        return reading, fork

    def reset_context(self) -> "OnlineModel":
        """A model that knows the same, at the beginning of a text; for asking."""
        return OnlineModel(self.lm, self.vocabulary, self.experts, deepcopy(self.mixture))

    def with_hidden(self, hidden: Hidden) -> "OnlineModel":
        """A model that knows the same, with another state before the next word; for asking."""
        fork = self.fork(self.experts, deepcopy(self.mixture))
        fork._hidden = hidden
        return fork

    def resume(
        self, words: Sequence[str], ids: Ids, after: Hidden
    ) -> tuple[Reading, "OnlineModel"]:
        """`peek` for whoever has the states after each word already.

        The network of the model behind the words knows only that state: ask it, or tell it more.
        """
        before = np.concatenate([self._hidden, after])
        hidden, last = before[:-1], before[-1:]
        table = np.empty((len(ids), len(self.experts)))
        experts: dict[str, Expert] = {}
        for column, (name, expert) in enumerate(self.experts.items()):
            table[:, column], experts[name] = expert.peek(hidden, ids)
        fork = self.fork(experts, deepcopy(self.mixture))
        scored = fork.mixture.score(table, hidden)
        fork._hidden = last
        names = tuple(experts)
        return Reading(words, ids, hidden, scored.prob, names, table, scored.weights, {}), fork

    def fork(self, experts: Mapping[str, Expert], mixture: Mixture) -> "OnlineModel":
        """A model with these experts that stands where this one does, and shares its words."""
        fork = copy(self)
        fork.experts, fork.mixture = dict(experts), mixture
        return fork

    def ids(self, words: Sequence[str]) -> Ids:
        """The ids of words; an OOV word gets one beyond the vocabulary, and keeps it."""
        ids = self.vocabulary.lookup(words)
        oov: dict[str, int] = {}
        for place in np.flatnonzero(ids < 0).tolist():
            next_id = len(self.vocabulary) + len(oov)
            ids[place] = oov.setdefault(words[place], next_id)
        return ids

    def restart(self) -> None:
        """Stand before the first word of a text again; what was learned stays."""
        self._hidden, self._state = self.lm.start()

    def pass_over(self, words: Sequence[str]) -> tuple[Hidden, Ids]:
        """Stand behind words without asking or teaching an expert; states before them, and ids."""
        ids = self.vocabulary.encode(words)
        after, self._state = self.lm.advance(self._state, ids)
        before = np.concatenate([self._hidden, after])
        self._hidden = before[-1:]
        return before[:-1], ids

    @property
    def network_state(self) -> State:
        """Where the network stands, for it to go on from."""
        return self._state

    @property
    def hidden(self) -> Hidden:
        """The state before the next word, one row."""
        return self._hidden

    def grow_vocabulary(self, size: int) -> None:
        """Have that many words in the full vocabulary from now on, more than before."""
        for expert in self.experts.values():
            expert.grow_vocabulary(size)

    def state(self) -> dict[str, np.ndarray]:
        """All that was learned, the words that came later and where the text stands, as arrays."""
        experts = {name: expert.state() for name, expert in self.experts.items()}
        base = self.vocabulary.base_size
        return {"vocabulary": self.words_since(base), **self._small(), **_joined(experts)}

    def words_since(self, first: int) -> np.ndarray:
        """The words from that number on, as bytes."""
        words = self.vocabulary.decode(np.arange(first, len(self.vocabulary)))
        return np.frombuffer("\n".join(words).encode(), np.uint8)

    def _small(self) -> dict[str, np.ndarray]:
        return {
            "network.hidden": self._hidden.copy(),
            **{f"network.{i}": part.copy() for i, part in enumerate(self._state)},
            **under("mixture", self.mixture.state()),
        }

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state; only for a model that has read nothing yet."""
        if words := state["vocabulary"].tobytes().decode():
            self.vocabulary.restore(words.split("\n"))
        for name, expert in self.experts.items():
            expert.load(part(f"expert.{name}", state))
        self._load_small(state)

    def _load_small(self, state: Mapping[str, np.ndarray]) -> None:
        self._hidden = state["network.hidden"].copy()
        self._state = tuple(state[f"network.{i}"].copy() for i in range(len(self._state)))
        self.mixture.load(part("mixture", state))

    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come to the experts since this was last called; None if that is not known."""
        found = {name: expert.growth() for name, expert in self.experts.items()}
        known = {name: growth for name, growth in found.items() if growth is not None}
        return _joined(known) if len(known) == len(found) else None

    def rest(self) -> dict[str, np.ndarray]:
        """All that is neither growth nor to be had from the words alone; small."""
        experts = {name: expert.rest() for name, expert in self.experts.items()}
        return {**self._small(), **_joined(experts)}

    def again(self, words: Ids) -> None:
        """Take in a block that was read before, as far as the words alone say; then `grow`."""
        for expert in self.experts.values():
            expert.again(words)

    def grow(self, growth: Mapping[str, np.ndarray]) -> None:
        """Add what has come; `settle` before asking."""
        for name, expert in self.experts.items():
            expert.grow(part(f"expert.{name}", growth))

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""
        for name, expert in self.experts.items():
            expert.settle(part(f"expert.{name}", rest))
        self._load_small(rest)

    def read(self, words: Sequence[str]) -> Reading:
        """Score each word just before it comes, and learn it."""
        clock = time.perf_counter
        seconds = dict.fromkeys(("network", *self.experts, "mixture"), 0.0)
        began = clock()
        ids = self.vocabulary.encode(words)
        before, state = np.empty((len(ids) + 1, self._hidden.shape[1]), np.float32), self._state
        before[:1] = self._hidden
        hidden, table = before[:-1], np.empty((len(ids), len(self.experts)))
        seconds["network"] += clock() - began

        def score(whole: bool, rows: slice) -> None:
            states, targets = hidden[rows], ids[rows]
            for column, (name, expert) in enumerate(self.experts.items()):
                if expert.wants_whole_block == whole:
                    began = clock()
                    table[rows, column] = expert.score(states, targets)
                    seconds[name] += clock() - began

        for start in range(0, len(ids), _PIECE):
            began = clock()
            piece = ids[start : start + _PIECE]
            after, state = self.lm.advance(state, piece)
            before[start + 1 : start + 1 + len(piece)] = after
            seconds["network"] += clock() - began
            if start == 0:
                # What lies on other machines is searched there while others are asked here.
                for name, expert in self.experts.items():
                    if expert.wants_whole_block:
                        began = clock()
                        expert.prefetch(hidden[: len(piece)])
                        seconds[name] += clock() - began
            score(False, slice(start, start + len(piece)))
        score(True, slice(0, len(ids)))
        began = clock()
        scored = self.mixture.score(table, hidden)
        seconds["mixture"] += clock() - began
        self._hidden, self._state = before[-1:], state
        names = tuple(self.experts)
        return Reading(words, ids, hidden, scored.prob, names, table, scored.weights, seconds)


def _joined(experts: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of all experts, each under its name."""
    return {k: a for name in experts for k, a in under(f"expert.{name}", experts[name]).items()}
