"""What the service does is what the library does."""

import math
from pathlib import Path

import pytest

import unbounded
from tests.serve.running_service import Client, sentences
from unbounded.lm import Pretrained

TEXT = "The zorble ate the grass.\nThe zorble slept, and the people of America were glad."
QUESTION = "The zorble ate the"


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory, model: Pretrained) -> unbounded.Memory:
    """The library, which has read the same."""
    memory = unbounded.open(tmp_path_factory.mktemp("direct") / "m", model)
    memory.read(TEXT, "diary")
    return memory


@pytest.fixture
def notes(client: Client) -> str:
    path = "/v1/memories/diary"
    if client.ask("GET", path).status_code == 404:
        client.make("diary", TEXT, "diary")
    return path


def test_a_memory_is_made_listed_looked_at_and_deleted(client: Client) -> None:
    made = client.post("/v1/memories", name="short-lived")
    assert (made["name"], made["entries"], made["documents"]) == ("short-lived", 0, 0)
    assert {"name": "short-lived", "entries": 0} in client.get("/v1/memories")["memories"]
    client.post("/v1/memories/short-lived/read", text="It rains.", document="a")
    stats = client.get("/v1/memories/short-lived")
    assert (stats["entries"], stats["documents"]) == (4, 1)
    (document,) = client.get("/v1/memories/short-lived/documents")["documents"]
    assert (document["name"], document["words"]) == ("a", 4)
    client.good("DELETE", "/v1/memories/short-lived")
    assert client.refused(404, "GET", "/v1/memories/short-lived") == "no_memory"
    assert "short-lived" not in {one["name"] for one in client.get("/v1/memories")["memories"]}
    assert client.post("/v1/memories", name="short-lived")["entries"] == 0
    client.good("DELETE", "/v1/memories/short-lived")


def test_reading_says_what_the_library_says(
    client: Client, model: Pretrained, tmp_path: Path
) -> None:
    client.post("/v1/memories", name="same")
    with unbounded.open(tmp_path / "m", model) as memory:
        for text in (TEXT, TEXT.upper(), ""):
            path = "/v1/memories/same/read"
            answer = client.post(path, text=text, document="diary", per_word=True, again=True)
            if not text:
                assert (answer["words"], answer["perplexity"]) == (0, None)
                continue
            mine = memory.read(text, "diary")
            assert answer["nats"] == pytest.approx(mine.nats.tolist(), abs=1e-4)
            static = [-math.log(prob) for prob in mine.static.tolist()]
            assert answer["static_nats"] == pytest.approx(static, abs=1e-4)
            assert answer["perplexity"] == pytest.approx(mine.perplexity)
            assert answer["entries"] == len(memory)
            assert sum(answer["weights"].values()) == pytest.approx(1)


def test_scoring_says_what_the_library_says_and_where_words_stand(
    client: Client, notes: str, direct: unbounded.Memory
) -> None:
    text = "  The ZORBLE slept…\n\nİt did."
    before = client.get(notes)
    answer = client.post(f"{notes}/score", text=text, shares=True)
    mine = direct.score(text)
    words = answer["words"]
    assert [one["word"] for one in words] == list(mine.words)
    assert [one["prob"] for one in words] == pytest.approx(mine.prob.tolist(), rel=1e-9)
    assert [one["static"] for one in words] == pytest.approx(mine.static.tolist())
    for one in words:
        assert sum(one["shares"]) == pytest.approx(1, abs=1e-3)
    there = [text[one["start"] : one["end"]] for one in words]
    assert there == ["The", "ZORBLE", "slept", "…", "\n", "İt", "did", ".", ""]
    assert client.get(notes) == before
    assert client.post(f"{notes}/score", text=" ")["words"] == []


def test_predicting_names_words_shares_and_passages(
    client: Client, notes: str, direct: unbounded.Memory
) -> None:
    answer = client.post(f"{notes}/predict", text=QUESTION, n=5, sources=2, word="zorble")
    mine = direct.predict(QUESTION, 5, sources=2)
    assert [one["word"] for one in answer["words"]] == [guess.word for guess in mine.words]
    for one, guess in zip(answer["words"], mine.words, strict=True):
        assert one["prob"] == pytest.approx(guess.prob, rel=1e-9)
        assert one["shares"] == pytest.approx(guess.shares, rel=1e-9)
        assert [s["text"] for s in one["sources"]] == [s.text for s in guess.sources]
    assert answer["words"][0]["word"] == "grass"
    assert answer["words"][0]["sources"][0]["document"] == "diary"
    asked = answer["asked"]
    assert asked["word"] == "zorble"
    assert "zorble" in asked["sources"][0]["text"]
    score = direct.score(f"{QUESTION} zorble")
    assert asked["prob"] == pytest.approx(score.prob[4], rel=1e-4)
    whole = client.post(f"{notes}/predict", text=QUESTION, n=100, word="fribbles")
    assert sum(one["prob"] for one in whole["words"]) + whole["oov"] < 1.0001
    # A word that nobody knows is explained too.
    assert 0 < whole["asked"]["prob"] < 1e-2
    assert whole["asked"]["sources"] == []


def test_completing_is_repeatable_and_streams_the_same(client: Client, notes: str) -> None:
    body = {"text": QUESTION, "words": 8, "seed": 3}
    whole = client.post(f"{notes}/complete", **body)
    assert whole["words"] == 8
    assert whole == client.post(f"{notes}/complete", **body)
    *pieces, done = client.events(f"{notes}/complete", **body, stream=True)
    assert done == "[DONE]"
    assert "".join(piece["text"] for piece in pieces) == whole["text"]
    greedy = client.post(f"{notes}/complete", text=QUESTION, words=3, temperature=0)
    assert greedy["text"].startswith(" grass")


def test_a_long_text_is_told_as_it_is_read(client: Client) -> None:
    path, text = client.make("long"), sentences(300)
    events = list(client.events(f"{path}/read", text=text, document="l", stream=True))
    assert [one["event"] for one in (events[0], events[-1])] == ["accepted", "done"]
    progress = [one for one in events if one["event"] == "progress"]
    assert len(progress) > 3
    seen = [one["characters"] for one in progress]
    assert seen == sorted(seen)
    assert seen[-1] == len(text)
    assert events[-1]["words"] == events[-1]["entries"] == progress[-1]["words"]
    assert progress[-1]["perplexity"] < progress[0]["perplexity"]


def test_forgetting_makes_it_as_if_never_read(client: Client) -> None:
    path = client.make("forgetful", "It rains.", "weather")
    before = client.post(f"{path}/score", text=TEXT)
    client.post(f"{path}/read", text=TEXT, document="diary")
    known = client.post(f"{path}/score", text=TEXT)
    assert known["perplexity"] < before["perplexity"] / 2
    gone = client.post(f"{path}/forget", document="diary")
    assert gone == {"forgotten": len(known["words"]), "entries": 4}
    assert client.post(f"{path}/score", text=TEXT)["words"] == before["words"]
    client.post(f"{path}/read", text=TEXT, document="diary")
    assert client.post(f"{path}/forget", matching="Zorble ATE the")["forgotten"] == 7
    assert client.post(f"{path}/forget", matching=".*")["forgotten"] == 0
    assert client.post(f"{path}/forget", before="2000-01-01T00:00:00Z")["forgotten"] == 0
    assert client.post(f"{path}/forget", last=100)["entries"] == 0
    assert client.refused(404, "POST", f"{path}/forget", {"document": "x"}) == "no_document"
    assert client.refused(422, "POST", f"{path}/forget", {}) == "bad_value"


def test_a_document_is_read_once_and_replaced_when_it_changes(client: Client) -> None:
    path = client.make("once")
    first = client.post(f"{path}/read", text="The zorble slept.\nIt snored.", document="diary")
    assert first["words"] == 9
    same = client.post(f"{path}/read", text="The zorble slept.\nIt snored.", document="diary")
    assert (same["words"], same["entries"]) == (0, 9)
    more = client.post(
        f"{path}/read", text="The zorble slept.\nIt snored.\nLoud.", document="diary"
    )
    assert (more["words"], more["entries"]) == (3, 12)
    changed = client.post(f"{path}/read", text="The zorble woke.", document="diary")
    assert (changed["words"], changed["entries"]) == (5, 5)
    nothing = client.post(f"{path}/read", text=" ", document="diary")
    assert (nothing["words"], nothing["entries"]) == (0, 5)
    again = client.post(f"{path}/read", text="The zorble woke.", document="diary", again=True)
    assert (again["words"], again["entries"]) == (5, 10)
    # Without a name it is always read.
    for entries in (12, 14):
        assert client.post(f"{path}/read", text="Rain")["entries"] == entries


def test_a_picture_is_refused_as_it_is_everywhere(client: Client) -> None:
    path = client.make("pictures")
    jpeg = (b"\xff\xd8\xff\xe0 \x10JFIF" + bytes(range(1, 256)) * 9).decode(errors="replace")
    for text in (jpeg, "%PDF-1.4 x", "a " * 40_000 + "\0"):
        assert client.refused(422, "POST", f"{path}/read", {"text": text}) == "not_text"
    assert client.get(path)["entries"] == 0
