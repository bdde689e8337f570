"""Words and their ids: dense, in order of first sight, never reused, never reordered."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import final

import numpy as np

from unbounded.errors import CorpusError
from unbounded.types import Ids

SENTENCE_END = "</s>"
"""The word that ends each sentence; the tokenizer never makes it out of text."""


@final
class Vocabulary:
    """A word list that grows as it is read; its first `base_size` words are the network's.

    The sentence end is always a base word: the last one, unless it is given elsewhere.

    >>> v = Vocabulary(["the", "cat"])
    >>> v.decode(np.arange(v.base_size))
    ['the', 'cat', '</s>']
    >>> v.encode(["the", "dog"]).tolist(), len(v), v.base_size
    ([0, 3], 4, 3)
    >>> v.lookup(["dog", "bird"]).tolist(), len(v)
    ([3, -1], 4)
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words: list[str] = []
        self._ids = _Growing(self._words)
        for word in words:
            self._ids[word]
        self._ids[SENTENCE_END]
        self._base_size = len(self._words)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> "Vocabulary":
        """Put frequent words first, as the adaptive softmax needs them; ties in the order given."""
        return cls(sorted(counts, key=counts.__getitem__, reverse=True))

    @classmethod
    def from_text(cls, text: str) -> "Vocabulary":
        """Read back what `to_text` wrote; all words are base words."""
        words = text.removesuffix("\n").split("\n")
        if len(set(words)) < len(words):
            ((twice, _),) = Counter(words).most_common(1)
            raise CorpusError(
                f"the vocabulary has the word {twice!r} twice; each line must hold a new word; "
                "restore the file from where it was saved"
            )
        if SENTENCE_END not in words:
            raise CorpusError(
                f"the vocabulary has no {SENTENCE_END!r} among its {len(words)} words; "
                "one must end each sentence; restore the file from where it was saved"
            )
        return cls(words)

    def to_text(self) -> str:
        """Give one word a line, in the order of the ids."""
        return "".join(f"{word}\n" for word in self._words)

    def copy(self) -> "Vocabulary":
        """Give a vocabulary that grows on its own from here."""
        fork = Vocabulary()
        fork._words[:] = self._words
        fork._ids.clear()
        fork._ids.update(self._ids)
        fork._base_size = self._base_size
        return fork

    @property
    def base_size(self) -> int:
        """How many words the network was trained on."""
        return self._base_size

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def encode(self, words: Iterable[str]) -> Ids:
        """Reading: the ids of the words; a word never seen before gets the next id."""
        return np.fromiter(map(self._ids.__getitem__, words), dtype=np.int64)

    def restore(self, words: list[str]) -> None:
        """Take back words that a vocabulary with the same base once gave ids, in that order."""
        fresh = len(self._words)
        self._words += words
        self._ids.update(zip(words, range(fresh, len(self._words)), strict=True))
        if len(self._ids) != len(self._words):
            raise CorpusError(
                f"{len(self._words) - len(self._ids)} words to take back are there already; "
                "restore them from where they were saved"
            )

    def lookup(self, words: Iterable[str]) -> Ids:
        """Asking: the ids of the words, -1 for OOV words; teaches nothing."""
        get = self._ids.get
        return np.fromiter((get(word, -1) for word in words), dtype=np.int64)

    def decode(self, ids: Ids | Sequence[int]) -> list[str]:
        """Give the words of the ids."""
        ids = np.asarray(ids)
        if len(ids) and ids.dtype.kind not in "iu":
            raise CorpusError(f"found {ids.dtype} for word ids; they must be whole numbers")
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(self._words)):
            raise CorpusError(
                f"found word ids from {ids.min()} to {ids.max()}; the vocabulary has ids from 0 "
                f"to {len(self._words) - 1}; use the vocabulary that made them"
            )
        return list(map(self._words.__getitem__, ids.tolist()))


class _Growing(dict[str, int]):
    """A dictionary that hands out the next id on a miss, so that a hit never leaves C."""

    def __init__(self, words: list[str]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, word: str) -> int:
        # The saved form is one word a line in UTF-8: what would not come back must not get in.
        if word.split() != [word] or any("\ud800" <= letter <= "\udfff" for letter in word):
            raise CorpusError(
                f"{word!r} cannot be a word; it must have letters and no white space; "
                "split the text with a Tokenizer first"
            )
        number = self[word] = len(self._words)
        self._words.append(word)
        return number
