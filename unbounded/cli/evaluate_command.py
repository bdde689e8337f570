"""`unbounded evaluate`."""

from collections.abc import Callable, Iterable, Iterator
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
    Texts,
    Threads,
    app,
    check_ending,
    check_targets,
    say_damage,
    say_loading,
    size,
    size_or,
)
from unbounded.console import meter, say, tell
from unbounded.errors import SettingError

if TYPE_CHECKING:
    from unbounded.lm import Pretrained


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
    check_targets(report, per_token)
    check_ending(per_token, ".jsonl", ".parquet")
    check_ending(report, ".html", ".htm")
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
    from unbounded.evaluation.metrics import keystrokes

    found: dict[str, Any] = {}
    lines = []
    for preset in ("static", "full"):
        sentences = read_sentences(Reader(texts), model.tokenizer)
        words = islice((word for sentence in sentences for word in sentence.words), count)
        with meter(f"typing, {preset}", count) as show:
            typed = keystrokes(model, preset, _counted(words, show))
        found[preset] = {
            "words": typed.words,
            "keys": typed.letter_by_letter,
            **{f"saved_{n}": part for n, part in typed.saved.items()},
        }
        said = ", ".join(f"{part:.1%} with {n}" for n, part in typed.saved.items())
        lines.append(f"keystrokes saved in {typed.words:,} words, {preset}: {said}")
    return found, lines


def _counted(words: Iterable[str], show: Callable[[int, str], None]) -> Iterator[str]:
    for number, word in enumerate(words, 1):
        yield word
        show(number, "")
