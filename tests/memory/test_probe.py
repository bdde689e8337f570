import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.memory.definitions import (
    centroids,
    every_list,
    find,
    nearest,
    packed_pairs,
    positions_of,
    squared,
    squared_to_centroids,
)
from unbounded.memory import lists as lists_module
from unbounded.memory.chunks import Chunks, read_code
from unbounded.memory.codes import POSITION, WORDS, Coded, Coder
from unbounded.memory.lists import Lists
from unbounded.memory.probe import choose, own_entries
from unbounded.memory.scan import CHUNK
from unbounded.memory.select import NOTHING
from unbounded.types import Hidden


def states(count: int, seed: int = 0) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)


CODER = Coder(states(300))


@pytest.fixture
def wanted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries a search looks at, whatever k is."""
    monkeypatch.setattr(lists_module, "LOOKED_AT", 0)
    monkeypatch.setattr(lists_module, "FEWEST", request.param)
    return int(request.param)


def looked_into(chunks: Chunks, to_lists: np.ndarray, wanted: int) -> list[int]:
    """The nearest lists, until they held so many entries when they were last cut."""
    looked, held = [], 0
    for at in np.argsort(to_lists, kind="stable").tolist():
        if held >= wanted:
            break
        looked.append(at)
        held += int(chunks.settled[at])
    return looked


def defined(
    lists: Lists, coded: Coded, own_past: bool, k: int, wanted: int
) -> list[list[tuple[float, int]]]:
    chunks = lists._chunks
    to_lists = squared_to_centroids(coded, centroids(chunks))
    members = every_list(chunks)
    rows = []
    for t in range(len(coded.codes)):
        looked = looked_into(chunks, to_lists[t], wanted)
        there = np.concatenate([members[at] for at in looked])
        past = [i for i in range(t if own_past else 0) if to_lists[i].argmin() in looked]
        codes = np.concatenate([there, coded.codes[past]])
        positions = np.concatenate([positions_of(there), len(lists) + np.array(past, np.int64)])
        rows.append(nearest(squared(coded[t : t + 1], codes)[0], positions, k))
    return rows


def grown() -> Lists:
    """Lists that have grown since they were last cut, and with room in their last chunks."""
    lists = Lists(Coder(states(300)), settle=256)
    lists.add(lists.coder.encode(states(1500)))
    assert lists.count > 5
    return lists


@pytest.fixture(params=[1, 2])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many entries for each neighbor are kept before some are dropped; with 1, all the time."""
    monkeypatch.setattr(lists_module, "_ROOM", request.param)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("wanted", [1, 70, 800, 1500], indirect=True)
@pytest.mark.parametrize("own_past", [False, True])
@pytest.mark.parametrize("k", [1, 30, 3000])
def test_a_probe_finds_the_nearest_in_the_nearest_lists_and_in_its_own_past(
    wanted: int, own_past: bool, k: int
) -> None:
    lists = grown()
    coded = lists.coder.encode(states(150, seed=1))
    found, assigned = find(lists, coded, k, own_past)
    assert [packed_pairs(row) for row in found] == defined(lists, coded, own_past, k, wanted)
    to_lists = squared_to_centroids(coded, centroids(lists._chunks))
    np.testing.assert_array_equal(assigned, to_lists.argmin(axis=1))


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("wanted", [300], indirect=True)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 500), coarse=st.sampled_from([0.5, 1, 3]))
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_of_those_that_are_as_near_the_oldest_are_found(
    wanted: int, seed: int, k: int, coarse: float
) -> None:
    """Keys on a grid: many distances are the same, and the last that is found is one of many."""
    keys = np.round(states(1000, seed) / coarse) * np.float32(coarse)
    lists = Lists(Coder(states(300)), settle=256)
    lists.add(lists.coder.encode(keys))
    coded = lists.coder.encode(keys[:10])
    found, _ = find(lists, coded, k, own_past=True)
    assert [packed_pairs(row) for row in found] == defined(lists, coded, True, k, wanted)


@pytest.mark.parametrize("wanted", [1500], indirect=True)
@pytest.mark.parametrize("nearer", ["old", "new"])
def test_a_query_whose_guess_was_wrong_finds_the_same(wanted: int, nearer: str) -> None:
    """The sample is of the oldest entries of each list; here it is like none of the others: with
    old ones near, too few are kept and it looks again; with new ones, too many, and it drops some.
    """
    keys = (
        states(1500)
        * np.linspace(0.01 if nearer == "old" else 3, 1, 1500, dtype=np.float32)[:, None]
    )
    lists = Lists(Coder(states(300)), settle=4096)
    lists.add(lists.coder.encode(keys))
    coded = lists.coder.encode(np.zeros((3, 5), np.float32))
    found, _ = find(lists, coded, 40, own_past=False)
    assert [packed_pairs(row) for row in found] == defined(lists, coded, False, 40, wanted)


@given(lists=st.lists(st.integers(0, 5), max_size=200))
@settings(deadline=None, max_examples=30)
def test_a_block_is_sorted_by_list_and_then_by_age(lists: list[int]) -> None:
    chunks = grown()._chunks
    codes = CODER.encode(states(len(lists))).codes
    own = own_entries(chunks, codes, np.array(lists, np.int32), 7)
    for at in range(6):
        mine = own.order[own.starts[at] : own.starts[at + 1]].tolist()
        assert mine == [i for i, each in enumerate(lists) if each == at]
        for place, i in enumerate(mine):
            code = np.empty(WORDS, np.uint32)
            read_code(own.codes[own.heads[at] + place // CHUNK], place % CHUNK, code)
            np.testing.assert_array_equal(code, codes[i])
            assert code[POSITION] == 7 + i


def test_a_query_sees_of_its_block_what_came_before_it_and_nothing_else() -> None:
    """All keys the same, so that any of the block would be found if it were looked at."""
    keys = np.ones((130, 5), np.float32)
    lists = Lists(Coder(states(300)), settle=256)
    lists.add(lists.coder.encode(keys[:1]))
    found, _ = find(lists, lists.coder.encode(keys), 200, own_past=True)
    for t, row in enumerate(found):
        assert [position for _, position in packed_pairs(row)] == list(range(t + 1))
        assert (row == NOTHING).sum() == 200 - t - 1


def test_a_query_that_needs_more_columns_says_how_many_and_others_do_not_mind() -> None:
    lists = grown()
    coded = lists.coder.encode(states(3, seed=1))
    asked = (coded.queries, coded.offsets, coded.scales, coded.totals)
    used, chosen = np.empty(3, np.int32), np.empty((3, lists.count), np.int32)
    choose(lists._chunks, *asked, 1500, np.empty((3, 2), np.int32), used)
    assert (used == -lists.count).all()
    choose(lists._chunks, *asked, 1500, chosen, used)
    assert (used == lists.count).all()
    choose(lists._chunks, *asked, 1, chosen, used)
    assert (used == 1).all()
    # The list of the first query alone is a short one.
    lists._chunks.settled[:] = 100
    lists._chunks.settled[chosen[0, 0]] = 1
    assert chosen[0, 0] not in chosen[1:, 0]
    few = np.empty((3, 1), np.int32)
    choose(lists._chunks, *asked, 100, few, used)
    assert used.tolist() == [-2, 1, 1]
    np.testing.assert_array_equal(few[1:, 0], chosen[1:, 0])


@pytest.mark.parametrize("wanted", [70], indirect=True)
def test_a_query_among_short_lists_looks_into_more_of_them(wanted: int) -> None:
    lists = grown()
    coded = lists.coder.encode(states(40, seed=1))
    to_lists = squared_to_centroids(coded, centroids(lists._chunks))
    lists._chunks.settled[np.argsort(to_lists[7])[:5]] = 1
    needed = [len(looked_into(lists._chunks, row, wanted)) for row in to_lists]
    assert max(needed) > 4 + 2 * wanted * lists.count // len(lists) > min(needed)
    found, _ = find(lists, coded, 30, own_past=True)
    assert [packed_pairs(row) for row in found] == defined(lists, coded, True, 30, wanted)
