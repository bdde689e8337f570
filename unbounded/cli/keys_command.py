"""`unbounded keys`: who may use a service."""

from typing import Annotated

import typer

from unbounded.cli.main import JsonFile, app, check_targets
from unbounded.cli.serve_command import Root
from unbounded.console import say, write_json

group = typer.Typer(no_args_is_help=True, help="Who may use a service: make and remove keys.")
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

    check_targets(json_file)
    key, token = Keys(root).add(label, memory or [], "write" if write else "read")
    if json_file != "-":
        say(f"key {key.id} may {key.right} {', '.join(key.memories)}; keep the token, it is:")
        typer.echo(token)
    if json_file is not None:
        write_json({"id": key.id, "token": token, "right": key.right}, json_file)


@group.command("list")
def list_keys(root: Root, json_file: JsonFile = None) -> None:
    """Say which keys there are; their tokens are not kept."""
    from unbounded.serve.keys import Keys

    check_targets(json_file)
    keys = Keys(root).all()
    if json_file != "-":
        for key in keys:
            scope = ", ".join(key.memories)
            typer.echo(f"{key.id}  {key.right:5}  {key.created}  {scope}  {key.label}".rstrip())
        if not keys:
            say(f"{root} has no keys")
    if json_file is not None:
        shown = ("id", "label", "memories", "right", "created")
        write_json({"keys": [{n: getattr(key, n) for n in shown} for key in keys]}, json_file)


@group.command()
def remove(root: Root, id: Annotated[str, typer.Argument(metavar="ID", help="As listed.")]) -> None:
    """Remove a key; a service that runs knows at once."""
    from unbounded.serve.keys import Keys

    keys = Keys(root)
    key = keys.remove(id)
    say(f"key {key.id} opens nothing any more")
    if not keys.all():
        say(f"it was the last: nobody is served until you add one, or delete {keys.path}")
