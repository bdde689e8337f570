"""The paper's own numbers (Grave, Cisse and Joulin, 2017), keyed by our domains and rows."""

from dataclasses import dataclass

Pair = tuple[str, str]
"""A training domain and a test domain."""

TOKENS = 10_000_000
"""Test words of every cell: "2 million tokens for training … and 10 million for evaluation"."""


@dataclass(frozen=True)
class TestText:
    """What table 1 says of a test text."""

    size: int
    oov_percent: float


TABLE1 = {
    ("news-2007", "news-2008"): TestText(219_796, 2.3),
    ("news-2007", "news-2009"): TestText(218_628, 2.4),
    ("news-2007", "news-2010"): TestText(205_859, 2.4),
    ("news-2007", "news-2011"): TestText(209_187, 2.5),
    ("news-2007", "commentary"): TestText(144_197, 4.2),
    ("news-2007", "web"): TestText(321_072, 5.9),
    ("news-2007", "wiki"): TestText(191_554, 5.5),
    ("news-2007", "books"): TestText(174_037, 3.7),
}
"""Vocabulary size and out-of-vocabulary rate, for a model trained on news 2007."""


def _by_row(train: str, tests: str, **rows: tuple[float, ...]) -> dict[Pair, dict[str, float]]:
    """Turn the paper's lines (a row, one number a test text) into cells (one number a row)."""
    return {
        (train, test): {name: numbers[place] for name, numbers in rows.items()}
        for place, test in enumerate(tests.split())
    }


TABLE2 = _by_row(
    "news-2007",
    "news-2007 news-2008 news-2009 news-2010 news-2011",
    static=(220.9, 237.6, 256.2, 259.7, 268.8),
    unigram=(220.3, 235.9, 252.6, 256.1, 264.3),
    local=(218.9, 234.5, 250.5, 256.2, 265.2),
    unbounded=(166.5, 191.4, 202.6, 204.8, 214.3),
)
"""Perplexities near the training domain."""

# The paper does not say which year its test text "News" is of; ours is 2008.
TABLE3 = {
    **_by_row(
        "news-2007",
        "commentary web wiki books",
        static=(342.7, 689.3, 1003.2, 687.1),
        unigram=(303.5, 581.1, 609.4, 349.1),
        local=(288.5, 593.4, 316.5, 240.3),
        unbounded=(191.1, 383.4, 337.4, 237.2),
    ),
    **_by_row(
        "web",
        "news-2008 commentary wiki books",
        static=(624.1, 484.0, 805.3, 784.3),
        unigram=(519.2, 395.6, 605.3, 352.4),
        local=(531.4, 391.3, 321.5, 235.8),
        unbounded=(306.3, 234.9, 340.2, 223.6),
    ),
    **_by_row(
        "wiki",
        "news-2008 commentary web books",
        static=(638.1, 626.3, 901.0, 654.6),
        unigram=(537.9, 462.2, 688.5, 346.9),
        local=(532.8, 436.7, 694.3, 228.8),
        unbounded=(318.7, 255.3, 456.1, 223.8),
    ),
}
"""Perplexities far from the training domain."""

TABLE4 = _by_row(
    "news-2007",
    "news-2008 commentary web wiki books",
    static=(82.0, 78.0, 85.0, 87.0, 81.0),
    local=(664.0, 613.0, 668.0, 637.0, 626.0),
    unbounded=(433.0, 494.0, 502.0, 540.0, 562.0),
)
"""Seconds to read 10 M words, on hardware that the paper does not name."""
