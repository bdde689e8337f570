"""Counts of word sequences: the same as counting in dictionaries, in bounded bytes."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded import _native
from unbounded.errors import SettingError
from unbounded.experts import NGram, Unigram
from unbounded.experts.ngram import (
    DISCOUNT,
    NEXT,
    NONE,
    ORDERS,
    REPEATS,
    TOTALS,
    TRUST,
    counted_apart,
)
from unbounded.types import Hidden, Ids


def nothing(words: Ids) -> Hidden:
    """Hidden states, which an n-gram does not look at."""
    return np.zeros((len(words), 1))


def text(length: int, vocabulary: int, seed: int = 0) -> Ids:
    """Words with Zipf's frequencies in which half of the time an earlier phrase comes back."""
    random = np.random.default_rng(seed)
    words: list[int] = []
    while len(words) < length:
        if len(words) > 20 and random.random() < 0.5:
            start = int(random.integers(0, len(words) - 8))
            words += words[start : start + 8]
        else:
            words += np.minimum(random.zipf(1.4, 8) - 1, vocabulary - 1).tolist()
    return np.array(words[:length])


class InDictionaries:
    """The same model in the plainest Python: what `NGram` must agree with."""

    def __init__(self, size: int) -> None:
        """Words beyond `size` have nothing until they are read."""
        self.size = size
        self.read: list[int] = []
        self.counts: dict[tuple[int, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.last: dict[tuple[int, ...], int] = {}
        self.learned: dict[tuple[int, int, int], list[float]] = defaultdict(lambda: [1.0] * 3)
        self.learned_of_both: dict[tuple[int, int, int], list[float]]

    def step(self, word: int) -> float:
        prob = 1 / self.size if word < self.size else 0.0
        for context in self.contexts():
            if not self.counts[context]:
                break
            prob = self.weigh(context, word, prob)
        self.count(word)
        return prob

    def contexts(self) -> list[tuple[int, ...]]:
        """The last 0, 1, … words."""
        contexts = [tuple(self.read[len(self.read) - n :]) for n in range(ORDERS)]
        return [c for n, c in enumerate(contexts) if len(c) == n and n <= len(self.read)]

    def weigh(
        self, context: tuple[int, ...], word: int, prob: float, *, both: bool = False
    ) -> float:
        """What a context makes of what shorter ones say; it learns whom to trust."""
        counts = self.counts[context]
        total = sum(counts.values())
        met = min(int(2 * np.log2(total)), TOTALS - 1)
        kinds = self.learned_of_both if both else self.learned
        learned = kinds[len(context), met, (total - len(counts)) * REPEATS // total]
        weights = [part / sum(learned) for part in learned]
        seen = max(counts.get(word, 0) - DISCOUNT, 0)
        parts = [
            weights[0] * seen / (total - DISCOUNT * len(counts)),
            weights[1] * (self.last[context] == word),
            weights[2] * prob,
        ]
        prob = sum(parts)
        for part in range(3):
            learned[part] += parts[part] / prob if prob else 0.0
        return prob

    def count(self, word: int) -> None:
        """Learn what came."""
        contexts = self.contexts()
        for context in reversed(contexts):
            self.counts[context][word] += 1
            if self.counts[context][word] > 1:
                break
        for context in contexts:
            self.last[context] = word
        self.read.append(word)


def after(text: Ids, size: int, *, open: bool = False) -> NGram:
    """One that has read a text, and counts apart what it reads since."""
    ngram = NGram(size, open=open)
    ngram.score(nothing(text), text)
    return NGram(size, open=open, base=counted_apart(ngram.state()))


def both_in_dictionaries(text: Ids, since: Ids, size: int) -> list[float]:
    """What two of the plain ones say together: at each length what came since, and then all."""
    whole, apart = InDictionaries(size), InDictionaries(size)
    for word in text.tolist():
        whole.step(word)
    whole.learned_of_both = defaultdict(lambda: [1.0] * 3)
    for kind, learned in whole.learned.items():
        whole.learned_of_both[kind] = [part * min(TRUST / sum(learned), 1) for part in learned]
    probs = []
    for word in since.tolist():
        prob = 1 / size if word < size else 0.0
        for context in whole.contexts():
            if not whole.counts[context]:
                break
            # Contexts that reach back before the stream are not its own.
            both = len(context) <= len(apart.read) and bool(apart.counts[context])
            if both:
                prob = apart.weigh(context, word, prob)
            prob = whole.weigh(context, word, prob, both=both)
        probs.append(prob)
        whole.count(word)
        apart.count(word)
    return probs


@given(st.lists(st.integers(0, 7), min_size=1, max_size=60), st.integers(0, 60), st.booleans())
@settings(max_examples=120, deadline=None)
def test_after_a_text_it_says_what_two_say_together(
    stream: list[int], first: int, open: bool
) -> None:
    size, words = 4 if open else 10, np.array(stream)
    text, since = words[:first] % 4, words[first:]
    ngram = after(text, size, open=open)
    expected = both_in_dictionaries(text, since, size)
    np.testing.assert_allclose(ngram.score(nothing(since), since), expected, rtol=1e-9)
    assert ngram.predict(np.zeros((1, 1))).dense(10).sum() == pytest.approx(1)


def test_after_a_text_too_it_says_so_when_the_tables_have_grown() -> None:
    words = text(5_000, 500)
    ngram = after(words[:2_500], 500)
    since = words[2_500:]
    expected = both_in_dictionaries(words[:2_500], since, 500)
    asked, behind = ngram.peek(since[:40])
    np.testing.assert_allclose(ngram.score(nothing(since), since), expected, rtol=1e-9)
    # Asked without teaching, what was said once is not there yet the second time.
    np.testing.assert_allclose(asked[0], expected[0], rtol=1e-9)
    np.testing.assert_array_equal(behind.context, since[36:40])
    np.testing.assert_allclose(ngram.predict(np.zeros((1, 1))).dense(500).sum(), 1, rtol=1e-12)
    alone = NGram(500)
    alone.score(nothing(words), words)
    # A node of both is there once: 4 bytes more, not 20, and rows of counts.
    assert ngram.bytes < 1.5 * alone.bytes


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.booleans())
@settings(max_examples=120, deadline=None)
def test_it_says_what_counting_in_dictionaries_says(stream: list[int], open: bool) -> None:
    """Also when more words come than were known."""
    size, words = 4 if open else 10, np.array(stream)
    plain, ngram = InDictionaries(size), NGram(size, open=open)
    expected = [plain.step(word) for word in stream]
    np.testing.assert_allclose(ngram.score(nothing(words), words), expected, rtol=1e-9)
    assert expected[0] == (1 / size if stream[0] < size else 0)
    assert ngram.predict(np.zeros((1, 1))).dense(10).sum() == pytest.approx(1)


def test_it_says_so_too_when_the_tables_have_grown_many_times() -> None:
    words = text(5_000, 500)
    plain, ngram = InDictionaries(500), NGram(500)
    expected = [plain.step(int(word)) for word in words]
    np.testing.assert_allclose(ngram.score(nothing(words), words), expected, rtol=1e-9)
    dense = ngram.predict(np.zeros((3, 1))).dense(500)
    assert (dense > 0).all()
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-12)


def test_a_prediction_is_zero_beyond_the_full_vocabulary() -> None:
    ngram = NGram(4)
    ngram.score(np.zeros((2, 1)), np.array([1, 2]))
    dense = ngram.predict(np.zeros((1, 1))).dense(6)
    assert dense[0, 4:].tolist() == [0, 0]
    assert abs(dense.sum() - 1) < 1e-12


def test_the_largest_word_numbers_are_words_like_any_other() -> None:
    largest = 2**31
    high = np.array([largest - 1, largest - 2, largest - 3] * 20)
    low = np.array([2, 1, 0] * 20)
    probs = NGram(largest).score(nothing(high), high)
    assert (probs[-3:] > 0.9).all()
    np.testing.assert_array_equal(probs, NGram(largest).score(nothing(low), low))


def test_a_phrase_seen_once_is_expected_the_second_time() -> None:
    words = text(2_000, 300)
    phrase = np.array([290, 291, 292, 293, 294, 295])
    stream = np.concatenate([words, phrase, words[:50], phrase])
    probs = NGram(300).score(nothing(stream), stream)
    assert (probs[-5:] > 0.3).all()  # measured 0.58 and more
    assert (probs[2_000:2_006] < 0.01).all()


def test_it_foresees_a_text_better_than_word_counts() -> None:
    words = text(20_000, 2_000)
    uniform = np.full(len(words), 1 / 2_000)

    def nats(expert: NGram | Unigram) -> float:
        return float(-np.log(0.9 * expert.score(nothing(words), words) + 0.1 * uniform).mean())

    assert nats(NGram(2_000)) < 0.9 * nats(Unigram(2_000))  # measured 0.83


def test_a_word_costs_a_bounded_number_of_bytes() -> None:
    words = text(50_000, 5_000)
    ngram = NGram(5_000)
    ngram.score(nothing(words), words)
    held = sum(array.nbytes for array in ngram.state().values())
    assert held <= 20 * ORDERS * len(words) + 20_000


def test_a_word_beyond_the_full_vocabulary_is_an_error() -> None:
    with pytest.raises(SettingError, match="word number 10 came"):
        NGram(9).score(np.zeros((2, 1)), np.array([0, 9]))


def test_every_node_is_in_one_chain_and_no_chain_is_long() -> None:
    words = text(20_000, 2_000)
    ngram = NGram(2_000)
    ngram.score(nothing(words), words)
    state = ngram.state()
    nodes, heads = state["nodes"], state["heads"]
    lengths, met = [], []
    for head in heads.tolist():
        chain = []
        while head:
            chain.append(head)
            head = int(nodes[head, NEXT])
        lengths.append(len(chain))
        met += chain
    assert sorted(met) == list(range(1, len(nodes)))
    assert len({(parent, word) for parent, word in nodes[1:, :2].tolist()}) == len(nodes) - 1
    assert max(lengths) < 15  # measured 8


def with_all_counts(state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Nodes as they were while each had counts: parent, word, four counts, next."""
    nodes = []
    for parent, word, following, last in state["nodes"].tolist():
        once = [1, 0, 0, 0] if last == NONE else [1, 1, 1, last]
        counts = once if last >= NONE else state["counts"][NONE - 1 - last].tolist()
        nodes.append([parent, word, *counts, following])
    return np.array(nodes, np.int32)


@pytest.mark.parametrize("chains", [True, False])
def test_a_state_from_before_most_nodes_lost_their_counts_goes_on(chains: bool) -> None:
    words = text(3_000, 300)
    ngram, other = NGram(300), NGram(300)
    ngram.score(nothing(words[:2_000]), words[:2_000])
    state = ngram.state()
    old = {name: state[name] for name in ("contexts", "learned")}
    nodes = with_all_counts(state)
    if chains:
        other.load([{**old, "nodes": nodes, "heads": state["heads"]}])
    else:
        room = np.zeros((4096, 6), np.int32)
        room[: len(nodes)] = nodes[:, :6]
        other.load([{**old, "nodes": room, "used": np.array([len(nodes)])}])
    rest = words[2_000:]
    expected = ngram.score(nothing(rest), rest)
    np.testing.assert_array_equal(other.score(nothing(rest), rest), expected)


def test_a_state_from_before_what_came_once_after_four_words_lost_its_node_goes_on() -> None:
    words = text(3_000, 300)
    ngram, other = NGram(300), NGram(300)
    ngram.score(nothing(words[:2_000]), words[:2_000])
    state = ngram.state()
    nodes = state["nodes"].tolist()
    depth = [0]
    for parent, *_ in nodes[1:]:
        depth.append(depth[parent] + 1)
    for node in np.flatnonzero(np.array(depth) == ORDERS - 1).tolist():
        last = nodes[node][3]
        row = [1, 1, 1, last] if last > NONE else state["counts"][NONE - 1 - last].tolist()
        if last != NONE and row[1] == 1:
            nodes.append([node, row[3], 0, NONE])
    assert len(nodes) > 1.2 * len(state["nodes"])
    explicit = np.array(nodes, np.int32)
    explicit[:, NEXT] = 0
    heads = _native.ngram_chain(explicit)
    other.load([{**state, "nodes": explicit, "heads": heads}])
    rest = words[2_000:]
    np.testing.assert_array_equal(
        other.score(nothing(rest), rest), ngram.score(nothing(rest), rest)
    )


def test_only_what_came_again_has_counts() -> None:
    words = text(20_000, 2_000)
    ngram = NGram(2_000)
    ngram.score(nothing(words), words)
    state = ngram.state()
    last = state["nodes"][:, 3]
    # Every row of counts belongs to one node, and says more than that it came once.
    assert np.sort(NONE - 1 - last[last < NONE]).tolist() == list(range(len(state["counts"])))
    count, total = state["counts"][1:, 0], state["counts"][1:, 1]
    assert ((count > 1) | (total > 1)).all()
    assert len(state["counts"]) < len(last) / 2


def test_a_state_that_points_outside_of_itself_or_in_a_circle_is_refused() -> None:
    words = text(300, 30)
    ngram = NGram(30)
    ngram.score(nothing(words), words)
    for name, column, value in [
        *(("nodes", n, 10**6) for n in (0, 2)),
        *(("nodes", n, -5) for n in range(3)),
        ("nodes", 2, 7),  # a chain in a circle
        ("nodes", 3, -(10**6)),
        ("counts", 2, -1),
    ]:
        state = ngram.state()
        state[name][7, column] = value
        with pytest.raises(ValueError, match="damaged"):
            NGram(30).load([state])


@pytest.mark.parametrize(
    ("place", "wrong", "complaint"),
    [
        (0, np.array([-1]), "word number -1"),
        (0, np.array([2**31]), "word number 2147483648"),
        (0, np.array([1.0]), "words is an array of another type"),
        (2, np.zeros(1, np.int64), "heads is an array of another type"),
        (3, np.zeros((9, 3), np.int32), "4 columns"),
        (3, np.zeros((9, 6), np.int32), "4 columns, or 5"),
        (5, np.array([[0, 77, -1, -1, -1]]), "context 77 is no node"),
        (5, np.array([[3, -1, -1, -1, -1]]), "context 3 is no node"),
        (5, np.array([[0, -1, -1, -1, -1]] * 2), "5 for each view"),
        (6, np.ones((749, 3)), "750 rows"),
        (7, 0, "0 nodes in use"),
        (8, 99, "99 rows of counts in use"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(
    place: int, wrong: object, complaint: str
) -> None:
    ngram = NGram(5)
    tree = ngram._tables(ngram._contexts)
    given = [np.array([3]), 5, *tree]
    given[place] = wrong
    with pytest.raises(ValueError, match=complaint):
        _native.ngram_walk(given[0], 5, tuple(given[2:]))  # type: ignore[arg-type]
    if place == 0:
        with pytest.raises(ValueError, match=complaint):
            _native.ngram_ask(given[0], 5, tree, _native.ngram_weigh(tree))  # type: ignore[arg-type]


def test_what_there_is_no_room_for_is_not_read() -> None:
    ngram = NGram(5)
    with pytest.raises(ValueError, match="no room for 12 nodes more"):
        _native.ngram_read(np.array([1, 2]), 5, ngram._tables(ngram._contexts), np.empty(2))


def test_any_cut_gives_the_same_bits_and_the_same_arrays() -> None:
    words = text(6_000, 400, seed=5)
    whole, cut = NGram(400), NGram(400)
    expected = whole.score(nothing(words), words)
    edges = [0, 1, 2, 3, 17, 30, 31, 500, 4_090, 4_100, 6_000]
    parts = [words[a:b] for a, b in pairwise(edges)]
    found = np.concatenate([cut.score(nothing(part), part) for part in parts])
    np.testing.assert_array_equal(found, expected)
    for name, array in whole.state().items():
        np.testing.assert_array_equal(cut.state()[name], array)
