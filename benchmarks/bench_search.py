"""How fast each index answers, how well, and in how much memory, against faiss as it comes.

    python benchmarks/bench_search.py --entries 100k,1M --json results.json
    python benchmarks/bench_search.py --entries 1M --states states.npy

The states are made up unless a file is given: tanh of a slowly walking low-rank mixture, seeded.
Queries are the states that follow the entries, in blocks of 512. `stock` is the paper's
configuration through faiss alone; `ratio` compares queries per second with it in the same run;
`filled` is the share of the neighbors asked for that came back. Seconds are those of the
processor, so that a busy machine does not change them much.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from unbounded.memory import IVFPQ, Auto, Flat, Index, Window
from unbounded.types import Hidden

BLOCK = 512


@dataclass(frozen=True)
class Row:
    name: str
    entries: int
    queries_per_second: float
    ratio: float
    recall: float
    filled: float
    bytes_per_entry: float
    adds_per_second: float
    events: list[str]


def made_up(count: int, width: int, seed: int) -> Hidden:
    """States that cluster by a Zipfian last word and wander with a slow topic."""
    rng = np.random.default_rng(seed)
    rank, words = 48, 5000
    zipf = 1 / np.arange(1, words + 1)
    centers = rng.normal(size=(words, rank)).astype(np.float32)
    lift = rng.normal(size=(rank, width)).astype(np.float32) * np.float32(0.5 / rank**0.5)
    states = np.empty((count, width), np.float32)
    topic = np.zeros(rank, np.float32)
    for start in range(0, count, BLOCK):
        n = min(BLOCK, count - start)
        topic = np.float32(0.9) * topic + rng.normal(size=rank).astype(np.float32) * np.float32(0.2)
        noise = rng.normal(size=(n, rank)).astype(np.float32) * np.float32(0.6)
        chosen = rng.choice(words, n, p=zipf / zipf.sum())
        states[start : start + n] = np.tanh((centers[chosen] + topic + noise) @ lift)
    return states


class Stock:
    """faiss as it comes: 4,096 lists behind a flat quantizer, 8 probes, 64-byte codes."""

    events: list[str]

    def __init__(self, width: int, sample: Hidden) -> None:
        lists = min(4096, len(sample) // 39)
        began = time.process_time()
        self.faiss: Any = faiss.IndexIVFPQ(faiss.IndexFlatL2(width), width, lists, width // 4, 8)
        self.faiss.train(sample)
        self.faiss.nprobe = 8
        self.events = [f"{lists} lists trained in {time.process_time() - began:.1f} s"]
        self.add, self.search = self.faiss.add, self.faiss.search

    @property
    def bytes(self) -> int:
        f = self.faiss
        return int(
            f.ntotal * (f.code_size + 8) + f.nlist * f.d * 4 + f.precomputed_table.size() * 4
        )


def measure(
    index: Index | Stock, keys: Hidden, queries: Hidden, k: int
) -> tuple[dict[str, Any], np.ndarray]:
    began = time.process_time()
    for start in range(0, len(keys), BLOCK):
        index.add(keys[start : start + BLOCK])
    adding = time.process_time() - began
    index.search(queries[:8], k)
    times, found = [], []
    for start in range(0, len(queries), BLOCK):
        block = np.ascontiguousarray(queries[start : start + BLOCK])
        began = time.process_time()
        found.append(index.search(block, k)[1])
        times.append((time.process_time() - began) / len(block))
    positions = np.concatenate(found)
    figures = {
        "entries": len(keys),
        "queries_per_second": 1 / float(np.median(times)),
        "filled": float((positions >= 0).mean()) * positions.shape[1] / min(k, len(keys)),
        "bytes_per_entry": index.bytes / len(keys),
        "adds_per_second": len(keys) / adding,
        "events": [str(event) for event in index.events],
    }
    return figures, positions


def bench(
    states: Hidden, entries: int, queries: int, k: int, names: list[str], probes: int
) -> list[Row]:
    width = states.shape[1]
    keys, asked = states[:entries], states[entries : entries + queries]
    make: dict[str, Callable[[], Index | Stock]] = {
        "flat": lambda: Flat(width),
        "stock": lambda: Stock(width, keys[: 39 * 4096]),
        "ivfpq": lambda: IVFPQ(width),
        "auto": lambda: Auto(width, probes=probes),
        "window": lambda: Window(width),
    }
    exact = np.zeros((0, 0), np.int64)
    rows: list[Row] = []
    speed = float("nan")
    for name in ["flat", "stock", *names]:
        figures, positions = measure(make[name](), keys, asked, k)
        if name == "flat":
            exact = positions
        if name == "stock":
            speed = figures["queries_per_second"]
        same = [len(np.intersect1d(a, b)) for a, b in zip(exact, positions, strict=True)]
        recall = float(np.mean(same)) / exact.shape[1]
        ratio = figures["queries_per_second"] / speed
        rows.append(Row(name=name, recall=recall, ratio=ratio, **figures))
        print(show(rows[-1]), flush=True)
    return rows


def show(row: Row) -> str:
    return (
        f"{row.name:8}{row.entries:>10,}{row.queries_per_second:>10,.0f}/s{row.ratio:>7.2f}x"
        f"{row.recall:>8.3f}{row.filled:>8.3f}{row.bytes_per_entry:>9.0f} B"
        f"{row.adds_per_second:>10,.0f}/s  {'; '.join(row.events)}"
    )


def size(text: str) -> int:
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text.rstrip("kM")) * factor


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", default="10k,100k", help="sizes, as 100k,1M (%(default)s)")
    parser.add_argument("--queries", type=int, default=2048, help="(%(default)s)")
    parser.add_argument("--k", type=int, default=1024, help="(%(default)s)")
    parser.add_argument("--width", type=int, default=256, help="of made-up states (%(default)s)")
    parser.add_argument("--indexes", default="ivfpq,auto,window", help="(%(default)s)")
    parser.add_argument("--probes", type=int, default=32, help="of auto (%(default)s)")
    parser.add_argument("--states", type=Path, help="a .npy file of states, float32 (n, d)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of faiss (%(default)s)")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    sizes = [size(text) for text in options.entries.split(",")]
    needed = max(sizes) + options.queries
    if options.states:
        states = np.load(options.states, mmap_mode="r")[:needed]
        if len(states) < needed:
            parser.error(f"{options.states} holds {len(states):,} states; {needed:,} are needed")
    else:
        states = made_up(needed, options.width, options.seed)
    states = np.ascontiguousarray(states, np.float32)
    print("index      entries   queries   ratio  recall  filled    bytes      adds  events")
    rows = []
    for entries in sizes:
        names = options.indexes.split(",")
        rows += bench(states, entries, options.queries, options.k, names, options.probes)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
