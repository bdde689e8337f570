"""What the verbs of a memory share: opening it, wherever it lies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.console import late_meter, say, training_meter
from unbounded.errors import StoreError

if TYPE_CHECKING:
    from unbounded.memory import Memory

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
    engine: str | None = None,
    write: bool = False,
    create: bool = False,
    threads: int = 1,
    **more: Any,
) -> "Iterator[Memory]":
    """A memory, opened; says what had to be mended, and how far reading again is.

    One that is made without a model has the default one, which may have to be trained first.
    """
    import unbounded
    from unbounded.cluster.connecting import described
    from unbounded.presets import set_threads
    from unbounded.store.layout import is_new

    set_threads(threads)
    say_loading(model)
    new = is_new(folder) if engine is None else described(folder) is None
    if new and not create:
        kind = "a memory" if engine is None else "a memory on shards"
        raise StoreError(f"{folder} is not {kind} yet; read a text into it first")
    if new and model is None:
        model = default_folder_trained()
    # Shards are not locked, whatever they are opened for.
    mode = "write" if write or engine is not None else "read"
    given: dict[str, Any] = {"engine": engine, "mode": mode, "threads": threads, "say": say, **more}
    with late_meter("reading again") as show:
        memory = unbounded.open(folder, model, show=show, **given)
    for event in memory.events:
        say(event)
    told = len(memory.events)
    try:
        with memory:
            yield memory
    finally:
        for event in memory.events[told:]:
            say(event)


def say_loading(model: Path | None) -> None:
    """A transformer takes its time; who waits should know for what."""
    from unbounded.lm.huggingface import is_transformer

    if model is not None and is_transformer(model):
        say(f"loading {model} …")


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
