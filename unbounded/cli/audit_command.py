"""`unbounded audit`."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.main import CORES, JsonFile, Seed, Texts, Threads, app, say_damage
from unbounded.console import write_json

BROKEN = 3
"""The exit status of a breach, apart from 1 and 2, which are for what could not be audited."""


@app.command()
def audit(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A model's folder, module:callable, lm_eval:MODEL,key=value, or an "
            "OpenAI-compatible address such as http://localhost:8000/v1.",
        ),
    ],
    texts: Texts,
    words: Annotated[int, typer.Option(min=16, help="Words of the text to audit on.")] = 300,
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Words to sum over, one a line [default: the text's]."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=2, help="Words asked for a sum at most; of more, a sample.")
    ] = 300,
    preset: Annotated[str, typer.Option(help="For a model's folder: which experts.")] = "full",
    model: Annotated[str, typer.Option(help="For an address: the model's name there.")] = "default",
    tolerance: Annotated[float, typer.Option(min=0.0, help="Nats that rounding may take.")] = 1e-3,
    seed: Seed = 1,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Check if an online language model's scores are what they claim; exit status 3 if not.

    A key for an address is taken from OPENAI_API_KEY.
    """
    from itertools import islice

    from unbounded.corpus import Reader, read_sentences
    from unbounded.integrations.audit import Audit
    from unbounded.integrations.audited import audited
    from unbounded.presets import set_threads

    set_threads(threads)
    key = os.environ.get("OPENAI_API_KEY")
    reader = Reader(texts)
    made, ours, strings = audited(what, preset=preset, model=model, key=key)
    if ours is not None:
        read = (word for one in read_sentences(reader, ours.tokenizer) for word in one.words)
    else:
        read = (word for line in reader for word in line.text.split())
    text = list(islice(read, words))
    say_damage(reader)
    listed = None if vocabulary is None else vocabulary.read_text(encoding="utf-8").split()
    checks = Audit(
        *(made, text, listed),
        samples=samples,
        seed=seed,
        tolerance=tolerance,
        disjoint=strings,
    )
    findings = []
    for found in checks.run():
        findings.append(found)
        if json_file != "-":
            verdict = {True: "kept", False: "BROKEN", None: "cannot tell"}[found.kept]
            typer.echo(f"{found.check:13} {verdict:12} {found.evidence}")
    broken = [found.check for found in findings if found.kept is False]
    if json_file != "-":
        typer.echo(f"broken: {', '.join(broken)}" if broken else "nothing broken was found")
    if json_file is not None:
        write_json(
            {"broken": broken, "words": len(text), "findings": [asdict(f) for f in findings]},
            json_file,
        )
    if broken:
        raise typer.Exit(BROKEN)
