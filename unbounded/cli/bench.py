"""`unbounded bench`: speed, always beside an alternative measured in the same run."""

import typer

from unbounded.cli.app import JsonFile, Seed, app, size
from unbounded.console import write_json

bench = typer.Typer(no_args_is_help=True, help="Measure speed beside alternatives, in one run.")
app.add_typer(bench, name="bench")


@bench.command()
def train(
    vocabulary: int = size("100k", "Words the network knows."),
    steps: int = size("30", "Training steps to time."),
    seed: Seed = 1,
    json_file: JsonFile = None,
) -> None:
    """Training beside the naive way, and one-stream inference beside torch's own parts."""
    from unbounded.lm.bench import bench_inference, bench_training

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
        f"hidden states      {inference['states_us']:>9,.1f} µs/word"
        f"  {inference['states_ratio']:.2f} of a bare nn.LSTM's {inference['bare_lstm_us']:.1f}\n"
        f"word probabilities {inference['probabilities_us']:>9,.1f} µs/word"
        f"  {inference['probabilities_ratio']:.2f} of torch's adaptive softmax's "
        f"{inference['torch_softmax_us']:.1f}"
    )
