"""pyctcdecode with a model that reads on: hot words without a list, reading a glossary is enough.

from pyctcdecode import Alphabet, BeamSearchDecoderCTC
from unbounded.integrations.pyctcdecode_lm import ReadingLM

lm = ReadingLM(Scorer("my-model"))
decoder = BeamSearchDecoderCTC(Alphabet.build_alphabet(labels), lm)
lm.read("glossary, agenda, names of who is present")
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from unbounded.corpus import SENTENCE_END
from unbounded.errors import ModelError
from unbounded.experts import Spelling
from unbounded.integrations.kenlm_scorer import Scorer, State
from unbounded.types import Probs

try:
    from pyctcdecode.language_model import AbstractLanguageModel
except ImportError:
    # It asks for a numpy before version 2 and works with later ones: no extra can hold both.
    raise ModelError(
        "pyctcdecode is not installed, and asks for an older numpy than it needs; "
        "pip install --no-deps pyctcdecode pygtrie"
    ) from None

NEW = 0.02
"""The share of words never read before among all words; they are spelled."""


@final
class ReadingLM(AbstractLanguageModel):  # type: ignore[misc]
    """A `Scorer` as pyctcdecode asks: alpha · ln p + beta for a word, alpha · ln p for a beginning.

    pyctcdecode has no state where it asks for the beginning of a word, so that is of words as often
    as they come, in the training text and in what was read, and of new ones as they are spelled.
    """

    def __init__(self, scorer: Scorer, alpha: float = 0.5, beta: float = 1.5) -> None:
        self.alpha, self.beta = alpha, beta
        self._scorer = scorer
        self._beginnings = Beginnings(scorer)

    @property
    def order(self) -> int:
        """How many words apart two beams must be to be held apart."""
        return self._scorer.order

    def get_start_state(self) -> State:
        """The beginning of a sentence, behind what was read."""
        state = State()
        self._scorer.BeginSentenceWrite(state)
        return state

    def score_partial_token(self, partial_token: str) -> float:
        """How likely it is that a word begins so."""
        return self.alpha * math.log(self._beginnings.prob(partial_token))

    def score(
        self, prev_state: State, word: str, is_last_word: bool = False
    ) -> tuple[float, State]:
        """A word behind a state, with the sentence end if it is the last; and the state after."""
        state = State()
        log10 = self._scorer.BaseScore(prev_state, word, state)
        if is_last_word:
            log10 += self._scorer.BaseScore(state, SENTENCE_END, State())
        return self.alpha * log10 * math.log(10) + self.beta, state

    def read(self, text: str) -> None:
        """Learn a text: a glossary, or what was just said."""
        self._scorer.read(text)
        self._beginnings = Beginnings(self._scorer)

    def reset_params(self, **params: Any) -> None:
        """pyctcdecode's way to set alpha and beta."""
        self.alpha = float(params.get("alpha") or self.alpha)
        self.beta = float(self.beta if params.get("beta") is None else params["beta"])


@final
class Beginnings:
    """The probability that a word, whatever comes before it, begins with some letters."""

    def __init__(self, scorer: Scorer) -> None:
        self._split = scorer.split
        online = scorer.online
        words = online.vocabulary.decode(np.arange(len(online.vocabulary)))
        order = sorted(range(len(words)), key=words.__getitem__)
        self._words = [words[i] for i in order]
        probs = _frequencies(scorer, len(words))
        self._sums = np.concatenate([[0.0], np.cumsum(probs[order])])
        self._spelling = online.experts.get("spelling")

    def prob(self, beginning: str) -> float:
        """Above zero, and never less than that of a longer beginning."""
        parts = self._split(beginning)
        if not parts:
            return 1.0
        first, last = parts[0], parts[0] + "\U0010ffff"
        rows = bisect_left(self._words, first), bisect_left(self._words, last)
        known = float(self._sums[rows[1]] - self._sums[rows[0]])
        # A memory of the first edition does not spell.
        spelled = self._spelling.beginning(first) if isinstance(self._spelling, Spelling) else 0.0
        return max((1 - NEW) * known + NEW * spelled, 1e-300)


def _frequencies(scorer: Scorer, size: int) -> Probs:
    """How often each word comes: half by the training text, half by what was read since."""
    halves = [scorer.training_counts(size)]
    unigram = scorer.online.experts.get("unigram")
    if unigram is not None:
        state: Mapping[str, np.ndarray] = unigram.state()
        halves.append(np.pad(state["counts"], (0, max(0, size - len(state["counts"]))))[:size])
    there = [half / half.sum() for half in halves if half.sum()]
    found: Probs = sum(there, np.zeros(size)) / max(len(there), 1)
    return found
