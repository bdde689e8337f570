"""The states that were set aside: snapshots, and the steps that lead on from them."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import final

import numpy as np

from unbounded.errors import StoreError
from unbounded.store.deltas import Delta, Deltas, read_steps
from unbounded.store.disk import Disk
from unbounded.store.layout import (
    remove,
    snapshot_path,
    snapshot_paths,
    steps_path,
    steps_paths,
)
from unbounded.store.snapshot import Background, Snapshot, read_manifest, write_snapshot

KEPT = 2
"""Snapshots that are kept: should the newest be damaged, little has to be read again."""


class History(ABC):
    """The journal, as far as what is set aside has to know it."""

    writes: bool

    @abstractmethod
    def marker(self) -> Snapshot:
        """Where it stands."""

    @abstractmethod
    def catch_up(self) -> None:
        """Know at least as much as what has been set aside so far."""

    @abstractmethod
    def known(self, snapshot: Snapshot) -> bool:
        """Whether a state was set aside at a place of this journal."""

    @abstractmethod
    def valid(self, snapshot: Snapshot) -> bool:
        """Whether that is so, and nothing that it has seen was forgotten since."""


@final
class Checkpoints:
    """Writes states aside and finds those from which the present one can be reached.

    `history` says where it stands, and which states were set aside at a place of it.
    """

    def __init__(
        self,
        disk: Disk,
        folder: Path,
        history: History,
        events: list[str],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._history = history
        self._events = events
        self._background: Background | None = None
        # Where the next step goes: file, place in it, and the records of the state before it.
        self._next: tuple[Path, int, int] | None = None
        self._steps: Deltas | None = None

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

    def steps_from(self, snapshot: Snapshot) -> list[Delta]:
        """The steps that lead on from a snapshot, one after another, as far as they are valid."""
        found: list[Delta] = []
        records = snapshot.records
        for path in steps_paths(self._folder, snapshot.generation):
            for step in read_steps(path):
                if not self._history.known(step.to):
                    # A reader may be a step behind.
                    if self._history.writes:
                        self._say_foreign(path)
                elif step.before == records and self._history.valid(step.to):
                    found.append(step)
                    records = step.to.records
        return found

    # Writing.

    def go_on_from(self, snapshot: Snapshot | None, step: Delta | None) -> None:
        """The next step leads on from this one, or from this snapshot; from None none can."""
        self._close_steps()
        if step is not None:
            self._next = step.path, step.end, step.to.records
        elif snapshot is not None:
            path = steps_path(self._folder, snapshot.generation, snapshot.records)
            self._next = path, 0, snapshot.records
        else:
            self._next = None

    @property
    def leads_on(self) -> bool:
        """Whether there is a state for the next step to lead on from."""
        return self._next is not None

    def step(self, growth: Mapping[str, np.ndarray], rest: dict[str, np.ndarray]) -> None:
        """Set aside what has come since the last step; on disk when it returns."""
        assert self._next is not None
        here, (path, end, records) = self._history.marker(), self._next
        try:
            if self._steps is None:
                self._steps = Deltas(self._disk, path, end, records)
            self._steps.append(replace(here, path=path), growth, rest)
        except (StoreError, OSError) as error:
            # What comes later has nothing to lead on from, until there is a snapshot.
            self.go_on_from(None, None)
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{path} could not be written ({error.strerror}); the journal has everything: "
                "make room there and go on"
            ) from error

    def snapshot(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set a state aside, the one after all records so far; older ones are then removed."""
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
        for path in steps_paths(self._folder, generation):
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
        for path in steps_paths(self._folder, self._history.marker().generation):
            good = [step.end for step in read_steps(path) if self._history.valid(step.to)]
            with suppress(OSError):
                if good:
                    os.truncate(path, max(good))
                else:
                    remove(path)

    def close(self) -> None:
        """Let go of everything."""
        self.stop()
        self._close_steps()

    def _close_steps(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None
