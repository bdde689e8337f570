import pytest
import torch

from unbounded.lm.pytorch import build_head, learn_words, reset_head, word_log_probs


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


def test_the_slopes_are_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(3)
    head = build_head(16, 40, [5, 12])
    reset_head(head, generator)
    hidden = torch.randn(6, 16, generator=generator)
    words = torch.tensor([0, 4, 5, 7, 39, 1])
    leaf = hidden.clone().requires_grad_()
    expected = head(leaf, words)
    (expected.output.sum() * -0.25).backward()
    weights = [weight.grad for weight in head.parameters()]
    head.zero_grad()
    found, slope = learn_words(head, hidden, words, 0.25)
    torch.testing.assert_close(found, expected.output.detach())
    torch.testing.assert_close(slope, leaf.grad)
    torch.testing.assert_close([weight.grad for weight in head.parameters()], weights)
    head.zero_grad()
    learn_words(head, hidden[:2], words[:2], 1.0)
    assert [weight.grad is None for weight in head.parameters()] == [False, *[True] * 4]
