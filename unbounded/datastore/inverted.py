"""An inverted file of codes that never comes back short: what faiss offers, made whole."""

from typing import Any, final

import numpy as np

from unbounded._native import count_votes, exact_search, words_at
from unbounded.datastore.datastore import Voting
from unbounded.datastore.threads import load_faiss
from unbounded.types import Distances, Hidden, Ids, Known, Positions, Table

# Keys whose neighbors are searched for together.
_TOGETHER = 512


def centroids_of(keys: Hidden, lists: int) -> Any:
    """A graph over the centroids of `lists` clusters of the keys.

    A graph and not a flat table, because it assigns each key by itself: the list of a key never
    depends on the block in which it was added. At 2,000 lists it also assigns 53 k keys a second
    where the table does 30 k, to the same list for 97 % of real states.
    """
    # Few rounds over few keys: at 131 k real states and 724 lists, 32 probes hold .677 of the
    # 1,024 nearest after 3 rounds (1.2 s) and .680 after 6 (2.3 s).
    faiss = load_faiss()
    clusters = faiss.Kmeans(
        keys.shape[1],
        lists,
        niter=4,
        max_points_per_centroid=40,
        min_points_per_centroid=1,
        seed=1,
    )
    clusters.train(keys)
    graph = faiss.IndexHNSWFlat(keys.shape[1], 32)
    graph.hnsw.efConstruction = 80
    graph.hnsw.efSearch = 32
    # One at a time: faiss adds many at once in parallel, and the graph then depends on the race.
    for centroid in clusters.centroids:
        graph.add(centroid[None])
    return graph


@final
class Inverted:
    """A trained faiss index of inverted lists, searched until every row is full."""

    def __init__(self, index: Any, probes: int) -> None:
        self.index = index
        self.probes = min(probes, index.nlist)
        # Only a search that is told its lists asks the index itself how many to take, and it is
        # told all; nothing is set while others may be searching.
        index.nprobe = index.nlist

    @property
    def entries(self) -> int:
        """How many there are."""
        return int(self.index.ntotal)

    @property
    def room(self) -> int:
        """Some hundreds: what is found for a block is held until it is counted."""
        return _TOGETHER

    @property
    def lists(self) -> int:
        """How many lists there are."""
        return int(self.index.nlist)

    @property
    def bytes(self) -> int:
        """Codes and numbers of the entries, centroids with their graph, tables made for speed."""
        index, entries = self.index, self.entries
        graph = self.lists * (index.d * 4 + 64 * 4)
        return int(entries * (index.code_size + 8) + graph + index.precomputed_table.size() * 4)

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append keys; whose words they are, faiss does not know."""
        self.index.add(keys)

    def retag(self, words: np.ndarray) -> None:
        """Nothing: words are not known here."""

    def search(
        self, queries: Hidden, k: int, own_past: bool = False
    ) -> tuple[Distances, Positions]:
        """The k nearest entries of each query, or all there are, nearest first.

        With `own_past` also of the queries before it, which are known exactly.
        """
        squared, positions = self._full(queries, min(k, self.entries))
        if own_past:
            steps, most = np.arange(len(queries)), min(k, max(len(queries) - 1, 0))
            own = exact_search(queries, queries, np.zeros_like(steps), steps, most)
            there = np.where(own[1] < 0, -1, own[1] + self.entries)
            squared = np.concatenate([squared, own[0]], axis=1)
            positions = np.concatenate([positions, there], axis=1)
        order = np.lexsort((positions, squared), axis=1)[:, :k]
        return np.take_along_axis(squared, order, 1), np.take_along_axis(positions, order, 1)

    def score(self, keys: Hidden, words: Ids, known: Known, k: int, settings: Voting) -> Table:
        """Each kernel's share of the votes for each word just before it came; then add the keys."""
        squared, positions = self.search(keys, k, own_past=True)
        there = words_at(np.concatenate([known, words]).astype(np.int32), positions)
        self.add(keys, words)
        return count_votes(squared, there, words, settings)

    def state(self) -> dict[str, np.ndarray]:
        """What faiss would write."""
        return {"inverted": load_faiss().serialize_index(self.index)}

    def since(self, first: int) -> dict[str, np.ndarray] | None:
        """What has come since, faiss does not tell."""
        return None

    def _full(self, queries: Hidden, k: int) -> tuple[Distances, Positions]:
        """Searched again with twice the probes until no row is short."""
        if not k or not len(queries):
            return np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        probes = self.probes
        squared, positions = self._probe(queries, k, probes)
        while probes < self.lists:
            # faiss fills a row that found too little with -1 at its end.
            short = np.flatnonzero(positions[:, -1] < 0)
            if not len(short):
                break
            probes = min(2 * probes, self.lists)
            squared[short], positions[short] = self._probe(queries[short], k, probes)
        return squared, positions

    def _probe(self, queries: Hidden, k: int, probes: int) -> tuple[Distances, Positions]:
        if probes < self.lists:
            parameters = load_faiss().SearchParametersIVF(nprobe=probes)
            squared, positions = self.index.search(queries, k, params=parameters)
            return squared, positions
        # The graph is not asked here: it may fail to reach one of all its nodes.
        centroids = self.index.quantizer.reconstruct_n(0, self.lists)
        to_lists = load_faiss().pairwise_distances(queries, centroids)
        every = np.tile(np.arange(self.lists), (len(queries), 1))
        squared, positions = self.index.search_preassigned(queries, k, every, to_lists)
        return squared, positions
