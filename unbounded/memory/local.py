"""A log of what was read, on disk or in this process, and what it taught, here or on shards."""

import time as clock
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, final

from unbounded.cluster import Engine, Sharded
from unbounded.cluster.sharded_keys import ShardFigures
from unbounded.corpus import Block
from unbounded.errors import StoreError
from unbounded.lm import Pretrained
from unbounded.memory.checkpointing import Checkpointing, Show, read_again, unheard
from unbounded.memory.forgetting import FEWEST, Budget, Choice, Cost, chosen
from unbounded.memory.integrity import Finding, check, stats, timestamp
from unbounded.memory.learned import LearnedState
from unbounded.memory.log_contents import (
    enlarged,
    files,
    kept_since,
    labels,
    runs_of,
)
from unbounded.model import Reading
from unbounded.presets import MemoryConfig, Recipe
from unbounded.store import Snapshot, Store, TextLog
from unbounded.store.catalog import FileNote
from unbounded.store.records import Ranges
from unbounded.store.text_log import UNDO

BLOCK = 512
"""Words that are read, and written down, at once; more of them in a large memory. No splitter makes
longer words than `tokenizer.LONGEST`, so that they always fit a record."""

SYNCED = 8192
"""Words that are read between two syncs, one or two seconds; `read` ends in one."""


@final
class LocalBackend:
    """One log, one learned state. On disk, what was acknowledged is there tomorrow.

    With `shards`, the keys of the unbounded cache lie there; all else is as without.

    Whoever opened it for writing is the only one who does; whoever opened it for reading sees the
    past as it was then, and follows with `refresh`.
    """

    def __init__(
        self,
        store: TextLog,
        model: Pretrained,
        config: MemoryConfig,
        recipe: Recipe,
        budget: Budget | None = None,
        *,
        write: bool = True,
        show: Show = unheard,
        learned: LearnedState | None = None,
        shards: Engine | None = None,
    ) -> None:
        self.store, self.budget, self.writes, self.shards = store, budget, write, shards
        self.events = store.events
        self._model, self._config, self._recipe = model, config, recipe
        self.saving = Checkpointing(store, write=write, shards=shards)
        self._broken = False
        self._verb, self._noted = "", False
        self._cost: Cost | None = None
        self.learned = learned or self._restored(show)

    def _fresh(self) -> LearnedState:
        rates = self.budget is not None and self.budget.policy == "surprise"
        width, shards = self._model.lm.key_width, self.shards
        datastore = None if shards is None else partial(Sharded, shards, width)
        given = self._model, self._config, self._recipe
        return LearnedState(*given, rates=rates, datastore=datastore)

    def _restored(self, show: Show) -> LearnedState:
        return self.saving.restored(self._fresh, show)

    def view(self) -> "LocalBackend":
        """Another reader of the same files."""
        self.check_usable()
        if not isinstance(self.store, Store):
            raise StoreError("a memory of this process has no view of its own; open one on disk")
        store = Store(self.store.folder, write=False, disk=self.store.disk)
        given = self._model, self._config, self._recipe, self.budget
        return LocalBackend(store, *given, write=False, learned=self.learned)

    @property
    def shard_figures(self) -> dict[str, list[ShardFigures]]:
        """The shards as they were when they last answered, by the id of the memory."""
        datastore = self.learned.datastore
        if not isinstance(datastore, Sharded) or not isinstance(self.store, Store):
            return {}
        return {self.store.about["id"]: datastore.figures}

    @property
    def entries(self) -> int:
        """How many words are left."""
        return self.store.catalog.entries

    @property
    def block(self) -> int:
        """More in a large memory."""
        return enlarged(BLOCK, self.entries)

    # Reading.

    def read(
        self, cut: Iterable[Block], time: datetime | None, *, whole: bool
    ) -> Iterator[Reading]:
        """Read blocks; what was given out is durable some `SYNCED` words later, and at the end."""
        self.check_usable(write=True)
        began, unsynced = self.store.marker(), 0
        try:
            with self.verb("read"):
                for block in cut:
                    self._make_room(len(block.words))
                    yield self._read_block(block, time)
                    unsynced += len(block.words)
                    if self.saving.due or unsynced >= SYNCED:
                        self.store.sync()
                        unsynced = 0
                    if self.saving.due:
                        self.saving.delta(self.learned)
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
                self.saving.undo(began.records)
                self.learned, self._broken = self._restored(unheard), False
            elif not same or store.records > began.records:
                self.events.append(kept_since(store, began))
                store.sync()

    def _read_block(self, block: Block, time: datetime | None) -> Reading:
        self.check_usable(write=True)
        when = clock.time() if time is None else timestamp(time)
        records = self.store.records
        self._note_verb()
        self.store.append(block.words, labels(block), runs_of(block), when, block.forms)
        try:
            reading = self.learned.read(block.words)
        except BaseException:
            # Half of it may be learned; on disk it is as if it had not been.
            self._broken = True
            self.saving.undo(records)
            raise
        self.saving.came(len(block.words))
        if self._cost is not None and (said := self._cost.read(reading)) is not None:
            self.events.append(said)
            self._cost = None
        return replace(reading, block=block)

    def files(self) -> Mapping[str, FileNote]:
        """Files as they were read; whole are those of which nothing was forgotten since."""
        return files(self.store, whole=self.budget is not None)

    # Forgetting.

    def forget(self, choice: Choice, *, dry_run: bool = False, show: Show = unheard) -> int:
        """What was read after the first of them is read again, at the speed of reading."""
        self.check_usable(write=not dry_run)
        ranges = chosen(self.store, self._model.tokenizer, choice)
        if ranges and not dry_run:
            self._judge()
            with self.verb("forget"):
                self._note_verb()
                self._forget(ranges, show)
            self.snapshot()
        return sum(stop - start for start, stop in ranges)

    def _forget(self, ranges: Ranges, show: Show) -> None:
        # If it is interrupted, the next opening will finish it.
        self._broken = True
        self.saving.forget(ranges)
        self.learned, self._broken = self._restored(show), False

    @contextmanager
    def verb(self, name: str) -> Iterator[None]:
        """It is written down with the first thing that changes; within another it is that one."""
        outermost = not self._verb
        if outermost:
            self._verb, self._noted = name, False
        try:
            yield
        finally:
            if outermost:
                self._verb = ""

    def _note_verb(self) -> None:
        if not self._noted:
            self.store.append_verb(self._verb)
            self._noted = True

    def undo(self, show: Show) -> tuple[str, int]:
        """Cut the journal where it began; what was learned before that is read again."""
        self.check_usable(write=True)
        if not self.store.verbs:
            raise StoreError(
                f"{self.store.folder}: nothing can be taken back; nothing was read or forgotten "
                "since it was made or compacted"
            )
        before, (records, verb) = self.entries, self.store.verbs[-1]
        self._judge()
        # If it is interrupted, the next opening finds one or the other.
        self._broken = True
        self.saving.undo(records)
        self.store.append_verb(UNDO)
        self.store.sync()
        self.learned, self._broken = self._restored(show), False
        self.snapshot()
        return verb, self.entries - before

    def _make_room(self, words: int) -> None:
        """Forget as much as the budget asks for before so many words come; in the files too."""
        if (budget := self.budget) is None or not budget.exceeded(self.store, self.learned, words):
            return
        self.check_usable(write=True)
        before, learned = self.entries, self.learned
        while budget.exceeded(self.store, self.learned, words):
            if self.entries < FEWEST // 2:
                raise StoreError(
                    f"{self.store.folder} takes {self.store.bytes:,} bytes with "
                    f"{self.entries:,} entries, and has {budget}; make a new memory with a larger "
                    "one"
                )
            self._forget(budget.to_go(self.store, self.learned.surprise), unheard)
            self.compact()
        if self.learned is learned:
            # An old checkpoint was removed meanwhile, and that was enough.
            return
        self._judge()
        self._cost = Cost(learned)
        self.events.append(
            f"at {before:,} entries, with {budget}: {before - self.entries:,} forgotten"
        )

    def _judge(self) -> None:
        """Say what the last forgetting cost, by the words that have come since."""
        if self._cost is not None and (said := self._cost.verdict()) is not None:
            self.events.append(said)
        self._cost = None

    def compact(self) -> tuple[int, int]:
        """Write everything anew without what was forgotten: it is then in no file any more."""
        self.check_usable(write=True)
        before = self.store.bytes
        self.saving.compact(self.learned)
        return before, self.store.bytes

    # Care.

    def snapshot(self) -> None:
        """Write a full checkpoint, so that the next opening need not read again."""
        self.check_usable(write=True)
        self.saving.full(self.learned)

    def refresh(self, show: Show) -> int | None:
        """Follow the writer: how many words came; None if what was there has changed."""
        self.check_usable()
        if self.writes or not isinstance(self.store, Store):
            return 0
        seen = self.store.marker()
        came = self.store.refresh()
        if came is None:
            self.learned = self._restored(show)
            return None
        read_again(self.store, self.learned, seen, lambda done: None)
        return came

    def stats(self) -> dict[str, Any]:
        """Entries, words, documents, bytes by part, growth; what each shard says of itself."""
        found = stats(self.store, self.learned, self.budget)
        return found if self.shards is None else {**found, "shards": self.shards.stats()}

    def check(self, *, deep: bool, show: Show) -> list[Finding]:
        """Every checksum; with `deep`, the whole log is read again, and must give the same."""
        found = check(self.store, self.learned, self._fresh if deep else None, show)
        if self.shards is not None:
            found += [Finding(str(self.store.folder), *wrong) for wrong in self.shards.check()]
        return found

    def close(self) -> None:
        """Write a checkpoint if there is enough new, and let the next writer in."""
        usable = self.writes and not self._broken and not self.store.closed
        self._judge()
        try:
            self.saving.close(self.learned if usable else None)
        finally:
            if self.shards is not None:
                self.shards.close()

    def check_usable(self, *, write: bool = False) -> None:
        """Refuse what was closed, interrupted, or opened for reading."""
        if self.store.closed:
            raise StoreError(f"{self.store.folder} was closed; open it again")
        if self._broken:
            raise StoreError(
                f"{self.store.folder} was interrupted while it learned; close it and open it again"
            )
        if write and not self.writes:
            raise StoreError(f"{self.store.folder} was opened for reading; open it for writing")
