import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.evaluation.stream import block_of, evaluate, new_model, some_words
from unbounded.errors import MissingExtra
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.report import headline, text_table, write_report
from unbounded.evaluation.rows import TITLES, Row, make_rows
from unbounded.presets import PRESETS as ROWS

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def evaluation() -> Evaluation:
    made = evaluate(some_words(120), cuts=range(0, 120, 10), every=20)
    made.settings |= {
        "protocol": "paper",
        "mixture": "online",
        "fitted_on": 0,
        "block": 10,
        "k": 1024,
        "index": "auto",
        "kernel": {"shape": "gaussian", "sharpness": 16.0, "bandwidth": None},
        "normalize": False,
    }
    made.memory |= {"unbounded_entries": 120, "unbounded_bytes_per_entry": 24.0}
    made.events.append("at 100 entries: switched to <lists>")
    return made


def page_of(evaluation: Evaluation, folder: Path, title: str = "a text") -> str:
    write_report(evaluation, folder / "report.html", title)
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    return (folder / "report.html").read_text("utf-8")


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and whether all are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_says_what_was_read_how_and_what_came_out(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    page = page_of(evaluation, tmp_path, title="speeches")
    assert "<h1>speeches</h1>" in page
    for row in evaluation.rows:
        line = re.search(rf'<tr class="{row.name}\b[^>]*>.*?</tr>', page)
        assert line is not None
        assert TITLES[row.name] in line[0]
        assert f'<td data-of="perplexity">{row.tally.perplexity:.2f}</td>' in line[0]
        bits = f"{row.tally.bits_per_character:.3f}"
        assert f'<td data-of="bits per character">{bits}</td>' in line[0]
        for weight in row.mean_weights:
            assert f'<td data-of="{TITLES[row.name]}">{weight:.1%}</td>' in page
    best = min(evaluation.rows, key=lambda row: row.tally.perplexity)
    assert re.findall(r'<tr class="(\w+) best">', page) == [best.name]
    for term, value in (
        ("words scored", "120"),
        ("OOV words", f"{evaluation.oov_rate:.1%}"),
        ("full vocabulary", "20 words"),
        ("protocol", "paper"),
        ("neighbors (k)", "1,024"),
        ("kernel", "gaussian, sharpness 16"),
        ("unbounded memory", "120 entries of 24 bytes"),
        ("what happened", "at 100 entries: switched to &lt;lists&gt;"),
    ):
        assert f"<dt>{term}</dt><dd>{value}</dd>" in page
    assert "weights fitted on" not in page
    assert evaluation.gains is not None
    for gain in evaluation.gains.most(20) + evaluation.gains.most(20, lost=True):
        assert f'<th scope=row>{gain.word}</th><td data-of="times">{gain.times}</td>' in page
    for band in evaluation.to_json()["rows"][0]["bands"]:
        assert f"<th scope=row>{band}</th>" in page
    # The headline gives the first and the best; and it is the same page every time.
    said = headline(evaluation)
    assert f"{evaluation.rows[0].tally.perplexity:.2f} (static)" in said
    assert f"{best.tally.perplexity:.2f} ({TITLES[best.name]})" in said
    assert page_of(evaluation, tmp_path, title="speeches") == page


def test_hostile_words_titles_and_settings_are_only_text(tmp_path: Path) -> None:
    long = "a" * 1_000_000  # It is cut.
    words = [HOSTILE, "known0", long, "</table>", '"onload="', "$title", "${rows}", "&amp;"] * 5
    evaluation = Evaluation({"index": HOSTILE}, 30, make_rows(["static", "unigram"]))
    evaluation.run(new_model(full=30), [block_of(words)], every=5)
    page = page_of(evaluation, tmp_path, title=HOSTILE)
    assert "<script" not in page
    assert len(page) < 100_000
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert "<th scope=row>$title</th>" in page
    assert "<th scope=row>&amp;amp;</th>" in page
    assert not [name for _, found in Tags(page).found for name in found if name.startswith("on")]


def test_the_page_asks_no_host_is_well_formed_and_can_be_read_aloud(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    page = page_of(evaluation, tmp_path)
    tags = Tags(page)
    assert not {text for text in ("http:", "https:", "@import") if text in page}
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags.found}
    for _, attributes in tags.found:
        assert "src" not in attributes
        links = (value for name, value in attributes.items() if name.endswith("href"))
        assert all(value is not None and value.startswith("#") for value in links)
    policies = [meta["content"] for meta in tags.named("meta") if "http-equiv" in meta]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    ids = [found["id"] for _, found in tags.found if "id" in found]
    assert len(ids) == len(set(ids))
    named = re.findall(r'(?:href="#|url\(#)([^")]+)', page)
    assert set(named) <= set(ids)
    for name in set(re.findall(r"var\(--(\w+)\)", page)):
        assert f"--{name}:" in page
    assert tags.named("html") == [{"lang": "en"}]
    assert len(tags.named("svg")) == 2
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in tags.named("svg"))
    assert len(tags.named("table")) == len(tags.named("caption")) == 6
    assert all(heading["scope"] in ("row", "col") for heading in tags.named("th"))


@pytest.mark.parametrize("rows", [["static"], ["full", "static"]])
def test_one_row_one_checkpoint_and_a_best_first_row_make_pages_too(
    rows: list[str], tmp_path: Path
) -> None:
    evaluation = evaluate(some_words(30), rows, every=1_000)
    evaluation.rows[0].tally.nats = float("inf")
    page = page_of(evaluation, tmp_path)
    Tags(page)
    assert '<td data-of="perplexity">∞</td>' in page
    assert ("Which words gained" in page) == (len(rows) > 1)


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr("unbounded.evaluation.report.BANDS", ("one too few",))
    evaluation.rows[0].bands = ()
    with pytest.raises(IndexError):
        write_report(evaluation, tmp_path / "report.html", "a text")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_without_matplotlib_it_says_what_to_install(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"unbounded\[report\]"):
        write_report(evaluation, tmp_path / "report.html", "a text")
    assert list(tmp_path.iterdir()) == []


def test_the_text_table_fits_a_terminal_and_has_every_row(evaluation: Evaluation) -> None:
    lines = text_table(evaluation).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.pop() == "* the best"
    for row, line in zip(evaluation.rows, lines[-len(evaluation.rows) :], strict=True):
        assert line.startswith(TITLES[row.name])
        assert f" {row.tally.perplexity:.2f} " in line
    assert sum(line.endswith("*") for line in lines) == 1


def test_the_text_table_fits_however_large_the_figures_are() -> None:
    rows = [Row(name, ROWS[name]) for name in ROWS]
    for row in rows:
        row.tally.add(16.1 * 10_000_000, 10_000_000, 10_000_000)
        row.seconds = 1e5
    evaluation = Evaluation({}, 1_000_000, rows, tokens=10_000_000, oov=999_999)
    assert max(map(len, text_table(evaluation).splitlines())) <= 80
