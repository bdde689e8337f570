import numpy as np
import pytest

from unbounded.datastore import IVFPQ, Flat
from unbounded.errors import SettingError


def test_it_is_the_papers_configuration() -> None:
    index = IVFPQ(256)
    assert (index.lists, index.probes, index.code_size) == (4096, 8, 64)
    assert index.train_at == 39 * 4096


def test_it_is_exact_until_it_is_trained_and_says_when() -> None:
    keys = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    index, flat = IVFPQ(4, lists=4, probes=2, code_size=2, train_at=300), Flat(4)
    index.add(keys[:299])
    flat.add(keys[:299])
    assert index.events == []
    for one, other in zip(index.search(keys, 50), flat.search(keys, 50), strict=True):
        np.testing.assert_array_equal(one, other)
    index.add(keys[299:])
    assert [event.entries for event in index.events] == [300]
    assert index.events[0].what == "inverted file of 4 lists, 2 bytes a code"
    assert len(index) == 400


def test_settings_that_cannot_be_honored_are_refused() -> None:
    with pytest.raises(SettingError, match="codes of 7 bytes for keys 16 wide"):
        IVFPQ(16, code_size=7)
    with pytest.raises(SettingError, match="9 probes of 8 lists"):
        IVFPQ(16, lists=8, probes=9, code_size=4)
    with pytest.raises(SettingError, match="training at 100 keys; 8 lists need 256"):
        IVFPQ(16, lists=8, code_size=4, train_at=100)
