"""What a request is told when it is not served: always a JSON body of one shape."""

from typing import Any

from unbounded.errors import CorpusError, SettingError, StoreError, UnboundedError

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}


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


def body(status: int, code: str, message: str) -> dict[str, Any]:
    """The body of every answer that is an error."""
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def from_library(error: Exception) -> Refused:
    """What the library refused, as an answer; its words name settings and folders, never texts."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, CorpusError | SettingError):
        return Refused(422, "bad_value", str(error))
    if isinstance(error, StoreError):
        return Refused(
            503, "memory_unavailable", "the memory cannot be used now; see the log", retry_after=5
        )
    return Refused(500, "internal", "something went wrong inside; the log says where")


BUSY = "too many requests wait already; come again"


def busy(seconds: int = 1) -> Refused:
    """There is a queue, and it is full."""
    return Refused(429, "busy", BUSY, retry_after=seconds)


def stopping() -> Refused:
    """The service is about to stop."""
    return Refused(503, "stopping", "the service is stopping; come again", retry_after=5)
