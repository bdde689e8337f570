"""The same verbs wherever a memory lies: in this process, on disk, on shards."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import unbounded
from tests.memory.texts import CONFIG, ON_SHARDS, open_toy, some_text, state_of, toy_model, words_of
from unbounded.errors import CorpusError, SettingError, UnboundedError
from unbounded.memory import Memory

PLACES: dict[str, Callable[[Path], Memory]] = {
    "process": lambda folder: unbounded.open(model=toy_model(), config=CONFIG),
    "disk": lambda folder: open_toy(folder / "disk"),
    "shards": lambda folder: open_toy(folder / "shards", engine=ON_SHARDS["engine"]),
}


@pytest.fixture(params=PLACES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    memory = PLACES[request.param](tmp_path)
    memory.read(some_text(60), "noise")
    memory.read("the zorble ate the grass\n" * 30, "zoo", line=7)
    return memory


def known(memory: Memory) -> object:
    """Everything that is known, to the bit."""
    return state_of(memory), len(memory), memory.version


def names(memory: Memory) -> set[str]:
    return {document.name for document in memory.documents()}


def test_reading_says_how_surprising_words_were(memory: Memory) -> None:
    before = len(memory)
    found = memory.read("the zorble ate the grass", "zoo again")
    assert list(found.words) == ["the", "zorble", "ate", "the", "grass", "</s>"]
    assert len(memory) == before + 6
    np.testing.assert_allclose(np.exp(found.logprobs), found.prob)
    np.testing.assert_allclose(found.perplexity, np.exp(-found.logprobs.mean()))
    bits = -found.logprobs.sum() / np.log(2)
    np.testing.assert_allclose(found.bits_per_character, bits / found.characters)
    assert found.characters == len("the zorble ate the grass\n")
    assert set(found.by_expert) == set(memory.online.experts)
    assert found.perplexity < 20


def test_asking_teaches_nothing(memory: Memory) -> None:
    before = known(memory)
    found = memory.score("the zorble ate the grass")
    assert found.prob[4] > 0.5 > found.static[4]
    prediction = memory.predict("the zorble ate the", n=5)
    assert prediction.words[0].word == "grass"
    for passage in prediction.words[0].sources:
        assert passage.document == "zoo"
        assert passage.line >= 7
        assert "zorble ate the grass" in passage.text
        assert abs((datetime.now(UTC) - passage.time).total_seconds()) < 600
    assert [guess.word for guess in memory.predict("the", n=3, prefix="zor").words] == ["zorble"]
    assert memory.predict("the", prefix="q").words == ()
    assert memory.complete("the zorble ate", 2) == "the grass"
    assert memory.complete("the", 9, 1.0, seed=1) == memory.complete("the", 9, 1.0, seed=1)
    guess = memory.explain(memory.online, "grass")
    np.testing.assert_allclose(sum(guess.shares.values()), 1)
    memory.score(some_text(60, 3, ["known1", "oov", "another"]))
    assert known(memory) == before


def test_documents_are_forgotten_and_counted_before(memory: Memory) -> None:
    every, (zoo,) = len(memory), [one for one in memory.documents() if one.name == "zoo"]
    assert zoo.words == 30 * 6
    assert memory.forget(document="zoo", dry_run=True) == zoo.words
    assert len(memory) == every
    assert memory.forget("zoo") == zoo.words
    assert len(memory) == every - zoo.words
    assert names(memory) == {"noise"}
    memory.compact()
    assert memory.check() == []
    found = memory.stats()
    assert (found["entries"], found["documents"]) == (len(memory), 1)


def test_what_to_forget_is_said_in_one_way_and_must_be_there(memory: Memory) -> None:
    before = known(memory)
    for named, match in (
        ({"document": "nobody"}, "named 'nobody'; give a name as it was read"),
        ({"document": "nobody", "dry_run": True}, "named 'nobody'"),
        ({}, "0 ways to say what to forget"),
        ({"document": "zoo", "last": 3}, "2 ways to say what to forget"),
        ({"last": 0}, "at least 1"),
        ({"matching": "("}, "is not a regular expression"),
    ):
        with pytest.raises(SettingError, match=match):
            memory.forget(**named)
    assert known(memory) == before


def test_files_are_read_once_and_replaced_when_they_change(memory: Memory, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    one, two, broken = texts / "one.txt", texts / "two.txt", texts / "broken.txt"
    one.write_text("known1 known2\n\nknown3 okapi\n")
    two.write_text("known4\n")
    broken.write_bytes(b"\0\1\2\0")
    before = len(memory)
    found = memory.read_files([texts, str(one)])
    assert (found.new, found.replaced, found.unchanged) == ([str(one), str(two)], [], [])
    assert list(found.left_out) == [str(broken)]
    assert "is not text" in found.left_out[str(broken)]
    assert (found.words, len(memory)) == (8, before + 8)
    assert found.perplexity > 1
    assert {str(one), f"{one}#2", str(two)} <= names(memory)
    again = memory.read_files([texts])
    assert (again.words, again.unchanged) == (0, [str(one), str(two)])
    one.write_text("known5 zebra\n")
    changed = memory.read_files([texts])
    assert (changed.replaced, changed.unchanged) == ([str(one)], [str(two)])
    assert len(memory) == before + 3 + 2
    assert f"{one}#2" not in names(memory)
    # What was forgotten since is read again.
    memory.forget(str(two))
    assert memory.read_files([texts]).new == [str(two)]
    memory.compact()
    assert memory.read_files([texts]).unchanged == [str(one), str(two)]
    with pytest.raises(CorpusError, match="nowhere"):
        memory.read_files([tmp_path / "nowhere"])


def test_a_table_has_every_word(memory: Memory, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    memory.read("known1 zebra\nknown2", "forgotten")
    memory.forget("forgotten")
    assert memory.export(str(tmp_path / "all.parquet")) == len(memory)
    table = parquet.read_table(tmp_path / "all.parquet").to_pydict()
    noise = words_of(some_text(60))
    assert table["document"] == ["noise"] * len(noise) + ["zoo"] * 180
    assert table["word"] == [*noise, *words_of("the zorble ate the grass") * 30]
    assert table["line"][-180:] == [line for line in range(7, 37) for _ in range(6)]
    assert max(abs((datetime.now(UTC) - at).total_seconds()) for at in table["time"]) < 600


def test_wrong_types_and_no_words_are_refused_in_one_line(memory: Memory) -> None:
    before = known(memory)
    for wrong in (
        lambda: memory.read("known1 \0 known2", "b"),
        lambda: memory.read(b"bytes"),  # type: ignore[arg-type]
        lambda: memory.score(7),  # type: ignore[arg-type]
        lambda: memory.read("text", document=3),  # type: ignore[arg-type]
        lambda: memory.read_files([7]),  # type: ignore[list-item]
        lambda: memory.read(" \n "),
        lambda: memory.score(""),
        lambda: memory.predict(n=0),
        lambda: memory.complete(max_words=0),
    ):
        with pytest.raises(Exception, match=r"give|write|ask|type") as error:
            wrong()
        assert isinstance(error.value, UnboundedError) or "Type" in type(error.value).__name__
    assert known(memory) == before


def test_wrong_types_are_named_in_one_line(tmp_path: Path) -> None:
    """In a process without the checks of types that tests have."""
    code = """
from datetime import date
import unbounded
memory = unbounded.open()
memory.read("It rains. It pours.")
for wrong in (
    lambda: memory.predict(n="3"),
    lambda: memory.predict(n=2.5),
    lambda: memory.predict(prefix=3),
    lambda: memory.complete(max_words="5"),
    lambda: memory.complete(temperature="hot"),
    lambda: memory.complete(seed="x"),
    lambda: memory.forget(before="2026-11-19"),
    lambda: memory.forget(last=2.5),
    lambda: memory.forget(last=True),
    lambda: memory.read_files(7),
    lambda: list(memory.follow(7)),
    lambda: list(memory.follow([7])),
    lambda: memory.export(7),
    lambda: unbounded.open("m", budget="1M"),
    lambda: unbounded.Budget("1M"),
    lambda: unbounded.backup("m", 7),
    lambda: unbounded.train(["a.txt"], out="o", tokens="2M"),
):
    try:
        wrong()
    except unbounded.UnboundedError as error:
        print(error)
print(len(memory))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    *said, left = ran.stdout.splitlines()
    assert (len(said), left) == (17, "7")
    assert all(re.search(r" is of type \w+; give an? \w+", line) for line in said)


def test_once_closed_it_refuses(memory: Memory) -> None:
    memory.close()
    for verb in (lambda: memory.predict("the"), lambda: memory.read("the")):
        with pytest.raises(UnboundedError, match="was closed; open"):
            verb()


def test_in_the_process_and_on_disk_it_learns_the_same(tmp_path: Path) -> None:
    here, disk = (PLACES[name](tmp_path) for name in ("process", "disk"))
    shards = PLACES["shards"](tmp_path)
    for memory in (here, disk, shards):
        memory.read(some_text(50), "a")
        memory.read(some_text(20, 1), "b")
        memory.forget("a")
        memory.read(some_text(20, 2), "c")
        memory.compact()
    assert state_of(here) == state_of(disk)
    assert here.documents()[0].name == disk.documents()[0].name == "b"
    assert here.check(deep=True) == disk.check(deep=True) == []
    assert here.stats()["bytes"] == 0 < disk.stats()["bytes"]
    # On shards all but the index itself.
    expected, found = state_of(disk), state_of(shards)
    index = "expert.unbounded.index."
    assert all(found[name] == expected[name] for name in expected if not name.startswith(index))
    assert shards.check(deep=True) == []


def test_a_read_that_fails_leaves_a_memory_in_the_process_as_it_was(tmp_path: Path) -> None:
    memory = unbounded.open(model=toy_model(), config=CONFIG)
    memory.read("known1 known2", "a")
    known = state_of(memory)

    def lines() -> object:
        yield unbounded.corpus.Line("b", 1, "known3")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        list(memory.follow(lines(), whole=True))  # type: ignore[arg-type]
    assert state_of(memory) == known
    assert names(memory) == {"a"}


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with unbounded.open("~/notes", toy_model(), config=CONFIG) as memory:
        memory.read("known1")
    assert (tmp_path / "notes" / "format.json").exists()
    with pytest.raises(SettingError, match="a memory of this process is new; leave out the mode"):
        unbounded.open(mode="read")


def test_strings_do_where_lines_are_wanted(memory: Memory) -> None:
    before = len(memory)
    nothing = memory.follow(["known1 zebra", "known2"])
    assert len(memory) == before
    assert sum(len(block.words) for block in nothing) == 5
    assert len(memory) == before + 5
    assert sum(len(part.words) for part in memory.scoring(["known1 zebra"])) == 3
    with pytest.raises(SettingError, match="give a list"):
        list(memory.follow("known1"))
    assert unbounded.load_model is unbounded.load
    found = memory.predict("the zorble ate the", n=2)
    np.testing.assert_allclose(sum(one.prob for one in found.words) + found.rest + found.oov, 1)
