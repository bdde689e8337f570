import json
import time
from pathlib import Path

import pytest
import typer

from unbounded import console
from unbounded.console import meter, parse_size, write_json


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("250k", 250_000), ("2M", 2_000_000), ("1.5m", 1_500_000)]
)
def test_sizes_take_k_and_m(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "many", "-1", "0", "1.5", "nan", "inf", "1e400", "2MB"])
def test_what_is_no_size_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write 500, 250k or 2M"):
        parse_size(text)


def test_json_has_no_nan_and_no_infinity(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json({"a": [float("nan"), 1.5], "b": {"c": float("inf")}}, str(path))
    assert json.loads(path.read_text()) == {"a": [None, 1.5], "b": {"c": None}}


def test_progress_without_a_terminal_is_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with meter("reading", 1_000) as show:
        for done in range(0, 1_000, 100):
            show(done, "static 9.9")
    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) <= 10
    assert lines[-1].startswith("reading: ")
    assert "s left" in lines[-1]
    assert "words/s, static 9.9" in lines[-1]


def test_a_resumed_run_does_not_count_what_it_had_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    rate = console._Rate()
    assert rate(1_000_000) == 0
    assert rate(1_000_200) == 10
