import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datastore.definitions import (
    AXES,
    CENTROID_WORDS,
    LENGTH,
    POSITION,
    candidates,
    centroid_levels,
    centroids,
    encoded,
    every_list,
    lengths,
    levels,
    nearest,
    pairs,
    squared,
    squared_to_centroids,
)
from unbounded import _native
from unbounded._native import QuantizedLists
from unbounded.datastore import Votes
from unbounded.datastore.auto import fitted, restored
from unbounded.types import Hidden

SAMPLE = np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32)


def states(count: int, seed: int = 0, width: int = 6) -> Hidden:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


def spread(count: int, width: int, seed: int = 0) -> Hidden:
    """As far apart along the first axes as states of a network, and hardly along the last."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(width).normal(size=(width, width)))[0]
    places = rng.normal(size=(count, width)) / np.sqrt(1 + np.arange(width))
    keys: Hidden = (places @ turn + 0.5).astype(np.float32)
    return keys


def filled(keys: Hidden, split_every: int = 128, **how: int) -> QuantizedLists:
    lists = fitted(SAMPLE, split_every, **how)
    lists.add(keys, np.arange(len(keys)))
    return lists


def read(lists: QuantizedLists, keys: Hidden, k: int) -> list[list[tuple[float, int]]]:
    """Search for each key and then add it."""
    rows = []
    while len(keys):
        piece, keys = keys[: lists.room], keys[lists.room :]
        rows += pairs(*lists.search(piece, k, own_past=True))
        lists.add(piece, np.arange(len(piece)))
    return rows


def assert_same(one: QuantizedLists, other: QuantizedLists) -> None:
    a, b = one.state(), other.state()
    assert all(np.array_equal(a[name], b[name]) for name in a if name not in ("codes", "next"))
    for here, there in zip(every_list(a), every_list(b), strict=True):
        np.testing.assert_array_equal(here, there)


# Codes.


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 40), count=st.integers(1, 20))
@settings(deadline=None, max_examples=25)
def test_the_code_of_a_key_does_not_depend_on_the_keys_beside_it(
    seed: int, width: int, count: int
) -> None:
    lists, keys = fitted(spread(100, width), 128), spread(count, width, seed)
    whole = lists.encoded(keys)
    for t in range(count):
        for one, all_of in zip(lists.encoded(keys[t : t + 1]), whole, strict=True):
            np.testing.assert_array_equal(one[0], all_of[t])


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("width", [1, 3, 64, 120, 300])
def test_distances_from_codes_are_near_the_true_ones(width: int) -> None:
    sample, queries = spread(600, width), spread(40, width, seed=1)
    lists = fitted(sample, 128)
    found = squared(encoded(lists, queries), encoded(lists, sample).codes)
    truth = ((queries[:, None].astype(np.float64) - sample[None]) ** 2).sum(axis=2)
    # Measured: 0.12 of the mean distance with one axis, 0.03 with 64 to 121, where errors cancel,
    # and 0.15 with 300, of which 180 are not seen.
    assert np.abs(found - truth).mean() < 0.2 * truth.mean()
    # Measured 0.98 at the least.
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.96


@pytest.mark.usefixtures("isa")
def test_a_code_carries_its_levels_and_its_length_and_leaves_room_for_a_position() -> None:
    keys = spread(50, 130)
    lists = fitted(keys, 128)
    codes, state = encoded(lists, keys).codes, lists.state()
    steps = state["steps"]
    places = (levels(codes) - 7.5) * steps
    along = (keys.astype(np.float64) - state["mean"]) @ state["axes"]
    # Half a level off at most, but beyond the outermost.
    inside = np.abs(along) < 7.9 * steps
    assert (np.abs(along - places)[inside] < 0.51 * np.tile(steps, (50, 1))[inside]).all()
    np.testing.assert_allclose(lengths(codes, LENGTH), (places**2).sum(axis=1), rtol=1e-5)
    assert (codes[:, POSITION] == 0).all()


def test_a_centroid_is_the_mean_of_its_list_sixteen_times_as_fine_as_a_code() -> None:
    lists = filled(states(3000))
    # Just after lists were split, a centroid is the mean of what its list holds.
    lists.add(states(lists.room, seed=1), np.zeros(lists.room, np.int64))
    before = lists.state()
    lists.add(states(128, seed=2), np.zeros(128, np.int64))
    state = lists.state()
    new = range(int(before["counts"][0]), int(state["counts"][0]))
    assert new
    for at in new:
        places = (levels(every_list(state)[at]) - 7.5) * state["steps"]
        found = (centroid_levels(centroids(state))[at] - 127.5) * state["steps"] / 16
        assert (np.abs(found - places.mean(axis=0)) <= 0.52 * state["steps"] / 16).all()
        length = lengths(centroids(state), CENTROID_WORDS - 1)[at]
        np.testing.assert_allclose(length, (found**2).sum(), rtol=1e-5)
    assert len(state["steps"]) == AXES


@pytest.mark.parametrize("value", [0.0, 1.0, -3e5])
def test_keys_that_are_all_the_same_can_be_told_from_later_ones(value: float) -> None:
    keys = np.full((300, 5), value, np.float32)
    lists = fitted(keys, 128)
    codes = encoded(lists, keys).codes
    assert np.abs(squared(encoded(lists, keys[:2]), codes)).max() <= 1e-5 * 5 * value**2
    away = encoded(lists, keys[:1] * np.float32(1.01))
    if value:
        near, far = squared(away, codes[:1]), squared(away, away.codes)
        assert far < near


# Searches, over every instruction set.


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("k", [1, 50, 2000])
def test_looking_at_everything_is_brute_force_over_the_codes(k: int) -> None:
    lists = filled(states(1000), fewest=10**6)
    assert lists.count > 2
    queries = encoded(lists, states(20, seed=1))
    found = pairs(*lists.search(states(20, seed=1), k))
    every = np.concatenate(every_list(lists.state()))
    truth = squared(queries, every)
    for row, distances in zip(found, truth, strict=True):
        assert row == nearest(distances, every[:, POSITION].astype(np.int64), k)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize(("n", "k"), [(1, 3), (2, 40), (3, 200), (70, 20)])
def test_a_search_finds_the_nearest_in_the_nearest_lists(n: int, k: int) -> None:
    keys = states(6000)
    keys[2000:4000] = keys[:2000]  # ties
    lists = filled(keys, candidates=4, fewest=1)
    queries = states(n, seed=1)
    looked_at = candidates(lists.state(), encoded(lists, queries), 4 * k)
    found = pairs(*lists.search(queries, k))
    coded = encoded(lists, queries)
    for t in range(n):
        truth = squared(coded, looked_at[t])[t]
        assert found[t] == nearest(truth, looked_at[t][:, POSITION].astype(np.int64), k)


@pytest.mark.usefixtures("isa")
def test_every_instruction_set_finds_the_same_bits_and_makes_the_same_lists() -> None:
    keys, queries = states(3000), states(100, seed=1)
    lists = filled(keys)
    found, here = lists.search(queries, 40, own_past=True), _native.isa()
    _native.set_isa("generic")
    plain = filled(keys)
    for one, other in zip(plain.search(queries, 40, own_past=True), found, strict=True):
        np.testing.assert_array_equal(one, other)
    _native.set_isa(here)
    assert_same(plain, lists)


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 500), max_size=8))
@settings(deadline=None, max_examples=15)
def test_any_cut_of_the_stream_finds_the_same_and_ends_the_same(seed: int, cuts: list[int]) -> None:
    keys = states(500, seed)
    one, other = filled(states(700)), filled(states(700))
    expected, found, start = read(one, keys, 20), [], 0
    for stop in [*sorted(cuts), 500]:
        found += read(other, keys[start:stop], 20)
        start = stop
    assert found == expected
    assert_same(one, other)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("stretches", [1024, 2, 7])
def test_reading_is_searching_and_adding_key_by_key(stretches: int) -> None:
    # Few enough entries are looked at for their number to matter.
    how = {"stretches": stretches, "fewest": 1, "candidates": 4}
    keys = states(300, seed=3)
    blocks, steps = filled(states(700), **how), filled(states(700), **how)
    expected = []
    for t in range(300):
        expected += pairs(*steps.search(keys[t : t + 1], 20))
        steps.add(keys[t : t + 1], np.zeros(1, np.int64))
    assert read(blocks, keys, 20) == expected


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("votes", [Votes(kernels=4, sharpness=4.0), Votes(False, 2.0, 1.5)])
def test_votes_are_those_of_the_neighbors_that_a_search_finds(votes: Votes) -> None:
    rng = np.random.default_rng(1)
    # Words that agree in their low halves are other words.
    words = rng.integers(0, 4, 1900) + 65_536 * rng.integers(0, 2, 1900)
    lists = fitted(SAMPLE, 2048)
    lists.add(states(1500), words[:1500])
    keys = states(400, seed=4)
    found, positions = lists.search(keys, 60, own_past=True)
    expected = votes.count(found, words[positions], words[1500:])
    shares = lists.score(keys, words[1500:], words[:1500].astype(np.int32), 60, votes.settings)
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    assert lists.entries == 1900
    assert 0 < shares.mean() < 1


def test_two_threads_find_the_same_bits_as_one() -> None:
    keys = states(1500, seed=2)
    one = filled(states(2000), 2048)
    alone = one.search(keys, 30, own_past=True)
    _native.set_threads(2)
    try:
        two = filled(states(2000), 2048)
        for here, there in zip(two.search(keys, 30, own_past=True), alone, strict=True):
            np.testing.assert_array_equal(here, there)
    finally:
        _native.set_threads(1)
    assert_same(one, two)


# Lists.


def test_lists_are_split_as_they_grow_and_hold_every_entry_once() -> None:
    lists = filled(states(5000))
    state = lists.state()
    every = every_list(state)
    assert lists.count == len(every) > 5000 / 256
    # Nothing is left longer than this when lists were last split, some keys ago.
    assert (state["settled"] <= 256).all()
    positions = [each[:, POSITION].astype(np.int64) for each in every]
    assert np.array_equal(np.sort(np.concatenate(positions)), range(5000))
    assert all((np.diff(each) > 0).all() for each in positions)
    assert lists.room == 128 - 5000 % 128


def test_a_key_goes_to_the_nearest_centroid() -> None:
    lists = filled(states(3000))
    before = lists.state()
    keys = states(lists.room - 1, seed=9)
    to = squared_to_centroids(encoded(lists, keys), centroids(before)).argmin(axis=1)
    lists.add(keys, np.zeros(len(keys), np.int64))
    grown = lists.state()["lengths"] - before["lengths"]
    np.testing.assert_array_equal(grown, np.bincount(to, minlength=lists.count))


def test_two_heaps_are_split_between_them() -> None:
    heaps = np.concatenate([states(130) * 0.1 - 2, states(130, seed=1) * 0.1 + 2])
    lists = fitted(heaps, 260)
    lists.add(heaps, np.zeros(260, np.int64))
    first, second = (each[:, POSITION] for each in every_list(lists.state()))
    assert sorted([max(first), max(second)]) == [129, 259]
    assert len(first) == len(second) == 130


def test_in_a_large_datastore_lists_are_split_less_often() -> None:
    lists, rooms, rng = fitted(SAMPLE, 16, stretches=4), {}, np.random.default_rng(0)
    while lists.entries < 1000:
        room = lists.room
        if room in (16, 32, 64) and lists.entries % room == 0:
            rooms[lists.entries] = room
        n = min(int(rng.integers(1, 9)), room)
        lists.add(states(n), np.zeros(n, np.int64))
    # Every stretch ends where one of the next length may begin.
    assert rooms[64] == 32
    assert rooms[128] == 64
    assert max(rooms.values()) == 64


def test_keys_that_are_all_the_same_end_in_lists_no_longer_than_others() -> None:
    lists = filled(np.ones((3000, 6), np.float32), 256)
    assert lists.state()["settled"].max() <= 256
    found = lists.search(np.ones((1, 6), np.float32), 3000)[1]
    assert found[0].tolist() == list(range(3000))


# State.


def test_a_state_and_what_has_come_since_is_the_state() -> None:
    lists = filled(states(700))
    again = restored(lists.state(), 128)
    # What came before anybody asked is not told.
    assert lists.since(699) is None
    read(lists, states(300, seed=1), 20)
    delta = lists.since(700)
    assert delta is not None
    again.grow(delta["codes"], delta["lists"])
    assert_same(again, lists)
    later = lists.since(850)
    assert later is not None
    np.testing.assert_array_equal(later["codes"], delta["codes"][150:])
    # And is kept from where it was last asked for.
    assert lists.since(849) is None
    with pytest.raises(ValueError, match="there are 1000 entries"):
        lists.since(1001)


@pytest.mark.parametrize("name", ["next", "heads", "lengths", "counts", "centroids", "codes"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_a_damaged_state_is_refused_or_searched_without_harm(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = filled(states(1500)).state()
    damaged = state[name].copy()
    damaged.ravel()[rng.integers(damaged.size)] = rng.integers(-(2**31), 2**31).astype(
        damaged.dtype
    )
    if rng.random() < 0.3:
        damaged = damaged[: rng.integers(len(damaged) + 1)]
    try:
        lists = restored({**state, name: damaged}, 128)
    except ValueError:
        return
    lists.search(states(3, seed=1), 40)


def test_arrays_that_do_not_fit_are_refused_in_one_line() -> None:
    lists = filled(states(300))
    words = np.zeros(3, np.int64)
    none = np.empty(0, np.int32)
    for wrong in (
        lambda: lists.add(states(3).astype(np.float64), words),
        lambda: lists.add(states(3, width=5), words),
        lambda: lists.add(states(3), words[:2]),
        lambda: lists.add(states(3)[:, ::-1], words),
        lambda: lists.add(np.full((3, 6), np.nan, np.float32), words),
        lambda: lists.search(states(3), 0),
        lambda: lists.search("no array", 3),  # type: ignore[arg-type]
        lambda: lists.score(states(3), words, none, 3, Votes().settings),
        lambda: lists.score(states(200), np.zeros(200, np.int64), none, 3, Votes().settings),
        lambda: lists.grow(np.zeros((1, 17), np.uint32), np.array([9999], np.int32)),
        lambda: lists.retag(none),
        lambda: fitted(SAMPLE, 0),
    ):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            wrong()
    assert lists.entries == 300
