"""Keys on shards: handed on in batches, told again to who lost them, saved under a name."""

import secrets
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from unbounded.cluster.engine import Call, Engine, Pending, T
from unbounded.cluster.shard import Found, Shard
from unbounded.errors import EngineError, StoreError, Unavailable
from unbounded.types import Hidden

SAVED = 64
"""Batches after which the shards save what they have, if nobody wanted it saved before."""

RETRY, LONGEST_RETRY = 5.0, 60.0
"""Seconds until a shard that was left out is tried again; twice as many each time."""


class ShardFigures(NamedTuple):
    """One shard, as it was when it last answered."""

    up: bool
    entries: int
    bytes_in_memory: int


class Saved(NamedTuple):
    """A state that all shards saved: its name, its entries, a checksum of each shard's keys."""

    name: str
    entries: int
    checksums: tuple[int, ...]


@final
class ShardedKeys:
    """The keys of one datastore: entry e lies on shard e mod S, the e div S-th there.

    What came since the shards last saved stays here too. Each call says how many entries a shard
    should have; one that has others, because it was started again or missed a call, is let load
    what it saved and told the rest.
    """

    def __init__(self, engine: Engine) -> None:
        engine.drop_discarded()
        self.engine, self._way = engine, engine.way
        self.id = secrets.token_hex(8)
        weakref.finalize(self, engine.discarded.append, self.id).atexit = False
        self.entries = 0
        """How many were handed on."""
        self.saved = Saved("", 0, (0,) * engine.count)
        self._unsaved: list[Hidden] = []
        self._save_at = SAVED
        self._adding: list[Pending[int] | None] = [None] * engine.count
        self._bytes = [0] * engine.count
        # When shards that are left out are tried again, and how long that will be then.
        self._unavailable: dict[int, tuple[float, float]] = {}
        self._telling = threading.RLock()

    @property
    def bytes(self) -> int:
        """What shards take, as they last said, and what waits here."""
        return sum(self._bytes) + sum(keys.nbytes for keys in self._unsaved)

    @property
    def figures(self) -> list[ShardFigures]:
        """Each shard, as it was when it last answered."""
        return [
            ShardFigures(shard not in self._unavailable, self.held(shard), self._bytes[shard])
            for shard in range(self.engine.count)
        ]

    def held(self, shard: int, entries: int | None = None) -> int:
        """How many of all entries lie on a shard, or of the first so many."""
        entries = self.entries if entries is None else entries
        return max(0, -(-(entries - shard) // self.engine.count))

    def search(self, shard: int, entries: int, queries: Any, k: int) -> Call[Found]:
        """The call that asks a shard for neighbors among the first so many entries of all."""
        return Call(Shard.search, self.id, self.held(shard), queries, k, self.held(shard, entries))

    def begin(self, shard: int, call: Call[T]) -> Pending[T] | None:
        """Begin a call, and do not wait; None if the shard is left out."""
        return None if shard in self._unavailable else self.engine.begin(shard, call)

    def add(self, keys: Hidden) -> None:
        """Hand a batch to the shards, and do not wait for them; the keys are kept."""
        self._try_again()
        for shard in range(self.engine.count):
            # One batch is on its way, and not more.
            if (before := self._adding[shard]) is not None:
                size = partial(Call, Shard.size, self.id)
                self._bytes[shard] = self.answer(shard, size, before) or 0
            self._adding[shard] = self.begin(shard, self._adds(shard, self.entries, keys))
        self._unsaved.append(keys)
        self.entries += len(keys)
        if sum(each.nbytes for each in self._unsaved) > self._way.limit:
            raise EngineError(
                f"{self._way.limit:,} bytes wait for shards that are unavailable or have no room; "
                "the journal has everything: bring them back, and open the memory again"
            )

    def take_back(self, entries: int) -> None:
        """Have so many entries, as before others were handed on; shards notice, and load again."""
        while self.entries > entries:
            self.entries -= len(self._unsaved.pop())

    def save_many(self) -> None:
        """Save if much is unsaved; what goes wrong is only said, for it can be tried again."""
        if len(self._unsaved) >= self._save_at:
            self._save_at = len(self._unsaved) + SAVED
            try:
                self.save()
            except (StoreError, EngineError) as error:
                self._way.say(str(error))

    def _adds(self, shard: int, first: int, keys: Hidden) -> Call[int]:
        count = self.engine.count
        mine = np.ascontiguousarray(keys[(shard - first) % count :: count])
        return Call(Shard.add, self.id, self.held(shard, first), mine)

    def save(self) -> None:
        """Let all shards save what they have, durably; what came before need not be told again."""
        if self.saved.entries == self.entries:
            return
        self._check_all_there()
        name = f"{self.id}-{self.entries}"
        sums = self._every(lambda shard: Call(Shard.save, self.id, self.held(shard), name))
        self._check_all_there()
        self.saved = Saved(name, self.entries, tuple(int(each or 0) for each in sums))
        self._unsaved, self._save_at = [], SAVED

    def _check_all_there(self) -> None:
        if self._unavailable:
            raise EngineError(
                f"shards {sorted(self._unavailable)} are unavailable, and there is no "
                "checkpoint until they are back; the journal has everything"
            )

    def load(self, saved: Saved) -> None:
        """Have what was saved; only if there is nothing yet."""
        self.saved, self.entries = saved, saved.entries
        self._bytes = [each or 0 for each in self._every(self._loads)]

    def _loads(self, shard: int) -> Call[int]:
        return Call(Shard.load, self.id, self.saved.name, self.saved.checksums[shard])

    def _every(self, call: Callable[[int], Call[T]]) -> list[T | None]:
        """What all shards answer, each to a call of its own; None of those that are left out."""
        shards = range(self.engine.count)
        begun = [self.begin(shard, call(shard)) for shard in shards]
        return [self.answer(shard, partial(call, shard), begun[shard]) for shard in shards]

    # Shards that are unavailable.

    def answer(
        self, shard: int, call: Callable[[], Call[T]], begun: Pending[T] | None = None
    ) -> T | None:
        """What a shard answers once it has all that it should; None if it is left out.

        What was `begun` is called anew if it fails, when the shard may have got more.
        """
        deadline = time.monotonic() + self._way.patience
        begun = begun or self.begin(shard, call())
        while shard not in self._unavailable:
            try:
                if begun is None:
                    self._tell(shard)
                    begun = self.engine.begin(shard, call())
                return begun()
            except Unavailable as error:
                begun = None
                if time.monotonic() > deadline:
                    self._give_up(shard, error)
                time.sleep(0.2)
        return None

    def _tell(self, shard: int) -> None:
        """Let a shard load what was last saved, and tell it what came since."""
        with self._telling:
            self._bytes[shard] = self.engine.begin(shard, self._loads(shard))()
            self._adding[shard], first = None, self.saved.entries
            for keys in self._unsaved:
                self._bytes[shard] = self.engine.begin(shard, self._adds(shard, first, keys))()
                first += len(keys)

    def _give_up(self, shard: int, error: Unavailable) -> None:
        why = " ".join(str(error).split())[:160]
        if not self._way.goes_on:
            raise Unavailable(
                f"{self._named(shard)} has been unavailable for {self._way.patience:.0f} s "
                f"({why}); the journal has all that was acknowledged: bring its node back and go on"
            ) from error
        self._unavailable[shard] = time.monotonic() + RETRY, RETRY
        self._way.say(
            f"{self._named(shard)} is unavailable ({why}): reading goes on without, and what is "
            "missed there is told later"
        )

    def _try_again(self) -> None:
        """See whether shards that were left out are back, and tell them what they missed."""
        for shard, (when, wait) in list(self._unavailable.items()):
            if time.monotonic() < when:
                continue
            try:
                if self.engine.answers(shard):
                    self._tell(shard)
                    del self._unavailable[shard]
                    self._way.say(f"{self._named(shard)} is back, and was told what it had missed")
                    continue
            except Unavailable:
                pass
            wait = min(2 * wait, LONGEST_RETRY)
            self._unavailable[shard] = time.monotonic() + wait, wait

    def _named(self, shard: int) -> str:
        return f"shard {shard} of {self.engine.count}"
