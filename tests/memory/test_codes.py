import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.definitions import centroid_levels, lengths, levels, squared
from unbounded.memory.codes import (
    AXES,
    CENTROID_WORDS,
    LENGTH,
    POSITION,
    WORDS,
    Coded,
    Coder,
    decode,
    store,
    store_centroid,
)
from unbounded.types import Hidden


def states(count: int, width: int, seed: int = 0) -> Hidden:
    """As far apart along the first axes as states of a network, and hardly along the last."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(1 + np.arange(width))
    turn = np.linalg.qr(np.random.default_rng(width).normal(size=(width, width)))[0]
    keys: Hidden = ((rng.normal(size=(count, width)) * spread) @ turn + 0.5).astype(np.float32)
    return keys


def same(one: Coded, other: Coded) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("codes", "queries", "offsets", "scales", "totals")
    )


@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 40), count=st.integers(1, 20))
@settings(deadline=None, max_examples=25)
def test_the_code_of_a_key_does_not_depend_on_the_keys_beside_it(
    seed: int, width: int, count: int
) -> None:
    coder = Coder(states(100, width))
    keys = states(count, width, seed)
    whole = coder.encode(keys)
    for t in range(count):
        assert same(coder.encode(keys[t : t + 1]), whole[t : t + 1])


@pytest.mark.parametrize("width", [1, 2, 3, 8, 64, 119, 120, 121, 300])
def test_distances_from_codes_are_near_the_true_ones(width: int) -> None:
    sample, queries = states(600, width), states(40, width, seed=1)
    coder = Coder(sample)
    found = squared(coder.encode(queries), coder.encode(sample).codes)
    truth = ((queries[:, None].astype(np.float64) - sample[None]) ** 2).sum(axis=2)
    # Measured: 0.12 of the mean distance with one axis, 0.03 with 64 to 121, where errors cancel,
    # and 0.15 with 300, of which 180 are not seen.
    assert np.abs(found - truth).mean() < 0.2 * truth.mean()
    # Measured 0.98 at the least.
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.96


def test_a_code_carries_its_levels_and_its_length_and_leaves_room_for_a_position() -> None:
    keys = states(50, 130)
    coder = Coder(keys)
    codes = coder.encode(keys).codes
    places = (levels(codes) - 7.5) * coder.steps
    along = (keys.astype(np.float64) - coder.mean) @ coder.axes
    # Half a level off at most, but beyond the outermost.
    inside = np.abs(along) < 7.9 * coder.steps
    assert (np.abs(along - places)[inside] < 0.51 * np.tile(coder.steps, (50, 1))[inside]).all()
    np.testing.assert_allclose(lengths(codes, LENGTH), (places**2).sum(axis=1), rtol=1e-5)
    assert (codes[:, POSITION] == 0).all()


def test_what_is_decoded_and_coded_again_is_the_same_code() -> None:
    """So a list can be taken apart and put together any number of times."""
    keys = states(50, 30)
    coder = Coder(keys)
    along, again = np.empty(AXES, np.float32), np.empty(WORDS, np.uint32)
    for code in coder.encode(keys).codes:
        decode(code, coder.steps, along)
        np.testing.assert_array_equal(
            along, (levels(code[None])[0] - np.float32(7.5)).astype(np.float32) * coder.steps
        )
        store(along, coder.steps, again)
        np.testing.assert_array_equal(again, code)


def test_a_centroid_is_sixteen_times_as_fine_as_a_code() -> None:
    coder = Coder(states(100, 200))
    along = np.random.default_rng(0).uniform(-7.9, 7.9, AXES).astype(np.float32) * coder.steps
    code = np.empty(CENTROID_WORDS, np.uint32)
    store_centroid(along, coder.steps, code)
    places = (centroid_levels(code[None])[0] - 127.5) * coder.steps / 16
    assert (np.abs(places - along) <= 0.51 * coder.steps / 16).all()
    length = lengths(code[None], CENTROID_WORDS - 1)
    np.testing.assert_allclose(length, (places**2).sum(), rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 1.0, -3e5])
def test_keys_that_are_all_the_same_can_be_told_from_later_ones(value: float) -> None:
    keys = np.full((300, 5), value, np.float32)
    coder = Coder(keys)
    assert np.abs(squared(coder.encode(keys[:2]), coder.encode(keys).codes)).max() <= (
        1e-5 * 5 * value**2
    )
    away = coder.encode(keys[:1] * np.float32(1.01))
    if value:
        near, far = squared(away, coder.encode(keys[:1]).codes), squared(away, away.codes)
        assert far < near


def test_a_coder_goes_on_bit_for_bit() -> None:
    keys = states(300, 7)
    coder = Coder(keys)
    again = Coder.restored(coder.state())
    assert same(again.encode(keys), coder.encode(keys))
    assert all(np.array_equal(again.state()[name], coder.state()[name]) for name in coder.state())
