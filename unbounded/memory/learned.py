"""An online model whose full vocabulary widens as words come: nothing has to be counted first."""

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from unbounded.datastore.growable_rows import GrowableRows
from unbounded.evaluation.metrics import surprise
from unbounded.experts import Cache, NGram
from unbounded.lm import HeadedModel, Pretrained
from unbounded.model import OnlineModel, Reading
from unbounded.presets import MemoryConfig, build_online
from unbounded.types import Ids

EXPERTS = (
    "static",
    "uniform",
    "adapted",
    "unigram",
    "ngram",
    "cache_128",
    "cache_1024",
    "unbounded",
)
"""Whom a kept memory asks: all of `full` that know nothing but what it read."""

_OWN = ("ids", "blocks", "vocabulary", "surprise")

SMALL = 4_000_000
"""Bytes that all but caches and n-grams are good for."""

_FORMER = {"expert.latest.": "expert.cache_128.", "expert.recent.": "expert.cache_1024."}


def present_names(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays by the names that experts have now; memories on disk may have earlier ones."""
    found = {}
    for name, array in arrays.items():
        for old, new in _FORMER.items():
            name = new + name.removeprefix(old) if name.startswith(old) else name
        found[name] = array
    return found


@final
class LearnedState:
    """All that a memory knows; a function of the blocks of words that it read, and of nothing else.

    The full vocabulary is a power of two, at first twice the network's words or more. It doubles
    before a block that it could be too small for.
    """

    def __init__(self, model: Pretrained, config: MemoryConfig, *, rates: bool = False) -> None:
        """With `rates`, how surprising each word was is remembered, two bytes a word."""
        self._closed = model.lm.closed
        self.size = 1 << (2 * len(model.vocabulary) - 1).bit_length()
        if self._closed:
            # There will be no others, so there is no room to be left for them.
            self.size = len(model.vocabulary)
        headed = isinstance(model.lm, HeadedModel)
        experts = [name for name in EXPERTS if headed or name != "adapted"]
        self.online: OnlineModel = build_online(model, self.size, experts, config, oov="unk")
        self._rates = rates
        self._surprise = GrowableRows(np.empty(0, np.float16), spare=8)
        # The blocks that have come since somebody asked, once somebody has; what was known then.
        self._came: list[Ids] | None = None
        self._known = len(self.online.vocabulary)

    @property
    def surprise(self) -> np.ndarray:
        """The nats of each entry, if they are remembered."""
        return self._surprise.view

    @property
    def entries(self) -> int:
        """How many words it has read."""
        cache = self.online.experts["unbounded"]
        assert isinstance(cache, Cache)
        return cache.memory.added

    @property
    def bytes(self) -> int:
        """About what a snapshot of it takes."""
        experts = self.online.experts.values()
        caches = sum(expert.memory.bytes for expert in experts if isinstance(expert, Cache))
        counts = sum(expert.bytes for expert in experts if isinstance(expert, NGram))
        return caches + counts + SMALL

    def read(self, words: Sequence[str]) -> Reading:
        """Score each word just before it comes, and learn it."""
        self._grow_vocabulary(len(self.online.vocabulary) + len(words))
        reading = self.online.read(words)
        if self._rates:
            self._surprise.append(surprise(reading.prob).astype(np.float16))
        if self._came is not None:
            self._came.append(reading.ids)
        return reading

    def _grow_vocabulary(self, words: int) -> None:
        while not self._closed and words > self.size:
            self.size *= 2
            self.online.grow_vocabulary(self.size)

    def state(self) -> dict[str, np.ndarray]:
        """All of it, as arrays."""
        own = {"size": np.array([self.size]), "surprise": self.surprise.copy()}
        return {**own, **self.online.state()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state; only if nothing was read yet."""
        self.size = int(state["size"][0])
        self._surprise.restore(state["surprise"])
        self.online.grow_vocabulary(self.size)
        self.online.load(state)

    def growth(self) -> dict[str, np.ndarray] | None:
        """What has come since this was last called; None if it is not known, as the first time."""
        came, self._came = self._came, []
        known, self._known = self._known, len(self.online.vocabulary)
        growth = self.online.growth()
        if came is None or growth is None:
            return None
        ids = np.concatenate([np.empty(0, np.int64), *came])
        words = np.empty(0, np.uint8)
        if self._known > known:
            words = self.online.words_since(known)
        return {
            "ids": ids.astype(np.int32),
            "blocks": np.array([len(block) for block in came], np.int32),
            "vocabulary": words,
            "surprise": self.surprise[len(self.surprise) - len(ids) :].copy()
            if self._rates
            else self.surprise[:0],
            **growth,
        }

    def rest(self) -> dict[str, np.ndarray]:
        """All that is not growth; a few megabytes however much was read."""
        return self.online.rest()

    def grow(self, growths: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Take in what has come, one growth after another; then `settle`."""
        for growth in growths:
            self._again(growth)
        # All at once, so that large arrays are moved only once.
        names = [name for name in growths[0] if name not in _OWN]
        self.online.grow({name: np.concatenate([g[name] for g in growths]) for name in names})
        self._known = len(self.online.vocabulary)

    def _again(self, growth: Mapping[str, np.ndarray]) -> None:
        known = len(self.online.vocabulary)
        if words := growth["vocabulary"].tobytes().decode():
            self.online.vocabulary.restore(words.split("\n"))
        ends = np.cumsum(growth["blocks"])[:-1]
        for block in np.split(growth["ids"].astype(np.int64), ends):
            # As it was when the block came.
            self._grow_vocabulary(known + len(block))
            self.online.again(block)
            known = max(known, int(block.max(initial=-1)) + 1)
        self._surprise.append(growth["surprise"])

    def settle(self, rest: Mapping[str, np.ndarray]) -> None:
        """Become what gave the rest."""
        self.online.settle(rest)
