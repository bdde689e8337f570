"""Writes the golden memory of the present format; run once for each released format, never again.

python -m tests.memory.golden.make FOLDER
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.memory.texts import open_toy, some_text, store_of


def main() -> None:
    folder = Path(sys.argv[1])
    memory = open_toy(folder / "memory")
    memory.read(some_text(25, 1), "first", time=datetime(2026, 11, 1, tzinfo=UTC))
    memory.read(some_text(5, 2, ["zebra", "known1"]), "zoo", time=datetime(2026, 11, 2, tzinfo=UTC))
    memory.forget(document="zoo")
    memory.read(
        "known1 golden ümlaut\nknown2 golden", "second", time=datetime(2026, 11, 3, tzinfo=UTC)
    )
    memory.backend.snapshot()
    # A tail that no snapshot has seen, as after a crash.
    memory.read("known3 golden known4", "tail", time=datetime(2026, 11, 4, tzinfo=UTC))
    guesses = memory.predict("known2", 5).words
    expected = {
        "entries": len(memory),
        "documents": ["first", "second", "tail"],
        "probs": memory.score("known1 golden known7 never").prob.tolist(),
        "words": [guess.word for guess in guesses],
        "text": [word for words in store_of(memory).replay() for word in words],
    }
    store_of(memory).close()
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
