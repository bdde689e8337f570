"""When what was learned is written to disk: deltas as words come, all of it now and then."""

from collections.abc import Callable
from typing import final

from unbounded.errors import StoreError
from unbounded.memory.learned import LearnedState, grows
from unbounded.memory.restoring import Show, restored
from unbounded.states import NoDelta
from unbounded.store import Store

DELTA_WORDS = 8192
"""Words after which what has come is written as a delta: at most so many have to be read again
after a crash, one or two seconds; a delta is 2 to 3 MB, and takes milliseconds."""

SNAPSHOT_WORDS, SNAPSHOT_SHARE = 50_000, 16
"""A full checkpoint is written after so many words, or after one in so many of all, if that is
more. To go by deltas takes a fraction of reading again (docs/log.md)."""

CLOSING_WORDS = 2_000
"""Words that may be left for the next opening to read again, less than a second."""


@final
class Checkpointing:
    """Writes the checkpoints of a store's one writer; that one of them fails never fails a read."""

    def __init__(self, store: Store, *, write: bool) -> None:
        self._store, self._write = store, write
        self.since, self.since_full = 0, 0
        """Words since the last delta, and since the last full checkpoint."""

    def restored(self, fresh: Callable[[], LearnedState], show: Show) -> LearnedState:
        """The state that has read what the journal has left."""
        found = restored(self._store, fresh, show, write=self._write)
        covered = 0 if found.snapshot is None else found.snapshot.entries
        self.since = found.again
        self.since_full = self._store.catalog.entries - covered
        return found.mind

    def came(self, words: int) -> None:
        """So many words were read."""
        self.since += words
        self.since_full += words

    @property
    def due(self) -> bool:
        """Whether a delta is."""
        return self.since >= DELTA_WORDS

    def delta(self, learned: LearnedState) -> None:
        """Write what has come since the last time; now and then all, while reading goes on."""
        checkpoints = self._store.checkpoints
        checkpoints.reap()
        since, self.since = learned.entries - self.since, 0
        leads_on = checkpoints.leads_on
        try:
            delta = learned.state(since)
            if leads_on:
                grown = {name: array for name, array in delta.items() if grows(name)}
                rest = {name: array for name, array in delta.items() if not grows(name)}
                checkpoints.step(grown, rest)
        except NoDelta:
            leads_on = False
        except StoreError as error:
            self._store.events.append(str(error))
            leads_on = False
        entries = self._store.catalog.entries
        due = self.since_full >= max(SNAPSHOT_WORDS, entries // SNAPSHOT_SHARE)
        if not leads_on:
            # Nothing leads on from here but a full one; one that is being written is too old.
            checkpoints.reap(wait=True)
        if not leads_on or (due and not checkpoints.busy):
            checkpoints.begin(learned.state())
            self.since_full = 0

    def full(self, learned: LearnedState) -> None:
        """Write all of it, so that the next opening need not read again."""
        try:
            self._store.snapshot(learned.state())
        except StoreError as error:
            self._store.events.append(str(error))
        self.since = self.since_full = 0

    def compact(self, learned: LearnedState) -> None:
        """Compact the store, with a full checkpoint that the next delta leads on from."""
        self._store.compact(learned.state())
        self.since = self.since_full = 0

    def close(self, learned: LearnedState | None) -> None:
        """Write what is worth it, if there is a state, and let the next writer in."""
        try:
            # To read a few words again is faster than to write.
            few = min(CLOSING_WORDS, self._store.catalog.entries // 50)
            if learned is not None and self.since > few:
                self._store.sync()
                self.delta(learned)
            self._store.checkpoints.reap(wait=True)
        finally:
            self._store.close()
