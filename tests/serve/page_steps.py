"""What a person does on the page."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

expect.set_options(timeout=60_000)
TEXT = "The zorble ate the grass of the people."


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
