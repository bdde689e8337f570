"""The page in a real browser, as a person uses it."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serve.running_service import Client, in_thread
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; Debian has it: apt-get install chromium"
)
expect.set_options(timeout=60_000)
TEXT = "The zorble ate the grass of the people."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium refuses to put itself into a sandbox when it runs as root.
        quiet = ["--disable-gpu", "--disable-dev-shm-usage"]
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=quiet + (["--no-sandbox"] if os.getuid() == 0 else [])
        )
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that looks for trouble: in the console, and in where it goes."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        trouble: list[str] = []
        page.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None
                if urlsplit(asked.url).netloc == urlsplit(address).netloc
                else trouble.append(asked.url)
            ),
        )
        yield page
        assert trouble == []


def start(page: Page, address: str, memory: str) -> None:
    page.goto(address)
    expect(page.locator("#none:visible, #memory option").first).to_be_attached()
    page.fill("#new-name", memory)
    page.get_by_role("button", name="Make").click()
    expect(page.locator("#memory")).to_have_value(memory)
    # Making it puts the focus where one writes, as the last thing: keys before that are lost.
    expect(page.locator("#draft")).to_be_focused()


def type_text(page: Page, text: str) -> None:
    page.locator("#draft").fill("")
    page.locator("#draft").press_sequentially(text)


def scored(page: Page, memory: str, text: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-scored", f"{memory}:{text}")


def nats(page: Page, word: str, kind: str = "nats") -> float:
    span = page.locator("#tint .word", has_text=re.compile(f"^{word}$")).first
    return float(span.get_attribute(f"data-{kind}") or "nan")


def until(page: Page, claim: Callable[[], bool]) -> None:
    """Wait for it, ten seconds at most; the page's policy lets nobody evaluate a string there."""
    for _ in range(200):
        if claim():
            return
        page.wait_for_timeout(50)


def learn(page: Page) -> None:
    with page.expect_response(lambda answer: answer.url.endswith("/read")):
        page.locator("#draft").press("Control+Enter")


def test_a_word_is_learned_explained_forgotten_and_unknown_to_others(
    page: Page, address: str
) -> None:
    start(page, address, "ours")
    type_text(page, TEXT)
    scored(page, "ours", TEXT)
    strange = nats(page, "zorble")
    assert strange > 6

    learn(page)
    until(page, lambda: nats(page, "zorble") < strange - 2)
    known = nats(page, "zorble")
    # Measured: 8.3 nats before, 2.6 after.
    assert known < strange - 2
    assert nats(page, "zorble", "static") > known + 2
    oov = Client(address).get("/v1/memories/ours")["oov"]
    assert page.locator("#oov").inner_text() == str(oov) > "0"
    assert page.locator("#entries").inner_text() == "10"

    type_text(page, "The zorble")
    scored(page, "ours", "The zorble")
    assert nats(page, "zorble") == pytest.approx(known, abs=0.5)
    expect(page.locator("#chips button").first).to_contain_text("ate")

    box = page.locator("#tint .word").nth(1).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    why = page.locator("#why")
    expect(why).to_contain_text("Why zorble?")
    expect(why).to_contain_text("note 1, line 1")
    expect(why.locator(".passages li").first).to_contain_text("zorble")
    expect(why.locator(".shares tr").first).to_be_visible()

    page.get_by_role("button", name="Forget note 1").click()
    # Until it is done it can be undone, and nothing is asked for.
    expect(page.get_by_role("status")).to_contain_text("unless you undo it")
    page.get_by_role("button", name="Keep note 1").click()
    expect(page.get_by_role("button", name="Forget note 1")).to_be_focused()
    assert Client(address).get("/v1/memories/ours")["entries"] == 10
    page.get_by_role("button", name="Forget note 1").click()
    expect(page.get_by_role("status")).to_contain_text("note 1 is forgotten, 10 words")
    until(page, lambda: nats(page, "zorble") > known + 2)
    assert nats(page, "zorble") > known + 2
    assert page.locator("#entries").inner_text() == "0"
    learn(page)

    start(page, address, "theirs")
    type_text(page, TEXT)
    scored(page, "theirs", TEXT)
    assert nats(page, "zorble") == pytest.approx(strange, abs=0.3)


def test_a_dropped_file_is_read_to_the_end(page: Page, address: str, tmp_path: Path) -> None:
    start(page, address, "files")
    text = "\n".join(f"Sentence {n} is about the number {n % 7}." for n in range(300))
    page.evaluate(
        """text => {
            const given = new DataTransfer();
            given.items.add(new File([text], 'report.txt', {type: 'text/plain'}));
            const drop = new DragEvent('drop', {dataTransfer: given, bubbles: true});
            document.getElementById('editor').dispatchEvent(drop);
        }""",
        text,
    )
    expect(page.locator("#progress-label")).to_have_text("Read report.txt", timeout=60_000)
    assert page.locator("#progress").evaluate("bar => bar.value") == 1
    expect(page.locator("#documents")).to_contain_text("report.txt")
    entries = Client(address).get("/v1/memories/files")["entries"]
    assert entries == 300 * 9
    assert page.locator("#entries").inner_text() == "2,700"
    points = page.locator("#curve polyline").first.get_attribute("points") or ""
    assert len(points.split()) == -(-entries // 512)
    alone = float(page.locator("#ppl-static").inner_text().replace(",", ""))
    assert float(page.locator("#ppl-memory").inner_text()) < alone / 5


def drop(page: Page, name: str, data: bytes) -> None:
    page.evaluate(
        """([name, data]) => {
            const given = new DataTransfer();
            given.items.add(new File([new Uint8Array(data)], name));
            const drop = new DragEvent('drop', {dataTransfer: given, bubbles: true});
            document.getElementById('editor').dispatchEvent(drop);
        }""",
        [name, list(data)],
    )


def test_a_dropped_picture_is_refused_in_one_line(page: Page, address: str) -> None:
    start(page, address, "pictures")
    jpeg = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(range(256)) * 8
    drop(page, "cat.jpg", jpeg)
    expect(page.get_by_role("alert")).to_contain_text("cat.jpg is not text (it has NUL bytes)")
    expect(page.locator("#progress-box")).to_be_hidden()
    # Without a NUL the service finds out; a real client would show the same line.
    refused = Client(address).ask(
        *("POST", "/v1/memories/pictures/read"),
        {"text": jpeg.replace(b"\0", b"").decode(errors="replace"), "document": "cat"},
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_text")
    assert Client(address).get("/v1/memories/pictures")["entries"] == 0
    drop(page, "fine.txt", "naïve café\n".encode())
    expect(page.locator("#progress-label")).to_have_text("Read fine.txt")
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


def test_it_works_without_a_mouse(page: Page, address: str) -> None:
    start(page, address, "keys-only")
    page.keyboard.type("The zorble sleeps")
    scored(page, "keys-only", "The zorble sleeps")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#documents")).to_contain_text("note 1")
    expect(page.get_by_role("status")).to_contain_text("Learned 4 words, 2 of them new")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#why-title")).to_have_text("Why sleeps?")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    first = page.locator("#chips button").first
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#draft")).to_be_focused()
    assert len(page.locator("#draft").input_value()) > len("The zorble sleeps")


def test_a_word_that_was_begun_is_gone_on_with(page: Page, address: str) -> None:
    start(page, address, "begun")
    type_text(page, TEXT)
    scored(page, "begun", TEXT)
    learn(page)
    type_text(page, "The Zor")
    first = page.locator("#chips button").first
    expect(first).to_have_attribute("value", "zorble")
    first.click()
    expect(page.locator("#draft")).to_have_value("The zorble")


def test_words_drawn_again_keep_who_has_moved_to_one(page: Page, address: str) -> None:
    start(page, address, "redrawn")
    page.keyboard.type("The zorble")
    scored(page, "redrawn", "The zorble")
    page.locator("#chips button").nth(1).focus()
    held = page.locator("#chips button:focus")

    def draw_again() -> None:
        held.evaluate("chip => { chip.dataset.old = '1'; }")
        page.locator("#draft").dispatch_event("input")
        expect(page.locator("#chips [data-old]")).to_have_count(0)
        expect(held).to_have_count(1)

    # Those before may still be for less of the text; from now on they are the same.
    draw_again()
    word = held.get_attribute("value") or ""
    draw_again()
    expect(held).to_have_attribute("value", word)


def test_everything_has_a_name_for_those_who_do_not_see(page: Page, address: str) -> None:
    start(page, address, "named")
    page.keyboard.type("The zorble")
    expect(page.locator("#chips button").first).to_be_visible()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, progress, svg')]
            .filter(one => one.offsetParent !== null || one.tagName === 'svg')
            .filter(one => !(one.labels?.length || one.getAttribute('aria-label')
                || one.getAttribute('aria-labelledby') || one.textContent.trim()
                || one.placeholder))
            .map(one => one.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_it_fits_and_can_be_read(
    page: Page, address: str, scheme: str, size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    start(page, address, f"look-{scheme}-{size[0]}")
    page.locator("#draft").fill(TEXT)
    scored(page, f"look-{scheme}-{size[0]}", TEXT)
    expect(page.locator("#chips button").first).to_be_visible()
    outside = page.evaluate(
        """() => [...document.querySelectorAll('body *:not(.hidden, .skip)')]
            .filter(one => one.getBoundingClientRect().right > innerWidth)
            .map(one => one.outerHTML.slice(0, 200))"""
    )
    assert outside == []
    for name in ("#key-form", "#message", "#progress-box"):
        expect(page.locator(name)).to_be_hidden()
    ink, paper = page.evaluate(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])"
    )
    assert (brightness(ink) > brightness(paper)) == (scheme == "dark")
    assert abs(brightness(ink) - brightness(paper)) > 150
    # The tint lies exactly behind the words.
    places = page.evaluate(
        """() => ['draft', 'tint'].map(id => {
            const box = document.getElementById(id);
            const look = getComputedStyle(box);
            return [look.font, look.padding, look.lineHeight, box.clientWidth, box.scrollHeight];
        })"""
    )
    assert places[0] == places[1]


def brightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


def test_where_keys_are_on_the_page_asks_for_one(
    browser: Browser, model: Pretrained, tmp_path: Path
) -> None:
    root = tmp_path / "s"
    token = Keys(root).add("me", [], "write")[1]
    with in_thread(root, model, keys=Keys(root)) as url, browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        expect(page.locator("#key")).to_be_focused()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("unknown")
        page.locator("#key").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator("#none")).to_be_visible()
        expect(page.locator("#key-form")).to_be_hidden()
        expect(page.get_by_role("alert")).to_be_hidden()
        assert token not in page.content()
