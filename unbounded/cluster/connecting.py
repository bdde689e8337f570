"""From an address and a folder to a memory on shards."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, final

from unbounded.cluster.engine import PATIENCE, Address, Call, Engine, Pending, T
from unbounded.cluster.on_ray import OnRay, connect
from unbounded.cluster.shard import KINDS, Shard
from unbounded.cluster.sharded import Sharded
from unbounded.cluster.subprocess_proxy import SubprocessProxy
from unbounded.corpus import Vocabulary
from unbounded.errors import EngineError, SettingError, StoreError, Unavailable
from unbounded.store.disk import RealDisk, sealed, unsealed, write_file
from unbounded.store.layout import NAME as ONE_PLACE

NAME = "spread.json"
"""What makes a folder that of a memory on shards: how many, of which model, which settings."""

SHARDS = 2
"""Shards of a new memory, if nobody says how many."""


def described(folder: Path) -> dict[str, Any] | None:
    """What the memory on shards in a folder is; None if there is none."""
    path = folder / NAME
    if not path.exists():
        if (folder / ONE_PLACE).exists():
            raise StoreError(
                f"{folder} is a memory in one place; leave --engine out, or move it: "
                f"'unbounded memory move {folder} NEW --engine …'"
            )
        return None
    try:
        return unsealed(path.read_bytes())
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); restore it from a copy") from None


def opened(
    folder: Path,
    address: str,
    about: Mapping[str, Any],
    *,
    threads: int = 1,
    patience: float = PATIENCE,
) -> Engine:
    """The shards of a memory, started if they are not there; made if there is none.

    `about` is what a shard must be: width, index, exact, model.
    """
    where = Address.parse(address)
    if about["index"] not in KINDS:
        raise SettingError(f"index {about['index']!r} cannot be sharded; use {' or '.join(KINDS)}")
    had = described(folder)
    if had is None:
        had = {"shards": where.shards or SHARDS, **about}
    elif where.shards not in (None, had["shards"]):
        raise SettingError(
            f"{folder} has {had['shards']} shards, not {where.shards}; leave ?shards= out, or "
            "move it: 'unbounded memory move'"
        )
    connect(where)
    count = had["shards"]
    settled = {**about, "shards": count}
    check = partial(where.check, 1.0)
    engine = OnRay(folder, settled, count, threads=threads, patience=patience, check=check)
    for shard, stats in enumerate(engine.every(Call(Shard.stats))):
        for name in ("model", "width", "index", "exact"):
            if stats[name] != about[name]:
                raise EngineError(
                    f"shard {shard} of {folder} at {where} is of another {name} "
                    f"({stats[name]}, not {about[name]}); give the folder of another memory"
                )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / NAME).exists():
        write_file(RealDisk(), folder / NAME, sealed(had))
    return engine


def apart(
    folder: Path, address: str, about: Mapping[str, Any], *, threads: int, patience: float
) -> Engine:
    """The shards of a memory through a process of its own, now or when the engine is there."""
    where = Address.parse(address)
    if where.host is None:
        raise SettingError(
            "ray://local ends with this process and cannot be unavailable; leave it to stop"
        )
    had = described(folder)
    count = where.shards or SHARDS if had is None else had["shards"]
    if had is None:
        # A new memory is made on its engine, or not at all.
        where.check()
    join = partial(opened, folder, address, dict(about), threads=threads, patience=patience)
    bridge = SubprocessProxy(join, count, partial(where.check, 1.0), patience)
    if had is None and (why := bridge.gone()) is not None:
        raise Unavailable(why)
    return bridge


@contextmanager
def scratch(
    address: str, index: str, width: int, *, threads: int = 1
) -> Iterator[Callable[[Vocabulary], Sharded]]:
    """Makes memories on shards that are removed in the end, shards and all."""
    engines: list[Engine] = []
    folder = Path(tempfile.mkdtemp(prefix="unbounded-"))

    def make(vocabulary: Vocabulary) -> Sharded:
        about = {"width": width, "index": index, "exact": None, "model": "scratch"}
        engine = opened(folder / str(len(engines)), address, about, threads=threads)
        engines.append(engine)
        return Sharded(engine, vocabulary, width)

    try:
        yield make
    finally:
        for engine in engines:
            with suppress(EngineError):
                engine.every(Call(Shard.remove))
            if isinstance(engine, OnRay):
                engine.kill()
        shutil.rmtree(folder, ignore_errors=True)


def opened_all(folders: Sequence[Path], address: str) -> Engine:
    """The shards of all these memories."""
    engines = []
    for folder in folders:
        had = described(folder)
        assert had is not None
        engines.append(opened(folder, address, {k: had[k] for k in had if k != "shards"}))
    return MultiEngine(engines)


@final
class MultiEngine(Engine):
    """Calls go to the memory that has the shard of that number."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._places = [(one, shard) for one in engines for shard in range(one.count)]
        self.count = len(self._places)

    def share(self, array: Any) -> Any:
        """The array: nothing is asked of several memories at once."""
        return array

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Of that memory's shard."""
        engine, number = self._places[shard]
        return engine.begin(number, call)

    def revive(self, shard: int) -> None:
        """Of that memory's shard."""
        engine, number = self._places[shard]
        engine.revive(number)

    def gone(self) -> str | None:
        """Not known here."""
        return None

    def answers(self, shard: int) -> bool:
        """Of that memory's shard."""
        engine, number = self._places[shard]
        return engine.answers(number)

    def close(self) -> None:
        """Nothing: the process stays joined."""
