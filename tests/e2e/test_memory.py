"""The verbs of a kept memory, as a person runs them."""

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.commands import assert_fails, said, unbounded
from tests.lm.test_training import NETWORK
from unbounded.demo import demo_text
from unbounded.lm import TrainingConfig, train


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, two texts, and a memory that has read the first."""
    place = tmp_path_factory.mktemp("memory")
    lines = list(islice(demo_text("sotu", years=range(1950, 1960)), 300))
    train(
        lines, place / "model", tokens=4_000, network=NETWORK, config=TrainingConfig(1, streams=8)
    )
    (place / "a.txt").write_text("\n".join(line.text for line in lines[:60]))
    (place / "b.txt").write_text("The zorble ate the grass.\nThe zorble slept.\n" * 5)
    figures = json_of(
        *("read", place / "m", place / "a.txt", place / "b.txt"),
        *("--model", place / "model", "--threads", 1),
    )
    assert figures["words"] == figures["entries"] > 500
    assert figures["words_per_second"] > 0
    return place


def json_of(*words: object) -> Any:
    return json.loads(said(*words, "--json", "-"))


@pytest.mark.parametrize("content", [b"", b"\x00\xff"], ids=["nothing", "no text"])
def test_what_cannot_be_read_leaves_no_new_memory_and_an_old_one_as_it_was(
    place: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x.txt").write_bytes(content)
    words = [tmp_path / "x.txt", "--model", place / "model"]
    assert_fails(["read", tmp_path / "m", *words], "text")
    assert not (tmp_path / "m").exists()
    said("read", tmp_path / "m", place / "b.txt", "--model", place / "model")
    assert_fails(["read", tmp_path / "m", *words], "text")
    assert json_of("memory", "stats", tmp_path / "m")["entries"] == 60


def test_predict_names_words_shares_and_passages(place: Path) -> None:
    shown = said("predict", place / "m", "the zorble ate the", "-n", 3)
    for part in ("grass", "b.txt:", "a word never seen"):
        assert part in shown
    found = json_of("predict", place / "m", "the zorble ate the")
    assert len(found["words"]) == 10
    (grass,) = [word for word in found["words"] if word["word"] == "grass"]
    assert grass["sources"][0]["document"].endswith("b.txt")
    assert sum(grass["shares"].values()) == pytest.approx(1)


def test_score_is_better_with_the_memory_and_teaches_nothing(place: Path) -> None:
    first = json_of("score", place / "m", place / "b.txt")
    assert first["perplexity"] < first["static_perplexity"]
    assert json_of("score", place / "m", place / "b.txt") == first
    each = said("score", place / "m", place / "b.txt", "--words").splitlines()
    assert len(each) == first["words"]
    assert each[1].split("\t")[2] == "zorble"


def test_complete_writes_the_same_for_the_same_seed(place: Path) -> None:
    one, same, other = (
        said("complete", place / "m", "the zorble", "--temperature", 1, "--seed", seed)
        for seed in (1, 1, 2)
    )
    assert one == same != other
    # Without a temperature, or with the likeliest alone, nothing is drawn.
    greedy = said("complete", place / "m", "the zorble")
    assert greedy.startswith("slept.")
    assert greedy == said(
        "complete", place / "m", "the zorble", "--temperature", 1, "--top-p", 1e-9
    )
    assert one.strip()


def test_stats_check_export_forget_and_compact(place: Path, tmp_path: Path) -> None:
    said("read", tmp_path / "m", place / "b.txt", "--model", place / "model")
    found = json_of("memory", "stats", tmp_path / "m")
    assert {"entries", "words", "documents", "bytes"} <= set(found)
    entries = found["entries"]
    assert "all is well" in said("memory", "check", tmp_path / "m", "--deep")
    exported = json_of("memory", "export", tmp_path / "m", tmp_path / "words.parquet")
    assert exported == {"words": entries}
    gone = json_of("memory", "forget", tmp_path / "m", "--matching", "slept")
    assert gone == {"forgotten": 25, "entries": entries - 25}
    assert b"slept" in (tmp_path / "m" / "journal-00000001.log").read_bytes()
    said("memory", "compact", tmp_path / "m")
    files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
    assert not any(b"slept" in path.read_bytes() for path in files)
    (arrays,) = (tmp_path / "m").glob("snapshot-*/arrays.npy")
    data = bytearray(arrays.read_bytes())
    data[len(data) // 2] ^= 1
    arrays.write_bytes(data)
    ran = unbounded("memory", "check", tmp_path / "m")
    assert ran.returncode == 1
    assert "damaged" in ran.stdout
    assert "remove that folder" in ran.stdout


def test_backup_and_restore(place: Path, tmp_path: Path) -> None:
    made = json_of("memory", "backup", place / "m", tmp_path / "b")
    assert made["words"] == json_of("memory", "stats", place / "m")["entries"]
    assert json_of("memory", "backup", place / "m", tmp_path / "b")["bytes_copied"] == 0
    ran = unbounded("memory", "restore", tmp_path / "b", tmp_path / "again")
    assert ran.returncode == 0, ran.stderr
    assert "verified" in ran.stderr + ran.stdout
    ran = unbounded("memory", "check", tmp_path / "again", "--deep")
    assert "all is well" in ran.stdout
    assert_fails(["memory", "restore", tmp_path / "b", place / "m"], "is a memory already")
    assert_fails(["memory", "backup", place / "m", place / "." / "m"], "is the memory itself")


def test_a_pipe_is_followed_line_by_line_and_killed_without_loss(
    place: Path, tmp_path: Path
) -> None:
    words = ["read", tmp_path / "m", "-", "--model", place / "model", "--surprise"]
    words += ["--document", "log"]
    process = subprocess.Popen(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(3):
        process.stdin.write(f"Line {number} of a log.\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline())
        assert said["nats"] > 0
        assert (said["line"], said["document"]) == (number + 1, "log")
        assert said["text"] == f"Line {number} of a log."
        assert said["word"] in {*said["text"].lower().rstrip(".").split(), ".", "</s>"}
        assert said["word_nats"] >= said["nats"]
        assert (said["quantile"] is None) == (number == 0)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = json_of("memory", "stats", tmp_path / "m")
    assert found["entries"] == 21


def test_failures_are_one_line(place: Path, tmp_path: Path) -> None:
    assert_fails(["predict", tmp_path / "none", "a"], "is not a memory yet")
    assert_fails(["memory", "forget", place / "m"], "0 ways")
    assert_fails(["memory", "forget", place / "m", "--document", "nobody"], "never read a document")
    assert_fails(["memory", "forget", place / "m", "--before", "soon"], "not a date", status=2)
    assert_fails(["read", place, place / "a.txt"], "is not a memory (it has a.txt")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 50)
    assert_fails(["read", place / "m", tmp_path / "binary"], "is not text")


def test_a_file_is_read_once_until_it_changes(place: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("The zorble ate the grass.\n")
    (notes / "b.txt").write_text("The weekly halcyon meets on monday.\n")
    (notes / "picture.txt").write_bytes(b"\x00\x01\x02")
    read = ("read", tmp_path / "m", notes, "--threads", 1)
    first = json_of(*read, "--model", place / "model")
    assert (first["files_new"], list(first["files_left_out"])) == (2, [str(notes / "picture.txt")])
    same = json_of(*read)
    assert (same["words"], same["files_unchanged"], same["entries"]) == (0, 2, first["entries"])
    assert "passed over, as unchanged: 2;" in unbounded(*read).stderr
    (notes / "a.txt").write_text("The zorble slept.\n")
    changed = json_of(*read)
    assert (changed["files_replaced"], changed["files_unchanged"]) == (1, 1)
    assert "slept" in said("predict", tmp_path / "m", "the zorble", "-n", 1)
    assert "grass" not in said("predict", tmp_path / "m", "the zorble ate the")
    (notes / "c.csv").write_text("by,said\nAnn,it rains\n")
    other = unbounded(*read)
    assert "left out: 1 .csv (say which field or column: --field NAME)" in other.stderr
    assert json_of(*read, "--field", "said")["files_new"] == 1
    changed = json_of(*read)
    (notes / "b.txt").unlink()
    assert "b.txt is gone: --prune forgets" in unbounded(*read).stderr
    pruned = json_of(*read, "--prune")
    assert pruned["files_gone"] == [str(notes / "b.txt")]
    assert pruned["entries"] < changed["entries"]
    changed = pruned
    names = [one["name"] for one in json_of("memory", "documents", tmp_path / "m")["documents"]]
    assert names == [str(notes / name) for name in ("a.txt", "c.csv")]
    assert str(notes / "a.txt") in said("memory", "documents", tmp_path / "m")
    # Files beside a pipe are read as without one.
    both = json.loads(said(*read, "-", "--json", "-", stdin="It rains.\n"))
    assert (both["words"], both["files_unchanged"]) == (4, 1)
    changed = both
    again = json_of(*read, "--again")
    assert again["entries"] == changed["entries"] + again["words"] > changed["entries"]
    assert_fails(["read", tmp_path / "m", notes / "picture.txt"], "is not text")


def test_a_folder_that_is_a_memory_is_not_one_of_memories(place: Path) -> None:
    for verb in (["serve"], ["keys", "list"]):
        assert_fails([*verb, place / "m"], "is a memory itself; give the folder that it is in")


def test_a_verb_of_a_group_says_where_it_is(place: Path) -> None:
    assert_fails(["forget", place / "m"], "Did you mean 'memory forget'?", status=2)
    assert_fails(["raed", place / "m"], "Did you mean 'read'?", status=2)


def test_a_pipe_with_a_name_is_read_once(place: Path, tmp_path: Path) -> None:
    read = ("read", tmp_path / "m", "-", "--document", "log", "--threads", 1, "--json", "-")
    text = "The zorble slept.\nIt snored.\n"

    def piped(text: str, *more: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(said(*read, *more, stdin=text))
        return found

    assert piped(text, "--model", place / "model")["words"] == 9
    assert piped(text)["words"] == 0
    assert piped(f"{text}Loud.\n")["words"] == 3
    # What was there is forgotten and its beginning read again: one undo takes back both.
    assert piped("The zorble slept.\n")["entries"] == 5
    said("memory", "undo", tmp_path / "m")
    assert json_of("memory", "stats", tmp_path / "m")["words_read"] == 12
    assert piped("Rain.\n")["entries"] == 3
    assert piped("Rain.\n", "--again")["entries"] == 6
    assert_fails([*read, "--watch"], "are for files")


def test_lines_that_are_read_again_are_said_with_their_place(place: Path, tmp_path: Path) -> None:
    read = ("read", tmp_path / "m", "-", "--document", "log", "--threads", 1, "--surprise")

    def piped(text: str, *more: object) -> list[tuple[str, int]]:
        lines = [json.loads(line) for line in said(*read, *more, stdin=text).splitlines()]
        texts.extend(line["text"] for line in lines)
        return [(line["document"], line["line"]) for line in lines]

    text, texts = "The zorble slept.\nIt snored.\n", list[str]()
    assert piped(text, "--model", place / "model") == [("log", 1), ("log", 2)]
    assert piped(f"{text}Loud.\n") == [("log", 3)]
    assert piped("The zorble slept.\nIt did not.\n") == [("log", 1), ("log", 2)]
    # The block in which it begins does not know how words were written, the next one does.
    assert piped(f"The zorble slept.\n{'snore ' * 600}\n") == [("log", 1), ("log", 2)]
    assert texts[-1].split() == ["snore"] * 600


def test_a_folder_is_watched_until_it_is_interrupted(place: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("The zorble ate the grass.\n")
    words = ["read", tmp_path / "m", notes, "--model", place / "model", "--watch"]
    process = subprocess.Popen(
        [sys.executable, "-m", "unbounded", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "watching" in line:
            break
    # In one step: half a file would be read as what it is.
    (tmp_path / "b.txt").write_text("The zorble slept.\n")
    (tmp_path / "b.txt").rename(notes / "b.txt")
    told = process.stderr.readline() + process.stderr.readline()
    assert "5 words read; 12 entries" in told
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert "stopped: " in rest
    assert "goes on where it was" in rest
    assert process.returncode == 130


def test_what_is_asked_about_is_a_text_a_file_or_a_pipe(place: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("The zorble ate the\n")
    for given, stdin in (
        ("The zorble ate the", ""),
        (tmp_path / "letter.txt", ""),
        ("-", "the zorble ate the\n"),
    ):
        asked = ("predict", place / "m", given, "-n", 1, "--json", "-")
        found = json.loads(said(*asked, stdin=stdin))
        assert found["words"][0]["word"] == "grass"
        assert abs(found["words"][0]["prob"] + found["rest"] + found["oov"] - 1) < 1e-9
        assert said("complete", place / "m", given, "--words", 1, stdin=stdin) == "grass\n"
    for given in ("The zorble slept.", "zorble"):
        assert "with the memory" in said("score", place / "m", given)
    assert json_of("score", place / "m", "The zorble.", "--words")["scores"][1]["word"] == "zorble"
    assert_fails(["score", place / "m", tmp_path / "none.txt"], "cannot be read")
    assert_fails(["score", place / "m", " "], "no words to score")


def test_tables_follow_the_ending_of_the_file(place: Path, tmp_path: Path) -> None:
    lines = said("memory", "export", place / "m", "-").splitlines()
    ran = unbounded("memory", "export", place / "m", tmp_path / "a.csv")
    assert f"wrote {tmp_path / 'a.csv'}" in ran.stderr
    assert (tmp_path / "a.csv").read_text().startswith("word,document,line,time\n")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == len(lines) + 1
    said("memory", "export", place / "m", tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text().splitlines() == lines
    assert set(json.loads(lines[0])) == {"word", "document", "line", "time"}
    assert_fails(["memory", "export", place / "m", tmp_path / "a.xls"], "ends in .xls")
    assert_fails(["memory", "export", place / "m", "-", "--json", "-"], "two things")
    evaluate = ["evaluate", place / "model", place / "b.txt", "--rows", "static,unigram"]
    assert_fails([*evaluate, "--per-token", tmp_path / "a.txt"], "ends in .txt")
    assert_fails([*evaluate, "--report", tmp_path / "a.pdf"], "ends in .pdf")
    ran = unbounded(*evaluate, "--per-token", "-")
    assert all(json.loads(line)["word"] for line in ran.stdout.splitlines())
    assert "* the best" in ran.stderr
    ran = unbounded(*evaluate, "--json", tmp_path / "a.json")
    assert f"wrote {tmp_path / 'a.json'}" in ran.stderr


def test_stats_are_called_by_their_names_and_the_last_verb_is_taken_back(
    place: Path, tmp_path: Path
) -> None:
    said("read", tmp_path / "m", place / "b.txt", "--model", place / "model")
    found = json_of("memory", "stats", tmp_path / "m")
    assert found["words_read"] == found["entries"]
    assert found["vocabulary"] == found["words"]
    shown = said("memory", "stats", tmp_path / "m")
    assert "words read" in shown
    assert "vocabulary" in shown
    said("memory", "forget", tmp_path / "m", "--document", place / "b.txt")
    undone = json_of("memory", "undo", tmp_path / "m")
    assert undone == {"undone": "forget", "words": found["entries"], "entries": found["entries"]}
    assert "the last read was taken back" in unbounded("memory", "undo", tmp_path / "m").stderr
    assert_fails(["memory", "undo", tmp_path / "m"], "nothing can be taken back")


def test_a_model_can_be_read_by_others_and_a_hub_is_not_asked(place: Path) -> None:
    for path in (place / "model").iterdir():
        assert path.stat().st_mode & 0o044 == 0o044, path
    assert_fails(["evaluate", "gpt2", place / "b.txt"], "nothing is fetched")
