"""Where words came from, held to the plain definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.store.catalog import Catalog, Document
from unbounded.store.records import Words

blocks = st.lists(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=4
    ),
    min_size=1,
    max_size=6,
)
cuts = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=4)


def filled(made: list[list[tuple[int, int, int]]]) -> tuple[Catalog, list[tuple[str, int, float]]]:
    """A ledger, and for every word its document, line and time."""
    catalog, every = Catalog(), list[tuple[str, int, float]]()
    for name in "abc":
        catalog.add_document(Document(name, 0.0))
    for number, runs in enumerate(made):
        catalog.add_words(number, Words(float(number), np.array(runs), memoryview(b"")))
        for document, line, count in runs:
            every += [("abc"[document], line, float(number))] * count
    return catalog, every


@given(made=blocks, cuts=cuts)
@settings(max_examples=100, deadline=None)
def test_every_entry_knows_its_document_line_and_time(
    made: list[list[tuple[int, int, int]]], cuts: list[tuple[int, int]]
) -> None:
    catalog, every = filled(made)
    gone = np.zeros(len(every), bool)
    for start, length in cuts:
        start, stop = min(start, len(every) - 1), min(start + length, len(every))
        catalog.forget([(start, max(stop, start + 1))])
        gone[start : max(stop, start + 1)] = True
    left = np.flatnonzero(~gone)
    assert catalog.entries == len(left)
    assert catalog.gone == gone.sum()
    assert catalog.positions_of(np.arange(len(left))).tolist() == left.tolist()
    found = [(w.document, w.line, w.time) for w in catalog.where(left)]
    assert found == [every[at] for at in left]
    for first in range(0, len(every), 3):
        assert (
            catalog.kept(first, 7).tolist()[: len(every) - first]
            == (~gone[first : first + 7]).tolist()
        )


@given(made=blocks)
@settings(max_examples=50, deadline=None)
def test_lines_that_lie_in_two_blocks_are_put_together(
    made: list[list[tuple[int, int, int]]],
) -> None:
    catalog, every = filled(made)
    lines = catalog.lines()
    assert lines.lengths.sum() == len(every)
    places = [(document, line) for document, line, _ in every]
    changes = [i for i in range(len(places)) if i == 0 or places[i] != places[i - 1]]
    assert lines.starts.tolist() == changes


def test_a_line_costs_few_bytes_and_a_word_none() -> None:
    catalog = Catalog()
    catalog.add_document(Document("a", 0.0))
    for number in range(100):
        runs = np.stack([np.zeros(20), np.arange(20), np.full(20, 25)], axis=1).astype(np.int64)
        catalog.add_words(number, Words(0.0, runs, memoryview(b"")))
    assert catalog.positions == 50_000
    assert catalog.bytes / catalog.positions < 0.6
