"""Calls to shards that may die: what was not acknowledged is sent again, then the call is made."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, final

from unbounded.cluster.engine import Away, Engine, Pending
from unbounded.cluster.pieces import Piece
from unbounded.errors import EngineError

# Batches on their way to a shard before it is waited for.
_UNACKNOWLEDGED = 4


@final
class Calls:
    """One reader's calls to all shards.

    A shard that died is started again by the engine, from its journal; what it had not
    acknowledged it is told again, and ignores what it has.
    """

    def __init__(self, engine: Engine, patience: float) -> None:
        """A shard may be away for `patience` seconds before a call fails."""
        self.engine = engine
        self.count = engine.count
        self.resent = 0
        """How often a shard was away and was asked again."""
        self._patience = patience
        self.unacknowledged: list[deque[tuple[list[Piece], Pending]]] = [
            deque() for _ in range(engine.count)
        ]
        self.held = [0 for _ in range(engine.count)]
        """How many entries each shard has, as far as it has told."""
        self.held = [int(stats["entries"]) for stats in self.every("stats")]

    def every(self, method: str, *args: Any) -> list[Any]:
        """What all shards answer."""
        begun = [self.engine.begin(shard, method, *args) for shard in range(self.count)]
        return [self.answer(i, method, *args, begun=each) for i, each in enumerate(begun)]

    def answer(self, shard: int, method: str, *args: Any, begun: Pending | None = None) -> Any:
        """What a shard answers, once it has all that was handed to it before."""
        deadline = time.monotonic() + self._patience
        pending = begun or self.engine.begin(shard, method, *args)
        while True:
            try:
                answer = pending()
                self._acknowledge(shard)
                return answer
            except Away as error:
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"shard {shard} of {self.count} has been away for {self._patience:.0f} s; "
                        "what was acknowledged is on its disk: bring its node back and read on"
                    ) from error
                self.resent += 1
                self.engine.revive(shard)
                again = [pieces for pieces, _ in self.unacknowledged[shard]]
                self.unacknowledged[shard] = deque((p, self._append(shard, p)) for p in again)
                pending = self.engine.begin(shard, method, *args)

    def _acknowledge(self, shard: int) -> None:
        """Hear what became of all that was handed to a shard."""
        queue = self.unacknowledged[shard]
        while queue:
            self.held[shard] = int(queue[0][1]())
            queue.popleft()

    def _append(self, shard: int, pieces: list[Piece]) -> Pending:
        return self.engine.begin(shard, "append", pieces)

    def hand_on(self, pieces: Sequence[list[Piece]]) -> None:
        """Hand pieces to each shard, and do not wait unless too many are on their way."""
        for shard, mine in enumerate(pieces):
            self.unacknowledged[shard].append((mine, self._append(shard, mine)))
            self.held[shard] += sum(len(piece.words) for piece in mine)
        for shard in range(self.count):
            if len(self.unacknowledged[shard]) > _UNACKNOWLEDGED:
                self.answer(shard, "held", "")
