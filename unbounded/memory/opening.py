"""Opening a memory, or making one: for one model, and with settings that stay."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unbounded.errors import SettingError, StoreError
from unbounded.experts import Kernel
from unbounded.lm import Pretrained, load_model
from unbounded.lm.huggingface import is_transformer
from unbounded.memory.budget import Budget
from unbounded.memory.memory import Memory
from unbounded.memory.restoring import Show
from unbounded.presets import MemoryConfig
from unbounded.store import Disk, RealDisk, Store
from unbounded.store.layout import FORMAT, is_new, read_about
from unbounded.store.store import create


def open(
    path: str | Path,
    model: Pretrained | str | Path | None = None,
    *,
    mode: str = "write",
    config: MemoryConfig | None = None,
    budget: Budget | None = None,
    show: Show = lambda done, total: None,
    disk: Disk | None = None,
) -> Memory:
    """Open a memory, and make it if there is none; `with unbounded.open(…) as memory` closes it.

    A memory belongs to the model that made it, and remembers where that was; `recorded` says when
    that is enough. `mode` is `write`, of which there can be one at a time, or `read`. `config` and
    `budget` are for a new memory: they stay. `show` hears how much had to be read again.
    """
    folder, disk = Path(path), disk or RealDisk()
    if mode not in ("write", "read"):
        raise SettingError(f"mode {mode!r} is unknown; use write or read")
    try:
        if is_new(folder):
            if mode == "read":
                raise StoreError(f"{folder} is not a memory yet; read a text into it first")
            if model is None:
                raise StoreError(f"{folder} is not a memory yet, and a new one needs a model")
            model, where = _loaded(model)
            create(folder, _about(model, where, config or MemoryConfig(), budget), disk)
        about = read_about(folder)
        model = _checked(folder, about, model)
        kept, limit = _config(folder, about, config), _budget(folder, about, budget)
        store = Store(folder, write=mode == "write", disk=disk)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be opened ({error.strerror}); choose another place"
            + ("" if mode == "read" else ", or open it for reading")
        ) from error
    try:
        memory = Memory(store, model, kept, limit, write=mode == "write", show=show)
        if memory.writes and store.old:
            _renew(memory)
        return memory
    except BaseException:
        store.close()
        raise


def _renew(memory: Memory) -> None:
    """Bring a memory of format 1 to the present one; if there is no room, the next time."""
    folder = memory.store.folder
    try:
        memory.store.renew()
        memory.compact()
    except (StoreError, OSError) as error:
        memory.events.append(f"{folder} stays in format 1 for now ({error})")
    else:
        memory.events.append(f"{folder} was brought from format 1 to {FORMAT}")


def _about(
    model: Pretrained, where: str | None, config: MemoryConfig, budget: Budget | None
) -> dict[str, Any]:
    return {
        "model": {"fingerprint": model.fingerprint, "path": where},
        "settings": asdict(config),
        "budget": None if budget is None else asdict(budget),
        "created": int(time.time()),
    }


def _loaded(model: Pretrained | str | Path) -> tuple[Pretrained, str | None]:
    if isinstance(model, Pretrained):
        return model, None if model.folder is None else str(model.folder.absolute())
    path = Path(model)
    # A model by name, such as smollm2, is found by that name and not in some folder.
    return load_model(path), str(path.absolute() if path.exists() else path)


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
    if where is None or not Path(where).exists():
        was = "" if where is None else f" (it was {where!r})"
        raise StoreError(f"{folder} belongs to a model that is not there{was}; give the model")
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


def _budget(folder: Path, about: dict[str, Any], asked: Budget | None) -> Budget | None:
    """The budget that the memory was made with; refuses to be asked for another."""
    had = None if about["budget"] is None else Budget(**about["budget"])
    if asked is not None and asked != had:
        raise SettingError(
            f"{folder} was made with {had or 'no budget'}; that stays: leave it out, or make "
            "another memory"
        )
    return had
