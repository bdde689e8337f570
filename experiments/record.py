"""Results as JSON lines: what was run, with which commit, on what machine, and what came out."""

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")


def record(name: str, result: dict[str, Any]) -> None:
    """Append one result to `results/NAME.jsonl`, whole or not at all."""
    RESULTS.mkdir(exist_ok=True)
    line = json.dumps({**result, **_circumstances()}, ensure_ascii=False)
    with (RESULTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """Every result in `results/NAME.jsonl`; a line that was cut off by a crash is passed over."""
    path = RESULTS / f"{name}.jsonl"
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _circumstances() -> dict[str, Any]:
    def git(*words: str) -> str:
        ran = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return ran.stdout.strip()

    return {
        "commit": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
    }
