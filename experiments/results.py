"""Results as JSON lines: what was run, at which commit, on what machine, and what came out."""

import fcntl
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

from experiments.paper import Pair

EDITION = 3
"""Which edition of the models results are of, written into each. It goes up where perplexities are
meant to change; tests/experiments/test_edition.py tells when it must."""

EDITIONS = {
    1: "the output layer that goes on training, the second spelling model, and a search that looks "
    "at fewer candidates and asks for more neighbors as the memory grows",
    2: "n-grams of the text and of the training text as one expert",
    3: "networks that are trained at half the paper’s rate, and a search that looks at four "
    "candidates for each neighbor",
}
"""What each has that results of an earlier one were measured without."""

RECIPE = {"static": "recipe_static", "paper": "recipe"}
"""What the rows that were read with the paper's own network are called beside the others."""

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
    line = json.dumps({**circumstances(path.parent), **result}, ensure_ascii=False) + "\n"
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line.encode())
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
    """The result of each cell of an experiment, by training and test domain."""

    name: str
    cells: dict[Pair, dict[str, Any]]


def find_results(folder: Path, name: str, *scales: str, training: str = "ours") -> Found:
    """An experiment's latest results, each at the last of these scales that has one.

    Only those of the newest edition there is, so that no table mixes two; networks are those
    trained that way. The paper's recipe has no editions.
    """
    every = [
        {**result, "scale": scale}
        for scale in scales
        for result in read_results(folder / f"{name}-{scale}.jsonl")
        if "cell" in result and result["cell"].get("training", "ours") == training
    ]
    newest = max((result.get("edition", 0) for result in every), default=0)
    cells = {
        (result["cell"]["train"], result["cell"]["test"]): result
        for result in every
        if training == "paper" or result.get("edition", 0) == newest
    }
    return Found(name, cells)


def find_table(folder: Path, name: str, *scales: str) -> Found:
    """The same, and in every cell the paper's recipe from network to cache, where it was read."""
    found = find_results(folder, name, *scales)
    for pair, recipe in find_results(folder, name, *scales, training="paper").cells.items():
        if pair in found.cells and found.cells[pair]["tokens"] == recipe["tokens"]:
            rows = [{**row, "name": RECIPE[row["name"]]} for row in recipe["rows"]]
            cell = found.cells[pair]
            cell["rows"] = [*cell["rows"], *rows]
            cell["curve"] = {**cell["curve"], "recipe": recipe["curve"]["paper"]}
            cell["recipe"] = {key: recipe[key] for key in ("commit", "changed", "trained")}
    return found


def numbers(found: Found, key: str) -> dict[Pair, dict[str, float]]:
    """One figure of every row of every cell, where there is one.

    >>> numbers(Found("t", {("a", "b"): {"rows": [{"name": "static", "x": 2}]}}), "x")
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
    """Where a table's numbers come from: scale, training, words a cell, commits, editions."""
    results = list(found.cells.values())
    if not results:
        return ("No results yet.",)
    scales = listed(f"“{result['scale']}”" for result in results)
    trainings = listed(
        f"{training['tokens']:,} words, {(training | result.get('trained', {}))['epochs']} epochs"
        for result in results
        if (training := result.get("training"))
    )
    fitted = listed(
        f"{result['fitted_on']:,} words "
        + ("of the training domain" if "fitted_in" in result else "before those")
        for result in results
        if result.get("fitted_on")
    )
    commits = listed(map(_commit, results))
    recipes = listed(
        f"{each['trained']['epochs']} epochs, commit {_commit(each)}"
        for result in results
        if (each := result.get("recipe"))
    )
    changed = " (+: with changes not committed)" if "+" in commits else ""
    return (
        f"Scale {scales}: trained on {trainings}. Test words a cell: {words_of(results)}."
        + (f" Fixed weights: fitted on {fitted}." if fitted else "")
        + f" Cells with a result: {len(results)}. Commits: {commits}{changed}."
        + (f" The paper’s recipe: {recipes}." if recipes else ""),
        *outdated(results),
    )


def words_of(results: Iterable[Mapping[str, Any]]) -> str:
    """How many words were scored, from the fewest to the most.

    >>> words_of([{"tokens": 2_000}, {"tokens": 10}]), words_of([{"tokens": 7}])
    ('10 to 2,000', '7')
    """
    counts = sorted({result["tokens"] for result in results})
    return " to ".join(f"{count:,}" for count in dict.fromkeys([counts[0], counts[-1]]))


def outdated(results: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Which results are of an earlier edition, and what has come since."""
    old = [result for result in results if result.get("edition", 0) < EDITION]
    if not old:
        return ()
    oldest = min(result.get("edition", 0) for result in old)
    since = "; ".join(text for number, text in EDITIONS.items() if number > oldest)
    return (f"Measured at {listed(map(_commit, old))}, before {since}.",)


def circumstances(folder: Path) -> dict[str, Any]:
    """The commit (and whether files had changed since), the time, the machine, the edition."""

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
        "edition": EDITION,
    }


def _commit(result: Mapping[str, Any]) -> str:
    return f"{result.get('commit') or 'unknown'}{'+' * bool(result.get('changed'))}"


def listed(values: Iterable[str]) -> str:
    """Each once, in order."""
    return ", ".join(sorted(set(values)))
