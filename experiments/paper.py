"""The paper's own numbers (Grave, Cisse and Joulin, 2017), keyed by our domains and rows."""

Pair = tuple[str, str]
"""A training domain and a test domain."""

TOKENS = 10_000_000
"""Test words of every cell: "2 million tokens for training … and 10 million for evaluation"."""


def _cells(table: str) -> dict[Pair, dict[str, float]]:
    """A line a cell, under the names of its numbers."""
    (_, _, *names), *lines = (line.split() for line in table.strip().splitlines())
    return {
        (train, test): dict(zip(names, map(float, numbers), strict=True))
        for train, test, *numbers in lines
    }


TABLE1 = _cells("""
    train      test          size  oov_percent
    news-2007  news-2008   219796          2.3
    news-2007  news-2009   218628          2.4
    news-2007  news-2010   205859          2.4
    news-2007  news-2011   209187          2.5
    news-2007  commentary  144197          4.2
    news-2007  web         321072          5.9
    news-2007  wiki        191554          5.5
    news-2007  books       174037          3.7
""")
"""Vocabulary size and out-of-vocabulary rate, for a model trained on news 2007."""

TABLE2 = _cells("""
    train      test       static  unigram  local  unbounded
    news-2007  news-2007   220.9    220.3  218.9      166.5
    news-2007  news-2008   237.6    235.9  234.5      191.4
    news-2007  news-2009   256.2    252.6  250.5      202.6
    news-2007  news-2010   259.7    256.1  256.2      204.8
    news-2007  news-2011   268.8    264.3  265.2      214.3
""")
"""Perplexities near the training domain."""

# The paper does not say which year its test text "News" is of; ours is 2008.
TABLE3 = _cells("""
    train      test        static  unigram  local  unbounded
    news-2007  commentary   342.7    303.5  288.5      191.1
    news-2007  web          689.3    581.1  593.4      383.4
    news-2007  wiki        1003.2    609.4  316.5      337.4
    news-2007  books        687.1    349.1  240.3      237.2
    web        news-2008    624.1    519.2  531.4      306.3
    web        commentary   484.0    395.6  391.3      234.9
    web        wiki         805.3    605.3  321.5      340.2
    web        books        784.3    352.4  235.8      223.6
    wiki       news-2008    638.1    537.9  532.8      318.7
    wiki       commentary   626.3    462.2  436.7      255.3
    wiki       web          901.0    688.5  694.3      456.1
    wiki       books        654.6    346.9  228.8      223.8
""")
"""Perplexities far from the training domain."""

TABLE4 = _cells("""
    train      test        static  local  unbounded
    news-2007  news-2008     82.0  664.0      433.0
    news-2007  commentary    78.0  613.0      494.0
    news-2007  web           85.0  668.0      502.0
    news-2007  wiki          87.0  637.0      540.0
    news-2007  books         81.0  626.0      562.0
""")
"""Seconds to read 10 M words, on hardware that the paper does not name."""
