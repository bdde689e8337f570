"""The command line: one thin function a verb.

Verbs import what they need when they are called: `--help` answers at once instead of waiting for
torch (docs/decisions.md).
"""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from unbounded.console import meter, parse_size, say, write_json
from unbounded.errors import UnboundedError
from unbounded.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A language model that never stops reading.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Texts = Annotated[
    list[str],
    typer.Argument(metavar="TEXT...", help="Files, folders, .gz .bz2 .xz .zst, or - for standard input."),
]
JsonFile = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON (- is standard output).")
]
Threads = Annotated[int, typer.Option(min=1, help="Threads of the network and the search.")]
Seed = Annotated[int, typer.Option(help="Seed of all randomness.")]


def _size(default: str, text: str) -> Any:
    return typer.Option(default, metavar="SIZE", parser=parse_size, help=f"{text} Takes k and M.")


def _size_or_all(text: str) -> Any:
    return typer.Option(
        None, metavar="SIZE", parser=parse_size, help=f"{text} Takes k and M [default: all]."
    )


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unbounded {__version__}")
        raise typer.Exit


@app.callback()
def unbounded(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A language model that never stops reading."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model and the pages go.")] = Path("demo"),
    threads: Threads = os.cpu_count() or 1,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Show it all on built-in texts: train, read near and far, draw. Nothing to download."""
    from unbounded.config import set_threads
    from unbounded.demo import FAR, NEAR, TRAIN, demo_evaluation, demo_model
    from unbounded.lm import Progress
    from unbounded.score.report import text_table, write_report

    set_threads(threads)
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        bars: list[Any] = []

        def show(progress: Progress, total: int) -> None:
            if not bars:
                say(f"training a small network on {TRAIN.title}")
                bars.append(stack.enter_context(meter("training", total)))
            bars[0](progress.words, f"perplexity {progress.train_perplexity:,.1f}")

        model = demo_model(out / "model", seed, show)
    figures: dict[str, Any] = {}
    for place, text in (("near", NEAR), ("far", FAR)):
        with ExitStack() as stack:
            evaluation = demo_evaluation(
                model,
                text,
                progress=lambda total, s=stack: s.enter_context(meter("reading", total)),
            )
        page = out / f"{place}.html"
        write_report(evaluation, page, title=text.title)
        # The far text's figures stand at the top, in the shape that `evaluate` gives.
        figures = evaluation.to_json() | {"text": text.title, **({"near": figures} if figures else {})}
        if json_file != "-":
            typer.echo(f"\n{place}: {text.title}\n{text_table(evaluation)}\nthe curves: {page}")
    if json_file is not None:
        write_json(figures, json_file)


@app.command()
def train(
    texts: Texts,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Folder to write the model to.")],
    tokens: int = _size("2M", "Words to train on, from the start of the text."),
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Text to validate on [default: what follows the training words]."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training words.")] = 10,
    cell: Annotated[str, typer.Option(help="lstm, gru or elman.")] = "lstm",
    units: Annotated[int, typer.Option(min=1, help="Hidden units.")] = 256,
    learning_rate: Annotated[float, typer.Option(help="Adagrad's learning rate.")] = 0.2,
    bptt: Annotated[int, typer.Option(min=1, help="Steps to propagate errors back.")] = 20,
    streams: Annotated[int, typer.Option(min=1, help="Parallel streams in a step.")] = 32,
    dropout: Annotated[float, typer.Option(help="Share of units dropped in training.")] = 0.0,
    unknown: Annotated[float, typer.Option(help="How often a rare word is read as <unk>.")] = 0.5,
    clip: Annotated[float, typer.Option(help="Largest gradient norm.")] = 1.0,
    cutoffs: Annotated[str, typer.Option(help="Where the adaptive softmax's clusters end.")] = "2k,10k,40k",
    patience: Annotated[int, typer.Option(min=1, help="Epochs to wait for a better validation.")] = 2,
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Do not lower-case.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted training.")] = False,
    threads: Threads = os.cpu_count() or 1,
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Train the static network on a text."""
    from unbounded.config import set_threads
    from unbounded.corpus import Reader, Tokenizer, read_sentences
    from unbounded.lm import NetworkConfig, TrainingConfig, load_model, train_model, training_text
    from unbounded.lm.encoder import CELLS
    from unbounded.score.figures import draw_training

    if cell not in CELLS:
        raise typer.BadParameter(f"{cell!r} is not a cell; choose lstm, gru or elman")
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
    tokenizer = Tokenizer(lowercase=not keep_case)
    reader = Reader(texts)
    held = None if valid is None else read_sentences(Reader(valid), tokenizer)
    text = training_text(read_sentences(reader, tokenizer), tokens, held)
    _say_damage(reader)
    say(f"training on {len(text.words):,} words, {text.vocabulary.base_size:,} of them distinct")
    with meter("training", len(text.words) * epochs) as show:
        for progress in train_model(out, text, tokenizer, network, config, resume=resume):
            show(progress.words, f"perplexity {progress.train_perplexity:,.1f}")
            if progress.valid_perplexity is not None:
                say(
                    f"epoch {progress.epoch}: perplexity {progress.train_perplexity:,.2f} training, "
                    f"{progress.valid_perplexity:,.2f} validation, {progress.seconds:,.0f} s"
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


@app.command()
def evaluate(
    model_folder: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder made by 'unbounded train'.")],
    texts: Texts,
    rows: Annotated[
        str, typer.Option(help="Rows to score, out of static, unigram, local, unbounded, full.")
    ] = "static,unigram,local,unbounded",
    index: Annotated[str, typer.Option(help="Index of the memory: auto, flat (exact) or ivfpq (the paper's).")] = "auto",
    k: int = _size("1024", "Neighbors to ask."),
    window: int = _size("10000", "Entries of the local cache."),
    kernel: Annotated[str, typer.Option(help="gaussian or epanechnikov.")] = "gaussian",
    sharpness: Annotated[float, typer.Option(help="K(√sharpness · d / θ); the paper's is 1.")] = 16.0,
    local_sharpness: Annotated[float, typer.Option(help="The same for the local cache.")] = 16.0,
    bandwidth: Annotated[
        float | None, typer.Option(help="A fixed θ [default: the distance to the k-th neighbor].")
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale states to length one.")] = False,
    mixture: Annotated[str, typer.Option(help="Weights: online (learned as it reads) or fixed.")] = "online",
    validate: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Text to fit fixed weights on [default: the first tenth, then not scored]."),
    ] = None,
    tokens: int | None = _size_or_all("Words to read at most."),
    block: int = _size("512", "Words scored at once; the scores do not depend on it."),
    every: int = _size("10k", "Words between two points of the curves."),
    protocol: Annotated[str, typer.Option(help="paper: the uniform is over training and test words.")] = "paper",
    per_token: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every word's nats (.jsonl or .parquet).")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page with curves.")] = None,
    threads: Threads = os.cpu_count() or 1,
    json_file: JsonFile = None,
) -> None:
    """Score a text under the paper's rows, in one pass, learning as it reads."""
    from unbounded.config import MemoryConfig, set_threads
    from unbounded.corpus import Reader
    from unbounded.jobs import EvaluationConfig, readable_twice
    from unbounded.jobs import evaluate as run
    from unbounded.lm import load_model
    from unbounded.predict import Kernel
    from unbounded.score.per_token import per_token_writer
    from unbounded.score.report import text_table, write_report

    if protocol != "paper":
        raise typer.BadParameter(f"protocol {protocol!r} is unknown; only paper is here so far")
    set_threads(threads)
    memory = MemoryConfig(
        index=index,
        k=k,
        window=window,
        kernel=Kernel(kernel, sharpness, bandwidth),
        local_kernel=Kernel(kernel, local_sharpness, bandwidth),
        normalize=normalize,
    )
    config = EvaluationConfig(
        rows=tuple(name.strip() for name in rows.split(",")),
        memory=memory,
        mixture=mixture,
        tokens=tokens,
        block=block,
        every=every,
    )
    model = load_model(model_folder)
    with ExitStack() as stack:
        watchers = [] if per_token is None else [stack.enter_context(per_token_writer(per_token))]
        reader = stack.enter_context(readable_twice(texts))
        evaluation = run(
            model,
            reader,
            config,
            validate=None if validate is None else Reader(validate),
            watchers=watchers,
            progress=lambda total: stack.enter_context(meter("reading", total)),
        )
    _say_damage(reader)
    for event in evaluation.events:
        say(event)
    if report is not None:
        write_report(evaluation, report, title=", ".join(texts))
    if json_file is not None:
        write_json(evaluation.to_json(), json_file)
    if json_file != "-":
        typer.echo(text_table(evaluation))


def _say_damage(reader: Any) -> None:
    for path, count in reader.damaged.items():
        say(f"{path}: {count:,} broken bytes read as U+FFFD")
    if reader.cut:
        say(f"{reader.cut:,} lines longer than a million characters were cut at white space")


def main() -> None:
    """Run the command line; a failure is one line and exit status 1 (2 for usage)."""
    try:
        app()
    except UnboundedError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output has left, as in `unbounded … | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; free some space or choose another place")
    except KeyboardInterrupt:
        say("stopped")
        raise SystemExit(130) from None


def _fail(message: str) -> None:
    say(f"Error: {' '.join(message.split())}")
    raise SystemExit(1) from None
