"""`unbounded memory`: caring for a memory, and making it forget."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unbounded.cli.main import (
    Engine,
    Folder,
    JsonFile,
    Model,
    Verbs,
    app,
    check_target,
    opened,
    size_or,
)
from unbounded.console import late_meter, tell
from unbounded.errors import SettingError

if TYPE_CHECKING:
    from unbounded.store.backup import Backup

group = typer.Typer(
    cls=Verbs, no_args_is_help=True, help="Look after a memory, and make it forget."
)
app.add_typer(group, name="memory")


@group.command()
def stats(
    memory_folder: Folder, model: Model = None, engine: Engine = None, json_file: JsonFile = None
) -> None:
    """Say what there is: words read, vocabulary, documents, bytes by part or shard, growth."""
    with opened(memory_folder, model, engine=engine) as memory:
        found = memory.stats()
    names = {
        "words_read": "words read",
        "forgotten": "forgotten, still in the files",
        "documents": "documents",
        "vocabulary": "vocabulary",
        "oov": "of it new to the model",
        "bytes": "bytes",
    }
    lines = [f"{said:30}{found[name]:>16,}" for name, said in names.items() if name in found]
    lines += [f"  {name:28}{count:>16,}" for name, count in found.get("bytes_by_part", {}).items()]
    if "shards" in found:
        # By which /metrics calls it.
        lines.append(f"{'id':30}{found['id']:>16}")
    for number, shard in enumerate(found.get("shards", [])):
        lines.append(
            f"  shard {number:<4}{shard['entries']:>16,} entries {shard['bytes']:>16,} bytes "
            f"{shard['bytes_in_memory']:>16,} in memory, {shard['host']}:{shard['process']}"
        )
        lines += [f"    {event}" for event in shard["events"]]
    lines += [f"  {day:28}{n:>16,} words" for day, n in found.get("words_by_day", {}).items()]
    tell(json_file, found, *lines)


@group.command()
def documents(
    memory_folder: Folder, model: Model = None, engine: Engine = None, json_file: JsonFile = None
) -> None:
    """List what was read: how many words are left of each document, since when, its name."""
    with opened(memory_folder, model, engine=engine) as memory:
        found = memory.documents()
    rows = [{"name": one.name, "words": one.words, "time": one.time.isoformat()} for one in found]
    lines = [f"{one.words:>12,}  {one.time:%Y-%m-%d %H:%M}  {one.name}" for one in found]
    tell(json_file, {"documents": rows}, *lines)


@group.command()
def forget(
    memory_folder: Folder,
    document: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What was read under this name, or from this file."),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DATE", help="What was read before, as in 2026-11-16.")
    ] = None,
    matching: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Lines in which a regular expression is found."),
    ] = None,
    last: int | None = size_or("none", "The last words read."),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    model: Model = None,
    engine: Engine = None,
    json_file: JsonFile = None,
) -> None:
    """Be as if some words had never been read; 'memory compact' takes them out of the files too."""
    try:
        when = None if before is None else datetime.fromisoformat(before)
    except ValueError:
        raise typer.BadParameter(f"{before!r} is not a date; write 2026-11-16") from None
    with (
        opened(memory_folder, model, engine=engine, write=True) as memory,
        late_meter("reading again") as show,
    ):
        named = document is None or any(one.name == document for one in memory.documents())
        gone = memory.forget(
            document if named or document is None else Path(document),
            before=when,
            matching=matching,
            last=last,
            dry_run=dry_run,
            show=show,
        )
        left = len(memory)
    line = f"{gone:,} words forgotten, {left:,} left; 'unbounded memory compact' empties the files"
    if dry_run:
        line = f"{gone:,} words would be forgotten, of {left:,}"
    tell(json_file, {"forgotten": gone, "entries": left}, line, err=True)


@group.command()
def undo(
    memory_folder: Folder, model: Model = None, engine: Engine = None, json_file: JsonFile = None
) -> None:
    """Take back the last read or forget; again, the one before, back to the last compact."""
    with (
        opened(memory_folder, model, engine=engine, write=True) as memory,
        late_meter("reading again") as show,
    ):
        verb, words = memory.undo(show=show)
        left = len(memory)
    became = "there again" if words > 0 else "gone"
    line = f"the last {verb} was taken back: {abs(words):,} words are {became}, {left:,} in all"
    tell(json_file, {"undone": verb, "words": words, "entries": left}, line, err=True)


@group.command()
def check(
    memory_folder: Folder,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read the whole journal again and compare.")
    ] = False,
    model: Model = None,
    engine: Engine = None,
    json_file: JsonFile = None,
) -> None:
    """Verify every checksum and the journal against the state; say what to do."""
    with opened(memory_folder, model, engine=engine) as memory, late_meter("reading again") as show:
        found = memory.check(deep=deep, show=show)
    findings = [str(finding) for finding in found]
    well = f"{memory_folder}: {len(memory):,} entries, all is well"
    tell(json_file, {"findings": findings}, *(findings or [well]))
    if found:
        raise typer.Exit(1)


@group.command()
def compact(
    memory_folder: Folder, model: Model = None, engine: Engine = None, json_file: JsonFile = None
) -> None:
    """Take what was forgotten out of the files, too; what is remembered stays as it is.

    After it nothing can be undone.
    """
    with opened(memory_folder, model, engine=engine, write=True) as memory:
        before, after = memory.compact()
    line = f"{memory_folder}: {before:,} bytes before, {after:,} after; nothing remembered is lost"
    tell(json_file, {"bytes_before": before, "bytes": after}, line, err=True)


@group.command()
def export(
    memory_folder: Folder,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Where to: .parquet, .csv, .jsonl, or - for JSON lines here."
        ),
    ],
    model: Model = None,
    engine: Engine = None,
    json_file: JsonFile = None,
) -> None:
    """Write every word with its document, line and time to a table, by the file's ending."""
    from unbounded.memory.log_contents import ENDINGS

    check_target(out, *ENDINGS)
    if str(out) == json_file == "-":
        raise SettingError("two things for standard output; give one of them a file")
    with opened(memory_folder, model, engine=engine) as memory:
        count = memory.export(str(out))
    tell(json_file, {"words": count}, f"wrote {out}: {count:,} words", err=True)


@group.command()
def backup(
    memory_folder: Folder,
    target: Annotated[Path, typer.Argument(metavar="DEST", help="Folder of the backup.")],
    json_file: JsonFile = None,
) -> None:
    """Copy a memory, also while it is written; run again, it brings what has come since.

    Consistent: all that was acknowledged when it began. Stopped in the middle, it goes on the next
    time. In the end every checksum of the copy is read. DEST is a memory of its own.
    """
    from unbounded.store.backup import backup as run

    _copy(run, memory_folder, target, json_file)


@group.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder of the backup.")],
    memory_folder: Annotated[
        Path, typer.Argument(metavar="MEMORY", help="Folder that does not exist yet.")
    ],
    json_file: JsonFile = None,
) -> None:
    """Make a memory from its backup; every checksum is read, of both."""
    from unbounded.store.backup import restore as run

    _copy(run, source, memory_folder, json_file)


def _copy(run: "Callable[..., Backup]", source: Path, target: Path, json_file: str | None) -> None:
    with late_meter("copying") as show:
        made = run(source, target, show=show)
    line = f"{target}: {made.words:,} words, {made.copied:,} bytes copied, verified"
    tell(json_file, {"words": made.words, "bytes_copied": made.copied}, line, err=True)


@group.command()
def move(
    source: Folder,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Folder of the memory to move to.")
    ],
    engine: Engine = None,
    model: Model = None,
    json_file: JsonFile = None,
) -> None:
    """Copy a memory onto shards, onto another number of them, or without --engine to one place.

    The journal is copied and read again; begun again, it goes on. MEMORY stays as it is.
    """
    from unbounded.memory.opening import move_memory

    with late_meter("reading again") as show:
        moved = move_memory(source, target, engine, model, show)
    line = f"{target}: {moved:,} entries, as in {source}; remove that when you like"
    tell(json_file, {"entries": moved}, line, err=True)
