from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from unbounded.datastore import Auto, Flat, Index, IndexedDatastore, Neighbors, Votes, Window
from unbounded.errors import MemoryFault
from unbounded.types import Distances, Hidden, Ids, Positions

WIDTH = 6
MAKE: dict[str, Callable[[], Index]] = {
    "flat": lambda: Flat(WIDTH),
    "window": lambda: Window(WIDTH, size=23),
    "window of one": lambda: Window(WIDTH, size=1),
    "auto, before it switches": lambda: Auto(WIDTH),
    "auto, as it switches": lambda: Auto(WIDTH, exact=256),
}
EARLIER = {"auto, as it switches": 250}
"""Pairs that are there before the first of a test: of fifty more, the sixth makes it switch to
codes, and the thirty-eighth cuts lists."""


def stream(count: int, seed: int = 0) -> tuple[Hidden, Ids]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, WIDTH)).astype(np.float32), rng.integers(0, 9, count)


def started(kind: str) -> tuple[IndexedDatastore, Ids]:
    """A memory, and the words it has read."""
    memory = IndexedDatastore(MAKE[kind]())
    keys, words = stream(EARLIER.get(kind, 0), seed=99)
    memory.add(keys, words)
    return memory, words


def stepwise(memory: IndexedDatastore, keys: Hidden, words: Ids, k: int) -> list[Neighbors]:
    """The law: search one, add one."""
    found = []
    for t in range(len(keys)):
        found.append(memory.search(keys[t : t + 1], k))
        memory.add(keys[t : t + 1], words[t : t + 1])
    return found


@pytest.mark.parametrize("kind", MAKE)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 50), max_size=5),
    k=st.integers(1, 60),
)
@settings(deadline=None, max_examples=12)
def test_blocks_find_what_single_steps_find_however_the_stream_is_cut(
    kind: str, seed: int, cuts: list[int], k: int
) -> None:
    keys, words = stream(50, seed)
    blocks, earlier = started(kind)
    expected = stepwise(started(kind)[0], keys, words, k)
    known = np.concatenate([earlier, words])
    start = 0
    for stop in [*sorted(cuts), 50]:
        found = blocks.read(keys[start:stop], words[start:stop], k).in_order()
        for t in range(start, stop):
            one, row = expected[t], t - start
            count = one.squared.shape[1]
            np.testing.assert_allclose(
                found.squared[row, :count], one.squared[0], rtol=1e-5, atol=1e-5
            )
            assert np.isinf(found.squared[row, count:]).all()
            assert (found.words[row, count:] == -1).all()
            assert (found.positions[row, count:] == -1).all()
            # Neighbors may change places only where rounding decides, which is at most rarely.
            np.testing.assert_array_equal(
                np.sort(found.positions[row, :count]), np.sort(one.positions[0])
            )
            np.testing.assert_array_equal(
                found.words[row, :count], known[found.positions[row, :count]]
            )
        start = stop


@pytest.mark.parametrize("kind", MAKE)
def test_a_block_longer_than_a_search_takes_at_a_time(kind: str) -> None:
    keys, words = stream(70)
    expected = stepwise(started(kind)[0], keys, words, 10)
    found = started(kind)[0].read(keys, words, 10).in_order()
    for t in range(70):
        count = expected[t].squared.shape[1]
        np.testing.assert_allclose(
            found.squared[t, :count], expected[t].squared[0], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_array_equal(found.words[t, :count], expected[t].words[0])


def seen_too_early(kind: str, k: int = 400) -> int:
    """How many neighbors of a block are a step's own pair, or a later one."""
    keys, words = stream(50)
    memory, _ = started(kind)
    now = memory.index.added + np.arange(50)
    # Told their own keys, steps would find themselves first.
    return int((memory.read(keys, words, k).positions >= now[:, None]).sum())


@pytest.mark.parametrize("kind", MAKE)
def test_no_step_sees_its_own_word_or_a_later_one(kind: str) -> None:
    keys, words = stream(50)
    other_words = words.copy()
    other_words[35:] = 77
    one = started(kind)[0].read(keys, words, 40)
    other = started(kind)[0].read(keys, other_words, 40)
    np.testing.assert_array_equal(one.words[:36], other.words[:36])
    np.testing.assert_array_equal(one.positions, other.positions)
    assert (other.words[36:] == 77).any()
    assert seen_too_early(kind) == 0


@pytest.mark.parametrize("kind", MAKE)
def test_a_planted_leak_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that adds the block and then searches shows every step itself."""

    def leaky(index: Index, keys: Hidden, k: int) -> tuple[Distances, Positions]:
        index.add(keys)
        return index.search(keys, k)

    monkeypatch.setattr(type(MAKE[kind]()), "read", leaky)
    assert seen_too_early(kind) > 0


def test_in_order_the_nearest_come_first_and_of_two_as_near_the_older() -> None:
    squared = np.array([[2.0, 1.0, 2.0, np.inf]], np.float32)
    found = Neighbors(squared, np.array([[5, 6, 7, -1]]), np.array([[9, 3, 4, -1]])).in_order()
    assert found.squared.tolist() == [[1, 2, 2, np.inf]]
    assert found.words.tolist() == [[6, 7, 5, -1]]
    assert found.positions.tolist() == [[3, 4, 9, -1]]


@pytest.mark.parametrize("kind", MAKE)
def test_a_search_returns_the_words_of_its_positions(kind: str) -> None:
    keys, words = stream(100)
    memory, earlier = started(kind)
    memory.add(keys[:60], words[:60])
    memory.add(keys[60:], words[60:])
    found = memory.search(keys[:5], 15)
    known = np.concatenate([earlier, words])
    np.testing.assert_array_equal(found.words, known[found.positions])
    assert found.words.dtype == np.int64


def test_refused_pairs_leave_everything_as_it_was() -> None:
    memory = IndexedDatastore(Flat(WIDTH))
    keys, words = stream(5)
    memory.add(keys, words)
    with pytest.raises(MemoryFault, match="row 0 of 5 keys is not finite"):
        memory.add(keys * np.float32(np.nan), words)
    with pytest.raises((MemoryFault, TypeCheckError)):
        memory.add(keys, words[:4])
    for bad in (-1, 2**31):
        with pytest.raises(MemoryFault, match="encode unknown words first"):
            memory.add(keys, np.full(5, bad))
        with pytest.raises(MemoryFault, match="encode unknown words first"):
            memory.read(keys, np.full(5, bad), 3)
    with pytest.raises(MemoryFault, match="row 0 of 5 keys is not finite"):
        memory.read(keys * np.float32(np.nan), words, 3)
    assert len(memory) == 5
    assert memory.search(keys, 9).words.shape == (5, 5)


def test_an_index_with_unknown_words_is_refused() -> None:
    index = Flat(WIDTH)
    index.add(stream(3)[0])
    with pytest.raises(MemoryFault, match="holds 3 keys whose words are unknown"):
        IndexedDatastore(index)


@pytest.mark.parametrize("kind", MAKE)
def test_a_state_goes_on_bit_for_bit(kind: str) -> None:
    keys, words = stream(90)
    memory, again = started(kind)[0], IndexedDatastore(MAKE[kind]())
    memory.add(keys[:60], words[:60])
    again.load(memory.state())
    for one in (memory, again):
        one.add(keys[60:], words[60:])
    found, expected = again.search(keys, 40), memory.search(keys, 40)
    np.testing.assert_array_equal(found.squared, expected.squared)
    np.testing.assert_array_equal(found.words, expected.words)
    np.testing.assert_array_equal(found.positions, expected.positions)


def test_a_state_whose_words_are_missing_is_refused() -> None:
    memory = IndexedDatastore(Flat(WIDTH))
    memory.add(*stream(5))
    state = {**memory.state(), "words": np.zeros(4, np.int32)}
    with pytest.raises(MemoryFault, match="4 words for 5 keys"):
        IndexedDatastore(Flat(WIDTH)).load(state)


def test_the_words_of_a_window_are_forgotten_with_their_keys() -> None:
    memory = IndexedDatastore(Window(WIDTH, size=10))
    keys, words = stream(50)
    assert memory.bytes_per_entry == 0
    for _ in range(100):
        memory.add(keys, words)
    assert len(memory) == 10
    assert memory.bytes_per_entry < 60 * (WIDTH + 2) * 4


def test_a_word_costs_little_more_than_its_four_bytes() -> None:
    memory = IndexedDatastore(Window(1, size=10_000))
    without = Window(1, size=10_000)
    for _ in range(40):
        memory.add(np.zeros((500, 1), np.float32), np.zeros(500, np.int64))
        without.add(np.zeros((500, 1), np.float32))
    assert memory.bytes - without.bytes < 4.8 * 10_000


@pytest.mark.parametrize("kind", MAKE)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 50), max_size=5))
@settings(deadline=None, max_examples=12)
def test_votes_are_counted_as_if_one_pair_came_at_a_time(
    kind: str, seed: int, cuts: list[int]
) -> None:
    keys, words = stream(50, seed)
    votes = Votes(kernels=3, sharpness=4.0)
    steps, expected = started(kind)[0], []
    for t in range(50):
        now = slice(t, t + 1)
        found = steps.search(keys[now], 20)
        expected.append(votes.count(found.squared, found.words, words[now])[0])
        if len(steps):
            np.testing.assert_allclose(
                steps.vote(keys[now], words[now], 20, votes)[0], expected[-1], rtol=1e-6
            )
        steps.add(keys[now], words[now])
    blocks, start = started(kind)[0], 0
    for stop in [*sorted(cuts), 50]:
        shares = blocks.score(keys[start:stop], words[start:stop], 20, votes)
        np.testing.assert_allclose(shares, np.reshape(expected[start:stop], (-1, 3)), rtol=1e-6)
        start = stop
