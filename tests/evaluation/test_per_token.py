import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from tests.evaluation.stream import NEW, Keeper, evaluate, some_words
from unbounded.errors import MissingExtra
from unbounded.evaluation.evaluation import Evaluation, per_token_writer

SUFFIXES = ("jsonl", "parquet")


def written(path: Path, words: list[str]) -> tuple[Evaluation, list[dict[str, Any]]]:
    with per_token_writer(path) as writer:
        evaluation = evaluate(words, cuts=(7, 31), watchers=[writer])
    return evaluation, records(path)


def records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        found: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return found
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    words = some_words(60)
    assert written(tmp_path / "a.jsonl", words)[1] == written(tmp_path / "a.parquet", words)[1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_nats_of_a_row_add_up_to_its_perplexity(tmp_path: Path, suffix: str) -> None:
    words = some_words(60)
    evaluation, lines = written(tmp_path / f"a.{suffix}", words)
    assert [line["word"] for line in lines] == words
    assert [line["new"] for line in lines] == [word in NEW for word in words]
    # What an expert holds for impossible is null.
    assert [line["expert.static"] is None for line in lines] == [word in NEW for word in words]
    assert not any(line["expert.uniform"] is None for line in lines)
    for row in evaluation.rows:
        mean = np.mean([line[f"row.{row.name}"] for line in lines])
        assert np.exp(mean) == pytest.approx(row.tally.perplexity, rel=1e-5)


def test_the_rows_nats_follow_from_its_experts_and_weights(tmp_path: Path) -> None:
    evaluation, lines = written(tmp_path / "a.jsonl", some_words(60))
    for row in evaluation.rows:
        for line in lines:
            mixed = 0.0
            for expert in row.experts:
                nats = line[f"expert.{expert}"]
                probability = 0.0 if nats is None else np.exp(-nats)
                mixed += line[f"weight.{row.name}.{expert}"] * probability
            assert -np.log(mixed) == pytest.approx(line[f"row.{row.name}"], abs=1e-4)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("stopped_by", [RuntimeError, KeyboardInterrupt])
def test_a_crash_leaves_the_old_file_and_no_litter(
    tmp_path: Path, suffix: str, stopped_by: type[BaseException]
) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text("old")

    def crash(block: object) -> None:
        raise stopped_by

    with pytest.raises(stopped_by), per_token_writer(path) as writer:
        evaluate(some_words(20), watchers=[writer, crash])
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_scored_is_an_empty_file(tmp_path: Path, suffix: str) -> None:
    with per_token_writer(tmp_path / f"a.{suffix}"):
        pass
    assert records(tmp_path / f"a.{suffix}") == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_word_comes_back_as_it_was(tmp_path: Path, suffix: str) -> None:
    words = ['"', "\\", "%s", "NaN", "null", "{}", ",", "雨", "\u007f", "\u200b"]
    keeper = Keeper()
    evaluate(["known0"] * len(words), watchers=[keeper])
    keeper.blocks[0].reading.words[:] = words  # type: ignore[index]
    with per_token_writer(tmp_path / f"a.{suffix}") as writer:
        writer(keeper.blocks[0])
    assert [line["word"] for line in records(tmp_path / f"a.{suffix}")] == words


def test_without_pyarrow_it_says_so_before_any_word_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="parquet"), per_token_writer(tmp_path / "a.parquet"):
        pytest.fail("it should not have begun")
    assert list(tmp_path.iterdir()) == []
