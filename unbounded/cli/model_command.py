"""`unbounded demo`, `train` and `evaluate`: a network made, and what it is worth."""

from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import (
    CORES,
    Device,
    Engine,
    JsonFile,
    Seed,
    Texts,
    Threads,
    app,
    check_target,
    say_damage,
    say_loading,
    size,
    size_or,
    stoppable,
)
from unbounded.console import meter, parse_size, say, tell, training_meter
from unbounded.errors import SettingError

if TYPE_CHECKING:
    from unbounded.lm import Pretrained


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


@app.command()
def evaluate(
    model_folder: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder made by 'unbounded train', or of transformers; a GGUF file; or smollm2.",
        ),
    ],
    texts: Texts,
    rows: Annotated[
        str,
        typer.Option(
            help="Rows to score, out of static, unigram, local, unbounded, full, "
            "dynamic_head (output layer only), adapted (the same along few directions), dynamic "
            "(dynamic evaluation, a baseline), knnlm and "
            "knnlm-tuned (kNN-LM as published, and tuned on --validate)."
        ),
    ] = "static,unigram,local,unbounded,full",
    index: Annotated[
        str, typer.Option(help="Index of the memory: auto, flat (exact) or ivfpq (the paper's).")
    ] = "auto",
    k: int | None = size_or("1024, more from half a million entries on", "Neighbors to ask."),
    window: int = size("10000", "Entries of the local cache."),
    kernel: Annotated[str, typer.Option(help="gaussian or epanechnikov.")] = "gaussian",
    sharpness: Annotated[
        float | None,
        typer.Option(help="K(√sharpness · d / θ) [default: learned; the paper's is 1]."),
    ] = None,
    local_sharpness: Annotated[
        float | None, typer.Option(help="The same for the local cache [default: learned].")
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(help="A fixed θ [default: the distance to the k-th neighbor].")
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize/--raw", help="Scale states to length one, or not.")
    ] = True,
    oov: Annotated[
        str,
        typer.Option(help="Read words the network does not know by their characters, or as unk."),
    ] = "characters",
    mixture: Annotated[
        str, typer.Option(help="Weights: online (learned as it reads), fixed, or both.")
    ] = "online",
    validate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text to fit fixed weights on [default: the first tenth, then not scored].",
        ),
    ] = None,
    first: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text to read first, not scored; all that the memory of a kNN-LM knows.",
        ),
    ] = None,
    first_tokens: int | None = size_or("all", "Words of it at most."),
    context: int | None = size_or(
        "the model's, 1024 at most", "Pieces that a transformer looks back at most."
    ),
    key: Annotated[
        str,
        typer.Option(
            help="State of a transformer that is remembered: output, or feedforward (the input "
            "of the last one)."
        ),
    ] = "output",
    device: Device = "cpu",
    tokens: int | None = size_or("all", "Words (pieces of a transformer) to read at most."),
    block: int = size("8192", "Words scored at once; the scores do not depend on it."),
    protocol: Annotated[
        str,
        typer.Option(
            help="paper: OOV words are uniform over training and test words; "
            "open: nothing of the future is known, OOV words are spelled."
        ),
    ] = "paper",
    per_token: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every word's nats (.jsonl, .parquet, or -)."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page with curves (or -).")
    ] = None,
    keystrokes: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="WORDS",
            help="Also type so many words with 1, 3 and 5 suggestions, by the network alone and "
            "by all experts: keystrokes saved.",
        ),
    ] = 0,
    engine: Engine = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Score a text under the paper's rows and all together, in one pass, learning as it reads."""
    from unbounded.corpus import Reader
    from unbounded.evaluation.evaluate import EvaluationConfig
    from unbounded.evaluation.evaluate import evaluate as run
    from unbounded.evaluation.evaluation import per_token_writer
    from unbounded.evaluation.figures import require_matplotlib
    from unbounded.evaluation.report import text_table, write_report
    from unbounded.experts import Kernel
    from unbounded.lm import TransformerConfig, load_model
    from unbounded.presets import MemoryConfig, set_threads

    if keystrokes and "-" in texts:
        raise SettingError(
            "standard input is read once, and keystrokes go over the text again; "
            "give --keystrokes a file"
        )
    if report is not None:
        require_matplotlib()
    check_target(per_token, ".jsonl", ".parquet")
    check_target(report, ".html", ".htm")
    if [str(target) for target in (json_file, report, per_token)].count("-") > 1:
        raise SettingError("two things for standard output; give one of them a file")
    set_threads(threads)

    def chosen(sharpness: float | None) -> Kernel | None:
        """One kernel if anything was said of it; otherwise its sharpness is learned."""
        if (kernel, sharpness, bandwidth) == ("gaussian", None, None):
            return None
        return Kernel(kernel, 16.0 if sharpness is None else sharpness, bandwidth)

    memory = MemoryConfig(
        index=index,
        k=k,
        window=window,
        kernel=chosen(sharpness),
        local_kernel=chosen(local_sharpness),
        normalize=normalize,
    )
    config = EvaluationConfig(
        rows=tuple(name.strip() for name in rows.split(",")),
        memory=memory,
        oov=oov,
        protocol=protocol,
        mixture=mixture,
        tokens=tokens,
        first_tokens=first_tokens,
        block=block,
    )
    say_loading(model_folder, device)
    model = load_model(model_folder, TransformerConfig(context=context, key=key, device=device))
    with ExitStack() as stack:
        watchers = [] if per_token is None else [stack.enter_context(per_token_writer(per_token))]
        reader, datastore = Reader(texts), None
        if engine is not None:
            from unbounded.cluster.connecting import scratch

            datastore = stack.enter_context(scratch(engine, index, model.lm.width, threads=threads))
        evaluation = run(
            model,
            reader,
            config,
            validate=validate or None,
            first=first or None,
            watchers=watchers,
            progress=lambda total: stack.enter_context(meter("reading", total)),
            datastore=datastore,
        )
    say_damage(reader)
    for event in evaluation.events:
        say(event)
    # The table first: whatever happens to the files, it was shown.
    piped = "-" in (str(report), str(per_token))
    if json_file != "-":
        typer.echo(text_table(evaluation), err=piped)
    if per_token is not None and str(per_token) != "-":
        say(f"wrote {per_token}")
    if report is not None:
        # A file's name may be bytes that are no text.
        named = ", ".join(texts).encode(errors="replace").decode()
        write_report(evaluation, report, title=named)
        if str(report) != "-":
            say(f"wrote {report}")
    figures = evaluation.to_json()
    if keystrokes:
        figures["keystrokes"], lines = _keystrokes(model, texts, keystrokes)
        if json_file != "-":
            typer.echo("\n".join(lines), err=piped)
    tell(json_file, figures)


def _keystrokes(
    model: "Pretrained", texts: list[str], count: int
) -> tuple[dict[str, Any], list[str]]:
    """What suggestions save, by the network alone and by all experts, as figures and as lines."""
    from unbounded.corpus import Reader, read_sentences
    from unbounded.evaluation.keystrokes import keystrokes

    found: dict[str, Any] = {}
    lines = []
    for preset in ("static", "full"):
        sentences = read_sentences(Reader(texts), model.tokenizer)
        words = islice((word for sentence in sentences for word in sentence.words), count)
        with meter(f"typing, {preset}", count) as show:
            typed = keystrokes(model, preset, words, show)
        found[preset] = {
            "words": typed.words,
            "keys": typed.letter_by_letter,
            **{f"saved_{n}": part for n, part in typed.saved.items()},
        }
        said = ", ".join(f"{part:.1%} with {n}" for n, part in typed.saved.items())
        lines.append(f"keystrokes saved in {typed.words:,} words, {preset}: {said}")
    return found, lines
