"""`unbounded serve`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unbounded.cli.main import CORES, app
from unbounded.cli.memory_options import default_folder_trained
from unbounded.console import say

if TYPE_CHECKING:
    from unbounded.lm import Pretrained

Root = Annotated[
    Path, typer.Argument(metavar="MEMORY_ROOT", help="Folder whose folders are the memories.")
]


@app.command()
def serve(
    root: Root,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Folder of the model [default: that of the memories there, or the small default].",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    without_keys: Annotated[
        bool,
        typer.Option("--without-keys", help="Let everybody in who can reach it, keys or none."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which requests without a key may call it, beside its addresses, "
            "localhost and this machine's; may be repeated.",
        ),
    ] = None,
    max_memories: Annotated[int, typer.Option(min=1, help="Memories at most.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of a request at most.")] = 32,
    seconds: Annotated[float, typer.Option(min=0.1, help="What asking may take.")] = 60.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds to end in, when stopped.")] = 20.0,
    threads: Annotated[int, typer.Option(min=1, help="Threads that read and ask.")] = CORES,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line a request.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where the shards are of memories there that have some: ray://HOST:PORT; /metrics "
            "shows each shard.",
        ),
    ] = None,
) -> None:
    """Serve memories over HTTP, with a page; a line of JSON a request on standard error."""
    from unbounded.errors import MissingExtra

    try:
        from unbounded.serve.limits import Limits
        from unbounded.serve.running import chosen_keys
        from unbounded.serve.running import serve as run
    except ImportError as error:
        raise MissingExtra(f"{error.name}, which the service needs,", "serve") from None
    if engine is not None:
        _check_engine(engine)
    # Before the model is loaded: a refusal need not wait for that.
    chosen_keys(root, host, without_keys=without_keys)
    limits = Limits(body=max_body << 20, memories=max_memories, seconds=seconds, grace=grace)
    run(
        root,
        _model(root, model),
        host=host,
        port=port,
        limits=limits,
        threads=threads,
        without_keys=without_keys,
        hosts=allow_host or (),
        quiet=quiet,
        engine=engine,
        say=say,
    )


def _check_engine(engine: str) -> None:
    """Refuse what is no address; one that does not answer yet is waited for."""
    from unbounded.cluster import Address
    from unbounded.errors import SettingError

    if Address.parse(engine).host is None:
        raise SettingError("ray://local has no shards that are there already; give ray://HOST:PORT")


def _model(root: Path, model: Path | None) -> "Pretrained":
    from unbounded.lm import load_model
    from unbounded.serve.running import recorded_model

    return load_model(model or recorded_model(root) or default_folder_trained())
