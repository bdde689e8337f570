"""The paper's index: an inverted file of product codes."""

import time
from collections.abc import Mapping
from typing import final

import numpy as np

from unbounded._native import exact_search
from unbounded.datastore.exact import ExactKeys
from unbounded.datastore.index import Index, IndexEvent
from unbounded.datastore.inverted import Inverted, centroids_of, restored, stored
from unbounded.datastore.threads import load_faiss
from unbounded.datastore.votes import Votes
from unbounded.errors import SettingError
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table

# Keys whose neighbors are searched for together.
_TOGETHER = 512


@final
class IVFPQ(Index):
    """Exact up to `train_at` keys, then an inverted file of residual product codes.

    The paper: 4,096 centroids and 8 probes. It leaves open the size of a code (64 bytes here) and
    what the index is trained on: here on the first `train_at` keys of the stream itself, 39 a
    list unless told otherwise, which is what faiss asks for. At that very key all of them are
    moved in and the exact ones dropped. Eight of 4,096 lists hold fewer than 1,024 keys below
    some 400 k entries; queries that come back short are searched again with twice the probes.

    >>> index = IVFPQ(2, lists=2, probes=1, code_size=1, train_at=256)
    >>> index.add(np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32))
    >>> index.search(np.zeros((1, 2), np.float32), k=300)[1].shape
    (1, 300)
    >>> [event.entries for event in index.events]
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
        super().__init__(width)
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
        self._keys: ExactKeys | Inverted = ExactKeys(width)

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes, centroids and the table faiss keeps for speed."""
        return self._keys.bytes

    @property
    def room(self) -> int:
        """Some hundreds: what is found for a block is held until it is counted."""
        return _TOGETHER

    def _append(self, keys: Hidden, words: Ids | None) -> None:
        if isinstance(self._keys, ExactKeys):
            room = self.train_at - len(self._keys)
            self._keys.add(keys[:room])
            if len(self._keys) < self.train_at:
                return
            self._keys = self._train(self._keys.view)
            keys = keys[room:]
        self._keys.add(keys)

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

    def _search(self, queries: Hidden, k: int, own_past: bool) -> tuple[Distances, Positions]:
        if isinstance(self._keys, ExactKeys):
            return self._keys.search(queries, k, own_past)
        squared, positions = self._keys.search(queries, min(k, len(self._keys)))
        if own_past:
            steps = np.arange(len(queries))
            own = exact_search(queries, queries, np.zeros_like(steps), steps, min(k, len(queries)))
            squared = np.concatenate([squared, own[0]], axis=1)
            there = np.where(own[1] < 0, -1, own[1] + self.added)
            positions = np.concatenate([positions, there], axis=1)
        order = np.lexsort((positions, squared), axis=1)[:, :k]
        found = np.take_along_axis(squared, order, 1), np.take_along_axis(positions, order, 1)
        return found

    def _score(self, keys: Hidden, words: Ids, known: Known, k: int, votes: Votes) -> Table:
        said = np.concatenate([known, words])
        squared, positions = self._search(keys, self.seen_by_last(len(keys), k), True)
        shares = votes.count(squared, np.where(positions < 0, -1, said[positions]), words)
        self._append(keys, words)
        return shares

    def _state(self) -> dict[str, np.ndarray]:
        return stored(self._keys)

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._keys = restored(state, self.width, self.probes)
