import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.datastore import Flat, Window
from unbounded.errors import SettingError


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 50),
    cuts=st.lists(st.integers(0, 120), max_size=6),
)
@settings(deadline=None, max_examples=50)
def test_a_window_is_flat_over_the_last_keys(seed: int, size: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(120, 4)).astype(np.float32)
    queries = rng.normal(size=(3, 4)).astype(np.float32)
    window, flat = Window(4, size=size), Flat(4)
    for piece in np.split(keys, sorted(cuts)):
        window.add(piece)
    flat.add(keys[-size:])
    squared, positions = window.search(queries, 30)
    expected, offsets = flat.search(queries, 30)
    np.testing.assert_array_equal(squared, expected)
    np.testing.assert_array_equal(positions, offsets + 120 - size)


def test_the_room_does_not_grow_with_the_stream() -> None:
    window = Window(4, size=100)
    for _ in range(200):
        window.add(np.ones((50, 4), np.float32))
    assert len(window) == 100
    assert window.added == 10_000
    assert window.bytes < 100 * 20 * 3


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="a window of 0; it needs at least 1 key"):
        Window(4, size=0)
