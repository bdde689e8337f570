"""`unbounded demo` and `train`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from unbounded.cli.main import (
    CORES,
    JsonFile,
    Seed,
    Texts,
    Threads,
    app,
    say_damage,
    size,
    stoppable,
)
from unbounded.console import meter, parse_size, say, tell, training_meter


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the model and the pages go.")
    ] = Path("demo"),
    threads: Threads = CORES,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Show it all on built-in texts: train, read near and far, draw. Nothing to download."""
    from unbounded.demo import FAR, NEAR, TRAIN, demo_evaluation, demo_model
    from unbounded.evaluation.report import text_table, write_report
    from unbounded.presets import set_threads

    set_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    figures: dict[str, Any] = {}
    with stoppable(f"what was trained is in {out}, and the same command goes on from there"):
        with training_meter(f"training a small network on {TRAIN.title}") as show:
            model = demo_model(out / "model", seed, show)
        for place, text in (("near", NEAR), ("far", FAR)):
            with ExitStack() as stack:
                evaluation = demo_evaluation(
                    model,
                    text,
                    progress=lambda total, s=stack: s.enter_context(meter("reading", total)),
                )
            page = out / f"{place}.html"
            write_report(evaluation, page, title=text.title)
            if json_file != "-":
                typer.echo(f"\n{place}: {text.title}\n{text_table(evaluation)}\nthe curves: {page}")
            # The far text's figures stand at the top, in the shape that `evaluate` gives.
            near = {"near": figures} if figures else {}
            figures = evaluation.to_json() | {"text": text.title, **near}
    tell(json_file, figures)


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
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training words.")] = 8,
    cell: Annotated[str, typer.Option(help="lstm, gru or elman.")] = "lstm",
    units: Annotated[int, typer.Option(min=1, help="Hidden units.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Adagrad's learning rate.")] = 0.1,
    bptt: Annotated[int, typer.Option(min=1, help="Steps to propagate errors back.")] = 20,
    streams: Annotated[int, typer.Option(min=1, help="Parallel streams in a step.")] = 32,
    dropout: Annotated[float, typer.Option(help="Share of units dropped in training.")] = 0.3,
    unknown: Annotated[float, typer.Option(help="How often a rare word is read as <unk>.")] = 0.5,
    clip: Annotated[float, typer.Option(help="Largest gradient norm.")] = 1.0,
    cutoffs: Annotated[
        str, typer.Option(help="Where the adaptive softmax's clusters end.")
    ] = "2k,10k,40k",
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs to wait for a better validation.")
    ] = 2,
    tokenizer: Annotated[
        str,
        typer.Option(
            help="How lines become words: europarl, or none for text that is tokenized already."
        ),
    ] = "europarl",
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Do not lower-case.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.")] = "cpu",
    threads: Threads = CORES,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Train the static network on a text."""
    from unbounded.corpus import Reader, read_sentences, tokenizer_named, training_text
    from unbounded.evaluation.figures import draw_training
    from unbounded.lm import NetworkConfig, TrainingConfig, check_folder, load_model, train_model
    from unbounded.lm.devices import device_named
    from unbounded.presets import set_threads

    device_named(device)
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
    splitter = tokenizer_named(tokenizer, keep_case=keep_case)
    reader = Reader(texts)
    held = None if valid is None else read_sentences(Reader(valid), splitter)
    text = training_text(read_sentences(reader, splitter), tokens, held)
    say_damage(reader)
    say(f"training on {len(text.words):,} words, {text.vocabulary.base_size:,} of them distinct")
    kept = f"{out} keeps the training up to a minute ago; the same command with --resume goes on"
    with stoppable(kept), meter("training", len(text.words) * epochs) as show:
        for progress in train_model(
            out, text, splitter, network, config, resume=resume, device=device
        ):
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
    figures = {
        "tokens": len(text.words),
        "vocabulary": text.vocabulary.base_size,
        "epoch": best.epoch,
        "valid_perplexity": best.valid_perplexity,
        "seconds": model.curve[-1].seconds,
        "words_per_second": model.curve[-1].words / model.curve[-1].seconds,
    }
    tell(json_file, figures)
