"""How much a request may ask for, and what it is told when it is not served: always a JSON body of
one shape."""

from dataclasses import dataclass
from typing import Any

from unbounded.errors import CorpusError, EngineError, SettingError, StoreError, UnboundedError


@dataclass(frozen=True)
class Limits:
    """Numbers that keep one request from being everybody's trouble."""

    body: int = 32 << 20
    """Bytes of a request to read; of any other, `asking`."""

    in_flight: int = 256 << 20
    """Bytes of requests and answers that are under way together."""

    text: int = 16_000_000
    """Characters that are read at once."""

    line: int = 1_000_000
    """Characters of a line that is read: it is split into words in one go."""

    ask: int = 100_000
    """Characters or tokens that are scored, or that come before a prediction."""

    documents: int = 1000
    """Documents in one answer."""

    days: int = 1000
    """Days in one answer."""

    memories: int = 256
    open: int = 64
    """Memories that are open at a time; who waited longest is closed for the next."""

    waiting: int = 64
    """Requests that wait for one memory; the next is told to come again (429)."""

    requests: int = 512
    """Requests under way in all."""

    connections: int = 512
    """Connections in all; whoever has asked for nothing for longest is closed for the next."""

    idle: float = 10.0
    """Seconds that a connection may be open without having sent the head of a request."""

    sending: float = 60.0
    """Seconds in which a request must have come."""

    taking: float = 20.0
    """Seconds in which some of an answer must have been taken, or the connection ends."""

    events: int = 256
    """Events of an answer that wait to be taken."""

    seconds: float = 60.0
    """What asking may take, waiting included; reading is as long as its text."""

    grace: float = 20.0
    """What is under way when the service stops may take so long; a read then ends at a block."""

    words: int = 256
    """Words that are written at once."""

    explained: int = 2048
    """Words of a prompt for which the likeliest others are named too."""

    @property
    def asking(self) -> int:
        """Bytes of a request that asks: no character needs more than twelve, as two escapes."""
        return 12 * self.ask + (64 << 10)


STATUSES = {
    400: ("invalid_request_error", "a request that is no proper JSON or names a wrong host"),
    401: ("authentication_error", "no key, or one that is unknown"),
    403: ("permission_error", "the key is not for this"),
    404: ("not_found_error", "there is no such thing"),
    405: ("invalid_request_error", "not with this method"),
    408: ("invalid_request_error", "it did not come to its end in time"),
    409: ("conflict_error", "it is there already, or there is no room"),
    413: ("invalid_request_error", "larger than the service takes"),
    415: ("invalid_request_error", "not JSON"),
    422: ("invalid_request_error", "a value that is not as it must be; the message says which"),
    429: ("rate_limit_error", "too many wait already; Retry-After says when to come again"),
    500: ("server_error", "something went wrong inside"),
    503: ("unavailable_error", "stopping, too slow, or a memory that cannot be used now"),
}
"""Each status: the type in its body, and what the OpenAPI page says of it."""


class Refused(UnboundedError):
    """A request that is not served: the HTTP status, a word for programs, a line for people."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says beside its body."""
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        # Whoever was too slow for one request is not waited for again.
        found |= {"Connection": "close"} if self.status == 408 else {}
        return found | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})

    @property
    def body(self) -> dict[str, Any]:
        """The body of every answer that is an error."""
        other = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = STATUSES.get(self.status, (other,))[0]
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


def from_library(error: Exception) -> Refused:
    """What the library refused, as an answer; its words name settings and folders, never texts."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, CorpusError | SettingError):
        return Refused(422, "bad_value", str(error))
    if isinstance(error, StoreError | EngineError):
        return Refused(
            503, "memory_unavailable", "the memory cannot be used now; see the log", retry_after=5
        )
    return Refused(500, "internal", "something went wrong inside; the log says where")


def check_length(what: str, length: int, limit: int) -> None:
    """Refuse what is too long."""
    if length > limit:
        said = f"{what} of {length:,} characters or tokens; at most {limit:,} are taken here"
        raise Refused(413, "too_long", said)


def busy(seconds: int = 1) -> Refused:
    """There is a queue, and it is full."""
    return Refused(429, "busy", "too many requests wait already; come again", retry_after=seconds)


def stopping() -> Refused:
    """The service is about to stop."""
    return Refused(503, "stopping", "the service is stopping; come again", retry_after=5)


def too_slow(seconds: float) -> Refused:
    """It was not done in time."""
    return Refused(
        503, "too_slow", f"it was not done within {seconds:g} s; ask for less", retry_after=5
    )


def too_large(limit: int) -> Refused:
    """More bytes than a request may have."""
    return Refused(413, "too_large", f"the request is larger than {limit:,} bytes; send less")
