"""An evaluation for people: a table in the terminal, a page with curves."""

from pathlib import Path

from unbounded.score.evaluation import Evaluation
from unbounded.score.rows import TITLES


def text_table(evaluation: Evaluation) -> str:
    """The rows as plain text, with the gain over the first."""
    base = evaluation.rows[0].tally.perplexity
    share = evaluation.strangers / max(evaluation.tokens, 1)
    lines = [
        f"{evaluation.tokens:,} words, {share:.1%} of them strangers to the network; "
        f"full vocabulary {evaluation.vocabulary:,}",
        f"{'':<26}{'perplexity':>12}{'change':>9}{'bits/char':>11}{'µs/word':>9}",
    ]
    for row in evaluation.rows:
        change = row.tally.perplexity / base - 1
        lines.append(
            f"{TITLES[row.name]:<26}{row.tally.perplexity:>12,.2f}{change:>9.1%}"
            f"{row.tally.bits_per_character:>11.3f}{row.seconds / row.tally.tokens * 1e6:>9,.0f}"
        )
    return "\n".join(lines)


def write_report(evaluation: Evaluation, path: Path, title: str) -> None:
    """One self-contained page."""
    raise NotImplementedError
