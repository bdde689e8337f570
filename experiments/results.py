"""Results as JSON lines: what was run, at which commit, on what machine, and what came out."""

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.corpora import spoken
from experiments.paper import Pair

# Results keep the names that experts had when they were measured.
_NAMES = {
    "latest": "cache_128",
    "recent": "cache_1024",
    "primed": "train_ngram",
    "strangers": "oov",
}
_FORMER = re.compile(rf'"({"|".join(_NAMES)})(?=["_])')


def append_result(path: Path, result: dict[str, Any]) -> None:
    """Append one result, on disk before this returns; a torn last line is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({**result, **circumstances(path.parent)}, ensure_ascii=False) + "\n"
    if path.exists():
        kept = path.read_bytes()
        whole = kept.rfind(b"\n") + 1
        if whole < len(kept):
            with path.open("r+b") as file:
                file.truncate(whole)
    with path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def write_result(root: Path, name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result into its file in the checkout `root`, with the circumstances."""
    found = {**result, **circumstances(root.absolute())}
    target = root / "experiments" / "results" / f"{name}.json"
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole result of a file; a line that a crash cut short is passed over."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                result = json.loads(_FORMER.sub(lambda found: f'"{_NAMES[found[1]]}', line))
            except json.JSONDecodeError:
                continue
            if isinstance(result, dict):
                yield result


@dataclass(frozen=True)
class Found:
    """The latest result of each cell of an experiment, by training and test domain, at a scale."""

    name: str
    scale: str
    cells: dict[tuple[str, str], dict[str, Any]]


def find_results(folder: Path, name: str, *scales: str) -> Found:
    """An experiment's results at the first of these scales that has any."""
    for scale in scales:
        cells = {
            (result["cell"]["train"], result["cell"]["test"]): result
            for result in read_results(folder / f"{name}-{scale}.jsonl")
            if "cell" in result
        }
        if cells:
            return Found(name, scale, cells)
    return Found(name, scales[0], {})


def numbers(found: Found, key: str) -> dict[Pair, dict[str, float]]:
    """One figure of every row of every cell, where there is one.

    >>> numbers(Found("t", "small", {("a", "b"): {"rows": [{"name": "static", "x": 2}]}}), "x")
    {('a', 'b'): {'static': 2.0}}
    """
    return {
        pair: {
            row["name"]: float(row[key])
            for row in result.get("rows", ())
            if isinstance(row.get(key), int | float) and math.isfinite(row[key])
        }
        for pair, result in found.cells.items()
    }


def notes(found: Found) -> tuple[str, ...]:
    """Where a table's numbers come from: scale, training, words a cell, commits."""
    if not found.cells:
        return ("No results yet.",)
    results = found.cells.values()
    trainings = {
        f"{training['tokens']:,} words, {training['epochs']} epochs"
        for training in (result.get("training") for result in results)
        if training
    }
    words = {f"{result['tokens']:,}" for result in results}
    each = (
        f"{min(words)} in each cell"
        if len(words) == 1
        else ", ".join(
            f"{result['tokens']:,} ({spoken(train)} → {spoken(test)})"
            for (train, test), result in found.cells.items()
        )
    )
    fitted = {f"{result['fitted_on']:,}" for result in results if result.get("fitted_on")}
    commits = listed(map(_commit, results))
    changed = " (+: with changes not committed)" if "+" in commits else ""
    return (
        f"Scale “{found.scale}”: trained on {listed(trainings)}. Test words: {each}."
        + (f" Fixed weights: fitted on the {listed(fitted)} words before those." * bool(fitted))
        + f" Cells with a result: {len(found.cells)}. Commits: {commits}{changed}.",
    )


def circumstances(folder: Path) -> dict[str, Any]:
    """The commit (and whether files had changed since), the time and the machine."""

    def git(*words: str) -> str:
        ran = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        return ran.stdout.strip()

    return {
        "commit": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no", "--", "*.py")),
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
    }


def _commit(result: Mapping[str, Any]) -> str:
    return f"{result.get('commit') or 'unknown'}{'+' * bool(result.get('changed'))}"


def listed(values: Iterable[str]) -> str:
    """Each once, in order."""
    return ", ".join(sorted(set(values))) or "unknown"
