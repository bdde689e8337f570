"""The whole model: reads words for ever, and can be asked at any time what comes next."""

import time
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from unbounded import _native
from unbounded.corpus import Block, Vocabulary
from unbounded.errors import SettingError
from unbounded.experts.cache import Cache
from unbounded.experts.distribution import Distribution, Mixed
from unbounded.experts.expert import Expert
from unbounded.experts.ngram import NGram
from unbounded.experts.spelling import Spelling
from unbounded.lm import LanguageModel
from unbounded.lm.recurrent import OpenVocabularyModel
from unbounded.mixture.mixture import Mixture
from unbounded.states import Arrays, Stateful, from_array, part, to_array, under
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
    block: Block | None = None
    """Where the words stand and how they were written, if a memory read them from there."""


# Words at a time for all but those experts that want a block whole: what a softmax writes for them
# then stays in the processor's cache. µs a word, static row: 34 with 2,048, 44 with 8,192.
_PIECE = 2048

_WORTH_A_THREAD = 256
"""Words from which on starting a thread for them is nothing."""


# What experts are told of the words of a delta.
_READ = ("ids", "blocks", "sizes")


@final
class OnlineModel(Stateful):
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
        self.hidden: Hidden
        """The hidden state before the next word, one row."""
        self.network_state: State
        """Where the network stands, for it to go on from."""
        self.restart()

    def restart(self) -> None:
        """Stand before the first word of a text again; what was learned stays."""
        self.hidden, self.network_state = self.lm.start()

    def fork(
        self,
        *,
        experts: Mapping[str, Expert] | None = None,
        mixture: Mixture | None = None,
        hidden: Hidden | None = None,
        reset_context: bool = False,
    ) -> "OnlineModel":
        """A model that knows the same and stands where this one does, for asking.

        It shares the vocabulary, and the experts unless it is given others. Its mixture is its own.
        `hidden` is another state before the next word; with `reset_context` it stands before the
        first word of a text.
        """
        fork = copy(self)
        fork.experts = self.experts if experts is None else dict(experts)
        fork.mixture = self.mixture.fork() if mixture is None else mixture
        if reset_context:
            fork.restart()
        if hidden is not None:
            fork.hidden = hidden
        return fork

    def predict(self) -> Distribution:
        """The next word, now; changes nothing."""
        parts = [expert.predict(self.hidden) for expert in self.experts.values()]
        return Mixed(parts, self.mixture.weights_for(self.hidden[0]))

    def peek(
        self, words: Sequence[str], advanced: tuple[Hidden, State | None] | None = None
    ) -> tuple[Reading, "OnlineModel"]:
        """Score words without learning them, and a fork that stands behind them; changes nothing.

        Only the mixture of the fork learns. Whoever has let the network go on already, from
        `network_state` over the words' `ids`, says to where; without a network state the fork is
        to be asked, and told more, but its network is not to go on.
        """
        ids, unmet = self.ids(words)
        if advanced is None:
            lm = self.lm.naming(unmet) if isinstance(self.lm, OpenVocabularyModel) else self.lm
            advanced = lm.advance(self.network_state, ids)
        after, state = advanced
        before = np.concatenate([self.hidden, after])
        table = np.empty((len(ids), len(self.experts)))
        experts: dict[str, Expert] = {}
        for column, (name, expert) in enumerate(self.experts.items()):
            table[:, column], experts[name] = peek(expert, before[:-1], ids, unmet)
        fork = self.fork(experts=experts, hidden=before[-1:])
        fork.network_state = self.network_state if state is None else state
        scored = fork.mixture.score(table, before[:-1])
        names = tuple(experts)
        reading = Reading(words, ids, before[:-1], scored.prob, names, table, scored.weights, {})
        return reading, fork

    def ids(self, words: Sequence[str]) -> tuple[Ids, list[str]]:
        """The ids of words, and the words never met: their ids follow the vocabulary's."""
        ids = self.vocabulary.lookup(words)
        unmet: dict[str, int] = {}
        for place in np.flatnonzero(ids < 0).tolist():
            next_id = len(self.vocabulary) + len(unmet)
            ids[place] = unmet.setdefault(words[place], next_id)
        return ids, list(unmet)

    def grow_vocabulary(self, size: int) -> None:
        """Have that many words in the full vocabulary from now on, more than before."""
        for expert in self.experts.values():
            expert.size = size

    def read(self, words: Sequence[str], *, overlap: bool = True) -> Reading:
        """Score each word just before it comes, and learn it.

        With `overlap` those who are best scored apart are scored while the others are: all are done
        sooner, and what each is said to have taken is not its own alone.
        """
        clock = time.perf_counter
        seconds = dict.fromkeys(("network", *self.experts, "mixture"), 0.0)
        began = clock()
        ids = self.vocabulary.encode(words)
        before = np.empty((len(ids) + 1, self.hidden.shape[1]), np.float32)
        before[:1], state = self.hidden, self.network_state
        hidden, table = before[:-1], np.empty((len(ids), len(self.experts)))
        seconds["network"] += clock() - began
        overlap = overlap and len(ids) >= _WORTH_A_THREAD and _native.threads() > 1
        apart = {n for n, expert in self.experts.items() if overlap and expert.apart}
        whole = {n for n, expert in self.experts.items() if expert.wants_whole_block} - apart

        def score(names: Set[str], rows: slice) -> None:
            states, targets = hidden[rows], ids[rows]
            for column, (name, expert) in enumerate(self.experts.items()):
                if name in names:
                    began = clock()
                    table[rows, column] = expert.score(states, targets)
                    seconds[name] += clock() - began

        with _thread() if apart else nullcontext() as beside:
            tasks = []
            for start in range(0, len(ids), _PIECE):
                began = clock()
                piece = ids[start : start + _PIECE]
                after, state = self.lm.advance(state, piece)
                before[start + 1 : start + 1 + len(piece)] = after
                seconds["network"] += clock() - began
                rows = slice(start, start + len(piece))
                if beside is not None:
                    tasks.append(beside.submit(score, apart, rows))
                if start == 0:
                    # What lies on other machines is searched there while others are asked here.
                    for name, expert in self.experts.items():
                        if isinstance(expert, Cache):
                            began = clock()
                            expert.prefetch(hidden[: len(piece)])
                            seconds[name] += clock() - began
                score(self.experts.keys() - whole - apart, rows)
            score(whole, slice(0, len(ids)))
            for task in tasks:
                task.result()
        began = clock()
        scored = self.mixture.score(table, hidden)
        seconds["mixture"] += clock() - began
        self.hidden, self.network_state = before[-1:], state
        names = tuple(self.experts)
        return Reading(words, ids, hidden, scored.prob, names, table, scored.weights, seconds)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """All that was learned, the words that came later and where the text stands, as arrays.

        A delta is to be loaded with its `ids`, `blocks`, `sizes` and new `vocabulary`: they are
        known to whoever let it read.
        """
        later = np.arange(self.vocabulary.base_size, len(self.vocabulary))
        vocabulary = {"vocabulary": to_array(self.vocabulary.decode(later))}
        found = {
            **(vocabulary if since is None else {}),
            "network.hidden": self.hidden.copy(),
            **{f"network.{i}": part.copy() for i, part in enumerate(self.network_state)},
            **under("mixture", self.mixture.state(since)),
        }
        for name, expert in self.experts.items():
            found |= under(f"expert.{name}", expert.state(since))
        return found

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts; only for a model that has read nothing yet."""
        for each in parts:
            if words := from_array(each["vocabulary"]):
                self.vocabulary.restore(words)
        read = [{name: each[name] for name in _READ if name in each} for each in parts]
        for name, expert in self.experts.items():
            own = (part(f"expert.{name}", each) for each in parts)
            expert.load([{**words, **arrays} for words, arrays in zip(read, own, strict=True)])
        last = parts[-1]
        self.mixture.load([part("mixture", last)])
        self.hidden = last["network.hidden"].copy()
        count = len(self.network_state)
        self.network_state = tuple(last[f"network.{i}"].copy() for i in range(count))


def _thread() -> ThreadPoolExecutor:
    """A thread that shares its work with no other."""
    return ThreadPoolExecutor(1, initializer=partial(_native.stay_alone, True))


def peek(expert: Expert, hidden: Hidden, words: Ids, unmet: Sequence[str]) -> tuple[Probs, Expert]:
    """Each word's probability if none of them taught anything, and who to ask what is next.

    Changes nothing. The ids of words never met follow the vocabulary's.
    """
    if isinstance(expert, Spelling):
        return expert.ask(words, unmet), expert
    if isinstance(expert, NGram):
        # The only one to whom the words tell where the text stands.
        return expert.peek(words)
    return expert.predict(hidden).prob(words), expert
