"""One pass over a text under many mixtures at once, that goes on where it was killed."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from zipfile import ZipFile

import numpy as np

from unbounded.console import say
from unbounded.evaluation.metrics import surprise
from unbounded.evaluation.rows import Row
from unbounded.experts import Cache, Expert, NGram
from unbounded.files import write_atomically
from unbounded.mixture import Fixed
from unbounded.model import OnlineModel, Reading
from unbounded.states import Arrays, Stateful, part, under
from unbounded.types import Ids, Table

BLOCK = 8192
"""Words at a time, as `evaluate` has it."""

CHECKPOINT = 500_000
"""Words after which what was learned is written down."""

SECONDS = 60.0
"""How often it is said how far a cell is."""


@dataclass(frozen=True)
class Mixing:
    """Which experts a line mixes, and whether their weights depend on the state."""

    experts: tuple[str, ...]
    gated: bool = False


@final
class Line(Stateful):
    """One mixture that learns as it reads, the same with fixed weights, and what both came to."""

    def __init__(self, mixing: Mixing, width: int) -> None:
        self.experts = mixing.experts
        self._row = Row("full" if mixing.gated else "one set of weights", self.experts, width)
        self.nats: list[float] = []
        """Of each stretch."""
        self._fixed_nats = 0.0
        self.seconds = 0.0
        self._weights = np.zeros(len(self.experts))

    def columns(self, reading: Reading) -> Table:
        """This line's part of a reading's table."""
        return self._row.columns(reading)

    def fit(self, table: Table) -> None:
        """Have fixed weights beside the others: those that suit a table best."""
        self._row.fit(table, beside=True)

    def read(self, reading: Reading) -> None:
        """Mix a block, learn from it, and count."""
        began = time.perf_counter()
        columns = self.columns(reading)
        scored = self._row.score(reading, columns)
        self.seconds += time.perf_counter() - began
        self.seconds += sum(reading.seconds[name] for name in self._row.parts)
        self.nats[-1] += float(surprise(scored.prob).sum())
        self._weights += scored.weights.sum(axis=0)
        if self._row.fitted is not None:
            self._fixed_nats += float(surprise(self._row.fitted.score(columns).prob).sum())

    def state(self, since: int | None = None) -> dict[str, np.ndarray]:
        """The mixture's, the fixed weights and all sums."""
        fitted = self._row.fitted
        fixed = {} if fitted is None else under("fixed", fitted.state())
        sums = np.array([self._fixed_nats, self.seconds, *self.nats])
        return {**under("mixture", self._row.mixture.state()), **fixed, "sums": sums,
                "weights": self._weights.copy()}  # fmt: skip

    def load(self, parts: Sequence[Arrays]) -> None:
        """Become what wrote the state."""
        (state,) = parts
        self._row.mixture.load([part("mixture", state)])
        if fixed := part("fixed", state):
            self._row.fitted = Fixed(fixed["weights"])
        self._fixed_nats, self.seconds, *self.nats = state["sums"].tolist()
        self._weights = state["weights"].copy()

    def to_json(self, tokens: int, characters: int) -> dict[str, Any]:
        """Its figures over so many words."""
        said = {"": sum(self.nats), "fixed_": self._fixed_nats}
        if self._row.fitted is None:
            del said["fixed_"]
        return {
            **{f"{how}perplexity": math.exp(nats / tokens) for how, nats in said.items()},
            **{
                f"{how}bits_per_character": nats / math.log(2) / characters
                for how, nats in said.items()
            },
            "seconds_per_token": self.seconds / tokens,
            "weights": dict(zip(self.experts, (self._weights / tokens).tolist(), strict=True)),
        }


class Resumable(ABC):
    """Something that reads a stream and can be written down between two blocks."""

    tokens: int = 0

    @abstractmethod
    def read(self, words: Sequence[str]) -> None:
        """Score some words, and learn them."""

    @abstractmethod
    def parts(self) -> Iterator[Arrays]:
        """All that was learned and counted, some arrays at a time: they need not fit together."""

    @abstractmethod
    def load(self, state: Arrays) -> None:
        """Become what gave the parts."""


@final
class Lines(Resumable):
    """Several lines over one stream: the experts are asked once, and each line mixes its own."""

    def __init__(
        self,
        online: OnlineModel,
        mixings: Mapping[str, Mixing],
        characters: Callable[[Sequence[str]], int],
        every: int,
    ) -> None:
        """A point of each line's curve is `every` so many words."""
        self.online = online
        width = online.hidden.shape[1]
        self.lines = {name: Line(mixing, width) for name, mixing in mixings.items()}
        self.tokens = self.fitted_on = 0
        self._oov = self._characters = 0
        self._count, self._every = characters, every
        self._ends: list[int] = []
        self._ids: list[Ids] = []
        self._seconds: dict[str, float] = {}

    def fit(self, fresh: OnlineModel, blocks: Iterable[Sequence[str]]) -> None:
        """Give every line the fixed weights that suit a text best, read by a model of its own."""
        tables: dict[str, list[Table]] = {name: [] for name in self.lines}
        for words in blocks:
            reading = fresh.read(words, overlap=False)
            self.fitted_on += len(words)
            for name, line in self.lines.items():
                tables[name].append(line.columns(reading))
        for name, line in self.lines.items():
            line.fit(np.concatenate(tables[name]))

    def read(self, words: Sequence[str]) -> None:
        """Score some words under every line, and learn them."""
        if not self._ends or self._ends[-1] >= len(self._ends) * self._every:
            self._ends.append(self.tokens)
            for line in self.lines.values():
                line.nats.append(0.0)
        reading = self.online.read(words, overlap=False)
        for line in self.lines.values():
            line.read(reading)
        for name, seconds in reading.seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
        self.tokens += len(words)
        self._ids.append(reading.ids)
        self._ends[-1] = self.tokens
        self._oov += int((reading.ids >= self.online.lm.base_size).sum())
        self._characters += self._count(words)

    def parts(self) -> Iterator[Arrays]:
        """Each expert by itself, then the rest."""
        for name, expert in self.online.experts.items():
            yield under(f"online.expert.{name}", expert.state())
        # Some of what was learned follows from the words alone, and is told by them.
        self._ids = [np.concatenate(self._ids)]
        yield under("online", {"ids": self._ids[0], **self.online.fork(experts={}).state()})
        for name, line in self.lines.items():
            yield under(f"line.{name}", line.state())
        counts = [self.tokens, self.fitted_on, self._oov, self._characters, *self._ends]
        seconds = {name: np.array(total) for name, total in self._seconds.items()}
        yield {**under("seconds", seconds), "counts": np.array(counts)}

    def load(self, state: Arrays) -> None:
        """Become what gave the parts."""
        self.online.load([part("online", state)])
        self._ids = [state["online.ids"]]
        for name, line in self.lines.items():
            line.load([part(f"line.{name}", state)])
        counts = state["counts"].tolist()
        self.tokens, self.fitted_on, self._oov, self._characters, *self._ends = counts
        self._seconds = {name: float(total) for name, total in part("seconds", state).items()}

    def to_json(self) -> dict[str, Any]:
        """Every line's figures, its curve, and what each expert took and holds."""
        sizes = np.diff([0, *self._ends])
        figures = {n: line.to_json(self.tokens, self._characters) for n, line in self.lines.items()}
        curve = {
            name: np.exp(np.array(line.nats) / sizes).round(4).tolist()
            for name, line in self.lines.items()
        }
        return {
            "tokens": self.tokens,
            "characters": self._characters,
            "oov_rate": self._oov / self.tokens,
            "fitted_on": self.fitted_on,
            "rows": [{"name": name, **found} for name, found in figures.items()],
            "seconds": {name: total / self.tokens for name, total in self._seconds.items()},
            "bytes": {name: bytes_of(expert) for name, expert in self.online.experts.items()},
            "curve": {"tokens": self._ends, **curve},
        }


def bytes_of(expert: Expert) -> int:
    """What an expert holds to go on from."""
    if isinstance(expert, Cache):
        return round(len(expert.datastore) * expert.datastore.bytes_per_entry)
    if isinstance(expert, NGram):
        return expert.bytes
    return sum(array.nbytes for array in expert.state().values())


def read_on(
    reader: Resumable,
    blocks: Iterable[Sequence[str]],
    kept: Path,
    begin: Callable[[], None],
    named: str,
) -> None:
    """Read all blocks; what an earlier process had read and written down is not read again.

    `begin` is called where there is nothing yet. A checkpoint is whole or not there, and whoever
    has kept the result removes it.
    """
    if kept.exists():
        with np.load(kept) as arrays:
            reader.load(dict(arrays))
    else:
        begin()
    told, due, passed = time.monotonic(), reader.tokens + CHECKPOINT, 0
    for words in blocks:
        passed += len(words)
        if passed <= reader.tokens:
            continue
        reader.read(words)
        if reader.tokens >= due:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(kept) as aside, ZipFile(aside, "w") as file:
                for name, array in (pair for part in reader.parts() for pair in part.items()):
                    with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, array, allow_pickle=False)
            due = reader.tokens + CHECKPOINT
        if time.monotonic() - told > SECONDS:
            told = time.monotonic()
            say(f"{named}: {reader.tokens:,} words")
