"""A name that others choose is that of one folder just below, and of nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbounded.errors import SettingError
from unbounded.memory import checked_name


@pytest.mark.parametrize("name", ["notes", "2026", "a.b-c_d.e", "-", "_x", "X" * 64])
def test_ordinary_names_pass(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a..b", "../up", "a/b", "a\\b", ".hidden", "a b", "a\n", "ü", "\0", "x" * 65],
)
def test_all_others_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(SettingError, match="is no name for a memory; use up to 64") as caught:
        checked_name(name)
    assert "\n" not in str(caught.value)


@given(name=st.text(alphabet=st.sampled_from("ab1./\\-_ \n~$\0é"), max_size=70))
def test_whatever_passes_stays_just_below(name: str) -> None:
    try:
        checked_name(name)
    except SettingError:
        return
    below = Path("/memories") / name
    assert below.parent == Path("/memories")
    assert below.resolve().parent == Path("/memories").resolve()
    assert not name.startswith(".")
