"""Sixty-four bytes a key: its place along the main axes, four bits an axis, and its length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final, no_type_check

import numba
import numpy as np
from jaxtyping import Float, Int8, UInt32

from unbounded.memory.threads import in_parallel
from unbounded.types import Hidden

AXES = 120
"""Axes a code keeps: fifteen words of eight. The sixteenth word is the squared length."""

WORDS = 17
"""Words an entry takes: its code, and where in the stream it was."""

LENGTH, POSITION = 15, 16

CENTROID_WORDS = 31
"""A centroid is a finer code: eight bits an axis."""

# The step of the uniform quantizer with 16 levels that is best for a Gaussian, in deviations.
_STEP = 0.335

# No axis is finer than this share of a key's length, or what is still while the code is fitted
# could never be told apart later.
_FINEST = 1e-3


@dataclass(frozen=True)
class Coded:
    """Keys both as they are stored and as they ask.

    As a query, a key is eight bits an axis; its squared distance to a code is
    `offset + length(code) − scale · products`, where products is a sum of integers. Integers add
    up to the same in any order, so a distance does not depend on who computes it.
    """

    codes: UInt32[np.ndarray, "n 17"]
    queries: Int8[np.ndarray, "n 120"]
    offsets: Float[np.ndarray, " n"]
    scales: Float[np.ndarray, " n"]
    totals: Float[np.ndarray, " n"]
    """What to add to an offset to ask a centroid; its scale is a sixteenth."""

    def __getitem__(self, part: slice | np.ndarray) -> "Coded":
        """Some of the keys."""
        return Coded(
            self.codes[part],
            self.queries[part],
            self.offsets[part],
            self.scales[part],
            self.totals[part],
        )


@final
class Coder:
    """The axes along which a sample of keys varies most, and a step along each.

    On a million real states, 256 wide, distances between a query and codes of the 120 to 128 main
    axes gave the same perplexity as exact distances (docs/log.md): what is lost is mostly noise.

    >>> keys = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    >>> coded = Coder(keys).encode(keys[:3])
    >>> coded.codes.shape, coded.queries.shape
    ((3, 17), (3, 120))
    """

    def __init__(self, sample: Hidden) -> None:
        wide = sample.astype(np.float64)
        mean = wide.mean(axis=0)
        spread, axes = np.linalg.eigh(np.cov(wide.T).reshape(len(mean), len(mean)))
        kept = min(AXES, len(mean))
        self.mean = mean.astype(np.float32)
        self.axes = np.zeros((len(mean), AXES), np.float32)
        self.axes[:, :kept] = axes[:, ::-1][:, :kept]
        deviations = np.sqrt(np.maximum(spread[::-1][:kept], 0))
        finest = _FINEST * np.sqrt((wide**2).sum(axis=1).mean())
        self.steps = np.zeros(AXES, np.float32)
        self.steps[:kept] = _STEP * np.maximum(deviations, finest)

    def encode(self, keys: Hidden) -> Coded:
        """Each key by itself: its code never depends on the keys beside it."""
        n = len(keys)
        coded = Coded(
            np.zeros((n, WORDS), np.uint32),
            np.empty((n, AXES), np.int8),
            np.empty(n, np.float32),
            np.empty(n, np.float32),
            np.empty(n, np.float32),
        )

        def part(start: int, stop: int) -> None:
            rows = coded[start:stop]
            _encode(
                keys[start:stop],
                self.mean,
                self.axes,
                self.steps,
                rows.codes,
                rows.queries,
                rows.offsets,
                rows.scales,
                rows.totals,
            )

        keys = np.ascontiguousarray(keys)
        in_parallel(part, n)
        return coded

    def state(self) -> dict[str, np.ndarray]:
        """What was fitted, as arrays."""
        return {"mean": self.mean, "axes": self.axes, "steps": self.steps}

    @staticmethod
    def restored(state: Mapping[str, np.ndarray]) -> "Coder":
        """The coder that wrote the state."""
        coder = object.__new__(Coder)
        coder.mean = np.array(state["mean"])
        coder.axes = np.array(state["axes"])
        coder.steps = np.array(state["steps"])
        return coder


@numba.njit(cache=True, nogil=True)
@no_type_check
def _encode(keys, mean, axes, steps, codes, queries, offsets, scales, totals):
    along = np.empty(AXES, np.float32)
    for t in range(len(keys)):
        along[:] = 0
        # Key by key, not as one matrix product: BLAS rounds by the shape of the block.
        for i in range(keys.shape[1]):
            value = keys[t, i] - mean[i]
            for axis in range(AXES):
                along[axis] += value * axes[i, axis]
        store(along, steps, codes[t])
        offsets[t], scales[t], totals[t] = ask(along, steps, queries[t])


@numba.njit(cache=True, nogil=True)
@no_type_check
def store(along, steps, code):
    """Write a place along the axes as a code."""
    code[:] = 0
    length = np.float32(0)
    for axis in range(AXES):
        level, part = _level(along[axis], steps[axis], 8)
        length += part
        code[axis // 8] |= level << np.uint32(shift_of(axis))
    code[LENGTH : LENGTH + 1].view(np.float32)[0] = length


@numba.njit(cache=True, nogil=True)
@no_type_check
def store_centroid(along, steps, code):
    """Write a place along the axes as a centroid."""
    code[:] = 0
    length = np.float32(0)
    for axis in range(AXES):
        level, part = _level(along[axis], steps[axis] / np.float32(16), 128)
        length += part
        code[axis // 4] |= level << np.uint32(8 * (axis % 4))
    code[CENTROID_WORDS - 1 :].view(np.float32)[0] = length


@numba.njit(cache=True, nogil=True)
@no_type_check
def _level(along, step, half):
    """The nearest of 2 · half levels along an axis, and the square of the place it stands for."""
    level = half
    if step > 0:
        level = int(min(max(np.floor(along / step) + half, 0), 2 * half - 1))
    place = (np.float32(level) - (np.float32(half) - np.float32(0.5))) * step
    return np.uint32(level), place * place


@numba.njit(cache=True, nogil=True)
@no_type_check
def ask(along, steps, query):
    """Write a place along the axes as a query; returns its offset, scale and total."""
    largest = np.float32(0)
    length = np.float32(0)
    for axis in range(AXES):
        largest = max(largest, abs(along[axis] * steps[axis]))
        length += along[axis] * along[axis]
    unit = largest / np.float32(127)
    total = np.float32(0)
    for axis in range(AXES):
        query[axis] = 0
        if unit > 0:
            query[axis] = np.int8(np.rint(along[axis] * steps[axis] / unit))
        total += np.float32(query[axis])
    # Σ q x with x = (level − 7.5) · step, and for a centroid (level − 127.5) · step / 16.
    return (
        length + np.float32(15) * unit * total,
        np.float32(2) * unit,
        np.float32(0.9375) * unit * total,
    )


@numba.njit(cache=True, nogil=True)
@no_type_check
def shift_of(axis):
    """Where in its word an axis is: axes 0 to 3 in the low halves of the bytes, 4 to 7 above."""
    return 8 * (axis % 4) + 4 * ((axis // 4) % 2)


@numba.njit(cache=True, nogil=True)
@no_type_check
def decode(code, steps, along):
    """Where along the axes a code lies."""
    for axis in range(AXES):
        level = (code[axis // 8] >> np.uint32(shift_of(axis))) & np.uint32(15)
        along[axis] = (np.float32(level) - np.float32(7.5)) * steps[axis]
