"""One TOML file a table or figure: which cells it is made of, at which scale."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unbounded.errors import SettingError
from unbounded.evaluation.rows import USUAL
from unbounded.lm import PAPER_TRAINING, TrainingConfig


@dataclass(frozen=True)
class TrainingScale:
    """How long the static models train."""

    tokens: int
    epochs: int


SCALES = {
    "small": TrainingScale(100_000, 2),
    "medium": TrainingScale(2_000_000, 10),
    "paper": TrainingScale(2_000_000, 10),
}
"""`paper` trains and reads as much as the paper did, `medium` reads a tenth of it, and `small`
keeps the shape of everything on little text."""

TRAININGS = {"paper": PAPER_TRAINING, "ours": TrainingConfig()}
"""How networks are trained: by the paper's words, and as `unbounded train` does it."""

ROWS = {"paper": ("static", "paper"), "ours": USUAL}
"""What is read with each: the paper's network with its own cache, which takes four times as long as
all other rows together and is the same in every edition, and the rows of `evaluate`."""

KINDS = ("rows", "vocabulary", "neighbors", "ablation", "ladder", "instead")


@dataclass(frozen=True)
class Cell:
    """Which domain to train on, which to read, how much, with which rows and which network."""

    train: str
    test: str
    tokens: int
    rows: tuple[str, ...] = USUAL
    training: str = "ours"


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its title, its kind, and its cells at one scale."""

    name: str
    title: str
    kind: str
    """`rows`: the rows of `evaluate` and the paper's own settings. `vocabulary`: sizes and OOV
    words only. `neighbors`: the gain against k. `ablation`: what each part of `full` is worth.
    `ladder`: from the paper's settings to `full`. `instead`: bits per character, ours and others'.
    """
    scale: str
    cells: tuple[Cell, ...]

    @property
    def training(self) -> TrainingScale:
        """How its networks are trained."""
        return SCALES[self.scale]


def load_experiment(path: Path, scale: str) -> Experiment:
    """Read a config; an unknown key or a missing one is a one-line error that names it."""
    if scale not in SCALES:
        raise SettingError(f"scale {scale!r} is unknown; use {', '.join(SCALES)}")
    if not path.is_file():
        raise SettingError(f"there is no experiment {path}; run this in a checkout of unbounded")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is not TOML ({error}); mend it") from error
    needed = {"title", "kind", "cells", "tokens"}
    _check(path, found, needed | {"rows", "training"}, needed)
    _check(path, found["tokens"], set(SCALES), {scale})
    if found["kind"] not in KINDS:
        raise SettingError(f"{path}: kind {found['kind']!r} is unknown; use {', '.join(KINDS)}")
    return Experiment(path.stem, found["title"], found["kind"], scale, tuple(_cells(found, scale)))


def _cells(found: dict[str, Any], scale: str) -> Iterator[Cell]:
    """Every test domain of every training domain, each way its network is trained."""
    for train, tests in found["cells"].items():
        for test in tests:
            for training in found.get("training", [Cell.training]):
                rows = tuple(found.get("rows", ROWS[training]))
                yield Cell(train, test, found["tokens"][scale], rows, training)


def _check(path: Path, found: dict[str, Any], known: set[str], needed: set[str]) -> None:
    for key in found.keys() - known:
        raise SettingError(
            f"{path} has the unknown key {key!r}; known are {', '.join(sorted(known))}"
        )
    for key in needed - found.keys():
        raise SettingError(f"{path} lacks the key {key!r}")
