import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.datastore import Flat, IndexEvent, Neighbors
from unbounded.errors import SettingError


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 90), max_size=5),
    k=st.integers(1, 120),
    window=st.none() | st.integers(1, 100),
)
@settings(deadline=None, max_examples=80)
def test_it_agrees_with_brute_force_over_the_last_keys_however_they_came(
    seed: int, cuts: list[int], k: int, window: int | None
) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(90, 8)).astype(np.float32)
    queries = rng.normal(size=(5, 8)).astype(np.float32)
    store = Flat(8, window=window)
    for rows in np.split(np.arange(90), sorted(cuts)):
        store.add(keys[rows], rows)
    found = store.search(queries, k)
    truth = ((queries[:, None].astype(np.float64) - keys[None]) ** 2).sum(axis=2)
    nearest = np.sort(truth[:, -(window or 90) :], axis=1)[:, :k]
    np.testing.assert_allclose(found.squared, nearest, rtol=1e-5, atol=1e-5)
    there = np.take_along_axis(truth, found.positions, axis=1)
    np.testing.assert_allclose(found.squared, there, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found.words, found.positions)


def test_the_older_of_two_equal_keys_comes_first() -> None:
    store = Flat(2)
    store.add(np.ones((300, 2), np.float32), np.zeros(300, np.int64))
    found = store.search(np.zeros((1, 2), np.float32), 200)
    assert found.positions[0].tolist() == list(range(200))


def test_doubles_and_strided_keys_are_taken_as_they_are() -> None:
    store = Flat(3)
    store.add(np.arange(12.0).reshape(4, 3)[::2], np.array([5, 6]))
    assert store.search(np.array([[6.0, 7.0, 8.0]]), 1).words.tolist() == [[6]]


def test_the_room_of_a_window_does_not_grow_with_the_stream() -> None:
    store = Flat(4, window=100)
    for _ in range(200):
        store.add(np.ones((50, 4), np.float32), np.zeros(50, np.int64))
    assert (len(store), store.added) == (100, 10_000)
    assert store.bytes < 100 * 24 * 3


def test_a_word_costs_little_more_than_its_four_bytes() -> None:
    store = Flat(1, window=10_000)
    for _ in range(40):
        store.add(np.zeros((500, 1), np.float32), np.zeros(500, np.int64))
    # Keys may take twice the window; words may not.
    assert store.bytes - store._keys.bytes < 4.8 * 10_000


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(SettingError, match="keys of width 0"):
        Flat(0)
    with pytest.raises(SettingError, match="a window of 0; it needs at least 1 key"):
        Flat(4, window=0)


def test_in_order_the_nearest_come_first_and_of_two_as_near_the_older() -> None:
    squared = np.array([[2.0, 1.0, 2.0, np.inf]], np.float32)
    found = Neighbors(squared, np.array([[5, 6, 7, -1]]), np.array([[9, 3, 4, -1]])).in_order()
    assert found.squared.tolist() == [[1, 2, 2, np.inf]]
    assert found.words.tolist() == [[6, 7, 5, -1]]
    assert found.positions.tolist() == [[3, 4, 9, -1]]


def test_an_event_reads_as_a_sentence() -> None:
    event = IndexEvent(65_536, "inverted file of 512 lists", 3.14)
    assert str(event) == "at 65,536 entries: inverted file of 512 lists (3.1 s)"
