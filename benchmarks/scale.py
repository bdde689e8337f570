"""A reader and its shards on paper: words a second where no machine here could measure them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbounded.datastore.auto import CANDIDATES
from unbounded.evaluation.tables import Grid, plain


@dataclass(frozen=True)
class Constants:
    """What was measured, in seconds and bytes; `fitted` takes them from its runs.

    A shard of n entries has 1.17 √n lists (counted at ten million) and looks at each centroid.
    """

    call: float
    """A block that is asked of shards which find nothing, however many queries it has."""
    shard: float
    """What each shard adds to that."""
    query: float
    """What each query adds to that, for each shard."""
    own: float
    """What the reader does for each word: its recent past, exactly, merging, handing on."""
    scan: float
    """An entry that a shard looks at."""
    fixed: float = 0.0
    """What a query costs a shard whatever it is asked for."""
    block: float = 0.0
    """What a block costs a shard however many queries it has: few of them share a list."""
    merge: float = 0.0
    """What each shard beyond the first adds to what the reader does for each word."""
    again: float = 0.0
    """The part of queries that each shard is asked again, for all k."""
    centroid: float = 2.4e-9
    """A centroid: 9 µs for 3,700 (docs/decisions.md, 36)."""
    width: int = 256
    reply: int = 8
    """Bytes of a neighbor on its way: distance and entry."""
    looked: int = CANDIDATES
    """Entries that a shard looks at for each neighbor it is asked for."""
    memory: int = 80
    """Bytes of an entry in a shard's memory, at most."""
    disk: int = 86
    """Bytes of an entry on disk: what its shard saved of it, and its word in the journal."""

    @staticmethod
    def fitted(figures: Mapping[str, Any]) -> "Constants":
        """The constants of a run on this machine."""
        entries, k = int(figures["entries"]), int(figures["k"])
        _, *spread = figures["rows"]
        calls, queries = [], []
        for row in spread:
            rates = {int(b): rate for b, rate in row["empty_queries_per_second"].items()}
            blocks = np.array(sorted(rates), float)
            # Seconds a block are call + block · query.
            each, call = np.polyfit(blocks, [block / rates[int(block)] for block in blocks], 1)
            calls.append(call)
            queries.append(each / row["shards"])
        shard, call = np.polyfit([row["shards"] for row in spread], calls, 1)
        looked_at = int(figures["looked_at"])
        # Seconds a query are those of a large block, and a part of what each block takes.
        once, alone = [], {}
        for count, took in figures["alone"].items():
            parts = [1 / int(block) for block in took]
            per_block, alone[int(count)] = np.polyfit(parts, [*took.values()], 1)
            once.append(per_block)
        looked = [looked_at * share_of(k, count) for count in alone]
        scanned = [each - _lists(entries / count) for count, each in alone.items()]
        scan, fixed = np.polyfit(looked, scanned, 1)
        query = max(float(np.mean(queries)), 0.0)
        rates = spread[0]["words_per_second"]
        asked = calls[0] / max(map(int, rates)) + query * spread[0]["shards"]
        parts = [row["asked_again"] / row["shards"] / figures["queries"] for row in spread[1:]]
        return Constants(
            call=max(float(call), 0.0),
            shard=max(float(shard), 0.0),
            query=query,
            own=max(_fastest(rates) - alone[1] - once[0] / max(map(int, rates)) - asked, 0.0),
            scan=max(float(scan), 0.0),
            fixed=max(float(fixed), 0.0),
            block=max(float(np.mean(once)), 0.0),
            merge=float(figures["merge"]),
            again=float(np.mean(parts)),
            looked=looked_at,
        )


def _lists(entries: float) -> float:
    """Seconds to look at every centroid of a shard."""
    return 1.17 * math.sqrt(entries) * Constants.centroid


def _fastest(rates: Mapping[Any, float]) -> float:
    """Seconds a word in the largest blocks."""
    return 1 / rates[max(rates, key=int)]


def share_of(k: int, shards: int) -> int:
    """How many neighbors a shard is asked for, as `Sharded` asks."""
    part = 1 / shards
    return min(k, math.ceil(k * part + 4 * math.sqrt(k * part * (1 - part))))


def words_per_second(
    constants: Constants,
    entries: int,
    shards: int,
    *,
    block: int = 1024,
    k: int = 1024,
    latency: float = 0.0,
    bandwidth: float = 1.25e9,
    jitter: float = 0.1,
    cores: int | None = None,
    rounds: int = 400,
    seed: int = 0,
) -> float:
    """What one reader gets of a memory of so many entries, block after block.

    A block waits for the slowest of all shards; `jitter` is the deviation of the logarithm of their
    times. `latency` is one way. With `cores`, so many are shared by all shards; otherwise
    each has one of its own.
    """
    random = np.random.default_rng(seed)
    share = share_of(k, shards)
    held = entries / shards
    each = _lists(held) + constants.fixed
    search = constants.block + block * (each + min(constants.looked * share, held) * constants.scan)
    if shards > 1:
        search += (
            block * constants.again * (each + min(constants.looked * k, held) * constants.scan)
        )
    if cores is not None:
        search *= max(1.0, shards / cores)
    there = block * constants.width * 4 / bandwidth
    # All answers come through the reader's one line.
    back = shards * block * share * constants.reply / bandwidth
    times = search * np.exp(random.normal(0, jitter, (rounds, shards)) - jitter**2 / 2)
    slowest = times.max(axis=1)
    here = block * (constants.own + (shards - 1) * constants.merge + shards * constants.query)
    took = slowest + 2 * latency + there + back + constants.call + shards * constants.shard + here
    return float(rounds * block / took.sum())


def machines(constants: Constants, entries: int, ram: float = 56e9) -> int:
    """How many machines of 64 GB, eight of them for the rest, hold so many entries."""
    return max(1, math.ceil(entries * constants.memory / ram))


def scale_grids(figures: Mapping[str, Any]) -> list[Grid]:
    """The tables of docs/scale.md: how far it would go, and the model beside what was measured."""
    constants = Constants.fitted(figures)
    far = []
    for power in (8, 9, 10):
        entries = 10**power
        many = machines(constants, entries)
        rates = [words_per_second(constants, entries, many, latency=ms / 1e3) for ms in (0.2, 1, 5)]
        wide = words_per_second(constants, entries, 4 * many, latency=0.0002)
        room = f"{entries * constants.memory / 1e9:,.0f} GB"
        disk = f"{entries * constants.disk / 1e12:,.1f} TB"
        cost = f"{many * 1e6 / rates[0] / 3600:.2f}"
        cells = [room, disk, str(many), *(f"{rate:,.0f}" for rate in (*rates, wide)), cost]
        far.append((f"10^{power}", cells))
    near = []
    for row in figures["rows"][1:]:
        for block, there in row["words_per_second"].items():
            paper = words_per_second(
                constants, figures["entries"], row["shards"], block=int(block), cores=1
            )
            cells = [f"{there:,.0f}", f"{paper:,.0f}", f"{paper / there:.2f}"]
            near.append((f"{row['name']}, blocks of {block}", cells))
    ways = ("0.2 ms away", "1 ms", "5 ms", "four times the shards, 0.2 ms", "cost of 1M words")
    return [
        plain("Words a second", ("entries", "in memory", "on disk", "machines", *ways), far),
        plain("One core for all shards", ("", "measured", "on paper", "times"), near),
    ]
