import numpy as np
import pytest
from hypothesis import given, settings

from tests.evaluation.stream import Keeper, evaluate, new_model, texts
from unbounded.errors import SettingError
from unbounded.evaluation.metrics import BANDS, surprise
from unbounded.evaluation.rows import TITLES, Row, experts_of, make_rows
from unbounded.presets import OFFLINE, experts_for
from unbounded.presets import PRESETS as ROWS


def test_every_row_has_a_title_and_mixes_the_network_with_the_uniform() -> None:
    assert set(TITLES) == set(ROWS)
    for name, experts in ROWS.items():
        network = "dynamic" if name == "dynamic" else "static"
        if name in OFFLINE:
            # As published: the network and the neighbors, and nothing for OOV words.
            assert experts == ("static", OFFLINE[name])
            continue
        assert experts[:2] == (network, "uniform")


def test_a_row_pays_for_the_frozen_network_only_if_it_uses_it() -> None:
    assert Row("dynamic", ROWS["dynamic"], 5).parts == ROWS["dynamic"]
    assert Row("static", ROWS["static"]).parts == ("network", *ROWS["static"])
    counts = ("uniform", "unigram")
    assert Row("counts", counts, 5).parts == counts
    # A gated row looks at the states even if none of its experts does.
    assert Row("full", counts, 5).parts == ("network", *counts)


def test_a_protocol_a_text_and_a_closed_vocabulary_change_no_more_than_they_must() -> None:
    for name, experts in ROWS.items():
        assert experts_for(name) == experts
        # Without the training text only what read it is missing.
        assert set(experts) - set(experts_for(name, text=False)) <= {"ngrams"}
        if name in OFFLINE:
            continue
        # Under the open protocol only the uniform is replaced.
        opened = experts_for(name, "open")
        assert opened[1] == "spelling"
        assert (opened[0], *opened[2:]) == (experts[0], *experts[2:])
    assert experts_of(make_rows(["full"], protocol="open")) == list(experts_for("full", "open"))
    assert "ngrams" not in experts_for("full", text=False)
    # With a closed vocabulary the network alone is a model.
    assert experts_for("static", closed=True) == ("static",)
    assert experts_for("unbounded", "open", closed=True) == ROWS["unbounded"]
    with pytest.raises(SettingError, match="protocol 'closed' is unknown; use paper or open"):
        make_rows(["static"], protocol="closed")


def test_columns_are_the_rows_own_experts_in_its_own_order() -> None:
    reading = new_model().read(["known1", "new1", "known1", "new1"])
    row = Row("mine", ("unbounded", "static"))
    columns = [reading.experts.index(name) for name in row.experts]
    assert columns[0] > columns[1]
    np.testing.assert_array_equal(row.columns(reading), reading.table[:, columns])


@given(words=texts)
@settings(max_examples=20, deadline=None)
def test_each_band_holds_the_nats_of_its_words(words: list[str]) -> None:
    keeper = Keeper()
    row = evaluate(words, ["unbounded"], cuts=(7, 19), watchers=[keeper]).rows[0]
    bands = np.concatenate([block.bands for block in keeper.blocks])
    for i, band in enumerate(row.bands):
        nats = surprise(keeper.probs("unbounded")[bands == i])
        assert band.tokens == len(nats)
        assert band.nats == pytest.approx(nats.sum())
    assert len(row.bands) == len(BANDS)
    assert sum(band.tokens for band in row.bands) == row.tally.tokens == len(words)
    assert sum(band.nats for band in row.bands) == pytest.approx(row.tally.nats)


def test_mean_weights_are_the_mean_of_the_weights_used() -> None:
    keeper = Keeper()
    words = ["known1", "new1", "known2", "new1"] * 5
    row = evaluate(words, ["full"], cuts=(3, 11), watchers=[keeper]).rows[0]
    used = np.concatenate([block.weights["full"] for block in keeper.blocks])
    np.testing.assert_allclose(row.mean_weights, used.mean(axis=0))
    assert row.mean_weights.sum() == pytest.approx(1)
    assert Row("static", ROWS["static"]).mean_weights.tolist() == [0.0, 0.0]
