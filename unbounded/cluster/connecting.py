"""From an address and a folder to the shards of a memory."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

from unbounded.cluster.engine import Address, Call, Engine, Here
from unbounded.cluster.on_ray import OnRay, connect
from unbounded.cluster.shard import KINDS, Shard
from unbounded.cluster.sharded import Sharded
from unbounded.cluster.sharded_keys import Way
from unbounded.errors import SettingError, Unavailable
from unbounded.store.layout import SHARDS as FOLDER

SHARDS = 2
"""Shards of a new memory, if nobody says how many."""


@final
class Shards:
    """The shards of a memory, for as long as somebody has it open."""

    def __init__(self, engine: Engine, width: int, way: Way) -> None:
        self.engine, self._width, self._way = engine, width, way
        self.count = engine.count
        self._discarded: list[str] = []

    def datastore(self) -> Sharded:
        """A new one, without entries."""
        self._drop()
        return Sharded(self.engine, self._width, self._way, self._discarded)

    def _drop(self) -> None:
        """Let shards let go of the datastores that nobody has any more."""
        gone, self._discarded[:] = list(self._discarded), []
        if gone:
            # One that is started again has none anyway.
            with suppress(Unavailable):
                self.engine.every(Call(Shard.drop, gone))

    def keep(self, states: Sequence[str]) -> None:
        """Let shards remove what they saved, but for these states and those in use."""
        self._drop()
        self.engine.every(Call(Shard.keep, states))

    def stats(self) -> list[dict[str, Any]]:
        """What each shard says of itself."""
        self._drop()
        return self.engine.every(Call(Shard.stats))

    def check(self) -> list[tuple[str, str]]:
        """Every checksum of what was saved; what is wrong, and what to do."""
        return [wrong for found in self.engine.every(Call(Shard.check)) for wrong in found]

    def close(self) -> None:
        """End them; what they saved stays."""
        self.engine.close()


def connected(
    folder: Path, address: str, about: Mapping[str, Any], way: Way, *, threads: int = 1
) -> Shards:
    """Start the shards of the memory in a folder; `about` is what they are of.

    That is memory, model, width, index, and how many shards there are. Refuses shards of others.
    """
    where, count = Address.parse(address), about["shards"]
    if about["index"] not in KINDS:
        raise SettingError(f"index {about['index']!r} cannot be sharded; use {' or '.join(KINDS)}")
    places = [
        (str(folder.absolute() / FOLDER / f"{shard:04}"), {**about, "shard": shard})
        for shard in range(count)
    ]
    engine: Engine
    if where.here:
        engine = Here([Shard(*place) for place in places])
    else:
        connect(where)
        engine = OnRay(places, threads=threads, patience=way.patience)
    shards = Shards(engine, about["width"], way)
    try:
        shards.stats()
    except BaseException:
        shards.close()
        raise
    return shards


@contextmanager
def scratch(
    address: str, index: str, width: int, *, threads: int = 1
) -> Iterator[Callable[[], Sharded]]:
    """Makes datastores on shards that are removed in the end, shards and all."""
    folder = Path(tempfile.mkdtemp(prefix="unbounded-"))
    count = Address.parse(address).shards or SHARDS
    about = {"memory": "", "model": "", "width": width, "index": index, "shards": count}
    try:
        shards = connected(folder, address, about, Way(), threads=threads)
        try:
            yield shards.datastore
        finally:
            shards.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
