import pytest

from unbounded.datastore import Flat, IndexEvent
from unbounded.errors import SettingError


def test_an_event_reads_as_a_sentence() -> None:
    event = IndexEvent(65_536, "inverted file of 512 lists", 3.14)
    assert str(event) == "at 65,536 entries: inverted file of 512 lists (3.1 s)"


def test_keys_without_width_are_refused() -> None:
    with pytest.raises(SettingError, match="keys of width 0"):
        Flat(0)
