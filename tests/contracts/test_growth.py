"""A state in two parts, over every expert: growing by parts equals reading, to the bit."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from tests.contracts.test_expert import CODED, EXPERTS, SIZE, cuts, states_of, streams
from unbounded.experts import Expert
from unbounded.types import Ids


def assert_growing_equals_reading(make: Callable[[], Expert], words: Ids, cuts: list[int]) -> None:
    """From an earlier state by two growths and the last rest: the same, to the bit, and later too.

    Blocks are taken in as they were cut.
    """
    read, grown = make(), make()
    hidden = states_of(words)
    edges = [0, *sorted(min(cut, len(words)) for cut in cuts), len(words)]
    read.score(hidden[: edges[1]], words[: edges[1]])
    read.growth()
    grown.load(read.state())
    grown.growth()
    blocks = list(pairwise(edges[1:]))
    for part in (blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]):
        for start, end in part:
            read.score(hidden[start:end], words[start:end])
            grown.again(words[start:end])
        growth = read.growth()
        assert growth is not None
        grown.grow(growth)
    grown.settle(read.rest())
    assert grown.state().keys() == read.state().keys()
    for part_name, array in read.state().items():
        np.testing.assert_array_equal(grown.state()[part_name], array)
    np.testing.assert_array_equal(grown.score(hidden, words), read.score(hidden, words))
    after = [expert.growth() for expert in (grown, read)]
    assert after[0] is not None
    assert after[1] is not None
    for part_name, array in after[1].items():
        np.testing.assert_array_equal(after[0][part_name], array)


@pytest.mark.parametrize("name", EXPERTS)
@given(words=streams, cuts=cuts)
@settings(max_examples=20, deadline=None)
def test_growing_by_parts_equals_reading(name: str, words: Ids, cuts: list[int]) -> None:
    assert_growing_equals_reading(EXPERTS[name], words, cuts)


def test_growing_by_codes_equals_reading_and_what_cannot_grow_says_so() -> None:
    words = np.random.default_rng(3).integers(0, SIZE, 900)
    assert_growing_equals_reading(CODED["auto"], words, [300, 310, 480, 515, 700])
    for name, kind in CODED.items():
        expert = kind()
        expert.observe(states_of(words)[:200], words[:200])
        assert expert.growth() is None
        expert.observe(states_of(words)[200:300], words[200:300])
        # At the switch from keys to codes, and for ever where the library keeps them.
        assert expert.growth() is None
        expert.observe(states_of(words)[300:], words[300:])
        assert (expert.growth() is None) == (name == "ivfpq")
