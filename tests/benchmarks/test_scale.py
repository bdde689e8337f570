import math
from typing import Any

import pytest

from benchmarks.scale import Constants, machines, share_of, words_per_second

SOME = Constants(
    call=0.002,
    shard=0.001,
    query=5e-6,
    own=1e-5,
    scan=2e-9,
    fixed=1e-5,
    block=0.003,
    again=0.1,
    merge=3e-6,
)


def test_without_jitter_it_is_the_sum_of_its_parts() -> None:
    rate = words_per_second(SOME, 10**6, 1, block=100, jitter=0.0, bandwidth=math.inf)
    lists = 1.17 * 1000 * SOME.centroid
    search = lists + SOME.fixed + SOME.looked * 1024 * SOME.scan
    asked = SOME.query + (SOME.call + SOME.shard + SOME.block) / 100
    assert rate == pytest.approx(1 / (search + SOME.own + asked))


def test_far_shards_cost_more_and_large_blocks_make_up_for_it() -> None:
    near, far = (words_per_second(SOME, 10**8, 4, latency=away) for away in (0.0002, 0.005))
    assert far < near
    small, large = (
        words_per_second(SOME, 10**8, 4, block=block, latency=0.005) for block in (64, 8192)
    )
    assert large > 2 * small


def test_constants_come_back_from_figures_that_were_made_with_them() -> None:
    blocks = (64, 256, 1024)

    def search(shards: int, block: int) -> float:
        lists = 1.17 * math.sqrt(10**6 / shards) * SOME.centroid
        scanned = SOME.looked * share_of(1024, shards) * SOME.scan
        return lists + SOME.fixed + scanned + SOME.block / block

    def asked(shards: int, block: int) -> float:
        return (SOME.call + shards * SOME.shard) / block + shards * SOME.query

    rows: list[dict[str, Any]] = [{"shards": 0}]
    rows += [
        {
            "shards": shards,
            "words_per_second": {
                b: 1 / (search(shards, b) + SOME.own + asked(shards, b)) for b in blocks
            },
            "empty_queries_per_second": {b: 1 / asked(shards, b) for b in blocks},
            "asked_again": 0.1 * shards * 1000,
        }
        for shards in (1, 2, 4)
    ]
    figures = {"entries": 10**6, "k": 1024, "queries": 1000, "merge": 3e-6, "rows": rows}
    figures["looked_at"] = SOME.looked
    figures["alone"] = {
        str(shards): {str(block): search(shards, block) for block in blocks} for shards in (1, 2, 4)
    }
    found = Constants.fitted(figures)
    names = ("call", "shard", "query", "own", "scan", "fixed", "block", "again", "merge", "looked")
    for name in names:
        assert getattr(found, name) == pytest.approx(getattr(SOME, name))


def test_shares_and_machines() -> None:
    assert share_of(1024, 1) == 1024
    assert 256 < share_of(1024, 4) < 400
    assert machines(SOME, 10**10) == 15
