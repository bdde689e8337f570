"""Bits per character of texts under a model, beside compressors that were told its training text.

python -m experiments.compression FOLDER TEXT... --words 100k,1M
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.compressors import COMPRESSORS, packed_after, text_of
from experiments.results import circumstances
from unbounded.cli.main import run
from unbounded.console import parse_size
from unbounded.corpus import Reader
from unbounded.errors import SettingError
from unbounded.evaluation.evaluate import EvaluationConfig, evaluate
from unbounded.evaluation.metrics import written
from unbounded.lm import Pretrained, load_model

ROWS = ("static", "full")


def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model with its text.")],
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Files to read.")],
    words: Annotated[str, typer.Option(help="How many words of each, such as 100k,1M.")] = "100k",
    only: Annotated[str, typer.Option(help="Compressors to run, by a part of their names.")] = "",
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
) -> None:
    """Read each text under the open protocol, pack the same text, and write both down."""
    model = load_model(folder)
    if model.text is None:
        raise SettingError(f"{folder} keeps no training text; train it again")
    before = written(model.vocabulary.decode(model.text))
    names = [name for name in COMPRESSORS if any(part in name for part in only.split(","))]
    target = root / "experiments" / "results" / "compression.jsonl"
    for tokens in map(parse_size, words.split(",")):
        for text in texts:
            found = compare(model, text, before, tokens, names)
            with target.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found | circumstances(root.absolute())) + "\n")
            for name, bits in found["bits_per_character"].items():
                typer.echo(f"{found['text']}  {found['words']:,} words  {name:24} {bits:.4f}")


def compare(
    model: Pretrained, text: Path, before: str, tokens: int, names: list[str]
) -> dict[str, Any]:
    """Bits per character of the first words of a text; the same characters for everybody."""
    config = EvaluationConfig(rows=ROWS, protocol="open", tokens=tokens)
    read = evaluate(model, Reader([text]), config).to_json()
    test = text_of(text, model.tokenizer, tokens)
    packed = [packed_after(name, before, test) for name in names]
    return {
        "text": f"{text.parent.name}/{text.name.split('.')[0]}",
        "words": read["tokens"],
        "characters": len(test),
        "characters_before": len(before),
        "bits_per_character": {
            **{one["name"]: one["bits_per_character"] for one in packed},
            **{row["name"]: row["bits_per_character"] for row in read["rows"]},
        },
        "perplexity": {row["name"]: row["perplexity"] for row in read["rows"]},
        "trained": model.config["training"],
    }


if __name__ == "__main__":
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    commands.command()(main)
    run(commands, "python -m experiments.compression")
