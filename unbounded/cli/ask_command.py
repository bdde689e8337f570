"""`unbounded predict`, `score` and `complete`: asking a memory, which teaches it nothing."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from unbounded.cli.main import (
    CORES,
    Engine,
    JsonFile,
    Seed,
    Texts,
    Threads,
    app,
    check_targets,
    say_damage,
)
from unbounded.cli.memory_options import Folder, Model, asked
from unbounded.console import write_json

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What comes before.")]


@app.command()
def predict(
    memory_folder: Folder,
    text: Text = "",
    number: Annotated[int, typer.Option("-n", min=1, help="Words to list.")] = 10,
    sources: Annotated[int, typer.Option(min=0, help="Passages to list for each word.")] = 2,
    model: Model = None,
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """List the likeliest next words, who says so, and the passages they come from."""
    check_targets(json_file)
    with asked(engine, memory_folder, model, threads) as memory:
        found = memory.predict(text, number, sources=sources)
    if json_file != "-":
        for guess in found.words:
            shares = sorted(guess.shares.items(), key=lambda item: -item[1])
            said = ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005)
            typer.echo(f"{guess.prob:7.2%}  {guess.word}  ({said})")
            for passage in guess.sources:
                typer.echo(
                    f"           {passage.weight:6.2%}  {passage.document}:{passage.line}, "
                    f"{passage.time:%Y-%m-%d}: {passage.text}"
                )
        typer.echo(f"{found.oov:7.2%}  a word never seen")
    if json_file is not None:
        words: list[dict[str, Any]] = [asdict(guess) for guess in found.words]
        for word in words:
            word["sources"] = [
                {**source, "time": source["time"].isoformat()} for source in word["sources"]
            ]
        write_json({"words": words, "oov": found.oov, "weights": found.weights}, json_file)


@app.command()
def score(
    memory_folder: Folder,
    texts: Texts,
    each: Annotated[
        bool, typer.Option("--words", help="Print every word: nats, static nats, word.")
    ] = False,
    model: Model = None,
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Score texts with the memory and without, word by word; teaches nothing."""
    import numpy as np

    from unbounded.corpus import Reader
    from unbounded.evaluation.whole_words import whole_words
    from unbounded.memory import Reading

    check_targets(json_file)
    reader = Reader(texts)
    with asked(engine, memory_folder, model, threads) as memory:
        found = Reading.joined(list(memory.scoring(reader)))
        splitter = memory.model.tokenizer
    say_damage(reader)
    words, static = len(found.words), -np.log(found.static)
    unit = "pieces" if memory.model.lm.closed else "words"
    if each:
        shown = whole_words(found.words, splitter)
        starts = splitter.starts(found.words)
        sums = (np.add.reduceat(nats, starts).tolist() for nats in (found.nats, static))
        for row in zip(*sums, shown, strict=True):
            typer.echo("{:.3f}\t{:.3f}\t{}".format(*row))
    figures = {
        unit: words,
        "perplexity": found.perplexity,
        "static_perplexity": float(np.exp(static.mean())),
    }
    if json_file != "-" and not each:
        typer.echo(
            f"{words:,} {unit}: perplexity {figures['perplexity']:,.2f} with the memory, "
            f"{figures['static_perplexity']:,.2f} static"
        )
    if json_file is not None:
        write_json(figures, json_file)


@app.command()
def complete(
    memory_folder: Folder,
    text: Text = "",
    words: Annotated[int, typer.Option(min=1, help="Words to write.")] = 20,
    model: Model = None,
    seed: Seed = 1,
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Go on writing."""
    check_targets(json_file)
    with asked(engine, memory_folder, model, threads) as memory:
        written = memory.complete(text, words, temperature=1.0, seed=seed)
    if json_file != "-":
        typer.echo(written)
    if json_file is not None:
        write_json({"text": text, "completion": written, "seed": seed}, json_file)
