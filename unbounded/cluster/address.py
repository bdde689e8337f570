"""Addresses of an engine: `ray://local`, or `ray://HOST:PORT` of a cluster that runs."""

import re
import socket
from dataclasses import dataclass

from unbounded.errors import SettingError, Unavailable

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
