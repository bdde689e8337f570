"""What codes, lists and their distances are, in plain numpy."""

from dataclasses import dataclass

import numpy as np

from unbounded._native import QuantizedLists
from unbounded.types import Hidden

AXES, LENGTH, POSITION = 120, 15, 16
WORDS, CENTROID_WORDS, GROUP, CHUNK = 17, 31, 16, 64

State = dict[str, np.ndarray]


@dataclass(frozen=True)
class Encoded:
    """Keys both as they are stored and as they ask."""

    codes: np.ndarray
    queries: np.ndarray
    offsets: np.ndarray
    scales: np.ndarray
    totals: np.ndarray


def encoded(lists: QuantizedLists, keys: Hidden) -> Encoded:
    return Encoded(*lists.encoded(keys))


def levels(codes: np.ndarray) -> np.ndarray:
    """Four bits an axis: axes 0 to 3 of a word in the low halves of its bytes, 4 to 7 above."""
    halves = np.ascontiguousarray(codes[:, :LENGTH]).view(np.uint8).reshape(len(codes), LENGTH, 4)
    both = np.stack([halves & 15, halves >> 4], axis=2)
    return both.reshape(len(codes), AXES).astype(np.int64)


def centroid_levels(codes: np.ndarray) -> np.ndarray:
    """Eight bits an axis."""
    words = np.ascontiguousarray(codes[:, : CENTROID_WORDS - 1])
    return words.view(np.uint8).reshape(len(codes), AXES).astype(np.int64)


def lengths(codes: np.ndarray, word: int) -> np.ndarray:
    """The squared lengths that codes carry."""
    return np.ascontiguousarray(codes[:, word]).view(np.float32)


def from_products(
    offset: np.float32, scale: np.float32, own: np.ndarray, products: np.ndarray
) -> np.ndarray:
    """Squared distances, rounded as they are everywhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared = (offset + own) - scale * products.astype(np.float32)
    # What is not a number is not above zero either.
    return np.where(squared > 0, squared, np.float32(0))


def squared(coded: Encoded, codes: np.ndarray) -> np.ndarray:
    """Of every query to every code."""
    products = coded.queries.astype(np.int64) @ levels(codes).T
    rows = zip(coded.offsets, coded.scales, products, strict=True)
    own = lengths(codes, LENGTH)
    return np.array([from_products(offset, scale, own, row) for offset, scale, row in rows])


def squared_to_centroids(coded: Encoded, codes: np.ndarray) -> np.ndarray:
    """Of every query to every centroid."""
    products = coded.queries.astype(np.int64) @ centroid_levels(codes).T
    own = lengths(codes, CENTROID_WORDS - 1)
    rows = zip(coded.offsets + coded.totals, coded.scales / np.float32(16), products, strict=True)
    return np.array([from_products(offset, scale, own, row) for offset, scale, row in rows])


def entries(state: State, at: int) -> np.ndarray:
    """All that a list holds, in its order: words of sixteen entries lie side by side."""
    found, chunk, left = [np.empty((0, WORDS), np.uint32)], int(state["heads"][at]), 0
    left = int(state["lengths"][at])
    while left > 0:
        rows = state["codes"][chunk].reshape(CHUNK // GROUP, WORDS, GROUP)
        found.append(rows.transpose(0, 2, 1).reshape(CHUNK, WORDS)[:left])
        chunk, left = int(state["next"][chunk]), left - CHUNK
    return np.concatenate(found)


def every_list(state: State) -> list[np.ndarray]:
    """All lists."""
    return [entries(state, at) for at in range(int(state["counts"][0]))]


def centroids(state: State) -> np.ndarray:
    """The centroids of all lists."""
    rows = state["centroids"].reshape(-1, CHUNK // GROUP, CENTROID_WORDS, GROUP)
    every = rows.transpose(0, 1, 3, 2).reshape(-1, CENTROID_WORDS)
    return np.ascontiguousarray(every[: int(state["counts"][0])])


def candidates(state: State, coded: Encoded, wanted: int) -> list[np.ndarray]:
    """The codes each query looks at: those of the nearest lists until they held `wanted`."""
    lists, found = every_list(state), []
    for row in squared_to_centroids(coded, centroids(state)):
        held, taken = 0, []
        for at in np.lexsort((np.arange(len(row)), row)).tolist():
            if held >= wanted:
                break
            taken.append(lists[at])
            held += int(state["settled"][at])
        found.append(np.concatenate(taken))
    return found


def nearest(row: np.ndarray, positions: np.ndarray, k: int) -> list[tuple[float, int]]:
    """The k nearest with their positions, of two as near the older."""
    return sorted(zip(row.tolist(), positions.tolist(), strict=True))[:k]


def pairs(squared: np.ndarray, positions: np.ndarray) -> list[list[tuple[float, int]]]:
    """What a search found, row by row, without the empty places."""
    return [
        [(far, at) for far, at in zip(*row, strict=True) if at >= 0]
        for row in zip(squared.tolist(), positions.tolist(), strict=True)
    ]
