"""Where shards live and how they are called; `Here` is this process, to test and to measure."""

import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from unbounded.cluster.shard import Shard
from unbounded.errors import SettingError, Unavailable

Pending = Callable[[], Any]
"""Gives the answer of a call that was begun, and waits for it; `Unavailable` if the shard died."""

PATIENCE = 60.0
"""Seconds for which a shard may be away before reading stops, or goes on without it."""

QUICK = ("search", "append", "held", "where", "words")
"""Calls that a shard must answer in that time. Others take as long as they take: a large shard
forgets, or is started again."""


class Engine(ABC):
    """Calls the methods of shards by name. Calls to one shard are carried out in their order."""

    count: int
    """How many shards there are."""

    @abstractmethod
    def share(self, array: Any) -> Any:
        """What to hand to several shards in the place of an array, so that it travels once."""

    @abstractmethod
    def begin(self, shard: int, method: str, *args: Any) -> Pending:
        """Begin a call, and do not wait."""

    @abstractmethod
    def revive(self, shard: int) -> None:
        """Make sure that a shard that was away is coming back; does not wait for it."""

    def gone(self) -> str | None:
        """Why the engine as a whole is away, if that is known."""
        return None

    def answers(self, shard: int) -> bool:
        """Whether a shard that was away answers now; does not wait for long."""
        try:
            self.revive(shard)
            self.begin(shard, "held", "")()
        except Unavailable:
            return False
        return True

    def close(self) -> None:  # noqa: B027 - most have nothing to do
        """Let go of the engine; the shards stay."""

    def every(self, method: str, *args: Any) -> list[Any]:
        """What all shards answer; stops at the first that is away."""
        begun = [self.begin(shard, method, *args) for shard in range(self.count)]
        return [pending() for pending in begun]


@final
class Here(Engine):
    """Shards in this process."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = list(shards)
        self.count = len(self.shards)

    def share(self, array: Any) -> Any:
        """The array."""
        return array

    def begin(self, shard: int, method: str, *args: Any) -> Pending:
        """Call at once."""
        answer = getattr(self.shards[shard], method)(*args)
        return lambda: answer

    def revive(self, shard: int) -> None:
        """Nothing: it is here or nobody is."""


_FORM = re.compile(r"ray://(?:(local)|([\w.\-]+):(\d{1,5}))(?:\?shards=(\d+))?")


@dataclass(frozen=True)
class Address:
    """A cluster, and how many shards a new memory on it is to have.

    >>> Address.parse("ray://10.0.0.7:6379?shards=4")
    Address(host='10.0.0.7', port=6379, shards=4)
    >>> Address.parse("ray://local").host is None
    True
    """

    host: str | None
    port: int
    shards: int | None

    @staticmethod
    def parse(text: str) -> "Address":
        """Read an address; refuses what is none."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise SettingError(
                f"{text!r} is no engine; write ray://local, or ray://HOST:PORT of a cluster, with "
                "?shards=N behind it to say how many shards a new memory is to have"
            )
        shards = None if match[4] is None else int(match[4])
        if shards is not None and not 1 <= shards <= 4096:
            raise SettingError(f"{shards} shards were asked for; give 1 to 4,096")
        return Address(match[2], int(match[3] or 0), shards)

    def __str__(self) -> str:
        return "ray://local" if self.host is None else f"ray://{self.host}:{self.port}"

    def check(self, patience: float = 5.0) -> None:
        """Refuse a cluster that does not answer, at once instead of after minutes."""
        if self.host is None:
            return
        try:
            socket.create_connection((self.host, self.port), patience).close()
        except OSError as error:
            raise Unavailable(
                f"no engine answers at {self} ({error.strerror or error}); start it there with "
                f"'ray start --head --port {self.port}', or give another address"
            ) from None
