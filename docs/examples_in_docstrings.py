"""Examples in docstrings are shown as code on the pages of modules."""

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)


class Fences(Extension):
    """Puts a fence around each example: Markdown would take it for a paragraph."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Once for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub("```pycon\n\\g<0>\n```", obj.docstring.value)
