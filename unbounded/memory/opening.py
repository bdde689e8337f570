"""Opening a memory, making one, moving one: in this process or on disk, with shards or without.

Names of memories are for whoever keeps several in one folder and lets others choose them.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

from unbounded.cluster import Address, Engine, Way, connected
from unbounded.cluster.connecting import SHARDS
from unbounded.cluster.engine import LIMIT, PATIENCE
from unbounded.errors import SettingError, StoreError, check_type
from unbounded.experts import Kernel
from unbounded.lm import Pretrained, load_model
from unbounded.lm.huggingface import is_transformer
from unbounded.lm.model_folder import DEFAULT, located
from unbounded.memory.checkpointing import Show, unheard
from unbounded.memory.forgetting import Budget
from unbounded.memory.local import LocalBackend
from unbounded.memory.memory import Memory
from unbounded.presets import PAPER, MemoryConfig, Recipe, first_edition, recipe_for
from unbounded.store import Disk, InProcess, RealDisk, Store
from unbounded.store.backup import backup
from unbounded.store.layout import FORMAT, is_new, read_about, write_about
from unbounded.store.store import create

WHEN_UNAVAILABLE = ("stop", "go-on")

OLD_SHARDS = "spread.json"
"""What makes a folder that of a memory whose shards had journals of their own."""


def open(
    path: str | Path | None = None,
    model: Pretrained | str | Path | None = None,
    *,
    engine: str | None = None,
    mode: str = "write",
    preset: str | Sequence[str] | None = None,
    config: MemoryConfig | None = None,
    budget: Budget | None = None,
    show: Show = unheard,
    disk: Disk | None = None,
    threads: int = 1,
    when_unavailable: str = "stop",
    patience: float = PATIENCE,
    queue_bytes: int = LIMIT,
    say: Callable[[str], None] = lambda line: None,
) -> Memory:
    """Open a memory, and make it if there is none; `with unbounded.open(…) as memory` closes it.

    Without a path it lies in this process and ends with it; with one it is on disk. With an
    `engine`, an address such as `ray://HOST:PORT`, its largest table, the keys of the unbounded
    cache, lies on shards there; all else is as without. A memory belongs to the model that made it,
    and remembers where that was; `recorded` says when that is enough. A new one without a model has
    the small default that comes with the package. `preset`, a name of `PRESETS` or a list of
    experts (`full` if none is given), `config` and `budget` are for a new memory: they stay.

    On disk, `mode` is `write`, of which there can be one at a time, or `read`, and `show` hears how
    much had to be read again. If shards are unavailable for `patience` seconds, reading stops, or
    with `when_unavailable="go-on"` goes on without them, and `say` is told: what they miss waits
    here, up to `queue_bytes`, and is told them when they are back.
    """
    if mode not in ("write", "read"):
        raise SettingError(f"mode {mode!r} is unknown; use write or read")
    if when_unavailable not in WHEN_UNAVAILABLE:
        raise SettingError(
            f"{when_unavailable!r} when shards are unavailable; use {' or '.join(WHEN_UNAVAILABLE)}"
        )
    check_type(budget, "budget", Budget, NoneType, needed="a Budget, such as Budget(1_000_000)")
    if preset == "paper" and config is None:
        config = PAPER
    folder = None if path is None else expanded(path, "path")
    given = model if model is None or isinstance(model, Pretrained) else expanded(model, "model")
    way = Way(patience, when_unavailable == "go-on", queue_bytes, say)
    if engine is not None:
        Address.parse(engine)
        if folder is None:
            raise SettingError("a memory on shards has a folder for its journal; give a path")
    if folder is None:
        if mode == "read":
            raise SettingError("a memory of this process is new; leave out the mode")
        loaded, _ = _loaded(given or DEFAULT)
        recipe = recipe_for(loaded, preset or "full")
        backend = LocalBackend(InProcess(), loaded, config or MemoryConfig(), recipe, budget)
        return Memory(backend, loaded)
    asked = preset, config, budget
    start = None if engine is None else partial(_started, engine, way, threads)
    return _open_on_disk(folder, given, mode, *asked, show, disk or RealDisk(), start)


def _started(
    engine: str,
    way: Way,
    threads: int,
    folder: Path,
    about: Mapping[str, Any],
    model: Pretrained,
    config: MemoryConfig,
) -> Engine:
    """The shards of a memory."""
    asked, had = Address.parse(engine).shards, about.get("shards")
    if had is not None and asked not in (None, had):
        raise SettingError(
            f"{folder} has {had} shards, not {asked}; leave ?shards= out, or move it: "
            f"'unbounded memory move {folder} NEW --engine …'"
        )
    described = {
        "memory": about["id"],
        "model": model.fingerprint,
        "width": model.lm.key_width,
        "index": config.index,
        "shards": had or asked or SHARDS,
    }
    return connected(folder, engine, described, way, threads=threads)


def _open_on_disk(
    folder: Path,
    model: Pretrained | Path | None,
    mode: str,
    preset: str | Sequence[str] | None,
    config: MemoryConfig | None,
    budget: Budget | None,
    show: Show,
    disk: Disk,
    start: Callable[..., Engine] | None,
) -> Memory:
    try:
        _check_not_old(folder)
        if is_new(folder):
            if mode == "read":
                raise StoreError(f"{folder} is not a memory yet; read a text into it first")
            model, where = _loaded(model or DEFAULT)
            recipe = recipe_for(model, preset or "full")
            create(folder, _about(model, where, config or MemoryConfig(), recipe, budget), disk)
        about = read_about(folder)
        _check_place(folder, about, start is not None, mode)
        model = _checked(folder, about, model)
        kept, limit = _config(folder, about, config), _budget(folder, about, budget)
        recipe = _recipe(folder, about, model, preset)
        store = Store(folder, write=mode == "write", disk=disk)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be opened ({error.strerror}); choose another place"
            + ("" if mode == "read" else ", or open it for reading")
        ) from error
    shards = None
    try:
        shards = None if start is None else start(folder, store.about, model, kept)
        write = mode == "write"
        backend = LocalBackend(
            store, model, kept, recipe, limit, write=write, show=show, shards=shards
        )
        if backend.writes and store.old:
            _renew(backend, store)
        if backend.writes and shards is not None and store.about.get("shards") is None:
            _bring_onto(backend, store, shards)
        return Memory(backend, model)
    except BaseException:
        store.close()
        if shards is not None:
            shards.close()
        raise


def move_memory(
    source: Path,
    target: Path,
    engine: str | None,
    model: Path | None = None,
    show: Show = unheard,
) -> int:
    """Copy a memory to another folder, with its keys on these shards, or on none; its entries.

    The journal is copied and verified, and what it holds is read again. Begun again after it was
    stopped, it goes on. The source stays as it is.
    """
    if source.absolute() == target.absolute():
        raise SettingError(f"{source} cannot be moved onto itself; give another folder")
    backup(source, target)
    about = read_about(target)
    if about.get("shards") is not None:
        write_about(RealDisk(), target, {**about, "shards": None})
    with open(target, model, engine=engine, show=show) as memory:
        return len(memory)


def _check_not_old(folder: Path) -> None:
    if (folder / OLD_SHARDS).exists():
        raise StoreError(
            f"{folder} is on shards that have journals of their own, as once they had; bring it to "
            "one place with the version that made it ('unbounded memory move … --one-place'), then "
            "open that with --engine"
        )


def _check_place(folder: Path, about: Mapping[str, Any], sharded: bool, mode: str) -> None:
    """Refuse to make the whole index anew, or elsewhere, for who only forgot to say where it is."""
    count = about.get("shards")
    if count is not None and not sharded:
        raise StoreError(
            f"{folder} has its keys on {count} shards; give the engine (--engine, or engine=), or "
            f"bring them to one place: 'unbounded memory move {folder} NEW'"
        )
    if count is None and sharded and mode == "read" and not is_new(folder):
        raise StoreError(
            f"{folder} is not on shards; leave the engine out, or read into it with the engine, "
            "which brings it there"
        )


def _bring_onto(backend: LocalBackend, store: Store, shards: Engine) -> None:
    """From now on the memory is on shards: its index was just made there."""
    if len(store.snapshots()):
        backend.events.append(f"{store.folder} was brought onto {shards.count} shards")
    store.about = {**store.about, "shards": shards.count}
    write_about(store.disk, store.folder, store.about)
    backend.snapshot()


def expanded(path: str | Path, name: str) -> Path:
    """A path, its `~` expanded; refuses what is none."""
    check_type(path, name, str, Path, needed="a str or a Path")
    return Path(path).expanduser()


def _renew(backend: LocalBackend, store: Store) -> None:
    """Bring a memory of format 1 to the present one; if there is no room, the next time."""
    try:
        store.renew()
        backend.compact()
    except (StoreError, OSError) as error:
        backend.events.append(f"{store.folder} stays in format 1 for now ({error})")
    else:
        backend.events.append(f"{store.folder} was brought from format 1 to {FORMAT}")


def _about(
    model: Pretrained,
    where: str | None,
    config: MemoryConfig,
    recipe: Recipe,
    budget: Budget | None,
) -> dict[str, Any]:
    return {
        "model": {"fingerprint": model.fingerprint, "path": where},
        "recipe": asdict(recipe),
        "settings": asdict(config),
        "budget": None if budget is None else asdict(budget),
        "created": int(time.time()),
    }


def _loaded(model: Pretrained | str | Path) -> tuple[Pretrained, str | None]:
    if isinstance(model, Pretrained):
        return model, None if model.folder is None else _where(model.folder)
    return load_model(Path(model)), _where(Path(model))


def _where(path: Path) -> str:
    """What a memory notes down; a model by name, such as smollm2, is found by that name."""
    named = str(path) == DEFAULT or not path.exists()
    return str(path if named else path.absolute())


def _checked(
    folder: Path, about: dict[str, Any], model: Pretrained | str | Path | None
) -> Pretrained:
    """The model, if it is the one that the memory belongs to."""
    found = _loaded(recorded(folder, about["model"]["path"]) if model is None else model)[0]
    if found.fingerprint != about["model"]["fingerprint"]:
        where = about["model"]["path"]
        raise StoreError(
            f"{folder} belongs to another model{f' ({where})' if where else ''}; give that one, "
            "or another folder for a new memory"
        )
    return found


def recorded(folder: Path, where: str | None) -> Path:
    """Where the model of a memory is, by its own word: only a recurrent one of ours.

    Such a folder is numbers and words. What `transformers` opens is opened only if it was named by
    who asks: a memory may be a gift, and says what its giver wrote.
    """
    if where is not None and is_transformer(Path(where)):
        raise StoreError(
            f"{folder} belongs to {where!r}, a model of transformers, which no memory may choose; "
            "name it yourself: --model, or model="
        )
    if where is None or not located(Path(where)).exists():
        was = "" if where is None else f" (it was {where!r})"
        raise StoreError(
            f"{folder} belongs to a model that is not there{was}; give the model: "
            "--model, or model="
        )
    return Path(where)


def _config(folder: Path, about: dict[str, Any], asked: MemoryConfig | None) -> MemoryConfig:
    """The settings that the memory was made with; refuses to be asked for others."""
    # Until 0.3 eight were looked at, and such a memory learned from what was found.
    had = {"candidates": 8, **about["settings"]}
    for name in ("kernel", "local_kernel"):
        if had[name] is not None:
            had[name] = Kernel(**had[name])
    config = MemoryConfig(**had)
    if asked is not None and replace(asked, candidates=config.candidates) != config:
        raise SettingError(
            f"{folder} was made with {config}; its settings stay: leave them out, or make another"
        )
    return config


def _recipe(
    folder: Path, about: dict[str, Any], model: Pretrained, preset: str | Sequence[str] | None
) -> Recipe:
    """What the memory is made of; refuses to be asked for something else."""
    had = first_edition(model)
    if (said := about.get("recipe")) is not None:
        edition = said.get("spelling", 1)
        had = Recipe(tuple(said["experts"]), said["mixture"], said["oov"], edition)
    if preset is not None and recipe_for(model, preset) != had:
        raise SettingError(
            f"{folder} is made of {', '.join(had.experts)}; that stays: leave the preset out, or "
            "make another memory"
        )
    return had


def _budget(folder: Path, about: dict[str, Any], asked: Budget | None) -> Budget | None:
    """The budget that the memory was made with; refuses to be asked for another."""
    had = None if about["budget"] is None else Budget(**about["budget"])
    if asked is not None and asked != had:
        raise SettingError(
            f"{folder} was made with {had or 'no budget'}; that stays: leave it out, or make "
            "another memory"
        )
    return had


PATTERN = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
"""Letters, digits, `-` and `_`, and single dots between them."""

LONGEST = 64


def is_name(name: str) -> bool:
    """Whether it can only be that of a folder just below: never one above, hidden or nested."""
    return len(name) <= LONGEST and re.fullmatch(PATTERN.strip("^$"), name) is not None


def checked_name(name: str) -> str:
    """The name, if it is one.

    >>> checked_name("notes-2026.v2")
    'notes-2026.v2'
    """
    if not is_name(name):
        shown = name if len(name) <= LONGEST else name[:LONGEST] + "…"
        raise SettingError(
            f"{shown!r} is no name for a memory; use up to {LONGEST} letters, digits, '-', '_' and "
            "single '.' between them"
        )
    return name
