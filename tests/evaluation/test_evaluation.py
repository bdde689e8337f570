import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.stream import (
    FULL,
    KNOWN,
    NEW,
    ROWS,
    Keeper,
    cut,
    cuts,
    evaluate,
    new_model,
    some_words,
)
from unbounded.errors import CorpusError, SettingError
from unbounded.evaluation.evaluate import fit_rows, split_first
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.metrics import FrequencyBuckets
from unbounded.evaluation.rows import experts_of, make_rows
from unbounded.mixture import Fixed, fit_weights


@pytest.mark.parametrize("names", [["statik"], [], ["static", "static"]])
def test_rows_that_make_no_table_are_refused(names: list[str]) -> None:
    with pytest.raises(SettingError):
        make_rows(names)


def test_only_needed_experts_are_asked_for() -> None:
    assert [row.name for row in make_rows(["local", "static"])] == ["local", "static"]
    assert experts_of(make_rows(["local", "unigram"])) == ["static", "uniform", "unigram", "local"]
    assert experts_of(make_rows(["static"])) == ["static", "uniform"]
    assert experts_of(make_rows(["dynamic", "static"])) == ["static", "uniform", "dynamic"]


FIGURES = ("perplexity", "bits_per_character", "seconds", "seconds_per_token")


def test_json_has_the_keys_of_the_design() -> None:
    evaluation = evaluate(some_words(50))
    evaluation.settings |= {"protocol": "paper", "k": 4}
    found = evaluation.to_json()
    figures = {"tokens", "oov_rate", "vocabulary", "rows"}
    assert set(found) == figures | {"memory", "events"} | set(evaluation.settings)
    for row in found["rows"]:
        assert set(row) == {"name", "title", "weights", "bands", *FIGURES}
        assert set(row["weights"]) == set(ROWS[row["name"]])
        assert sum(row["weights"].values()) == pytest.approx(1)
        assert sum(band["tokens"] for band in row["bands"].values()) == 50
        assert row["seconds_per_token"] == pytest.approx(row["seconds"] / 50)
    assert json.loads(json.dumps(found)) == found


def test_tokens_and_oov_words_are_counted_and_shown() -> None:
    words, shown = some_words(50), list[int]()
    evaluation = Evaluation({}, FULL, make_rows(["static"]))
    blocks = cut(words, (13, 14))
    evaluation.run(new_model(), blocks, every=5, show=lambda done, note: shown.append(done))
    assert shown == [13, 14, 50]
    assert evaluation.tokens == 50
    assert evaluation.oov == sum(word in NEW for word in words)
    assert evaluation.oov_rate == evaluation.oov / 50


def test_nothing_to_score_and_nothing_to_fit_on_are_errors() -> None:
    with pytest.raises(CorpusError, match="no words"):
        evaluate([])
    with pytest.raises(CorpusError, match="empty"):
        fit_rows(new_model(), [], make_rows(["static"]))


def test_fitted_weights_are_those_of_em_on_the_first_part_which_is_not_scored() -> None:
    words = some_words(200)
    rows = make_rows(list(ROWS))
    model = new_model()
    assert fit_rows(model, cut(words[:80], (30,)), rows) == 80

    first = new_model().read(words[:80])
    for row in rows:
        assert isinstance(row.mixture, Fixed)
        np.testing.assert_allclose(
            row.mixture.weights, fit_weights(row.columns(first), prior=1.0), rtol=1e-4
        )
        assert row.tally.tokens == 0

    keeper = Keeper()
    evaluation = Evaluation({}, FULL, rows)
    evaluation.run(model, cut(words[80:], ()), every=50, watchers=[keeper])
    assert evaluation.tokens == 120
    assert all(row.tally.tokens == 120 for row in rows)
    assert keeper.blocks[0].reading.words == words[80:]
    rest = new_model()
    rest.read(words[:80])
    second = rest.read(words[80:])
    for row in rows:
        np.testing.assert_allclose(
            keeper.probs(row.name), row.columns(second) @ row.mixture.weights, rtol=1e-6
        )


def test_fitting_on_the_same_text_counts_its_strangers() -> None:
    buckets = FrequencyBuckets(12)
    fit_rows(new_model(["static"]), cut(["new0", "new0"], ()), make_rows(["static"]), buckets)
    assert buckets.bands(np.array([12])).tolist() == [5]


@given(cuts=cuts, tokens=st.integers(0, 50))
def test_the_first_words_are_split_off_exactly_wherever_blocks_end(
    cuts: list[int], tokens: int
) -> None:
    words = some_words(40)
    first, rest = split_first(cut(words, cuts), tokens)
    assert [word for block in first for word in block.words] == words[:tokens]
    assert [word for block in rest for word in block.words] == words[tokens:]
    assert all(len(block.line) == len(block.words) for block in first)


def test_both_kinds_of_weights_in_one_pass_equal_each_alone() -> None:
    figures = {}
    for mixture in ("online", "fixed", "both"):
        rows = make_rows(["static", "unbounded"])
        model, buckets = new_model(["static", "unbounded"]), FrequencyBuckets(len(KNOWN) + 1)
        first, rest = split_first(cut(some_words(200), range(0, 200, 7)), 60)
        if mixture == "online":
            for block in first:
                reading = model.read(block.words)
                for row in rows:
                    row.mixture.score(row.columns(reading))
        else:
            fit_rows(model, first, rows, buckets, beside=mixture == "both")
        evaluation = Evaluation({}, FULL, rows)
        evaluation.run(model, rest, every=100)
        figures[mixture] = evaluation.to_json()["rows"]
    for online, fixed, both in zip(*figures.values(), strict=True):
        assert both["perplexity"] == pytest.approx(online["perplexity"])
        assert both["fixed_perplexity"] == pytest.approx(fixed["perplexity"])
        # Fitted to the very words: no other fixed weights are better.
        assert both["hindsight_perplexity"] <= both["fixed_perplexity"]
