"""Disks that fail under a shard and a queue: what was acknowledged is there, and nothing twice."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.streams import about
from tests.conftest import Torture
from tests.memory.failing import FailingDisk
from tests.torture.places import open_queue, piece
from unbounded.cluster import Shard, queue, shard
from unbounded.cluster.queue import Queue
from unbounded.errors import StoreError


def live(place: str, folder: Path, disk: FailingDisk, done: list[int]) -> None:
    """Put entries there, ten at a time; `done` says how many were acknowledged."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (shard, queue):
            patch.setattr(module, "RealDisk", lambda: disk)
        patch.setattr(shard, "SNAPSHOT_ENTRIES", 25)
        one = opened(place, folder)
        try:
            for _ in range(12):
                # A failure does not end it: the next call finds what was not there before.
                with suppress(StoreError, OSError):
                    put(one, held(one))
                    done.append(held(one))
            if isinstance(one, Shard):
                with suppress(StoreError, OSError):
                    one.compact()
        finally:
            one.close()


def opened(place: str, folder: Path) -> Shard | Queue:
    if place == "shard":
        return Shard(str(folder), about(), patience=0.0)
    return open_queue(folder, FailingDisk(), shards=1)


def held(one: Shard | Queue) -> int:
    return one.held("letter") if isinstance(one, Shard) else one.held(0, "letter")


def put(one: Shard | Queue, first: int) -> None:
    some = [piece(first, 10, "letter", 1)]
    one.append(some) if isinstance(one, Shard) else one.put(some)


def words_of(one: Shard | Queue) -> list[str]:
    if isinstance(one, Shard):
        return [word for _, word in sorted(one.words("letter", 0, 999).items())]
    return [word for each in one.pieces(0) for word in each.words]


@pytest.mark.torture
@pytest.mark.parametrize("place", ["shard", "queue"])
@pytest.mark.parametrize("kind", ["open", "write", "sync", "replace"])
@pytest.mark.parametrize("lasting", [1, 1_000_000])
def test_whatever_call_fails_nothing_acknowledged_is_lost(
    tmp_path: Path, place: str, kind: str, lasting: int, torture: Torture
) -> None:
    live(place, tmp_path / "count", (counted := FailingDisk()), [])
    total = counted.counts[kind]
    points = torture.random.permutation(total)[: torture.cases(5, total)].tolist()
    code = errno.ENOSPC if kind == "write" else errno.EIO
    for at in points:
        folder, done = tmp_path / f"m{at}", list[int]()
        with suppress(StoreError, OSError):
            live(place, folder, FailingDisk(kind, at, code, lasting=lasting), done)
        one = opened(place, folder)
        words = words_of(one)
        assert len(words) == held(one) >= max(done, default=0), (kind, at)
        assert words == list(piece(0, len(words), "letter", 1).words), (kind, at)
        put(one, held(one))
        assert held(one) == len(words) + 10
        if isinstance(one, Shard):
            assert one.check() == []
        one.close()
    often = "once" if lasting == 1 else "from there on"
    torture.tell(f"{kind} fails ({os.strerror(code)}), {often}", place, len(points))
