"""The page in a real browser, as a person uses it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.chromium import CHROMIUM, NO_CHROMIUM
from tests.serve.page_steps import TEXT, drop, learn, nats, scored, start, type_text, until
from tests.serve.running_service import Client, in_thread
from unbounded.lm import Pretrained
from unbounded.serve.keys import Keys

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


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
    expect(why.locator(".passages mark").first).to_have_text("zorble")
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


def test_a_dropped_file_is_read_to_the_end(page: Page, address: str) -> None:
    start(page, address, "files")
    text = "\n".join(f"Sentence {n} is about the number {n % 7}." for n in range(300))
    drop(page, "report.txt", text.encode())
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
