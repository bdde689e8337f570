"""Checkpoints of what was learned: when they are written, and how a state is restored from them.

Deltas are written as words come, all of the state now and then; an opening takes the newest full
checkpoint, the deltas after it, and reads the rest of the journal again.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import final

import numpy as np

from unbounded.cluster import Engine
from unbounded.errors import EngineError, MemoryFault, StoreError, Unavailable
from unbounded.memory.learned import LearnedState, grows, present_names
from unbounded.states import Arrays, NoDelta, from_array
from unbounded.store import Snapshot, Store, TextLog
from unbounded.store.deltas import Delta, Tail, read_added, read_deltas, read_replaced
from unbounded.store.layout import delta_path, delta_paths, snapshot_path, snapshot_paths
from unbounded.store.records import Ranges
from unbounded.store.snapshot import read_arrays, write_snapshot

DELTA_WORDS = 8192
"""Words after which what has come is written as a delta: at most so many have to be read again
after a crash, one or two seconds; a delta is 2 to 3 MB, and takes milliseconds."""

SNAPSHOT_WORDS, SNAPSHOT_SHARE = 50_000, 16
"""A full checkpoint is written after so many words, or after one in so many of all, if that is
more. To go by deltas takes a fraction of reading again (docs/log.md)."""

CLOSING_WORDS = 2_000
"""Words that may be left for the next opening to read again, less than a second."""

FEWEST_WORDS = 512
"""Words of a memory that is worth a checkpoint, one block: fewer are read again sooner than a state
is loaded, which has a megabyte or more however little it has read."""

_SAVED = "expert.unbounded.saved.header"
_SAVED_WHOLE = "expert.unbounded.index.saved.header"

Show = Callable[[int, int], None]
"""Told how many words were read again, and of how many."""


def unheard(done: int, total: int) -> None:
    """A `Show` for whom nobody wants to tell."""


TRIES = 8
"""How often a reader looks for a snapshot that the writer does not remove meanwhile."""


@final
class Checkpointing:
    """Writes the checkpoints of a store's one writer; that one of them fails never fails a read.

    A log of this process has none, and is read again from its beginning.
    """

    def __init__(self, log: TextLog, *, write: bool, shards: Engine | None = None) -> None:
        self._log, self._write, self._shards = log, write, shards
        self._store = log if isinstance(log, Store) else None
        self.since, self.since_full = 0, 0
        """Words since the last delta, and since the last full checkpoint."""
        self._next: Tail | None = None
        self._background: Future[None] | None = None
        self._stopped = threading.Event()

    def restored(self, fresh: Callable[[], LearnedState], show: Show) -> LearnedState:
        """The state that has read what the journal has left.

        Checkpoints are taken as they are, and blocks are read again as they were cut, so it is, to
        the bit, the one that never stopped. For a writer, the next delta leads on from there.
        """
        store = self._store
        loaded = None if store is None else _loaded(store, fresh)
        learned, snapshot, delta = loaded or (fresh(), None, None)
        if store is not None and self._write:
            self._go_on_from(snapshot, delta)
            with suppress(NoDelta):
                # Deltas are told from here on.
                learned.state(learned.entries)
        start = snapshot if delta is None else delta.to
        entries = self._log.catalog.entries
        total = entries - (0 if start is None else start.entries)
        self.since = read_again(self._log, learned, start, lambda done: show(done, total))
        self.since_full = entries - (0 if snapshot is None else snapshot.entries)
        return learned

    def came(self, words: int) -> None:
        """So many words were read."""
        self.since += words
        self.since_full += words
        self.reap()

    @property
    def due(self) -> bool:
        """Whether a delta is."""
        return self._store is not None and self.since >= DELTA_WORDS

    def delta(self, learned: LearnedState) -> None:
        """Write what has come since the last time; now and then all, while reading goes on."""
        assert self._store is not None
        # If it fails, what comes later has nothing to lead on from, until there is a full one.
        last, self._next = self._next, None
        self.since = 0
        try:
            delta = learned.state(learned.entries if last is None else last.state.entries)
            if last is not None:
                grown = {name: array for name, array in delta.items() if grows(name)}
                rest = {name: array for name, array in delta.items() if not grows(name)}
                self._next = last.append(self._store.disk, self._store.marker(), grown, rest)
        except NoDelta:
            pass
        except EngineError as error:
            # Nor could a full one be written.
            self._next = last
            self._log.say(str(error))
            return
        except StoreError as error:
            self._log.say(str(error))
        entries = self._log.catalog.entries
        due = self.since_full >= max(SNAPSHOT_WORDS, entries // SNAPSHOT_SHARE)
        if self._next is None:
            # Nothing leads on from here but a full one; one that is being written is too old.
            self.reap(wait=True)
        if self._next is None or (due and not self.busy):
            self._drop_unreferenced()
            try:
                self._begin(self._store, learned.state())
                self.since_full = 0
            except (StoreError, EngineError) as error:
                self._log.say(str(error))

    def _go_on_from(self, snapshot: Snapshot | None, delta: Delta | None) -> None:
        """The next delta leads on from this one, or from this snapshot; from None none can."""
        self._next = None if delta is None else Tail.behind(delta)
        if delta is None and snapshot is not None:
            path = delta_path(self._log.folder, snapshot.generation, snapshot.records)
            self._next = Tail(replace(snapshot, path=path))

    def _begin(self, store: Store, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a full checkpoint in a thread of its own; `reap` tells what became of it."""
        self.stop()
        about, self._stopped = _described(store), threading.Event()
        thread = ThreadPoolExecutor(1)
        given = store.disk, about, dict(arrays), self._stopped
        self._background = thread.submit(write_snapshot, *given)
        thread.shutdown(wait=False)
        # Deltas lead from one to the next whether it will be there or not.
        self._go_on_from(about, None)

    @property
    def busy(self) -> bool:
        """Whether a full checkpoint is being written."""
        return self._background is not None and not self._background.done()

    def reap(self, *, wait: bool = False) -> None:
        """Once the last full checkpoint is there older ones go; if it could not be, say so."""
        if self._store is None or self._background is None or (self.busy and not wait):
            return
        try:
            self._background.result()
            self._store.remove_old()
        # Whatever it was: reading goes on, and the journal has everything.
        except Exception as error:
            if not self._stopped.is_set():
                self._log.say(str(error))
        self._background = None

    def stop(self) -> None:
        """Give up what is being written: when this returns nothing of it is left, or all is."""
        self._stopped.set()
        self.reap(wait=True)
        self._next = None

    @property
    def _worth(self) -> bool:
        """Whether there is a place for checkpoints, and enough to be read again."""
        return self._store is not None and self._log.catalog.entries >= FEWEST_WORDS

    def full(self, learned: LearnedState) -> None:
        """Write all of it, if it is worth it, so that the next opening need not read again."""
        if self._store is None or not self._worth:
            return
        try:
            arrays = learned.state()
            self._store.sync()
            self.stop()
            about = _described(self._store)
            write_snapshot(self._store.disk, about, arrays)
            self._store.remove_old()
            self._go_on_from(about, None)
        except (StoreError, EngineError) as error:
            self._log.say(str(error))
        self._drop_unreferenced()
        self.since = self.since_full = 0

    def compact(self, learned: LearnedState) -> None:
        """Compact the log, with a full checkpoint that the next delta leads on from."""
        arrays = learned.state() if self._worth else None
        self.stop()
        try:
            self._log.compact(arrays)
        finally:
            if self._store is not None and not self._store.closed:
                newest = self._store.snapshots()[:1]
                there = newest and newest[0].records == self._log.records
                self._go_on_from(newest[0] if there else None, None)
        self._drop_unreferenced()
        self.since = self.since_full = 0

    def forget(self, ranges: Ranges) -> None:
        """Have words forgotten, and remove the states that know them; durable."""
        self.stop()
        self._log.forget(ranges)
        if self._store is not None:
            self._store.remove_invalid()

    def undo(self, records: int) -> None:
        """Take back all but so many records, and remove the states that know them."""
        self.stop()
        self._log.undo(records)
        if self._store is not None:
            self._store.remove_invalid()

    def _drop_unreferenced(self) -> None:
        """Let shards remove the states that no checkpoint refers to any more."""
        if self._shards is not None and self._store is not None and not self.busy:
            # What is unavailable now removes them the next time.
            with suppress(EngineError):
                self._shards.keep(sorted(references(self._store)))

    def close(self, learned: LearnedState | None) -> None:
        """Write what is worth it, if there is a state, and let the next writer in."""
        try:
            # To read a few words again is faster than to write.
            few = min(CLOSING_WORDS, self._log.catalog.entries // 50)
            if learned is not None and self._worth and self.since > few:
                self._log.sync()
                self.delta(learned)
            self.reap(wait=True)
        finally:
            self.stop()
            self._log.close()


def _described(store: Store) -> Snapshot:
    """The full checkpoint of the state after all records so far."""
    here = store.marker()
    return replace(here, path=snapshot_path(store.folder, here.generation, here.records))


def references(store: Store) -> set[str]:
    """The names under which shards saved what checkpoints refer to."""
    found: set[str] = set()
    for snapshot in snapshot_paths(store.folder, store.generation):
        with suppress(OSError, ValueError, KeyError):
            found.update(from_array(read_arrays(snapshot, [_SAVED_WHOLE])[_SAVED_WHOLE]))
    for path in delta_paths(store.folder, store.generation):
        for delta in read_deltas(path):
            with suppress(OSError, ValueError, KeyError):
                found.update(from_array(read_replaced(delta)[_SAVED]))
    return found


def read_again(
    store: TextLog, learned: LearnedState, start: Snapshot | None, show: Callable[[int], None]
) -> int:
    """Let a state read what the journal has left behind a place, as it was cut; how many words."""
    done = 0
    for words in store.replay(start):
        learned.read(words)
        done += len(words)
        show(done)
    return done


def _loaded(
    store: Store, fresh: Callable[[], LearnedState]
) -> tuple[LearnedState, Snapshot, Delta | None] | None:
    """The newest checkpoint that is whole, if there is one, and the last delta after it."""
    for _ in range(TRIES):
        for snapshot in store.snapshots():
            learned = fresh()
            try:
                whole = read_arrays(snapshot.path)
                deltas, last = _deltas(store, snapshot)
                learned.load([present_names(each) for each in (whole, *deltas)])
                there = snapshot if last is None else last.to
                if learned.entries != there.entries:
                    raise ValueError(f"{learned.entries:,} entries where the journal has others")
            except FileNotFoundError:
                # The writer has just removed it, for a newer one; for a reader to use that, it has
                # to know the journal so far.
                store.refresh()
                break
            except Unavailable:
                raise
            except (EngineError, MemoryFault) as error:
                said = str(error).partition("; ")[0]
                store.events.append(
                    f"{snapshot.path} was not used ({said}); what it held is read again from the "
                    "journal"
                )
            except (OSError, ValueError, KeyError) as error:
                store.events.append(
                    f"{snapshot.path} is damaged ({error}) and was not used; "
                    "what it held is read again from the journal"
                )
            else:
                return learned, snapshot, last
        else:
            break
    return None


def _deltas(store: Store, snapshot: Snapshot) -> tuple[list[Arrays], Delta | None]:
    """The deltas after a snapshot that are whole, and where the last of them lies."""
    deltas = store.deltas_from(snapshot)
    while deltas:
        try:
            found: list[Arrays] = [read_added(each) for each in deltas]
            # What is small is in the last of them, and that is enough.
            return [*found[:-1], {**found[-1], **read_replaced(deltas[-1])}], deltas[-1]
        except (OSError, ValueError) as error:
            store.events.append(
                f"a delta in {deltas[-1].to.path} is damaged ({error}) and was not used; "
                "what it held is read again from the journal"
            )
            deltas.pop()
    return [], None
