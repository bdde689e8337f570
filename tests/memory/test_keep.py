from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.test_scan import FAST, made
from unbounded.memory.codes import POSITION, WORDS
from unbounded.memory.instructions import GROUP
from unbounded.memory.keep import keepers, plain_keep, plain_keep_chunk
from unbounded.memory.scan import CHUNK


@cache
def keeping(way: str) -> tuple[Any, Any]:
    """`keep` and `keep_chunk`."""
    if way == "plain":
        return plain_keep, plain_keep_chunk
    return keepers(GROUP if way == "wide" else GROUP // 2)


@pytest.mark.parametrize("way", ["plain", *FAST])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(-3, CHUNK + 3),
    count=st.integers(0, 20),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_what_is_kept_of_a_chunk_is_what_is_nearer_and_has_come(
    way: str, seed: int, n: int, count: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    squared = rng.integers(0, 20, (2, CHUNK)).astype(np.float32)
    limit = np.array([20 * share], np.float32).view(np.uint32)[0]
    codes, chunk = made(rng, WORDS, "random")
    bits, positions = np.zeros((2, 3, 20 + CHUNK), np.uint32)
    kept = keeping(way)[1](squared, 1, chunk[None], 0, n, limit, bits, positions, 2, count)
    expected = np.flatnonzero(squared[1].view(np.uint32)[: max(n, 0)] < limit)
    here = slice(count, count + kept)
    assert bits[2, here].view(np.float32).tolist() == squared[1, expected].tolist()
    assert positions[2, here].tolist() == codes[expected, POSITION].tolist()
    assert not bits[:2].any()
    assert not bits[2, :count].any()


@pytest.mark.parametrize("way", ["plain", *FAST])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 70),
    bounds=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    few=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_what_is_kept_is_what_lies_between_in_its_order(
    way: str, seed: int, n: int, bounds: tuple[int, int], few: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, 80).astype(np.uint32)
    low, high = min(bounds), max(bounds)
    if few:
        # Many that are just at a bound.
        values = rng.choice(np.array([low, high, 0, 2**32 - 1], np.uint32), 80)
    companions = np.arange(80, dtype=np.uint32)
    kept, kept_companions = np.zeros(80, np.uint32), np.zeros(80, np.uint32)
    count = keeping(way)[0](
        values, companions, n, np.uint32(low), np.uint32(high), kept, kept_companions
    )
    expected = np.flatnonzero((values[:n] >= low) & (values[:n] < high))
    assert kept[:count].tolist() == values[expected].tolist()
    assert kept_companions[:count].tolist() == expected.tolist()
    # Nothing is written past those that were looked at.
    assert not kept[n:].any()
    assert not kept_companions[n:].any()
