"""An evaluation for people: a table in the terminal, a page with curves."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from unbounded.evaluation import tables
from unbounded.evaluation.evaluation import Evaluation
from unbounded.evaluation.figures import perplexity_svg, weights_svg
from unbounded.evaluation.rows import TITLES
from unbounded.files import write_text_aside

GAINS = 20
"""So many words that gained most, and as many that lost most."""


def text_table(evaluation: Evaluation) -> str:
    """The rows as plain text of at most 80 columns, the lowest perplexity starred."""
    base = evaluation.rows[0].tally.perplexity
    best = tables.best_row(evaluation)
    known = "full vocabulary"
    if evaluation.settings.get("protocol") == "open":
        known = "open protocol, vocabulary at the end"
    words = evaluation.words
    found = f"{evaluation.tokens:,} words, {evaluation.oov_rate:.1%} OOV words"
    if words is not None:
        found = f"{evaluation.tokens:,} pieces of {words:,} words"
    head = ["perplexity", *([] if words is None else ["a word"]), "change", "bits/char"]
    unit = "µs/word" if words is None else "µs/piece"
    widths = [12, *([] if words is None else [11]), 9, 11, 9]
    columns = "".join(f"{n:>{w}}" for n, w in zip([*head, unit], widths, strict=True))
    lines = [f"{found}; {known} {evaluation.vocabulary:,}", "", f"{'':<26}{columns}"]
    for row in evaluation.rows:
        change = tables.change(row.tally.perplexity, base).replace("−", "-")
        change = change if row is not evaluation.rows[0] else ""
        a_word = "" if words is None else f"{tables.perplexity(row.tally.per(words)):>11}"
        line = (
            f"{TITLES[row.name]:<26}{tables.perplexity(row.tally.perplexity):>12}{a_word}"
            f"{change:>9}{row.tally.bits_per_character:>11.3f}"
            f"{row.seconds / row.tally.tokens * 1e6:>9,.0f}"
        )
        lines.append(f"{line} *" if row is best and len(evaluation.rows) > 1 else line)
    return "\n".join(lines)


def write_report(evaluation: Evaluation, path: Path, title: str) -> None:
    """One self-contained page, the same bytes for the same evaluation; asks no host."""
    first, last = evaluation.rows[0], evaluation.rows[-1]
    template = Template(files("unbounded.evaluation").joinpath("page.html").read_text("utf-8"))
    page = template.substitute(
        title=escape(title),
        headline=escape(headline(evaluation)),
        facts=tables.facts(evaluation),
        rows=tables.rows_table(evaluation),
        row_key=_key([row.name for row in evaluation.rows], titles=True),
        expert_key=_key(last.experts, titles=False),
        last=escape(TITLES[last.name]),
        perplexity=perplexity_svg(
            evaluation.checkpoints,
            evaluation.rows,
            "Line chart of perplexity against words read, a line a row. " + headline(evaluation),
        ),
        weights=weights_svg(
            evaluation.checkpoints,
            last,
            f"Area chart of the weights of “{TITLES[last.name]}” against words read. At the end: "
            + tables.weights(dict(zip(last.experts, last.mixture.weights.tolist(), strict=True))),
        ),
        curve=tables.curve_table(evaluation),
        bands=tables.bands_table(evaluation),
        gains="" if first is last else _gains(evaluation),
    )
    write_text_aside(path, page)


def headline(evaluation: Evaluation) -> str:
    """What came out, in a sentence."""
    first, best = evaluation.rows[0], tables.best_row(evaluation)
    start = f"Perplexity {tables.perplexity(first.tally.perplexity)} ({TITLES[first.name]})"
    if best is first:
        return f"{start} over {evaluation.tokens:,} words."
    change = tables.change(best.tally.perplexity, first.tally.perplexity)
    return (
        f"{start} → {tables.perplexity(best.tally.perplexity)} ({TITLES[best.name]}), "
        f"{change}, over {evaluation.tokens:,} words."
    )


def _key(names: list[str] | tuple[str, ...], *, titles: bool) -> str:
    """Names beside their colors."""
    return "".join(
        f'<li class="{escape(name)}">{escape(TITLES[name] if titles else name)}</li>'
        for name in names
    )


def _gains(evaluation: Evaluation) -> str:
    assert evaluation.gains is not None
    base, other = TITLES[evaluation.gains.base], TITLES[evaluation.gains.other]
    gained = tables.gains_table("Gained most", evaluation.gains.most(GAINS))
    lost = tables.gains_table("Lost most", evaluation.gains.most(GAINS, lost=True))
    return (
        "<section><h2>Which words gained, which lost</h2>\n"
        f"<p>Nats saved by “{escape(other)}” over “{escape(base)}”, "
        "summed over all times a word came.</p>\n"
        f"<div class=pair>{gained}{lost}</div></section>"
    )
