"""How many threads a search uses."""

import sys
from typing import Any

from threadpoolctl import threadpool_limits

from unbounded import _native
from unbounded.errors import needing


def set_search_threads(threads: int) -> None:
    """Let one search use so many threads."""
    _native.set_threads(threads)
    # Rows are shared out among threads of ours; were each of them cut again inside, they would
    # only wait for one another.
    threadpool_limits(1, user_api="blas")
    if "faiss" in sys.modules:
        load_faiss()


def load_faiss() -> Any:
    """The module, with one thread of its own: rows are shared out among ours.

    Its number of threads is also torch's: they share a runtime.
    """
    with needing("faiss, which the index 'ivfpq' needs,", "faiss"):
        import faiss
    faiss.omp_set_num_threads(1)
    return faiss
