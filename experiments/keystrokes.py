"""Keystrokes saved on texts the model has not seen, by the network alone and as it learns.

python -m experiments.keystrokes --corpora DIR --model FOLDER
"""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.markup import markdown
from experiments.results import write_result
from unbounded.cli.main import CORES, Threads, run
from unbounded.console import say
from unbounded.corpus import Reader, read_sentences
from unbounded.evaluation.keystrokes import SUGGESTIONS, keystrokes
from unbounded.evaluation.tables import plain
from unbounded.lm import load_model

TEXTS = {
    "a novel of 1847": "books/ENG18471_Bronte.txt.xz",
    "parliament, 2010": "commentary/2010.txt.xz",
}
NAMES = {"static": "network alone", "full": "with memory"}


def table(found: dict[str, Any]) -> str:
    """A row a text and a model, as Markdown."""
    lines = [
        (text, [name, *(f"{rows[preset][str(n)]:.1%}" for n in SUGGESTIONS)])
        for text, rows in found["saved"].items()
        for preset, name in NAMES.items()
    ]
    return markdown(plain("", ("text", "", "1 suggestion", "3", "5"), lines))


def main(
    model: Annotated[Path, typer.Option(metavar="FOLDER", help="A model trained on other text.")],
    corpora: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the texts.")],
    words: Annotated[int, typer.Option(min=1, help="Words of each text.")] = 2_000,
    root: Annotated[Path, typer.Option(metavar="DIR", help="The checkout.")] = Path(),
    threads: Threads = CORES,
) -> None:
    """Type the beginning of each text, and write what was saved."""
    from unbounded.presets import set_threads

    set_threads(threads)
    trained = load_model(model)
    saved: dict[str, Any] = {}
    for name, path in TEXTS.items():
        for preset in NAMES:
            sentences = read_sentences(Reader([str(corpora / path)]), trained.tokenizer)
            typed = islice((word for one in sentences for word in one.words), words)
            found = keystrokes(trained, preset, typed)
            saved.setdefault(name, {})[preset] = {str(n): part for n, part in found.saved.items()}
            say(f"{name}, {preset}: {found.saved}")
    result = {"words": words, "saved": saved, "training": trained.config["training"]}
    typer.echo(table(write_result(root, "keystrokes", result)))


if __name__ == "__main__":
    run(main, "python -m experiments.keystrokes")
