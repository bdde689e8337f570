"""A datastore whose keys lie on shards: the last few here and exact, the others asked of all."""

import math
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from unbounded._native import words_at
from unbounded.cluster.engine import Call, Engine, Pending
from unbounded.cluster.merging import Merged, with_rows
from unbounded.cluster.shard import Found
from unbounded.cluster.sharded_keys import Saved, ShardedKeys, ShardFigures, Way
from unbounded.datastore import Flat, Neighbors, Votes
from unbounded.datastore.datastore import (
    Remote,
    checked_keys,
    checked_pairs,
    stacked,
    to_header,
    words_of,
)
from unbounded.errors import EngineError
from unbounded.growable_array import GrowableArray
from unbounded.states import Arrays, from_array, part, to_array, under
from unbounded.types import Hidden, Ids, Table

BATCH = 1024
"""Pairs that are handed to the shards together, at fixed counts however the stream is cut. The
fewer, the more calls; the more, the longer the exact search of what is still here."""

# Of k neighbors a shard has k/S on the average; so many deviations more are asked of it.
_DEVIATIONS = 4

# Codes of one shard may make all distances a little shorter than those of another: by that alone
# it is not asked again.
_CODED = np.float32(0.9)

_Asked = list[tuple[Call[Found], Pending[Found] | None]]
"""Calls to all shards, should they have to be made again, and their answers."""


@final
class Sharded(Remote):
    """Keys on shards, but for the last few; words lie here.

    A query is asked of all shards in one call each; what they find is merged by distance with the
    recent past, and a shard that may have more among the nearest is asked again. Its state is by
    reference: shards save theirs under a name.
    """

    def __init__(self, engine: Engine, width: int, way: Way, discarded: list[str]) -> None:
        """`discarded` is told the id of its keys once nobody has this any more."""
        self._keys, self._width = ShardedKeys(engine, way, discarded), width
        self._shards = range(engine.count)
        # None of ours: shards tell theirs in `stats`.
        self.events = []
        self._words = GrowableArray(np.empty(0, np.int32), spare=8)
        self._recent = Flat(width)
        self.asked_again = 0
        """Queries that one shard was asked again, because it had more among the nearest."""
        # What was asked before it was read: the keys, k, and the answers to come.
        self._expected: tuple[Hidden, int, _Asked] | None = None

    def __len__(self) -> int:
        return len(self._words)

    @property
    def added(self) -> int:
        """How many pairs were ever added."""
        return len(self._words)

    @property
    def words(self) -> np.ndarray:
        """The word of each entry, oldest first; valid until the next is added."""
        return self._words.view

    @property
    def bytes(self) -> int:
        """What shards take, as they last said, and what is here."""
        return self._keys.bytes + self._words.bytes + self._recent.bytes

    @property
    def figures(self) -> list[ShardFigures]:
        """Each shard, as it was when it last answered."""
        return self._keys.figures

    @property
    def _room(self) -> int:
        """Pairs that may come until some are handed to the shards."""
        return BATCH - len(self._recent)

    # Reading and asking.

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self._width)
        self._words.append(words)
        for rows in self._pieces(len(keys)):
            self._add(keys[rows], words[rows])

    def _add(self, keys: Hidden, words: Ids) -> None:
        self._recent.add(keys, words)
        if not self._room:
            self._keys.add(self._recent.keys.copy())
            self._recent, self._expected = Flat(self._width), None

    def _pieces(self, count: int) -> Iterator[slice]:
        """Blocks that end where some are handed to the shards."""
        start = 0
        while start < count:
            rows = slice(start, min(start + self._room, count))
            yield rows
            start = rows.stop

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        # Here first: it refuses what is no query.
        recent = self._recent.search(queries, k)
        return self._merge(queries, k, self._ask(checked_keys(queries, self._width), k), recent)

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        found = self.search(queries, k)
        return votes.count(found.squared, found.words, words)

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        return stacked([found for _, found in self._read(keys, words, k)])

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word before it came; then add the pairs."""
        shares = np.empty((len(words), votes.kernels))
        for rows, some in self._read(keys, words, k):
            shares[rows] = votes.count(some.squared, some.words, words[rows])
        return shares

    def _read(self, keys: Hidden, words: Ids, k: int) -> Iterator[tuple[slice, Neighbors]]:
        """Ask the shards, and meanwhile look here; pairs are handed on while others are read."""
        keys, words = checked_pairs(keys, words, self._width)
        for rows in self._pieces(len(keys)):
            asked = self._asked_before(keys[rows], k) or self._ask(keys[rows], k)
            recent = self._recent.search_block(keys[rows], words[rows], k)
            self._words.append(words[rows])
            found = self._merge(keys[rows], k, asked, recent)
            self._add(keys[rows], words[rows])
            yield rows, found

    def prefetch(self, keys: Hidden, k: int) -> None:
        """Ask the shards now for as many as will be asked together."""
        some = checked_keys(keys[: self._room], self._width)
        self._expected = some, k, self._ask(some, k)

    def _asked_before(self, keys: Hidden, k: int) -> _Asked | None:
        """The answers to come, if these are among the keys that were expected."""
        expected, self._expected = self._expected, None
        if expected is None or expected[1] != k or not np.array_equal(expected[0], keys):
            return None
        return expected[2]

    def _ask(self, queries: Hidden, k: int) -> _Asked:
        part = 1 / len(self._shards)
        share = math.ceil(k * part + _DEVIATIONS * math.sqrt(k * part * (1 - part)))
        if not self._keys.entries or not len(queries):
            return []
        shared = self._keys.engine.share(queries)
        calls = [self._keys.search(shard, shared, min(k, share)) for shard in self._shards]
        return [(call, self._keys.begin(shard, call)) for shard, call in enumerate(calls)]

    def _merge(self, queries: Hidden, k: int, asked: _Asked, recent: Neighbors) -> Neighbors:
        """What shards and the recent past have, together."""
        answers = {
            shard: told
            for shard, (call, begun) in enumerate(asked)
            if (told := self._keys.answer(shard, call, begun)) is not None
        }
        held = {shard: self._keys.held(shard) for shard in answers}
        width = min(k, sum(held.values()) + recent.squared.shape[1])

        def merged() -> Merged:
            out = Merged(len(recent.squared), width)
            out.merge(recent.squared, np.maximum(recent.positions, 0), 1, self._keys.entries)
            for shard, each in answers.items():
                out.merge(each.squared, each.entries, len(self._shards), shard)
            return out

        found, again = merged(), False
        for shard, each in list(answers.items()):
            if each.squared.shape[1] >= min(k, held[shard]):
                continue
            # All that it told are among the nearest, and it has more.
            far = found.squared[:, -1] if each.exact else _CODED * found.squared[:, -1]
            rows = np.flatnonzero(each.squared[:, -1] <= far)
            self.asked_again += len(rows)
            if len(rows):
                more = self._keys.answer(shard, self._keys.search(shard, queries[rows], k))
                if more is not None:
                    answers[shard], again = with_rows(each, rows, more), True
        found = merged() if again else found
        return Neighbors(found.squared, words_at(self.words, found.positions, 0), found.positions)

    # The state, by reference.

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Words and the last few keys, and the name under which shards saved the others."""
        self._keys.save()
        saved = self._keys.saved
        arrays = {
            "header": to_header("Sharded", self._width, self.added, []),
            "saved.header": to_array([saved.name]),
            "shards": np.array([saved.entries, *saved.checksums]),
            "recent": self._recent.keys.copy(),
        }
        if since is not None:
            return arrays
        return {"words": self.words.copy(), **under("index", arrays)}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the parts, if the shards still have what they saved."""
        whole = part("index", parts[0])
        last = parts[-1] if parts[1:] else whole
        if "shards" not in last or len(last["shards"]) != 1 + len(self._shards):
            raise EngineError(f"it was not written with {len(self._shards)} shards")
        entries, *checksums = last["shards"].tolist()
        recent = checked_keys(last["recent"], self._width)
        if len(recent) >= BATCH or entries % BATCH:
            raise EngineError("it was written with larger batches")
        words = words_of(parts, None, entries + len(recent))
        (name,) = from_array(last["saved.header"]) or [""]
        self._keys.load(Saved(name, entries, tuple(checksums)))
        self._words = GrowableArray(words, spare=8)
        self._recent = Flat(self._width)
        self._recent.add(recent, words[entries:].astype(np.int64))
