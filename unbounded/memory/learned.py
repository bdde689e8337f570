"""An online model whose full vocabulary widens as words come: nothing has to be counted first."""

from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np

from unbounded.datastore import Datastore
from unbounded.evaluation.metrics import surprise
from unbounded.experts import Cache, DynamicHead, NGram
from unbounded.growable_array import GrowableArray
from unbounded.lm import Pretrained
from unbounded.model import OnlineModel, Reading
from unbounded.presets import MemoryConfig, Recipe
from unbounded.states import Arrays, NoDelta, Stateful, from_array, to_array

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
class LearnedState(Stateful):
    """All that a memory knows; a function of the blocks of words that it read, and of nothing else.

    Where there is a uniform expert and the vocabulary is open, as in memories made before version
    0.2, the full vocabulary is a power of two, at first twice the network's words or more. It
    doubles before a block that it could be too small for.
    """

    def __init__(
        self,
        model: Pretrained,
        config: MemoryConfig,
        recipe: Recipe,
        *,
        rates: bool = False,
        datastore: Callable[[], Datastore] | None = None,
    ) -> None:
        """With `rates`, how surprising each word was is remembered, two bytes a word.

        `datastore` makes that of the unbounded cache, if it lies elsewhere.
        """
        self._doubles = "uniform" in recipe.experts and not model.lm.closed
        self.size = model.lm.base_size
        if self._doubles:
            self.size = 1 << (2 * len(model.vocabulary) - 1).bit_length()
        full_size = self.size if self._doubles else None
        self.online: OnlineModel = recipe.build(model, full_size, config, datastore)
        self._rates = rates
        self._surprise = GrowableArray(np.empty(0, np.float16), spare=8)
        self._begin_blocks()

    def _begin_blocks(self) -> None:
        """What was read, and known, before each block from here on, and before the next one."""
        self._blocks = GrowableArray(np.empty((0, 2), np.int64))
        self._blocks.append(np.array([[self.entries, len(self.online.vocabulary)]]))

    @property
    def surprise(self) -> np.ndarray:
        """The nats of each entry, if they are remembered."""
        return self._surprise.view

    @property
    def datastore(self) -> Datastore:
        """That of the unbounded cache."""
        cache = self.online.experts["unbounded"]
        assert isinstance(cache, Cache)
        return cache.datastore

    @property
    def entries(self) -> int:
        """How many words it has read."""
        return self.datastore.added

    @property
    def bytes(self) -> int:
        """About what a snapshot of it takes."""
        experts = self.online.experts.values()
        caches = sum(expert.datastore.bytes for expert in experts if isinstance(expert, Cache))
        others = sum(
            expert.bytes
            for expert in experts
            if isinstance(expert, DynamicHead) or (isinstance(expert, NGram) and not expert.follows)
        )
        return caches + others + SMALL

    def read(self, words: Sequence[str]) -> Reading:
        """Score each word just before it comes, and learn it."""
        self.size = self._size_for(len(self.online.vocabulary) + len(words))
        self.online.grow_vocabulary(self.size)
        reading = self.online.read(words)
        if self._rates:
            self._surprise.append(surprise(reading.prob).astype(np.float16))
        self._blocks.append(np.array([[self.entries, len(self.online.vocabulary)]]))
        return reading

    def _size_for(self, words: int) -> int:
        """The full vocabulary, doubled until it is large enough for so many words."""
        size = self.size
        while self._doubles and words > size:
            size *= 2
        return size

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """All of it, as arrays; or what has come since so many words, where a block began."""
        if since is None:
            own = {"size": np.array([self.size]), "surprise": self.surprise.copy()}
            return {**own, **self.online.state()}
        found = self.online.state(since)
        first = int(np.searchsorted(self._blocks.view[:, 0], since))
        blocks = self._blocks.view[first:]
        if not len(blocks) or blocks[0, 0] != since:
            raise NoDelta
        later = np.arange(blocks[0, 1], len(self.online.vocabulary))
        return {
            "ids": self.datastore.words[since:].copy(),
            "blocks": np.diff(blocks[:, 0]).astype(np.int32),
            "vocabulary": to_array(self.online.vocabulary.decode(later)),
            "surprise": self.surprise[since:].copy(),
            **found,
        }

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote a state and the deltas after it; only if nothing was read yet."""
        whole, *deltas = parts
        surprise = np.concatenate([each["surprise"] for each in parts])
        self._surprise = GrowableArray(surprise, spare=8)
        self.size = int(whole["size"][0])
        self.online.grow_vocabulary(self.size)
        known = self.online.vocabulary.base_size + len(from_array(whole["vocabulary"]))
        # What follows from the words alone is learned from them again.
        read = whole["expert.unbounded.words"]
        told: list[Arrays] = [{"ids": read, **whole}]
        for delta in deltas:
            sizes = []
            for block in np.split(delta["ids"], np.cumsum(delta["blocks"])[:-1]):
                # As it was when the block came.
                self.size = self._size_for(known + len(block))
                sizes.append(self.size)
                known = max(known, int(block.max(initial=-1)) + 1)
            told.append({**delta, "sizes": np.array(sizes)})
        self.online.load(told)
        self.online.grow_vocabulary(self.size)
        self._begin_blocks()


def grows(name: str) -> bool:
    """Whether an array of a delta is added to those before it; of others the last is enough."""
    unbounded = name.startswith("expert.unbounded.") and name.endswith(("keys", "codes", "lists"))
    return unbounded or name in ("ids", "blocks", "vocabulary", "surprise")
