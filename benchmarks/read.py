"""What reading costs a word, beside the network alone, stock faiss and other caches, in one run.

The stream is read once. Static and unbounded are scored all the way. Before each mark of N
entries comes a stretch of words, which ends at the mark and on which everything is measured:

1. single predictions, one word at a time, just before the stretch;
2. searches of the memory as it stands there, block by block in turn with stock faiss, which lives
   in a process of its own and is filled from the same states, kept in a file;
3. the stretch is read under every row, and each row's time is that of the network, its own
   experts and its mixture;
4. the strongest indexes of faiss, one after another, are filled with the same states and asked the
   same; figures are handed out after each, for it may take an hour at ten million.

Times are wall clock. Rows are means over the stretch, so that a pause counts; searches are medians
of blocks. Peak RSS is that of this process while it reads (part 3 and all that lies between
marks), not while it measures others.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from benchmarks.peers import (
    Queries,
    best_of,
    contest,
    plain_cache_seconds,
    search_beside_stock,
    torch_static_us,
)
from benchmarks.resident import Peak, give_back, resident
from benchmarks.states import Scratch, check_marks, full_size, words_of
from benchmarks.stock import StockProcess
from benchmarks.stream import Stream
from experiments.paper import TABLE4
from unbounded.corpus import Line
from unbounded.datastore import Auto
from unbounded.experts.cache import PAPER_K
from unbounded.experts.kernels import votes_by
from unbounded.lm import Pretrained
from unbounded.presets import MemoryConfig
from unbounded.types import Ids

STRETCH = 32_768
"""Words that are measured before a mark; one in `SHARE` of the entries where that is less."""

SHARE = 20

CONTEST = 8_192
"""Words of the stretch that the strongest indexes of faiss are asked about: some of them take a
hundred times as long."""

SINGLE = 300
"""Words that are predicted, and read by the plain cache, one at a time; at most one in `SHARE`."""

WARM = 50_000
"""Words read and forgotten before the clock starts: enough for an index to leave exact search."""

Show = Callable[[int, str], None]


class Keep(Protocol):
    """Told the figures of a mark, again and again until they are `done`."""

    def __call__(self, mark: int, figures: Mapping[str, Any], *, done: bool) -> None:
        """Keep them."""


def nothing_kept(mark: int, figures: Mapping[str, Any], *, done: bool) -> None:
    """For who only wants what is returned."""


def bench_read(
    model: Pretrained,
    text: Iterable[Line],
    marks: Sequence[int],
    *,
    block: int = 8192,
    threads: int = 1,
    config: MemoryConfig = MemoryConfig(),
    rivals: Sequence[str] | None = None,
    progress: Callable[[int], Show] = lambda total: lambda done, note: None,
    keep: Keep = nothing_kept,
) -> dict[str, Any]:
    """The figures at every mark, by its number of entries; `keep` is told each as it comes.

    Before the stream is read, the text's words are counted, since the uniform is over them, and
    its beginning is read once to warm up. `rivals` are the indexes of faiss, all unless named.
    """
    marks = sorted(set(marks))
    check_marks(marks, [2 * stretch_of(mark) + singles_of(mark) for mark in marks])
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
            marker = _Marker(stream, stock, size, config, base, rivals)
            for mark in marks:
                found[str(mark)] = marker.measure(mark, show, keep)
    return found


def stretch_of(mark: int) -> int:
    """How many words are measured before a mark, once row by row and once under `full`."""
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
        self,
        stream: Stream,
        stock: StockProcess,
        size: int,
        config: MemoryConfig,
        base: int,
        rivals: Sequence[str] | None,
    ) -> None:
        self._stream, self._stock, self._rivals = stream, stock, rivals
        self._size, self._config, self._base = size, config, base
        self._peak = Peak()

    def measure(self, mark: int, show: Show, keep: Keep) -> dict[str, Any]:
        """Read up to a mark; all figures there."""
        stream, stretch = self._stream, stretch_of(mark)
        stream.read_to(mark - 2 * stretch - singles_of(mark), mark - 2 * stretch, show)
        self._peak.pause()
        show(stream.done, "single predictions")
        predicted = self._predict(singles_of(mark))
        words, entries = stream.take(stretch), stream.done
        ids = stream.online.vocabulary.encode(words)
        show(entries, "filling stock faiss")
        seconds, filled = self._stock.fill(entries)
        show(entries, "searching")
        queries, votes = self._queries(ids), votes_by(self._config.kernel)
        memory, k = stream.unbounded.datastore, self._config.k or PAPER_K
        assert isinstance(memory, Auto)
        ks = (stream.unbounded.k, k)
        speeds, frozen, said = search_beside_stock(memory, self._stock, queries, votes, ks)
        plain = self._plain_cache(ids[: singles_of(mark)])
        show(entries, "plain PyTorch")
        torch_static = torch_static_us(stream.lm.lm, stream.lm.now, stream.lm.state, ids)
        self._peak.go_on()
        stream.read_stretch(words, show)
        full = stream.read_full(stream.take(stretch), show)
        self._peak.pause()
        some = queries.first(CONTEST)
        here, found = some.perplexity(said[:CONTEST]), list[dict[str, Any]]()
        figures = {
            "stretch": stretch,
            **self._rows(torch_static, full),
            "plain_cache_us": plain,
            **speeds,
            # A word of ours: search, votes, and an entry that the next word finds.
            "charged_us": stream.experts_us["unbounded"],
            "stock_charged_us": speeds["stock_search_us"] + 1e6 * seconds / max(filled, 1),
            "contest": found,
            "contest_perplexity": here,
            "predict_us": predicted,
            "stock_filling_s": seconds,
            **self._memory(),
            "perplexity": {
                **{name: line.stretch.perplexity for name, line in stream.lines.items()},
                **frozen,
            },
        }
        keep(mark, figures, done=False)
        show(stream.done, "faiss at its strongest")
        for one in contest(self._stock, some, votes, k, entries, self._rivals):
            found.append(one)
            figures |= best_of(found, here)
            keep(mark, figures, done=False)
            show(stream.done, one["name"])
        keep(mark, figures, done=True)
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

    def _queries(self, ids: Ids) -> Queries:
        stream = self._stream
        hidden, static = stream.lm.peek(ids), stream.online.experts["static"]
        starts = range(0, len(ids), stream.block)
        parts = [slice(at, at + stream.block) for at in starts]
        network = np.concatenate([static.predict(hidden[p]).prob(ids[p]) for p in parts])
        base = np.stack([network, np.full(len(ids), 1 / self._size)], axis=1)
        return Queries(ids, stream.keys(hidden), base, stream.block)

    def _plain_cache(self, ids: Ids) -> float:
        stream, window = self._stream, self._stream.local.datastore.state()
        keys, words = window["index.keys"], window["words"]
        lm, now, state = stream.lm.lm, stream.lm.now, stream.lm.state
        # Once for the warm-up.
        plain_cache_seconds(lm, now, state, ids[:8], keys, words)
        return 1e6 * plain_cache_seconds(lm, now, state, ids, keys, words) / len(ids)

    def _rows(self, torch_static: float, full: float) -> dict[str, Any]:
        lines = self._stream.lines
        us = {name: line.stretch_us for name, line in lines.items()}
        summed, us["full"] = us["full"], full
        stream, static = lines["unbounded"].stream_us, lines["static"].stream_us
        return {
            **{f"{name}_us": us[name] for name in us},
            **{f"{name}_ratio": us[name] / us["static"] for name in us if name != "static"},
            "full_summed_us": summed,
            "torch_static_us": torch_static,
            "to_torch_static": {name: us[name] / torch_static for name in us},
            "paper_ratio": {name: list(paper_ratio(name)) for name in ("local", "unbounded")},
            "experts_us": self._stream.experts_us,
            "words_per_second": 1e6 / us["unbounded"],
            "stream_us": stream,
            "stream_static_us": static,
            "stream_ratio": stream / static,
        }

    def _memory(self) -> dict[str, Any]:
        memory, peak = self._stream.unbounded.datastore, self._peak.bytes
        return {
            "bytes_per_entry": memory.bytes_per_entry,
            "peak_rss": peak,
            "peak_rss_beyond_model": peak - self._base,
            "longest_stall_s": self._stream.longest_stall,
            "events": [str(event) for event in memory.events],
        }
