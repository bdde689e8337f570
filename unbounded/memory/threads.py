"""How many threads a search uses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import faiss
from threadpoolctl import threadpool_limits

# Rows that are worth a part of their own.
_FEWEST = 16

# Parts for each thread.
_PARTS = 4

_pool: ThreadPoolExecutor | None = None
_threads = 1


def set_search_threads(threads: int) -> None:
    """Let one search use so many threads."""
    global _pool, _threads
    # Rows are shared out among threads of ours; were each of them cut again inside, they would
    # only wait for one another. (The number for faiss is also torch's: they share a runtime.)
    faiss.omp_set_num_threads(1)
    threadpool_limits(1, user_api="blas")
    if threads != _threads:
        if _pool is not None:
            _pool.shutdown()
        _pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        _threads = threads


def in_parallel(work: Callable[[int, int], None], rows: int, fewest: int = _FEWEST) -> None:
    """Call `work(start, stop)` for parts that make up all rows; it must not hold the GIL.

    There are more parts than threads, and each thread takes the next one, because some take
    longer, and what a smaller part works on stays near. A thread that is itself such a part may
    call this too: it waits for nobody who has not begun.
    """
    if rows < 2 * _FEWEST:
        work(0, rows)
        return
    # As many for each thread.
    parts = _threads * min(_PARTS, max(rows // fewest // _threads, 1))
    cuts = [rows * part // parts for part in range(parts + 1)]
    turns = count()

    def take_turns() -> None:
        while (turn := next(turns)) < parts:
            work(cuts[turn], cuts[turn + 1])

    others = [_pool.submit(take_turns) for _ in range(_threads - 1)] if _pool else []
    try:
        take_turns()
    finally:
        for other in others:
            if not other.cancel():
                other.result()
