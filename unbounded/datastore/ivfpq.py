"""The paper's datastore: an inverted file of product codes."""

import time
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from unbounded._native import exact_search, words_at
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
from unbounded.datastore.inverted import Inverted, centroids_of
from unbounded.datastore.threads import load_faiss
from unbounded.datastore.votes import Votes
from unbounded.errors import SettingError
from unbounded.growable_array import GrowableArray
from unbounded.states import Arrays, NoDelta, part, under
from unbounded.types import Hidden, Ids, Table

# Keys whose neighbors are searched for together: what is found is held until it is counted.
_TOGETHER = 512


@final
class IVFPQ(Datastore):
    """Exact up to `train_at` keys, then an inverted file of residual product codes.

    The paper: 4,096 centroids and 8 probes. It leaves open the size of a code (64 bytes here) and
    what the index is trained on: here on the first `train_at` keys of the stream itself, 39 a
    list unless told otherwise, which is what faiss asks for. At that very key all of them are
    moved in and the exact ones dropped. Eight of 4,096 lists hold fewer than 1,024 keys below
    some 400 k entries; queries that come back short are searched again with twice the probes.

    >>> store = IVFPQ(2, lists=2, probes=1, code_size=1, train_at=256)
    >>> keys = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    >>> store.add(keys, np.arange(300))
    >>> store.search(np.zeros((1, 2), np.float32), k=300).words.shape
    (1, 300)
    >>> [event.entries for event in store.events]
    [256]
    """

    def __init__(
        self,
        width: int,
        lists: int = 4096,
        probes: int = 8,
        code_size: int = 64,
        train_at: int | None = None,
    ) -> None:
        self.width = width
        self.events = []
        self._faiss = load_faiss()  # before a hundred thousand keys are read, not after
        if not 1 <= probes <= lists:
            raise SettingError(f"{probes} probes of {lists} lists; probe at least 1, at most all")
        if code_size < 1 or width % code_size:
            raise SettingError(
                f"codes of {code_size} bytes for keys {width} wide; the bytes must divide the "
                "width: choose another code_size"
            )
        # A byte has 256 values, and each needs a key to be trained on.
        fewest = max(lists, 256)
        self.train_at = max(39 * lists, fewest) if train_at is None else train_at
        if self.train_at < fewest:
            raise SettingError(
                f"training at {self.train_at} keys; {lists} lists need {fewest}: raise train_at "
                "or take fewer lists"
            )
        self.lists, self.probes, self.code_size = lists, probes, code_size
        self._flat = Flat(width)
        self._inverted: Inverted | None = None
        self._words = GrowableArray(np.empty(0, np.int32), spare=8)

    def __len__(self) -> int:
        return self.added

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return self._flat.added if self._inverted is None else len(self._inverted)

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._flat.words if self._inverted is None else self._words.view

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes, centroids and the table faiss keeps for speed; words."""
        if self._inverted is None:
            return self._flat.bytes
        return self._inverted.bytes + self._words.bytes

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self.width)
        if self._inverted is None:
            room = self.train_at - len(self._flat)
            self._flat.add(keys[:room], words[:room])
            if len(self._flat) < self.train_at:
                return
            self._inverted = self._train(self._flat.keys)
            self._words = GrowableArray(self._flat.words, spare=8)
            self._flat = Flat(self.width)
            keys, words = keys[room:], words[room:]
        self._inverted.add(keys)
        self._words.append(words)

    def _train(self, keys: Hidden) -> Inverted:
        began = time.perf_counter()
        centroids = centroids_of(keys, self.lists)
        index = self._faiss.IndexIVFPQ(centroids, self.width, self.lists, self.code_size, 8)
        index.pq.cp.min_points_per_centroid = 1
        index.train(keys)
        inverted = Inverted(index, self.probes)
        inverted.add(keys)
        what = f"inverted file of {self.lists:,} lists, {self.code_size} bytes a code"
        self.events.append(IndexEvent(len(keys), what, time.perf_counter() - began))
        return inverted

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        if self._inverted is None:
            return self._flat.search(queries, k)
        queries = checked_keys(queries, self.width, "queries")
        squared, positions = self._inverted.search(queries, checked_k(k))
        return Neighbors(squared, words_at(self.words, positions, 0), positions).in_order()

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time; a block is known exactly."""
        return stacked([found for _, found in self._read(keys, words, k)])

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word before it came; then add the pairs."""
        shares = np.empty((len(words), votes.kernels))
        for rows, found in self._read(keys, words, k):
            shares[rows] = votes.count(found.squared, found.words, words[rows])
        return shares

    def _read(self, keys: Hidden, words: Ids, k: int) -> Iterator[tuple[slice, Neighbors]]:
        keys, words = checked_pairs(keys, words, self.width)
        for start in range(0, len(keys), _TOGETHER):
            rows = slice(start, start + _TOGETHER)
            asked, came = keys[rows], words[rows]
            if self._inverted is None:
                found = self._flat.search_block(asked, came, k)
            else:
                found = self.search(asked, k).nearest_with(self._own_past(asked, came, k), k)
            self.add(asked, came)
            yield rows, found

    def _own_past(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Of each pair of a block, the nearest of those before it."""
        steps = np.arange(len(keys))
        most = min(k, len(keys) - 1)
        squared, numbers = exact_search(keys, keys, np.zeros_like(steps), steps, most)
        there = words_at(words.astype(np.int32), numbers, 0)
        return Neighbors(squared, there, np.where(numbers < 0, -1, numbers + self.added))

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Keys while exact, then what faiss would write; what has come since, it does not tell."""
        if since is not None:
            raise NoDelta
        header = {"header": to_header("IVFPQ", self.width, self.added, self.events)}
        if self._inverted is None:
            arrays = {**header, "keys": self._flat.keys.copy()}
        else:
            arrays = {**header, "inverted": self._faiss.serialize_index(self._inverted.index)}
        return {"words": self.words.copy(), **under("index", arrays)}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the state; trusted: a damaged one may end the process in faiss."""
        index = part("index", parts[0])
        added, events = from_header(index, "IVFPQ", self.width)
        words, flat, inverted = words_of(parts, None, added), Flat(self.width), None
        if "inverted" in index:
            inverted = Inverted(self._faiss.deserialize_index(index["inverted"]), self.probes)
        else:
            flat.add(index["keys"], words)
        self._flat, self._inverted, self.events = flat, inverted, events
        self._words = GrowableArray(words[len(flat) :], spare=8)
