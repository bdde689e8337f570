"""From disk to mind: the newest state that was set aside, then the rest of the journal."""

from collections.abc import Callable

from unbounded.keep.mind import Mind
from unbounded.store import Snapshot, Store
from unbounded.store.snapshot import read_arrays

TRIES = 8
"""How often a reader looks for a snapshot that the writer does not remove meanwhile."""

Show = Callable[[int, int], None]
"""Told how many words were read again, and of how many."""


def restored(store: Store, fresh: Callable[[], Mind], show: Show) -> tuple[Mind, int]:
    """The mind that has read what the journal has left, and how many words of it were read again.

    Blocks are read again as they were cut, so it is, to the bit, the one that never stopped.
    """
    mind, start = _loaded(store, fresh)
    total = store.ledger.entries - (0 if start is None else start.entries)
    return mind, read_again(store, mind, start, lambda done: show(done, total))


def read_again(
    store: Store, mind: Mind, start: Snapshot | None, show: Callable[[int], None]
) -> int:
    """Let a mind read what the journal has left behind a place, as it was cut; how many words."""
    done = 0
    for words in store.replay(start):
        mind.read(words)
        done += len(words)
        show(done)
    return done


def _loaded(store: Store, fresh: Callable[[], Mind]) -> tuple[Mind, Snapshot | None]:
    """The newest state that was set aside and is whole, if there is one."""
    for _ in range(TRIES):
        for snapshot in store.snapshots():
            mind = fresh()
            try:
                mind.load(read_arrays(snapshot.path))
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
                return mind, snapshot
        else:
            break
    return fresh(), None
