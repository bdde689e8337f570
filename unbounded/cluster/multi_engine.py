"""The shards of several memories on one engine, numbered one after the other; to look at them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

from unbounded.cluster.connecting import described, opened
from unbounded.cluster.engine import Engine, Pending


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

    def begin(self, shard: int, method: str, *args: Any) -> Pending:
        """Of that memory's shard."""
        engine, number = self._places[shard]
        return engine.begin(number, method, *args)

    def revive(self, shard: int) -> None:
        """Of that memory's shard."""
        engine, number = self._places[shard]
        engine.revive(number)
