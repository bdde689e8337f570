"""What more neighbors are worth, and more entries looked at for each: perplexity and time.

python benchmarks/bench_neighbors.py --model DIR --text FILE [--entries 1000000] [--queries 16384]

The first words fill a memory, and those after them are its queries, with none of them in it.
Static and uniform, with a unigram, and with n-grams too, each mixed with the cache by weights
fitted on the queries. A search takes the median of its blocks of 4,096, with two threads.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.read import fitted, perplexity
from benchmarks.stream import Watched
from benchmarks.text import words_of
from unbounded._native import QuantizedLists
from unbounded.corpus import Reader
from unbounded.datastore import Auto, IndexedDatastore
from unbounded.datastore.quantized import restored
from unbounded.experts.expert import Static, unit_length
from unbounded.experts.family import family
from unbounded.experts.ngram import NGram
from unbounded.lm import Pretrained, load_model
from unbounded.presets import MemoryConfig, set_threads
from unbounded.types import Hidden, Ids, Probs

BLOCK = 4096
CANDIDATES = (4, 6, 8, 12, 16, 24)
NEIGHBORS = (768, 1024, 1152, 1280, 1536)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=16_384)
    asked = parser.parse_args()
    set_threads(2)
    model = load_model(asked.model)
    words = islice(words_of(model, Reader([asked.text])), asked.entries + asked.queries)
    ids = model.vocabulary.copy().encode(list(words))
    entries, size = len(ids) - asked.queries, int(ids.max()) + 1
    memory, hidden = filled(model, ids, entries)
    later = ids[entries:]
    static = Static(model.lm).predict(hidden).prob(later)
    uniform = np.full(len(later), 1 / size)
    unigram = (np.bincount(ids[:entries], minlength=size) / entries)[later]
    ngrams = by_ngrams(ids, size)[entries:]
    mixtures = [[static, uniform], [static, uniform, unigram], [static, uniform, unigram, ngrams]]
    print(f"{entries:,} entries; without a cache", *(f"{mixed(m):.2f}" for m in mixtures))
    print("| looked at for each | neighbors | + cache | + unigram | + n-grams | µs a query |")
    print("|--:|--:|--:|--:|--:|--:|")
    assert isinstance(memory.index, Auto)
    for candidates in CANDIDATES:
        lists = restored(memory.index.state(), memory.index.exact // 8, candidates)
        lists.retag(memory.words)
        for k in NEIGHBORS:
            cache, seconds = search(lists, memory.words, hidden, later, k)
            found = [mixed([*mixture, cache]) for mixture in mixtures]
            print(
                f"| {candidates} | {k:,} | "
                + " | ".join(f"{one:.2f}" for one in found)
                + f" | {1e6 * seconds:.1f} |",
                flush=True,
            )


def filled(model: Pretrained, ids: Ids, entries: int) -> tuple[IndexedDatastore, Hidden]:
    """A memory of the first entries, and the states that foresee the words after them."""
    memory, lm = IndexedDatastore(Auto(model.lm.width)), Watched(model.lm)
    for start in range(0, entries, BLOCK):
        words = ids[start : min(start + BLOCK, entries)]
        lm.advance(lm.state, words)
        memory.add(unit_length(lm.hidden), words)
    return memory, lm.peek(ids[entries:])


def by_ngrams(ids: Ids, size: int) -> Probs:
    """What n-grams that learn as they read say of each word."""
    experts, nothing = NGram(size), np.empty((BLOCK, 0), np.float32)
    blocks = (ids[start : start + BLOCK] for start in range(0, len(ids), BLOCK))
    return np.concatenate([experts.score(nothing[: len(block)], block) for block in blocks])


def search(
    lists: QuantizedLists, known: Ids, hidden: Hidden, words: Ids, k: int
) -> tuple[Probs, float]:
    """What the cache says of each word, and seconds a query."""
    votes, times, said = family(MemoryConfig().kernel), [], []
    for start in range(0, len(words), BLOCK):
        rows = slice(start, start + BLOCK)
        keys = unit_length(hidden[rows])
        began = time.perf_counter()
        said.append(lists.score(keys, words[rows], known, k, *votes.settings, learn=False))
        times.append((time.perf_counter() - began) / len(keys))
    return np.concatenate(said), float(np.median(times))


def mixed(columns: list[Probs]) -> float:
    """Their perplexity, mixed with the fixed weights that suit them best."""
    return perplexity(fitted(np.column_stack(columns)))


if __name__ == "__main__":
    main()
