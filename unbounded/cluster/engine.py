"""Where shards live and how they are called; `Here` is this process, to try and to test."""

import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, final

from unbounded.cluster.shard import Shard
from unbounded.errors import SettingError, Unavailable, UnboundedError

P = ParamSpec("P")
T = TypeVar("T")

Pending = Callable[[], T]
"""Gives the answer of a call that was begun, and waits for it; `Unavailable` if the shard died."""

PATIENCE = 60.0
"""Seconds for which a shard may be unavailable before reading stops, or goes on without it."""

LIMIT = 1 << 30
"""Bytes of keys that may wait here for shards that are unavailable."""

_QUICK = ("search", "add", "size", "drop")


@final
class Call(Generic[T]):
    """A method of a shard and what to give it: can be sent, and sent again.

    >>> Call(Shard.drop, ["an id"]).name
    'drop'
    """

    def __init__(
        self, method: Callable[Concatenate[Shard, P], T], *args: P.args, **named: P.kwargs
    ) -> None:
        self.name: str = method.__name__
        self.args: tuple[Any, ...] = args
        assert not named, "what is given goes by its place"

    @property
    def quick(self) -> bool:
        """Whether a shard must answer in the time that it may be unavailable.

        Others take as long as they take: a large shard saves, or loads.
        """
        return self.name in _QUICK

    def on(self, shard: Shard) -> T:
        """What a shard of this process answers."""
        answer: T = getattr(shard, self.name)(*self.args)
        return answer


@dataclass(frozen=True)
class Way:
    """What to do when a shard is unavailable."""

    patience: float = PATIENCE
    """Seconds to wait for it."""
    goes_on: bool = False
    """Whether to go on without it then, instead of to stop."""
    limit: int = LIMIT
    """Bytes that may wait for it."""
    say: Callable[[str], None] = lambda line: None


class Engine(ABC):
    """Carries calls to the shards of one memory. Those to one shard are carried out in order."""

    def __init__(self, count: int, way: Way = Way()) -> None:
        self.count, self.way = count, way
        self.discarded: list[str] = []
        """Ids of datastores that nobody has any more."""

    @abstractmethod
    def share(self, array: Any) -> Any:
        """What to hand to several shards in the place of an array, so that it travels once."""

    @abstractmethod
    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Begin a call, and do not wait."""

    @abstractmethod
    def answers(self, shard: int) -> bool:
        """Whether a shard that was unavailable is there now; does not wait for long."""

    @abstractmethod
    def close(self) -> None:
        """End the shards; what they saved stays."""

    @final
    def every(self, call: Call[T]) -> list[T]:
        """What all shards answer; stops at the first that is unavailable."""
        begun = [self.begin(shard, call) for shard in range(self.count)]
        return [pending() for pending in begun]

    @final
    def drop_discarded(self) -> None:
        """Let shards let go of the datastores that nobody has any more."""
        gone, self.discarded[:] = list(self.discarded), []
        if gone:
            # One that is started again has none anyway.
            with suppress(Unavailable):
                self.every(Call(Shard.drop, gone))

    @final
    def keep(self, states: Sequence[str]) -> None:
        """Let shards remove what they saved, but for these states and those in use."""
        self.drop_discarded()
        self.every(Call(Shard.keep, states))

    @final
    def stats(self) -> list[dict[str, Any]]:
        """What each shard says of itself."""
        self.drop_discarded()
        return self.every(Call(Shard.stats))

    @final
    def check(self) -> list[tuple[str, str]]:
        """Every checksum of what was saved; what is wrong, and what to do."""
        return [wrong for found in self.every(Call(Shard.check)) for wrong in found]


def failing(error: UnboundedError) -> Pending[Any]:
    """A call that failed, or could not be begun."""

    def fail() -> Any:
        raise error

    return fail


@final
class Here(Engine):
    """Shards in this process."""

    def __init__(self, shards: Sequence[Shard], way: Way = Way()) -> None:
        super().__init__(len(shards), way)
        self.shards = list(shards)

    def share(self, array: Any) -> Any:
        """The array."""
        return array

    def begin(self, shard: int, call: Call[T]) -> Pending[T]:
        """Call at once."""
        try:
            answer = call.on(self.shards[shard])
        except UnboundedError as error:
            return failing(error)
        return lambda: answer

    def answers(self, shard: int) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Nothing."""


_FORM = re.compile(r"(?:(here|ray)://local|ray://([\w.\-]+):(\d{1,5}))(?:\?shards=(\d+))?")


@dataclass(frozen=True)
class Address:
    """A cluster, and how many shards a new memory on it is to have.

    >>> Address.parse("ray://10.0.0.7:6379?shards=4")
    Address(host='10.0.0.7', port=6379, shards=4, here=False)
    >>> Address.parse("ray://local").host is None, Address.parse("here://local?shards=2").here
    (True, True)
    """

    host: str | None
    port: int
    shards: int | None
    here: bool = False

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
        return Address(match[2], int(match[3] or 0), shards, match[1] == "here")

    def __str__(self) -> str:
        if self.host is not None:
            return f"ray://{self.host}:{self.port}"
        return "here://local" if self.here else "ray://local"

    @property
    def loopback(self) -> bool:
        """Whether nobody else can reach it."""
        return self.host in (None, "localhost") or str(self.host).startswith("127.")

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
