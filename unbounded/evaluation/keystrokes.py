"""Keystrokes saved: what a keyboard that suggests words is worth on a text, as it learns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unbounded.corpus import SENTENCE_END
from unbounded.lm import Pretrained
from unbounded.model import OnlineModel
from unbounded.presets import build_preset

SUGGESTIONS = (1, 3, 5)
"""Words that a keyboard shows at once."""


@dataclass(frozen=True)
class Keystrokes:
    """Keys of a text letter by letter, and with so many suggestions at every letter."""

    words: int
    letter_by_letter: int
    with_suggestions: dict[int, int]

    @property
    def saved(self) -> dict[int, float]:
        """The part of all keys that need not be pressed."""
        return {n: 1 - k / self.letter_by_letter for n, k in self.with_suggestions.items()}


def keystrokes(
    model: Pretrained,
    preset: str,
    words: Iterable[str],
    show: Callable[[int, str], None] = lambda done, note: None,
) -> Keystrokes:
    """Type words with the preset's suggestions; each word is learned once it is there.

    A word costs its letters and a space. Before each letter the likeliest words that begin with
    what was typed are shown, and one key takes one of them, its space included. Marks are typed,
    and a sentence end is one key.
    """
    online = build_preset(model, preset)
    offered = np.empty(0, bool)
    count, plain, keys = 0, 0, dict.fromkeys(SUGGESTIONS, 0)
    for count, word in enumerate(words, 1):
        show(count, "")
        needed = 1 if word == SENTENCE_END else len(word) + word[0].isalnum()
        plain += needed
        after = dict.fromkeys(SUGGESTIONS, needed)
        if word != SENTENCE_END and word[0].isalnum():
            offered = _offered(online, offered)
            after = _typed(online, offered, word)
        for n in SUGGESTIONS:
            keys[n] += after[n]
        online.read([word])
    return Keystrokes(count, plain, keys)


def _offered(online: OnlineModel, before: np.ndarray) -> np.ndarray:
    """Which words a keyboard would show: no marks."""
    new = online.vocabulary.decode(np.arange(len(before), len(online.vocabulary)))
    more = [word[0].isalnum() for word in new]
    return np.concatenate([before, np.array(more, bool)])


def _typed(online: OnlineModel, offered: np.ndarray, word: str) -> dict[int, int]:
    """Keys for a word, by how many words are suggested."""
    keys = dict.fromkeys(SUGGESTIONS, len(word) + 1)
    (number,) = online.vocabulary.lookup([word]).tolist()
    if number < 0:
        return keys
    probs = online.predict().dense(len(offered))[0]
    likelier = np.flatnonzero((probs > probs[number]) & offered)
    ahead = online.vocabulary.decode(likelier)
    for typed in range(len(word)):
        if typed:
            ahead = [other for other in ahead if other.startswith(word[:typed])]
        for n in SUGGESTIONS:
            if len(ahead) < n:
                keys[n] = min(keys[n], typed + 1)
        if len(ahead) < min(SUGGESTIONS):
            break
    return keys
