import numpy as np
import pytest

from benchmarks.peers import knn_lm, plain_cache_seconds
from tests.toy import ToyModel


def test_the_knn_lm_weighs_by_e_to_the_minus_squared_distance() -> None:
    words, squared = np.array([[3, 5, -1]]), np.array([[1.0, 2.0, np.inf]])
    said = knn_lm(words, squared, np.array([5]), size=8)
    assert said[0] == pytest.approx(np.exp(-2) / (np.exp(-1) + np.exp(-2)))


def test_the_plain_cache_takes_time_and_changes_nothing(toy: ToyModel) -> None:
    keys, words = np.ones((4, 5), np.float32), np.arange(4)
    hidden, state = toy.start()
    ids = np.array([1, 2, 3, 1, 2, 3])
    assert plain_cache_seconds(toy, hidden, state, ids, keys, words) > 0
    assert keys.min() == keys.max() == 1
    assert words.tolist() == [0, 1, 2, 3]
