"""What the verbs of a memory share: opening it, wherever it lies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.console import late_meter, say
from unbounded.errors import SettingError, StoreError

if TYPE_CHECKING:
    from unbounded.lm import Pretrained
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
Device = Annotated[
    str,
    typer.Option(help="What a model of transformers is computed on: cpu, cuda or mps."),
]


@contextmanager
def opened(
    folder: Path,
    model: Path | None,
    *,
    engine: str | None = None,
    device: str = "cpu",
    write: bool = False,
    create: bool = False,
    threads: int = 1,
    **more: Any,
) -> "Iterator[Memory]":
    """A memory, opened; says what had to be mended, and how far reading again is.

    One that is made without a model has the small default.
    """
    import unbounded
    from unbounded.cluster.connecting import described
    from unbounded.presets import set_threads
    from unbounded.store.layout import is_new

    set_threads(threads)
    say_loading(model, device)
    new = is_new(folder) if engine is None else described(folder) is None
    if new and not create:
        kind = "a memory" if engine is None else "a memory on shards"
        raise StoreError(f"{folder} is not {kind} yet; read a text into it first")
    if new and model is None:
        say("no --model was given: the small default model, which comes with unbounded")
    # Shards are not locked, whatever they are opened for.
    mode = "write" if write or engine is not None else "read"
    given: dict[str, Any] = {"engine": engine, "mode": mode, "threads": threads, "say": say, **more}
    found: Path | Pretrained | None = model
    if device != "cpu":
        if model is None:
            raise SettingError("only a model of transformers has a device; name it: --model")
        found = unbounded.load(model, unbounded.TransformerConfig(device=device))
    with late_meter("reading again") as show:
        memory = unbounded.open(folder, found, show=show, **given)
    for event in memory.events:
        say(event)
    told = len(memory.events)
    try:
        with memory:
            yield memory
    finally:
        for event in memory.events[told:]:
            say(event)


def say_loading(model: Path | None, device: str = "cpu") -> None:
    """A transformer takes its time, if its device is there; who waits should know for what."""
    from unbounded.lm.devices import device_named
    from unbounded.lm.huggingface import is_transformer

    if device != "cpu":
        device_named(device)
    if model is not None and sys.stderr.isatty() and is_transformer(model):
        say(f"loading {model} …")
