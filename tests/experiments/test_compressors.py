"""The same text for compressors and for us; each starts from the training text."""

import bz2
import sys
from pathlib import Path

import pytest

from experiments.bits import bits_grid
from experiments.compressors import COMPRESSORS, _packed, _pyppmd, text_of
from experiments.markup import markdown
from experiments.results import find_results
from tests.experiments.made_up import bits_result, keep
from unbounded.corpus import Tokenizer
from unbounded.errors import MissingExtra

SENTENCE = "the cat sat on the mat while the rain went on and on .\n"


def test_the_text_is_that_of_the_words_cut_where_reading_stops(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("It rains, again.\n\nIt pours.\n")
    assert text_of(tmp_path / "t.txt", Tokenizer(), 100) == "it rains , again .\nit pours .\n"
    assert text_of(tmp_path / "t.txt", Tokenizer(), 8) == "it rains , again .\nit pours "


@pytest.mark.parametrize("name", COMPRESSORS)
def test_what_is_counted_is_what_the_test_text_adds(name: str) -> None:
    before = "".join(f"{n} {SENTENCE}" for n in range(300))
    compress = COMPRESSORS[name]
    assert compress(before.encode()) < len(before) / 4
    one = _packed(name, before, SENTENCE * 20)
    assert one["bytes"] == compress((before + SENTENCE * 20).encode()) - compress(before.encode())
    assert one["bits_per_character"] == pytest.approx(8 * one["bytes"] / len(SENTENCE * 20))


@pytest.mark.parametrize("name", [name for name in COMPRESSORS if "bzip2" not in name])
def test_a_text_read_a_megabyte_ago_is_still_known(name: str) -> None:
    """bzip2's blocks end before that; the windows of all others hold the whole text."""
    noise = "".join(f"{(n * 2654435761) % 2**32:08x}" for n in range(130_000))
    known = "".join(f"{(n * 40503) % 65536:04x}" for n in range(5_000))
    compress = COMPRESSORS[name]
    fresh = compress((noise + known).encode()) - compress(noise.encode())
    again = compress((known + noise + known).encode()) - compress((known + noise).encode())
    assert again < fresh / 4


def test_bzip2_is_the_command_bzip2_9() -> None:
    assert COMPRESSORS["bzip2 -9"](SENTENCE.encode()) == len(bz2.compress(SENTENCE.encode()))


def test_a_missing_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyppmd", None)
    with pytest.raises(MissingExtra, match=r"pip install 'unbounded\[compressors\]'") as caught:
        _pyppmd()
    assert "\n" not in str(caught.value)


def test_the_table_has_compressors_and_rows_and_marks_the_lowest(tmp_path: Path) -> None:
    keep(tmp_path, "compressors-paper", bits_result("web"), bits_result("wiki", 0.5))
    text = markdown(bits_grid(find_results(tmp_path, "compressors", "paper")))
    assert "| xz -9e | 2.000 | **0.500** |" in text
    assert "| all together | **1.100** | 1.100 |" in text
    assert "perplexity" not in text
    assert "No results yet" in markdown(bits_grid(find_results(tmp_path, "compressors", "small")))
