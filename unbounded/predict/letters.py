"""A character model of words that learns as it reads: chances of bits, mixed by their odds.

A word is written as its bytes and an end mark, and a byte as its bits, so that each step is a
choice between two: end or go on, zero or one. The chances of both always sum to one, and so do
those of all words. What was seen in the same place before says how likely each choice is; a place
is a choice in a context: the last bytes, the part of the word so far, its shape.
"""

from typing import no_type_check

import numba
import numpy as np
from jaxtyping import Bool, Int, UInt

BITS = 8
"""A symbol is a byte; tests use fewer bits, for alphabets that can be written out."""

ORDERS = 6
"""Contexts of the last 0, 1, …, 5 bytes."""

CONTEXTS = ORDERS + 2
"""And of the letters since the last mark, and of the shape and length of the word so far."""

CLASSES = 6
"""How often a place was seen: never, once, twice, up to 5, up to 19, more."""

DELTA = 1.4
"""A place seen n times moves by 1 / (n + DELTA) of the way to what comes."""

MOST = 255
"""What a place is seen more often than this does not count, so that it never stops moving."""

RATE, EARLY, SOON = 0.002, 10.0, 1000.0
"""Step of the mixing weights, how many times as large it begins, and after how many words half of
that is gone."""

FIRST = 0.15
"""Every mixing weight before anything was read."""

SHARPEST = 14.0
"""No choice is surer than this many nats of odds."""

USED, WORDS = range(2)
"""Counters: places in the table, words learned."""

_CHANCES = np.arange(4096)
_STRETCH = np.log((_CHANCES + 0.5) / (4095.5 - _CHANCES)).astype(np.float32)
"""The log odds of a chance kept in 12 bits."""

_WHOLE = (1 << 22) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BEFORE, _OUTSIDE = 256, 257
"""What stands before the first byte, and before that."""

Symbols = UInt[np.ndarray, " symbols"]
Slots = UInt[np.ndarray, " slots"]
Starts = Int[np.ndarray, " starts"]
Shut = Bool[np.ndarray, " symbols"]


@numba.njit(cache=True, nogil=True)
@no_type_check
def _scramble(value):
    value = (value + np.uint64(1)) * _GOLDEN
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _kind(symbol):
    """Digit, point or comma, beyond ASCII, letter, any other mark."""
    if 48 <= symbol <= 57:
        return np.uint64(1)
    if symbol == 44 or symbol == 46:
        return np.uint64(2)
    if symbol >= 128:
        return np.uint64(3)
    return np.uint64(4) if 97 <= symbol <= 122 else np.uint64(5)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _contexts(word, at, so_far, out):
    """The contexts of the symbol at a place of a word, as numbers."""
    number = np.uint64(0)
    out[0] = number
    for back in range(1, ORDERS):
        symbol = _BEFORE if at + 1 == back else _OUTSIDE
        if at >= back:
            symbol = np.int64(word[at - back])
        number = _scramble(number + np.uint64(symbol))
        out[back] = number
    out[ORDERS] = so_far[0]
    out[ORDERS + 1] = so_far[1] * np.uint64(31) + np.uint64(min(at, 20))
    for context in range(CONTEXTS):
        out[context] = _scramble(out[context] * np.uint64(CONTEXTS) + np.uint64(context))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _go_on(so_far, symbol):
    """What has been written after one more symbol: the part since the last mark, and the shape.

    A part begins anew after a mark, so that "nissan" in "renault-nissan" is spelled as any word. In
    a shape a run of letters is as good as one.
    """
    kind = _kind(symbol)
    part = _scramble(so_far[0] + np.uint64(symbol))
    so_far[0] = np.uint64(0) if kind == 2 or kind == 5 else part
    if kind != 4 or so_far[2] != kind:
        so_far[1] = _scramble(so_far[1] + kind)
    so_far[2] = kind


@numba.njit(cache=True, nogil=True)
@no_type_check
def _find(slots, key):
    """Where a place is in the table, or the empty slot where it would be."""
    mask = len(slots) - 1
    at = np.int64(key) & mask
    while slots[at] != 0 and slots[at] >> np.uint64(32) != key:
        at = (at + 1) & mask
    return at


@numba.njit(cache=True, nogil=True)
@no_type_check
def reserve(slots, places):
    """A table that has room for so many places, at most half full."""
    while 2 * places > len(slots):
        grown = np.zeros(2 * len(slots), np.uint64)
        for slot in slots:
            if slot != 0:
                grown[_find(grown, slot >> np.uint64(32))] = slot
        slots = grown
    return slots


@numba.njit(cache=True, nogil=True)
@no_type_check
def _class(times):
    if times < 3:
        return times
    return 3 if times < 6 else (4 if times < 20 else 5)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _line(node, level):
    """Choices that follow each other lie beside each other: a line of 64 bytes has three bits."""
    above = (level - 1) % 3 if level > 3 else 0
    group = np.uint64(node >> above) if level > 3 else np.uint64(0)
    within = (1 << above) | (node & ((1 << above) - 1)) if level > 3 else node
    return group, np.uint64(within)


@numba.njit(cache=True, nogil=True)
@no_type_check
def _choose(contexts, node, level, choice, slots, counters, weights, learn, odds, places, classes):
    """The chance of a choice; a place of the table is 32 bits of key, 22 of chance, 10 of count."""
    group, within = _line(node, level)
    longest = 0
    for i in range(CONTEXTS):
        line = (contexts[i] + group) * _GOLDEN >> np.uint64(35)
        key = max((line << np.uint64(3)) | within, np.uint64(1))
        places[i] = _find(slots, key)
        slot = slots[places[i]]
        odds[i], classes[i] = 0.0, 0
        if slot != 0:
            odds[i] = _STRETCH[(slot >> np.uint64(20)) & np.uint64(4095)]
            classes[i] = _class(np.int64(slot & np.uint64(1023)))
            longest = i if i <= ORDERS else longest
        elif learn:
            slots[places[i]] = (key << np.uint64(32)) | np.uint64(1 << 31)
            counters[USED] += 1
    # Whom to believe depends on the longest context that was seen, and on which bit it is.
    by_longest, by_level = weights[longest], weights[ORDERS + 1 + level]
    total = np.float32(0.0)
    for i in range(CONTEXTS):
        total += (by_longest[i, classes[i]] + by_level[i, classes[i]]) * odds[i]
    total = min(max(total, np.float32(-SHARPEST)), np.float32(SHARPEST))
    chance = 1.0 / (1.0 + np.exp(-np.float64(total)))
    if learn:
        rate = RATE * (1.0 + EARLY / (1.0 + counters[WORDS] / SOON))
        step = np.float32((choice - chance) * rate)
        for i in range(CONTEXTS):
            by_longest[i, classes[i]] += step * odds[i]
            by_level[i, classes[i]] += step * odds[i]
            slots[places[i]] = _moved(slots[places[i]], choice)
    return chance if choice else 1.0 - chance


@numba.njit(cache=True, nogil=True)
@no_type_check
def _moved(slot, choice):
    """A place that has seen one choice more."""
    times = np.int64(slot & np.uint64(1023))
    chance = np.int64((slot >> np.uint64(10)) & np.uint64(_WHOLE))
    chance += np.int64((choice * _WHOLE - chance) / (times + DELTA))
    key = slot >> np.uint64(32)
    return (key << np.uint64(32)) | np.uint64(chance << 10) | np.uint64(min(times + 1, MOST))


@numba.njit(cache=True, nogil=True)
@no_type_check
def _spell(word, shut, slots, counters, weights, bits, learn):
    """The nats of one word."""
    contexts = np.empty(CONTEXTS, np.uint64)
    odds = np.empty(CONTEXTS, np.float32)
    places = np.empty(CONTEXTS, np.int64)
    classes = np.empty(CONTEXTS, np.int64)
    so_far = np.zeros(3, np.uint64)
    nats = 0.0
    for at in range(len(word) + 1):
        _contexts(word, at, so_far, contexts)
        ends = at == len(word)
        # Where no word may end there is nothing to choose, and nothing to learn.
        if ends or not shut[at]:
            chance = _choose(
                *(contexts, 0, 0, int(ends), slots, counters, weights, learn),
                *(odds, places, classes),
            )
            nats -= np.log(chance)
        if ends:
            break
        node = 1
        for level in range(1, bits + 1):
            choice = (np.int64(word[at]) >> (bits - level)) & 1
            chance = _choose(
                *(contexts, node, level, choice, slots, counters, weights, learn),
                *(odds, places, classes),
            )
            nats -= np.log(chance)
            node = 2 * node + choice
        _go_on(so_far, word[at])
    return nats


@numba.njit(cache=True, nogil=True)
@no_type_check
def ask(symbols, starts, shut, slots, counters, weights, bits, nats):
    """The nats of each word; changes nothing but `nats`.

    Word i has the symbols from `starts[i]` to `starts[i + 1]`; where `shut` is true, it cannot end
    before that symbol.
    """
    for i in range(len(starts) - 1):
        word = slice(starts[i], starts[i + 1])
        nats[i] = _spell(symbols[word], shut[word], slots, counters, weights, bits, False)


@numba.njit(cache=True, nogil=True)
@no_type_check
def read(symbols, starts, shut, new, slots, counters, weights, bits, nats):
    """The nats of each word, which is then learned if it is new; the table, which may have grown.

    Without `nats` to fill the words are only learned.
    """
    for i in range(len(starts) - 1):
        word = slice(starts[i], starts[i + 1])
        if len(nats):
            nats[i] = _spell(symbols[word], shut[word], slots, counters, weights, bits, False)
        if new[i]:
            choices = (1 + starts[i + 1] - starts[i]) * (1 + bits)
            slots = reserve(slots, counters[USED] + choices * CONTEXTS)
            _spell(symbols[word], shut[word], slots, counters, weights, bits, True)
            counters[WORDS] += 1
    return slots


def new_tables(bits: int = BITS) -> tuple[Slots, Int[np.ndarray, " 2"], np.ndarray]:
    """Slots, counters and weights of a model that has read nothing."""
    weights = np.full((ORDERS + 1 + 1 + bits, CONTEXTS, CLASSES), FIRST, np.float32)
    return np.zeros(1024, np.uint64), np.zeros(2, np.int64), weights
