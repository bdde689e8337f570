import sys
from types import SimpleNamespace

import pytest

from unbounded.cluster import on_ray
from unbounded.cluster.engine import Address
from unbounded.cluster.on_ray import connect
from unbounded.errors import EngineError, MissingExtra, SettingError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ray://local", Address(None, 0, None)),
        ("ray://local?shards=3", Address(None, 0, 3)),
        ("ray://node-1.lan:6379", Address("node-1.lan", 6379, None)),
    ],
)
def test_addresses(text: str, expected: Address) -> None:
    assert Address.parse(text) == expected
    assert str(expected) == text.partition("?")[0]


@pytest.mark.parametrize(
    "text", ["", "local", "ray://", "ray://host", "http://host:1", "ray://local?shards=x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="is no engine; write ray://local"):
        Address.parse(text)


def test_no_shards_are_refused() -> None:
    with pytest.raises(SettingError, match="0 shards were asked for"):
        Address.parse("ray://local?shards=0")


def test_an_engine_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(EngineError, match="no engine answers at ray://localhost:1 "):
        Address.parse("ray://localhost:1").check()


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'unbounded\[cluster\]'"):
        connect(Address.parse("ray://local"))


def test_a_process_joins_one_cluster_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "ray_module", lambda: SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(on_ray, "_joined", "ray://local")
    connect(Address.parse("ray://local?shards=3"))
    with pytest.raises(EngineError, match=r"has joined ray://local, and cannot join ray://head:1 "):
        connect(Address.parse("ray://head:1"))
    # Somebody else has joined, and knows best.
    monkeypatch.setattr(on_ray, "_joined", None)
    connect(Address.parse("ray://head:1"))
