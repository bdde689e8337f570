"""The default index: exact while small, then an inverted file that grows with its entries."""

import time
from collections.abc import Mapping
from typing import Any, final

import faiss
import numpy as np

from unbounded.errors import SettingError
from unbounded.memory.flat import Flat
from unbounded.memory.index import Index, IndexEvent
from unbounded.memory.inverted import KEYS_PER_LIST, Inverted, centroids_of, restored, stored
from unbounded.memory.nearest import Nearest
from unbounded.types import Hidden

GROWTH = 4
"""Lists are made anew each time the entries have grown by this factor."""

DRIFT = 1.25
"""They are too when recent keys lie this much farther from their centroids than keys did then."""

_BITS = 4
_SAMPLE = 2048


@final
class Auto(Index):
    """Exact up to `exact` keys, then an inverted file of about 2 √entries lists.

    The fine code of a key is 4 bits for every two of its dimensions and does not depend on its
    list. So lists can be made anew from the codes alone, and moving a key to another list loses
    nothing: a decoded key has the code it came from. The fine code is trained once, on the first
    `exact` keys of the stream.

    Queries a processor second (recall), real states, 256 wide, k = 1,024, lists newly made, for
    16, 32 and 64 probes: 131 k entries 5,911 (.60), 4,862 (.65), 3,831 (.72); 1 M entries 4,346
    (.68), 3,167 (.72), 2,196 (.74). At 32 k entries 32 probes answer 6,388, exact search 3,704.
    No loss of prediction was seen at 100 k entries (1,000 words, neighbors mixed with word counts
    only, best sharpness): perplexity 854 with 8 probes, 838 with 32, 848 with 64, 850 exact; too
    few words to tell these apart. The search figures at 131 k come again from
    `python benchmarks/bench_search.py --entries 131072 --probes 32 --states FILE.npy`; at 1 M
    the lists are those made at 524 k, and the same command gave 3,032 (.72).

    >>> index = Auto(2, exact=256)
    >>> index.add(np.random.default_rng(0).normal(size=(1100, 2)).astype(np.float32))
    >>> index.search(np.zeros((1, 2), np.float32), k=1100)[1].shape
    (1, 1100)
    >>> [event.entries for event in index.events]
    [256, 1024]
    """

    def __init__(self, width: int, exact: int = 32_768, probes: int = 32) -> None:
        super().__init__(width)
        if exact < 256:
            raise SettingError(f"exact up to {exact} keys; training needs at least 256")
        if probes < 1:
            raise SettingError(f"{probes} probes; a search needs at least 1")
        self.exact, self.probes = exact, probes
        self._keys: Flat | Inverted = Flat(width)
        self._made_at = 0
        self._spread = 0.0

    @property
    def bytes(self) -> int:
        """Keys while exact; then codes and centroids."""
        return self._keys.bytes

    def _append(self, keys: Hidden) -> None:
        # Cut at the counts where something is decided, so that it is decided there however the
        # stream was cut.
        start = 0
        while start < len(keys):
            stop = min(len(keys), start + self._next_decision() - len(self._keys))
            self._keys.add(keys[start:stop])
            start = stop
            self._decide()

    def _next_decision(self) -> int:
        if isinstance(self._keys, Flat):
            return self.exact
        after_check = len(self._keys) // self._check_every + 1
        return min(after_check * self._check_every, GROWTH * self._made_at)

    @property
    def _check_every(self) -> int:
        return self.exact // 2

    def _decide(self) -> None:
        entries = len(self._keys)
        if isinstance(self._keys, Flat):
            if entries == self.exact:
                self._train(self._keys)
        elif entries == GROWTH * self._made_at:
            self._make_lists(self._keys, f"grown {GROWTH} times")
        elif entries % self._check_every == 0 and entries - self._check_every >= self._made_at:
            spread = _spread(self._keys, self._keys.decoded(entries - self._check_every, entries))
            if self._spread == 0:
                # The first keys after the lists were made set the measure: those they were made
                # from lie nearer to the centroids than any new ones will.
                self._spread = spread
            elif spread > DRIFT * self._spread and entries > DRIFT * self._made_at:
                self._make_lists(self._keys, f"drifted by {spread / self._spread - 1:.0%}")

    def _train(self, flat: Flat) -> None:
        began = time.perf_counter()
        pieces = self.width // 2 if self.width % 2 == 0 else self.width
        index = _empty(flat.keys, len(flat), pieces)
        index.pq.cp.min_points_per_centroid = 1
        index.train(flat.keys)
        index.add(flat.keys)
        self._settle(index, "switched from exact", began)

    def _make_lists(self, old: Inverted, why: str) -> None:
        began = time.perf_counter()
        every = max(len(old) // (KEYS_PER_LIST * _lists_for(len(old))), 1)
        sample = np.concatenate([keys[::every].copy() for keys in old.blocks()])
        index = _empty(sample, len(old), old.index.pq.M)
        index.pq, index.is_trained = old.index.pq, True
        for keys in old.blocks():
            index.add(keys)
        self._settle(index, why, began)

    def _settle(self, index: Any, why: str, began: float) -> None:
        self._keys = Inverted(index, self.probes)
        self._made_at, self._spread = len(self._keys), 0.0
        what = f"inverted file of {index.nlist:,} lists, {why}"
        self.events.append(IndexEvent(self._made_at, what, time.perf_counter() - began))

    def show_to(self, nearest: Nearest) -> None:
        """Show the queries their nearest keys, k of them or all there are."""
        self._keys.show_to(nearest)

    def _state(self) -> dict[str, np.ndarray]:
        return {"lists": np.array([self._made_at, self._spread]), **stored(self._keys)}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._keys = restored(state, self.width, self.probes)
        self._made_at, self._spread = int(state["lists"][0]), float(state["lists"][1])


def _lists_for(entries: int) -> int:
    return int(2 * entries**0.5)


def _empty(sample: Hidden, entries: int, pieces: int) -> Any:
    """An inverted file for so many entries, clustered as the sample is."""
    lists = _lists_for(entries)
    centroids = centroids_of(sample, lists)
    index = faiss.IndexIVFPQFastScan(centroids, sample.shape[1], lists, pieces, _BITS)
    index.by_residual = False
    return index


def _spread(inverted: Inverted, keys: Hidden) -> float:
    """The mean squared distance of some of the keys to their centroids."""
    sample = np.ascontiguousarray(keys[:: max(len(keys) // _SAMPLE, 1)])
    return float(inverted.index.quantizer.search(sample, 1)[0].mean())
