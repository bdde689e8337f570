"""What a text adds to a packed one; each compressor starts from the training text."""

import sys

import pytest

from experiments.compressors import COMPRESSORS, installed, packed_after
from unbounded.errors import MissingExtra, SettingError

SENTENCE = "the cat sat on the mat while the rain went on and on .\n"


@pytest.mark.parametrize("name", installed())
def test_what_is_counted_is_what_the_test_text_adds(name: str) -> None:
    before = "".join(f"{n} {SENTENCE}" for n in range(3_000))
    compress = COMPRESSORS[name]
    assert compress(before.encode()) < len(before) / 4
    one = packed_after(name, before, SENTENCE * 20)
    extra = compress((before + SENTENCE * 20).encode()) - compress(before.encode())
    assert one["bits_per_character"] == pytest.approx(8 * extra / len(SENTENCE * 20))
    assert one["memory"] > 0


@pytest.mark.parametrize("name", installed())
def test_a_text_read_a_megabyte_ago_is_still_known(name: str) -> None:
    noise = "".join(f"{(n * 2654435761) % 2**32:08x}" for n in range(130_000))
    known = "".join(f"{(n * 40503) % 65536:04x}" for n in range(5_000))
    compress = COMPRESSORS[name]
    fresh = compress((noise + known).encode()) - compress(noise.encode())
    again = compress((known + noise + known).encode()) - compress((known + noise).encode())
    assert again < fresh / 4


def test_a_missing_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyppmd", None)
    with pytest.raises(MissingExtra, match=r"pip install 'unbounded\[compressors\]'") as caught:
        COMPRESSORS["PPMd, order 16"](b"text")
    assert "\n" not in str(caught.value)


def test_a_missing_program_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert installed() == [name for name in COMPRESSORS if name != "zpaq -m5"]
    with pytest.raises(SettingError, match="the program zpaq is not installed; install") as caught:
        COMPRESSORS["zpaq -m5"](b"text")
    assert "\n" not in str(caught.value)
