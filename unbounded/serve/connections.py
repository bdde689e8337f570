"""Connections that must say what they want, and take what they get, in time."""

import resource
from typing import Any, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unbounded.serve.guard import Guard

LEAST = 16 << 10
"""Bytes of an answer that must be taken in `Limits.taking` seconds."""


@final
class Connection(H11Protocol):
    """One connection, looked at from time to time: idle, half a request, or an answer nobody takes.

    The server itself bounds only the time between two requests. Of a request that was answered
    before its end the rest is thrown away for as long as a connection may be idle: to close at once
    would take the answer from whoever is still sending.
    """

    def connection_made(self, transport: Any) -> None:
        """Come in; if the house is full, in the place of whoever has been idle for longest."""
        super().connection_made(transport)
        assert isinstance(self.app, Guard)
        self._limits = self.app.service.limits
        self._since = self._moved = self.loop.time()
        self._left = 0
        if len(self.connections) > most_connections(self._limits.connections):
            idle = [one for one in self.connections if isinstance(one, Connection) and one.idle]
            oldest = min(idle, key=lambda one: one._since)
            oldest.transport.abort()
            # Now, and not when it has heard of it: the next may come before that.
            self.connections.discard(oldest)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave."""
        self._next.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From now on the next request is waited for."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def idle(self) -> bool:
        """Whether no request is being served."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        now, left = self.loop.time(), self.transport.get_write_buffer_size()
        # While it may be written to, what is left says nothing of what was taken.
        stands = left and (self.idle or self.flow.write_paused)
        if not stands or not 0 <= self._left - left < LEAST:
            self._moved, self._left = now, left
        limits = self._limits
        if now - self._moved > limits.taking:
            self.transport.abort()
        elif self.idle and not left and now - self._since > limits.idle:
            self.transport.close()
        self._next = self.loop.call_later(min(limits.idle, limits.taking) / 4, self._look)


def most_connections(wanted: int) -> int:
    """As many as wanted, and never more than half of the descriptors that the process may have."""
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def configured(app: Guard) -> uvicorn.Config:
    """How the server is to run: no forwarded headers, no web sockets, no banner."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        interface="asgi3",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(app.service.limits.grace),
        h11_max_incomplete_event_size=64 << 10,
    )
