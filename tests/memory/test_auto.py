import numpy as np
import pytest

from unbounded.errors import SettingError
from unbounded.memory import Auto, Flat
from unbounded.types import Hidden


def states(count: int, shift: float = 0, seed: int = 0) -> Hidden:
    keys = np.random.default_rng(seed).normal(size=(count, 8)) + shift
    return keys.astype(np.float32)


def test_it_is_exact_while_small() -> None:
    index, flat = Auto(8, exact=300), Flat(8)
    for one in (index, flat):
        one.add(states(299))
    queries = states(20, seed=1)
    for a, b in zip(index.search(queries, 50), flat.search(queries, 50), strict=True):
        np.testing.assert_array_equal(a, b)
    assert index.events == []


def test_lists_follow_the_entries() -> None:
    index = Auto(8, exact=256)
    for start in range(0, 5000, 37):
        index.add(states(min(37, 5000 - start), seed=start))
    assert [(event.entries, event.what) for event in index.events] == [
        (256, "inverted file of 32 lists, switched from exact"),
        (1024, "inverted file of 64 lists, grown 4 times"),
        (4096, "inverted file of 128 lists, grown 4 times"),
    ]


def test_lists_are_made_anew_when_the_keys_drift() -> None:
    index = Auto(8, exact=256)
    index.add(states(512))
    assert len(index.events) == 1
    index.add(states(256, shift=4, seed=1))
    assert len(index.events) == 2
    assert index.events[1].entries in (640, 768)
    assert "drifted by" in index.events[1].what


def test_making_lists_anew_keeps_every_key_in_its_place() -> None:
    keys = states(1100)
    index = Auto(8, exact=256, probes=64)
    index.add(keys)
    positions = index.search(keys[:200], 5)[1]
    assert (positions == np.arange(200)[:, None]).any(axis=1).mean() > 0.8


def test_codes_are_an_eighth_of_the_keys() -> None:
    keys = np.random.default_rng(0).normal(size=(20_000, 64)).astype(np.float32)
    index = Auto(64, exact=1024)
    index.add(keys)
    # 16 bytes of code and 8 of position; the rest is centroids: 283 lists of 64 numbers.
    assert index.bytes / len(index) < 64 * 4 / 5


@pytest.mark.parametrize("width", [1, 3, 5, 10])
def test_any_width_will_do(width: int) -> None:
    keys = np.random.default_rng(0).normal(size=(700, width)).astype(np.float32)
    index = Auto(width, exact=256)
    index.add(keys)
    assert index.search(keys[:5], 700)[1].shape == (5, 700)


def test_settings_that_cannot_be_honored_are_refused() -> None:
    with pytest.raises(SettingError, match="exact up to 100 keys"):
        Auto(8, exact=100)
    with pytest.raises(SettingError, match="0 probes"):
        Auto(8, probes=0)
