"""What every test may use: a toy network without torch, and how hard to try to break things."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.toy import ToyModel
from unbounded import _native


@pytest.fixture(params=_native.isas(), scope="module")
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that can be used here, one after the other."""
    before = _native.isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.fixture
def toy() -> ToyModel:
    return ToyModel(base_size=12, width=5)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--torture", action="store_true", help="attack with all cases, not with a sample of them"
    )


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
    seed = int(os.environ.get("TORTURE_SEED", 0)) or int(np.random.default_rng().integers(1 << 30))
    record_property("seed", seed)
    # Shown where a test fails.
    print(f"TORTURE_SEED={seed}")

    def tell(what: str, where: str, cases: int) -> None:
        record_property("row", [what, where, cases])

    return Torture(request.config.getoption("--torture"), seed, tell)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of `make torture`."""
    if not config.getoption("--torture"):
        return
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
