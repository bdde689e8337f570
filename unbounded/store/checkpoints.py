"""Checkpoints of a state: full ones (snapshots), and the deltas that lead on from them."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.deltas import Delta, Deltas, read_deltas
from unbounded.store.disk import told
from unbounded.store.layout import (
    delta_path,
    delta_paths,
    remove,
    snapshot_path,
    snapshot_paths,
)
from unbounded.store.snapshot import ROOM, Background, Snapshot, read_manifest, write_snapshot

if TYPE_CHECKING:
    from unbounded.store.store import Store

KEPT = 2
"""Snapshots that are kept: should the newest be damaged, little has to be read again."""


@final
class Checkpoints:
    """Writes checkpoints and finds those from which the present state can be reached.

    `history`, the journal, says where it stands, and which checkpoints were written at a place of
    it.
    """

    def __init__(self, history: "Store") -> None:
        self._history = history
        self._disk, self._folder, self._events = history.disk, history.folder, history.events
        self._background: Background | None = None
        # Where the next delta goes: file, place in it, and the records of the state before it.
        self._next: tuple[Path, int, int] | None = None
        # Entries of that state.
        self._covered = 0
        self._deltas: Deltas | None = None

    # Finding.

    def snapshots(self) -> list[Snapshot]:
        """Those from which the present state can be reached, newest first."""
        found = self._manifests()
        self._history.catch_up()
        for snapshot in found:
            if not self._history.known(snapshot):
                self._say_foreign(snapshot.path)
        return [snapshot for snapshot in found if self._history.valid(snapshot)]

    def _say_foreign(self, path: Path) -> None:
        said = f"{path} is of another history than the journal and was not used"
        if said not in self._events:
            self._events.append(said)

    def _manifests(self) -> list[Snapshot]:
        found: list[Snapshot] = []
        for path in snapshot_paths(self._folder, self._history.marker().generation):
            try:
                found.append(read_manifest(path)[0])
            except (OSError, ValueError, KeyError, TypeError) as error:
                if path.exists():
                    self._events.append(f"{path} is damaged ({error}) and was not used")
        return found

    def deltas_from(self, snapshot: Snapshot) -> list[Delta]:
        """The deltas that lead on from a snapshot, one after another, as far as they are valid."""
        found: list[Delta] = []
        records = snapshot.records
        for path in delta_paths(self._folder, snapshot.generation):
            for delta in read_deltas(path):
                if not self._history.known(delta.to):
                    # A reader may be a delta behind.
                    if self._history.writes:
                        self._say_foreign(path)
                elif delta.before == records and self._history.valid(delta.to):
                    found.append(delta)
                    records = delta.to.records
        return found

    # Writing.

    def go_on_from(self, snapshot: Snapshot | None, delta: Delta | None) -> None:
        """The next delta leads on from this one, or from this snapshot; from None none can."""
        self._close_deltas()
        if delta is not None:
            self._next = delta.path, delta.end, delta.to.records
            self._covered = delta.to.entries
        elif snapshot is not None:
            path = delta_path(self._folder, snapshot.generation, snapshot.records)
            self._next = path, 0, snapshot.records
            self._covered = snapshot.entries
        else:
            self._next = None

    @property
    def covered(self) -> int | None:
        """Entries of the state that the next delta leads on from; None if there is none."""
        return None if self._next is None else self._covered

    def append(self, growth: Mapping[str, np.ndarray], rest: dict[str, np.ndarray]) -> None:
        """Write what has come since the last checkpoint; on disk when it returns."""
        assert self._next is not None
        here, (path, end, records) = self._history.marker(), self._next
        try:
            with told(f"{path} could not be written", ROOM):
                if self._deltas is None:
                    self._deltas = Deltas(self._disk, path, end, records)
                self._deltas.append(replace(here, path=path), growth, rest)
                self._covered = here.entries
        except StoreError:
            # What comes later has nothing to lead on from, until there is a snapshot.
            self.go_on_from(None, None)
            raise

    def snapshot(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a full checkpoint, of the state after all records so far; older ones go."""
        self.stop()
        self.go_on_from(None, None)
        about = self._described()
        write_snapshot(self._disk, about, arrays)
        self.go_on_from(about, None)
        self._remove_old()

    def begin(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The same beside whatever else is done; `reap` tells what became of it."""
        self.stop()
        about = self._described()
        self._background = Background(self._disk, about, arrays, self._remove_old)
        # Steps lead from one to the next whether it will be there or not.
        self.go_on_from(about, None)

    def _described(self) -> Snapshot:
        here = self._history.marker()
        return replace(here, path=snapshot_path(self._folder, here.generation, here.records))

    def _remove_old(self) -> None:
        generation = self._history.marker().generation
        good = [snapshot.path for snapshot in self._manifests() if self._history.valid(snapshot)][
            :KEPT
        ]
        for path in snapshot_paths(self._folder, generation):
            if path not in good:
                remove(path)
        oldest = good[-1].name.removeprefix("snapshot") if good else ""
        for path in delta_paths(self._folder, generation):
            if path.stem.removeprefix("steps") < oldest:
                remove(path)

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written."""
        return self._background is not None and self._background.running

    def reap(self, *, wait: bool = False) -> None:
        """Say so if the last snapshot could not be written."""
        if self._background is None or (self._background.running and not wait):
            return
        self._background.wait()
        if self._background.error is not None:
            self._events.append(self._background.error)
        self._background = None

    def stop(self) -> None:
        """Let nothing be written any more that was begun."""
        if self._background is not None:
            self._background.stop()
            self.reap()

    def forget(self) -> None:
        """Remove the states that know something that is forgotten now."""
        self.stop()
        self.go_on_from(None, None)
        for snapshot in self._manifests():
            if not self._history.valid(snapshot):
                remove(snapshot.path)
        for path in delta_paths(self._folder, self._history.marker().generation):
            good = [delta.end for delta in read_deltas(path) if self._history.valid(delta.to)]
            with suppress(OSError):
                if good:
                    os.truncate(path, max(good))
                else:
                    remove(path)

    def close(self) -> None:
        """Let go of everything."""
        self.stop()
        self._close_deltas()

    def _close_deltas(self) -> None:
        if self._deltas is not None:
            self._deltas.close()
            self._deltas = None
