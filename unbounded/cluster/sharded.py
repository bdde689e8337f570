"""A datastore whose keys lie on shards: the last few here and exact, the others asked of all."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, final

import numpy as np

from unbounded import _native
from unbounded._native import words_at
from unbounded.cluster.engine import Call, Engine, Pending
from unbounded.cluster.shard import Found
from unbounded.cluster.sharded_keys import Saved, ShardedKeys, ShardFigures
from unbounded.datastore import Flat, Neighbors, Votes
from unbounded.datastore.datastore import (
    Remote,
    checked_k,
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

# Codes of one shard may make all distances shorter than those of another: by that alone it is not
# asked again. With 0.9 seven words in a thousand were, with 0.7 none, and all gained a millionth of
# a nat (120,000 words of blogs, two shards).
_CODED = np.float32(0.7)

_Found = dict[int, Found]
"""What each shard found."""

_Merge = Callable[[np.ndarray, _Found], tuple[tuple[np.ndarray, ...], np.ndarray]]
"""Merges some rows with what was found for them; how far the last of each is that counts."""


class _Asked(NamedTuple):
    """Keys that shards were asked for, how many neighbors, of how many entries; and the answers."""

    keys: Hidden
    k: int
    entries: int
    calls: Sequence[Callable[[], Call[Found]]]
    begun: Sequence[Pending[Found] | None]


@final
class Sharded(Remote):
    """Keys on shards, but for the last few; words lie here.

    A query is asked of all shards in one call each; what they find is merged by distance with the
    recent past, and a shard that may have more among the nearest is asked again. Its state is by
    reference: shards save theirs under a name.
    """

    def __init__(self, engine: Engine, width: int) -> None:
        self._keys, self._width = ShardedKeys(engine), width
        self._shards = range(engine.count)
        # None of ours: shards tell theirs in `stats`.
        self.events = []
        self._words = GrowableArray(np.empty(0, np.int32), spare=8)
        self._recent = Flat(width)
        # Entries before the recent ones: on the shards, where those of `_expected` may be already.
        self._handed = 0
        self.asked_again = 0
        """Queries that one shard was asked again, because it had more among the nearest."""
        # What was asked before it was read.
        self._expected: list[_Asked] = []

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

    # Reading.

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; refused pairs leave everything as it was."""
        keys, words = checked_pairs(keys, words, self._width)
        self._forget_expected()
        start = 0
        while start < len(keys):
            rows = slice(start, start + self._room)
            self._add(keys[rows], words[rows])
            self._hand_on()
            start = rows.stop

    def _add(self, keys: Hidden, words: Ids) -> None:
        self._words.append(words)
        self._recent.add(keys, words)

    def _hand_on(self) -> None:
        """Give the recent keys to the shards, if they are a batch and were not given before."""
        if self._room:
            return
        if self._keys.entries == self._handed:
            self._keys.add(self._recent.keys.copy())
        self._handed += BATCH
        self._recent = Flat(self._width)
        if self._keys.entries == self._handed:
            self._keys.save_many()

    def read(self, keys: Hidden, words: Ids, k: int) -> Neighbors:
        """Search for each pair and then add it, as if one at a time."""
        keys, words = checked_pairs(keys, words, self._width)
        found = []
        for rows, asked in self._pieces(keys, k):
            recent = self._recent.search_block(keys[rows], words[rows], k)
            nearest = self._nearest(asked, recent)
            self._add(keys[rows], words[rows])
            there = words_at(self.words, nearest.positions)
            found.append(replace(nearest, words=there))
            self._hand_on()
        return stacked(found)

    def score(self, keys: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes for each word before it came; then add the pairs."""
        keys, words = checked_pairs(keys, words, self._width)
        shares = np.empty((len(words), votes.kernels))
        for rows, asked in self._pieces(keys, k):
            seen = len(self._recent) + np.arange(len(asked.keys))
            # Stored before they are searched for: no query is shown what came later.
            self._add(keys[rows], words[rows])
            shares[rows] = self._voted(asked, words[rows], seen, votes)
            self._hand_on()
        return shares

    def _pieces(self, keys: Hidden, k: int) -> Iterator[tuple[slice, _Asked]]:
        """Blocks that shards are asked for together, which end where some are handed to them."""
        start = 0
        while start < len(keys):
            asked = self._asked_before(keys[start:], k)
            asked = asked or self._ask(keys[start : start + self._room], k, self._handed)
            rows = slice(start, start + len(asked.keys))
            yield rows, asked
            start = rows.stop

    def prefetch(self, keys: Hidden, k: int) -> None:
        """Ask the shards now. Where a batch ends among the keys they are given it before the rest
        is asked: what comes is known, though not which words."""
        self._forget_expected()
        keys, recent = checked_keys(keys, self._width), self._recent.keys
        while len(keys):
            some = keys[: BATCH - len(recent)]
            self._expected.append(self._ask(some, k, self._keys.entries))
            keys = keys[len(some) :]
            if len(keys):
                self._keys.add(np.concatenate([recent, some]))
                recent = recent[:0]

    def _asked_before(self, keys: Hidden, k: int) -> _Asked | None:
        """The answers to come, if the next of these keys are those that were expected."""
        if not self._expected:
            return None
        first = self._expected[0]
        if first.k == k and np.array_equal(first.keys, keys[: len(first.keys)]):
            return self._expected.pop(0)
        self._forget_expected()
        return None

    def _forget_expected(self) -> None:
        self._expected = []
        self._keys.take_back(self._handed)

    # Asking.

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        # Here first: it refuses what is no query.
        recent = self._recent.search(queries, k)
        asked = self._ask(checked_keys(queries, self._width), k, self._handed)
        found = self._nearest(asked, recent)
        return replace(found, words=words_at(self.words, found.positions))

    def vote(self, queries: Hidden, words: Ids, k: int, votes: Votes) -> Table:
        """Each kernel's share of the votes of all pairs for one word a query; changes nothing."""
        queries = checked_keys(queries, self._width, "queries")
        words = np.ascontiguousarray(words, np.int64)
        every = np.full(len(queries), len(self._recent))
        return self._voted(self._ask(queries, checked_k(k), self._handed), words, every, votes)

    def _ask(self, queries: Hidden, k: int, entries: int) -> _Asked:
        """Ask all shards for neighbors among so many entries."""
        if not entries or not len(queries):
            return _Asked(queries, k, entries, [], [])
        part = 1 / len(self._shards)
        share = math.ceil(k * part + _DEVIATIONS * math.sqrt(k * part * (1 - part)))
        shared = self._keys.engine.share(queries)
        calls = [
            partial(self._keys.search, shard, entries, shared, min(k, share))
            for shard in self._shards
        ]
        begun = [self._keys.begin(shard, call()) for shard, call in enumerate(calls)]
        return _Asked(queries, k, entries, calls, begun)

    def _voted(self, asked: _Asked, words: Ids, seen: Ids, votes: Votes) -> Table:
        """Votes of what shards found, and of so many of the recent keys."""

        def merge(rows: np.ndarray, found: _Found) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
            here = asked.keys[rows], self._recent.keys, np.zeros_like(seen[rows]), seen[rows]
            there = {shard: each[:2] for shard, each in found.items()}
            shares, far = _native.merged_score(
                *(*here, asked.k, there, len(self._shards), asked.entries),
                *(self.words, words[rows], votes.settings),
            )
            return (shares,), far

        (shares,) = self._merged(asked, merge)
        return shares

    def _nearest(self, asked: _Asked, recent: Neighbors) -> Neighbors:
        """What shards and the recent past have, together; which words, the positions tell."""

        def merge(rows: np.ndarray, found: _Found) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
            held = sum(self._keys.held(shard, asked.entries) for shard in found)
            width = min(asked.k, held + recent.squared.shape[1])
            near, numbers = recent.squared[rows], recent.positions[rows] + asked.entries
            squared, places = [near, np.full((len(rows), width), np.inf, np.float32)], [numbers]
            places.append(np.zeros((len(rows), width), np.int64))
            for shard, each in found.items():
                squared.append(each.squared)
                places.append(each.entries.astype(np.int64) * len(self._shards) + shard)
            far, at = np.concatenate(squared, axis=1), np.concatenate(places, axis=1)
            at[np.isinf(far)] = -1
            best = Neighbors(far, at, at).in_order()
            far, at = best.squared[:, :width].copy(), best.positions[:, :width].copy()
            return (far, at), far[:, -1] if width == asked.k else np.full(len(rows), np.inf)

        squared, positions = self._merged(asked, merge)
        return Neighbors(squared, positions, positions)

    def _merged(self, asked: _Asked, merge: _Merge) -> tuple[np.ndarray, ...]:
        """The answers of shards, merged by rows; who may have more among the nearest than it told
        is asked again."""
        found = {
            shard: told
            for shard, (call, begun) in enumerate(zip(asked.calls, asked.begun, strict=True))
            if (told := self._keys.answer(shard, call, begun)) is not None
        }
        merged, far = merge(np.arange(len(asked.keys)), found)
        more = {}
        for shard, each in found.items():
            if each.squared.shape[1] < min(asked.k, self._keys.held(shard, asked.entries)):
                # All that it told are among the nearest, and it has more.
                limit = far if each.exact else _CODED * far
                more[shard] = np.flatnonzero(each.squared.max(axis=1) <= limit)
        rows = np.unique(np.concatenate([np.empty(0, np.int64), *more.values()]))
        if len(rows):
            calls = {
                shard: partial(self._keys.search, shard, asked.entries, asked.keys[some], asked.k)
                for shard, some in more.items()
                if len(some)
            }
            begun = {shard: self._keys.begin(shard, call()) for shard, call in calls.items()}
            found = {s: Found(f.squared[rows], f.entries[rows], f.exact) for s, f in found.items()}
            for shard, call in calls.items():
                self.asked_again += len(more[shard])
                if (told := self._keys.answer(shard, call, begun[shard])) is not None:
                    there = np.searchsorted(rows, more[shard])
                    found[shard] = _with_rows(found[shard], there, told)
            for whole, some in zip(merged, merge(rows, found)[0], strict=True):
                whole[rows] = some
        return merged

    # The state, by reference.

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """Words and the last few keys, and the name under which shards saved the others."""
        self._forget_expected()
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
        self._words, self._handed = GrowableArray(words, spare=8), entries
        self._recent = Flat(self._width)
        self._recent.add(recent, words[entries:].astype(np.int64))


def _with_rows(found: Found, rows: np.ndarray, more: Found) -> Found:
    """What was found, with these rows as they were found when more was asked for."""
    shape = len(found.squared), more.squared.shape[1]
    out = Found(np.full(shape, np.inf, np.float32), np.zeros(shape, np.uint32), found.exact)
    for wide, old, new in zip(out[:2], found[:2], more[:2], strict=True):
        wide[:, : old.shape[1]] = old
        wide[rows] = new
    return out
