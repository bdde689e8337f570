"""Bits of the open protocol are a code length: what cannot be compressed is not, however written.

Set UNBOUNDED_TORTURE to a number to try so many seeds of each source, from a random one on.
"""

import os
import secrets

import numpy as np
import pytest

from tests.memory.texts import KNOWN
from tests.small import SMALL
from unbounded.corpus import Line, Tokenizer, Vocabulary
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.evaluation.rows import Row
from unbounded.lm import Pretrained

ROUNDS = int(os.environ.get("UNBOUNDED_TORTURE", "1"))
SEEDS = [1] if ROUNDS == 1 else [secrets.randbelow(1 << 32) + i for i in range(ROUNDS)]

LUCK = 40
"""Bits by which a code may beat the entropy: one text in 2⁴⁰ is that lucky, whatever the code."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CJK = "".join(map(chr, range(0x4E00, 0x9F00)))
BYTES = "".join(letter for letter in map(chr, range(0x1200, 0x1400)) if letter.isalpha())[:256]
SUPPLEMENT = "".join(map(chr, range(0x20000, 0x28000)))
"""Letters without case, of two to four bytes each; the third stands for bytes."""

SOURCES = {
    "letters in words of 5,000": (LETTERS, 5_000),
    "letters in words of 300": (LETTERS, 300),
    "letters without spaces": (LETTERS, 20_000),
    "CJK without spaces": (CJK, 5_000),
    "bytes as letters": (BYTES, 5_000),
    "rare characters without spaces": (SUPPLEMENT, 5_000),
    "one of two letters": ("ab", 5_000),
}


@pytest.mark.torture
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_incompressible_never_scores_below_its_entropy(source: str, seed: int) -> None:
    alphabet, length = SOURCES[source]
    many = max(5_000, length)
    print(f"seed {seed}")
    drawn = np.random.default_rng(seed).integers(0, len(alphabet), many)
    words = "".join(alphabet[number] for number in drawn.tolist())
    text = " ".join(words[at : at + length] for at in range(0, many, length))
    config = EvaluationConfig(rows=("static", "full"), protocol="open", oov="unk")
    model = Pretrained(SMALL["lstm"], Vocabulary(KNOWN), Tokenizer(), {}, ())
    found = evaluate(model, [Line("a", 1, text)], config)
    entropy = np.log2(len(alphabet))
    for row in found.rows:
        bits = row.tally.nats / np.log(2)
        assert bits >= many * entropy - LUCK
        # As many as were written, though words were cut.
        assert many <= row.tally.characters <= len(text) + 1
        assert row.tally.bits_per_character == pytest.approx(bits / row.tally.characters)


def test_the_best_weights_in_hindsight_hold_for_words_of_tiny_probability() -> None:
    """Less than a short float can hold, and one row must not make the whole figure no number."""
    row = Row("static", ("static", "spelling"))
    row.fit(np.full((2, 2), 0.5), beside=True)
    row.compare(np.array([[0.5, 0.1], [0.0, 1e-200]]))
    row.compare(np.array([[0.5, 0.1]]))
    # Two words with weight w of 0.5 and one with 1 - w of 1e-200: the best w is about 2/3.
    assert np.log(row.in_hindsight()) == pytest.approx(200 * np.log(10) / 3, rel=0.01)
