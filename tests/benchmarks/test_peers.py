import numpy as np
import pytest

from benchmarks.peers import best_of, knn_lm, plain_cache_seconds
from tests.toy import ToyModel


def test_the_knn_lm_weighs_by_e_to_the_minus_squared_distance() -> None:
    words, squared = np.array([[3, 5, -1]]), np.array([[1.0, 2.0, np.inf]])
    said = knn_lm(words, squared, np.array([5]))
    assert said[0] == pytest.approx(np.exp(-2) / (np.exp(-1) + np.exp(-2)))


def test_the_plain_cache_takes_time_and_changes_nothing(toy: ToyModel) -> None:
    keys, words = np.ones((4, 5), np.float32), np.arange(4)
    hidden, state = toy.start()
    ids = np.array([1, 2, 3, 1, 2, 3])
    assert plain_cache_seconds(toy, hidden, state, ids, keys, words) > 0
    assert keys.min() == keys.max() == 1
    assert words.tolist() == [0, 1, 2, 3]


def test_the_best_of_faiss_is_the_fastest_that_is_as_good_or_else_the_best() -> None:
    found = [
        {"name": "a", "us": 1.0, "perplexity": 110.0, "charged_us": 2.0},
        {"name": "b", "us": 9.0, "perplexity": 99.0, "charged_us": 10.0},
        {"name": "c", "us": 5.0, "perplexity": 100.05, "charged_us": 6.0},
    ]
    assert best_of(found, 100.0)["best_faiss"] == "c"
    assert best_of(found, 100.0)["best_faiss_us"] == 5.0
    assert best_of(found, 90.0)["best_faiss"] == "b"
    assert not best_of(found, 90.0)["best_faiss_as_good"]
    assert best_of([], 90.0) == {}
