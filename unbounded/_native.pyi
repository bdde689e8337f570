"""The hot loops, in C++ (`native/`); every function has a plain definition it is tested against."""

from collections.abc import Sequence

import numpy as np

_Voting = tuple[bool, float, float, int, np.ndarray]
_Tree = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int]

def isa() -> str: ...
def isas() -> list[str]: ...
def set_isa(name: str) -> None: ...
def set_threads(threads: int) -> None: ...
def stay_alone(alone: bool) -> None: ...
def threads() -> int: ...

class QuantizedLists:
    """Codes in inverted lists that are split as they grow."""

    def __init__(
        self,
        mean: np.ndarray,
        axes: np.ndarray,
        steps: np.ndarray,
        split_every: int,
        candidates: int,
        fewest: int,
        stretches: int,
        /,
    ) -> None: ...
    @property
    def entries(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def room(self) -> int: ...
    def add(self, keys: np.ndarray, words: np.ndarray, /) -> None: ...
    def retag(self, words: np.ndarray, /) -> None: ...
    def search(
        self, queries: np.ndarray, k: int, own_past: bool = ...
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def unordered(self, queries: np.ndarray, k: int, /) -> tuple[np.ndarray, np.ndarray]: ...
    def score(
        self,
        keys: np.ndarray,
        words: np.ndarray,
        known_words: np.ndarray,
        k: int,
        votes: _Voting,
        learn: bool = True,
    ) -> np.ndarray: ...
    def state(self) -> dict[str, np.ndarray]: ...
    def load(self, state: dict[str, np.ndarray], /) -> None: ...
    def since(self, first: int, /) -> dict[str, np.ndarray] | None: ...
    def grow(self, codes: np.ndarray, lists: np.ndarray, /) -> None: ...
    def encoded(self, keys: np.ndarray, /) -> tuple[np.ndarray, ...]: ...

def exact_search(
    queries: np.ndarray, keys: np.ndarray, low: np.ndarray, high: np.ndarray, k: int, /
) -> tuple[np.ndarray, np.ndarray]: ...
def exact_score(
    queries: np.ndarray,
    keys: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    k: int,
    key_words: np.ndarray,
    words: np.ndarray,
    votes: _Voting,
    /,
) -> np.ndarray: ...
def count_votes(
    squared: np.ndarray, words: np.ndarray, targets: np.ndarray, votes: _Voting, /
) -> np.ndarray: ...
def merged_score(
    queries: np.ndarray,
    keys: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    k: int,
    found: dict[int, tuple[np.ndarray, np.ndarray]],
    parts: int,
    entries: int,
    known_words: np.ndarray,
    words: np.ndarray,
    votes: _Voting,
    /,
) -> tuple[np.ndarray, np.ndarray]: ...
def mixture_online(
    table: np.ndarray, by_rate: np.ndarray, trust: np.ndarray, /
) -> tuple[np.ndarray, np.ndarray, int]: ...
def mixture_gate(
    table: np.ndarray, context: np.ndarray, plain: np.ndarray, gate: tuple[np.ndarray, ...], /
) -> tuple[np.ndarray, np.ndarray]: ...
def mixture_weigh(
    context: np.ndarray, plain: np.ndarray, gate: tuple[np.ndarray, ...], /
) -> np.ndarray: ...
def ngram_chain(nodes: np.ndarray, /) -> np.ndarray: ...
def ngram_check(heads: np.ndarray, nodes: np.ndarray, counts: np.ndarray, /) -> None: ...
def ngram_weigh(tree: _Tree, /) -> np.ndarray: ...
def ngram_ask(words: np.ndarray, size: int, tree: _Tree, said: np.ndarray, /) -> np.ndarray: ...
def ngram_walk(words: np.ndarray, size: int, tree: _Tree, /) -> np.ndarray: ...
def ngram_read(
    words: np.ndarray, size: int, tree: _Tree, probs: np.ndarray, /
) -> tuple[int, int]: ...
def oov_features(
    letters: np.ndarray, lengths: np.ndarray, size: int, /
) -> tuple[np.ndarray, np.ndarray]: ...
def oov_add_up(
    features: np.ndarray,
    ends: np.ndarray,
    weights: np.ndarray,
    apart: np.ndarray,
    squares: np.ndarray,
    products: np.ndarray,
    /,
) -> None: ...
def oov_look_up(
    features: np.ndarray, ends: np.ndarray, weights: np.ndarray, out: np.ndarray, /
) -> None: ...
def spelling_ask(
    symbols: np.ndarray,
    starts: np.ndarray,
    shut: np.ndarray,
    tables: tuple[np.ndarray, ...],
    bits: int,
    /,
) -> np.ndarray: ...
def spelling_read(
    symbols: np.ndarray,
    starts: np.ndarray,
    shut: np.ndarray,
    new: np.ndarray,
    tables: tuple[np.ndarray, ...],
    bits: int,
    ask: bool,
) -> tuple[np.ndarray, np.ndarray]: ...

class Linear:
    def __init__(self, weight: np.ndarray, /) -> None: ...
    def multiply(self, rows: np.ndarray, /) -> np.ndarray: ...

class Cell:
    def __init__(
        self,
        kind: str,
        input: np.ndarray,
        inner: np.ndarray,
        input_bias: np.ndarray,
        inner_bias: np.ndarray,
        /,
    ) -> None: ...
    def advance(
        self, vectors: np.ndarray, place: np.ndarray, lengths: np.ndarray, state: np.ndarray, /
    ) -> np.ndarray: ...

class AdaptiveSoftmax:
    def __init__(
        self, head: np.ndarray, tails: Sequence[np.ndarray], cutoffs: Sequence[int], /
    ) -> None: ...
    def score(
        self, states: np.ndarray, words: np.ndarray, odds: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
    def dense(self, states: np.ndarray, /) -> np.ndarray: ...

class DynamicHead:
    def __init__(
        self, head: np.ndarray, tails: Sequence[np.ndarray], cutoffs: Sequence[int], /
    ) -> None: ...
    @property
    def softmax(self) -> AdaptiveSoftmax: ...
    def adapt(self, states: np.ndarray, /) -> np.ndarray: ...
    def learn(
        self,
        states: np.ndarray,
        words: np.ndarray,
        segment: int,
        rate: float,
        adapter: float,
        calm: float,
        /,
    ) -> np.ndarray: ...
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]: ...
    def load(self, layer: int, weight: np.ndarray, sums: np.ndarray, /) -> None: ...

def lstm_backward(
    gates: np.ndarray, cell: np.ndarray, slope: np.ndarray, inner: np.ndarray, /
) -> np.ndarray: ...
def adapted_shares(
    odds: np.ndarray,
    columns: np.ndarray,
    signals: np.ndarray,
    change: np.ndarray,
    sums: np.ndarray,
    slope: np.ndarray,
    waiting: int,
    every: int,
    rate: float,
    calm: float,
    /,
) -> tuple[np.ndarray, int]: ...
def words_at(known: np.ndarray, positions: np.ndarray, /) -> np.ndarray: ...
def mixed_weights(squared: np.ndarray, votes: _Voting, /) -> np.ndarray: ...
