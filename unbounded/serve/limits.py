"""How much one request, one user and all together may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Numbers that keep one request from being everybody's trouble."""

    body: int = 32 << 20
    """Bytes of a request to read; of any other, `asking`."""

    held: int = 256 << 20
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
