"""Lines in which a regular expression is found, looked for by a process that can be stopped."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from select import select
from typing import Any, TypeVar

from unbounded.errors import SettingError

SECONDS = 10.0
"""What a batch of lines may take. `re` takes for ever over some patterns, such as `^(a+)+$`, and
nothing within a process stops it; a matcher of linear time would know other patterns than it."""

BATCH = 1 << 20
"""Characters that are looked through at once; milliseconds for most patterns."""

SHOWN = 100
"""Characters of a pattern that an error shows."""

_CHILD = """
import json, re, sys
try:
    search = re.compile(json.loads(sys.stdin.readline()), re.IGNORECASE).search
    print('""', flush=True)
except (re.error, OverflowError, RecursionError) as error:
    print(json.dumps(str(error) or "too deep"), flush=True)
for lines in sys.stdin:
    print([i for i, line in enumerate(json.loads(lines)) if search(line)], flush=True)
"""

Key = TypeVar("Key")


def matched(pattern: str, lines: Iterable[tuple[Key, str]]) -> Iterator[Key]:
    """The keys of those lines in which a pattern is found, whatever the case of letters."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        if wrong := _answer(child, pattern, pattern):
            raise SettingError(f"{_shown(pattern)} is not a regular expression ({wrong})")
        for batch in _batches(lines):
            found = _answer(child, pattern, [text for _, text in batch])
            yield from (batch[i][0] for i in found)
    finally:
        child.kill()
        # It waits for it too, and closes its pipes.
        child.communicate()


def _answer(child: subprocess.Popen[bytes], pattern: str, asked: object) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(asked).encode() + b"\n")
        child.stdin.flush()
        in_time, _, _ = select([child.stdout], [], [], SECONDS)
        if in_time:
            return json.loads(child.stdout.readline())
    except (BrokenPipeError, ValueError):
        pass
    raise SettingError(
        f"{_shown(pattern)} takes too long over some lines ({SECONDS:.0f} seconds and more), or "
        "too much memory; give one without repeats of repeats"
    )


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= SHOWN else f"{pattern[:SHOWN]}…")


def _batches(lines: Iterable[tuple[Key, str]]) -> Iterator[list[tuple[Key, str]]]:
    batch: list[tuple[Key, str]] = []
    length = 0
    for line in lines:
        batch.append(line)
        length += len(line[1])
        if length >= BATCH or len(batch) >= BATCH // 64:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch
