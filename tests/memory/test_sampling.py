"""Text generation: what is drawn, from which words, and when it ends."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.memory.texts import open_toy, some_text
from unbounded.errors import SettingError
from unbounded.memory import Memory, SamplingParams

PROBS = np.array([0.1, 0.4, 0.2, 0.3])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_toy(tmp_path / "m") as memory:
        memory.read(some_text(30), "noise")
        yield memory


def drawn(sampling: SamplingParams) -> set[int]:
    random = np.random.default_rng(1)
    return {sampling.draw(PROBS, random) for _ in range(200)}


def test_only_words_that_are_left_are_drawn() -> None:
    assert drawn(SamplingParams()) == {0, 1, 2, 3}
    assert drawn(SamplingParams(temperature=0.0)) == {1}
    assert drawn(SamplingParams(temperature=1e-300)) == {1}
    assert drawn(SamplingParams(top_k=2)) == {1, 3}
    assert drawn(SamplingParams(top_k=9)) == {0, 1, 2, 3}
    assert drawn(SamplingParams(top_p=0.6)) == {1, 3}
    assert drawn(SamplingParams(top_p=1e-9)) == {1}
    assert drawn(SamplingParams(top_k=3, top_p=0.7)) == {1, 3}


def test_pieces_come_one_by_one_and_make_the_completion(memory: Memory) -> None:
    sampling = SamplingParams(12, seed=3, top=2)
    pieces = list(memory.generate("known1", sampling, spaced=True))
    assert len(pieces) == 12
    assert [piece.finish for piece in pieces] == [None] * 11 + ["length"]
    # The likeliest two, and the one that was drawn.
    assert all(len(piece.top) in (2, 3) and piece.log_prob < 0 for piece in pieces)
    assert all(piece.top[piece.text] == piece.log_prob for piece in pieces)
    whole = memory.complete("known1", 12, temperature=1.0, seed=3)
    assert whole == "".join(piece.text for piece in pieces)
    assert whole != memory.complete("known1", 12, temperature=1.0, seed=4)
    likeliest = memory.complete("known1", 12)
    assert likeliest == memory.complete("known1", 12, temperature=1.0, top_k=1)


def test_a_stop_text_ends_it_wherever_it_is_cut(memory: Memory) -> None:
    whole = memory.complete("known1", 30, temperature=1.0, seed=3)
    stop = whole[20:27]
    pieces = list(memory.generate("known1", SamplingParams(30, seed=3, stop=(stop,)), spaced=True))
    assert "".join(piece.text for piece in pieces) == whole[: whole.index(stop)]
    assert pieces[-1].finish == "stop"


def test_what_is_learned_meanwhile_counts_for_the_next_word(memory: Memory) -> None:
    pieces = memory.generate("known1", SamplingParams(2, temperature=0.0))
    next(pieces)
    memory.read("zebra zebra zebra zebra zebra zebra\n" * 40)
    assert next(pieces).text.strip().lower() in {"zebra", ""}


@pytest.mark.parametrize(
    "wrong",
    [{"max_words": 0}, {"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=r"at least|at most"):
        SamplingParams(**wrong)  # type: ignore[arg-type]
