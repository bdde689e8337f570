"""Names that a request may give to things on disk."""

import re

from unbounded.serve.refusals import Refused

PATTERN = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$"
"""Letters, digits, `-`, `_`, `.`; not first a dot; at most 64."""

_NAME = re.compile(PATTERN.strip("^$"), re.ASCII)


def checked_name(name: str) -> str:
    """The name, if it is one; whatever else it is never reaches the disk.

    >>> checked_name("my-notes.2026")
    'my-notes.2026'
    """
    if not _NAME.fullmatch(name):
        raise Refused(
            422,
            "bad_name",
            "that is no name for a memory; use up to 64 letters, digits, - _ and ., "
            "not first a dot",
        )
    return name
