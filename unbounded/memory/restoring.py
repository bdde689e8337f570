"""From disk to mind: the newest snapshot, the steps after it, then the rest of the journal."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from unbounded.errors import MemoryFault
from unbounded.memory.learned import LearnedState, present_names
from unbounded.states import Arrays, NoDelta
from unbounded.store import Snapshot, Store, TextLog
from unbounded.store.deltas import Delta, read_growth, read_rest
from unbounded.store.snapshot import read_arrays

TRIES = 8
"""How often a reader looks for a snapshot that the writer does not remove meanwhile."""

Show = Callable[[int, int], None]
"""Told how many words were read again, and of how many."""


@dataclass(frozen=True)
class Restored:
    """A mind, how many words had to be read again for it, and the snapshot that it began with."""

    mind: LearnedState
    again: int
    snapshot: Snapshot | None


def restored(
    store: Store, fresh: Callable[[], LearnedState], show: Show, *, write: bool = False
) -> Restored:
    """The mind that has read what the journal has left.

    What was set aside is taken as it is, and blocks are read again as they were cut, so it is, to
    the bit, the one that never stopped. For a writer, the next step leads on from there.
    """
    mind, snapshot, step = _loaded(store, fresh, write)
    start = snapshot if step is None else step.to
    if write:
        store.checkpoints.go_on_from(snapshot, step)
    total = store.catalog.entries - (0 if start is None else start.entries)
    again = read_again(store, mind, start, lambda done: show(done, total))
    return Restored(mind, again, snapshot)


def read_again(
    store: TextLog, mind: LearnedState, start: Snapshot | None, show: Callable[[int], None]
) -> int:
    """Let a mind read what the journal has left behind a place, as it was cut; how many words."""
    done = 0
    for words in store.replay(start):
        mind.read(words)
        done += len(words)
        show(done)
    return done


def _loaded(
    store: Store, fresh: Callable[[], LearnedState], write: bool
) -> tuple[LearnedState, Snapshot | None, Delta | None]:
    """The newest state that was set aside and is whole, if there is one."""
    for _ in range(TRIES):
        for snapshot in store.snapshots():
            mind = fresh()
            try:
                whole = read_arrays(snapshot.path)
                deltas, last = _deltas(store, snapshot)
                mind.load([present_names(each) for each in (whole, *deltas)])
                there = snapshot if last is None else last.to
                if mind.entries != there.entries:
                    raise ValueError(f"{mind.entries:,} entries where the journal has others")
            except FileNotFoundError:
                # The writer has just removed it, for a newer one; for a reader to use that, it has
                # to know the journal so far.
                store.refresh()
                break
            except (OSError, ValueError, KeyError, MemoryFault) as error:
                store.events.append(
                    f"{snapshot.path} is damaged ({error}) and was not used; "
                    "what it held is read again from the journal"
                )
            else:
                return _followed(mind, write), snapshot, last
        else:
            break
    return _followed(fresh(), write), None, None


def _followed(mind: LearnedState, write: bool) -> LearnedState:
    """For a writer, deltas are told from here on."""
    if write:
        with suppress(NoDelta):
            mind.state(mind.entries)
    return mind


def _deltas(store: Store, snapshot: Snapshot) -> tuple[list[Arrays], Delta | None]:
    """The deltas after a snapshot that are whole, and where the last of them lies."""
    deltas = store.checkpoints.steps_from(snapshot)
    while deltas:
        try:
            found: list[Arrays] = [read_growth(each) for each in deltas]
            # What is small is in the last of them, and that is enough.
            return [*found[:-1], {**found[-1], **read_rest(deltas[-1])}], deltas[-1]
        except (OSError, ValueError) as error:
            store.events.append(
                f"a step in {deltas[-1].path} is damaged ({error}) and was not used; "
                "what it held is read again from the journal"
            )
            deltas.pop()
    return [], None
