"""`unbounded serve`, and `keys`: who may use a service."""

from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.main import CORES, Device, JsonFile, Verbs, app
from unbounded.console import say, tell
from unbounded.errors import SettingError


def _checked_root(root: Path) -> Path:
    from unbounded.store.layout import NAME

    if (root / NAME).exists():
        raise SettingError(f"{root} is a memory itself; give the folder that it is in")
    return root


Root = Annotated[
    Path,
    typer.Argument(
        metavar="MEMORY_ROOT",
        file_okay=False,
        callback=_checked_root,
        help="Folder whose folders are the memories.",
    ),
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
    device: Device = "cpu",
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
    threads: Annotated[
        int, typer.Option(min=1, show_default="all cores", help="Threads that read and ask.")
    ] = CORES,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line a request.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where the keys of new memories lie, and of those there that have shards: "
            "ray://HOST:PORT; ?shards=N behind it for new ones.",
        ),
    ] = None,
) -> None:
    """Serve memories over HTTP, with a page; a line of JSON a request on standard error."""
    from unbounded.cluster import Address
    from unbounded.lm import TransformerConfig, load_model
    from unbounded.lm.model_folder import DEFAULT
    from unbounded.serve.app import chosen_keys, recorded_model
    from unbounded.serve.app import serve as run
    from unbounded.serve.limits import Limits

    if engine is not None:
        Address.parse(engine)
    # Before the model is loaded: a refusal need not wait for that.
    keys = chosen_keys(root, host, without_keys=without_keys)
    limits = Limits(body=max_body << 20, memories=max_memories, seconds=seconds, grace=grace)
    found = model or recorded_model(root) or DEFAULT
    run(
        root,
        load_model(found, TransformerConfig(device=device)),
        host=host,
        port=port,
        keys=keys,
        limits=limits,
        threads=threads,
        hosts=allow_host or (),
        quiet=quiet,
        engine=engine,
        say=say,
    )


group = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="Who may use a service: make and remove keys."
)
app.add_typer(group, name="keys")


@group.command()
def add(
    root: Root,
    label: Annotated[str, typer.Option(help="Whose it is, for the list.")] = "",
    memory: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A memory it is for; may be repeated [default: all]."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="It may make, read into, forget and delete too.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Make a key; its token is printed now and never again."""
    from unbounded.serve.keys import Keys

    key, token = Keys(root).add(label, memory or [], "write" if write else "read")
    if json_file != "-":
        say(f"key {key.id} may {key.right} {', '.join(key.memories)}; keep the token, it is:")
    tell(json_file, {"id": key.id, "token": token, "right": key.right}, token)


@group.command("list")
def list_keys(root: Root, json_file: JsonFile = None) -> None:
    """Say which keys there are; their tokens are not kept."""
    from unbounded.serve.keys import Keys

    there = Keys(root)
    keys = there.all()
    lines = [
        f"{key.id}  {key.right:5}  {key.created}  {', '.join(key.memories)}  {key.label}".rstrip()
        for key in keys
    ]
    if not keys:
        say(f"{root} has no keys" + (f" left: {there.to_open()}" if there.on else ""))
    shown = ("id", "label", "memories", "right", "created")
    told = [{name: getattr(key, name) for name in shown} for key in keys]
    tell(json_file, {"keys": told, "on": there.on}, *lines)


@group.command()
def remove(root: Root, id: Annotated[str, typer.Argument(metavar="ID", help="As listed.")]) -> None:
    """Remove a key; a service that runs knows at once."""
    from unbounded.serve.keys import Keys

    keys = Keys(root)
    key = keys.remove(id)
    say(f"key {key.id} opens nothing any more")
    if not keys.all():
        say(f"it was the last: {keys.to_open()}")
