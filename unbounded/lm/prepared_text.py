"""A text made ready for training: ids to learn from, ids to validate on, a vocabulary."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from unbounded.corpus import Sentence, Vocabulary
from unbounded.errors import TrainingError
from unbounded.shapes import Int
from unbounded.types import Ids

VALID_TOKENS = 100_000
"""How much of the text after the training tokens is kept for validation when none is given."""


@dataclass(frozen=True)
class TrainingText:
    """Training ids, how often each word occurs in them, and validation ids (-1 for OOV words).

    Where the vocabulary was limited, the id of all rarer words is its size: `<unk>`, read by the
    network and never predicted.
    """

    vocabulary: Vocabulary
    words: Ids
    counts: Int[np.ndarray, " size"]
    valid: Int[np.ndarray, " valid"]


def training_text(
    sentences: Iterable[Sentence],
    tokens: int,
    valid: Iterable[Sentence] | None = None,
    *,
    vocabulary_size: int | None = None,
) -> TrainingText:
    """Take the first `tokens` words to train on; without `valid`, the next words validate.

    A text too short to leave any over gives its last twentieth to validation. The vocabulary is
    all words, or the most frequent `vocabulary_size` where the network must be small.
    """
    stream = chain.from_iterable(sentence.words for sentence in sentences)
    train = list(islice(stream, tokens))
    if valid is not None:
        held = list(islice(chain.from_iterable(s.words for s in valid), VALID_TOKENS))
    else:
        held = list(islice(stream, VALID_TOKENS))
        if not held:
            held = train[len(train) - len(train) // 20 :]
            train = train[: len(train) - len(held)]
    if not train or not held:
        raise TrainingError(
            f"found {len(train)} words to train on and {len(held)} to validate on; "
            f"both are needed: give more text"
        )
    counts = Counter(train)
    vocabulary = Vocabulary.from_counts(dict(counts.most_common(vocabulary_size)))
    words = vocabulary.lookup(train)
    words[words < 0] = vocabulary.base_size
    known = vocabulary.decode(np.arange(len(vocabulary)))
    return TrainingText(
        vocabulary=vocabulary,
        words=words,
        counts=np.array([counts[word] for word in known]),
        valid=vocabulary.lookup(held),
    )
