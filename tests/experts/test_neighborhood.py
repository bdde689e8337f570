import pytest

from unbounded.datastore import Flat, IndexedDatastore
from unbounded.errors import SettingError
from unbounded.experts import Cache
from unbounded.experts.neighborhood import LARGE, PAPER_K, Neighborhood
from unbounded.presets import MemoryConfig


def test_it_changes_where_it_says_it_will() -> None:
    growing, entries, changes = Neighborhood(16, large=5), 0, []
    for _ in range(6):
        rest = growing.until_more(entries)
        assert growing.at(entries) == growing.at(entries + rest - 1) < growing.at(entries + rest)
        entries += rest
        changes.append((entries, growing.at(entries)))
    assert changes == [(5, 18), (10, 20), (20, 22), (40, 24), (80, 26), (160, 28)]


def test_the_papers_number_up_to_half_a_million_and_for_ever_if_told() -> None:
    assert Neighborhood.of(None).at(LARGE - 1) == PAPER_K < Neighborhood.of(None).at(LARGE)
    told = Neighborhood.of(PAPER_K)
    assert told.at(100 * LARGE) == PAPER_K
    assert told.until_more(100 * LARGE) > LARGE


def test_no_neighbors_are_refused() -> None:
    for make in (
        Neighborhood,
        lambda k: MemoryConfig(k=k),
        lambda k: Cache(IndexedDatastore(Flat(2)), 3, k=k),
    ):
        with pytest.raises(SettingError, match="k is 0; at least 1 neighbor"):
            make(0)
