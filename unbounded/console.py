"""What the commands share towards a person: sizes, progress, JSON, one-line failures."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unbounded.files import write_text_atomically

if TYPE_CHECKING:
    from unbounded.lm import Progress as TrainingProgress

PLAIN_SECONDS = 10.0
"""How often a plain progress line is written where there is no terminal."""

UNITS = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def parse_size(text: str) -> int:
    """Read `500`, `250k`, `2M`, `1.5M`.

    >>> parse_size("2M"), parse_size("250k"), parse_size("1_000")
    (2000000, 250000, 1000)
    """
    stripped = text.strip().replace("_", "").replace(",", "")
    unit = UNITS.get(stripped[-1:].lower(), 1)
    try:
        value = float(stripped[:-1] if unit > 1 else stripped) * unit
        if not (math.isfinite(value) and value >= 1 and value == int(value)):
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a size; write 500, 250k or 2M") from None
    return int(value)


_SHOWN: list[Any] = []
"""The progress bar on the terminal, if there is one: lines go above it, not into it."""


def say(text: str) -> None:
    """Write a line for people: to standard error, so that standard output can be piped."""
    if _SHOWN:
        _SHOWN[-1].console.print(text, markup=False, highlight=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


def write_json(value: Mapping[str, Any], target: str) -> None:
    """Write `value` to a file, or to standard output if `target` is `-`."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text_atomically(Path(target), text)
        say(f"wrote {target}")


def tell(target: str | None, figures: Mapping[str, Any], *lines: str, err: bool = False) -> None:
    """Show lines to people, unless standard output is for JSON; write the figures if asked to."""
    if target != "-":
        for line in lines:
            typer.echo(line, err=err)
    if target is not None:
        write_json(figures, target)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Meter = Callable[[int, str], None]
"""Told how many words are read, with a short note."""


@contextmanager
def meter(what: str, total: int | None) -> Iterator[Meter]:
    """A progress bar with words a second and time left on a terminal; plain lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _PlainMeter(what, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(what, total=total, rate="", note="")
        rate = _Rate()

        def show(done: int, note: str) -> None:
            bar.update(task, completed=done, rate=_said(rate(done)), note=note)

        _SHOWN.append(bar)
        try:
            yield show
        finally:
            _SHOWN.remove(bar)


def _said(rate: float) -> str:
    """Words a second, once there are some."""
    return f"{rate:,.0f} words/s" if rate >= 0.5 else ""


@contextmanager
def late_meter(what: str, first: str = "") -> Iterator[Callable[..., None]]:
    """A meter that begins when it is first told how far of how many, and says `first` then.

    It is told both, and perhaps a note.
    """
    with ExitStack() as stack:
        begun: list[Meter] = []

        def show(done: int, total: int, note: str = "") -> None:
            if not begun:
                if first:
                    say(first)
                begun.append(stack.enter_context(meter(what, total)))
            begun[0](done, note)

        yield show


@contextmanager
def training_meter(first: str) -> "Iterator[Callable[[TrainingProgress, int], None]]":
    """A late meter for training, of which there may be none."""
    with late_meter("training", first) as show:
        yield lambda at, total: show(at.words, total, f"perplexity {at.train_perplexity:,.1f}")


class _Rate:
    """Words a second since it was first told; what a resumed run had done is not counted."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int) -> float:
        if self._first is None:
            self._first = done
        return (done - self._first) / max(time.monotonic() - self._began, 1e-9)


class _PlainMeter:
    """Lines to standard error, each `PLAIN_SECONDS`."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._shown = time.monotonic()
        self._rate = _Rate()

    def __call__(self, done: int, note: str) -> None:
        now, rate = time.monotonic(), self._rate(done)
        if now - self._shown < PLAIN_SECONDS:
            return
        self._shown = now
        line = f"{self._what}: {done:,}"
        if self._total is not None:
            line += f" of {self._total:,} words"
            if rate > 0:
                line += f", {(self._total - done) / rate:,.0f} s left"
        say(", ".join(filter(None, [line, _said(rate), note])))
