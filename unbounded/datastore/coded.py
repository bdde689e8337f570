"""Datastores that are exact while small and keep codes from then on."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from unbounded._native import QuantizedLists, words_at
from unbounded.datastore.datastore import (
    Datastore,
    IndexEvent,
    Neighbors,
    Votes,
    checked_k,
    checked_keys,
    checked_pairs,
    from_header,
    stacked,
    to_header,
    words_of,
)
from unbounded.datastore.flat import Flat
from unbounded.datastore.inverted import Inverted
from unbounded.errors import MemoryFault
from unbounded.growable_array import GrowableArray
from unbounded.states import Arrays, NoDelta, part, under
from unbounded.types import Hidden, Ids, Table

Codes = QuantizedLists | Inverted


class Coded(Datastore):
    """Exact up to `exact` pairs, then codes; at that very pair all keys are moved, and dropped."""

    def __init__(self, width: int, exact: int) -> None:
        self.width, self.exact = width, exact
        self.events = []
        self._flat = Flat(width)
        self._codes: Codes | None = None
        # Entries grow by little too, so that one is at most 80 bytes all in.
        self._words = GrowableArray(np.empty(0, np.int32), spare=8)
        # Whether the codes know the word of each entry, so that votes can be counted there.
        self._tagged = True

    @abstractmethod
    def _fitted(self, keys: Hidden, words: Ids) -> tuple[Codes, str]:
        """Codes that are made for these keys, and hold them; and what was done."""

    @abstractmethod
    def _restored(self, state: Arrays, deltas: Sequence[Arrays]) -> Codes:
        """The codes of a state and of the deltas after it; `ValueError` if they do not fit."""

    def __len__(self) -> int:
        return self.added

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return self._flat.added if self._codes is None else self._codes.entries

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._flat.words if self._codes is None else self._words.view

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes and what finds them; and the words."""
        return self._flat.bytes if self._codes is None else self._codes.bytes + self._words.bytes

    @property
    def room(self) -> int:
        """Pairs that may come until something is rearranged.

        A search in between looks at the same keys however the stream was cut into blocks.
        """
        return self.exact - len(self._flat) if self._codes is None else self._codes.room

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self.width)
        if self._codes is None:
            room = self.room
            self._flat.add(keys[:room], words[:room])
            self._switch()
            keys, words = keys[room:], words[room:]
        if self._codes is not None:
            self._codes.add(keys, words)
            self._words.append(words)

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        if self._codes is None:
            return self._flat.search(queries, k)
        queries = checked_keys(queries, self.width, "queries")
        squared, positions = self._codes.search(queries, checked_k(k))
        return Neighbors(squared, words_at(self.words, positions), positions)

    def unordered(self, queries: Hidden, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances and numbers of the same entries, in no order, which is faster."""
        if not isinstance(self._codes, QuantizedLists):
            found = self.search(queries, k)
            return found.squared, found.positions.astype(np.uint32)
        queries = checked_keys(queries, self.width, "queries")
        return self._codes.unordered(queries, checked_k(k))

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        keys, words = checked_pairs(keys, words, self.width)
        found = []
        for rows in self._pieces(len(keys)):
            asked, came = keys[rows], words[rows]
            if self._codes is None:
                found.append(self._flat.read(asked, came, k))
                self._switch()
            else:
                squared, positions = self._codes.search(asked, checked_k(k), own_past=True)
                self._codes.add(asked, came)
                self._words.append(came)
                found.append(Neighbors(squared, words_at(self.words, positions), positions))
        return stacked(found)

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the pairs.

        Votes are counted where neighbors are found: there is no room to be made for them.
        """
        keys, words = checked_pairs(keys, words, self.width)
        shares = np.empty((len(words), votes.kernels))
        for rows in self._pieces(len(keys)):
            asked, came = keys[rows], words[rows]
            if self._codes is None:
                shares[rows] = self._flat.score(asked, came, k, votes)
                self._switch()
            else:
                self._tag(self._codes)
                how = self.words, checked_k(k), votes.settings
                shares[rows] = self._codes.score(asked, came, *how)
                self._words.append(came)
        return shares

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        if self._codes is None:
            return self._flat.vote(queries, words, k, votes)
        if not isinstance(self._codes, QuantizedLists):
            found = self.search(queries, k)
            return votes.count(found.squared, found.words, words)
        queries = checked_keys(queries, self.width, "queries")
        self._tag(self._codes)
        how = self.words, checked_k(k), votes.settings
        words = np.ascontiguousarray(words, np.int64)
        return self._codes.score(queries, words, *how, learn=False)

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Keys or codes, and words; since so many pairs, the keys or codes of the others.

        `NoDelta` where pairs were keys then and are codes now.
        """
        arrays: dict[str, np.ndarray] | None
        if self._codes is None:
            arrays = {"keys": self._flat.keys[since or 0 :].copy()}
        else:
            arrays = self._codes.state() if since is None else self._codes.since(since)
        if arrays is None:
            raise NoDelta
        header = to_header(type(self).__name__, self.width, self.added, self.events)
        arrays = {"header": header, **arrays}
        if since is not None:
            return arrays
        return {"words": self.words.copy(), **under("index", arrays)}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts, whose codes may be kept where they lie."""
        whole, deltas = part("index", parts[0]), parts[1:]
        kind = type(self).__name__, self.width
        from_header(whole, *kind)
        added, events = from_header(deltas[-1] if deltas else whole, *kind)
        words, flat, codes = words_of(parts, None, added), Flat(self.width), None
        if "keys" in whole:
            keys = np.concatenate([each["keys"] for each in (whole, *deltas)])
            flat.add(keys, words[: len(keys)])
        else:
            try:
                codes = self._restored(whole, deltas)
            except ValueError as error:
                raise MemoryFault(
                    f"the codes of the state do not fit together ({error}); restore an older one"
                ) from None
        if (flat.added if codes is None else codes.entries) != added:
            raise MemoryFault(f"the state is not of {added:,} pairs; restore an older one")
        self._flat, self._codes, self.events = flat, codes, events
        self._words = GrowableArray(words[len(flat) :], spare=8)
        self._tagged = False

    def _switch(self) -> None:
        """From keys to codes, if there are as many."""
        if self._codes is None and len(self._flat) == self.exact:
            began, flat = time.perf_counter(), self._flat
            self._codes, what = self._fitted(flat.keys, flat.words.astype(np.int64))
            self._words = GrowableArray(flat.words, spare=8)
            self._flat, self._tagged = Flat(self.width), True
            self.events.append(IndexEvent(self.exact, what, time.perf_counter() - began))

    def _pieces(self, count: int) -> Iterator[slice]:
        """Blocks that end where something is rearranged."""
        start = 0
        while start < count:
            rows = slice(start, min(start + self.room, count))
            yield rows
            start = rows.stop

    def _tag(self, codes: Codes) -> None:
        """Tell the codes the word of each entry, if they do not know them."""
        if not self._tagged:
            codes.retag(self.words)
            self._tagged = True
