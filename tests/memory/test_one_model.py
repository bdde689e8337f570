"""What `evaluate` calls full is what a memory is made of, wherever it lies."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import unbounded
from tests.memory.texts import some_text
from tests.small import recurrent
from unbounded.corpus import Tokenizer, Vocabulary
from unbounded.errors import SettingError
from unbounded.experts.spelling import EDITION, Spelling
from unbounded.lm import NetworkConfig, Pretrained
from unbounded.memory.opening import _recipe
from unbounded.presets import recipe_for

BASE = ["</s>", *(f"known{i}" for i in range(11))]
MODEL = Pretrained(
    recurrent(len(BASE), NetworkConfig(units=8, cutoffs=(5,)), seed=3),
    Vocabulary(BASE),
    Tokenizer(),
    {"network": "small", "checksums": {}},
    (),
    text=np.random.default_rng(0).integers(0, len(BASE), 400),
)
TEXT = some_text(60)
MORE = "known3 new29 unheard known4\nunheard known3"


def test_full_of_evaluate_is_what_reading_into_a_memory_gives(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    config = unbounded.EvaluationConfig(rows=("full",), protocol="open", block=37)
    (row,) = unbounded.evaluate(MODEL, tmp_path / "text.txt", config).rows
    with (
        unbounded.open(model=MODEL) as here,
        unbounded.open(tmp_path / "m", model=MODEL) as kept,
    ):
        assert set(row.experts) == set(here.online.experts)
        assert {"spelling", "ngrams"} <= set(row.experts)
        for memory in (here, kept):
            reading = memory.read(TEXT)
            assert -reading.logprobs.sum() == pytest.approx(row.tally.nats, rel=1e-6)


def test_a_memory_that_was_closed_goes_on_to_the_bit(tmp_path: Path) -> None:
    with unbounded.open(tmp_path / "m", model=MODEL) as kept:
        kept.read(TEXT)
        asked, known = kept.score(MORE), kept.predict("known3")
    with (
        unbounded.open(model=MODEL) as straight,
        unbounded.open(tmp_path / "m", model=MODEL) as kept,
    ):
        straight.read(TEXT)
        np.testing.assert_array_equal(kept.score(MORE).logprobs, asked.logprobs)
        found = kept.predict("known3")
        assert [(each.word, each.prob) for each in found.words] == [
            (each.word, each.prob) for each in known.words
        ]
        np.testing.assert_array_equal(kept.read(MORE).logprobs, straight.read(MORE).logprobs)
        assert kept.check(deep=True) == []


def test_words_never_met_are_scored_as_they_would_be_read() -> None:
    """The first word that is asked about has the probability that reading it gives."""
    with unbounded.open(model=MODEL) as memory:
        memory.read(TEXT)
        for word in ("unheard", "new29", "known3"):
            asked = memory.score(word).logprobs[0]
            with unbounded.open(model=MODEL) as other:
                other.read(TEXT)
                assert asked == pytest.approx(other.read(word).logprobs[0], rel=1e-6)


def test_what_a_memory_is_made_of_stays(tmp_path: Path) -> None:
    unbounded.open(tmp_path / "m", model=MODEL, preset="unbounded").close()
    with unbounded.open(tmp_path / "m", model=MODEL) as memory:
        assert list(memory.online.experts) == ["static", "spelling", "unbounded"]
    with pytest.raises(SettingError, match="is made of static, spelling, unbounded; that stays"):
        unbounded.open(tmp_path / "m", model=MODEL, preset="full")
    paper = unbounded.open(model=MODEL, preset="paper", config=unbounded.MemoryConfig())
    assert list(paper.online.experts) == ["static", "spelling", "unbounded"]
    with pytest.raises(SettingError, match="preset 'best' is unknown"):
        unbounded.open(model=MODEL, preset="best")
    with pytest.raises(SettingError, match="needs the expert 'unbounded'"):
        unbounded.open(model=MODEL, preset=["static", "spelling"])


def test_a_memory_that_does_not_say_how_it_spells_spells_as_version_0_2_did() -> None:
    about = asdict(recipe_for(MODEL))
    assert about.pop("spelling") == EDITION
    recipe = _recipe(Path("m"), {"recipe": about}, MODEL, None)
    vocabulary, words = MODEL.vocabulary.copy(), ["unheard", "new29", "unheard", "known3"]
    first = Spelling(vocabulary, edition=1)
    expected = first.score(np.zeros((4, 1)), vocabulary.encode(words))
    reading = recipe.build(MODEL, None, unbounded.MemoryConfig()).read(words)
    column = reading.table[:, reading.experts.index("spelling")]
    np.testing.assert_array_equal(column, expected)
    assert not np.array_equal(column, Spelling(vocabulary).score(np.zeros((4, 1)), reading.ids))
