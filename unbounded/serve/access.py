"""Who may do what: one question a route."""

from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Scope

from unbounded.serve.keys import Key
from unbounded.serve.refusals import Refused
from unbounded.serve.state import Service

_scheme = HTTPBearer(auto_error=False, description="A key of 'unbounded keys add'.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)]


def service_of(request: Request) -> Service:
    """The service that serves this request."""
    service: Service = request.app.state.service
    return service


def holder(request: Request, bearer: Bearer) -> Key:
    """Whose key the request carries; the guard has looked at it before the body was read."""
    key: Key = request.scope["key"]
    return key


Asked = Annotated[Service, Depends(service_of)]
Holder = Annotated[Key, Depends(holder)]


def require(key: Key, memory: str, right: str) -> None:
    """Refuse what the key is not for; whether there is such a memory is not told."""
    if not key.allows(memory, right):
        raise Refused(403, "not_allowed", f"this key may not {right} that memory")


def about(scope: Scope) -> dict[str, Any]:
    """What the log will say of this request; names and numbers only."""
    found: dict[str, Any] = scope.setdefault("about", {})
    return found
