import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.memory import nearest
from unbounded.memory.index import unpacking
from unbounded.memory.nearest import Nearest, squared_norms
from unbounded.types import Distances, Positions


def taken(near: Nearest) -> tuple[Distances, Positions]:
    """Squared distances, in increasing order, and positions."""
    squared = np.empty(near.packed.shape, np.float32)
    positions = np.empty(near.packed.shape, np.int64)
    unpacking(squared, positions, ordered=True)(0, near.packed, near.oldest)
    return squared, positions


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    m=st.integers(0, 70),
    k=st.integers(1, 40),
    first=st.integers(0, 2**40),
)
@settings(deadline=None, max_examples=80)
def test_each_query_gets_the_nearest_of_what_it_may_see(
    seed: int, n: int, m: int, k: int, first: int
) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers, so that distances are exact and ties are many.
    queries = rng.integers(-2, 3, (n, 3)).astype(np.float32)
    keys = rng.integers(-2, 3, (m, 3)).astype(np.float32)
    low = first + rng.integers(0, m + 1, n)
    high = first + rng.integers(0, m + 1, n)
    near = Nearest(queries, k, low, high)
    near.show(keys, squared_norms(keys), first)
    squared, positions = taken(near)
    for t in range(n):
        truth = ((queries[t] - keys) ** 2).sum(axis=1)
        seen = [p for p in range(m) if low[t] <= first + p < high[t]]
        expected = sorted(seen, key=lambda p: (truth[p], p))[:k]
        assert positions[t, : len(expected)].tolist() == [first + p for p in expected]
        assert squared[t, : len(expected)].tolist() == truth[expected].tolist()
        assert (positions[t, len(expected) :] == -1).all()
        assert np.isinf(squared[t, len(expected) :]).all()


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_keys_may_be_shown_in_any_pieces_and_order(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    queries = rng.integers(-3, 4, (5, 4)).astype(np.float32)
    keys = rng.integers(-3, 4, (200, 4)).astype(np.float32)
    norms = squared_norms(keys)
    bounds = np.zeros(5, np.int64), np.full(5, 200)
    whole = Nearest(queries, 30, *bounds)
    whole.show(keys, norms, 0)
    monkeypatch.setattr(nearest, "CHUNK", chunk)
    pieces = Nearest(queries, 30, *bounds)
    pieces.show(keys[120:], norms[120:], 120)
    pieces.show(keys[:120], norms[:120], 0)
    for one, other in zip(taken(whole), taken(pieces), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_was_found_elsewhere_competes_with_what_is_shown() -> None:
    queries = np.zeros((1, 1), np.float32)
    near = Nearest(queries, 3, np.array([0]), np.array([9]))
    near.offer(np.array([[1.0, 16.0]], np.float32), np.array([[4, 2]]))
    near.show(np.array([[2.0], [1.0], [9.0]], np.float32), np.array([4, 1, 81], np.float32), 5)
    squared, positions = taken(near)
    assert squared.tolist() == [[1, 1, 4]]
    assert positions.tolist() == [[4, 6, 5]]


def test_a_distance_is_never_below_zero() -> None:
    keys = (np.random.default_rng(0).normal(size=(50, 64)) * 100).astype(np.float32)
    near = Nearest(keys, 1, np.zeros(50, np.int64), np.full(50, 50))
    near.show(keys, squared_norms(keys), 0)
    squared, positions = taken(near)
    assert (squared >= 0).all()
    assert positions[:, 0].tolist() == list(range(50))


@pytest.mark.parametrize("apart", [1e-5, 1e-3, 0.1, 1.0])
def test_distances_of_nearly_equal_keys_are_as_good_as_any(apart: float) -> None:
    """|q|² + |x|² − 2 q·x alone would be off by half at 1e-3 and by everything at 1e-5."""
    random = np.random.default_rng(4)
    middle = random.normal(size=64).astype(np.float32)
    keys = (middle + apart * random.normal(size=(200, 64))).astype(np.float32)
    queries = keys[:7] + np.float32(apart) * random.normal(size=(7, 64)).astype(np.float32)
    nearest = Nearest(queries, 200, np.zeros(7, np.int64), np.full(7, 200))
    nearest.show(keys, squared_norms(keys), 0)
    squared, positions = taken(nearest)
    exact = ((queries[:, None].astype(np.float64) - keys[positions]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, exact, rtol=1e-5)
