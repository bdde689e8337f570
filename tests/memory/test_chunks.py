import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import (
    centroid_levels,
    centroids,
    entries,
    every_list,
    levels,
    positions_of,
    squared_to_centroids,
)
from unbounded.memory.chunks import (
    FREE,
    LISTS,
    TAKEN,
    Chunks,
    append_all,
    cut_in_two,
    nearest_list,
    read_code,
    take_apart,
    write_code,
)
from unbounded.memory.codes import CENTROID_WORDS, WORDS, Coder
from unbounded.memory.scan import CHUNK
from unbounded.types import Hidden


def empty(lists: int, chunks: int = 100) -> Chunks:
    return Chunks(
        np.zeros((chunks, WORDS * CHUNK), np.uint32),
        np.zeros(chunks, np.int32),
        np.full(CHUNK, -1, np.int32),
        np.full(CHUNK, -1, np.int32),
        np.zeros(CHUNK, np.int64),
        np.zeros(CHUNK, np.int64),
        np.zeros((1, CENTROID_WORDS * CHUNK), np.uint32),
        np.array([lists, 0, -1]),
    )


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


@pytest.mark.parametrize("words", [WORDS, CENTROID_WORDS])
def test_a_chunk_gives_back_what_was_put_into_it(words: int) -> None:
    codes = np.random.default_rng(0).integers(0, 2**32, (CHUNK, words)).astype(np.uint32)
    chunk, found = np.zeros(words * CHUNK, np.uint32), np.zeros(words, np.uint32)
    for slot in np.random.default_rng(1).permutation(CHUNK):
        write_code(codes[slot], chunk, slot)
    for slot in range(CHUNK):
        read_code(chunk, slot, found)
        np.testing.assert_array_equal(found, codes[slot])


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 400), max_size=4))
@settings(deadline=None, max_examples=30)
def test_every_entry_is_in_its_list_once_and_in_order(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2**32, (400, WORDS)).astype(np.uint32)
    lists = rng.integers(0, 3, 400).astype(np.int32)
    chunks, start = empty(lists=3), 0
    for stop in [*sorted(cuts), 400]:
        append_all(chunks, lists[start:stop], codes[start:stop].copy(), 1000 + start)
        start = stop
    for at in range(3):
        mine = np.flatnonzero(lists == at)
        found = entries(chunks, at)
        np.testing.assert_array_equal(found[:, : WORDS - 1], codes[mine, : WORDS - 1])
        np.testing.assert_array_equal(positions_of(found), 1000 + mine)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 128, 200])
def test_a_list_taken_apart_gives_its_chunks_to_the_next_entries(length: int) -> None:
    chunks = empty(lists=2)
    codes = np.random.default_rng(0).integers(0, 2**32, (length, WORDS)).astype(np.uint32)
    for _ in range(3):
        append_all(chunks, np.zeros(length, np.int32), codes, 0)
        taken = np.zeros((length, WORDS), np.uint32)
        take_apart(chunks, 0, taken)
        np.testing.assert_array_equal(taken, codes)
        assert chunks.lengths[0] == 0
    # Three times the same chunks, and not three times as many.
    assert chunks.counts[TAKEN] == -(-length // CHUNK)
    append_all(chunks, np.ones(length, np.int32), codes, 0)
    assert chunks.counts[TAKEN] == -(-length // CHUNK)
    assert chunks.counts[FREE] == -1
    np.testing.assert_array_equal(entries(chunks, 1), codes)


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(2, 300), same=st.integers(0, 300))
@settings(deadline=None, max_examples=40)
def test_a_list_cut_in_two_keeps_every_entry_once(seed: int, length: int, same: int) -> None:
    keys = states(length, seed)
    keys[:same] = keys[0]
    coder = Coder(states(300))
    codes = coder.encode(keys).codes
    chunks = empty(lists=1)
    append_all(chunks, np.zeros(length, np.int32), codes, 0)
    cut_in_two(chunks, 0, coder.steps)
    assert chunks.counts[LISTS] == 2
    both = every_list(chunks)
    assert all(len(one) for one in both)
    found = np.concatenate(both)
    np.testing.assert_array_equal(found[np.argsort(positions_of(found))], codes)
    for at, one in enumerate(both):
        assert (np.diff(positions_of(one)) > 0).all()
        middle = ((levels(one) - 7.5) * coder.steps).mean(axis=0)
        place = (centroid_levels(centroids(chunks)[at : at + 1])[0] - 127.5) * coder.steps / 16
        assert (np.abs(place - middle) <= 0.51 * coder.steps / 16).all()


def test_two_heaps_are_cut_between_them() -> None:
    keys = states(200)
    keys[1::2] += 6
    coder = Coder(keys)
    chunks = empty(lists=1)
    append_all(chunks, np.zeros(200, np.int32), coder.encode(keys).codes, 0)
    cut_in_two(chunks, 0, coder.steps)
    sides = [set(positions_of(one) % 2) for one in every_list(chunks)]
    assert sorted(map(tuple, sides)) == [(0,), (1,)]


def test_entries_that_are_all_the_same_are_cut_in_halves_by_age() -> None:
    coder = Coder(states(300))
    chunks = empty(lists=1)
    codes = coder.encode(np.tile(states(1), (151, 1))).codes
    append_all(chunks, np.zeros(151, np.int32), codes, 0)
    cut_in_two(chunks, 0, coder.steps)
    halves = [positions_of(one).tolist() for one in every_list(chunks)]
    assert halves == [list(range(75)), list(range(75, 151))]


def test_a_key_goes_to_the_nearest_centroid_and_of_two_as_near_to_the_older() -> None:
    keys = states(900)
    coder = Coder(keys)
    chunks = empty(lists=1)
    coded = coder.encode(keys)
    append_all(chunks, np.zeros(900, np.int32), coded.codes, 0)
    for at in (0, 0, 1, 2, 0):
        cut_in_two(chunks, at, coder.steps)
    # The same centroid again, in a list that is younger.
    write_code(centroids(chunks)[2], chunks.centroids[0], 6)
    chunks.counts[LISTS] = 7
    found = np.full(900, -1, np.int32)
    nearest_list(chunks, coded.queries, coded.offsets, coded.scales, coded.totals, found)
    expected = squared_to_centroids(coded, centroids(chunks)).argmin(axis=1)
    np.testing.assert_array_equal(found, expected)
    assert set(found) == set(range(6))
