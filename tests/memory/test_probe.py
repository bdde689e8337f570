import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import (
    centroids,
    every_list,
    nearest,
    packed_pairs,
    positions_of,
    squared,
    squared_to_centroids,
)
from unbounded.memory.chunks import Chunks
from unbounded.memory.codes import Coder
from unbounded.memory.lists import Block, Lists, in_chunks
from unbounded.memory.probe import _select, probe
from unbounded.types import Hidden

NOTHING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 700),
    k=st.integers(0, 700),
    kind=st.sampled_from(["spread", "tied", "same", "heaps"]),
)
@settings(deadline=None, max_examples=150)
def test_what_is_selected_is_the_front_of_what_is_sorted(
    seed: int, n: int, k: int, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    distances = {
        "spread": rng.gamma(1, 10.0 ** rng.integers(-30, 30), n),
        "tied": rng.integers(0, 4, n),
        "same": np.full(n, 3.5),
        "heaps": np.where(rng.random(n) < 0.5, 0, 1e30) + rng.random(n),
    }[kind].astype(np.float32)
    positions = rng.permutation(n).astype(np.uint32)
    # More room than there is to read, and what lies there is nearer than all.
    row, places = np.zeros(n + 40, np.float32), np.full(n + 40, 7, np.uint32)
    row[:n], places[:n] = distances, positions
    best = np.zeros(k, np.uint64)
    _select(row, places, n, np.empty(n, np.uint32), np.empty(n, np.uint32), best)
    assert packed_pairs(best) == nearest(distances, positions, k)
    assert (best[min(n, k) :] == NOTHING).all()


def looked_into(chunks: Chunks, to_lists: np.ndarray, wanted: int) -> list[int]:
    """The nearest lists, until they held so many entries when they were last cut."""
    looked, held = [], 0
    for at in np.argsort(to_lists, kind="stable").tolist():
        if held >= wanted:
            break
        looked.append(at)
        held += int(chunks.settled[at])
    return looked


def found_by(lists: Lists, block: Block, k: int, wanted: int) -> np.ndarray:
    coded, n = block.coded, len(block.coded.codes)
    best = np.zeros((n, k), np.uint64)
    own = in_chunks(coded.codes if len(block.lists) else coded.codes[:0])
    asked = (coded.queries, coded.offsets, coded.scales, coded.totals)
    # In two parts, as two threads would.
    for start, stop in ((0, n // 3), (n // 3, n)):
        probe(lists._chunks, *asked, wanted, start, stop, own, block.lists, len(lists), best)
    return best


def defined(lists: Lists, block: Block, k: int, wanted: int) -> list[list[tuple[float, int]]]:
    chunks, coded = lists._chunks, block.coded
    to_lists = squared_to_centroids(coded, centroids(chunks))
    members = every_list(chunks)
    rows = []
    for t in range(len(coded.codes)):
        looked = looked_into(chunks, to_lists[t], wanted)
        there = np.concatenate([members[at] for at in looked])
        past = [i for i in range(min(t, len(block.lists))) if block.lists[i] in looked]
        codes = np.concatenate([there, coded.codes[past]])
        positions = np.concatenate([positions_of(there), len(lists) + np.array(past, np.int64)])
        rows.append(nearest(squared(coded.rows(t, t + 1), codes)[0], positions, k))
    return rows


@pytest.mark.parametrize("wanted", [1, 70, 800, 1500])
@pytest.mark.parametrize("own_past", [False, True])
@pytest.mark.parametrize("k", [1, 30, 3000])
def test_a_probe_finds_the_nearest_in_the_nearest_lists_and_in_its_own_past(
    wanted: int, own_past: bool, k: int
) -> None:
    lists = Lists(Coder(states(300)), settle=256)
    # Not a multiple of what settles: lists have grown since they were last cut.
    lists.add(lists.coder.encode(states(1500)))
    assert lists.count > 5
    block = lists.block(states(150, seed=1), own_past)
    found = found_by(lists, block, k, wanted)
    assert [packed_pairs(row) for row in found] == defined(lists, block, k, wanted)


def test_a_query_sees_of_its_block_what_came_before_it_and_nothing_else() -> None:
    """All keys the same, so that any of the block would be found if it were looked at."""
    keys = np.ones((130, 5), np.float32)
    lists = Lists(Coder(states(300)), settle=256)
    lists.add(lists.coder.encode(keys[:1]))
    found = found_by(lists, lists.block(keys, own_past=True), 200, 1)
    for t, row in enumerate(found):
        assert [position for _, position in packed_pairs(row)] == list(range(t + 1))
