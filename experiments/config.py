"""One TOML file a table or figure: which cells it is made of, at which scale."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from unbounded.errors import SettingError
from unbounded.evaluation.rows import USUAL
from unbounded.lm import NetworkConfig

SCALES = ("small", "paper")


@dataclass(frozen=True)
class Cell:
    """Which domain to train on, which to read, how much, and with which rows."""

    train: str
    test: str
    tokens: int
    rows: tuple[str, ...] = USUAL
    mixture: str = "both"
    index: str = "auto"
    k: int = 1024
    key: str = "normalized"
    """What the memory is searched by; see `reproduce.keys`. Rows know hidden and normalized."""
    units: int = NetworkConfig.units
    """How wide the network is."""


@dataclass(frozen=True)
class TrainingScale:
    """How long the static models train; the paper's, and a smaller one that keeps the shape."""

    tokens: int
    epochs: int


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its title, its kind, and its cells at one scale."""

    name: str
    title: str
    kind: str
    """`rows`: the rows of `evaluate`. `vocabulary`: sizes and OOV words only. `neighbors`: the
    gain against k. `compressors`: bits per character, ours and theirs. `ablation`: what each part
    of `full` is worth. What is drawn from the
    results is named after the experiment."""
    training: TrainingScale
    cells: tuple[Cell, ...]


KINDS = ("rows", "vocabulary", "neighbors", "compressors", "ablation")


def load_experiment(path: Path, scale: str) -> Experiment:
    """Read a config; an unknown key or a missing one is a one-line error that names it."""
    if scale not in SCALES:
        raise SettingError(f"scale {scale!r} is unknown; use {' or '.join(SCALES)}")
    if not path.is_file():
        raise SettingError(f"there is no experiment {path}; run this in a checkout of unbounded")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is not TOML ({error}); mend it") from error
    _check(path, found, {"title", "kind", "training", "cells", *SCALES}, {"title", "kind"})
    if found["kind"] not in KINDS:
        raise SettingError(f"{path}: kind {found['kind']!r} is unknown; use {', '.join(KINDS)}")
    at_scale = found.get(scale, {})
    _check(path, at_scale, {"training", "cell"}, {"training", "cell"})
    try:
        training = TrainingScale(**at_scale["training"])
    except TypeError as error:
        raise SettingError(f"{path}: [{scale}.training] needs tokens and epochs") from error
    cells = tuple(_cells(path, found.get("cells", {}), at_scale["cell"]))
    return Experiment(path.stem, found["title"], found["kind"], training, cells)


def _cells(path: Path, pairs: dict[str, list[str]], common: dict[str, Any]) -> Iterator[Cell]:
    """Every test domain of every training domain."""
    known = {field.name for field in fields(Cell)} - {"train", "test"}
    _check(path, common, known, {"tokens"})
    if not pairs:
        raise SettingError(f"{path} has no [cells]; name a training domain and its test domains")
    settings: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in common.items()
    }
    # Several keys or widths are as many cells.
    several = {
        name: value if isinstance(value, tuple) else (value,)
        for name, value in settings.items()
        if name in ("key", "units")
    }
    for train, tests in pairs.items():
        for test in tests:
            for one in product(*several.values()):
                varied = dict(zip(several, one, strict=True))
                yield Cell(train=train, test=test, **{**settings, **varied})


def _check(path: Path, found: dict[str, Any], known: set[str], needed: set[str]) -> None:
    for key in found.keys() - known:
        raise SettingError(
            f"{path} has the unknown key {key!r}; known are {', '.join(sorted(known))}"
        )
    for key in needed - found.keys():
        raise SettingError(f"{path} lacks the key {key!r}")
