"""Opening a memory, or making one: in this process, on disk or on shards, for one model.

Names of memories are for whoever keeps several in one folder and lets others choose them.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unbounded.cluster import Address
from unbounded.cluster.connecting import apart as connected_apart
from unbounded.cluster.connecting import described
from unbounded.cluster.connecting import opened as connected
from unbounded.cluster.engine import PATIENCE
from unbounded.cluster.queue import LIMIT, own_queue, some_waits
from unbounded.cluster.rpc_client import drain
from unbounded.errors import SettingError, StoreError
from unbounded.experts import Kernel
from unbounded.lm import Pretrained, load_model
from unbounded.lm.huggingface import is_transformer
from unbounded.lm.model_folder import DEFAULT, located
from unbounded.memory.backend import Show, unheard
from unbounded.memory.budget import Budget
from unbounded.memory.local import LocalBackend
from unbounded.memory.memory import Memory
from unbounded.memory.shards import ShardedBackend
from unbounded.presets import PAPER, MemoryConfig, Recipe, first_edition, recipe_for
from unbounded.store import Disk, InProcess, RealDisk, Store
from unbounded.store.layout import FORMAT, is_new, read_about
from unbounded.store.store import create

WHEN_UNAVAILABLE = ("stop", "queue")


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

    Without a path it lies in this process and ends with it; with one it is on disk; with an
    `engine`, an address such as `ray://HOST:PORT`, it is on shards. A memory belongs to the model
    that made it, and remembers where that was; `recorded` says when that is enough. A new one
    without a model has the small default that comes with the package. `preset`, a name of `PRESETS`
    or a list of experts (`full` if none is given), `config` and `budget` are for a new memory: they
    stay.

    On disk, `mode` is `write`, of which there can be one at a time, or `read`, and `show` hears how
    much had to be read again. On shards, if some are unavailable for `patience` seconds, reading
    stops, or with `when_unavailable="queue"` goes on without them: what they miss waits on disk, up
    to `queue_bytes`, and `say` is told. It is handed on when they are back, or when the memory is
    next opened from this machine.
    """
    if mode not in ("write", "read"):
        raise SettingError(f"mode {mode!r} is unknown; use write or read")
    if when_unavailable not in WHEN_UNAVAILABLE:
        raise SettingError(
            f"{when_unavailable!r} when shards are unavailable; use {' or '.join(WHEN_UNAVAILABLE)}"
        )
    if preset == "paper" and config is None:
        config = PAPER
    folder = None if path is None else expanded(path, "path")
    given = model if model is None or isinstance(model, Pretrained) else expanded(model, "model")
    if engine is not None:
        if folder is None or budget is not None or preset is not None or mode == "read":
            raise SettingError(
                "a memory on shards has a path, no budget, no preset and no mode; give a folder "
                "that all machines see"
            )
        return open_on_shards(
            *(folder, engine, given, config),
            threads=threads,
            queues=when_unavailable == "queue",
            patience=patience,
            queue_bytes=queue_bytes,
            say=say,
        )
    if folder is None:
        if mode == "read":
            raise SettingError("a memory of this process is new; leave out the mode")
        loaded, _ = _loaded(given or DEFAULT)
        recipe = recipe_for(loaded, preset or "full")
        backend = LocalBackend(InProcess(), loaded, config or MemoryConfig(), recipe, budget)
        return Memory(backend, loaded)
    return _open_on_disk(folder, given, mode, preset, config, budget, show, disk or RealDisk())


def _open_on_disk(
    folder: Path,
    model: Pretrained | Path | None,
    mode: str,
    preset: str | Sequence[str] | None,
    config: MemoryConfig | None,
    budget: Budget | None,
    show: Show,
    disk: Disk,
) -> Memory:
    try:
        if is_new(folder):
            if mode == "read":
                raise StoreError(f"{folder} is not a memory yet; read a text into it first")
            model, where = _loaded(model or DEFAULT)
            recipe = recipe_for(model, preset or "full")
            create(folder, _about(model, where, config or MemoryConfig(), recipe, budget), disk)
        about = read_about(folder)
        model = _checked(folder, about, model)
        kept, limit = _config(folder, about, config), _budget(folder, about, budget)
        recipe = _recipe(folder, about, model, preset)
        store = Store(folder, write=mode == "write", disk=disk)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be opened ({error.strerror}); choose another place"
            + ("" if mode == "read" else ", or open it for reading")
        ) from error
    try:
        backend = LocalBackend(store, model, kept, recipe, limit, write=mode == "write", show=show)
        if backend.writes and store.old:
            _renew(backend, store)
        return Memory(backend, model)
    except BaseException:
        store.close()
        raise


def open_on_shards(
    folder: Path,
    engine: str,
    model: Pretrained | Path | None,
    config: MemoryConfig | None,
    *,
    threads: int,
    queues: bool,
    patience: float,
    queue_bytes: int,
    say: Callable[[str], None],
) -> Memory:
    """Open a memory on the shards of an engine, and make it if there is none."""
    Address.parse(engine)
    had = described(folder)
    if model is None:
        model = Path(DEFAULT) if had is None else recorded(folder, had["path"])
    loaded, where = _loaded(model)
    config = config or MemoryConfig(**({} if had is None else had["settings"]))
    if config.kernel is not None or config.local_kernel is not None:
        raise SettingError("a memory on shards learns its kernels; leave the kernel out")
    about = {
        "width": loaded.lm.key_width,
        "index": config.index,
        "exact": None,
        "model": loaded.fingerprint,
        # Another machine may have the same model elsewhere.
        "path": where if had is None else had["path"],
        "settings": asdict(config),
    }
    join = connected_apart if queues else connected
    shards = join(folder, engine, about, threads=threads, patience=patience)
    queue = None
    if queues or some_waits(folder):
        known = {name: about[name] for name in ("model", "width")}
        queue = own_queue(folder, {**known, "shards": shards.count}, queue_bytes)
        for event in queue.events:
            say(event)
    if queue is not None and not queues:
        drain(shards, queue, patience, say)
        queue.close()
        queue = None
    backend = ShardedBackend(
        folder, shards, loaded, config, patience=patience, queue=queue, say=say
    )
    return Memory(backend, loaded)


def expanded(path: str | Path, name: str) -> Path:
    """A path, its `~` expanded; refuses what is none."""
    if not isinstance(path, str | Path):
        raise SettingError(f"{name} is of type {type(path).__name__}; give a str or a Path")
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
    had = dict(about["settings"])
    for name in ("kernel", "local_kernel"):
        if had[name] is not None:
            had[name] = Kernel(**had[name])
    config = MemoryConfig(**had)
    if asked is not None and asked != config:
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
