"""`unbounded train`."""

from pathlib import Path
from typing import Annotated

import typer

from unbounded.cli.main import (
    CORES,
    JsonFile,
    Seed,
    Texts,
    Threads,
    app,
    check_targets,
    say_damage,
    size,
)
from unbounded.console import meter, parse_size, say, write_json


@app.command()
def train(
    texts: Texts,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Folder to write the model to.")],
    tokens: int = size("2M", "Words to train on, from the start of the text."),
    valid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Text to validate on [default: what follows the training words]."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training words.")] = 10,
    cell: Annotated[str, typer.Option(help="lstm, gru or elman.")] = "lstm",
    units: Annotated[int, typer.Option(min=1, help="Hidden units.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Adagrad's learning rate.")] = 0.2,
    bptt: Annotated[int, typer.Option(min=1, help="Steps to propagate errors back.")] = 20,
    streams: Annotated[int, typer.Option(min=1, help="Parallel streams in a step.")] = 32,
    dropout: Annotated[float, typer.Option(help="Share of units dropped in training.")] = 0.2,
    unknown: Annotated[float, typer.Option(help="How often a rare word is read as <unk>.")] = 0.5,
    clip: Annotated[float, typer.Option(help="Largest gradient norm.")] = 1.0,
    cutoffs: Annotated[
        str, typer.Option(help="Where the adaptive softmax's clusters end.")
    ] = "2k,10k,40k",
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs to wait for a better validation.")
    ] = 2,
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Do not lower-case.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training.")
    ] = False,
    threads: Threads = CORES,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Train the static network on a text."""
    from unbounded.corpus import Reader, Tokenizer, read_sentences
    from unbounded.evaluation.figures import draw_training
    from unbounded.lm import (
        NetworkConfig,
        TrainingConfig,
        check_folder,
        load_model,
        train_model,
        training_text,
    )
    from unbounded.presets import set_threads

    check_targets(json_file)
    set_threads(threads)
    network = NetworkConfig(cell, units, tuple(parse_size(part) for part in cutoffs.split(",")))
    config = TrainingConfig(
        epochs=epochs,
        learning_rate=learning_rate,
        bptt=bptt,
        streams=streams,
        dropout=dropout,
        unknown=unknown,
        clip=clip,
        patience=patience,
        seed=seed,
    )
    check_folder(out, resume=resume)  # before an hour of reading, not after
    tokenizer = Tokenizer(lowercase=not keep_case)
    reader = Reader(texts)
    held = None if valid is None else read_sentences(Reader(valid), tokenizer)
    text = training_text(read_sentences(reader, tokenizer), tokens, held)
    say_damage(reader)
    say(f"training on {len(text.words):,} words, {text.vocabulary.base_size:,} of them distinct")
    with meter("training", len(text.words) * epochs) as show:
        for progress in train_model(out, text, tokenizer, network, config, resume=resume):
            show(progress.words, f"perplexity {progress.train_perplexity:,.1f}")
            if progress.valid_perplexity is not None:
                say(
                    f"epoch {progress.epoch}: perplexity {progress.train_perplexity:,.2f} "
                    f"training, {progress.valid_perplexity:,.2f} validation, "
                    f"{progress.seconds:,.0f} s"
                )
    model = load_model(out)
    draw_training(model.curve, out / "curve.svg")
    best = min(model.curve, key=lambda line: line.valid_perplexity or 0.0)
    say(f"{out}: epoch {best.epoch} kept, validation perplexity {best.valid_perplexity:,.2f}")
    if json_file is not None:
        figures = {
            "tokens": len(text.words),
            "vocabulary": text.vocabulary.base_size,
            "epoch": best.epoch,
            "valid_perplexity": best.valid_perplexity,
            "seconds": model.curve[-1].seconds,
            "words_per_second": model.curve[-1].words / model.curve[-1].seconds,
        }
        write_json(figures, json_file)
