"""From an address and a folder to the shards of a memory."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from unbounded.cluster.engine import Address, Engine, Here, Way
from unbounded.cluster.on_ray import OnRay, connect
from unbounded.cluster.shard import KINDS, Shard
from unbounded.cluster.sharded import Sharded
from unbounded.errors import SettingError
from unbounded.store.layout import SHARDS as FOLDER

SHARDS = 2
"""Shards of a new memory, if nobody says how many."""


def connected(
    folder: Path, address: str, about: Mapping[str, Any], way: Way, *, threads: int = 1
) -> Engine:
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
        engine = Here([Shard(*place) for place in places], way)
    else:
        connect(where)
        engine = OnRay(places, way, threads=threads)
    try:
        engine.stats()
    except BaseException:
        engine.close()
        raise
    return engine


@contextmanager
def scratch(
    address: str, index: str, width: int, *, threads: int = 1
) -> Iterator[Callable[[], Sharded]]:
    """Makes datastores on shards that are removed in the end, shards and all."""
    folder = Path(tempfile.mkdtemp(prefix="unbounded-"))
    count = Address.parse(address).shards or SHARDS
    about = {"memory": "", "model": "", "width": width, "index": index, "shards": count}
    try:
        with closing(connected(folder, address, about, Way(), threads=threads)) as engine:
            yield partial(Sharded, engine, width)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
