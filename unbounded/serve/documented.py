"""What the OpenAPI page says of answers that are not the one hoped for."""

from typing import Any

from unbounded.serve.schemas import Error

WORDS = {
    400: "a request that is no proper JSON or names a wrong host",
    401: "no key, or one that is unknown",
    403: "the key is not for this",
    404: "there is no such thing",
    405: "not with this method",
    408: "it did not come to its end in time",
    409: "it is there already, or there is no room",
    413: "larger than the service takes",
    415: "not JSON",
    422: "a value that is not as it must be; the message says which",
    429: "too many wait already; Retry-After says when to come again",
    500: "something went wrong inside",
    503: "stopping, too slow, or a memory that cannot be used now",
}

EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
"""One server-sent event, its data a JSON object or `[DONE]`."""


def refusals(
    *more: int, named: bool = False, body: bool = False, streams: bool = False
) -> dict[int | str, dict[str, Any]]:
    """The answers of a route beside the good one."""
    extra = (408, 422) if body else (422,) if named else ()
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": Error, "description": WORDS[status]}
        for status in sorted({400, 401, 403, 405, 429, 500, 503, *extra, *more})
    }
    if streams:
        found[200] = {
            "description": "the answer; with `stream`, events of a JSON object each",
            "content": {"text/event-stream": {"schema": EVENT}},
        }
    return found
