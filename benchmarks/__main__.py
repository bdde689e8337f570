"""`python -m benchmarks`: speed, always beside an alternative measured in the same run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbounded.cli.main import CORES, JsonFile, Seed, Threads, check_targets, run, size
from unbounded.console import meter, parse_size, training_meter, write_json

if TYPE_CHECKING:
    from unbounded.corpus import Line
    from unbounded.lm import Pretrained

bench = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure speed beside alternatives, in one run.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PIPED_BEYOND = 10_000
"""Words of a pipe that are kept beyond the entries, for queries."""

Bench = Callable[..., Any]
Table = Callable[[int, Mapping[str, Any]], str]

Marks = Annotated[
    str, typer.Option(metavar="SIZES", help="Sizes of the memory to measure at, as 1M,10M.")
]
TextFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="TEXT",
        help="Text to read: a file, a folder, or -; may be repeated [default: built-in texts].",
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="DIR",
        help="Folder made by 'unbounded train' [default: the demo's, in demo/model].",
    ),
]


@bench.command()
def train(
    vocabulary: int = size("100k", "Words the network knows."),
    steps: int = size("30", "Training steps to time."),
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Training beside the naive way, and one-stream inference beside plain PyTorch."""
    from benchmarks.training import bench_inference, bench_training

    training = bench_training(vocabulary, steps, seed)
    inference = bench_inference(vocabulary, 2_000, seed)
    if json_file is not None:
        write_json({"training": training, "inference": inference}, json_file)
    if json_file == "-":
        return
    typer.echo(
        f"vocabulary {vocabulary:,}, one thread, CPU time\n"
        f"training           {training['words_per_cpu_second']:>9,.0f} words/s\n"
        f"  naive            {training['naive_words_per_cpu_second']:>9,.0f} words/s"
        f"   (dense embedding gradients, full softmax): {training['ratio']:.1f} times slower\n"
        f"µs a word of one stream   torch  native  native, two threads (time of the clock)\n"
        + "".join(
            f"  {label:<20} {inference[f'torch_{name}_1_us']:>8.1f} "
            f"{inference[f'{name}_1_us']:>7.1f} {inference[f'{name}_2_us']:>7.1f}\n"
            for name, label in (("states", "hidden states"), ("probabilities", "probabilities"))
        )
        + f"  adapted output layer          {inference['adapted_1_us']:>7.1f} "
        f"{inference['adapted_2_us']:>7.1f}\n"
        f"  native over torch: {inference['ratio_1']:.2f}, with two threads "
        f"{inference['ratio_2']:.2f}"
    )


@bench.command()
def read(
    entries: Marks = "100k,1M",
    text: TextFiles = None,
    model_folder: Model = None,
    block: int = size("8192", "Words read at once."),
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """What reading costs a word, beside the network alone and stock faiss.

    Everything in one run, on real states of real text, none of it read twice. The states are
    kept in a temporary file meanwhile: two bytes a unit and word.
    """
    from benchmarks.read import bench_read
    from benchmarks.tables import read_table

    run = partial(bench_read, block=block, threads=threads)
    _run(run, read_table, entries, text, model_folder, threads, json_file)


@bench.command()
def search(
    entries: Marks = "100k",
    text: TextFiles = None,
    model_folder: Model = None,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """Queries a second, recall and bytes of each index, beside stock faiss.

    On real states, 1,024 neighbors a query; the queries are the 2,048 states after the entries.
    """
    from benchmarks.search import bench_search
    from benchmarks.tables import search_table

    _run(bench_search, search_table, entries, text, model_folder, threads, json_file)


@bench.command()
def serve(
    model: Annotated[Path, typer.Option("--model", metavar="DIR", help="Folder of a model.")],
    users: Annotated[int, typer.Option(min=1, help="Users at once.")] = 32,
    memories: Annotated[int, typer.Option(min=1, help="Memories that they share.")] = 16,
    seconds: Annotated[float, typer.Option(min=2, help="How long the service is used.")] = 120.0,
    direct: Annotated[
        float, typer.Option(min=1, help="How long the library is, each time.")
    ] = 15.0,
    threads: Threads = CORES,
    json_file: JsonFile = None,
) -> None:
    """The service under load, killed half-way, beside the library called directly."""
    from benchmarks.serve import bench_serve
    from benchmarks.tables import serve_table
    from experiments.results import circumstances
    from unbounded.console import say

    check_targets(json_file)
    figures = circumstances(Path(__file__).parent) | bench_serve(
        model,
        users=users,
        memories=memories,
        seconds=seconds,
        threads=threads,
        direct=direct,
        say=say,
    )
    if json_file is not None:
        write_json(figures, json_file)
    if json_file != "-":
        typer.echo(serve_table(figures))
    if figures["lost"] or figures["strange"]:
        raise typer.Exit(1)


def _run(
    run: Bench,
    table: Table,
    entries: str,
    texts: list[str] | None,
    folder: Path | None,
    threads: int,
    json_file: str | None,
) -> None:
    """Run a benchmark; its figures are written and shown at each mark, for a run may be stopped."""
    from experiments.results import circumstances
    from unbounded.presets import set_threads

    marks = [parse_size(part) for part in entries.split(",")]
    check_targets(json_file)
    set_threads(threads)
    figures: dict[str, Any] = {
        **circumstances(Path(__file__).parent),
        "threads": threads,
        "text": ", ".join(texts) if texts else "built-in texts",
        "model": str(folder) if folder else "demo",
        "entries": {},
    }

    def keep(mark: int, there: Mapping[str, Any]) -> None:
        figures["entries"][str(mark)] = there
        if json_file not in (None, "-"):
            write_json(figures, str(json_file))
        if json_file != "-":
            typer.echo(f"\n{table(mark, there)}")

    with ExitStack() as stack:
        model = _model(folder)
        lines = stack.enter_context(_text(texts, model, max(marks)))

        def progress(total: int) -> Callable[[int, str], None]:
            return stack.enter_context(meter("reading", total))

        run(model, lines, marks, progress=progress, keep=keep)
    if json_file == "-":
        write_json(figures, json_file)


def _model(folder: Path | None) -> "Pretrained":
    from unbounded.demo import TRAIN, demo_model
    from unbounded.lm import load_model

    if folder is not None:
        return load_model(folder)
    with training_meter(f"training the demo's small network on {TRAIN.title}") as show:
        Path("demo").mkdir(exist_ok=True)
        return demo_model(Path("demo") / "model", 1, show)


@contextmanager
def _text(texts: list[str] | None, model: "Pretrained", tokens: int) -> "Iterator[Iterable[Line]]":
    from benchmarks.text import DEMO
    from unbounded.evaluation.evaluate import readable_twice

    if not texts:
        yield DEMO
        return
    # A pipe is set down in a file: the queries of a search follow its entries.
    with readable_twice(texts, model.tokenizer, tokens + PIPED_BEYOND) as reader:
        yield reader


@bench.command()
def cluster(
    engine: Annotated[
        str, typer.Option(metavar="ADDRESS", help="ray://HOST:PORT or ray://local.")
    ] = "ray://local",
    entries: int = size("1M", "Entries of the memory."),
    shards: Annotated[str, typer.Option(metavar="NUMBERS", help="Shards to try.")] = "1,2,4",
    blocks: Annotated[str, typer.Option(metavar="SIZES", help="Blocks to try.")] = "64,256,1024",
    words: int = size("4096", "Words to time for each."),
    threads: Threads = 1,
    json_file: JsonFile = None,
) -> None:
    """A memory on shards beside the same in this process; and what the engine itself costs."""
    from benchmarks.cluster import bench_cluster
    from unbounded.presets import set_threads

    check_targets(json_file)
    set_threads(threads)
    figures = bench_cluster(
        engine,
        entries,
        [int(number) for number in shards.split(",")],
        [parse_size(number) for number in blocks.split(",")],
        words=words,
        show=lambda line: None if json_file == "-" else typer.echo(line),
    )
    if json_file is not None:
        write_json(figures, json_file)


if __name__ == "__main__":
    run(bench, "python -m benchmarks")
