"""From disk to mind: the newest state that was set aside, then the rest of the journal."""

from collections.abc import Callable

from unbounded.keep.mind import Mind
from unbounded.store import Store
from unbounded.store.snapshot import read_arrays

Show = Callable[[int, int], None]
"""Told how many words were read again, and of how many."""


def restored(store: Store, fresh: Callable[[], Mind], show: Show) -> tuple[Mind, int]:
    """The mind that has read what the journal has left, and how many words of it were read again.

    Blocks are read again as they were cut, so it is, to the bit, the one that never stopped.
    """
    mind, start = fresh(), None
    for snapshot in store.snapshots():
        try:
            mind.load(read_arrays(snapshot.path))
            start = snapshot
            break
        except FileNotFoundError:
            # The writer has just removed it; there is a newer one that we do not need.
            continue
        except (OSError, ValueError, KeyError) as error:
            store.events.append(
                f"{snapshot.path} is damaged ({error}) and was not used; "
                "what it held is read again from the journal"
            )
            mind = fresh()
    total = store.ledger.entries - (0 if start is None else start.entries)
    done = 0
    for words in store.replay(start):
        mind.read(words)
        done += len(words)
        show(done, total)
    return mind, done
