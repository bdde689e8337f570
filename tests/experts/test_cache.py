import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unbounded.datastore import Flat
from unbounded.errors import SettingError
from unbounded.experts import Cache, Kernel
from unbounded.experts.cache import LARGE, PAPER_K, Neighborhood
from unbounded.presets import MemoryConfig
from unbounded.types import Distances

KERNELS = [
    Kernel(),
    Kernel("gaussian", 1.0),
    Kernel("gaussian", 64.0),
    Kernel("gaussian", 1.0, bandwidth=0.01),
    Kernel("epanechnikov", 1.0),
    Kernel("epanechnikov", 4.0),
    Kernel("epanechnikov", 1.0, bandwidth=0.01),
]


def brute_force(kernel: Kernel, squared: np.ndarray) -> np.ndarray:
    """Eq. 6, one row, as it is written."""
    distances = np.sqrt(squared.astype(np.float64))
    theta = kernel.bandwidth or distances.max()
    x = np.sqrt(kernel.sharpness) * distances / theta
    weights = np.exp(-(x**2) / 2) if kernel.shape == "gaussian" else np.maximum(1 - x**2, 0)
    proper: np.ndarray = weights / weights.sum()
    return proper


def shares(weights: Distances) -> Distances:
    total: Distances = weights / weights.sum(axis=1, keepdims=True)
    return total


@pytest.mark.parametrize("kernel", KERNELS[:3] + KERNELS[4:6], ids=str)
def test_weights_are_those_of_the_paper(kernel: Kernel) -> None:
    squared = np.sort(np.random.default_rng(0).uniform(0.1, 9, (5, 20)), axis=1)
    found = shares(kernel.weights(squared))
    for row, expected in zip(found, squared, strict=True):
        np.testing.assert_allclose(row, brute_force(kernel, expected), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@given(
    arrays(
        np.float32,
        (3, 6),
        elements=st.sampled_from([0, 1e-20, 1e-6, 0.5, 1, 2.5, 100, 1e8, np.inf]).map(np.float32),
    )
)
@settings(max_examples=80, deadline=None)
def test_weights_are_never_negative_never_nan_and_favor_the_near(
    kernel: Kernel, squared: Distances
) -> None:
    ordered = np.sort(squared, axis=1)
    weights = kernel.weights(ordered)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert (np.diff(weights, axis=1) <= 1e-6).all()
    assert (weights[np.isinf(ordered)] == 0).all()
    some = np.isfinite(ordered).any(axis=1)
    np.testing.assert_array_equal(weights.any(axis=1), some)


def test_no_neighbors_are_no_weights() -> None:
    assert Kernel().weights(np.empty((3, 0), np.float32)).shape == (3, 0)


def test_with_the_gaussian_at_its_own_bandwidth_the_nearest_weighs_at_most_1_65_times_the_kth() -> (
    None
):
    weights = Kernel("gaussian", 1.0).weights(np.array([[0.0, 1.0]]))
    assert weights[0, 0] / weights[0, 1] == pytest.approx(np.exp(0.5))


def test_with_normalized_states_and_a_fixed_gaussian_it_is_the_continuous_cache_of_2016() -> None:
    """Grave et al. 2016: p(w) ∝ Σ 1{w = w_i} exp(θ h·h_i); here θ = 1 / bandwidth²."""
    random = np.random.default_rng(1)
    states = random.normal(size=(30, 8)).astype(np.float32)
    words = random.integers(0, 6, 30)
    bandwidth = 0.6
    cache = Cache(
        Flat(8),
        size=10,
        k=1_000,
        kernel=Kernel("gaussian", 1.0, bandwidth),
        normalize=True,
    )
    cache.score(states[:-1], words[:-1])
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    scores = np.exp(unit[:-1].astype(np.float64) @ unit[-1] / bandwidth**2)
    expected = np.bincount(words[:-1], scores, minlength=10) / scores.sum()
    np.testing.assert_allclose(cache.predict(states[-1:]).dense(10)[0], expected, rtol=1e-4)


def test_a_kernel_that_ends_at_the_kth_neighbor_needs_no_more_than_k() -> None:
    """ "if the kernel K is equal to zero outside of [-1, 1], … equivalent to … the full data" """
    random = np.random.default_rng(2)
    states = random.normal(size=(50, 4)).astype(np.float32)
    words = random.integers(0, 6, 50)
    query = states[-1:]
    few = Cache(Flat(4), 6, k=10, kernel=Kernel("epanechnikov", 1.0))
    few.score(states[:-1], words[:-1])
    distances = np.sort(np.linalg.norm(states[:-1] - query, axis=1))
    every = Cache(
        Flat(4),
        6,
        k=1_000,
        kernel=Kernel("epanechnikov", 1.0, float(distances[9])),
    )
    every.score(states[:-1], words[:-1])
    np.testing.assert_allclose(
        few.predict(query).dense(6), every.predict(query).dense(6), rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"shape": "square"},
        {"sharpness": 0.0},
        {"sharpness": float("nan")},
        {"bandwidth": -1.0},
        {"bandwidth": float("inf")},
    ],
)
def test_a_kernel_that_means_nothing_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        Kernel(**settings)  # type: ignore[arg-type]


# How many neighbors.


def test_it_changes_where_it_says_it_will() -> None:
    growing, entries, changes = Neighborhood(16, large=5), 0, []
    for _ in range(6):
        rest = growing.until_more(entries)
        assert growing.at(entries) == growing.at(entries + rest - 1) < growing.at(entries + rest)
        entries += rest
        changes.append((entries, growing.at(entries)))
    assert changes == [(5, 18), (10, 20), (20, 22), (40, 24), (80, 26), (160, 28)]


def test_the_papers_number_up_to_half_a_million_and_for_ever_if_told() -> None:
    assert Neighborhood.of(None).at(LARGE - 1) == PAPER_K < Neighborhood.of(None).at(LARGE)
    told = Neighborhood.of(PAPER_K)
    assert told.at(100 * LARGE) == PAPER_K
    assert told.until_more(100 * LARGE) > LARGE


def test_no_neighbors_are_refused() -> None:
    for make in (
        Neighborhood,
        lambda k: MemoryConfig(k=k),
        lambda k: Cache(Flat(2), 3, k=k),
    ):
        with pytest.raises(SettingError, match="k is 0; at least 1 neighbor"):
            make(0)
