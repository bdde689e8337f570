from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.memory.definitions import centroid_levels, from_products, lengths, levels
from unbounded.memory.chunks import write_code
from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, WORDS
from unbounded.memory.instructions import HALF, WIDE
from unbounded.memory.scan import CHUNK, TILE, plain_distances, plain_to_centroids, scanner


def needs(there: bool) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not there, reason="this processor has no such instructions")


FAST = [pytest.param("wide", marks=needs(WIDE)), pytest.param("half", marks=needs(HALF))]
PLAIN = plain_distances, plain_to_centroids


@cache
def scanned(way: str) -> tuple[Any, Any]:
    return PLAIN if way == "plain" else scanner(way)


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


@pytest.mark.parametrize("way", ["plain", "any", *FAST])
@pytest.mark.parametrize("asked", QUERIES)
@pytest.mark.parametrize("fill", BYTES)
@pytest.mark.parametrize("many", range(1, TILE + 1))
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.01, 1e30, 3e38])
def test_distances_are_those_of_the_definition_to_the_bit(
    way: str, asked: str, fill: str, scale: float, many: int
) -> None:
    rng = np.random.default_rng(0)
    queries = np.stack([QUERIES[asked](rng) for _ in range(TILE)]).astype(np.int8)
    offsets = rng.normal(0, 50, TILE).astype(np.float32)
    scales = (scale * np.arange(1, TILE + 1) / TILE).astype(np.float32)
    distances, to_centroids = scanned(way)
    asks: list[tuple[Any, int, int, Callable[[np.ndarray], np.ndarray], tuple[int, ...]]] = [
        (distances, WORDS, LENGTH, levels, (many,)),
        (to_centroids, CENTROID_WORDS, CENTROID_WORDS - 1, centroid_levels, ()),
    ]
    for ask, words, length, levels_of, how_many in asks:
        made_chunks = [made(rng, words, fill) for _ in range(2)]
        chunks = np.stack([chunk for _, chunk in made_chunks])
        for number, (codes, _) in enumerate(made_chunks):
            out = np.empty((TILE, CHUNK), np.float32)
            # Whatever is said to follow; asking for it ahead changes nothing.
            following, before = (1 - number,) if how_many else (), chunks.copy()
            ask(chunks, number, *following, queries, offsets, scales, *how_many, out)
            np.testing.assert_array_equal(chunks, before)
            for i in range(many if how_many else TILE):
                products = levels_of(codes) @ queries[i].astype(np.int64)
                expected = from_products(offsets[i], scales[i], lengths(codes, length), products)
                np.testing.assert_array_equal(out[i].view(np.uint32), expected.view(np.uint32))
