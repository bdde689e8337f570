"""What there is, and whether all of it is as it should be."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from unbounded.errors import SettingError
from unbounded.experts import Cache
from unbounded.memory.checkpointing import Show, read_again
from unbounded.memory.forgetting import Budget
from unbounded.memory.learned import LearnedState
from unbounded.store import Store, TextLog
from unbounded.store.deltas import damage
from unbounded.store.layout import delta_paths, path_bytes, snapshot_paths
from unbounded.store.snapshot import read_arrays


@dataclass(frozen=True)
class Finding:
    """Something that is wrong: where, what, and what to do."""

    where: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.advice}"


_ANEW = "remove its snapshots: they are made again from the journal"


def stats(store: TextLog, learned: LearnedState, budget: Budget | None) -> dict[str, Any]:
    """Entries, words, documents, bytes by part, growth by day."""
    catalog, vocabulary = store.catalog, learned.online.vocabulary
    caches = {n: e for n, e in learned.online.experts.items() if isinstance(e, Cache)}
    first, times = catalog.times()
    lengths = np.diff(np.append(first, catalog.positions))
    days: dict[str, int] = {}
    for when, words in zip(times.tolist(), lengths.tolist(), strict=True):
        day = datetime.fromtimestamp(when, UTC).date().isoformat()
        days[day] = days.get(day, 0) + words
    return {
        "entries": catalog.entries,
        "words": len(vocabulary),
        "words_read": catalog.entries,
        "vocabulary": len(vocabulary),
        "documents": int((catalog.words_left() > 0).sum()),
        "bytes_in_memory": {
            **{name: cache.datastore.bytes for name, cache in caches.items()},
            "catalog": catalog.bytes,
        },
        "forgotten": catalog.gone,
        "oov": len(vocabulary) - vocabulary.base_size,
        "words_by_day": dict(sorted(days.items())),
        "budget": None if budget is None else asdict(budget),
        **(_on_disk(store) if isinstance(store, Store) else _IN_PROCESS),
    }


_IN_PROCESS: dict[str, Any] = {"bytes": 0, "bytes_by_part": {}, "snapshots": [], "format": None}


def _on_disk(store: Store) -> dict[str, Any]:
    snapshots = snapshot_paths(store.folder, store.generation)
    deltas = delta_paths(store.folder, store.generation)
    parts = {
        "journal": path_bytes(store.path),
        "snapshots": sum(map(path_bytes, snapshots)),
        "deltas": sum(map(path_bytes, deltas)),
    }
    parts["other"] = max(0, store.bytes - sum(parts.values()))
    return {
        "bytes": sum(parts.values()),
        "bytes_by_part": parts,
        "snapshots": [path.name for path in snapshots],
        "format": store.about["format"],
        "id": store.about.get("id"),
    }


def timestamp(time: datetime) -> float:
    """Seconds since 1970, of a time that is in the calendar wherever it is shown."""
    try:
        return datetime.fromtimestamp(time.timestamp(), UTC).timestamp()
    except (OverflowError, ValueError):
        raise SettingError(
            f"the time {time} is outside of the years 1 to 9999 of UTC; give one inside"
        ) from None


def check(
    store: TextLog, learned: LearnedState, fresh: Callable[[], LearnedState] | None, show: Show
) -> list[Finding]:
    """Every checksum again, the log against the state; with `fresh` the state from scratch."""
    found = _check_files(store) if isinstance(store, Store) else []
    entries, where = store.catalog.entries, str(store.folder)
    for name, expert in learned.online.experts.items():
        if isinstance(expert, Cache) and expert.datastore.added != entries:
            what = f"{name} has seen {expert.datastore.added:,} entries, the journal {entries:,}"
            found.append(Finding(where, what, _ANEW))
    unigram = learned.online.experts.get("unigram")
    counted = entries if unigram is None else int(unigram.state()["counts"].sum())
    if counted != entries:
        found.append(Finding(where, f"{counted:,} words counted, {entries:,} read", _ANEW))
    if fresh is not None:
        found += _compare(store, learned, fresh(), show)
    return found


def _check_files(store: Store) -> list[Finding]:
    found: list[Finding] = []
    records = store.verify()
    if records != store.records:
        what = f"{records:,} records can be read of {store.records:,}"
        found.append(Finding(str(store.path), what, "restore it from a copy"))
    for path in snapshot_paths(store.folder, store.generation):
        try:
            read_arrays(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError) as error:
            advice = "remove that folder: it is made again from the journal"
            found.append(Finding(str(path), f"damaged ({error})", advice))
    for path in delta_paths(store.folder, store.generation):
        if (what_is := damage(path)) is not None:
            advice = "remove that file: what it holds is read again from the journal"
            found.append(Finding(str(path), what_is, advice))
    return found


def _compare(
    store: TextLog, learned: LearnedState, other: LearnedState, show: Show
) -> list[Finding]:
    """Read the whole journal again; the state must be the same, to the bit."""
    read_again(store, other, None, lambda done: show(done, store.catalog.entries))
    mine, again = learned.state(), other.state()
    return [
        Finding(
            str(store.folder),
            f"{name} is not what reading the journal again gives",
            _ANEW,
        )
        for name in mine
        if not name.endswith("header") and not _equal(mine[name], again[name])
    ]


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()
