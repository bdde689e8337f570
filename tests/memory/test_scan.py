from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import centroid_levels, from_products, lengths, levels
from unbounded.memory.chunks import write_code
from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, POSITION, WORDS
from unbounded.memory.scan import (
    CHUNK,
    TILE,
    WIDE,
    fetch,
    plain_distances,
    plain_keep,
    plain_keep_chunk,
    plain_to_centroids,
    wide_distances,
    wide_keep,
    wide_keep_chunk,
    wide_to_centroids,
)

needs_wide = pytest.mark.skipif(not WIDE, reason="this processor has no such instructions")
VARIANTS = ["plain", pytest.param("wide", marks=needs_wide)]
DISTANCES: dict[str, Any] = {"plain": plain_distances, "wide": wide_distances}
TO_CENTROIDS: dict[str, Any] = {"plain": plain_to_centroids, "wide": wide_to_centroids}
KEEP_CHUNK: dict[str, Any] = {"plain": plain_keep_chunk, "wide": wide_keep_chunk}
KEEP: dict[str, Any] = {"plain": plain_keep, "wide": wide_keep}

BYTES: dict[str, Any] = {
    "random": lambda rng, size: rng.integers(0, 256, size),
    "least": lambda rng, size: np.zeros(size),
    "most": lambda rng, size: np.full(size, 255),
}
QUERIES: dict[str, Any] = {
    "random": lambda rng: rng.integers(-127, 128, AXES),
    "least": lambda rng: np.full(AXES, -127),
    "most": lambda rng: np.full(AXES, 127),
}


def made(rng: np.random.Generator, words: int, fill: str) -> tuple[np.ndarray, np.ndarray]:
    """Sixty-four codes, and the chunk that holds them."""
    codes = BYTES[fill](rng, (CHUNK, 4 * words)).astype(np.uint8).view(np.uint32)
    length = LENGTH if words == WORDS else CENTROID_WORDS - 1
    codes[:, length] = rng.gamma(1, 100, CHUNK).astype(np.float32).view(np.uint32)
    chunk = np.zeros(words * CHUNK, np.uint32)
    for slot, code in enumerate(codes):
        write_code(code, chunk, slot)
    return codes, chunk


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("asked", QUERIES)
@pytest.mark.parametrize("fill", BYTES)
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.01, 1e30, 3e38])
def test_distances_are_those_of_the_definition_to_the_bit(
    variant: str, asked: str, fill: str, scale: float
) -> None:
    rng = np.random.default_rng(0)
    queries = np.stack([QUERIES[asked](rng) for _ in range(TILE)]).astype(np.int8)
    offsets = rng.normal(0, 50, TILE).astype(np.float32)
    scales = (scale * np.arange(1, TILE + 1) / TILE).astype(np.float32)
    kinds: list[tuple[Any, int, int, Callable[[np.ndarray], np.ndarray]]] = [
        (DISTANCES[variant], WORDS, LENGTH, levels),
        (TO_CENTROIDS[variant], CENTROID_WORDS, CENTROID_WORDS - 1, centroid_levels),
    ]
    for ask, words, length, levels_of in kinds:
        made_chunks = [made(rng, words, fill) for _ in range(2)]
        chunks = np.stack([chunk for _, chunk in made_chunks])
        for number, (codes, _) in enumerate(made_chunks):
            out = np.empty((TILE, CHUNK), np.float32)
            ask(chunks, number, queries, offsets, scales, out)
            for query, offset, by, row in zip(queries, offsets, scales, out, strict=True):
                products = levels_of(codes) @ query.astype(np.int64)
                expected = from_products(offset, by, lengths(codes, length), products)
                np.testing.assert_array_equal(row.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(-3, CHUNK + 3),
    count=st.integers(0, 20),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_what_is_kept_of_a_chunk_is_what_is_nearer_and_has_come(
    variant: str, seed: int, n: int, count: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    squared = rng.integers(0, 20, (2, CHUNK)).astype(np.float32)
    limit = np.array([20 * share], np.float32).view(np.uint32)[0]
    codes, chunk = made(rng, WORDS, "random")
    bits, positions = np.zeros((2, 3, 20 + CHUNK), np.uint32)
    kept = KEEP_CHUNK[variant](squared, 1, chunk[None], 0, n, limit, bits, positions, 2, count)
    expected = np.flatnonzero(squared[1].view(np.uint32)[: max(n, 0)] < limit)
    here = slice(count, count + kept)
    assert bits[2, here].view(np.float32).tolist() == squared[1, expected].tolist()
    assert positions[2, here].tolist() == codes[expected, POSITION].tolist()
    assert not bits[:2].any()
    assert not bits[2, :count].any()


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 70),
    bounds=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    few=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_what_is_kept_is_what_lies_between_in_its_order(
    variant: str, seed: int, n: int, bounds: tuple[int, int], few: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, 80).astype(np.uint32)
    low, high = min(bounds), max(bounds)
    if few:
        # Many that are just at a bound.
        values = rng.choice(np.array([low, high, 0, 2**32 - 1], np.uint32), 80)
    companions = np.arange(80, dtype=np.uint32)
    kept, kept_companions = np.zeros(80, np.uint32), np.zeros(80, np.uint32)
    count = KEEP[variant](
        values, companions, n, np.uint32(low), np.uint32(high), kept, kept_companions
    )
    expected = np.flatnonzero((values[:n] >= low) & (values[:n] < high))
    assert kept[:count].tolist() == values[expected].tolist()
    assert kept_companions[:count].tolist() == expected.tolist()
    # Nothing is written past what is kept.
    assert not kept[count:].any()


def test_fetching_changes_nothing() -> None:
    chunk = np.arange(WORDS * CHUNK, dtype=np.uint32)
    fetch(chunk[None], 0)
    np.testing.assert_array_equal(chunk, np.arange(WORDS * CHUNK))
