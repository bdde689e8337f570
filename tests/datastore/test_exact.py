import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded import _native
from unbounded.datastore import Votes
from unbounded.experts import Kernel


@pytest.mark.usefixtures("isa")
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 6),
    m=st.integers(0, 70),
    k=st.integers(1, 40),
    width=st.sampled_from([1, 3, 33, 48]),
)
@settings(deadline=None, max_examples=60)
def test_each_query_gets_the_nearest_of_what_it_may_see(
    seed: int, n: int, m: int, k: int, width: int
) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers, so that distances are exact and ties are many.
    queries = rng.integers(-2, 3, (n, width)).astype(np.float32)
    keys = rng.integers(-2, 3, (m, width)).astype(np.float32)
    low = rng.integers(0, m + 1, n)
    high = np.maximum(low, rng.integers(0, m + 1, n))
    squared, numbers = _native.exact_search(queries, keys, low, high, k)
    for t in range(n):
        truth = ((queries[t] - keys) ** 2).sum(axis=1)
        expected = sorted(range(low[t], high[t]), key=lambda p: (truth[p], p))[:k]
        assert numbers[t, : len(expected)].tolist() == expected
        assert squared[t, : len(expected)].tolist() == truth[expected].tolist()
        assert (numbers[t, len(expected) :] == -1).all()
        assert np.isinf(squared[t, len(expected) :]).all()


@pytest.mark.usefixtures("isa")
def test_a_distance_depends_on_the_two_keys_alone() -> None:
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(301, 70)).astype(np.float32)
    low, high = np.zeros(301, np.int64), np.full(301, 301)
    whole = _native.exact_search(keys, keys, low, high, 301)
    for t in (0, 7, 300):
        one = _native.exact_search(keys[t : t + 1], keys, low[:1], high[:1], 301)
        np.testing.assert_array_equal(one[0][0], whole[0][t])
        np.testing.assert_array_equal(one[1][0], whole[1][t])


def test_a_distance_is_never_below_zero() -> None:
    keys = (np.random.default_rng(0).normal(size=(50, 64)) * 100).astype(np.float32)
    squared, numbers = _native.exact_search(keys, keys, np.zeros(50, int), np.full(50, 50), 1)
    assert (squared >= 0).all()
    assert numbers[:, 0].tolist() == list(range(50))


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("apart", [1e-5, 1e-3, 0.1, 1.0])
def test_distances_of_nearly_equal_keys_are_as_good_as_any(apart: float) -> None:
    """|q|² + |x|² − 2 q·x alone would be off by half at 1e-3 and by everything at 1e-5."""
    random = np.random.default_rng(4)
    middle = random.normal(size=64).astype(np.float32)
    keys = (middle + apart * random.normal(size=(200, 64))).astype(np.float32)
    queries = keys[:7] + np.float32(apart) * random.normal(size=(7, 64)).astype(np.float32)
    squared, numbers = _native.exact_search(queries, keys, np.zeros(7, int), np.full(7, 200), 200)
    exact = ((queries[:, None].astype(np.float64) - keys[numbers]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, exact, rtol=1e-5)


@pytest.mark.usefixtures("isa")
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(0, 60),
    k=st.integers(1, 40),
    gaussian=st.booleans(),
    bandwidth=st.sampled_from([None, 0.5, 3.0]),
)
@settings(deadline=None, max_examples=60)
def test_votes_are_those_of_the_definition(
    seed: int, m: int, k: int, gaussian: bool, bandwidth: float | None
) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.normal(size=(9, 40)).astype(np.float32)
    keys = rng.normal(size=(m, 40)).astype(np.float32)
    words, targets = rng.integers(0, 3, m), rng.integers(0, 3, 9)
    low = rng.integers(0, m + 1, 9)
    high = np.maximum(low, rng.integers(0, m + 1, 9))
    votes = Votes(gaussian, 4.0, bandwidth, 3)
    shares = _native.exact_score(
        queries, keys, low, high, k, words.astype(np.int32), targets, votes.settings
    )
    squared, numbers = _native.exact_search(queries, keys, low, high, k)
    found = np.where(numbers < 0, -1, words[numbers] if m else -1)
    np.testing.assert_allclose(shares, votes.count(squared, found, targets), rtol=1e-12)
    kernel = Kernel("gaussian" if gaussian else "epanechnikov", 4.0, bandwidth)
    power = kernel.weights(squared.astype(np.float64))
    for j in range(3):
        totals = power.sum(axis=1)
        with np.errstate(invalid="ignore"):
            expected = (power * (found == targets[:, None])).sum(axis=1) / totals
        some = high > low
        np.testing.assert_allclose(shares[some, j], expected[some], rtol=1e-4, atol=1e-6)
        assert np.isnan(shares[~some]).all()
        power = power * power


def test_arrays_that_do_not_fit_are_refused_in_one_line() -> None:
    rows, none = np.zeros((3, 4), np.float32), np.zeros(3, np.int64)
    for wrong in (
        lambda: _native.exact_search(rows, rows[:, :3].copy(), none, none, 1),
        lambda: _native.exact_search(rows, rows, none[:2], none, 1),
        lambda: _native.exact_search(rows, rows, none, none + 4, 1),
        lambda: _native.exact_search(rows, rows, none - 1, none, 1),
        lambda: _native.exact_search(rows, rows, none, none, -1),
        lambda: _native.exact_score(
            rows, rows, none, none, 1, np.zeros(2, np.int32), none, Votes().settings
        ),
        lambda: Votes(sharpness=-1.0).count(rows, np.zeros((3, 4), np.int64), none),
        lambda: Votes(kernels=9).count(rows, np.zeros((3, 4), np.int64), none),
    ):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            wrong()


@pytest.mark.parametrize("bandwidth", [None, 0.5, 3.0])
@pytest.mark.parametrize("gaussian", [True, False])
def test_weights_of_neighbors_are_those_of_the_definition(
    gaussian: bool, bandwidth: float | None
) -> None:
    rng = np.random.default_rng(0)
    squared = rng.exponential(size=(20, 30)).astype(np.float32)
    squared[3, 5:] = np.inf
    squared[4] = np.inf
    squared[5] = 0
    squared[6] = 100
    trust = np.array([0.5, 0.2, 0.3])
    found = Votes(gaussian, 4.0, bandwidth, 3, trust).weights(squared)
    power = Kernel("gaussian" if gaussian else "epanechnikov", 4.0, bandwidth).weights(
        squared.astype(np.float64)
    )
    expected = np.zeros_like(power)
    for share in trust:
        totals = power.sum(axis=1, keepdims=True)
        expected += share * power / np.where(totals > 0, totals, 1)
        power = power * power
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
