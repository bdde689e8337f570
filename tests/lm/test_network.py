"""The native network: beside torch, over every instruction set, cut and number of threads."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.small import recurrent
from unbounded import _native
from unbounded.lm import NetworkConfig, RecurrentModel, TorchModel
from unbounded.lm.settings import CELLS, weight_shapes

SIZE, END = 9_000, 1
SHAPES = [(1, (2, 3)), (5, (7,)), (64, (100, 4_000)), (100, (2_100, 6_000))]
"""Units and cut-offs: lanes and panels that are full, half full, and one unit."""


@cache
def network(cell: str, units: int, cutoffs: tuple[int, ...]) -> RecurrentModel:
    """With weights so large that gates open and close."""
    shape = NetworkConfig(cell=cell, units=units, cutoffs=cutoffs)
    return recurrent(SIZE, shape, seed=units, sentence_end=END, louder=(10, 5))


@pytest.fixture
def threads() -> Iterator[None]:
    before = _native.threads()
    yield
    _native.set_threads(before)


def words(count: int, seed: int = 0) -> np.ndarray:
    """Of every cluster, beyond the vocabulary, and below it."""
    ids = np.random.default_rng(seed).geometric(1e-3, count)
    return np.where(ids % 7 == 0, ids * 5 % (SIZE + 50), np.minimum(ids - 1, SIZE))


@pytest.mark.parametrize(("units", "cutoffs"), SHAPES)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("count", [0, 1, 130])
def test_states_and_probabilities_are_those_of_torch(
    isa: str, cell: str, units: int, cutoffs: tuple[int, ...], count: int
) -> None:
    lm = network(cell, units, cutoffs)
    plain, text = TorchModel(lm), words(count)
    (first, begin), (also, _) = lm.start(), plain.start()
    np.testing.assert_allclose(first, also, atol=1e-5)
    hidden, state = lm.advance(begin, text)
    expected, after = plain.advance(begin, text)
    np.testing.assert_allclose(hidden, expected, atol=1e-5)
    for part, other in zip(state, after, strict=True):
        np.testing.assert_allclose(part, other, atol=3e-5)
    np.testing.assert_allclose(lm.prob(expected, text), plain.prob(expected, text), rtol=1e-4)
    np.testing.assert_allclose(lm.dense(expected[:6]), plain.dense(expected[:6]), rtol=1e-4)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("units", "cutoffs"), SHAPES)
@pytest.mark.parametrize("cell", CELLS)
def test_no_cut_no_neighbor_and_no_thread_changes_a_bit(
    isa: str, cell: str, units: int, cutoffs: tuple[int, ...]
) -> None:
    lm, text = network(cell, units, cutoffs), words(150)
    begin = lm.start()[1]
    _native.set_threads(1)
    whole, end = lm.advance(begin, text)
    probs, dense, short = lm.prob(whole, text), lm.dense(whole[:9]), lm.shortlist(whole, text)
    np.testing.assert_array_equal(short.prob, probs)
    for threads in (1, 2, 5):
        _native.set_threads(threads)
        state, edges = begin, [0, 1, 3, 3, 60, 150]
        for a, b in pairwise(edges):
            hidden, state = lm.advance(state, text[a:b])
            np.testing.assert_array_equal(hidden, whole[a:b])
            np.testing.assert_array_equal(lm.prob(hidden, text[a:b]), probs[a:b])
            part = lm.shortlist(hidden, text[a:b])
            for name in ("column", "odds", "share", "prob"):
                np.testing.assert_array_equal(getattr(part, name), getattr(short, name)[a:b])
        np.testing.assert_array_equal(state, end)
        np.testing.assert_array_equal(lm.dense(whole[:9]), dense)


def test_gates_that_overflow_are_shut_and_no_state_is_not_a_number(isa: str) -> None:
    for cell in CELLS:
        lm = network(cell, 64, (100, 4_000))
        vectors = np.full((2, 64), 1e6, np.float32)
        vectors[1] *= -1
        hidden, _ = lm.advance_vectors(lm.start()[1], vectors, np.array([0, 1, 0]))
        assert (np.abs(hidden) <= 1).all()
        assert np.isfinite(lm.prob(1e3 * hidden, np.array([0, 200, 8_000]))).all()


@pytest.mark.parametrize("cell", CELLS)
def test_streams_side_by_side_are_each_as_if_alone(isa: str, cell: str) -> None:
    lm, text = network(cell, 64, (100, 4_000)), words(24).reshape(3, 8)
    states = [lm.advance(lm.start()[1], some[:2])[1] for some in text]
    together = tuple(np.concatenate(parts, axis=1) for parts in zip(*states, strict=True))
    hidden, after = lm.advance(together, text[:, 2:].ravel())
    for i, (state, some) in enumerate(zip(states, text, strict=True)):
        expected, end = lm.advance(state, some[2:])
        np.testing.assert_array_equal(hidden[6 * i : 6 * i + 6], expected)
        for part, alone in zip(after, end, strict=True):
            np.testing.assert_array_equal(part[:, i], alone[:, 0])


def test_odds_are_all_columns_with_the_largest_one_and_shares_are_theirs(isa: str) -> None:
    lm, text = network("lstm", 100, (2_100, 6_000)), words(60)
    hidden, _ = lm.advance(lm.start()[1], text)
    found = lm.shortlist(hidden, text)
    logits = hidden.astype(float) @ lm.first_weight.T.astype(float)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    np.testing.assert_allclose(found.odds, odds, rtol=1e-4)
    known = text < SIZE
    cluster = np.digitize(text, [2_100, 6_000])
    column = np.where(known, np.where(cluster > 0, 2_099 + cluster, text), -1)
    np.testing.assert_array_equal(found.column, column)
    share = np.where(known, odds[np.arange(60), column] / odds.sum(1), 0)
    np.testing.assert_allclose(found.share, share, rtol=1e-4)


def test_the_shapes_of_weights_are_those_of_torch() -> None:
    for cell in CELLS:
        for units, cutoffs in SHAPES:
            lm, config = network(cell, units, cutoffs), NetworkConfig(cell, units, cutoffs)
            found = {name: array.shape for name, array in lm.weights.items()}
            assert weight_shapes(config, SIZE) == found
            assert config.ends(SIZE) == lm.cutoffs


F, L = np.float32, np.int64


def test_arrays_that_do_not_fit_are_refused_in_one_line() -> None:
    lm = network("lstm", 5, (7,))
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    parts = [lm.weights[f"cell.{name}"] for name in names]
    cell = _native.Cell("lstm", *parts)
    rows, one, state = np.zeros((2, 5), F), np.array([1]), np.zeros((2, 1, 5), F)
    tails = [np.zeros((1, 5), F), np.zeros((5, 1), F)]
    softmax = _native.AdaptiveSoftmax(np.zeros((3, 5), F), tails, [2, 7])
    none, flat = np.zeros(0, F), np.zeros((0, 0), F)
    odds, signals, change = np.zeros((2, 9), F), np.zeros((2, 3), F), np.zeros((3, 9), F)
    two = np.zeros(2, L)

    def shares(*arrays: np.ndarray, waiting: int = 0, every: int = 4) -> object:
        return _native.adapted_shares(*arrays, waiting, every, 0.1, 0.1)  # type: ignore[arg-type,call-arg]

    wrongs: list[Callable[[], object]] = [
        lambda: _native.Cell("martian", *parts),
        lambda: _native.Cell("gru", *parts),
        lambda: _native.Cell("lstm", parts[0], parts[1], parts[2], parts[3][:-1]),
        lambda: _native.Cell("lstm", flat, flat, none, none),
        lambda: cell.advance(rows.astype(float), one, one, state),
        lambda: cell.advance(rows[:, :4].copy(), one, one, state),
        lambda: cell.advance(rows[:, ::-1], one, one, state),
        lambda: cell.advance(rows, np.array([2]), one, state),
        lambda: cell.advance(rows, np.array([-1]), one, state),
        lambda: cell.advance(rows, one, np.array([2]), state),
        lambda: cell.advance(rows, one, np.array([0]), state),
        lambda: cell.advance(rows, one, np.array([1 << 62, 1 << 62]), np.zeros((2, 2, 5), F)),
        lambda: cell.advance(rows, one, one, state[:1]),
        lambda: cell.advance(rows, one, one, np.zeros((2, 2, 5), F)),
        lambda: softmax.score(rows, one),
        lambda: softmax.score(np.zeros((1, 4), F), one),
        lambda: softmax.dense(np.zeros((1, 4), F)),
        lambda: _native.AdaptiveSoftmax(np.zeros((3, 5), F), [], [3, 7]),
        lambda: _native.AdaptiveSoftmax(np.zeros((3, 5), F), [], []),
        lambda: _native.AdaptiveSoftmax(np.zeros((3, 5), F), tails, [2, 9]),
        lambda: _native.Linear(np.zeros((0, 5), F)),
        lambda: _native.Linear(np.zeros((2, 5), F)).multiply(np.zeros((2, 4), F)),
        lambda: shares(odds, two + 9, signals, change, change, change),
        lambda: shares(odds, two - 2, signals, change, change, change),
        lambda: shares(odds, two, signals[:1], change, change, change),
        lambda: shares(odds, two, signals, change[:2], change, change),
        lambda: shares(odds, two, signals, change, change, change, waiting=4),
        lambda: _native.lstm_backward(np.zeros((3, 8), F), none, rows[:, :2].copy(), rows),
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            wrong()
