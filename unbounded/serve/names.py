"""Names that a request may give to things on disk."""

import unbounded.keep
from unbounded.errors import SettingError
from unbounded.serve.refusals import Refused


def checked_name(name: str) -> str:
    """The name, if it is one; whatever else it is never reaches the disk.

    >>> checked_name("my-notes.2026")
    'my-notes.2026'
    """
    try:
        return unbounded.keep.checked_name(name)
    except SettingError as error:
        # Not the error's own words: they say the name again, and a request's text goes nowhere.
        raise Refused(
            422,
            "bad_name",
            "that is no name for a memory; use up to 64 letters, digits, - and _, "
            "and single dots between them",
        ) from error
