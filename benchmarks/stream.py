"""One reading of a text under several rows, each row's time as if it had been alone."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import final

import numpy as np

from benchmarks.states import Scratch, Watched
from unbounded.evaluation.metrics import Tally, surprise
from unbounded.evaluation.rows import Row
from unbounded.experts import Cache
from unbounded.experts.cache import unit_length
from unbounded.lm import Pretrained
from unbounded.mixture import Online
from unbounded.model import OnlineModel, Reading
from unbounded.presets import PRESETS as ROWS
from unbounded.presets import MemoryConfig, build_online, experts_for, new_mixture
from unbounded.types import Hidden, Probs

ALWAYS = ("static", "unbounded")
"""Rows that are scored from the first word on; the others only near a mark."""

NEAR_A_MARK = ("local", "full")

WINDOWS = ("cache_128", "cache_1024", "local")


@final
class Line:
    """One row: its mixture, and its seconds since the start and in the present stretch."""

    def __init__(self, name: str, experts: tuple[str, ...], width: int) -> None:
        self.experts = experts
        self._row = Row(name, self.experts, width)
        self.words, self.seconds = 0, 0.0
        self.start_stretch()

    def start_stretch(self) -> None:
        """Begin the stretch's sums anew."""
        self.stretch, self.stretch_seconds = Tally(), 0.0

    def count(
        self,
        reading: Reading,
        columns: Mapping[str, Probs],
        seconds: Mapping[str, float],
        *,
        timed: bool = True,
    ) -> None:
        """Mix a block, given what each expert said and the seconds that took."""
        table = np.stack([columns[name] for name in self.experts], axis=1)
        began = time.perf_counter()
        scored = self._row.score(reading, table)
        taken = time.perf_counter() - began
        if not timed:
            return
        taken += sum(seconds[name] for name in ("network", *self.experts))
        self.words += len(table)
        self.seconds += taken
        self.stretch.add(float(surprise(scored.prob).sum()), len(table), 0)
        self.stretch_seconds += taken

    @property
    def stream_us(self) -> float:
        """Microseconds a word of all words so far."""
        return 1e6 * self.seconds / max(self.words, 1)

    @property
    def stretch_us(self) -> float:
        """Microseconds a word of the present stretch."""
        return 1e6 * self.stretch_seconds / max(self.stretch.tokens, 1)


@final
class Stream:
    """A text being read: static and unbounded all the way, the other rows where they are asked for.

    The unbounded row is an `OnlineModel` that reads as it always does. The local cache is filled
    and its rows' mixtures learn over twice its window before a mark: it forgets the rest anyway.
    """

    def __init__(
        self,
        model: Pretrained,
        size: int,
        words: Iterator[str],
        block: int,
        config: MemoryConfig,
        scratch: Scratch,
    ) -> None:
        kept = model.text is not None
        needed = (*experts_for("full", text=kept), "local")
        built = build_online(model, size, needed, config).experts
        self._experts = built
        self.lm = Watched(model.lm)
        few = {name: built[name] for name in ROWS["unbounded"]}
        self.online = OnlineModel(self.lm, model.vocabulary.copy(), few, Online(len(few)))
        self.lines = {
            name: Line(name, experts_for(name, text=kept), model.lm.width)
            for name in (*ALWAYS, *NEAR_A_MARK)
        }
        self.done = 0
        self.block = block
        self.block_seconds: list[float] = []
        self.start_stretch()
        self._longest = 0.0
        self._words = words
        self._config = config
        self._scratch = scratch

    @property
    def unbounded(self) -> Cache:
        """The unbounded cache."""
        return self._cache("unbounded")

    @property
    def local(self) -> Cache:
        """The local cache."""
        return self._cache("local")

    @property
    def longest_stall(self) -> float:
        """Seconds by which the slowest block so far took longer than the median one."""
        return self._longest - float(np.median(self.block_seconds or [0.0]))

    @property
    def experts_us(self) -> dict[str, float]:
        """Microseconds a word of the network and of each expert in the present stretch."""
        words = max(self.lines["unbounded"].stretch.tokens, 1)
        return {name: 1e6 * seconds / words for name, seconds in self._parts.items()}

    def start_stretch(self) -> None:
        """Begin the sums of a stretch anew."""
        self._parts: dict[str, float] = {}
        for line in self.lines.values():
            line.start_stretch()

    def keys(self, hidden: Hidden) -> Hidden:
        """What the caches are searched by."""
        return unit_length(hidden) if self._config.normalize else hidden

    def take(self, count: int) -> list[str]:
        """The next words of the text, which are to be given to `read`."""
        return list(islice(self._words, count))

    def read_to(self, place: int, mark: int, show: Callable[[int, str], None]) -> None:
        """Read on up to a place on the way to a mark."""
        near = mark - 2 * self._config.window
        while self.done < place:
            words = self.take(min(self._rest_of_block, place - self.done))
            self.read(words, near=self.done + len(words) > near)
            show(self.done, f"{self.lines['unbounded'].stream_us:,.0f} µs/word")

    def read_stretch(self, words: list[str], show: Callable[[int, str], None]) -> None:
        """Begin a stretch, and read it under every row."""
        self.start_stretch()
        start = 0
        while start < len(words):
            stop = start + self._rest_of_block
            self.read(words[start:stop])
            show(self.done, "measuring")
            start = stop

    def read_full(self, words: list[str], show: Callable[[int, str], None]) -> float:
        """Microseconds a word of `full` as a memory reads: its experts in one model."""
        few, mixture, names = self.online.experts, self.online.mixture, self.lines["full"].experts
        experts = {name: self._experts[name] for name in names}
        weights = new_mixture("full", names, self.lm.width)
        full, start, seconds = self.online.fork(experts=experts, mixture=weights), 0, 0.0
        while start < len(words):
            stop = start + self._rest_of_block
            began = time.perf_counter()
            reading = full.read(words[start:stop])
            seconds += time.perf_counter() - began
            self.local.score(reading.hidden, reading.ids)
            self._scratch.append(self.keys(reading.hidden), reading.ids)
            self.done += len(reading.words)
            show(self.done, "measuring")
            start = stop
        self.online = full.fork(experts=few, mixture=mixture)
        return 1e6 * seconds / len(words)

    @property
    def _rest_of_block(self) -> int:
        """Words to read next. Blocks end where they would have ended without a mark: a memory
        rearranges itself at round numbers of entries, and searches what lies between together."""
        return self.block - self.done % self.block

    def read(self, words: list[str], *, near: bool = True, timed: bool = True) -> None:
        """Read a block under the rows that are always scored, and the others if a mark is near.

        A pause counts as a stall even where the rows are not timed.
        """
        few, mixture = self.online.experts, self.online.mixture
        # A local cache forgets anyway what is far from the mark.
        asked = {
            name: expert for name, expert in self._experts.items() if near or name not in WINDOWS
        }
        every = self.online.fork(experts=asked, mixture=Online(len(asked)))
        reading = every.read(words, overlap=False)
        self.online = every.fork(experts=few, mixture=mixture)
        seconds = sum(reading.seconds[name] for name in ("network", *few))
        self._longest = max(self._longest, seconds)
        if timed and len(words) == self.block:
            self.block_seconds.append(seconds)
        columns = dict(zip(reading.experts, reading.table.T, strict=True))
        parts = {name: reading.seconds[name] for name in ("network", *columns)}
        for name, line in self.lines.items():
            if near or name in ALWAYS:
                line.count(reading, columns, parts, timed=timed)
        if timed:
            for name, taken in parts.items():
                self._parts[name] = self._parts.get(name, 0.0) + taken
        self._scratch.append(self.keys(reading.hidden), reading.ids)
        self.done += len(words)

    def _cache(self, name: str) -> Cache:
        found = self._experts[name]
        assert isinstance(found, Cache)
        return found
