"""Names of memories, for whoever keeps several in one folder and lets others choose the names."""

import re

from unbounded.errors import SettingError

PATTERN = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
"""Letters, digits, `-` and `_`, and single dots between them."""

LONGEST = 64

_NAME = re.compile(PATTERN.strip("^$"))


def checked_name(name: str) -> str:
    """The name, if it can only be that of a folder just below: never one above, hidden or nested.

    >>> checked_name("notes-2026.v2")
    'notes-2026.v2'
    """
    if len(name) > LONGEST or not _NAME.fullmatch(name):
        shown = name if len(name) <= LONGEST else name[:LONGEST] + "…"
        raise SettingError(
            f"{shown!r} is no name for a memory; use up to {LONGEST} letters, digits, '-', '_' and "
            "single '.' between them"
        )
    return name
