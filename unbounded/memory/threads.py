"""How many threads a search uses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import faiss
from threadpoolctl import threadpool_limits

# Rows that are worth a thread of their own.
_FEWEST = 16

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


def in_parallel(work: Callable[[int, int], None], rows: int) -> None:
    """Call `work(start, stop)` for parts that make up all rows; it must not hold the GIL."""
    parts = max(min(_threads, rows // _FEWEST), 1)
    cuts = [rows * part // parts for part in range(parts + 1)]
    if _pool is None or parts == 1:
        work(0, rows)
        return
    others = [_pool.submit(work, cuts[i], cuts[i + 1]) for i in range(1, parts)]
    work(cuts[0], cuts[1])
    for other in others:
        other.result()
