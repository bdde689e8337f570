import numpy as np
import pytest

from experiments.neighbors import KEYS, Keys
from tests.small import recurrent
from tests.toy import ToyModel
from unbounded.errors import SettingError
from unbounded.experts.cache import unit_length
from unbounded.lm import NetworkConfig, RecurrentModel

TEXT = np.arange(200) % 7


def lstm() -> RecurrentModel:
    return recurrent(60, NetworkConfig(units=16, cutoffs=(5, 20)), seed=7)


@pytest.mark.parametrize("name", KEYS)
def test_the_key_of_a_step_is_known_before_its_word(name: str) -> None:
    lm = lstm()
    words = np.array([3, 1, 4, 1, 5])
    first, state = lm.start()
    hidden = np.concatenate([first, lm.advance(state, words)[0]])[:-1]
    whole = Keys(name, lm, TEXT).of(hidden, words)
    assert whole.shape == (5, Keys(name, lm, TEXT).width)
    cut = Keys(name, lm, TEXT)
    parts = [cut.of(hidden[a:b], words[a:b]) for a, b in ((0, 2), (2, 5))]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-5, atol=1e-6)
    changed = np.array([3, 1, 4, 1, 9])
    np.testing.assert_array_equal(Keys(name, lm, TEXT).of(hidden, changed), whole)


def test_the_cell_state_goes_with_the_hidden_state() -> None:
    """h = o · tanh(c), with o between 0 and 1: so |h| < |tanh(c)|, and the signs agree."""
    lm = lstm()
    words = np.array([3, 1, 4])
    first, state = lm.start()
    hidden = np.concatenate([first, lm.advance(state, words)[0]])[:-1]
    both = Keys("both", lm).of(hidden, words)
    cells = both[:, lm.width :]
    assert (np.abs(hidden) <= np.abs(np.tanh(cells)) + 1e-6).all()
    assert (np.sign(hidden) == np.sign(cells)).all()


def test_principal_axes_keep_the_distances_that_matter() -> None:
    lm = lstm()
    keys = Keys("pca", lm, TEXT)
    assert keys.width == lm.width // 2
    first, state = lm.start()
    hidden = np.concatenate([first, lm.advance(state, TEXT)[0]])[:-1]
    whole, half = unit_length(hidden), keys.of(hidden, TEXT)
    kept = np.square(half - half[:1]).sum() / np.square(whole - whole[:1]).sum()
    assert 0.9 < kept <= 1.001
    with pytest.raises(SettingError, match="needs the training text"):
        Keys("pca", lm)


def test_a_network_without_a_cell_state_and_an_unknown_key_are_refused() -> None:
    with pytest.raises(SettingError, match="needs an LSTM"):
        Keys("cell", ToyModel(5, 3))
    with pytest.raises(SettingError, match="unknown"):
        Keys("soul", ToyModel(5, 3))
