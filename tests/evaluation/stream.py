"""A toy model that reads small streams, and streams for it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from tests.small import adapted, dynamic, dynamic_head
from tests.toy import ToyModel
from unbounded.corpus import SENTENCE_END, Block, Vocabulary
from unbounded.datastore import Flat
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.rows import ScoredBlock, Watcher, experts_of, make_rows
from unbounded.experts import Cache, Expert, NGram, Static, Uniform, Unigram
from unbounded.mixture import Gated
from unbounded.model import OnlineModel
from unbounded.presets import OFFLINE
from unbounded.presets import PRESETS as EVERY_ROW

ROWS = {name: experts for name, experts in EVERY_ROW.items() if name not in OFFLINE}
"""Those that know what to do with OOV words."""

WIDTH = 5
KNOWN = [f"known{i}" for i in range(11)]
NEW = [f"new{i}" for i in range(8)]
FULL = len(KNOWN) + 1 + len(NEW)
"""The full vocabulary: the network's words, the sentence end among them, and the OOV words."""

texts = st.lists(st.sampled_from([*KNOWN, *NEW, SENTENCE_END]), min_size=1, max_size=40)
cuts = st.lists(st.integers(0, 40), max_size=6)


def new_model(rows: Iterable[str] = ROWS, full: int = FULL) -> OnlineModel:
    """A model that has read nothing, with the experts that the rows need."""
    lm = ToyModel(base_size=len(KNOWN) + 1, width=WIDTH)
    made: dict[str, Expert] = {
        "static": Static(lm),
        "uniform": Uniform(full),
        "adapted": adapted(),
        "dynamic_head": dynamic_head(),
        "dynamic": dynamic(),
        "unigram": Unigram(full),
        "ngram": NGram(full),
        "ngrams": NGram(full),
        "cache_128": Cache(Flat(WIDTH, window=2), full, k=4),
        "cache_1024": Cache(Flat(WIDTH, window=4), full, k=4),
        "local": Cache(Flat(WIDTH, window=6), full, k=4),
        "unbounded": Cache(Flat(WIDTH), full, k=4),
    }
    made["ngrams"].score(np.empty((40, 0)), np.arange(40) % 7)
    experts = {name: made[name] for name in experts_of(make_rows(list(rows)))}
    return OnlineModel(lm, Vocabulary(KNOWN), experts, Gated(len(experts), groups=[WIDTH]))


def block_of(words: Sequence[str]) -> Block:
    return Block(
        list(words), ("text",), np.zeros(len(words), np.int64), np.ones(len(words), np.int64)
    )


def cut(words: Sequence[str], cuts: Iterable[int]) -> list[Block]:
    """The words in blocks that end at the cuts."""
    edges = sorted({0, len(words), *(edge for edge in cuts if edge < len(words))})
    return [block_of(words[a:b]) for a, b in pairwise(edges)]


def evaluate(
    words: Sequence[str],
    rows: Sequence[str] = tuple(ROWS),
    cuts: Iterable[int] = (),
    every: int = 10,
    watchers: Sequence[Watcher] = (),
) -> Evaluation:
    evaluation = Evaluation({}, FULL, make_rows(rows, WIDTH))
    evaluation.run(new_model(rows), cut(words, cuts), every=every, watchers=watchers)
    return evaluation


def some_words(count: int, seed: int = 0) -> list[str]:
    """A stream with known words, OOV words and sentence ends, of which the last word is one."""
    drawn = np.random.default_rng(seed).choice([*KNOWN, *NEW, SENTENCE_END], count - 1)
    return [*map(str, drawn), SENTENCE_END]


class Keeper:
    """A watcher that keeps every block it is told of."""

    def __init__(self) -> None:
        self.blocks: list[ScoredBlock] = []

    def __call__(self, block: ScoredBlock) -> None:
        self.blocks.append(block)

    def probs(self, row: str) -> np.ndarray:
        return np.concatenate([block.probs[row] for block in self.blocks])
