from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import every_list, find, nearest, packed_pairs, positions_of, squared
from unbounded.memory import lists as module
from unbounded.memory.codes import Coder
from unbounded.memory.lists import Lists
from unbounded.memory.scan import CHUNK
from unbounded.memory.threads import set_search_threads
from unbounded.types import Hidden

CODER = Coder(np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32))


@pytest.fixture
def two_threads() -> Iterator[None]:
    set_search_threads(2)
    yield
    set_search_threads(1)


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)


def filled(keys: Hidden, settle: int = 128) -> Lists:
    lists = Lists(CODER, settle)
    lists.add(CODER.encode(keys))
    return lists


def read(lists: Lists, keys: Hidden, k: int) -> list[list[tuple[float, int]]]:
    """Search for each key and then add it."""
    rows = []
    while len(keys):
        piece, keys = keys[: lists.room], keys[lists.room :]
        coded = CODER.encode(piece)
        best, assigned = find(lists, coded, k, own_past=True)
        rows += [packed_pairs(row) for row in best]
        lists.add_block(coded, assigned)
    return rows


@pytest.mark.parametrize("k", [1, 50, 2000])
def test_looking_at_everything_is_brute_force_over_the_codes(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEWEST", 10**6)
    keys, queries = states(1000), CODER.encode(states(20, seed=1))
    lists = filled(keys)
    assert lists.count > 2
    found = find(lists, queries, k, own_past=False)[0]
    truth = squared(queries, CODER.encode(keys).codes)
    for row, distances in zip(found, truth, strict=True):
        assert packed_pairs(row) == nearest(distances, np.arange(1000), k)


def test_at_least_so_many_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = filled(states(4000))
    queries = CODER.encode(states(200, seed=1))

    def first(k: int) -> np.ndarray:
        return np.array([packed_pairs(row)[0][1] for row in find(lists, queries, k, False)[0]])

    nearest_of_all = first(600)
    # Measured 1, and 0.59 where one list is all that is looked at.
    assert (first(1) == nearest_of_all).mean() > 0.9
    monkeypatch.setattr(module, "FEWEST", 1)
    assert (first(1) == nearest_of_all).mean() < 0.7


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 500), max_size=8))
@settings(deadline=None, max_examples=15)
def test_any_cut_of_the_stream_finds_the_same_and_ends_the_same(seed: int, cuts: list[int]) -> None:
    keys = states(500, seed)
    one, other = filled(states(700)), filled(states(700))
    expected, found, start = read(one, keys, 20), [], 0
    for stop in [*sorted(cuts), 500]:
        found += read(other, keys[start:stop], 20)
        start = stop
    assert found == expected
    a, b = one.state(), other.state()
    assert all(np.array_equal(a[name], b[name]) for name in a if name not in ("codes", "next"))
    for here, there in zip(every_list(one._chunks), every_list(other._chunks), strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("stretches", [1024, 2, 7])
def test_reading_is_searching_and_adding_key_by_key(
    stretches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STRETCHES", stretches)
    # Few enough entries are looked at for their number to matter.
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "LOOKED_AT", 4)
    keys = states(300, seed=3)
    blocks, steps = filled(states(700)), filled(states(700))
    expected = []
    for t in range(300):
        alone = CODER.encode(keys[t : t + 1])
        expected.append(packed_pairs(find(steps, alone, 20, own_past=False)[0][0]))
        steps.add(alone)
    assert read(blocks, keys, 20) == expected


@pytest.mark.usefixtures("two_threads")
def test_two_threads_find_the_same_bits_as_one() -> None:
    keys = states(400, seed=2)
    two = filled(states(2000))
    found = read(two, keys, 30)
    set_search_threads(1)
    one = filled(states(2000))
    assert read(one, keys, 30) == found
    for here, there in zip(every_list(one._chunks), every_list(two._chunks), strict=True):
        np.testing.assert_array_equal(here, there)


def test_lists_are_cut_as_they_grow_and_hold_every_entry_once() -> None:
    lists = filled(states(5000))
    every = every_list(lists._chunks)
    assert lists.count == len(every) > 5000 / 256
    # Nothing is left longer than this when lists were last cut, some keys ago.
    assert (lists._chunks.settled <= 256).all()
    assert np.array_equal(np.sort(np.concatenate([positions_of(e) for e in every])), range(5000))
    assert lists.room == 128 - 5000 % 128


def test_in_a_large_memory_lists_are_cut_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STRETCHES", 4)
    lists, rooms, rng = Lists(CODER, 16), {}, np.random.default_rng(0)
    while len(lists) < 1000:
        if lists.room == lists._stretch:
            rooms[len(lists)] = lists.room
        lists.add(CODER.encode(states(min(int(rng.integers(1, 9)), lists.room))))
    # Every stretch ends where one of the next length may begin.
    assert all(entries % room == 0 for entries, room in rooms.items())
    assert rooms[64] == 32
    assert rooms[128] == 64
    assert max(rooms.values()) == 64


def test_keys_that_are_all_the_same_end_in_lists_no_longer_than_others() -> None:
    lists = filled(np.ones((3000, 6), np.float32), settle=256)
    assert lists._chunks.settled.max() <= 256
    found, _ = find(lists, CODER.encode(np.ones((1, 6), np.float32)), 3000, own_past=False)
    assert [position for _, position in packed_pairs(found[0])] == list(range(3000))


def test_a_state_goes_on_bit_for_bit() -> None:
    lists = filled(states(700))
    again = Lists.restored(lists.state(), 128)
    assert len(again) == 700
    assert read(again, states(300, seed=1), 20) == read(lists, states(300, seed=1), 20)
    for here, there in zip(every_list(again._chunks), every_list(lists._chunks), strict=True):
        np.testing.assert_array_equal(here, there)


def test_room_is_made_before_it_is_needed() -> None:
    """One list each time, all lists at once, and many keys for one list."""
    lists = filled(states(2000))
    for keys in (np.zeros((1, 6), np.float32), states(128, seed=1), np.ones((128, 6), np.float32)):
        lists.add(CODER.encode(keys))
        chunks = lists._chunks
        used = int((-(-chunks.lengths // CHUNK)).sum())
        assert used <= chunks.counts[1] <= len(chunks.next)
    assert sum(len(each) for each in every_list(lists._chunks)) == 2257
