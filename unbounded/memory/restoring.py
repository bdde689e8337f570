"""From disk to mind: the newest snapshot, the steps after it, then the rest of the journal."""

from collections.abc import Callable
from dataclasses import dataclass

from unbounded.memory.learned import LearnedState, present_names
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
                mind.load(present_names(read_arrays(snapshot.path)))
                if mind.entries != snapshot.entries:
                    raise ValueError(f"{mind.entries:,} entries where the journal has others")
            except FileNotFoundError:
                # The writer has just removed it, for a newer one; for a reader to use that, it has
                # to know the journal so far.
                store.refresh()
                break
            except (OSError, ValueError, KeyError) as error:
                store.events.append(
                    f"{snapshot.path} is damaged ({error}) and was not used; "
                    "what it held is read again from the journal"
                )
            else:
                if write:
                    mind.growth()
                return mind, snapshot, _stepped(store, mind, snapshot)
        else:
            break
    mind = fresh()
    if write:
        mind.growth()
    return mind, None, None


def _stepped(store: Store, mind: LearnedState, snapshot: Snapshot) -> Delta | None:
    """Let a mind go on by the steps that are whole; the last of them."""
    steps = store.checkpoints.steps_from(snapshot)
    while steps:
        try:
            rest = present_names(read_rest(steps[-1]))
            growths = [present_names(read_growth(step)) for step in steps]
        except (OSError, ValueError) as error:
            store.events.append(
                f"a step in {steps[-1].path} is damaged ({error}) and was not used; "
                "what it held is read again from the journal"
            )
            steps.pop()
            continue
        mind.grow(growths)
        mind.settle(rest)
        return steps[-1]
    return None
