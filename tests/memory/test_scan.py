from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import centroid_levels, from_products, lengths, levels
from unbounded.memory.chunks import write_code
from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, WORDS
from unbounded.memory.scan import (
    CHUNK,
    WIDE,
    fetch,
    plain_distances,
    plain_keep,
    plain_to_centroids,
    wide_distances,
    wide_keep,
    wide_to_centroids,
)

needs_wide = pytest.mark.skipif(not WIDE, reason="this processor has no such instructions")
VARIANTS = ["plain", pytest.param("wide", marks=needs_wide)]
DISTANCES: dict[str, Any] = {"plain": plain_distances, "wide": wide_distances}
TO_CENTROIDS: dict[str, Any] = {"plain": plain_to_centroids, "wide": wide_to_centroids}
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
    query, out = QUERIES[asked](rng).astype(np.int8), np.empty(CHUNK, np.float32)
    offset, by = np.float32(rng.normal() * 50), np.float32(scale)
    kinds: list[tuple[Any, int, int, Callable[[np.ndarray], np.ndarray]]] = [
        (DISTANCES[variant], WORDS, LENGTH, levels),
        (TO_CENTROIDS[variant], CENTROID_WORDS, CENTROID_WORDS - 1, centroid_levels),
    ]
    for ask, words, length, levels_of in kinds:
        codes, chunk = made(rng, words, fill)
        ask(chunk, query, offset, by, out)
        expected = from_products(
            offset, by, lengths(codes, length), levels_of(codes) @ query.astype(np.int64)
        )
        np.testing.assert_array_equal(out.view(np.uint32), expected.view(np.uint32))


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
    fetch(chunk)
    np.testing.assert_array_equal(chunk, np.arange(WORDS * CHUNK))
