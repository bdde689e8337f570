"""The native character model is the one of the definition, and refuses what it cannot read."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experts.definitions import InPlaces
from unbounded import _native
from unbounded.experts.letters import new_tables, read

words_of = st.lists(st.text("ab1.-é", max_size=9).map(lambda w: tuple(w.encode())), max_size=20)


@given(words=words_of, shut=st.integers(0, 2**9 - 1))
@settings(max_examples=40, deadline=None)
def test_it_says_what_the_definition_with_a_dictionary_of_places_says(
    words: list[tuple[int, ...]], shut: int
) -> None:
    plain = InPlaces(8)
    expected = []
    closed = [tuple(bool(shut >> min(n, 8) & 1) for n in range(len(word))) for word in words]
    for word, ends in zip(words, closed, strict=True):
        expected.append(plain.logprob(word, ends, learn=False))
        plain.logprob(word, ends, learn=True)
    nats = np.empty(len(words))
    slots, counters, weights = new_tables()
    slots = read(
        np.array([symbol for word in words for symbol in word], np.uint8),
        np.cumsum([0, *map(len, words)]),
        np.array([end for ends in closed for end in ends], bool),
        *(np.ones(len(words), bool), slots, counters, weights, 8, nats),
    )
    np.testing.assert_allclose(nats, -np.array(expected), rtol=1e-4)
    assert counters.tolist() == [len(plain.places), len(words)]
    assert (slots != 0).sum() == counters[0]


def test_the_logarithm_of_a_long_word_is_a_sum_and_ends_at_no_least() -> None:
    tables = new_tables()
    symbols = np.random.default_rng(0).integers(0, 256, 10_000).astype(np.uint8)
    one = _native.spelling_ask(
        symbols, np.array([0, len(symbols)]), np.ones(len(symbols), bool), tables, 8
    )
    # Nothing was learned: each bit is worth one, and so is the end.
    assert one[0] == pytest.approx(-np.log(2) * (8 * len(symbols) + 1), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"symbols": np.zeros(3, np.int8)}, "symbols is an array of another type"),
        ({"shut": np.zeros(2, bool)}, "shut must be as long as symbols"),
        ({"starts": np.array([0, 2])}, "starts must begin with 0 and end"),
        ({"starts": np.array([0, 5, 3])}, "starts must not decrease"),
        ({"slots": np.zeros(1000, np.uint64)}, "slots must be a power of two"),
        ({"slots": np.ones(4, np.uint64), "counters": np.array([4, 0])}, "slots must be a power"),
        ({"counters": np.zeros(3, np.int64)}, "counters must be 2"),
        ({"bits": 9}, "9 bits a symbol"),
        ({"bits": 2}, "weights for each context and bit"),
        ({"new": np.zeros(2, bool)}, "new must be as many as words"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(
    change: dict[str, Any], complaint: str
) -> None:
    slots, counters, weights = new_tables()
    given: dict[str, Any] = {
        **{"symbols": np.zeros(3, np.uint8), "starts": np.array([0, 3]), "shut": np.zeros(3, bool)},
        **{"new": np.ones(1, bool), "slots": slots, "counters": counters, "weights": weights},
        **{"bits": 8},
    } | change
    tables = (given["slots"], given["counters"], given["weights"])
    with pytest.raises(ValueError, match=complaint):
        _native.spelling_read(
            given["symbols"],
            given["starts"],
            given["shut"],
            given["new"],
            tables,
            given["bits"],
            ask=True,
        )
