from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

import unbounded.memory.index
from unbounded.errors import MemoryFault
from unbounded.memory import Auto, Flat, Index, Memory, Neighbors, Window
from unbounded.types import Hidden, Ids

WIDTH = 6
MAKE: dict[str, Callable[[], Index]] = {
    "flat": lambda: Flat(WIDTH),
    "window": lambda: Window(WIDTH, size=23),
    "window of one": lambda: Window(WIDTH, size=1),
    "auto, before it switches": lambda: Auto(WIDTH),
}


def stream(count: int, seed: int = 0) -> tuple[Hidden, Ids]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, WIDTH)).astype(np.float32), rng.integers(0, 9, count)


def stepwise(memory: Memory, keys: Hidden, words: Ids, k: int) -> list[Neighbors]:
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
    blocks, steps = Memory(MAKE[kind]()), Memory(MAKE[kind]())
    expected = stepwise(steps, keys, words, k)
    start = 0
    for stop in [*sorted(cuts), 50]:
        found = blocks.search_block(keys[start:stop], words[start:stop], k)
        blocks.add(keys[start:stop], words[start:stop])
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
                found.words[row, :count], words[found.positions[row, :count]]
            )
        start = stop


@pytest.mark.parametrize("kind", MAKE)
def test_a_block_longer_than_a_search_takes_at_a_time(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unbounded.memory.index, "ROWS", 16)
    keys, words = stream(70)
    expected = stepwise(Memory(MAKE[kind]()), keys, words, 10)
    found = Memory(MAKE[kind]()).search_block(keys, words, 10)
    for t in range(70):
        count = expected[t].squared.shape[1]
        np.testing.assert_allclose(
            found.squared[t, :count], expected[t].squared[0], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_array_equal(found.words[t, :count], expected[t].words[0])


@pytest.mark.parametrize("kind", MAKE)
def test_no_step_sees_its_own_word_or_a_later_one(kind: str) -> None:
    keys, words = stream(50)
    memory = Memory(MAKE[kind]())
    memory.add(keys[:20], words[:20])
    one = memory.search_block(keys[20:], words[20:], 40)
    other_words = words.copy()
    other_words[35:] = 77
    other = memory.search_block(keys[20:], other_words[20:], 40)
    np.testing.assert_array_equal(one.words[:16], other.words[:16])
    assert (other.words[16:] == 77).any()


@pytest.mark.parametrize("kind", MAKE)
def test_a_search_returns_the_words_of_its_positions(kind: str) -> None:
    keys, words = stream(100)
    memory = Memory(MAKE[kind]())
    memory.add(keys[:60], words[:60])
    memory.add(keys[60:], words[60:])
    found = memory.search(keys[:5], 15)
    np.testing.assert_array_equal(found.words, words[found.positions])
    assert found.words.dtype == np.int64


def test_refused_pairs_leave_everything_as_it_was() -> None:
    memory = Memory(Flat(WIDTH))
    keys, words = stream(5)
    memory.add(keys, words)
    with pytest.raises(MemoryFault, match="row 0 of 5 keys is not finite"):
        memory.add(keys * np.float32(np.nan), words)
    with pytest.raises((MemoryFault, TypeCheckError)):
        memory.add(keys, words[:4])
    for bad in (-1, 2**31):
        with pytest.raises(MemoryFault, match="encode unknown words first"):
            memory.add(keys, np.full(5, bad))
    assert len(memory) == 5
    assert memory.search(keys, 9).words.shape == (5, 5)


def test_an_index_with_unknown_words_is_refused() -> None:
    index = Flat(WIDTH)
    index.add(stream(3)[0])
    with pytest.raises(MemoryFault, match="holds 3 keys whose words are unknown"):
        Memory(index)


@pytest.mark.parametrize("kind", MAKE)
def test_a_state_goes_on_bit_for_bit(kind: str) -> None:
    keys, words = stream(90)
    memory, again = Memory(MAKE[kind]()), Memory(MAKE[kind]())
    memory.add(keys[:60], words[:60])
    again.load(memory.state())
    for one in (memory, again):
        one.add(keys[60:], words[60:])
    found, expected = again.search(keys, 40), memory.search(keys, 40)
    np.testing.assert_array_equal(found.squared, expected.squared)
    np.testing.assert_array_equal(found.words, expected.words)
    np.testing.assert_array_equal(found.positions, expected.positions)


def test_a_state_whose_words_are_missing_is_refused() -> None:
    memory = Memory(Flat(WIDTH))
    memory.add(*stream(5))
    state = {**memory.state(), "words": np.zeros(4, np.int32)}
    with pytest.raises(MemoryFault, match="4 words for 5 keys"):
        Memory(Flat(WIDTH)).load(state)


def test_the_words_of_a_window_are_forgotten_with_their_keys() -> None:
    memory = Memory(Window(WIDTH, size=10))
    keys, words = stream(50)
    assert memory.bytes_per_entry == 0
    for _ in range(100):
        memory.add(keys, words)
    assert len(memory) == 10
    assert memory.bytes_per_entry < 60 * (WIDTH + 2) * 4
