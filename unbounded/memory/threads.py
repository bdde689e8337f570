"""How many threads a search uses."""

import faiss


def set_faiss_threads(threads: int) -> None:
    """Let faiss use so many threads for one search."""
    faiss.omp_set_num_threads(threads)
