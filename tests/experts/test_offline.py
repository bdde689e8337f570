"""The kNN-LM as published, by its formula; and what tuning it finds."""

import numpy as np

from tests.small import TOY
from unbounded.datastore import Flat
from unbounded.experts import Offline
from unbounded.experts.offline import SHARES, TEMPERATURES, tuned
from unbounded.presets import new_mixture

RANDOM = np.random.default_rng(3)
KEYS = RANDOM.normal(size=(60, 5)).astype(np.float32)
WORDS = RANDOM.integers(0, 12, 60)
ASKED = RANDOM.normal(size=(20, 5)).astype(np.float32)
CAME = RANDOM.integers(0, 12, 20)


def filled(k: int = 7) -> Offline:
    offline = Offline(Flat(5), 12, k=k)
    offline.score(KEYS, WORDS)
    offline.close()
    return offline


def softmax_of_distances(word: int, state: np.ndarray, k: int, temperature: float) -> float:
    squared = ((KEYS.astype(np.float64) - state) ** 2).sum(axis=1)
    near = np.argsort(squared)[:k]
    weights = np.exp(-squared[near] / temperature)
    return float(weights[WORDS[near] == word].sum() / weights.sum())


def test_it_is_a_softmax_of_minus_squared_distances() -> None:
    got = filled().score(ASKED, CAME)
    expected = [softmax_of_distances(w, h, 7, 1.0) for w, h in zip(CAME, ASKED, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-7)


def test_as_published_a_quarter_is_the_neighbors_for_ever() -> None:
    mixture = new_mixture("knnlm", ("static", "knn"), 5)
    table = RANDOM.random((9, 2))
    expected = 0.75 * table[:, 0] + 0.25 * table[:, 1]
    np.testing.assert_allclose(mixture.score(table).prob, expected)
    np.testing.assert_allclose(mixture.score(table).prob, expected)


def test_a_closed_memory_learns_nothing() -> None:
    offline = filled()
    first = offline.score(ASKED, CAME)
    np.testing.assert_array_equal(offline.score(ASKED, CAME), first)
    assert len(offline.cache.datastore) == len(KEYS)


def test_tuning_finds_the_best_of_the_grid() -> None:
    static = TOY.prob(ASKED, CAME)
    temperature, share, nats = tuned(filled(), ASKED, CAME, static)

    def of(one: float, part: float) -> float:
        votes = np.array(
            [softmax_of_distances(w, h, 7, one) for w, h in zip(CAME, ASKED, strict=True)]
        )
        return float(-np.log(part * votes + (1 - part) * static).mean())

    best = min((of(one, part), one, part) for one in TEMPERATURES for part in SHARES)
    np.testing.assert_allclose([nats, temperature, share], best, rtol=1e-4)
