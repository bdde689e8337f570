"""Bearer tokens: random, hashed at rest, for some memories, to read or to write."""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from unbounded.errors import SettingError, StoreError
from unbounded.files import write_atomically
from unbounded.memory import checked_name
from unbounded.serve.limits import Refused

FILE = ".keys.json"
"""In the folder of the memories, none of which can have this name."""

RIGHTS = ("read", "write")
EVERY = "*"
_PREFIX = "ub_"


@dataclass(frozen=True)
class Key:
    """Who may do what; the token itself is nowhere.

    A token is 256 random bits, so that one round of SHA-256 is as good as a slow hash.
    """

    id: str
    label: str
    digest: str
    memories: tuple[str, ...]
    right: str
    created: str

    def sees(self, memory: str) -> bool:
        """Whether the memory is in its scope."""
        return EVERY in self.memories or memory in self.memories

    def require(self, memory: str, right: str) -> None:
        """Refuse what it is not for; whether there is such a memory is not told."""
        if not self.sees(memory) or right not in ("read", self.right):
            raise Refused(403, "not_allowed", f"this key may not {right} that memory")


ANYBODY = Key("anybody", "keys are off", "", (EVERY,), "write", "")
"""Who asks where keys are off."""


@final
class Keys:
    """The keys of one folder of memories; follows the file when another process changes it.

    They are on as soon as there is a file, and stay on when the last key is removed: whoever takes
    a key away does not let everybody in. Where they are `required` they are on without a file too.
    """

    def __init__(self, root: Path, *, required: bool = False) -> None:
        self.path = root / FILE
        self._required = required
        self._seen: bytes | None = None
        self._keys: tuple[Key, ...] = ()

    @property
    def on(self) -> bool:
        """Whether a request needs one now."""
        return self._required or self.path.exists()

    def to_open(self) -> str:
        """What to do where they are on and none is left."""
        return f"nobody is served until you add one, or delete {self.path}"

    def all(self) -> tuple[Key, ...]:
        """Every key there is now."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        # Not by its time or number: two changes within a tick of the clock would be one.
        if data != self._seen:
            self._seen, self._keys = None, _parsed(self.path, data)
            self._seen = data
        return self._keys

    def add(self, label: str, memories: list[str], right: str) -> tuple[Key, str]:
        """Make a key; the token is told now and never again."""
        if right not in RIGHTS:
            raise SettingError(f"right {right!r} is unknown; use {' or '.join(RIGHTS)}")
        scope = tuple(dict.fromkeys(memories)) or (EVERY,)
        for name in scope:
            if name != EVERY:
                checked_name(name)
        token = _PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(secrets.token_hex(4), label, digest(token), scope, right, now)
        with self._locked():
            self._write((*self.all(), key))
        return key, token

    def remove(self, id: str) -> Key:
        """From now on its token opens nothing."""
        with self._locked():
            there = self.all()
            found = [key for key in there if key.id == id]
            if not found:
                raise SettingError(f"there is no key {id!r}; 'unbounded keys list' names them")
            self._write(tuple(key for key in there if key.id != id))
        return found[0]

    def bearer(self, authorization: str | None) -> Key:
        """The key whose token a request carries."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Refused(401, "no_key", "this needs a key: send 'Authorization: Bearer TOKEN'")
        asked = digest(token.strip())
        found: Key | None = None
        # All of them, in constant time each: how long it takes says nothing.
        for key in self.all():
            if hmac.compare_digest(key.digest, asked):
                found = key
        if found is None:
            raise Refused(401, "bad_key", "that key is unknown here, or was removed")
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else changes the keys meanwhile, in whatever process."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path.with_name(f"{FILE}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _write(self, keys: tuple[Key, ...]) -> None:
        text = json.dumps({"keys": [asdict(key) for key in keys]}, indent=1)
        with write_atomically(self.path) as aside:
            file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as out:
                out.write(text + "\n")


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _parsed(path: Path, data: bytes) -> tuple[Key, ...]:
    try:
        found = json.loads(data)["keys"]
        return tuple(Key(**{**key, "memories": tuple(key["memories"])}) for key in found)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}); make the keys anew") from None
