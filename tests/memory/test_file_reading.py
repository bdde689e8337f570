"""Files, and pipes under a name, are read once; what changed is replaced, what is gone told."""

import os
import threading
from pathlib import Path

import pytest

from tests.memory.texts import open_toy, some_text, state_of
from unbounded.corpus import Line, lines_of, read_sentences
from unbounded.errors import CorpusError, SettingError
from unbounded.memory import Memory, file_reading
from unbounded.memory.file_reading import FollowedAgain, changes
from unbounded.memory.log_contents import rows


def texts_of(memory: Memory) -> dict[str, str]:
    """The words of each document."""
    found: dict[str, str] = {}
    for words, documents, _, _ in rows(memory.backend.store):
        for word, document in zip(words, documents, strict=True):
            found[document] = f"{found.get(document, '')} {word}".strip()
    return found


def test_of_a_file_that_has_grown_only_the_rest_is_read(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("known1 known2\nknown3\n")
    with open_toy(tmp_path / "m") as memory:
        assert memory.read_files(log).new == [str(log)]
        log.write_text("known1 known2\nknown3\n\nknown4 okapi\n")
        found = memory.read_files([log])
        assert (found.grown, found.replaced, found.words) == ([str(log)], [], 3)
        assert memory.stats()["forgotten"] == 0
        assert memory.read_files([log]).unchanged == [str(log)]
        grown = state_of(memory)
    with open_toy(tmp_path / "at once") as memory:
        memory.read_files([log])
        assert state_of(memory) == grown


def test_an_interrupted_read_goes_on_where_it_was(tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text(some_text(400))
    with open_toy(tmp_path / "m") as memory:
        blocks = memory.follow(Line(str(text), i, line) for i, line in _numbered(text))
        next(blocks)
        blocks.close()  # type: ignore[attr-defined]
        had = len(memory)
        assert 0 < had < len(some_text(400).split())
    with open_toy(tmp_path / "m") as memory:
        found = memory.read_files([text])
        assert found.grown == [str(text)]
        assert found.words + had == len(memory)
    with open_toy(tmp_path / "whole") as memory:
        assert memory.read_files([text]).words == found.words + had


def test_what_cannot_be_read_is_told_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("known1")
    os.mkfifo(tmp_path / "pipe")
    with open_toy(tmp_path / "m") as memory:
        with pytest.raises(SettingError, match=r"pipe is a pipe, .* 'unbounded read MEMORY -'"):
            memory.read_files(tmp_path / "pipe")
        with pytest.raises(CorpusError, match="an empty path cannot be read"):
            memory.read_files("")

        def forbid(*_: object) -> str:
            raise PermissionError(13, "Permission denied")

        # The rights of a file do not bind the superuser, so they are not tried here.
        monkeypatch.setattr(file_reading, "_checksum", forbid)
        (why,) = memory.read_files(tmp_path / "a.txt").left_out.values()
        assert why.startswith(f"{tmp_path / 'a.txt'} cannot be read (Permission denied); ")


def _numbered(path: Path) -> list[tuple[int, str]]:
    return list(enumerate(path.read_text().split("\n"), 1))


def test_a_file_that_is_gone_is_told_and_forgotten_if_asked_to(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    one, two = notes / "one.txt", notes / "two.txt"
    one.write_text("known1 okapi")
    two.write_text("known2")
    with open_toy(tmp_path / "m") as memory:
        memory.read("known5", "notes")
        memory.read_files(notes)
        one.unlink()
        assert memory.read_files([notes]).gone == [str(one)]
        assert str(one) in texts_of(memory)
        found = memory.read_files([one, notes], prune=True)
        assert (found.gone, found.unchanged) == ([str(one)], [str(two)])
        assert texts_of(memory) == {"notes": "known5 </s>", str(two): "known2 </s>"}
        assert memory.read_files([notes]).gone == []


def test_one_file_is_one_document_by_whatever_path_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(f"known1 {folder}")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path / "a")
    with open_toy(tmp_path / "m") as memory:
        assert memory.read_files(["x.txt"]).new == ["x.txt"]
        for same in ("./x.txt", tmp_path / "a" / "x.txt", tmp_path / "link" / "x.txt"):
            assert memory.read_files([same]).unchanged == ["x.txt"]
        # Another file of the same name is another document.
        monkeypatch.chdir(tmp_path / "b")
        other = str(tmp_path / "b" / "x.txt")
        assert memory.read_files(["x.txt"]).new == [other]
        assert texts_of(memory) == {"x.txt": "known1 a </s>", other: "known1 b </s>"}
        assert memory.forget(tmp_path / "link" / "x.txt") == 3
        assert memory.forget("../b/x.txt", dry_run=True) == 3
        assert texts_of(memory) == {other: "known1 b </s>"}


def follow(memory: Memory, text: str) -> int:
    """Read a pipe under a name, line by line as it comes; how many words were known."""
    had = FollowedAgain(memory.backend, "log")
    for line in lines_of(text, "log", 1):
        list(memory.take(had.new(read_sentences([line], memory.model.tokenizer))))
    list(memory.take(had.rest()))
    return had.known


def test_a_pipe_with_a_name_is_read_once(tmp_path: Path) -> None:
    first = "known1 known2\nknown3 okapi\n"
    with open_toy(tmp_path / "m") as memory:
        memory.read("known9", "other")
        assert (follow(memory, first), len(memory)) == (0, 8)
        assert (follow(memory, first), len(memory)) == (6, 8)
        # What is more is read.
        assert (follow(memory, first + "known4\n"), len(memory)) == (6, 10)
        # What has changed replaces all, from the beginning.
        assert (follow(memory, "known1 known2\nzebra\n"), len(memory)) == (0, 7)
        assert texts_of(memory)["log"] == "known1 known2 </s> zebra </s>"
        # And so does what is less, unless it is nothing.
        assert (follow(memory, ""), len(memory)) == (0, 7)
        assert (follow(memory, "known1 known2\n"), len(memory)) == (0, 5)
        assert texts_of(memory) == {"other": "known9 </s>", "log": "known1 known2 </s>"}


def test_changes_are_told_once_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    told: list[int] = []
    waiting = changes([tmp_path], seconds=0.02)

    def write() -> None:
        (tmp_path / "b.txt").write_text("two")

    (tmp_path / "c.txt").write_text("three")
    next(waiting)
    (tmp_path / "c.txt").unlink()
    next(waiting)
    for change in (write, (tmp_path / "a.txt").unlink, (tmp_path / "b.txt").unlink):
        threading.Timer(0.1, change).start()
        next(waiting)
        told.append(len(os.listdir(tmp_path)))
    assert told == [2, 1, 0]
