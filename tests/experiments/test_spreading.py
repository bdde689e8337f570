"""The cells of an experiment on a real cluster: the same figures, and what is done is kept."""

from pathlib import Path

import pytest

from experiments.config import load_experiment
from experiments.results import append_result, read_results
from experiments.run import Place, run_experiment, run_spread, silent
from tests.cluster.nodes import cluster
from tests.experiments.test_run import CONFIG, folder, small_corpora

pytest.importorskip("ray")

corpora_folder = folder


def test_cells_are_spread_and_not_run_again(corpora_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(CONFIG.format(kind="rows"))
    experiment = load_experiment(config, "small")
    work, results = tmp_path / "work", tmp_path / "results.jsonl"
    for domain in ("news-2007", "wiki"):
        # With fewer words to validate on than a real one has.
        small_corpora(corpora_folder, work).text(domain, "test")
    place = Place(corpora_folder, work)
    with cluster(nodes=1) as made:
        engine = f"ray://{made.address}"
        running = run_spread(experiment, place, results, engine)
        first = next(running)
        running.close()  # type: ignore[attr-defined]
        assert len(list(read_results(results))) == 1
        every = list(run_spread(experiment, place, results, engine))
    kept = list(read_results(results))
    assert len(every) == len(kept) == 2
    assert every[0]["cell"]["test"] == first["cell"]["test"]
    assert {result["cell"]["test"] for result in every} == {"news-2007", "wiki"}
    # As they are here, with the model that was trained there.
    here = tmp_path / "here.jsonl"
    append_result(here, kept[0])
    for result in run_experiment(experiment, place, here, silent):
        there = next(one for one in kept if one["cell"]["test"] == result["cell"]["test"])
        for row, other in zip(result["rows"], there["rows"], strict=True):
            assert row["perplexity"] == pytest.approx(other["perplexity"], rel=1e-6)
