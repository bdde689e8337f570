"""The mixtures and the character model in the plainest Python: what native code must agree with."""

import math
from collections import defaultdict

import numpy as np

from unbounded.types import Context, Probs, Table

MASK = (1 << 64) - 1


def online(table: Table, by_rate: Table, trust: Probs) -> tuple[Probs, Table]:
    """Probabilities and weights of `Online`, row by row; learns in place."""
    rates, share = 0.5 ** np.arange(2, 13)[:, None], 1e-5
    prob, weights = np.empty(len(table)), np.empty(table.shape)
    for t, row in enumerate(table):
        mixed = by_rate @ row
        weights[t], prob[t] = trust @ by_rate, trust @ mixed
        ratio = 1 - rates + rates * row / mixed[:, None]
        by_rate[:] = (1 - share * rates) * by_rate * ratio + share * rates / len(row)
        by_rate /= by_rate.sum(axis=1, keepdims=True)
        trust[:] = (1 - share) * trust * mixed / prob[t] + share / len(trust)
    return prob, weights


def standardized(values: Probs, scale: Probs, seen: int, moments: Table) -> Probs:
    """Signals less their mean, over their deviation; zero where either or the signal is unknown."""
    with np.errstate(all="ignore"):
        far = (values - moments[0]) / (np.sqrt(moments[1] / seen) + 1e-6 * abs(moments[0]))
    return np.where(np.isfinite(far), np.clip(far, -4, 4) * scale, 0.0)


def gate(
    table: Table,
    context: Context,
    plain: Table,
    state: tuple[np.ndarray, ...],
) -> tuple[Probs, Table]:
    """Probabilities and weights of the gate of `Gated`, row by row; learns in place."""
    scale, seen, moments, own, tilt, squares = state
    fades, experts = np.array([1.0, 0.25, 0.02]), table.shape[1]
    prob, weights = np.empty(len(table)), np.empty(table.shape)
    for t, row in enumerate(table):
        values = np.concatenate([own, context[t]]).astype(np.float32).astype(np.float64)
        signals = standardized(values, scale, int(seen[0]), moments)
        said = np.log(plain[t]) + tilt @ signals
        odds = np.exp(said - said.max())
        weights[t] = (1 - 1e-5) * odds / odds.sum() + 1e-5 * plain[t]
        prob[t] = weights[t] @ row
        steps = np.outer(weights[t] * (row / prob[t] - 1), signals)
        squares += steps**2
        tilt += 0.2 * steps / np.sqrt(squares)
        seen += 1
        off = values - moments[0]
        off[~np.isfinite(off)] = 0.0
        moments[0] += off / seen[0]
        moments[1] += off**2 * (1 - 1 / seen[0])
        usual = plain[t] @ row
        before = own[:-1].reshape(experts, 3)
        before = np.where(np.isfinite(before), before, 1 / experts)
        right = (plain[t] * row / usual)[:, None]
        own[:-1] = (before + fades * (right - before)).ravel()
        own[-1] = np.log(usual)
    return prob, weights


def _scramble(value: int) -> int:
    value = (value + 1) * 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 & MASK
    return value ^ value >> 32


def _kind(symbol: int) -> int:
    """Digit, point or comma, beyond ASCII, letter, any other mark."""
    if chr(symbol) in "0123456789":
        return 1
    if chr(symbol) in ",.":
        return 2
    return 3 if symbol >= 128 else 4 if 97 <= symbol <= 122 else 5


class InPlaces:
    """The character model with a dictionary of places: context and choice → chance and count."""

    def __init__(self, bits: int, edition: int) -> None:
        self.bits, self.words, self.first = bits, 0, edition == 1
        self.places: dict[tuple[int, int, int], list[int]] = {}
        self.weights: dict[tuple[int, int, int], float] = defaultdict(
            lambda: float(np.float32(0.15 if self.first else 0.075))
        )

    def logprob(self, word: tuple[int, ...], shut: tuple[bool, ...], *, learn: bool) -> float:
        """The logarithm of the word's probability; where it is shut it cannot end."""
        total, part, shape, last, before = 0.0, 0, 0, 0, 0
        for at in range(len(word) + 1):
            contexts = self._contexts(word, at, part, shape)
            places = 7 + (1 << self.bits)
            where = [] if self.first else [places + min(at, 23), places + 24 + 6 * last + before]
            ends = at == len(word)
            if ends or not shut[at]:
                total += self._choose(contexts, where, 0, 0, int(ends), learn)
            if ends:
                break
            node = 1
            for level in range(1, self.bits + 1):
                choice = word[at] >> (self.bits - level) & 1
                total += self._choose(contexts, where, node, level, choice, learn)
                node = 2 * node + choice
            kind = _kind(word[at])
            part = 0 if kind in (2, 5) else _scramble((part + word[at]) & MASK)
            shape = shape if kind == last == 4 else _scramble((shape + kind) & MASK)
            last, before = kind, last
        self.words += learn
        return total

    def _contexts(self, word: tuple[int, ...], at: int, part: int, shape: int) -> list[int]:
        found, number = [0], 0
        for back in range(1, 6):
            symbol = word[at - back] if at >= back else 256 if at + 1 == back else 257
            number = _scramble((number + symbol) & MASK)
            found.append(number)
        shape = (shape * 31 + min(at, 20)) & MASK
        return [*found, part, shape, *([] if self.first else [found[3], shape])]

    def _choose(
        self,
        contexts: list[int],
        where: list[int],
        node: int,
        level: int,
        choice: int,
        learn: bool,
    ) -> float:
        keys = [(i, context, node) for i, context in enumerate(contexts)]
        seen = [self.places.get(key) for key in keys]
        longest = max((i for i, place in enumerate(seen) if place and i <= 6), default=0)
        odds, classes = [], []
        for place in seen:
            chance, times = place or (0, 0)
            step = chance >> 10
            odds.append(math.log((step + 0.5) / (4095.5 - step)) if place else 0.0)
            classes.append(sum(times >= edge for edge in (1, 2, 3, 6, 20)))
        rows = longest, 7 + (level if self.first else node), *where
        sets = [[(s, i, c) for i, c in enumerate(classes)] for s in rows]
        total = sum(
            sum(self.weights[key] for key in of) * o for *of, o in zip(*sets, odds, strict=True)
        )
        chance_of_one = 1 / (1 + math.exp(-min(max(total, -14.0), 14.0)))
        if learn:
            rate, early, soon = (0.002, 10, 1000) if self.first else (0.0006, 15, 150)
            rate *= 1 + early / (1 + self.words / soon)
            for weights in sets:
                for key, o in zip(weights, odds, strict=True):
                    self.weights[key] += (choice - chance_of_one) * rate * o
            whole = (1 << 22) - 1
            for key in keys:
                place = self.places.setdefault(key, [1 << 21, 0])
                place[0] += int((choice * whole - place[0]) / (place[1] + 1.4))
                place[1] = min(place[1] + 1, 255 if key[0] < 8 else 4)
        return math.log(chance_of_one if choice else 1 - chance_of_one)
