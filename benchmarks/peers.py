"""What others do on the same words: faiss at its strongest, kNN-LM, plain cache, plain PyTorch."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.stock import CONTEST_PROBES, StockProcess, contestants
from unbounded import _native
from unbounded.datastore import Auto, Votes
from unbounded.evaluation.metrics import surprise
from unbounded.experts.distribution import Sparse
from unbounded.lm import LanguageModel
from unbounded.lm.pytorch import TorchModel
from unbounded.lm.recurrent import RecurrentModel
from unbounded.mixture import fit_weights
from unbounded.shapes import Float, Int
from unbounded.types import Distances, Hidden, Ids, Positions, Probs, State, Table

KNN_SHARE = 0.25
"""λ of the kNN-LM (Khandelwal et al., 2020) on the text it was trained for."""

CACHE_SHARE, CACHE_FLATNESS = 0.1, 0.3
"""λ and θ of the neural cache (Grave et al., 2016); they do not change its speed."""

PIECE = 2048
"""Words that plain PyTorch reads at a time, as ours does."""

AS_GOOD = 1.001
"""Of a perplexity: who has no more than that is as good."""


@dataclass(frozen=True)
class Queries:
    """Words that come next, the keys they are searched by, and what the network says of them."""

    ids: Ids
    keys: Hidden
    base: Table
    """Static and uniform."""
    block: int

    def blocks(self) -> Iterator[slice]:
        """The parts that are searched at once."""
        return (slice(at, at + self.block) for at in range(0, len(self.ids), self.block))

    def first(self, count: int) -> "Queries":
        """Some of them."""
        return Queries(self.ids[:count], self.keys[:count], self.base[:count], self.block)

    def perplexity(self, votes: Probs) -> float:
        """With these votes for each word, mixed with the fixed weights that suit them best."""
        return perplexity(fitted(np.column_stack([self.base, votes])))


def search_beside_stock(
    memory: Auto, stock: StockProcess, queries: Queries, votes: Votes, ks: Sequence[int]
) -> tuple[dict[str, Any], dict[str, float], Probs]:
    """Speeds, perplexities with nothing of the queries in the memory, and what ours says of each.

    In a large memory ours has more neighbors than the paper's (`ks`, ours and stock's); what it
    says with as many is told too.
    """
    mine, k = ks
    # Once for the warm-up: what an answer is written on is new to both.
    first = next(queries.blocks())
    memory.vote(queries.keys[first], queries.ids[first], mine, votes)
    stock.search(queries.keys[first], k)
    ours, theirs, columns = [], [], []
    for rows in queries.blocks():
        keys, words = queries.keys[rows], queries.ids[rows]
        began = time.perf_counter()
        said = memory.vote(keys, words, mine, votes)
        ours.append((time.perf_counter() - began) / len(words))
        seconds, squared, there = stock.search(keys, k)
        theirs.append(seconds / len(words))
        as_many = memory.vote(keys, words, k, votes)
        shares, knn = _shares(votes, squared, there, words), knn_lm(there, squared, words)
        columns.append((said, as_many, shares, knn))
    said, as_many, shares, knn = (np.concatenate(part) for part in zip(*columns, strict=True))
    query, stock_query = float(np.median(ours)), float(np.median(theirs))
    speeds = {
        "k": mine,
        "stock_k": k,
        "search_us": 1e6 * query,
        "stock_search_us": 1e6 * stock_query,
        "queries_per_second": 1 / query,
        "stock_queries_per_second": 1 / stock_query,
        "search_ratio": stock_query / query,
    }
    perplexities = {
        "unbounded_frozen": queries.perplexity(said),
        "as_many_frozen": queries.perplexity(as_many),
        "stock": queries.perplexity(shares),
        "knn_lm": perplexity(KNN_SHARE * knn + (1 - KNN_SHARE) * fitted(queries.base)),
    }
    return speeds, perplexities, said


def contest(
    stock: StockProcess,
    queries: Queries,
    votes: Votes,
    k: int,
    entries: int,
    names: Sequence[str] | None,
) -> Iterator[dict[str, Any]]:
    """The strongest of faiss on the same queries: µs, perplexity, and what an entry took.

    `charged_us` has both: a query, and training, growth and visibility of an entry.
    """
    for name, (spec, lists) in contestants(entries, queries.keys.shape[1], names).items():
        filling = 1e6 * stock.contest(spec, lists, entries, queries.block) / entries
        for probes in CONTEST_PROBES:
            times, columns = [], []
            for rows in queries.blocks():
                keys = queries.keys[rows]
                taken, squared, there = stock.search_contestant(keys, k, probes)
                times.append(taken / len(keys))
                columns.append(_shares(votes, squared, there, queries.ids[rows]))
            us = 1e6 * float(np.median(times))
            yield {
                "name": f"{name}, {probes} probes",
                "us": us,
                "perplexity": queries.perplexity(np.concatenate(columns)),
                "filling_us": filling,
                "charged_us": us + filling,
            }


def best_of(found: Sequence[dict[str, Any]], ours: float) -> dict[str, Any]:
    """The fastest that is as good as ours; if none is, that is as good as the best of them."""
    if not found:
        return {}
    lowest = min(float(one["perplexity"]) for one in found)
    good = [one for one in found if one["perplexity"] <= AS_GOOD * max(ours, lowest)]
    best = min(good, key=lambda one: float(one["us"]))
    return {
        "best_faiss": best["name"],
        "best_faiss_us": best["us"],
        "best_faiss_charged_us": best["charged_us"],
        "best_faiss_perplexity": best["perplexity"],
        "best_faiss_as_good": bool(lowest <= AS_GOOD * ours),
    }


def knn_lm(words: Positions, squared: Distances, ids: Ids) -> Probs:
    """What neighbors say of each word when each weighs e to the minus of its squared distance."""
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isfinite(squared), np.exp(squared[:, :1] - squared), 0)
    return Sparse(words, weights, int(max(words.max(), ids.max())) + 1).prob(ids)


def plain_cache_seconds(
    lm: LanguageModel,
    hidden: Float[np.ndarray, "1 d"],
    state: State,
    ids: Ids,
    keys: Float[np.ndarray, "w d"],
    next_words: Int[np.ndarray, " w"],
) -> float:
    """Seconds to read words one at a time beside a dense window, as the neural cache is written.

    `hidden` and `state` are those before the first word; the window slides over a ring of `keys`.
    """
    keys, next_words = keys.copy(), next_words.copy()
    began = time.perf_counter()
    for t in range(len(ids)):
        word = ids[t : t + 1]
        static = lm.prob(hidden, word)[0]
        scores = np.exp(CACHE_FLATNESS * (keys @ hidden[0]))
        cached = scores[next_words == word[0]].sum() / scores.sum()
        _ = (1 - CACHE_SHARE) * static + CACHE_SHARE * cached
        keys[t % len(keys)], next_words[t % len(keys)] = hidden[0], word[0]
        hidden, state = lm.advance(state, word)
    return time.perf_counter() - began


def torch_static_us(lm: LanguageModel, now: Hidden, start: State, ids: Ids) -> float:
    """Microseconds a word of the same network in plain PyTorch, with as many threads as it is
    fastest with; `now` and `start` are the states before the first word."""
    import torch

    if not isinstance(lm, RecurrentModel):
        return math.nan
    before = torch.get_num_threads()
    plain, best = TorchModel(lm), [math.inf, math.inf]
    hidden = np.concatenate([now, plain.advance(start, ids)[0]])
    for threads in (1, _native.threads()):
        torch.set_num_threads(threads)
        state, taken = start, [0.0, 0.0]
        for at in range(0, len(ids), PIECE):
            words = ids[at : at + PIECE]
            began = time.perf_counter()
            _, state = plain.advance(state, words)
            between = time.perf_counter()
            plain.prob(hidden[at : at + len(words)], words)
            taken[0] += between - began
            taken[1] += time.perf_counter() - between
        best = [min(pair) for pair in zip(best, taken, strict=True)]
    torch.set_num_threads(before)
    return 1e6 * sum(best) / len(ids)


def _shares(votes: Votes, squared: Distances, there: Positions, words: Ids) -> Table:
    """The votes for each word; nothing where nobody was found."""
    shares: Table = np.nan_to_num(votes.count(squared, there, words))
    return shares


def fitted(table: Table) -> Probs:
    """The rows mixed with the fixed weights that suit them best."""
    mixed: Probs = table @ fit_weights(table)
    return mixed


def perplexity(probs: Probs) -> float:
    """Of words that were given these probabilities."""
    return float(np.exp(surprise(probs).mean()))
