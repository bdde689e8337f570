from pathlib import Path

import numpy as np
import pytest

from benchmarks.read import singles_of, stretch_of
from benchmarks.states import Scratch, Watched, full_size, words_of
from benchmarks.stream import Stream
from unbounded.corpus import Reader
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.lm import load_model
from unbounded.presets import MemoryConfig

WORDS = 1_500


def stream_of(place: Path, folder: Path, memory: MemoryConfig) -> Stream:
    model, text = load_model(place / "model"), Reader([place / "text.txt"])
    scratch, size = Scratch(folder, model.lm.width), full_size(model, text, WORDS)
    return Stream(model, size, words_of(model, text), 128, memory, scratch)


def unheard(done: int, note: str) -> None:
    pass


def test_every_row_scores_what_an_evaluation_does(place: Path, tmp_path: Path) -> None:
    model, text = load_model(place / "model"), Reader([place / "text.txt"])
    memory, rows = MemoryConfig(window=700), ("static", "local", "unbounded", "full")
    config = EvaluationConfig(rows=rows, memory=memory, oov="unk", tokens=WORDS, block=128)
    expected = {row.name: row.tally.perplexity for row in evaluate(model, text, config).rows}
    stream = stream_of(place, tmp_path, memory)
    # Always near the mark, so that all rows are scored from the first word on.
    stream.read_to(WORDS, 0, unheard)
    found = {name: line.stretch.perplexity for name, line in stream.lines.items()}
    assert found == pytest.approx(expected)
    assert stream.done == len(stream.unbounded.datastore) == WORDS
    assert len(Scratch(tmp_path, model.lm.width).words(2 * WORDS)) == WORDS


def test_rows_that_are_not_near_a_mark_wait(place: Path, tmp_path: Path) -> None:
    stream = stream_of(place, tmp_path, MemoryConfig(window=100))
    stream.read_to(WORDS, WORDS, unheard)
    assert stream.lines["unbounded"].words == WORDS
    # Two windows, and what else is in the block where they begin.
    assert 200 <= stream.lines["full"].words < 200 + 128
    assert len(stream.local.datastore) == 100
    assert stream.lines["unbounded"].seconds > stream.lines["static"].seconds


def test_blocks_end_where_they_would_without_a_mark(place: Path, tmp_path: Path) -> None:
    stream = stream_of(place, tmp_path, MemoryConfig())
    ends: list[int] = []
    stream.read_to(200, 500, lambda done, note: ends.append(done))
    stream.read(stream.take(3), timed=False)
    stream.read_stretch(stream.take(297), lambda done, note: ends.append(done))
    stream.read_to(640, 1_500, lambda done, note: ends.append(done))
    assert ends == [128, 200, 256, 384, 500, 512, 640]


def test_looking_ahead_sees_the_states_that_come(place: Path) -> None:
    lm = Watched(load_model(place / "model").lm)
    ids = np.arange(6)
    _, state = lm.advance(lm.start()[1], ids[:2])
    ahead = lm.peek(ids[2:])
    lm.advance(state, ids[2:])
    np.testing.assert_array_equal(lm.hidden, ahead)


def test_a_stretch_is_a_small_part_of_the_entries() -> None:
    assert (stretch_of(2_000), stretch_of(10_000_000)) == (100, 32_768)
    assert (singles_of(2_000), singles_of(10_000_000)) == (100, 300)
