"""An evaluation for people: a table in the terminal, a page with curves."""

import math
import sys
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from unbounded.evaluation import tables
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.figures import perplexity_svg, weights_svg
from unbounded.evaluation.metrics import BANDS
from unbounded.evaluation.rows import TITLES, Gain, Row, experts_of
from unbounded.evaluation.tables import Entry, Grid, Line, Part, change, minus, plain
from unbounded.files import write_text_atomically

GAINS = 20
"""So many words that gained most, and as many that lost most."""

LABELS = {
    "fitted_on": "weights fitted on",
    "k": "neighbors (k)",
    "window": "local cache keeps",
    "local_kernel": "kernel of the local cache",
    "normalize": "states scaled to length one",
}
"""Settings whose name alone does not say what they are."""

LONGEST_WORD = 40
"""Letters of a word that a table shows: texts have words of a million letters."""

CURVE_LINES = 24
"""The curve's table shows about so many checkpoints, the last one always."""


def text_table(evaluation: Evaluation) -> str:
    """The rows as plain text of at most 80 columns, the lowest perplexity starred."""
    words = evaluation.words
    known = "full vocabulary"
    if evaluation.settings.get("protocol") == "open":
        known = "open protocol, vocabulary at the end"
    found = f"{evaluation.tokens:,} words, {evaluation.oov_rate:.1%} OOV words"
    if words is not None:
        found = f"{evaluation.tokens:,} pieces of {words:,} words"
    best = _best_row(evaluation) if len(evaluation.rows) > 1 else None
    lines = []
    for row in evaluation.rows:
        first, *cells = (cell.replace("−", "-") for cell in _figures(evaluation, row))
        entries = (Entry(first, best=row is best), *map(Entry, cells))
        lines.append(Line(TITLES[row.name], entries))
    a_word = [] if words is None else ["a word"]
    unit = "µs/word" if words is None else "µs/piece"
    head = ("", "perplexity", *a_word, "change", "bits/char", unit)
    title = f"{found}; {known} {evaluation.vocabulary:,}\n"
    widths = (26, 12, *(11 for _ in a_word), 9, 11, 9)
    return tables.text(Grid(title, head, (Part("", tuple(lines)),)), widths)


def write_report(evaluation: Evaluation, path: Path, title: str) -> None:
    """One self-contained page, the same bytes for the same evaluation; asks no host.

    `-` is standard output.
    """
    first, last = evaluation.rows[0], evaluation.rows[-1]
    shares = zip(last.experts, last.mixture.weights.tolist(), strict=True)
    weights = ", ".join(f"{name} {share:.1%}" for name, share in shares)
    template = Template(files("unbounded.evaluation").joinpath("page.html").read_text("utf-8"))
    page = template.substitute(
        title=escape(title),
        headline=escape(headline(evaluation)),
        facts=_facts(evaluation),
        rows=tables.html(_rows_grid(evaluation)),
        shares=tables.html(_shares_grid(evaluation)),
        row_key=_key({row.name: TITLES[row.name] for row in evaluation.rows}),
        expert_key=_key({name: name for name in last.experts}),
        last=escape(TITLES[last.name]),
        perplexity=perplexity_svg(
            evaluation.curve,
            evaluation.rows,
            "Line chart of perplexity against words read, a line a row. " + headline(evaluation),
        ),
        weights=weights_svg(
            evaluation.curve,
            last,
            f"Area chart of the weights of “{TITLES[last.name]}” against words read. At the end: "
            + weights,
        ),
        curve=tables.html(_curve_grid(evaluation)),
        bands=tables.html(_bands_grid(evaluation)),
        gains="" if first is last else _gains(evaluation),
    )
    if str(path) == "-":
        sys.stdout.write(page)
    else:
        write_text_atomically(path, page)


def headline(evaluation: Evaluation) -> str:
    """What came out, in a sentence."""
    first, best = evaluation.rows[0], _best_row(evaluation)
    start = f"Perplexity {_perplexity(first.tally.perplexity)} ({TITLES[first.name]})"
    if best is first:
        return f"{start} over {evaluation.tokens:,} words."
    return (
        f"{start} → {_perplexity(best.tally.perplexity)} ({TITLES[best.name]}), "
        f"{change(best.tally.perplexity, first.tally.perplexity)}, "
        f"over {evaluation.tokens:,} words."
    )


def _key(titles: dict[str, str]) -> str:
    return "".join(f'<li class="{escape(n)}">{escape(title)}</li>' for n, title in titles.items())


def _facts(evaluation: Evaluation) -> str:
    """What was read, and how, as a list of terms."""
    found = {
        "words scored": f"{evaluation.tokens:,}",
        "OOV words": f"{evaluation.oov_rate:.1%}",
        "full vocabulary": f"{evaluation.vocabulary:,} words",
    }
    if evaluation.words is not None:
        found = {
            "words scored": f"{evaluation.words:,}, in {evaluation.tokens:,} pieces",
            "full vocabulary": f"{evaluation.vocabulary:,} pieces",
        }
    for name, value in evaluation.settings.items():
        if value:
            found[LABELS.get(name, name.replace("_", " "))] = _setting(value)
    for name in TITLES:
        if f"{name}_entries" in evaluation.memory:
            entries = evaluation.memory[f"{name}_entries"]
            size = evaluation.memory[f"{name}_bytes_per_entry"]
            found[f"{name} memory"] = f"{entries:,.0f} entries of {size:,.0f} bytes"
    items = [
        f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>"
        for term, value in found.items()
    ]
    if evaluation.events:
        events = "".join(f"<dd>{escape(event)}</dd>" for event in evaluation.events)
        items.append(f"<div class=wide><dt>what happened</dt>{events}</div>")
    return "\n".join(items)


def _setting(value: Any) -> str:
    """A setting as people write it.

    >>> _setting({"shape": "gaussian", "sharpness": 16.0, "bandwidth": None}), _setting(10_000)
    ('gaussian, sharpness 16', '10,000')
    """
    match value:
        case {"shape": shape, **rest}:
            named = [f"{name} {_setting(item)}" for name, item in rest.items() if item is not None]
            return ", ".join([str(shape), *named])
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)


def _figures(evaluation: Evaluation, row: Row) -> list[str]:
    """A row's perplexity, a word too where pieces were read, change, bits per character, µs."""
    tally, base, words = row.tally, evaluation.rows[0].tally, evaluation.words
    return [
        _perplexity(tally.perplexity),
        *([] if words is None else [_perplexity(tally.per(words))]),
        change(tally.perplexity, base.perplexity) if tally is not base else "",
        f"{tally.bits_per_character:.3f}",
        f"{row.seconds / tally.tokens * 1e6:,.0f}",
    ]


def _rows_grid(evaluation: Evaluation) -> Grid:
    """One line a row; the lowest perplexity is marked."""
    best = _best_row(evaluation)
    lines = []
    for row in evaluation.rows:
        title, style = TITLES[row.name], row.name
        if row is best:
            title, style = f"{title} ★ best", f"{style} best"
        lines.append(Line(title, tuple(map(Entry, _figures(evaluation, row))), style))
    a_word = [] if evaluation.words is None else ["perplexity a word"]
    unit = "word" if evaluation.words is None else "piece"
    head = ["row", "perplexity", *a_word, "change", "bits per character", f"µs per {unit}"]
    return Grid("The rows, the change against the first", tuple(head), (Part("", tuple(lines)),))


def _shares_grid(evaluation: Evaluation) -> Grid:
    """One line an expert: its mean weight in each row that has it."""
    means = [
        dict(zip(row.experts, row.mean_weights.tolist(), strict=True)) for row in evaluation.rows
    ]
    lines = [
        Line(
            name, tuple(Entry(f"{mean[name]:.1%}" if name in mean else "") for mean in means), name
        )
        for name in experts_of(evaluation.rows)
    ]
    head = ["mean weight of", *(TITLES[row.name] for row in evaluation.rows)]
    return Grid("Whom each row believes", tuple(head), (Part("", tuple(lines)),))


def _curve_grid(evaluation: Evaluation) -> Grid:
    step = math.ceil(len(evaluation.curve) / CURVE_LINES)
    lines = [
        (
            f"{point.tokens:,}",
            [_perplexity(point.points[row.name].recent_perplexity) for row in evaluation.rows],
        )
        for point in evaluation.curve[::-1][::step][::-1]
    ]
    head = ["words read", *(TITLES[row.name] for row in evaluation.rows)]
    return plain("Perplexity of the later half of all words so far", head, lines)


def _bands_grid(evaluation: Evaluation) -> Grid:
    """Perplexity by how rare a word is, and how much of all nats saved came from there."""
    first, last = evaluation.rows[0], evaluation.rows[-1]
    saved = first.tally.nats - last.tally.nats
    lines = []
    for i, band in enumerate(BANDS):
        base, other = first.bands[i], last.bands[i]
        if not base.tokens:
            continue
        cells = [f"{base.tokens:,}", f"{base.tokens / evaluation.tokens:.1%}"]
        cells += [_perplexity(row.bands[i].perplexity) for row in evaluation.rows]
        if first is not last:
            cells.append(change(other.perplexity, base.perplexity))
            cells.append(minus(f"{(base.nats - other.nats) / saved:.1%}") if saved > 0 else "")
        lines.append((band, cells))
    head = ["words", "how many", "share", *(TITLES[row.name] for row in evaluation.rows)]
    head += ["change", "share of the gain"] if first is not last else []
    return plain("Perplexity by how well the network knows the word", head, lines)


def _gains(evaluation: Evaluation) -> str:
    assert evaluation.gains is not None
    base, other = TITLES[evaluation.gains.base], TITLES[evaluation.gains.other]
    gained = tables.html(_gains_grid("Gained most", evaluation.gains.most(GAINS)))
    lost = tables.html(_gains_grid("Lost most", evaluation.gains.most(GAINS, lost=True)))
    return (
        "<section><h2>Which words gained, which lost</h2>\n"
        f"<p>Nats saved by “{escape(other)}” over “{escape(base)}”, "
        "summed over all times a word came.</p>\n"
        f"<div class=pair>{gained}{lost}</div></section>"
    )


def _gains_grid(title: str, gains: Sequence[Gain]) -> Grid:
    lines = [
        (
            gain.word if len(gain.word) <= LONGEST_WORD else f"{gain.word[: LONGEST_WORD - 1]}…",
            [
                f"{gain.times:,}",
                *map(minus, (f"{gain.nats:+,.1f}", f"{gain.nats / gain.times:+.2f}")),
            ],
        )
        for gain in gains
    ]
    return plain(title, ["word", "times", "nats in all", "nats each"], lines)


def _best_row(evaluation: Evaluation) -> Row:
    """The row with the lowest perplexity; the earlier of two alike."""
    return min(evaluation.rows, key=lambda row: row.tally.perplexity)


def _perplexity(value: float) -> str:
    """Two digits after the point while they mean something."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"
