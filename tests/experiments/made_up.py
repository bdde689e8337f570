"""Results that no model has made, with numbers easy to check."""

import json
from pathlib import Path
from typing import Any

from experiments.ladder import ladder_lines

FACTORS = {"static": 1.0, "unigram": 0.9, "local": 0.8, "unbounded": 0.6, "full": 0.5}


def rows_result(train: str, test: str, static: float = 200.0, **more: Any) -> dict[str, Any]:
    """What `read_cell` gives: perplexity and seconds are simple shares and multiples."""
    tokens = 1_000
    result = {
        "cell": {"train": train, "test": test, "tokens": tokens},
        "training": {"tokens": 2_000, "epochs": 3},
        "trained": {"dropout": 0.2},
        "tokens": tokens,
        "oov_rate": 0.05,
        "vocabulary": 1_234,
        "fitted_on": 100,
        "rows": [
            {
                "name": name,
                "perplexity": static * factor,
                "fixed_perplexity": static * factor * 1.1,
                "seconds_per_token": 0.0005 / factor,
            }
            for name, factor in FACTORS.items()
        ],
        "curve": {
            "tokens": [300, 600, 900, 1_000],
            "static": [200.0] * 4,
            "unigram": [180.0, 170.0, 160.0, 150.0],
            "unbounded": [150.0, 120.0, 110.0, 100.0],
        },
        "commit": "abc1234",
        "changed": False,
        "machine": "3 cores, slate",
    }
    return result | more


def neighbors_result(test: str, gain: float = 0.1) -> dict[str, Any]:
    """What `read_neighbors` gives."""
    return {
        "cell": {"train": "news-2007", "test": test},
        "training": {"tokens": 2_000, "epochs": 3},
        "tokens": 1_000,
        "static": 5.5,
        "unigram": 5.0,
        "family": 5.0 - 5 * gain,
        "lines": {
            **{f"k {2**i}": 5.0 - i * gain for i in range(5)},
            **{f"gaussian {2**i}": 5.0 - gain for i in range(8)},
            **{f"epanechnikov {2**i}": 5.0 - gain / 2 for i in range(3)},
        },
        "commit": "abc1234",
        "changed": True,
    }


def vocabulary_result(test: str) -> dict[str, Any]:
    """What `count_vocabulary` gives."""
    return {
        "cell": {"train": "news-2007", "test": test},
        "tokens": 1_000,
        "types": 777,
        "vocabulary": 8_888,
        "oov_rate": 0.0456,
        "commit": "abc1234",
    }


def bits_result(test: str, packed: float = 2.0) -> dict[str, Any]:
    """What `read_instead` gives."""
    result = rows_result("news-2007", test)
    for row, bits in zip(result["rows"], (1.5, 1.4, 1.3, 1.2, 1.1), strict=True):
        row["bits_per_character"] = bits
    packers = [{"name": "xz -9e", "bits_per_character": packed, "seconds": 0.002, "memory": 7e6}]
    return result | {"protocol": "open", "compressors": packers}


def keep(folder: Path, name: str, *results: dict[str, Any]) -> Path:
    """Lay results down as `run_all` does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(result) + "\n" for result in results), encoding="utf-8")
    return path


def ladder_result(test: str) -> dict[str, Any]:
    """What a cell of the ladder gives: each line is one lower than the one before."""
    rows = [
        {"name": name, "perplexity": 100.0 - place, "fixed_perplexity": 200.0 - place}
        for place, name in enumerate(ladder_lines())
    ]
    return rows_result("news-2007", test, rows=rows)


def recipe_result(test: str) -> dict[str, Any]:
    """What a cell of a table gives for the paper's recipe."""
    rows = [
        {"name": name, "perplexity": value, "fixed_perplexity": 2 * value}
        for name, value in (("static", 250.0), ("paper", 200.0))
    ]
    cell = {"train": "news-2007", "test": test, "tokens": 1_000, "training": "paper"}
    trained = {"epochs": 10, "dropout": 0.0}
    curve = {"tokens": [300, 600, 900, 1_000], "paper": [200.0] * 4}
    return rows_result("news-2007", test, rows=rows, cell=cell, trained=trained, curve=curve)


def ablation_result(test: str) -> dict[str, Any]:
    """What `read_ablation` gives: `full` is 100."""
    without = {"unigram": 101.0, "n-grams": 110.0, "weights that depend on the state": 102.5}
    seconds = {"unigram": 1e-6, "ngrams": 5e-6, "static": 1e-5}
    return rows_result("news-2007", test, without=without, seconds=seconds)


def keep_all(folder: Path) -> None:
    """Something of every table and figure, at the paper's scale."""
    keep(folder, "table1-paper", vocabulary_result("web"))
    keep(folder, "table2-paper", *(rows_result("news-2007", f"news-{y}") for y in (2008, 2009)))
    far = [rows_result("wiki", "books"), rows_result("news-2007", "wiki"), recipe_result("wiki")]
    keep(folder, "table3-paper", *far)
    keep(folder, "table4-paper", rows_result("news-2007", "wiki"))
    keep(folder, "ladder-paper", ladder_result("wiki"))
    keep(folder, "ablation-paper", ablation_result("web"))
    keep(folder, "instead-paper", bits_result("web"), bits_result("wiki", 0.5))
    keep(folder, "figure1-paper", neighbors_result("web"), neighbors_result("books", 0.2))
