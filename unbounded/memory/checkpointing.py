"""Checkpoints of what was learned: when they are written, and how a state is restored from them.

Deltas are written as words come, all of the state now and then; an opening takes the newest full
checkpoint, the deltas after it, and reads the rest of the journal again.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import final

from unbounded.cluster import Shards
from unbounded.errors import EngineError, MemoryFault, StoreError, Unavailable
from unbounded.memory.backend import Show
from unbounded.memory.learned import LearnedState, grows, present_names
from unbounded.states import Arrays, NoDelta, from_array
from unbounded.store import Snapshot, Store, TextLog
from unbounded.store.deltas import Delta, read_deltas, read_growth, read_rest
from unbounded.store.layout import delta_paths, snapshot_paths
from unbounded.store.snapshot import read_arrays

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

TRIES = 8
"""How often a reader looks for a snapshot that the writer does not remove meanwhile."""


@final
class Checkpointing:
    """Writes the checkpoints of a store's one writer; that one of them fails never fails a read."""

    def __init__(self, store: Store, *, write: bool, shards: Shards | None = None) -> None:
        self._store, self._write, self._shards = store, write, shards
        self.since, self.since_full = 0, 0
        """Words since the last delta, and since the last full checkpoint."""

    def restored(self, fresh: Callable[[], LearnedState], show: Show) -> LearnedState:
        """The state that has read what the journal has left."""
        found = restored(self._store, fresh, show, write=self._write)
        covered = 0 if found.snapshot is None else found.snapshot.entries
        self.since = found.again
        self.since_full = self._store.catalog.entries - covered
        return found.learned

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
        # What is covered the checkpoints know: one that failed half-way may be there all the same.
        since, leads_on = checkpoints.covered, False
        self.since = 0
        try:
            delta = learned.state(learned.entries if since is None else since)
            if since is not None:
                grown = {name: array for name, array in delta.items() if grows(name)}
                rest = {name: array for name, array in delta.items() if not grows(name)}
                checkpoints.append(grown, rest)
                leads_on = True
        except NoDelta:
            pass
        except EngineError as error:
            # Nor could a full one be written.
            self._say(error)
            return
        except StoreError as error:
            self._say(error)
        entries = self._store.catalog.entries
        due = self.since_full >= max(SNAPSHOT_WORDS, entries // SNAPSHOT_SHARE)
        if not leads_on:
            # Nothing leads on from here but a full one; one that is being written is too old.
            checkpoints.reap(wait=True)
        if not leads_on or (due and not checkpoints.busy):
            self._drop_unreferenced()
            try:
                checkpoints.begin(learned.state())
                self.since_full = 0
            except (StoreError, EngineError) as error:
                self._say(error)

    def _say(self, error: Exception) -> None:
        """Once, however often a checkpoint fails for that."""
        if str(error) not in self._store.events:
            self._store.events.append(str(error))

    @property
    def worth(self) -> bool:
        """Whether there is enough to be read again."""
        return self._store.catalog.entries >= FEWEST_WORDS

    def full(self, learned: LearnedState) -> None:
        """Write all of it, so that the next opening need not read again."""
        try:
            self._store.snapshot(learned.state())
        except (StoreError, EngineError) as error:
            self._say(error)
        self._drop_unreferenced()
        self.since = self.since_full = 0

    def compact(self, learned: LearnedState) -> None:
        """Compact the store, with a full checkpoint that the next delta leads on from."""
        self._store.compact(learned.state() if self.worth else None)
        self._drop_unreferenced()
        self.since = self.since_full = 0

    def _drop_unreferenced(self) -> None:
        """Let shards remove the states that no checkpoint refers to any more."""
        if self._shards is not None and not self._store.checkpoints.busy:
            # What is unavailable now removes them the next time.
            with suppress(EngineError):
                self._shards.keep(sorted(references(self._store)))

    def close(self, learned: LearnedState | None) -> None:
        """Write what is worth it, if there is a state, and let the next writer in."""
        try:
            # To read a few words again is faster than to write.
            few = min(CLOSING_WORDS, self._store.catalog.entries // 50)
            if learned is not None and self.worth and self.since > few:
                self._store.sync()
                self.delta(learned)
            self._store.checkpoints.reap(wait=True)
        finally:
            self._store.close()


def references(store: Store) -> set[str]:
    """The names under which shards saved what checkpoints refer to."""
    found: set[str] = set()
    for snapshot in snapshot_paths(store.folder, store.generation):
        with suppress(OSError, ValueError, KeyError):
            found.update(from_array(read_arrays(snapshot, [_SAVED_WHOLE])[_SAVED_WHOLE]))
    for path in delta_paths(store.folder, store.generation):
        for delta in read_deltas(path):
            with suppress(OSError, ValueError, KeyError):
                found.update(from_array(read_rest(delta)[_SAVED]))
    return found


@dataclass(frozen=True)
class Restored:
    """A state, how many words had to be read again for it, and the snapshot that it began with."""

    learned: LearnedState
    again: int
    snapshot: Snapshot | None


def restored(
    store: Store, fresh: Callable[[], LearnedState], show: Show, *, write: bool = False
) -> Restored:
    """The state that has read what the journal has left.

    Checkpoints are taken as they are, and blocks are read again as they were cut, so it is, to
    the bit, the one that never stopped. For a writer, the next delta leads on from there.
    """
    learned, snapshot, delta = _loaded(store, fresh, write)
    start = snapshot if delta is None else delta.to
    if write:
        store.checkpoints.go_on_from(snapshot, delta)
    total = store.catalog.entries - (0 if start is None else start.entries)
    again = read_again(store, learned, start, lambda done: show(done, total))
    return Restored(learned, again, snapshot)


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
    store: Store, fresh: Callable[[], LearnedState], write: bool
) -> tuple[LearnedState, Snapshot | None, Delta | None]:
    """The newest checkpoint that is whole, if there is one."""
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
                return _followed(learned, write), snapshot, last
        else:
            break
    return _followed(fresh(), write), None, None


def _followed(learned: LearnedState, write: bool) -> LearnedState:
    """For a writer, deltas are told from here on."""
    if write:
        with suppress(NoDelta):
            learned.state(learned.entries)
    return learned


def _deltas(store: Store, snapshot: Snapshot) -> tuple[list[Arrays], Delta | None]:
    """The deltas after a snapshot that are whole, and where the last of them lies."""
    deltas = store.checkpoints.deltas_from(snapshot)
    while deltas:
        try:
            found: list[Arrays] = [read_growth(each) for each in deltas]
            # What is small is in the last of them, and that is enough.
            return [*found[:-1], {**found[-1], **read_rest(deltas[-1])}], deltas[-1]
        except (OSError, ValueError) as error:
            store.events.append(
                f"a delta in {deltas[-1].path} is damaged ({error}) and was not used; "
                "what it held is read again from the journal"
            )
            deltas.pop()
    return [], None
