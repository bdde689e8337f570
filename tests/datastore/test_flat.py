import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.datastore import Flat


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 90), max_size=5),
    k=st.integers(1, 120),
)
@settings(deadline=None, max_examples=50)
def test_flat_agrees_with_brute_force_however_the_keys_came(
    seed: int, cuts: list[int], k: int
) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(90, 8)).astype(np.float32)
    queries = rng.normal(size=(5, 8)).astype(np.float32)
    index = Flat(8)
    for piece in np.split(keys, sorted(cuts)):
        index.add(piece)
    squared, positions = index.search(queries, k)
    truth = ((queries[:, None].astype(np.float64) - keys[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, np.sort(truth, axis=1)[:, :k], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        squared, np.take_along_axis(truth, positions, axis=1), rtol=1e-5, atol=1e-5
    )


def test_the_older_of_two_equal_keys_comes_first() -> None:
    index = Flat(2)
    index.add(np.ones((300, 2), np.float32))
    positions = index.search(np.zeros((1, 2), np.float32), 200)[1]
    assert positions[0].tolist() == list(range(200))


def test_doubles_and_strided_keys_are_taken_as_they_are() -> None:
    index = Flat(3)
    index.add(np.arange(12.0).reshape(4, 3)[::2])
    assert index.search(np.array([[6.0, 7.0, 8.0]]), 1)[1].tolist() == [[1]]
