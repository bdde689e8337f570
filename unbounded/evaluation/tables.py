"""An evaluation's figures as HTML tables; every text in them is escaped."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from unbounded.evaluation.evaluation import Evaluation, experts_of
from unbounded.evaluation.gains import Gain
from unbounded.evaluation.metrics import BANDS
from unbounded.evaluation.rows import TITLES, Row

LABELS = {
    "fitted_on": "weights fitted on",
    "k": "neighbors (k)",
    "window": "local cache keeps",
    "local_kernel": "kernel of the local cache",
    "normalize": "states scaled to length one",
}
"""Settings whose name alone does not say what they are."""

LONGEST_WORD = 40
"""Letters of a word that a table shows."""

CURVE_LINES = 24
"""The curve's table shows about so many checkpoints, the last one always."""


@dataclass(frozen=True)
class Line:
    """One line of a table: the style classes, the heading of the line, its other cells."""

    classes: str
    heading: str
    cells: Sequence[str]


def html_table(caption: str, head: Sequence[str], lines: Iterable[Line]) -> str:
    """A captioned table with headings for lines and columns; can be scrolled where it is too wide.

    >>> table = html_table("words", ["word", "times"], [Line("", "<b>", ["2"])])
    >>> "<th scope=row>&lt;b&gt;</th><td>2</td>" in table
    True
    """
    columns = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in head)
    body = "\n".join(
        f'<tr class="{escape(line.classes)}"><th scope=row>{escape(line.heading)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in line.cells)
        + "</tr>"
        for line in lines
    )
    return (
        f'<div class=scroll role=region tabindex=0 aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{columns}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def facts(evaluation: Evaluation) -> str:
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
            found[LABELS.get(name, name.replace("_", " "))] = setting(value)
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


def setting(value: Any) -> str:
    """A setting as people write it.

    >>> setting({"shape": "gaussian", "sharpness": 16.0, "bandwidth": None}), setting(10_000)
    ('gaussian, sharpness 16', '10,000')
    """
    match value:
        case {"shape": shape, **rest}:
            named = [f"{name} {setting(item)}" for name, item in rest.items() if item is not None]
            return ", ".join([str(shape), *named])
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)


def rows_table(evaluation: Evaluation) -> str:
    """One line a row; the lowest perplexity is marked."""
    base = evaluation.rows[0].tally
    best = best_row(evaluation)
    experts = experts_of(evaluation.rows)
    words = evaluation.words
    lines = [
        Line(
            f"{row.name} best" if row is best else row.name,
            f"{TITLES[row.name]} ★ best" if row is best else TITLES[row.name],
            [
                perplexity(row.tally.perplexity),
                *([] if words is None else [perplexity(row.tally.per(words))]),
                change(row.tally.perplexity, base.perplexity) if row.tally is not base else "",
                f"{row.tally.bits_per_character:.3f}",
                f"{row.seconds / row.tally.tokens * 1e6:,.0f}",
                *(f"{mean[name]:.1%}" if name in mean else "" for name in experts),
            ],
        )
        for row in evaluation.rows
        for mean in [dict(zip(row.experts, row.mean_weights.tolist(), strict=True))]
    ]
    unit = "word" if words is None else "piece"
    head = ["row", "perplexity", *([] if words is None else ["perplexity a word"])]
    head += ["change", "bits per character", f"µs per {unit}"]
    head += [f"weight of {name}" for name in experts]
    return html_table("The rows, the change against the first, the mean weights", head, lines)


def curve_table(evaluation: Evaluation) -> str:
    """The curves in numbers: perplexity since the last checkpoint, and so far."""
    step = math.ceil(len(evaluation.checkpoints) / CURVE_LINES)
    lines = [
        Line(
            "",
            f"{checkpoint.tokens:,}",
            [
                perplexity(value)
                for row in evaluation.rows
                for point in [checkpoint.points[row.name]]
                for value in (point.recent_perplexity, point.perplexity)
            ],
        )
        for checkpoint in evaluation.checkpoints[::-1][::step][::-1]
    ]
    head = ["words read"]
    for row in evaluation.rows:
        head += [TITLES[row.name], "so far"]
    return html_table("Perplexity since the last checkpoint, and so far", head, lines)


def bands_table(evaluation: Evaluation) -> str:
    """Perplexity by how rare a word is, and how much of all nats saved came from there."""
    first, last = evaluation.rows[0], evaluation.rows[-1]
    saved = first.tally.nats - last.tally.nats
    lines = []
    for i, band in enumerate(BANDS):
        base, other = first.bands[i], last.bands[i]
        if not base.tokens:
            continue
        cells = [f"{base.tokens:,}", f"{base.tokens / evaluation.tokens:.1%}"]
        cells += [perplexity(row.bands[i].perplexity) for row in evaluation.rows]
        if first is not last:
            cells.append(change(other.perplexity, base.perplexity))
            cells.append(minus(f"{(base.nats - other.nats) / saved:.1%}") if saved > 0 else "")
        lines.append(Line("", band, cells))
    head = ["words", "how many", "share", *(TITLES[row.name] for row in evaluation.rows)]
    head += ["change", "share of the gain"] if first is not last else []
    return html_table("Perplexity by how well the network knows the word", head, lines)


def gains_table(caption: str, gains: Sequence[Gain]) -> str:
    """Words with the nats they saved or cost."""
    lines = [
        Line(
            "",
            shorten(gain.word),
            [
                f"{gain.times:,}",
                *map(minus, (f"{gain.nats:+,.1f}", f"{gain.nats / gain.times:+.2f}")),
            ],
        )
        for gain in gains
    ]
    return html_table(caption, ["word", "times", "nats in all", "nats each"], lines)


def shorten(word: str) -> str:
    """The word, cut where it is too long for a table: texts have words of a million letters."""
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"


def best_row(evaluation: Evaluation) -> Row:
    """The row with the lowest perplexity; the earlier of two alike."""
    return min(evaluation.rows, key=lambda row: row.tally.perplexity)


def perplexity(value: float) -> str:
    """Two digits after the point while they mean something."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"


def change(value: float, base: float) -> str:
    """How much more or less than the base, in percent."""
    ratio = value / base - 1
    return minus(f"{ratio:+.1%}") if math.isfinite(ratio) else "–"


def weights(shares: Mapping[str, float]) -> str:
    """Experts with their shares."""
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def minus(text: str) -> str:
    """A minus as long as the plus, which a screen reader reads as one."""
    return text.replace("-", "−")
