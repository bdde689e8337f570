"""What reading costs a word, beside the network alone, stock faiss and other caches, in one run.

The stream is read once. Static and unbounded are scored all the way. Before each mark of N
entries comes a stretch of words, which ends at the mark and on which everything is measured:

1. single predictions, one word at a time, just before the stretch;
2. searches of the memory as it stands there, block by block in turn with stock faiss, which lives
   in a process of its own and is filled from the same states, kept in a file;
3. the stretch is read under every row, and each row's time is that of the network, its own
   experts and its mixture.

Times are wall clock. Rows are means over the stretch, so that a pause counts; searches are medians
of blocks. Peak RSS is that of this process while it reads (part 3 and all that lies between
marks), not while it measures others.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, final

import numpy as np

from unbounded.bench.peers import KNN_SHARE, knn_lm, plain_cache_seconds
from unbounded.bench.resident import Peak, give_back, resident
from unbounded.bench.scratch import Scratch
from unbounded.bench.stock import StockProcess
from unbounded.bench.stream import Stream
from unbounded.bench.text import check_marks, full_size, words_of
from unbounded.config import MemoryConfig
from unbounded.corpus import Line
from unbounded.lm import Pretrained
from unbounded.predict import fit_weights
from unbounded.predict.family import Family
from unbounded.predict.neighborhood import PAPER_K
from unbounded.reproduce.paper import TABLE4
from unbounded.score.metrics import surprise
from unbounded.types import Ids, Probs, Table

STRETCH = 32_768
"""Words that are measured before a mark; one in `SHARE` of the entries where that is less."""

SHARE = 20

SINGLE = 300
"""Words that are predicted, and read by the plain cache, one at a time; at most one in `SHARE`."""

WARM = 50_000
"""Words read and forgotten before the clock starts: enough for an index to leave exact search."""

Show = Callable[[int, str], None]


def bench_read(
    model: Pretrained,
    text: Iterable[Line],
    marks: Sequence[int],
    *,
    block: int = 8192,
    threads: int = 1,
    config: MemoryConfig = MemoryConfig(),
    progress: Callable[[int], Show] = lambda total: lambda done, note: None,
    keep: Callable[[int, Mapping[str, Any]], None] = lambda mark, figures: None,
) -> dict[str, Any]:
    """The figures at every mark, by its number of entries; `keep` is told each as it is reached.

    Before the stream is read, the text's words are counted, since the uniform is over them, and
    its beginning is read once to warm up.
    """
    marks = sorted(set(marks))
    check_marks(marks, [stretch_of(mark) + singles_of(mark) for mark in marks])
    size = full_size(model, text, marks[-1])
    _warm_up(model, text, size, min(WARM, marks[-1]), block, config)
    give_back()
    base = resident()
    show = progress(marks[-1])
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="unbounded-bench-") as name:
        folder, width = Path(name), model.lm.width
        stream = Stream(model, size, words_of(model, text), block, config, Scratch(folder, width))
        with closing(StockProcess(threads, folder, width)) as stock:
            marker = _Marker(stream, stock, size, config, base)
            for mark in marks:
                figures = found[str(mark)] = marker.measure(mark, show)
                keep(mark, figures)
    return found


def stretch_of(mark: int) -> int:
    """How many words are measured before a mark."""
    return min(STRETCH, mark // SHARE)


def singles_of(mark: int) -> int:
    """How many words before those are read one at a time."""
    return min(SINGLE, mark // SHARE)


def paper_ratio(row: str) -> tuple[float, float]:
    """The least and the most that a row took of the static model's time in the paper's Table 4."""
    ratios = [cell[row] / cell["static"] for cell in TABLE4.values()]
    return min(ratios), max(ratios)


def _warm_up(
    model: Pretrained,
    text: Iterable[Line],
    size: int,
    count: int,
    block: int,
    config: MemoryConfig,
) -> None:
    with tempfile.TemporaryDirectory(prefix="unbounded-bench-") as name:
        scratch = Scratch(Path(name), model.lm.width)
        stream = Stream(model, size, words_of(model, text), block, config, scratch)
        stream.read_to(count, count, lambda done, note: None)
        stream.online.predict().prob(np.zeros(1, np.int64))


@final
class _Marker:
    """Measures at marks, and remembers the peak of memory over all of them."""

    def __init__(
        self, stream: Stream, stock: StockProcess, size: int, config: MemoryConfig, base: int
    ) -> None:
        self._stream, self._stock = stream, stock
        self._size, self._config, self._base = size, config, base
        self._peak = Peak()

    def measure(self, mark: int, show: Show) -> dict[str, Any]:
        """Read up to a mark; all figures there."""
        stream, stretch = self._stream, stretch_of(mark)
        stream.read_to(mark - stretch - singles_of(mark), mark - stretch, show)
        self._peak.pause()
        show(stream.done, "single predictions")
        predicted = self._predict(singles_of(mark))
        words = stream.take(stretch)
        ids = stream.online.vocabulary.encode(words)
        show(stream.done, "filling stock faiss")
        filling = self._stock.fill(stream.done)
        show(stream.done, "searching")
        searched, frozen = self._search(ids)
        plain = self._plain_cache(ids[: singles_of(mark)])
        self._peak.go_on()
        stream.read_stretch(words, show)
        self._peak.pause()
        figures = {
            "stretch": stretch,
            **self._rows(),
            "plain_cache_us": plain,
            **searched,
            "predict_us": predicted,
            "stock_filling_s": filling,
            **self._memory(),
            "perplexity": {
                **{name: line.stretch.perplexity for name, line in stream.lines.items()},
                **frozen,
            },
        }
        self._peak.go_on()
        return figures

    def _predict(self, count: int) -> dict[str, float]:
        """Microseconds of asking for one word, which is then read."""
        online, times = self._stream.online, []
        for word in self._stream.take(count):
            asked = online.vocabulary.encode([word])
            began = time.perf_counter()
            online.predict().prob(asked)
            times.append(1e6 * (time.perf_counter() - began))
            self._stream.read([word], timed=False)
        median, late = np.percentile(times, [50, 99]).tolist()
        return {"median": median, "p99": late}

    def _search(self, ids: Ids) -> tuple[dict[str, float], dict[str, float]]:
        """Speeds, and perplexities of the stretch with nothing of it in the memory.

        Fixed weights, fitted on the stretch itself for each contestant alike. In a large memory
        ours has more neighbors than the paper's; what it says with as many is told too.
        """
        stream, k = self._stream, self._config.k or PAPER_K
        memory, static = stream.unbounded.memory, stream.online.experts["static"]
        hidden, family = stream.lm.ahead(ids), Family(self._config.kernel)
        # Once for the warm-up: what an answer is written on is new to both.
        memory.search(stream.keys(hidden[: stream.block]), stream.unbounded.k)
        self._stock.search(stream.keys(hidden[: stream.block]), k)
        ours, theirs, columns = [], [], []
        for start in range(0, len(ids), stream.block):
            rows = slice(start, start + stream.block)
            states, words = hidden[rows], ids[rows]
            keys = stream.keys(states)
            began = time.perf_counter()
            found = memory.search(keys, stream.unbounded.k)
            ours.append((time.perf_counter() - began) / len(words))
            seconds, squared, there = self._stock.search(keys, k)
            theirs.append(seconds / len(words))
            columns.append(
                (
                    static.predict(states).prob(words),
                    family.shares(found.squared, found.words, words, self._size),
                    family.shares(found.squared[:, :k], found.words[:, :k], words, self._size),
                    family.shares(squared, there, words, self._size),
                    knn_lm(there, squared, words, self._size),
                )
            )
        network, mine, as_many, stock, knn = (
            np.concatenate(parts) for parts in zip(*columns, strict=True)
        )
        uniform = np.full(len(ids), 1 / self._size)
        base = fitted(np.stack([network, uniform], axis=1))
        perplexities = {
            "unbounded_frozen": perplexity(fitted(np.column_stack([network, uniform, mine]))),
            "as_many_frozen": perplexity(fitted(np.column_stack([network, uniform, as_many]))),
            "stock": perplexity(fitted(np.column_stack([network, uniform, stock]))),
            "knn_lm": perplexity(KNN_SHARE * knn + (1 - KNN_SHARE) * base),
        }
        query, stock_query = float(np.median(ours)), float(np.median(theirs))
        return {
            "k": stream.unbounded.k,
            "stock_k": k,
            "search_us": 1e6 * query,
            "stock_search_us": 1e6 * stock_query,
            "queries_per_second": 1 / query,
            "stock_queries_per_second": 1 / stock_query,
            "search_ratio": stock_query / query,
        }, perplexities

    def _plain_cache(self, ids: Ids) -> float:
        stream, window = self._stream, self._stream.local.memory.state()
        keys, words = window["index.keys"], window["words"]
        lm, now, state = stream.lm.lm, stream.lm.now, stream.lm.state
        # Once for the warm-up.
        plain_cache_seconds(lm, now, state, ids[:8], keys, words)
        return 1e6 * plain_cache_seconds(lm, now, state, ids, keys, words) / len(ids)

    def _rows(self) -> dict[str, Any]:
        lines = self._stream.lines
        us = {name: line.stretch_us for name, line in lines.items()}
        stream, static = lines["unbounded"].stream_us, lines["static"].stream_us
        return {
            **{f"{name}_us": us[name] for name in us},
            **{f"{name}_ratio": us[name] / us["static"] for name in us if name != "static"},
            "paper_ratio": {name: list(paper_ratio(name)) for name in ("local", "unbounded")},
            "experts_us": self._stream.experts_us,
            "words_per_second": 1e6 / us["unbounded"],
            "stream_us": stream,
            "stream_static_us": static,
            "stream_ratio": stream / static,
        }

    def _memory(self) -> dict[str, Any]:
        memory, peak = self._stream.unbounded.memory, self._peak.bytes
        return {
            "bytes_per_entry": memory.bytes_per_entry,
            "peak_rss": peak,
            "peak_rss_beyond_model": peak - self._base,
            "longest_stall_s": self._stream.longest_stall,
            "events": [str(event) for event in memory.events],
        }


def fitted(table: Table) -> Probs:
    """The rows mixed with the fixed weights that suit them best."""
    mixed: Probs = table @ fit_weights(table)
    return mixed


def perplexity(probs: Probs) -> float:
    """Of words that were given these probabilities."""
    return float(np.exp(surprise(probs).mean()))
