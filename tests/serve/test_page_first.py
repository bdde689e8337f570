"""What a new user meets on the page, in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.chromium import CHROMIUM, NO_CHROMIUM
from tests.serve.page_steps import TEXT, drop, learn, scored, start, type_text, until
from tests.serve.running_service import Client, in_thread
from unbounded.lm import Pretrained

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def test_a_dropped_picture_is_refused_in_one_line(page: Page, address: str) -> None:
    start(page, address, "pictures")
    jpeg = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(range(256)) * 8
    drop(page, "cat.jpg", jpeg)
    expect(page.get_by_role("alert")).to_contain_text("cat.jpg is not text (it has NUL bytes)")
    expect(page.locator("#progress-box")).to_be_hidden()
    # Without a NUL the service finds out: test_memories.py.
    drop(page, "fine.txt", "naïve café\n".encode())
    expect(page.locator("#progress-label")).to_have_text("Read fine.txt")
    expect(page.locator("#documents")).to_contain_text("fine.txt")
    page.wait_for_timeout(500)
    drop(page, "fine.txt", "naïve café\n".encode())
    expect(page.locator("#progress-label")).to_have_text("Nothing new in fine.txt")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_chart_has_axes_and_is_there_after_a_reload(page: Page, address: str) -> None:
    start(page, address, "charted")
    type_text(page, TEXT)
    learn(page)
    expect(page.locator("#curve polyline")).to_have_count(2)
    texts = page.locator("#curve text").all_text_contents()
    assert any("words" in text for text in texts)
    assert len(texts) > 3
    drawn = page.locator("#curve polyline").last.get_attribute("points")
    page.reload()
    expect(page.locator("#memory")).to_have_value("charted")
    expect(page.locator("#curve polyline").last).to_have_attribute("points", drawn or "")
    start(page, address, "uncharted")
    expect(page.locator("#curve polyline")).to_have_count(0)


def test_an_empty_memory_owes_nothing_to_what_was_read(page: Page, address: str) -> None:
    start(page, address, "blank")
    type_text(page, "The president of the")
    scored(page, "blank", "The president of the")
    expect(page.locator("#chips button").first).to_be_visible()
    expect(page.locator("#chips .known")).to_have_count(0)
    expect(page.locator("#nobody")).to_be_visible()
    expect(page.locator("#weights")).to_be_hidden()
    learn(page)
    expect(page.locator("#weights")).to_be_visible()
    # Whom to believe, and who that is.
    expect(page.locator("#weights div").first).to_have_attribute("title", re.compile(".{20}"))
    page.get_by_text("Who is who?").click()
    expect(page.locator("#experts")).to_contain_text("in all that it has ever read")
    type_text(page, "The president of")
    expect(page.locator("#chips .known").first).to_be_visible()
    # N-grams know the training text too: what they alone say is not owed to what was read.
    owed = """async (name) => (await import("/page/why.js")).owed(
        {prob: 0.1, shares: {static: 0, [name]: 1}}, {static: 0.5, [name]: 0.5})"""
    assert page.evaluate(owed, "unbounded")
    assert not page.evaluate(owed, "ngrams")


def test_after_a_full_stop_the_next_sentence_begins(page: Page, address: str) -> None:
    start(page, address, "stops")
    type_text(page, TEXT + "\n" + "The people slept.")
    learn(page)
    type_text(page, "The zorble ate the grass of the people.")
    first = page.locator("#chips button").first
    expect(first).to_have_attribute("value", "The")
    first.click()
    expect(page.locator("#draft")).to_have_value("The zorble ate the grass of the people. The")


def test_documents_are_grouped_and_found_and_parts_of_a_file_are_one(
    page: Page, address: str
) -> None:
    client = Client(address)
    client.make("many")
    names = [f"/home/ann/notes/{n}.md" for n in range(5)]
    for name in (*names, f"{names[0]}#2", f"{names[0]}#3", "letter.txt"):
        client.post("/v1/memories/many/read", text="It rains.", document=name)
    page.goto(address)
    page.locator("#memory").select_option("many")
    expect(page.locator("#documents li")).to_have_count(6)
    summary = page.locator("#documents summary").filter(has_text="/home/ann/notes")
    expect(summary).to_contain_text("5 with 28 words")
    expect(page.locator("#documents li").filter(has_text="0.md")).to_contain_text("12 words")
    page.get_by_role("searchbox", name="Find a document").fill("LETTER")
    expect(page.locator("#documents li")).to_have_count(1)
    page.get_by_role("searchbox", name="Find a document").fill("/home")
    expect(page.locator("#documents li")).to_have_count(5)
    page.get_by_role("button", name=f"Forget {names[0]}").click()
    expect(page.get_by_role("status")).to_contain_text("is forgotten, 12 words")
    expect(page.locator("#documents li")).to_have_count(4)


def test_who_leaves_has_not_undone_it(page: Page, address: str) -> None:
    client = Client(address)
    client.make("left", "It rains.", "letter")
    page.goto(address)
    page.locator("#memory").select_option("left")
    page.get_by_role("button", name="Forget letter").click()
    page.get_by_role("button", name="Keep letter").wait_for()
    page.goto(f"{address}/docs")
    until(page, lambda: client.get("/v1/memories/left")["entries"] == 0)
    assert client.get("/v1/memories/left")["entries"] == 0


def test_nothing_is_made_by_looking_at_it(
    browser: Browser, model: Pretrained, tmp_path: Path
) -> None:
    root = tmp_path / "s"
    with in_thread(root, model) as url, browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        expect(page.locator("#none")).to_contain_text("There is no memory yet")
        page.locator("#draft").fill(TEXT)
        page.wait_for_timeout(500)
        assert list(root.iterdir()) == []
        # To learn is to be asked to.
        learn(page)
        expect(page.locator("#memory")).to_have_value("notes")
        expect(page.locator("#documents")).to_contain_text("note 1")


def test_a_phone_is_spoken_to_as_one(browser: Browser, address: str) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        page = context.new_page()
        page.goto(address)
        expect(page.locator("#how")).to_contain_text("Tap a word to see why.")
        for word in ("Ctrl", "drop one", "Point at"):
            expect(page.get_by_text(word).first).to_be_hidden()
