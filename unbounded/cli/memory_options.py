"""What the verbs of a kept memory share: opening it, with progress and a default model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.console import late_meter, say, training_meter
from unbounded.errors import StoreError

if TYPE_CHECKING:
    from unbounded.memory import Budget, Memory

Folder = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="Folder of a memory, made by 'unbounded read'.")
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="Folder of the model that it belongs to; one of transformers must be named each time "
        "[default: the one that it was made with].",
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
) -> "Iterator[Memory]":
    """A memory, opened; says what had to be mended, and how far reading again is."""
    import unbounded
    from unbounded.presets import set_threads
    from unbounded.store.layout import is_new

    set_threads(threads)
    chosen = model
    if mode == "write" and model is None and is_new(folder):
        chosen = default_folder_trained()
    with late_meter("reading again") as show:
        memory = unbounded.open(folder, chosen, mode=mode, budget=budget, show=show)
    for event in memory.events:
        say(event)
    told = len(memory.events)
    try:
        with memory:
            yield memory
    finally:
        for event in memory.events[told:]:
            say(event)


@contextmanager
def opened_on(
    engine: str,
    folder: Path,
    model: Path | None,
    *,
    threads: int = 1,
    write: bool = False,
    **when_unavailable: Any,
) -> "Iterator[Memory]":
    """A memory on the shards of an engine, opened; says when some are away, and back."""
    import unbounded
    from unbounded.cluster.connecting import described
    from unbounded.presets import set_threads

    set_threads(threads)
    if described(folder) is None:
        if not write:
            raise StoreError(f"{folder} is not a memory on shards yet; read something into it")
        model = model or default_folder_trained()
    with unbounded.open(
        folder, model, engine=engine, threads=threads, say=say, **when_unavailable
    ) as memory:
        yield memory


@contextmanager
def asked(engine: str | None, folder: Path, model: Path | None, threads: int) -> "Iterator[Memory]":
    """A memory for asking, wherever it is."""
    if engine is None:
        with opened(folder, model, mode="read", threads=threads) as memory:
            yield memory
    else:
        with opened_on(engine, folder, model, threads=threads) as memory:
            yield memory


def default_folder_trained() -> Path:
    """The default model's folder; the first use trains it, and says so."""
    from unbounded.default import default_folder, default_model
    from unbounded.lm import Progress

    folder, trained = default_folder(), False
    first = (
        "no --model was given: training the small default model once, a few minutes; it is kept in"
    )
    with training_meter(f"{first} {folder}") as meter:

        def show(at: Progress, total: int) -> None:
            nonlocal trained
            trained = True
            meter(at, total)

        def wait(process: str) -> None:
            say(f"process {process} is training the default model just now: waiting for it")

        default_model(show, wait=wait)
    if not trained:
        say(f"no --model was given: the default model in {folder}")
    return folder
