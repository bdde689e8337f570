"""What the verbs of a kept memory share: opening it, with progress and a default model."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.console import meter, say

if TYPE_CHECKING:
    from unbounded.keep import Budget, KeptMemory

Folder = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="Folder of a memory, made by 'unbounded read'.")
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="Folder of the model that it belongs to [default: the one that it was made with].",
    ),
]


@contextmanager
def opened(
    folder: Path,
    model: Path | None,
    *,
    mode: str,
    threads: int = 1,
    budget: "Budget | None" = None,
) -> "Iterator[KeptMemory]":
    """A memory, opened; says what had to be mended, and how far reading again is."""
    import unbounded
    from unbounded.config import set_threads
    from unbounded.store.layout import is_new

    set_threads(threads)
    chosen = model
    if mode == "write" and model is None and is_new(folder):
        chosen = _default()
    with progress("reading again") as show:
        memory = unbounded.open(folder, chosen, mode=mode, budget=budget, show=show)
    told = 0
    with memory:
        for event in memory.events:
            say(event)
        told = len(memory.events)
        yield memory
    for event in memory.events[told:]:
        say(event)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Told how far of how many words; a bar from the first time on."""
    with ExitStack() as stack:
        bars: list[Any] = []

        def show(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(meter(what, total)))
            bars[0](done)

        yield show


def _default() -> Path:
    """The default model's folder; the first use trains it, and says so."""
    from unbounded.default import default_folder, default_model
    from unbounded.lm import Progress

    folder = default_folder()
    with ExitStack() as stack:
        bars: list[Any] = []

        def show(at: Progress, total: int) -> None:
            if not bars:
                say(
                    f"no --model was given: training the small default model once, a few minutes; "
                    f"it is kept in {folder}"
                )
                bars.append(stack.enter_context(meter("training", total)))
            bars[0](at.words, f"perplexity {at.train_perplexity:,.1f}")

        default_model(show)
    if not bars:
        say(f"no --model was given: the default model in {folder}")
    return folder
