"""The default datastore: exact while small, then codes of 64 bytes in lists that grow."""

import time
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from unbounded._native import QuantizedLists, words_at
from unbounded.datastore.datastore import (
    Datastore,
    IndexEvent,
    Neighbors,
    checked_k,
    checked_keys,
    checked_pairs,
    from_header,
    stacked,
    to_header,
    words_of,
)
from unbounded.datastore.flat import Flat
from unbounded.datastore.quantized import fitted, restored
from unbounded.datastore.votes import Votes
from unbounded.errors import MemoryFault, SettingError
from unbounded.growable_array import GrowableArray
from unbounded.states import Arrays, NoDelta, part, under
from unbounded.types import Hidden, Ids, Table

# Lists are split so often while as many keys come as were exact.
_SPLITS = 8


@final
class Auto(Datastore):
    """Exact up to `exact` pairs, then 64-byte codes in lists that are split in two as they grow.

    The axes of the codes are fitted once, to the first `exact` keys of the stream, in less than a
    second; after that nothing is ever trained again. How a stream is cut into blocks changes
    nothing: codes are made key by key, products are sums of integers, and lists are split at fixed
    counts of entries, where blocks end too (`room`).

    >>> store, random = Auto(2, exact=256), np.random.default_rng(0)
    >>> store.add(random.normal(size=(1100, 2)).astype(np.float32), np.arange(1100))
    >>> store.search(np.zeros((1, 2), np.float32), k=1100).words.shape
    (1, 1100)
    >>> [event.entries for event in store.events]
    [256]
    """

    def __init__(self, width: int, exact: int = 16_384) -> None:
        if exact < 256 or exact % _SPLITS:
            raise SettingError(
                f"exact up to {exact} keys; take at least 256, a multiple of {_SPLITS}"
            )
        self.width, self.exact = width, exact
        self.events = []
        self._flat = Flat(width)
        self._lists: QuantizedLists | None = None
        # Entries grow by little too, so that one is at most 80 bytes all in.
        self._words = GrowableArray(np.empty(0, np.int32), spare=8)
        # Whether the lists know the word of each entry, so that votes can be counted there.
        self._tagged = True

    def __len__(self) -> int:
        return self.added

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return self._flat.added if self._lists is None else self._lists.entries

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._flat.words if self._lists is None else self._words.view

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes, positions and centroids; and the words."""
        return self._flat.bytes if self._lists is None else self._lists.bytes + self._words.bytes

    @property
    def room(self) -> int:
        """Pairs that may come until something is rearranged.

        A search in between looks at the same keys however the stream was cut into blocks.
        """
        return self.exact - len(self._flat) if self._lists is None else self._lists.room

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self.width)
        if self._lists is None:
            room = self.room
            self._flat.add(keys[:room], words[:room])
            self._switch()
            keys, words = keys[room:], words[room:]
        if self._lists is not None:
            self._lists.add(keys, words)
            self._words.append(words)

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        if self._lists is None:
            return self._flat.search(queries, k)
        queries = checked_keys(queries, self.width, "queries")
        squared, positions = self._lists.search(queries, checked_k(k))
        return Neighbors(squared, words_at(self.words, positions, 0), positions)

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        keys, words = checked_pairs(keys, words, self.width)
        found = []
        for rows in self._pieces(len(keys)):
            asked, came = keys[rows], words[rows]
            if self._lists is None:
                found.append(self._flat.read(asked, came, k))
                self._switch()
            else:
                squared, positions = self._lists.search(asked, checked_k(k), own_past=True)
                self._lists.add(asked, came)
                self._words.append(came)
                found.append(Neighbors(squared, words_at(self.words, positions, 0), positions))
        return stacked(found)

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Votes are counted where neighbors are found: there is no room to be made for them.
        """
        keys, words = checked_pairs(keys, words, self.width)
        shares = np.empty((len(words), votes.kernels))
        for rows in self._pieces(len(keys)):
            asked, came = keys[rows], words[rows]
            if self._lists is None:
                shares[rows] = self._flat.score(asked, came, k, votes)
                self._switch()
            else:
                self._tag(self._lists)
                how = self.words, checked_k(k), *votes.settings
                shares[rows] = self._lists.score(asked, came, *how)
                self._words.append(came)
        return shares

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        if self._lists is None:
            found = self._flat.search(queries, k)
            return votes.count(found.squared, found.words, words)
        asked, came = checked_pairs(queries, words, self.width)
        self._tag(self._lists)
        return self._lists.vote(asked, came, self.words, checked_k(k), *votes.settings)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Keys, or codes in their lists, and words; since so many pairs, the others' keys or codes.

        `NoDelta` where pairs were keys then and are codes now.
        """
        arrays: dict[str, np.ndarray] | None
        if self._lists is None:
            arrays = {"keys": self._flat.keys[since or 0 :].copy()}
        elif since is None:
            arrays = self._lists.state()
        else:
            arrays = self._lists.since(since)
        if arrays is None:
            raise NoDelta
        arrays = {"header": to_header("Auto", self.width, self.added, self.events), **arrays}
        if since is not None:
            return arrays
        return {"words": self.words.copy(), **under("index", arrays)}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts, whose codes may be kept where they lie."""
        whole, deltas = part("index", parts[0]), parts[1:]
        from_header(whole, "Auto", self.width)
        added, events = from_header(deltas[-1] if deltas else whole, "Auto", self.width)
        flat, lists = Flat(self.width), None
        words = words_of(parts, None, added)
        if "codes" in whole:
            try:
                lists = restored(whole, self.exact // _SPLITS)
                for delta in deltas:
                    lists.grow(*(np.ascontiguousarray(delta[name]) for name in ("codes", "lists")))
            except ValueError as error:
                raise MemoryFault(
                    f"the codes of the state do not fit together ({error}); restore an older one"
                ) from None
        else:
            keys = np.concatenate([each["keys"] for each in (whole, *deltas)])
            flat.add(keys, words[: len(keys)])
        if (flat.added if lists is None else lists.entries) != added:
            raise MemoryFault(f"the state is not of {added:,} pairs; restore an older one")
        self._flat, self._lists, self.events = flat, lists, events
        self._words = GrowableArray(words[len(flat) :], spare=8)
        self._tagged = False

    def _switch(self) -> None:
        """From keys to codes, if there are as many."""
        if self._lists is None and len(self._flat) == self.exact:
            began, flat = time.perf_counter(), self._flat
            self._lists = fitted(flat.keys, self.exact // _SPLITS)
            self._lists.add(flat.keys, flat.words.astype(np.int64))
            self._words = GrowableArray(flat.words, spare=8)
            self._flat, self._tagged = Flat(self.width), True
            what = f"switched from exact to codes in {self._lists.count:,} lists"
            self.events.append(IndexEvent(self.exact, what, time.perf_counter() - began))

    def _pieces(self, count: int) -> Iterator[slice]:
        """Blocks that end where something is rearranged."""
        start = 0
        while start < count:
            rows = slice(start, min(start + self.room, count))
            yield rows
            start = rows.stop

    def _tag(self, lists: QuantizedLists) -> None:
        """Tell the lists the word of each entry, if they do not know them."""
        if not self._tagged:
            lists.retag(self.words)
            self._tagged = True
