"""One shard: its part of the keys of a memory; knows neither the engine nor the other shards."""

import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final
from zlib import crc32

import numpy as np

from unbounded.datastore import Auto, Flat, Local
from unbounded.datastore.threads import set_search_threads
from unbounded.errors import EngineError, MemoryFault, Unavailable
from unbounded.states import NoDelta, from_array, to_array
from unbounded.store.disk import Disk, RealDisk, sealed, told, unsealed, write_file
from unbounded.store.layout import path_bytes, remove
from unbounded.store.snapshot import ROOM, Snapshot, read_arrays, read_manifest, write_snapshot
from unbounded.types import Hidden

FORMAT = 1

ABOUT = "shard.json"
"""What a shard's folder is of: format, memory, model, width, index, its number, how many there are.
Beside it there is a folder for each state that was saved."""

KINDS: dict[str, Callable[[int], Local]] = {"flat": Flat, "auto": Auto}

WHOLE, WHOLE_SHARE = 50_000, 16
"""A state is saved as what has come since the one before; whole after so many entries, or one in so
many of all, if that is more."""

_NAME = re.compile(r"[0-9a-f]{16}-\d+")


class Found(NamedTuple):
    """What a shard found, in no order, by its own numbers."""

    squared: np.ndarray
    entries: np.ndarray
    exact: bool
    """Whether distances are those of the keys, not of their codes."""


@dataclass
class _Held:
    """A datastore, a checksum of all its keys, and how it was last saved."""

    store: Local
    checksum: int = 0
    saved: str = ""
    entries: int = 0
    """Of the state that was last saved."""
    whole: int = 0
    """Of the one that was last saved whole."""


@final
class Shard:
    """Holds datastores by the ids that readers gave them, and saves their states durably.

    There are several when a memory forgets: the old one is asked until the new one is there. Calls
    say how many entries the datastore should have; if it has others, because this process was
    started again or a call was lost, they are refused as `Unavailable`: the reader loads what was
    last saved, and adds what came since. Which words follow the keys, readers know.
    """

    def __init__(self, folder: str, about: Mapping[str, Any], threads: int | None = None) -> None:
        self._folder, self._about = Path(folder), {"format": FORMAT, **about}
        self._held: dict[str, _Held] = {}
        self._disk: Disk = RealDisk()
        # Shards in the process of who asks leave its threads as they are.
        if threads is not None:
            set_search_threads(threads)

    def _new(self) -> Local:
        return KINDS[self._about["index"]](self._about["width"])

    def _of(self, name: str, entries: int) -> _Held:
        found = self._held.get(name)
        if found is None and entries == 0:
            found = self._held[name] = _Held(self._new())
        if found is None or len(found.store) != entries:
            held = "none" if found is None else f"{len(found.store):,}"
            raise Unavailable(f"it holds {held} of {entries:,} entries; they are told again")
        return found

    def add(self, name: str, entries: int, keys: Hidden) -> int:
        """Append keys behind so many; what all take in memory."""
        held = self._of(name, entries)
        held.store.add(keys, np.zeros(len(keys), np.int64))
        held.checksum = crc32(np.ascontiguousarray(keys).data, held.checksum)
        return held.store.bytes

    def size(self, name: str) -> int:
        """What a datastore takes in memory."""
        return self._held[name].store.bytes if name in self._held else 0

    def search(self, name: str, entries: int, queries: Hidden, k: int, within: int) -> Found:
        """The min(k, within) nearest of each query among the first so many entries."""
        store = self._of(name, entries).store
        later = entries - within
        squared, numbers = store.unordered(queries, k + later)
        if later:
            squared[numbers >= within] = np.inf
            nearest = np.lexsort((numbers, squared), axis=1)[:, : min(k, within)]
            squared, numbers = (np.take_along_axis(each, nearest, 1) for each in (squared, numbers))
        return Found(squared, numbers, not store.events)

    def save(self, name: str, entries: int, state: str) -> int:
        """Write a datastore under the name of a state; its checksum. Durable when it returns."""
        held = self._of(name, entries)
        self._check_folder()
        arrays: dict[str, np.ndarray] | None = None
        if held.saved and entries - held.whole < max(WHOLE, entries // WHOLE_SHARE):
            with suppress(NoDelta):
                arrays = held.store.state(held.entries)
                arrays["ids"] = np.zeros(entries - held.entries, np.int32)
        whole = arrays is None
        arrays = held.store.state() if arrays is None else arrays
        arrays["after"] = to_array([] if whole else [held.saved])
        about = Snapshot(self._path(state), 0, 0, 0, entries, entries, held.checksum)
        write_snapshot(self._disk, about, arrays)
        held.saved, held.entries = state, entries
        if whole:
            held.whole = entries
        self._follow(held)
        return held.checksum

    def load(self, name: str, state: str, checksum: int) -> int:
        """Have a datastore under that id as it was saved; without a state, an empty one.

        What it takes in memory.
        """
        held = _Held(self._new(), checksum, state)
        if state:
            self._check_folder()
            parts = [*self._parts(state)]
            held.store.load(parts[::-1])
            held.entries = len(held.store)
            held.whole = held.entries - sum(len(each["ids"]) for each in parts[:-1])
            if read_manifest(self._path(state))[0].checksum != checksum:
                raise EngineError(f"{self._path(state)} was saved by another memory")
            self._follow(held)
        self._held[name] = held
        return held.store.bytes

    def _parts(self, state: str) -> Iterable[dict[str, np.ndarray]]:
        """A state and those that it leads on from, the whole one last."""
        while state:
            try:
                arrays = read_arrays(self._path(state))
            except (OSError, ValueError, KeyError) as error:
                raise EngineError(
                    f"{self._path(state)} is lost or damaged ({error}); open the memory again: it "
                    "is read again from the journal"
                ) from None
            state = "".join(from_array(arrays.pop("after")))
            yield arrays

    def _follow(self, held: _Held) -> None:
        """From here on the datastore can tell what has come since."""
        with suppress(NoDelta):
            held.store.state(held.entries)

    def _path(self, state: str) -> Path:
        if not _NAME.fullmatch(state):
            raise MemoryFault(f"{state!r} is no name of a saved state")
        return self._folder / state

    def drop(self, names: Sequence[str]) -> None:
        """Let go of datastores; what was saved of them stays."""
        for name in names:
            self._held.pop(name, None)

    def keep(self, states: Sequence[str]) -> None:
        """Remove all saved states but these, those in use, and those that they lead on from."""
        kept: set[str] = set()
        for state in {*states, *(held.saved for held in self._held.values())} - {""}:
            while state and state not in kept:
                kept.add(state)
                with suppress(OSError, ValueError, KeyError):
                    state = "".join(from_array(read_arrays(self._path(state), ["after"])["after"]))
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if path.name not in kept and path.name != ABOUT:
                remove(path)

    def check(self) -> list[tuple[str, str]]:
        """Read every checksum of what was saved and is in use; what is wrong, and what to do."""
        wrong = []
        for held in self._held.values():
            try:
                _ = [*self._parts(held.saved)]
            except EngineError as error:
                what, _, advice = str(error).partition("; ")
                wrong.append((what, advice))
        return wrong

    def stats(self) -> dict[str, Any]:
        """Entries and bytes of the largest datastore, and where it lies."""
        self._check_folder()
        largest = max((held.store for held in self._held.values()), key=len, default=None)
        return {
            "entries": 0 if largest is None else len(largest),
            "bytes": path_bytes(self._folder),
            "bytes_in_memory": sum(held.store.bytes for held in self._held.values()),
            "process": os.getpid(),
            "host": socket.gethostname(),
            "folder": str(self._folder),
            "events": [] if largest is None else [*map(str, largest.events)],
        }

    def _check_folder(self) -> None:
        """Refuse a folder of something else; make it if there is none."""
        path = self._folder / ABOUT
        try:
            found = unsealed(path.read_bytes())
        except FileNotFoundError:
            with told(f"{path} could not be written", ROOM):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_file(self._disk, path, sealed(self._about))
            return
        except (OSError, ValueError) as error:
            raise EngineError(f"{path} is damaged ({error}); {_ANEW}") from None
        for what, needed in self._about.items():
            if found.get(what) != needed:
                raise EngineError(
                    f"{self._folder} is a shard of another {what} ({found.get(what)}, not "
                    f"{needed}); {_ANEW}"
                )


_ANEW = "remove that folder: it is made again from the journal"
