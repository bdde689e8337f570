"""A datastore on shards: the recent past exact in the reader, the rest asked of them all."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from unbounded.cluster.engine import PATIENCE, Call, Engine, Pending, T
from unbounded.cluster.messages import Found, Merged, Place
from unbounded.cluster.queue import Queue
from unbounded.cluster.recent import Recent
from unbounded.cluster.rpc_client import RpcClient
from unbounded.cluster.shard import Shard
from unbounded.corpus import Vocabulary
from unbounded.datastore import Neighbors, Votes
from unbounded.datastore.datastore import Remote, checked_pairs, stacked
from unbounded.errors import EngineError, MemoryFault, SettingError
from unbounded.states import Arrays
from unbounded.types import Hidden, Ids, Table

BATCH = 1024
"""Pairs that are handed to the shards together, at fixed counts however the stream is cut. The
fewer, the more calls; the more, the longer the exact search of what is still here."""

# Of k neighbors a shard has k/S on the average; so many deviations more are asked of it.
_DEVIATIONS = 4

_Asked = tuple[Call[Found], Pending[Found]]
"""A call to a shard, should it have to be made again, and its answer."""


@final
class Sharded(Remote):
    """Pairs on several shards, and those that are on their way to them.

    A query is asked of all shards in one call each; what they find is merged by distance with the
    recent past, and a shard that may have more among the nearest is asked again. Positions are
    those of one place as long as one reader alone has read one document; otherwise they only name
    entries.
    """

    def __init__(
        self,
        engine: Engine,
        vocabulary: Vocabulary,
        width: int,
        *,
        batch: int = BATCH,
        document: str = "stream",
        patience: float = PATIENCE,
        queue: Queue | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """With a queue, reading goes on without shards that are unavailable, and `say` is told."""
        if batch < 1:
            raise SettingError(f"batches of {batch} pairs; give at least 1")
        self._calls = RpcClient(engine, patience, queue, say)
        self._vocabulary, self._batch = vocabulary, batch
        self._width, self._recent = width, Recent(width, document)
        # None of ours: shards tell theirs in `stats`.
        self.events = []
        self._lines: Ids | None = None
        self._mine = 0
        self.asked_again = 0
        """Queries that one shard was asked again, because it had more among the nearest."""
        # What was asked before it was read: the keys, k, and the answers to come.
        self._expected: tuple[Hidden, int, list[_Asked]] | None = None
        shards = range(engine.count)
        self._epochs = [0 for _ in shards]
        self._tables = [np.empty(0, np.int64) for _ in shards]

    def __len__(self) -> int:
        return sum(self._calls.held) + len(self._recent)

    @property
    def added(self) -> int:
        """How many pairs there are."""
        return len(self)

    @property
    def bytes(self) -> int:
        """What the shards take, and what is here."""
        held = sum(int(stats["bytes_in_memory"]) for stats in self.stats())
        return held + self._recent.index.bytes

    @property
    def resent(self) -> int:
        """How often a shard was unavailable and was asked again."""
        return self._calls.resent

    @property
    def room(self) -> int:
        """Pairs that may come until some are handed to the shards."""
        return self._batch - self._mine % self._batch

    def begin(self, document: str, position: int = 0) -> None:
        """What comes next stands in this document, from this position on."""
        self._recent.begin(document, position)

    def on_lines(self, lines: Ids) -> None:
        """The lines in which the next pairs stand."""
        self._lines = lines

    # Reading and asking.

    def add(self, keys: Hidden, words: Ids) -> None:
        """Append pairs; durable after `flush`, found at once."""
        keys, words = checked_pairs(keys, words, self._width)
        lines = self._next_lines(len(words))
        start = 0
        while start < len(keys):
            rows = slice(start, start + self.room)
            self._add(keys[rows], words[rows], lines[rows])
            start += len(keys[rows])

    def _next_lines(self, count: int) -> Ids:
        lines, self._lines = self._lines, None
        if lines is None:
            return np.zeros(count, np.int64)
        if len(lines) != count:
            raise MemoryFault(f"{len(lines)} lines for {count} words; give one line to each word")
        return lines

    def _add(self, keys: Hidden, words: Ids, lines: Ids) -> None:
        self._recent.add(keys, words, lines)
        self._mine += len(words)
        if self._mine % self._batch == 0:
            self._send()

    def search(self, queries: Hidden, k: int) -> Neighbors:
        """The min(k, entries) nearest entries of each query; changes nothing."""
        # Here first: it refuses what is no query.
        recent = self._recent.index.search(queries, k)
        return self._merge(queries, k, self._ask(queries, k), recent, self._recent.words)

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
        lines = self._next_lines(len(words))
        start = 0
        while start < len(keys):
            rows = slice(start, min(start + self.room, len(keys)))
            asked = self._asked_before(keys[rows], k) or self._ask(keys[rows], k)
            recent = self._recent.index.search_block(keys[rows], words[rows], k)
            table = np.concatenate([self._recent.words, words[rows]])
            found = self._merge(keys[rows], k, asked, recent, table)
            self._add(keys[rows], words[rows], lines[rows])
            yield rows, found
            start = rows.stop

    def prefetch(self, keys: Hidden, k: int) -> None:
        """Ask the shards now for as many as will be asked together."""
        some = keys[: self.room]
        self._expected = some, k, self._ask(some, k)

    def _asked_before(self, keys: Hidden, k: int) -> list[_Asked] | None:
        """The answers to come, if these are the keys that were expected."""
        expected, self._expected = self._expected, None
        if expected is None or expected[1] != k or not np.array_equal(expected[0], keys):
            return None
        return expected[2]

    def _share_of(self, k: int) -> int:
        """How many neighbors a shard is asked for at first."""
        part = 1 / self._calls.count
        more = _DEVIATIONS * math.sqrt(k * part * (1 - part))
        return min(k, math.ceil(k * part + more))

    def _ask(self, queries: Hidden, k: int) -> list[_Asked]:
        shared, share = self._calls.engine.share(queries), self._share_of(k)
        asked = []
        for shard in range(self._calls.count):
            known = self._epochs[shard], len(self._tables[shard])
            call = Call(Shard.search, shared, share, *known)
            asked.append((call, self._calls.begin(shard, call)))
        return asked

    def _found(self, shard: int, call: Call[Found], begun: Pending[Found] | None = None) -> Found:
        """What a shard found; whatever new words it tells are looked up."""
        found = self._calls.answer(shard, call, begun)
        if found.epoch != self._epochs[shard]:
            self._epochs[shard], self._tables[shard] = found.epoch, np.empty(0, np.int64)
        if found.fresh:
            new = self._vocabulary.encode(found.fresh)
            self._tables[shard] = np.concatenate([self._tables[shard], new])
        self._calls.held[shard] = found.held
        return found

    def _merge(
        self,
        queries: Hidden,
        k: int,
        asked: list[_Asked],
        recent: Neighbors,
        words: np.ndarray,
    ) -> Neighbors:
        """What shards and the recent past have, together."""
        answers = [self._found(shard, *each) for shard, each in enumerate(asked)]
        count, first_own = self._calls.count, self._after_all()
        squared, own = recent.squared, np.maximum(recent.positions, 0)
        width = min(k, sum(self._calls.held) + squared.shape[1])

        def merged() -> Neighbors:
            out = Merged(len(squared), width)
            out.merge(squared, own, own, words, 1, first_own)
            for shard, each in enumerate(answers):
                found = each.squared, each.entries, each.words
                out.merge(*found, self._tables[shard], count, shard)
            return out.found

        found, again = merged(), False
        for shard in range(count):
            rows = np.flatnonzero(answers[shard].may_have_nearer(found.squared, k))
            if len(rows):
                self.asked_again += len(rows)
                known = self._epochs[shard], len(self._tables[shard])
                all_of = self._found(shard, Call(Shard.search, queries[rows], k, *known))
                answers[shard], again = answers[shard].with_rows(rows, all_of), True
        found = merged() if again else found
        return Neighbors(found.squared, found.words.astype(np.int64), found.positions)

    def _after_all(self) -> int:
        """The position behind those of all entries that shards have."""
        count = self._calls.count
        ends = [
            (held - 1) * count + shard + 1 for shard, held in enumerate(self._calls.held) if held
        ]
        return max(ends, default=0)

    # Handing on.

    def _send(self) -> None:
        """Hand the recent past to the shards, and do not wait for them."""
        self._expected = None
        self._calls.hand_on(self._recent.taken(self._calls.count, self._vocabulary))

    def flush(self) -> None:
        """Return once every pair is on disk."""
        if len(self._recent):
            self._send()
        self._calls.every(Call(Shard.held, ""))
        self._calls.try_again()

    def answer(self, shard: int, call: Call[T]) -> T:
        """What a shard answers, once it has all that was handed to it before."""
        return self._calls.answer(shard, call)

    # Provenance and forgetting.

    def held_of(self, document: str) -> tuple[int, int]:
        """The positions of a document up to which all is there, and behind which nothing is.

        They differ where a writer was stopped while some shards had more than others.
        """
        count = self._calls.count
        held = self._calls.every(Call(Shard.held, document))
        ends = [(each - 1) * count + shard + 1 for shard, each in enumerate(held) if each]
        return min(each * count + i for i, each in enumerate(held)), max(ends, default=0)

    def where(self, positions: Sequence[int]) -> list[Place]:
        """Where the entries that were just found stand."""
        count, first_own = self._calls.count, self._after_all()
        out: dict[int, Place] = {}
        for position in positions:
            if position >= first_own:
                place = self._recent.place_of(position - first_own)
                out[position] = Place(*place, time.time())
        for shard in range(count):
            mine = [p for p in positions if p < first_own and p % count == shard]
            if mine:
                found = self.answer(shard, Call(Shard.where, [p // count for p in mine]))
                out.update(zip(mine, found, strict=True))
        return [out[position] for position in positions]

    def words_of(self, document: str, start: int, stop: int) -> list[str]:
        """The words of a document from one position to before another, as far as shards have it."""
        found: dict[int, str] = {}
        for part in self._calls.every(Call(Shard.words, document, max(start, 0), stop)):
            found |= part
        return [found[position] for position in sorted(found)]

    def forget(self, documents: Sequence[str], *, parts: bool = True) -> int:
        """Be as if documents had never been read, on every shard; how many entries are gone."""
        self.flush()
        self.check_available()
        gone = sum(map(int, self._calls.every(Call(Shard.forget, documents, parts))))
        self._calls.held = [int(stats["entries"]) for stats in self.stats()]
        return gone

    def check_available(self) -> None:
        """Refuse what needs all shards while some are unavailable."""
        if lost := sorted(self._calls.unavailable):
            raise EngineError(f"shards {lost} are unavailable, and this needs all; try again later")

    @property
    def waiting(self) -> int:
        """How many words wait on disk for shards that are unavailable."""
        return self._calls.waiting

    def stats(self) -> list[dict[str, Any]]:
        """What each shard says of itself."""
        return self._calls.every(Call(Shard.stats))

    # The state is on the shards.

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """How many pairs there are: they themselves are on the shards, durably."""
        self.flush()
        return {"entries": np.array([len(self)])}

    def load(self, parts: Sequence[Arrays]) -> None:
        """Go on, if the shards have at least as many pairs."""
        before = int(parts[-1]["entries"][0])
        if len(self) < before:
            raise MemoryFault(
                f"the shards hold {len(self):,} pairs, {before:,} were there "
                "before; give the engine that holds them"
            )
