"""An online model whose full vocabulary widens as words come: nothing has to be counted first."""

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from unbounded.config import MemoryConfig, build_online
from unbounded.lm import HeadedModel, Pretrained
from unbounded.memory.rows import Rows
from unbounded.predict import OnlineModel, Reading
from unbounded.score.metrics import surprise

EXPERTS = ("static", "uniform", "adapted", "unigram", "ngram", "latest", "recent", "unbounded")
"""Whom a kept memory asks: all of `full` that know nothing but what it read."""


@final
class Mind:
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
        self.online: OnlineModel = build_online(model, self.size, experts, config)
        self._rates = rates
        self._surprise = Rows(np.empty(0, np.float16), spare=8)

    @property
    def surprise(self) -> np.ndarray:
        """The nats of each entry, if they are remembered."""
        return self._surprise.view

    def read(self, words: Sequence[str]) -> Reading:
        """Score each word just before it comes, and learn it."""
        while not self._closed and len(self.online.vocabulary) + len(words) > self.size:
            self.size *= 2
            self.online.widen(self.size)
        reading = self.online.read(words)
        if self._rates:
            self._surprise.append(surprise(reading.prob).astype(np.float16))
        return reading

    def state(self) -> dict[str, np.ndarray]:
        """All of it, as arrays."""
        own = {"size": np.array([self.size]), "surprise": self.surprise.copy()}
        return {**own, **self.online.state()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what wrote the state; only if nothing was read yet."""
        self.size = int(state["size"][0])
        self._surprise.restore(state["surprise"])
        self.online.widen(self.size)
        self.online.load(state)
