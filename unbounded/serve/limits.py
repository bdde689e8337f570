"""How much one request, one user and all together may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Numbers that keep one request from being everybody's trouble."""

    body: int = 32 << 20
    """Bytes of a request."""

    text: int = 16_000_000
    """Characters that are read at once."""

    ask: int = 100_000
    """Characters that are scored, or that come before a prediction."""

    memories: int = 256
    open: int = 64
    """Memories that are open at a time; who waited longest is closed for the next."""

    waiting: int = 64
    """Requests that wait for one memory; the next is told to come again (429)."""

    requests: int = 512
    """Requests under way in all."""

    sending: float = 60.0
    """Seconds in which a request must have come."""

    seconds: float = 60.0
    """What asking may take, waiting included; reading is as long as its text."""

    grace: float = 20.0
    """What is under way when the service stops may take so long; a read then ends at a block."""

    words: int = 256
    """Words that are written at once."""

    explained: int = 2048
    """Words of a prompt for which the likeliest others are named too."""
