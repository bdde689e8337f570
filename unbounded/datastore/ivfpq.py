"""The paper's datastore: an inverted file of product codes."""

from collections.abc import Sequence
from typing import final

from unbounded.datastore.coded import Coded
from unbounded.datastore.inverted import Inverted, centroids_of
from unbounded.datastore.threads import load_faiss
from unbounded.errors import SettingError
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids


@final
class IVFPQ(Coded):
    """Exact up to `train_at` keys, then an inverted file of residual product codes.

    The paper: 4,096 centroids and 8 probes. It leaves open the size of a code (64 bytes here) and
    what the index is trained on: here on the first `train_at` keys of the stream itself, 39 a
    list unless told otherwise, which is what faiss asks for. At that very key all of them are
    moved in and the exact ones dropped. Eight of 4,096 lists hold fewer than 1,024 keys below
    some 400 k entries; queries that come back short are searched again with twice the probes.

    >>> import numpy as np
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
        train_at = max(39 * lists, fewest) if train_at is None else train_at
        if train_at < fewest:
            raise SettingError(
                f"training at {train_at} keys; {lists} lists need {fewest}: raise train_at "
                "or take fewer lists"
            )
        self.lists, self.probes, self.code_size = lists, probes, code_size
        super().__init__(width, train_at)

    def _fitted(self, keys: Hidden, words: Ids) -> tuple[Inverted, str]:
        centroids = centroids_of(keys, self.lists)
        index = self._faiss.IndexIVFPQ(centroids, self.width, self.lists, self.code_size, 8)
        index.pq.cp.min_points_per_centroid = 1
        index.train(keys)
        inverted = Inverted(index, self.probes)
        inverted.add(keys, words)
        return inverted, f"inverted file of {self.lists:,} lists, {self.code_size} bytes a code"

    def _restored(self, state: Arrays, deltas: Sequence[Arrays]) -> Inverted:
        # It is trusted: a damaged one may end the process inside faiss.
        return Inverted(self._faiss.deserialize_index(state["inverted"]), self.probes)
