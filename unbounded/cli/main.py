"""The command line itself: options that verbs share, and how a failure ends."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from typer.core import TyperGroup

from unbounded.console import late_meter, parse_size, say
from unbounded.errors import CorpusError, SettingError, StoreError, UnboundedError, named
from unbounded.version import __version__

if TYPE_CHECKING:
    from unbounded.lm import Pretrained
    from unbounded.memory import Memory


VERBS = (
    *("demo", "train", "evaluate"),
    *("read", "predict", "score", "complete", "memory"),
    *("serve", "keys", "rescore", "audit"),
)
"""The order of `--help`: try it, live with it, share it; the tools come last."""


@final
class Verbs(TyperGroup):
    """Commands in the order of `VERBS`, or as they were added; their summaries are never cut."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return sorted(
            self.commands, key=lambda name: VERBS.index(name) if name in VERBS else len(VERBS)
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a name; of one that is a group's, where it is."""
        for group, found in self.commands.items():
            if args[0] not in self.commands and args[0] in getattr(found, "commands", ()):
                ctx.fail(f"No such command {args[0]!r}. Did you mean '{group} {args[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Their names, each with its first sentence."""
        rows = [
            (name, self.commands[name].get_short_help_str(limit=1_000))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""How all commands look, the lab's too."""

app = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="A language model that never stops reading.", **PLAIN
)

Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT...", help="Files, folders, .gz .bz2 .xz .zst, or - for standard input."
    ),
]


def check_target(target: str | Path | None, *endings: str) -> None:
    """Refuse a file that could not be written, before hours of work and not after; and one whose
    ending does not say which format it has, or says another. `-` is any."""
    if target is None or str(target) == "-":
        return
    path = Path(target)
    if path.is_dir() or not path.absolute().parent.is_dir():
        found = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise SettingError(f"{path} {found}; give the path of a file that can be written")
    if endings and path.suffix.lower() not in endings:
        raise SettingError(
            f"{path} ends in {path.suffix or 'nothing'}; what is written follows the ending: "
            f"give one in {' '.join(endings)}, or -"
        )


def _checked(target: str | None) -> str | None:
    check_target(target)
    return target


JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        callback=_checked,
        help="Write the figures as JSON (- is standard output).",
    ),
]
Threads = Annotated[
    int,
    typer.Option(min=1, show_default="all cores", help="Threads of the network and the search."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Where the memory's keys lie on shards: ray://HOST:PORT, or ray://local for a cluster "
        "of this process alone; ?shards=N behind it for a new one [default: no shards].",
    ),
]
CORES = os.cpu_count() or 1
Seed = Annotated[int, typer.Option(help="Seed of all randomness.")]


def size(default: str, text: str) -> Any:
    """An option that takes 500, 250k, 2M."""
    return typer.Option(default, metavar="SIZE", parser=parse_size, help=f"{text} Takes k and M.")


def size_or(nothing: str, text: str) -> Any:
    """The same, and what it means to give none."""
    return typer.Option(
        None, metavar="SIZE", parser=parse_size, help=f"{text} Takes k and M [default: {nothing}]."
    )


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"unbounded {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def unbounded(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A language model that never stops reading."""


def say_damage(reader: Any) -> None:
    """Say what a `Reader` had to mend."""
    say_broken(reader.damaged)
    if reader.cut:
        say(f"{reader.cut:,} lines longer than a million characters were cut at white space")


def say_broken(damaged: Mapping[str, int]) -> None:
    """Say how many bytes of which file were none of a text."""
    for path, count in damaged.items():
        say(f"{path}: {count:,} broken bytes read as U+FFFD")


class _Stopped(Exception):
    """Ctrl-C, with what was kept and how to go on; typer would end the other without a word."""


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """At Ctrl-C, say what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise _Stopped(kept) from None


def main() -> None:
    """Run the command line; a failure is one line and exit status 1 (2 for usage)."""
    run(app, "unbounded")


def run(commands: typer.Typer | Callable[..., None], name: str) -> None:
    """Run commands, the package's or the lab's, or a single one; end a failure in one line."""
    if not isinstance(commands, typer.Typer):
        alone = typer.Typer(add_completion=False, **PLAIN)
        alone.command()(commands)
        commands = alone
    try:
        commands(prog_name=name)
    except UnboundedError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        found = named(error)
        if found is error:
            raise
        _fail(str(found))
    except BrokenPipeError:
        # The reader of our output has left, as in `unbounded … | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; choose another place, or make room there")
    except (KeyboardInterrupt, _Stopped) as stop:
        say(": ".join(["stopped", *stop.args]))
        raise SystemExit(130) from None


def _fail(message: str) -> None:
    say(f"Error: {' '.join(message.split())}")
    raise SystemExit(1) from None


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
    str, typer.Option(help="What a model of transformers is computed on: cpu, cuda or mps.")
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
    from unbounded.presets import set_threads
    from unbounded.store.layout import is_new

    set_threads(threads)
    say_loading(model, device)
    new = is_new(folder)
    if new and not create:
        raise StoreError(f"{folder} is not a memory yet; read a text into it first")
    if new and model is None:
        say("no --model was given: the small default model, which comes with unbounded")
    found: Path | Pretrained | None = model
    if device != "cpu":
        if model is None:
            raise SettingError("only a model of transformers has a device; name it: --model")
        found = unbounded.load(model, unbounded.TransformerConfig(device=device))
    more |= {"engine": engine, "mode": "write" if write else "read", "threads": threads}
    with late_meter("reading again") as show:
        memory = unbounded.open(folder, found, say=say, show=show, **more)
    for event in memory.events:
        say(event)
    told = len(memory.events)
    try:
        with memory:
            yield memory
    except CorpusError:
        # What cannot be read leaves no new memory behind.
        if new and engine is None and not len(memory):
            shutil.rmtree(folder)
        raise
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
