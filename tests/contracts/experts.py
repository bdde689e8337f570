"""Every expert, made small: whom the law is tested over."""

from collections.abc import Callable

import numpy as np

from tests.small import (
    TOY,
    adapted,
    adapted_transformer,
    dynamic,
    dynamic_head,
    dynamic_transformer,
)
from unbounded.corpus import Vocabulary
from unbounded.datastore import IVFPQ, Auto, Flat
from unbounded.experts import (
    Cache,
    Expert,
    Kernel,
    NGram,
    Offline,
    Spelling,
    Static,
    Uniform,
    Unigram,
)
from unbounded.experts.cache import Neighborhood
from unbounded.experts.ngram import counted_apart
from unbounded.types import Hidden, Ids

SIZE = 20
# Distances are float32: a kernel that ends at the k-th neighbor takes a difference of two nearly
# equal ones there, and what is left has this much of a probability as its rounding.
ROUNDING = 1e-6


def spelling() -> Expert:
    """Twelve words that the network knows, the sentence end among them, and eight OOV words."""
    vocabulary = Vocabulary(
        [f"{a}{b}" for a in ("walk", "talk", "so-") for b in "ae"] + list("🦜é1,.")
    )
    vocabulary.encode(["walking", "talking", "walka-e", "🦜🦜", "12.5", "éa", "zorble", "x" * 100])
    return Spelling(vocabulary)


EXPERTS: dict[str, Callable[[], Expert]] = {
    "static": lambda: Static(TOY),
    "adapted": adapted,
    "adapted transformer": adapted_transformer,
    "dynamic_head": dynamic_head,
    "dynamic_head transformer": dynamic_transformer,
    "dynamic": dynamic,
    "dynamic gru": lambda: dynamic("gru"),
    "uniform": lambda: Uniform(SIZE),
    "unigram": lambda: Unigram(SIZE),
    "ngram": lambda: NGram(SIZE),
    "train_ngram": lambda: primed(),
    "ngrams": lambda: NGram(SIZE, base=counted_apart(primed().state())),
    "ngram open": lambda: NGram(12, open=True),
    "spelling": spelling,
    "unbounded flat": lambda: Cache(Flat(5), SIZE, k=4),
    "unbounded auto": lambda: Cache(Auto(5), SIZE, k=4),
    "unbounded epanechnikov": lambda: Cache(
        Flat(5), SIZE, k=3, kernel=Kernel("epanechnikov", sharpness=1.0)
    ),
    "unbounded fixed bandwidth": lambda: Cache(
        Flat(5),
        SIZE,
        k=8,
        kernel=Kernel(bandwidth=0.7, sharpness=1.0),
        normalize=True,
    ),
    "unbounded growing k": lambda: Cache(Flat(5), SIZE, k=Neighborhood(8, large=3)),
    "part of a state": lambda: Cache(Flat(2), SIZE, k=4, part=slice(1, 3)),
    "knn": lambda: Offline(Flat(5), SIZE, k=4),
    "knn closed": lambda: closed(),
    "local": lambda: Cache(Flat(5, window=6), SIZE, k=4),
    "local of one": lambda: Cache(Flat(5, window=1), SIZE, k=4),
}


def closed() -> Offline:
    """A kNN-LM whose memory was filled before the stream begins."""
    text = np.random.default_rng(9).integers(0, SIZE, 50)
    offline = Offline(Flat(5), SIZE, k=4)
    offline.score(states_of(text), text)
    offline.close(temperature=2.0)
    return offline


def primed() -> NGram:
    """One that has read a text of known words before the stream begins."""
    text = np.random.default_rng(8).integers(0, TOY.base_size, 200)
    ngram = NGram(SIZE)
    ngram.score(np.empty((200, 0)), text)
    return ngram


OPEN = ("spelling",)
"""Words without a number have a share too; tests/experts/test_spelling.py adds up all strings."""

WHOLE = ("knn", "knn closed")
"""Those that tell their whole state or nothing."""


def states_of(words: Ids) -> Hidden:
    """The hidden state before each word."""
    first, state = TOY.start()
    return np.concatenate([first, TOY.advance(state, words)[0]])[:-1]


CODED: dict[str, Callable[[], Expert]] = {
    "auto": lambda: Cache(Auto(5, exact=256), SIZE, k=32),
    "ivfpq": lambda: Cache(IVFPQ(5, lists=8, probes=4, code_size=5, train_at=256), SIZE, k=32),
}
