"""A memory on disk, opened: reads, predicts, scores, goes on writing, forgets."""

import time as clock
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, final

from unbounded.corpus import Block, Line, blocks, lines_of, read_sentences
from unbounded.errors import CorpusError, SettingError, StoreError
from unbounded.lm import Pretrained
from unbounded.memory.budget import FEWEST, Budget, Cost
from unbounded.memory.cutting import enlarged, fitting_blocks, kept_since, labels, runs_of
from unbounded.memory.export import export
from unbounded.memory.forgetting import chosen
from unbounded.memory.integrity import Finding, check, stats, timestamp
from unbounded.memory.learned import LearnedState
from unbounded.memory.prediction import Prediction, predict
from unbounded.memory.readings import Reading
from unbounded.memory.restoring import Show, read_again, restored
from unbounded.memory.sampling import Piece, SamplingParams, after, generate
from unbounded.model import OnlineModel
from unbounded.model import Reading as BlockReading
from unbounded.presets import MemoryConfig
from unbounded.store import Snapshot, Store
from unbounded.store.records import Ranges

BLOCK = 512
"""Words that are read, and written down, at once; more of them in a large memory."""

SYNCED = 8192
"""Words that are read between two syncs, one or two seconds; `read` ends in one."""

STEP_WORDS = 8192
"""Words after which what has come is set aside as a step: at most so many have to be read again
after a crash, one or two seconds; a step is 2 to 3 MB, and takes milliseconds."""

SNAPSHOT_WORDS, SNAPSHOT_SHARE = 50_000, 16
"""All of the state is set aside after so many words, or after one in so many of all, if that is
more. To go by steps takes a fraction of reading again (docs/log.md)."""

CLOSING_WORDS = 2_000
"""Words that may be left for the next opening to read again, less than a second."""


@final
class Memory:
    """One model, one folder. What `read` has returned from is there tomorrow.

    Whoever opened it for writing is the only one who does; whoever opened it for reading sees the
    past as it was then, and follows with `refresh`. Use it in a `with` statement, or `close` it.
    """

    def __init__(
        self,
        store: Store,
        model: Pretrained,
        config: MemoryConfig,
        budget: Budget | None,
        *,
        write: bool,
        show: Show,
        mind: LearnedState | None = None,
    ) -> None:
        self.store = store
        self.budget = budget
        self.model = model
        self.config = config
        self.writes = write
        self.events = store.events
        rates = budget is not None and budget.policy == "surprise"
        self._fresh: Callable[[], LearnedState] = lambda: LearnedState(model, config, rates=rates)
        self._broken = False
        self._cost: Cost | None = None
        # Words since the last step, and since the last snapshot.
        self._since, self._since_snapshot = 0, 0
        self._mind = mind or self._restored(show)

    def _restored(self, show: Show) -> LearnedState:
        found = restored(self.store, self._fresh, show, write=self.writes)
        entries = self.store.catalog.entries
        self._since = found.again
        self._since_snapshot = entries - (0 if found.snapshot is None else found.snapshot.entries)
        return found.mind

    def checkpoints(self) -> "Memory":
        """One for asking that stays as this is now, while this forgets and compacts; close it.

        It shares what this knows, and must not be asked any more once this reads on.
        """
        self._check_usable()
        store = Store(self.store.folder, write=False, disk=self.store.disk)
        parts = store, self.model, self.config, self.budget
        return Memory(*parts, write=False, show=lambda done, total: None, mind=self._mind)

    @property
    def online(self) -> OnlineModel:
        """The model itself, for asking; reading into it would not be written down."""
        return self._mind.online

    @property
    def version(self) -> object:
        """Equal to the one before as long as nothing was learned or forgotten."""
        return self.online, self.store.records

    def __len__(self) -> int:
        return self.store.catalog.entries

    # Reading.

    def read(
        self, text: str, document: str = "text", *, line: int = 1, time: datetime | None = None
    ) -> Reading:
        """Read a text, a sentence a line; durable when it returns. If it fails, nothing is kept.

        `line` is the number of the first line, `time` when it was written, if that is not now.
        """
        lines = lines_of(text, document, line)
        found = [self._kept(block) for block in self.follow(lines, time=time, whole=True)]
        if not found:
            raise CorpusError(f"there are no words in {document!r}; give a text with words")
        return Reading.joined(found)

    def follow(
        self, lines: Iterable[Line], *, time: datetime | None = None, whole: bool = False
    ) -> Iterator[BlockReading]:
        """Read lines, such as a `Reader`, a block at a time; all durable at the end.

        What was given out before that is durable some `SYNCED` words later. If it fails, what was
        kept is said in `events`; with `whole` nothing is.
        """
        size = enlarged(BLOCK, self.store.catalog.entries)
        cut = blocks(read_sentences(lines, self.model.tokenizer), size)
        return self.take(cut, time=time, whole=whole)

    def take(
        self, cut: Iterable[Block], *, time: datetime | None = None, whole: bool = False
    ) -> Iterator[BlockReading]:
        """`follow` for words that were split and cut into blocks before."""
        self._check_usable(write=True)
        began, unsynced = self.store.marker(), 0
        try:
            for block in fitting_blocks(cut):
                self._make_room(len(block.words))
                yield self._read(block, time)
                unsynced += len(block.words)
                due = self._since >= STEP_WORDS
                if due or unsynced >= SYNCED:
                    self.store.sync()
                    unsynced = 0
                if due:
                    self._step()
            self.store.sync()
        except GeneratorExit:
            # Nobody wants more; what was given out stays.
            if not (self._broken or self.store.closed):
                self.store.sync()
            raise
        except BaseException:
            self._end(began, whole)
            raise

    def _end(self, began: Snapshot, whole: bool) -> None:
        """Reading failed: take back what was read, or say how far it came."""
        store = self.store
        # What went wrong first is what must be heard of.
        with suppress(StoreError, OSError):
            same = store.generation == began.generation
            if whole and same and (self._broken or store.records > began.records):
                self._broken = True
                store.undo(began.records)
                self._mind, self._broken = self._restored(lambda done, total: None), False
            elif not same or store.records > began.records:
                self.events.append(kept_since(store, began))
                store.sync()

    def _read(self, block: Block, time: datetime | None) -> BlockReading:
        self._check_usable(write=True)
        when = clock.time() if time is None else timestamp(time)
        records = self.store.records
        self.store.append(block.words, labels(block), runs_of(block), when)
        try:
            reading = self._mind.read(block.words)
        except BaseException:
            # Half of it may be learned; on disk it is as if it had not been.
            self._broken = True
            self.store.undo(records)
            raise
        self._since += len(block.words)
        self._since_snapshot += len(block.words)
        if self._cost is not None and (said := self._cost.read(reading)) is not None:
            self.events.append(said)
            self._cost = None
        return reading

    # Asking.

    def predict(self, text: str = "", n: int = 10, *, sources: int = 3) -> Prediction:
        """The likeliest next words, after a text if there is one; teaches nothing."""
        self._check_usable()
        if n < 1:
            raise SettingError(f"{n} words were asked for; ask for at least 1")
        return predict(self._after(text), self.store, n, sources, self.model.tokenizer)

    def score(self, text: str) -> Reading:
        """What each word's probability would be, sentence by sentence; teaches nothing.

        The words of the text are not learned from, but who was right about them is.
        """
        found = list(self.scoring(lines_of(text, "text", 1)))
        if not found:
            raise CorpusError("there are no words to score; give a text with words")
        return Reading.joined(found)

    def scoring(self, lines: Iterable[Line]) -> Iterator[Reading]:
        """`score` for lines, such as a `Reader`, a block at a time."""
        self._check_usable()
        model = self.online
        for block in blocks(read_sentences(lines, self.model.tokenizer), BLOCK):
            reading, model = model.peek(block.words)
            yield self._kept(reading)

    def complete(
        self,
        text: str = "",
        max_words: int = 20,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int | None = None,
    ) -> str:
        """Go on writing: so many words after the text, the likeliest, or drawn."""
        sampling = SamplingParams(max_words, temperature, top_k, seed=seed)
        return "".join(piece.text for piece in self.generate(text, sampling, spaced=True))

    def generate(
        self, text: str, sampling: SamplingParams, *, spaced: bool = False
    ) -> Iterator[Piece]:
        """`complete` piece by piece, as each word comes."""
        self._check_usable()
        tokenizer = self.model.tokenizer
        return generate(self, tokenizer, self._unfinished(text), sampling, spaced=spaced)

    def _after(self, text: str) -> OnlineModel:
        """The model behind a text that goes on."""
        return after(self.online, self._unfinished(text))

    def _unfinished(self, text: str) -> list[str]:
        """The words of a text that goes on, so that its last sentence does not end."""
        sentences = read_sentences(lines_of(text, "text", 1), self.model.tokenizer)
        return [word for sentence in sentences for word in sentence.words][:-1]

    def _kept(self, block: BlockReading) -> Reading:
        return Reading.of(block, self.model.tokenizer.characters(block.words))

    def forget(
        self,
        *,
        document: str | None = None,
        before: datetime | None = None,
        matching: str | None = None,
        last: int | None = None,
        show: Show = lambda done, total: None,
    ) -> int:
        """Be as if some words had never been read; how many. Durable when it returns.

        What was read after the first of them is read again, at the speed of reading. `compact` then
        takes them out of the files too.
        """
        self._check_usable(write=True)
        self._judge()
        where = self.store, self.model.tokenizer
        ranges = chosen(*where, document=document, before=before, matching=matching, last=last)
        if ranges:
            self._forget(ranges, show)
            self.snapshot()
        return sum(stop - start for start, stop in ranges)

    def _forget(self, ranges: Ranges, show: Show) -> None:
        # If it is interrupted, the next opening will finish it.
        self._broken = True
        self.store.forget(ranges)
        self._mind, self._broken = self._restored(show), False

    def _make_room(self, words: int) -> None:
        """Forget as much as the budget asks for before so many words come; in the files too."""
        if (budget := self.budget) is None or not budget.exceeded(self.store, self._mind, words):
            return
        self._check_usable(write=True)
        before, mind = len(self), self._mind
        while budget.exceeded(self.store, self._mind, words):
            if len(self) < FEWEST // 2:
                raise StoreError(
                    f"{self.store.folder} takes {self.store.bytes:,} bytes with {len(self):,} "
                    f"entries, and has {budget}; make a new memory with a larger one"
                )
            self._forget(budget.to_go(self.store, self._mind.surprise), lambda done, total: None)
            self.compact()
        self._judge()
        self._cost = Cost(mind)
        self.events.append(
            f"at {before:,} entries, with {budget}: {before - len(self):,} forgotten"
        )

    def _judge(self) -> None:
        """Say what the last forgetting cost, by the words that have come since."""
        if self._cost is not None and (said := self._cost.verdict()) is not None:
            self.events.append(said)
        self._cost = None

    def compact(self) -> None:
        """Write everything anew without what was forgotten: it is then in no file any more."""
        self._check_usable(write=True)
        # The new snapshot is what the next step leads on from.
        self._mind.growth()
        self.store.compact(self._mind.state())
        self._since = self._since_snapshot = 0

    # Care.

    def snapshot(self) -> None:
        """Set the state aside, so that the next opening need not read again; never fails a read."""
        self._check_usable(write=True)
        self._mind.growth()
        try:
            self.store.snapshot(self._mind.state())
        except StoreError as error:
            self.events.append(str(error))
        self._since = self._since_snapshot = 0

    def _step(self) -> None:
        """Set aside what has come since the last time; now and then all, while reading goes on."""
        aside = self.store.checkpoints
        aside.reap()
        growth, self._since = self._mind.growth(), 0
        leads_on = aside.leads_on and growth is not None
        try:
            if growth is not None and aside.leads_on:
                aside.step(growth, self._mind.rest())
        except StoreError as error:
            self.events.append(str(error))
            leads_on = False
        due = self._since_snapshot >= max(SNAPSHOT_WORDS, len(self) // SNAPSHOT_SHARE)
        if not leads_on:
            # Nothing leads on from here but a snapshot; one that is being written is too old.
            aside.reap(wait=True)
        if not leads_on or (due and not aside.busy):
            aside.begin(self._mind.state())
            self._since_snapshot = 0

    def refresh(self, show: Show = lambda done, total: None) -> int | None:
        """Follow the writer: how many words came; None if what was there has changed."""
        self._check_usable()
        if self.writes:
            return 0
        seen = self.store.marker()
        came = self.store.refresh()
        if came is None:
            self._mind = self._restored(show)
            return None
        read_again(self.store, self._mind, seen, lambda done: None)
        return came

    def stats(self) -> dict[str, Any]:
        """Entries, words, documents, bytes by part, growth."""
        return stats(self.store, self._mind)

    def check(self, *, deep: bool = False, show: Show = lambda done, total: None) -> list[Finding]:
        """What is wrong, and what to do; nothing if all is well.

        With `deep` the whole journal is read again, and the state must come out the same.
        """
        return check(self.store, self._mind, self._fresh if deep else None, show)

    def export(self, path: str) -> int:
        """Write every word that is left to a Parquet file; how many."""
        return export(self.store, path)

    def close(self) -> None:
        """Set the state aside if there is enough new, and let the next writer in."""
        usable = self.writes and not self._broken and not self.store.closed
        self._judge()
        try:
            # To read a few words again is faster than to write.
            if usable and self._since > min(CLOSING_WORDS, len(self) // 50):
                self.store.sync()
                self._step()
            self.store.checkpoints.reap(wait=True)
        finally:
            self.store.close()

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            # What went wrong is what must be heard of.
            with suppress(StoreError, OSError):
                self.close()

    def _check_usable(self, *, write: bool = False) -> None:
        if self.store.closed:
            raise StoreError(f"{self.store.folder} was closed; open it again")
        if self._broken:
            raise StoreError(
                f"{self.store.folder} was interrupted while it learned; close it and open it again"
            )
        if write and not self.writes:
            raise StoreError(f"{self.store.folder} was opened for reading; open it for writing")
