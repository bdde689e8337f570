"""What a request is told when it is not served: always a JSON body of one shape."""

from typing import Any

from unbounded.errors import CorpusError, EngineError, SettingError, StoreError, UnboundedError

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
    422: (
        "invalid_request_error",
        "a value that is not as it must be; the message says which",
    ),
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
        return {
            "error": {"message": str(self), "type": kind, "param": None, "code": self.code},
        }


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
