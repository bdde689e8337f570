"""A character model of words that learns as it reads, as arrays (`native/spelling.h` computes).

A word is written as its bytes and an end mark, and a byte as its bits, so that each step is a
choice between two: end or go on, zero or one. The chances of both always sum to one, and so do
those of all words.
"""

import numpy as np

from unbounded import _native
from unbounded.shapes import Bool, Float, Int, UInt

BITS = 8
"""A symbol is a byte; tests use fewer bits, for alphabets that can be written out."""

ORDERS = 6
"""Contexts of the last 0, 1, …, 5 bytes."""

CONTEXTS = ORDERS + 2
"""And of the letters since the last mark, and of the shape and length of the word so far."""

CLASSES = 6
"""How often a place was seen: never, once, twice, up to 5, up to 19, more."""

FIRST = 0.15
"""Every mixing weight before anything was read."""

Symbols = UInt[np.ndarray, " symbols"]
Slots = UInt[np.ndarray, " slots"]
Starts = Int[np.ndarray, " starts"]
Shut = Bool[np.ndarray, " symbols"]
Counters = Int[np.ndarray, " 2"]
Weights = Float[np.ndarray, "sets contexts classes"]
Nats = Float[np.ndarray, " room"]


def ask(
    symbols: Symbols,
    starts: Starts,
    shut: Shut,
    slots: Slots,
    counters: Counters,
    weights: Weights,
    bits: int,
    nats: Nats,
) -> None:
    """The nats of each word; changes nothing but `nats`.

    Word i has the symbols from `starts[i]` to `starts[i + 1]`; where `shut` is true, it cannot end
    before that symbol.
    """
    nats[:] = -_native.spelling_ask(symbols, starts, shut, (slots, counters, weights), bits)


def read(
    symbols: Symbols,
    starts: Starts,
    shut: Shut,
    new: Bool[np.ndarray, " words"],
    slots: Slots,
    counters: Counters,
    weights: Weights,
    bits: int,
    nats: Nats,
) -> UInt[np.ndarray, " grown"]:
    """The nats of each word, which is then learned if it is new; the table, which may have grown.

    Without `nats` to fill the words are only learned.
    """
    tables = (slots, counters, weights)
    grown, logprobs = _native.spelling_read(
        symbols, starts, shut, new, tables, bits, ask=len(nats) > 0
    )
    nats[:] = -logprobs
    return grown


def new_tables(bits: int = BITS) -> tuple[Slots, Counters, Weights]:
    """Slots, counters and weights of a model that has read nothing."""
    weights = np.full((ORDERS + 1 + 1 + bits, CONTEXTS, CLASSES), FIRST, np.float32)
    return np.zeros(1024, np.uint64), np.zeros(2, np.int64), weights
