"""What every test may use: a toy network without torch, and how hard to try to break things."""

import os
import signal
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from tests import shape_checks as shape_checks
from tests import tiers
from tests.toy import ToyModel
from unbounded import _native, states
from unbounded.memory import checkpointing

settings.register_profile("check", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True)
settings.load_profile("ci")

# Behind an `&` the shell has Ctrl-C ignored, and what is started from there would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=_native.isas(), scope="module")
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that can be used here, one after the other."""
    before = _native.isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of tests are made up: what follows from one is not kept for another."""
    monkeypatch.setattr(states, "WORTH_KEEPING", float("inf"))


@pytest.fixture(autouse=True)
def every_memory_is_worth_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories of tests are small; their checkpoints are to be broken all the same."""
    monkeypatch.setattr(checkpointing, "FEWEST_WORDS", 0)


@pytest.fixture
def toy() -> ToyModel:
    return ToyModel(base_size=12, width=5)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", help="where the shards of the service's memories lie")
    parser.addoption(
        "--torture", action="store_true", help="attack with all cases, not with a sample of them"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A seed for all of hypothesis, so that a failure can be played again from its number."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(seed_for(config, "hypothesis"))


def seed_for(config: pytest.Config, name: str) -> int:
    """In CI the same each time: what passed passes again, and new cases are for who works here."""
    if config.getoption("--hypothesis-profile") == "ci" and not config.getoption("--torture"):
        return zlib.crc32(name.encode())
    return int(np.random.default_rng().integers(1 << 30))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes give a case no name: compressed ones hold the time, and processes would not agree."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        tiers.mark(item)
        if config.getoption("--hypothesis-profile") == "check":
            tiers.shrink(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not item.get_closest_marker("contended") or item.config.getoption("--torture"):
        return None
    tiers.run_twice(item, nextitem)
    return True


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None


@dataclass
class Torture:
    """How many cases to try, from which seed; `tell` puts a row into the table at the end."""

    whole: bool
    seed: int
    tell: Callable[[str, str, int], None]
    """Told what was done, where, and how often."""
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def cases(self, sample: int, whole: int) -> int:
        """So many in CI, so many under `make torture`."""
        return whole if self.whole else sample


@pytest.fixture
def torture(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Torture:
    seed = int(os.environ.get("TORTURE_SEED", 0)) or seed_for(request.config, request.node.nodeid)
    record_property("seed", seed)
    # Shown where a test fails.
    print(f"TORTURE_SEED={seed}")

    def tell(what: str, where: str, cases: int) -> None:
        record_property("row", [what, where, cases])

    return Torture(request.config.getoption("--torture"), seed, tell)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How to play failures again, what was run a second time, and the table of `make torture`."""
    stats = terminalreporter.stats
    if again := stats.get("rerun", []):
        terminalreporter.section("run a second time, for they failed the first", yellow=True)
        for report in again:
            terminalreporter.write_line(f"{report.nodeid}\n{report.longreprtext[-400:]}")
    if stats.get("failed") or stats.get("error") or again:
        seed = f"--hypothesis-seed={config.option.hypothesis_seed}"
        kills = "; kills and attacks: the TORTURE_SEED that the test printed"
        terminalreporter.write_line(f"to play it again: pytest {seed}{kills}", yellow=True)
    if config.getoption("--torture"):
        _attacks(terminalreporter)


def _attacks(terminalreporter: Any) -> None:
    out = terminalreporter.write_line
    out("| attack | where | cases | result | seconds | seed |")
    out("|---|---|--:|---|--:|--:|")
    for result in ("passed", "failed"):
        for report in terminalreporter.stats.get(result, []):
            known = dict(report.user_properties)
            rows = [value for name, value in report.user_properties if name == "row"]
            for row in rows or ([[report.nodeid, "", 0]] if "seed" in known else []):
                what, where, cases = row
                cells = f"{cases:,} | {result} | {report.duration:.0f} | {known['seed']}"
                out(f"| {what} | {where} | {cells} |")
