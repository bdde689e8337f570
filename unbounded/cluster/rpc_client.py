"""Calls to shards that may die: what was not acknowledged is sent again, then the call is made."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import final

from unbounded.cluster.engine import Call, Engine, Pending, T
from unbounded.cluster.messages import Piece
from unbounded.cluster.queue import DegradedShard, Queue
from unbounded.cluster.shard import Shard
from unbounded.errors import EngineError, StoreError, Unavailable

RETRY = 5.0
"""Seconds until an unavailable shard is tried again; twice as many each time, up to a limit."""

# Batches on their way to a shard before it is waited for.
_UNACKNOWLEDGED = 4

_LONGEST_RETRY = 60.0

# Pieces that a shard is told together when it is back.
_TOGETHER = 8


@final
class RpcClient:
    """One reader's calls to all shards.

    A shard that died is started again by the engine, from its journal; what it had not
    acknowledged it is told again, and ignores what it has. With a queue, reading goes on without
    one that stays unavailable, and it is told what it missed when it is back.
    """

    def __init__(
        self,
        engine: Engine,
        patience: float,
        queue: Queue | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """A shard may be unavailable for `patience` seconds; then calls fail, or it is left out."""
        self.engine = engine
        self.count = engine.count
        self.resent = 0
        """How often a shard was unavailable and was asked again."""
        self._patience = patience
        self._queue, self._say = queue, say
        self.unacknowledged: list[deque[tuple[list[Piece], Pending[int]]]] = [
            deque() for _ in range(engine.count)
        ]
        self.held = [0 for _ in range(engine.count)]
        """How many entries each shard has, as far as it has told."""
        self.unavailable: dict[int, DegradedShard] = {}
        """Shards that are left out for now, and who answers for them."""
        self._retry, self._wait = 0.0, RETRY
        if queue is not None:
            # What waits from an earlier time comes first.
            self.unavailable = {shard: DegradedShard(shard, queue) for shard in queue.shards}
            self.try_again(at_once=True)
            if self.unavailable:
                # Those for which nothing waits are just as well left out now.
                gone = engine.gone()
                left = list(self.unavailable) if gone is None else range(self.count)
                self.unavailable = {}
                self._leave_out(left, gone or "no answer", queue)
        self.held = [int(stats["entries"]) for stats in self.every(Call(Shard.stats))]

    @property
    def waiting(self) -> int:
        """How many words wait on disk."""
        queue = self._queue
        return 0 if queue is None else sum(queue.waiting(shard) for shard in queue.shards)

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Begin a call, and do not wait."""
        if shard in self.unavailable:
            answer = self.unavailable[shard].answer(call)
            return lambda: answer
        return self.engine.begin(shard, call)

    def every(self, call: Call[T]) -> list[T]:
        """What all shards answer."""
        begun = [self.begin(shard, call) for shard in range(self.count)]
        return [self.answer(shard, call, each) for shard, each in enumerate(begun)]

    def answer(self, shard: int, call: Call[T], begun: Pending[T] | None = None) -> T:
        """What a shard answers, once it has all that was handed to it before."""
        # Who waited for one shard does not wait for the next.
        deadline = time.monotonic() + (0 if self.unavailable else self._patience)
        pending = begun or self.begin(shard, call)
        while shard not in self.unavailable:
            try:
                answer = pending()
                self._acknowledge(shard)
                return answer
            except Unavailable as error:
                gone = None if self._queue is None else self.engine.gone()
                if time.monotonic() > deadline or gone is not None:
                    if self._queue is None:
                        raise EngineError(
                            f"shard {shard} of {self.count} has been unavailable for "
                            f"{self._patience:.0f} s ({_short(str(error))}); what was acknowledged "
                            "is on its disk: bring its node back and read on"
                        ) from error
                    left = [shard] if gone is None else range(self.count)
                    self._leave_out(left, gone or str(error), self._queue)
                    break
                self.resent += 1
                try:
                    self.engine.revive(shard)
                except Unavailable:
                    # The head too: the next try will say so.
                    time.sleep(0.5)
                    continue
                again = [pieces for pieces, _ in self.unacknowledged[shard]]
                self.unacknowledged[shard] = deque((p, self._append(shard, p)) for p in again)
                pending = self.engine.begin(shard, call)
            except StoreError as error:
                # Its disk is full, or broken.
                if self._queue is None:
                    raise
                self._leave_out([shard], str(error), self._queue)
        return self.unavailable[shard].answer(call)

    def _acknowledge(self, shard: int) -> None:
        """Hear what became of all that was handed to a shard."""
        queue = self.unacknowledged[shard]
        while queue:
            self.held[shard] = int(queue[0][1]())
            queue.popleft()

    def _append(self, shard: int, pieces: list[Piece]) -> Pending[int]:
        return self.begin(shard, Call(Shard.append, pieces))

    def hand_on(self, pieces: Sequence[list[Piece]]) -> None:
        """Hand pieces to each shard, and do not wait unless too many are on their way."""
        self.try_again()
        for shard, mine in enumerate(pieces):
            if shard in self.unavailable:
                self.unavailable[shard].append(mine)
                continue
            self.unacknowledged[shard].append((mine, self._append(shard, mine)))
            self.held[shard] += sum(len(piece.words) for piece in mine)
        for shard in range(self.count):
            if len(self.unacknowledged[shard]) > _UNACKNOWLEDGED:
                self.answer(shard, Call(Shard.held, ""))

    # Going on without.

    def _leave_out(self, shards: Iterable[int], why: str, queue: Queue) -> None:
        """Go on without some shards; what they have not acknowledged waits on disk."""
        lost = [shard for shard in shards if shard not in self.unavailable]
        for shard in lost:
            for pieces, _ in self.unacknowledged[shard]:
                queue.put(pieces)
            self.unacknowledged[shard].clear()
            self.held[shard] = 0
            self.unavailable[shard] = DegradedShard(shard, queue)
        self._wait = RETRY
        self._retry = time.monotonic() + self._wait
        self._say(
            f"{_named(lost, self.count)} unavailable ({_short(why)}): reading goes on "
            f"without, and what is missed there waits in {queue.folder}"
        )

    def try_again(self, *, at_once: bool = False) -> None:
        """See whether shards that were left out are back, and tell them what they missed."""
        if not self.unavailable or self._queue is None:
            return
        if time.monotonic() < self._retry and not at_once:
            return
        back = {}
        for shard in sorted(self.unavailable):
            try:
                if self.engine.answers(shard):
                    back[shard] = self._drain(shard, self._queue)
            except (Unavailable, StoreError):
                continue
        self._wait = min(2 * self._wait, _LONGEST_RETRY)
        self._retry = time.monotonic() + self._wait
        for shard in back:
            del self.unavailable[shard]
            self.held[shard] = int(self.answer(shard, Call(Shard.stats))["entries"])
        if back:
            told = f"{sum(back.values()):,} words that waited"
            self._say(f"{_named(list(back), self.count)} back, and told {told}")

    def _drain(self, shard: int, queue: Queue) -> int:
        """Tell a shard all that waits for it; how many words. It ignores what it has."""
        held: dict[str, int] = {}
        lost: dict[str, int] = {}
        batch: list[Piece] = []
        for piece in queue.pieces(shard):
            name = piece.document
            if name not in held:
                held[name] = int(self.engine.begin(shard, Call(Shard.held, name))())
            if piece.ordinal > held[name]:
                # What came before has been forgotten since.
                lost[name] = lost.get(name, 0) + len(piece.words)
                continue
            held[name] = max(held[name], piece.ordinal + len(piece.words))
            batch.append(piece)
            if len(batch) == _TOGETHER:
                self.engine.begin(shard, Call(Shard.append, batch))()
                batch = []
        self.engine.begin(shard, Call(Shard.append, batch))()
        if shard == 0:
            for name, data in queue.taken().items():
                self.engine.begin(shard, Call(Shard.keep, name, data))()
            queue.let_go()
        told = queue.waiting(shard) - sum(lost.values())
        queue.drained(shard)
        for name, words in lost.items():
            self._say(
                f"{words:,} words of {name!r} that waited follow some that shard {shard} has no "
                "longer, and were dropped; read the document again"
            )
        return told


def drain(
    engine: Engine, queue: Queue, patience: float, say: Callable[[str], None] = lambda line: None
) -> None:
    """Tell all shards what waits for them; refuses to leave some of it."""
    calls = RpcClient(engine, patience, queue, say)
    if calls.waiting:
        raise EngineError(
            f"{_named(sorted(calls.unavailable), calls.count)} unavailable, and "
            f"{calls.waiting:,} words wait in {queue.folder}; bring the engine back"
        )


def _short(text: str) -> str:
    return " ".join(text.split())[:160]


def _named(shards: Sequence[int], count: int) -> str:
    """Some shards, with their verb.

    >>> _named([1], 3), _named([0, 2], 3), _named([0, 1, 2], 3)
    ('shard 1 of 3 is', 'shards 0, 2 of 3 are', 'all 3 shards are')
    """
    if len(shards) == count > 1:
        return f"all {count} shards are"
    names = ", ".join(map(str, shards))
    return f"shard {names} of {count} is" if len(shards) == 1 else f"shards {names} of {count} are"
