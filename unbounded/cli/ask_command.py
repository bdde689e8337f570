"""`unbounded predict`, `score` and `complete`: asking a memory, which teaches it nothing."""

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import (
    CORES,
    Device,
    Engine,
    Folder,
    JsonFile,
    Model,
    Seed,
    Threads,
    app,
    opened,
    say_damage,
)
from unbounded.console import tell
from unbounded.errors import CorpusError

if TYPE_CHECKING:
    from unbounded.corpus import Line, Reader
    from unbounded.memory import Passage, Prediction

Text = Annotated[
    str,
    typer.Argument(metavar="TEXT", help="What comes before: the text, a file, or - for a pipe."),
]


def _given(texts: list[str]) -> "Reader | list[Line]":
    """Files and pipes, or a text that was typed: what is no file, and does not look like one."""
    from unbounded.corpus import Reader, lines_of

    def is_text(given: str) -> bool:
        named = given == "-" or os.path.exists(os.path.expanduser(given))
        # A typing error in a file's name is not a text.
        return not named and (" " in given or not ("/" in given or Path(given).suffix))

    if texts and all(map(is_text, texts)):
        return lines_of(" ".join(texts), "text", 1)
    return Reader([os.path.expanduser(given) for given in texts])


def _text(given: str) -> str:
    """A text that goes on, as it was typed, or of a file or a pipe."""
    if not given.strip():
        return given
    return "\n".join(line.text for line in _given([given]))


@app.command()
def predict(
    memory_folder: Folder,
    text: Text = "",
    number: Annotated[int, typer.Option("-n", min=1, help="Words to list.")] = 10,
    prefix: Annotated[str, typer.Option(help="Letters that the word begins with.")] = "",
    sources: Annotated[int, typer.Option(min=0, help="Passages to list for each word.")] = 2,
    model: Model = None,
    device: Device = "cpu",
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """List the likeliest next words, who says so, and the passages they come from."""
    with opened(memory_folder, model, engine=engine, device=device, threads=threads) as memory:
        found = memory.predict(_text(text), number, prefix, sources=sources)
    figures = asdict(found)
    for source in (source for word in figures["words"] for source in word["sources"]):
        source["time"] = source["time"].isoformat()
    tell(json_file, figures, *_prediction(found))


def _prediction(found: "Prediction") -> Iterator[str]:
    for guess in found.words:
        shares = sorted(guess.shares.items(), key=lambda item: -item[1])
        said = ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005)
        shown = "⏎ (end of line)" if guess.written == "\n" else guess.written
        yield f"{guess.prob:7.2%}  {shown}  ({said})"
        for passage in guess.sources:
            yield (
                f"           {passage.weight:6.2%}  {passage.document}:{passage.line}, "
                f"{passage.time:%Y-%m-%d}: {_marked(passage)}"
            )
    yield f"{found.rest:7.2%}  another word that was seen"
    yield f"{found.oov:7.2%}  a word never seen"


def _marked(passage: "Passage") -> str:
    """A passage with its word marked: bold on a terminal, in brackets elsewhere."""
    text, start, end = passage.text, passage.start, passage.end
    word = text[start:end]
    marked = typer.style(word, bold=True) if sys.stdout.isatty() else f"[{word}]"
    return f"{text[:start]}{marked}{text[end:]}"


@app.command()
def score(
    memory_folder: Folder,
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...", help="The text itself, or files, folders, - for standard input."
        ),
    ],
    each: Annotated[
        bool, typer.Option("--words", help="Print every word: nats, static nats, word.")
    ] = False,
    model: Model = None,
    device: Device = "cpu",
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Score a text or files with the memory and without, word by word; teaches nothing."""
    import numpy as np

    from unbounded.corpus import Reader
    from unbounded.evaluation.rows import whole_words
    from unbounded.memory import Reading

    lines_given = _given(texts)
    with opened(memory_folder, model, engine=engine, device=device, threads=threads) as memory:
        if not (parts := list(memory.scoring(lines_given))):
            raise CorpusError("there are no words to score; give a text with words")
        found = Reading.joined(parts)
        splitter = memory.model.tokenizer
    if isinstance(lines_given, Reader):
        say_damage(lines_given)
    words, static = len(found.words), -np.log(found.static)
    unit = "pieces" if memory.model.lm.closed else "words"
    perplexity, alone = found.perplexity, float(np.exp(static.mean()))
    if each:
        shown = whole_words(found.words, splitter)
        starts = splitter.starts(found.words)
        sums = (np.add.reduceat(nats, starts).tolist() for nats in (found.nats, static))
        rows = list(zip(*sums, shown, strict=True))
    line = f"{words:,} {unit}: perplexity {perplexity:,.2f} with the memory, {alone:,.2f} static"
    figures: dict[str, Any] = {unit: words, "perplexity": perplexity, "static_perplexity": alone}
    lines = [line]
    if each:
        figures["scores"] = [{"word": w, "nats": n, "static_nats": s} for n, s, w in rows]
        lines = ["{:.3f}\t{:.3f}\t{}".format(*row) for row in rows]
    tell(json_file, figures, *lines)


@app.command()
def complete(
    memory_folder: Folder,
    text: Text = "",
    words: Annotated[int, typer.Option(min=1, help="Words to write.")] = 20,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 writes the likeliest words; others are drawn.")
    ] = 0.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Draw from the k likeliest words [default: all].")
    ] = None,
    top_p: Annotated[
        float,
        typer.Option(min=0, max=1, help="Draw from the likeliest words with this probability."),
    ] = 1.0,
    model: Model = None,
    device: Device = "cpu",
    seed: Seed = 1,
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Go on writing."""
    with opened(memory_folder, model, engine=engine, device=device, threads=threads) as memory:
        written = memory.complete(_text(text), words, temperature, top_k, seed, top_p=top_p)
    tell(json_file, {"text": text, "completion": written, "seed": seed}, written)
