import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unbounded.datastore.growable_rows import GrowableRows


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=30))
def test_what_is_kept_is_the_end_of_what_was_appended(steps: list[tuple[int, int]]) -> None:
    rows = GrowableRows(np.empty((0, 2), np.float32))
    kept: list[list[float]] = []
    for step, (count, last) in enumerate(steps):
        new = np.full((count, 2), step, np.float32)
        rows.append(new)
        rows.keep_last(last)
        kept = (kept + new.tolist())[max(len(kept) + count - last, 0) :]
        assert rows.view.tolist() == kept
        assert rows.view.flags.c_contiguous


def test_a_window_does_not_grow_for_ever() -> None:
    rows = GrowableRows(np.empty(0, np.int32))
    for step in range(1000):
        rows.append(np.full(10, step, np.int32))
        rows.keep_last(100)
    assert rows.bytes <= 2 * 110 * 4


def test_growing_costs_half_as_much_room_again_at_most() -> None:
    rows = GrowableRows(np.empty(0, np.int32))
    for _ in range(1000):
        rows.append(np.zeros(7, np.int32))
    assert rows.bytes <= 1.5 * 7000 * 4


def test_less_room_may_be_kept_free() -> None:
    rows = GrowableRows(np.empty(0, np.int32), spare=8)
    for _ in range(1000):
        rows.append(np.zeros(7, np.int32))
    assert rows.bytes <= 1.125 * 7000 * 4


def test_restored_rows_are_a_copy_that_grows() -> None:
    source = np.arange(3, dtype=np.int32)
    rows = GrowableRows(np.empty(0, np.int32))
    rows.restore(source)
    source[0] = 9
    rows.append(np.array([5], np.int32))
    assert rows.view.tolist() == [0, 1, 2, 5]
