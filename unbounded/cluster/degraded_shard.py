"""Answers for a shard that is away: it knows nothing, and what it is told waits in a queue."""

from collections.abc import Sequence, Sized
from typing import Any, final

import numpy as np

from unbounded.cluster.messages import Found, Piece
from unbounded.cluster.queue import Queue
from unbounded.errors import Unavailable


@final
class DegradedShard:
    """The methods of a shard that reading needs, and no others."""

    def __init__(self, shard: int, queue: Queue) -> None:
        self._shard, self._queue = shard, queue

    def answer(self, method: str, *args: Any) -> Any:
        """What a shard would be asked by that name; refuses what only the shard can do."""
        found = getattr(self, method, None)
        if found is None:
            raise Unavailable(
                f"shard {self._shard} is away, and {method!r} needs it; try again later"
            )
        return found(*args)

    def append(self, pieces: Sequence[Piece]) -> int:
        """Into the queue; nothing of it can be found until the shard has it."""
        self._queue.put(pieces)
        return 0

    def search(self, queries: Sized, k: int, epoch: int, known: int) -> Found:
        """Nothing."""
        shape = len(queries), 0
        none = np.empty(shape, np.float32), np.empty(shape, np.uint32), np.empty(shape, np.int32)
        return Found(*none, 0, True, 0, [])

    def held(self, document: str) -> int:
        """What waits for it."""
        return self._queue.held(self._shard, document)

    def words(self, document: str, start: int, stop: int) -> dict[int, str]:
        """None."""
        return {}

    def keep(self, name: str, data: bytes) -> None:
        """With the queue."""
        self._queue.keep(name, data)

    def kept(self, name: str) -> bytes | None:
        """What was kept with the queue."""
        return self._queue.kept(name)

    def stats(self) -> dict[str, Any]:
        """That it is away, and what waits for it."""
        waiting = self._queue.waiting(self._shard)
        return {
            "entries": 0,
            "documents": {},
            "words": 0,
            "bytes": 0,
            "bytes_in_memory": 0,
            "process": 0,
            "folder": str(self._queue.folder),
            "events": [f"away; {waiting:,} words wait for it"],
        }
