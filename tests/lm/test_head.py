import pytest
import torch

from unbounded.lm.head import build_head, word_log_probs


def test_word_probabilities_are_those_of_torchs_own_adaptive_softmax() -> None:
    torch.manual_seed(3)
    head = build_head(16, 300, (20, 100))
    hidden, words = torch.randn(200, 16), torch.randint(0, 300, (200,))
    with torch.inference_mode():
        torch.testing.assert_close(word_log_probs(head, hidden, words), head(hidden, words).output)


def test_cutoffs_beyond_the_vocabulary_are_left_out() -> None:
    assert build_head(8, 50, (20, 100)).cutoffs == [20, 50]
    assert build_head(8, 3, (20, 100)).cutoffs == [1, 3]


@pytest.mark.parametrize("units", [1, 2, 3, 4, 8, 15, 16, 32, 63, 64])
def test_few_units_have_room_for_few_clusters(units: int) -> None:
    head = build_head(units, 50_000, (2_000, 10_000, 40_000))
    narrowest = min(min(weight.shape) for weight in head.parameters())
    assert narrowest >= 1
