"""What codes and their distances are, in plain numpy."""

import numpy as np
from jaxtyping import Float, Int, UInt32

from unbounded.memory.chunks import LISTS, Chunks, read_code
from unbounded.memory.codes import AXES, CENTROID_WORDS, LENGTH, POSITION, WORDS, Coded
from unbounded.memory.lists import Assigned, Lists
from unbounded.memory.nearest import Packed
from unbounded.memory.scan import CHUNK


def levels(codes: UInt32[np.ndarray, "n 17"]) -> Int[np.ndarray, "n 120"]:
    """Four bits an axis: axes 0 to 3 of a word in the low halves of its bytes, 4 to 7 above."""
    halves = np.ascontiguousarray(codes[:, :LENGTH]).view(np.uint8).reshape(len(codes), LENGTH, 4)
    both = np.stack([halves & 15, halves >> 4], axis=2)
    return both.reshape(len(codes), AXES).astype(np.int64)


def centroid_levels(codes: UInt32[np.ndarray, "n 31"]) -> Int[np.ndarray, "n 120"]:
    """Eight bits an axis."""
    words = np.ascontiguousarray(codes[:, : CENTROID_WORDS - 1])
    return words.view(np.uint8).reshape(len(codes), AXES).astype(np.int64)


def lengths(codes: np.ndarray, word: int) -> Float[np.ndarray, " n"]:
    """The squared lengths that codes carry."""
    return np.ascontiguousarray(codes[:, word]).view(np.float32)


def from_products(
    offset: np.float32, scale: np.float32, own: np.ndarray, products: np.ndarray
) -> Float[np.ndarray, " n"]:
    """Squared distances, rounded as they are everywhere."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared = (offset + own) - scale * products.astype(np.float32)
    # What is not a number is not above zero either.
    return np.where(squared > 0, squared, np.float32(0))


def squared(coded: Coded, codes: UInt32[np.ndarray, "m 17"]) -> Float[np.ndarray, "n m"]:
    """Of every query to every code."""
    products = coded.queries.astype(np.int64) @ levels(codes).T
    rows = zip(coded.offsets, coded.scales, products, strict=True)
    own = lengths(codes, LENGTH)
    return np.array([from_products(offset, scale, own, row) for offset, scale, row in rows])


def squared_to_centroids(
    coded: Coded, codes: UInt32[np.ndarray, "m 31"]
) -> Float[np.ndarray, "n m"]:
    """Of every query to every centroid."""
    products = coded.queries.astype(np.int64) @ centroid_levels(codes).T
    own = lengths(codes, CENTROID_WORDS - 1)
    rows = zip(coded.offsets + coded.totals, coded.scales / np.float32(16), products, strict=True)
    return np.array([from_products(offset, scale, own, row) for offset, scale, row in rows])


def entries(chunks: Chunks, at: int) -> UInt32[np.ndarray, "n 17"]:
    """All that a list holds, in its order."""
    found = np.zeros((int(chunks.lengths[at]), WORDS), np.uint32)
    chunk = int(chunks.heads[at])
    for i in range(len(found)):
        read_code(chunks.codes[chunk], i % CHUNK, found[i])
        if i % CHUNK == CHUNK - 1:
            chunk = int(chunks.next[chunk])
    return found


def every_list(chunks: Chunks) -> list[UInt32[np.ndarray, "n 17"]]:
    """All lists."""
    return [entries(chunks, at) for at in range(int(chunks.counts[LISTS]))]


def centroids(chunks: Chunks) -> UInt32[np.ndarray, "n 31"]:
    """The centroids of all lists."""
    found = np.zeros((int(chunks.counts[LISTS]), CENTROID_WORDS), np.uint32)
    for at in range(len(found)):
        read_code(chunks.centroids[at // CHUNK], at % CHUNK, found[at])
    return found


def nearest(row: Float[np.ndarray, " n"], positions: np.ndarray, k: int) -> list[tuple[float, int]]:
    """The k nearest with their positions, of two as near the older."""
    return sorted(zip(row.tolist(), positions.tolist(), strict=True))[:k]


def packed_pairs(row: np.ndarray) -> list[tuple[float, int]]:
    """What a row of packed neighbors holds, in order, without the empty places."""
    row = np.sort(row[row != np.uint64(0xFFFF_FFFF_FFFF_FFFF)])
    distances = (row >> np.uint64(32)).astype(np.uint32).view(np.float32)
    positions = (row & np.uint64(0xFFFF_FFFF)).astype(np.int64)
    return list(zip(distances.tolist(), positions.tolist(), strict=True))


def positions_of(codes: UInt32[np.ndarray, "n 17"]) -> Int[np.ndarray, " n"]:
    """Where in the stream each entry was."""
    return codes[:, POSITION].astype(np.int64)


def find(lists: Lists, coded: Coded, k: int, own_past: bool) -> tuple[Packed, Assigned]:
    """All that lists show, and the list of each query."""
    best = np.zeros((len(coded.codes), k), np.uint64)

    def look(first: int, packed: Packed, base: int) -> None:
        assert base == 0
        best[first : first + len(packed)] = packed

    return best, lists.find(coded, k, own_past, look)
